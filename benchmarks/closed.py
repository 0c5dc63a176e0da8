"""The closed form beside SciPy and diffrax, and what it costs as the problem grows."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from race import Bound, Ratio, race
from scipy.integrate import solve_ivp

from nonmixing.dynamics.exact import solve
from nonmixing.dynamics.integrate import integrate
from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.problem import Array, BilinearProblem, Factors, balanced, orthonormal

HERE = Path(__file__).resolve().parent
RTOL, ATOL, END, COUNT = 1e-9, 1e-12, 60.0, 100
SCALE = 1e-3
"""The standard deviation of the start's entries, where the spectrum is from 0.1 to 1."""
UNIT = 1024**2 if sys.platform == "linux" else 1024**3
"""ru_maxrss in GB: it comes in kB on Linux, in bytes elsewhere."""


def full_rank_problem(size: int, width: int) -> tuple[Array, Factors, Array]:
    """A target (size, size) with s from 1 to 0.1, a balanced start, 100 times to 60."""
    generator = np.random.default_rng(0)
    left, right = (orthonormal(size, size, generator) for _ in range(2))
    target = (left * np.linspace(1, 0.1, size)) @ right.T
    start = balanced(BilinearProblem(target), scale=SCALE, width=width, seed=1)
    return target, start, np.linspace(0, END, COUNT)


def by_scipy(target: Array, start: Factors, times: Array, *, formed: bool) -> tuple[Array, Array]:
    """U (K, m, r) and V by DOP853; E = U Vᵀ − T is formed, or U(VᵀV) is, which is cheaper."""
    m, r = start.U.shape

    def velocity(_: float, state: Array) -> Array:
        U, V = state[: m * r].reshape(m, r), state[m * r :].reshape(-1, r)
        if formed:
            E = U @ V.T - target
            moved = (-(E @ V), -(E.T @ U))
        else:
            moved = (target @ V - U @ (V.T @ V), target.T @ U - V @ (U.T @ U))
        return np.concatenate([part.ravel() for part in moved])

    first = np.concatenate([start.U.ravel(), start.V.ravel()])
    span = (0.0, float(times[-1]))
    found = solve_ivp(
        velocity, span, first, method="DOP853", t_eval=times, rtol=RTOL, atol=ATOL
    ).y.T
    return found[:, : m * r].reshape(-1, m, r), found[:, m * r :].reshape(-1, len(target.T), r)


def apart(run: Trajectory, U: Array, V: Array) -> float:
    """The largest difference in Q at five of the times."""
    places = np.linspace(0, len(run) - 1, 5).astype(int)
    return max(float(np.abs(run.operator(int(k)) - U[k] @ V[k].T).max()) for k in places)


def full_rank(quick: bool, python: str) -> list[Ratio | Bound]:
    """One SVD and 100 exact times, beside DOP853 in two forms and diffrax."""
    size, width, rounds = (200, 8, 1) if quick else (1000, 16, 2)
    target, start, times = full_rank_problem(size, width)
    known = BilinearProblem(target)
    known.svd  # noqa: B018 (it is cached)
    found: dict[str, tuple[Array, Array]] = {}

    def evaluation() -> Trajectory:
        return solve(known, start, times)

    def everything() -> Trajectory:  # a new problem each time, so that its SVD counts
        return solve(BilinearProblem(target), start, times)

    def svd() -> object:
        return np.linalg.svd(target, full_matrices=False)

    def competent() -> None:
        found["competent"] = by_scipy(target, start, times, formed=False)

    def naive() -> None:
        found["naive"] = by_scipy(target, start, times, formed=True)

    evaluation(), svd()  # warm
    ours = race((svd, evaluation, everything), 3 * rounds)
    theirs = race((competent, naive), rounds)
    run = everything()
    label = f"m = n = {size}, r = {width}, {COUNT} times"
    rows: list[Ratio | Bound] = [
        Ratio(f"exact with its SVD, DOP853 on T V − U(VᵀV); {label}", ours[2], theirs[0], 6,
              apart(run, *found["competent"])),
        Ratio(f"exact with its SVD, DOP853 with E formed; {label}", ours[2], theirs[1], None,
              apart(run, *found["naive"])),
        Ratio(f"exact, SVD known, DOP853 on T V − U(VᵀV); {label}", ours[1], theirs[0], None,
              apart(run, *found["competent"])),
        Bound(f"exact with its SVD, in SVDs; {label}", ours[2], ours[0], "s", 2),
        Bound(f"exact, SVD known, in SVDs; {label}", ours[1], ours[0], "s", 1, strict=True),
    ]  # fmt: skip
    return [*rows, *by_diffrax(target, start, times, python, ours[2], run, label)]


def by_diffrax(
    target: Array, start: Factors, times: Array, python: str, ours: float, run: Trajectory,
    label: str,
) -> list[Ratio]:  # fmt: skip
    """Tsit5 and Dopri8 in a process of their own, compiled before the clock runs."""
    if not python:
        print("diffrax: no --diffrax-python; left out (see benchmarks/README.md)", flush=True)
        return []
    rows: list[Ratio] = []
    with tempfile.TemporaryDirectory() as folder:
        given, taken = Path(folder, "given.npz"), Path(folder, "taken.npz")
        np.savez(given, target=target, U=start.U, V=start.V, times=times)
        for method in ("Tsit5", "Dopri8"):
            command = [python, str(HERE / "diffrax_worker.py"), method, str(given), str(taken)]
            flags = "--xla_cpu_multi_thread_eigen=false"
            done = subprocess.run(
                [*command, str(RTOL), str(ATOL)],
                capture_output=True,
                text=True,
                env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
                check=False,
            )
            if done.returncode != 0:
                reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
                print(f"diffrax: {method} does not run with {python}; left out ({reason})")
                continue
            about = json.loads(done.stdout)
            with np.load(taken) as arrays:
                far = apart(run, arrays["U"], arrays["V"])
            print(
                f"diffrax {about['diffrax']}, jax {about['jax']}, {method}: compiled in "
                f"{about['compile']:.1f} s, {about['steps']} steps, CPU over wall time "
                f"{about['seconds'] / about['wall']:.2f}"
            )
            name = f"exact with its SVD, diffrax {method}, jit; {label}"
            rows.append(Ratio(name, ours, about["seconds"], None, far))
    return rows


def tall(quick: bool) -> list[Ratio | Bound]:
    """A target in factors with many rows: time in QRs, and the peak memory of a process."""
    size, rank = (5_000, 8) if quick else (100_000, 32)
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), str(size), str(rank)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        check=True,
    )
    about = json.loads(done.stdout)
    label = f"m = n = {size:,}, r = k = {rank}, {COUNT} times"
    return [
        Bound(f"exact, in pairs of QRs of [U₀, P] and [V₀, R]; {label}", about["exact"],
              about["qrs"], "s", 3),
        Bound(f"peak memory of the whole process; {label}", about["peak"], 1.0, "GB", 1,
              strict=True),
        Ratio(f"exact, `integrate` on the reduced problem; {label}", about["exact"],
              about["integrate"], None, about["apart"]),
    ]  # fmt: skip


def tall_child(size: int, rank: int) -> dict[str, float]:
    """What `tall` reports, measured in this process; the peak first, of the exact run alone."""
    problem, start = factored(size, rank, rank)
    times = np.linspace(0, END, COUNT)
    run = solve(problem, start, times)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNIT
    svd = problem.svd

    def exact() -> Trajectory:
        return solve(problem, start, times)

    def integrated() -> Trajectory:
        return integrate(problem, start, times, rtol=RTOL)

    def qrs() -> None:
        for basis, factor in ((svd.P, start.U), (svd.R, start.V)):
            np.linalg.qr(np.hstack([basis, factor]))

    seconds = race((exact, qrs, integrated), 3)
    far = float(np.abs(run.modes() - integrated().modes()).max())
    names = ("exact", "qrs", "integrate", "peak", "apart")
    return dict(zip(names, (*seconds, peak, far), strict=True))


def factored(size: int, rank: int, width: int) -> tuple[BilinearProblem, Factors]:
    """A target in factors, s from 1 to 0.1, and a balanced start that is in no relation to it."""
    generator = np.random.default_rng(2)
    left, right = (orthonormal(size, rank, generator) for _ in range(2))
    problem = BilinearProblem((left, np.linspace(1, 0.1, rank), right))
    return problem, balanced(problem, scale=SCALE, width=width, seed=1)


def growth(quick: bool) -> list[dict[str, Any]]:
    """CPU seconds of the exact solution, SVD known, as one number grows and the rest stays."""
    step = 8 if quick else 1
    sweeps: list[tuple[str, str, Sequence[int], Callable[[int], tuple[int, int, int, int]]]] = [
        ("m = n", "k = 32, r = 16, 100 times", [500, 2000, 8000, 32000, 128000],
         lambda x: (x, 32, 16, 100)),
        ("r", "m = n = k = 1000, 100 times", [4, 8, 16, 32, 64], lambda x: (1000, 1000, x, 100)),
        ("k", "m = n = 4000, r = 16, 100 times", [16, 64, 256, 1024, 2048],
         lambda x: (4000, x, 16, 100)),
        ("number of times", "m = n = k = 500, r = 16", [10, 30, 100, 300, 1000],
         lambda x: (500, 500, 16, x)),
    ]  # fmt: skip
    found: list[dict[str, Any]] = []
    for axis, rest, sizes, shape in sweeps:
        seconds: list[float] = []
        sizes = sorted({max(2, size // step) for size in sizes})
        for size in sizes:
            m, k, r, count = shape(size)
            problem, start = factored(m, min(k, m), min(r, m))
            times = np.linspace(0, END, count)
            solve(problem, start, times)
            seconds += race([lambda p=problem, s=start, t=times: solve(p, s, t)], 3)
        points = np.log(sizes[-3:]), np.log(seconds[-3:])
        slope = float(np.polyfit(*points, 1)[0])
        shown = "  ".join(f"{n:,}: {1e3 * s:.1f}" for n, s in zip(sizes, seconds, strict=True))
        print(f"exact against {axis} ({rest}), ms  {shown}   slope of the last three {slope:.2f}")
        about = {"axis": axis, "rest": rest, "sizes": sizes, "seconds": seconds, "slope": slope}
        found.append(about)
    return found


def plot(results: dict[str, Any], path: Path) -> None:
    """The figure, from saved results alone."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    sweeps = results["growth"]
    figure, axes = plt.subplots(
        1, len(sweeps), figsize=(13, 3.6), layout="constrained", sharey=True
    )
    for ax, sweep in zip(axes, sweeps, strict=True):
        sizes, seconds = np.array(sweep["sizes"]), 1e3 * np.array(sweep["seconds"])
        ax.loglog(sizes, seconds, marker="o", color="C0")
        fitted = np.exp(np.mean(np.log(seconds[-3:] / sizes[-3:] ** sweep["slope"])))
        line = fitted * sizes[-3:] ** sweep["slope"]
        ax.loglog(sizes[-3:], line, "--", color="C1", label=f"slope {sweep['slope']:.2f}")
        ax.set_xlabel(sweep["axis"])
        ax.set_title(sweep["rest"], fontsize=9)
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=7)
        ax.minorticks_off()
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8, loc="upper left")
    ticks = [a * 10.0**b for b in range(5) for a in (1, 2, 5)]
    every = 1e3 * np.concatenate([sweep["seconds"] for sweep in sweeps])
    axes[0].set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[0].set_ylim(0.8 * every.min(), 1.25 * every.max())
    axes[0].set_ylabel("CPU time, ms")
    title = f"the exact solution at given times, SVD known ({results['machine']})"
    figure.suptitle(title, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    print(json.dumps(tall_child(int(sys.argv[1]), int(sys.argv[2]))))

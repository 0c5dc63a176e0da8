"""M11. A narrow model from a small start finds the top modes, one by one, and stops there.

With r < rank Q*, s_r > s_{r+1}, and a generic start of size ε: modes rise one after the other, the
k-th at about t_k = ln(1/ε)/s_k (M6 with c₀ ~ ε²), and between t_k and t_{k+1} the loss rests near
Σ_{i>k} s_i²/2. The end is the best operator of rank r, with loss Σ_{i>r} s_i²/2. Other critical
points are saddles, which a generic start misses.

Measured on the integrated flow from Gaussian starts. As ε → 0 the waits t_{k+1} − t_k approach
ln(1/ε)(1/s_{k+1} − 1/s_k); at finite ε they differ by a number of order 1/s.

Source: Saxe, McClelland, Ganguli 2014 (stages); Arora et al. 2019, Li, Luo, Lyu 2021 (small
starts); the landscape in Baldi and Hornik 1989.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment
from nonmixing.verdict import Verdict, judge

SEED = 21
SEEDS = 11
S = np.array([1.0, 0.6, 0.36, 0.2, 0.1])
WIDTH = 3
EPSILON = 1e-4


def problem() -> nm.BilinearProblem:
    """A 6 × 5 target of full rank."""
    generator = np.random.default_rng(SEED)
    left = np.linalg.qr(generator.normal(size=(6, 5)))[0]
    right = np.linalg.qr(generator.normal(size=(5, 5)))[0]
    return nm.BilinearProblem((left, S, right))


def runs(scale: float, end: float, count: int) -> list[nm.Trajectory]:
    """Integrated runs from Gaussian starts."""
    posed = problem()
    starts = [nm.gaussian(posed, scale=scale, width=WIDTH, seed=SEED + k) for k in range(SEEDS)]
    times = np.linspace(0, end, count)
    return list(nm.integrate(posed, starts, times, rtol=1e-9, atol=1e-14))


def plateaus() -> np.ndarray:
    """Σ_{i>k} s_i²/2 for k = 0, ..., r."""
    return np.array([np.sum(S[k:] ** 2) / 2 for k in range(WIDTH + 1)])


def final(quick: bool) -> Verdict:
    """The loss at the end."""
    # The gap falls at least like e^{−2(s_r − s_{r+1}) t} once the last mode is there, at 1.5 t_r.
    end = float(2.5 * np.log(1 / EPSILON) / S[WIDTH - 1])
    left = float(np.exp(-(S[WIDTH - 1] - S[WIDTH]) * end * 0.4))
    ends = [run.loss()[-1] for run in runs(EPSILON, end, 2)]
    return judge(
        "simulation",
        measured=ends,
        predicted=plateaus()[-1],
        tolerance=left,
        because="what decays at s_r − s_{r+1} for the last 0.4 of the run",
        scope=f"loss at t = {end:.0f} from {SEEDS} Gaussian starts of size {EPSILON:g}",
        nulls={
            "one mode fewer": plateaus()[-2],
            "one mode more": plateaus()[-1] - S[WIDTH] ** 2 / 2,
        },
        seed=SEED,
    )


def waits(scale: float) -> np.ndarray:
    """t_{k+1} − t_k over ln(1/ε)(1/s_{k+1} − 1/s_k), (starts, r − 1): modes' half times apart."""
    log = np.log(1 / EPSILON)
    end, count = float(2.5 * log / S[WIDTH - 1]), 2001
    halves: list[np.ndarray] = []
    for run in runs(scale, end, count):
        learned = run.modes()[:, :WIDTH] > S[:WIDTH] / 2
        halves.append(run.times[np.argmax(learned, axis=0)])
    expected = log * np.diff(1 / S[:WIDTH])
    return np.diff(halves, axis=1) / expected


def staircase(quick: bool) -> Verdict:
    """Modes one after the other, with the waits that small starts give."""
    log = np.log(1 / EPSILON)
    return judge(
        "simulation",
        measured=np.median(waits(EPSILON), axis=0),
        predicted=1.0,
        tolerance=4 / log,
        because="relative order 1/ln(1/ε): overlaps of order 1 in c₀ shift t_k by order 1/s_k",
        scope=f"median waits between modes, in ln(1/ε)(1/s' − 1/s), from {SEEDS} starts of size "
        f"{EPSILON:g} (a start nearly orthogonal to a mode waits longer)",
        nulls={"starts of size 0.5": np.median(waits(0.5), axis=0)},
        seed=SEED,
        details=_curve(),
    )


def _curve() -> dict[str, Any]:
    """One run's loss, for the figure."""
    end = float(2.0 * np.log(1 / EPSILON) / S[WIDTH - 1])
    run = runs(EPSILON, end, 401)[0]
    return {"curve times": run.times, "curve": run.loss(), "plateaus": plateaus()}


def figure(entry: Mapping[str, Any], folder: Path) -> Path:
    """The staircase: loss against time, with the predicted plateaus."""
    from matplotlib.figure import Figure

    (details,) = (o["details"] for o in entry["simulation"] if o["name"] == "the staircase")
    whole = Figure(figsize=(7, 4), layout="constrained")
    axes = whole.add_subplot()
    axes.plot(details["curve times"], details["curve"], color="#1f4e79", lw=2)
    for k, level in enumerate(details["plateaus"]):
        axes.axhline(level, color="#888888", lw=0.8, ls=":")
        axes.annotate(
            f"{k} modes" if k != 1 else "1 mode",
            (0.99, level),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
            fontsize=10,
        )
    axes.set(xlabel="time", ylabel="loss", yscale="log", title="A narrow model learns mode by mode")
    for ticks in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        ticks("{x:g}")
    axes.spines[["top", "right"]].set_visible(False)
    path = folder / "M11.png"
    whole.savefig(path, dpi=120)
    return path


claim = Claim(
    id="M11",
    title="r < rank Q*: small starts find the top r modes, in order; final loss Σ_{i>r} s_i²/2",
    source="Saxe, McClelland, Ganguli 2014; Arora et al. 2019; Li, Luo, Lyu 2021",
    simulation=(
        Experiment(final, name="the final loss"),
        Experiment(staircase, name="the staircase"),
    ),
    figure=figure,
)

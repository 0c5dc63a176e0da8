"""Speed and memory of flows: closed forms, the reduced problem, batches of starts.

    python benchmarks/flows.py [--quick] [--json FILE] [--plot FILE] [--diffrax-python PATH]

prints ratios, all measured in one run on one thread: the two sides of a ratio take turns, and the
least of the runs of each counts. CPU time, so that what else the machine does counts little. Every
pair is also compared: a fast answer that differs does not count. README.md says what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from closed import full_rank, growth, plot, tall
from machine import blas, machine
from race import Bound, Ratio, race

from nonmixing.dynamics.integrate import integrate
from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.problem import BilinearProblem, Factors, gaussian

RTOL = 1e-9


def reduction(size: int, rank: int, rounds: int) -> list[Ratio]:
    """`integrate` on the space of the flow and on the whole space, m = n = size, r = k = rank."""
    rng = np.random.default_rng(0)
    P, R = (np.linalg.qr(rng.standard_normal((size, rank)))[0] for _ in range(2))
    problem = BilinearProblem((P, np.linspace(1, 0.2, rank), R))
    target = problem.svd.operator
    start = gaussian(problem, scale=0.01, width=rank, seed=0)
    times = np.linspace(0, 40, 41)

    def small() -> Trajectory:
        return integrate(problem, start, times, rtol=RTOL)

    def from_array() -> Trajectory:  # a new problem each time, so that its SVD counts
        return integrate(BilinearProblem(target), start, times, rtol=RTOL)

    def whole() -> Trajectory:
        return integrate(BilinearProblem(target), start, times, rtol=RTOL, reduce=False)

    factors, array, dense = (run().modes(problem) for run in (small, from_array, whole))
    seconds = race((small, from_array, whole), rounds)
    label = f"m = n = {size}, r = k = {rank}"
    return [
        Ratio(
            f"reduced from factors, whole; {label}",
            *(seconds[0], seconds[2], 10),
            float(np.abs(factors - dense).max()),
        ),
        Ratio(
            f"reduced with the array's SVD, whole; {label}",
            *(seconds[1], seconds[2], 1),
            float(np.abs(array - dense).max()),
        ),
    ]


def batch(m: int, n: int, r: int, count: int, rounds: int) -> Ratio:
    """A batch of starts and a loop over them."""
    problem = BilinearProblem(np.random.default_rng(1).standard_normal((m, n)) / np.sqrt(m + n))
    starts: list[Factors] = [
        gaussian(problem, scale=0.1, width=r, seed=seed) for seed in range(count)
    ]
    times = np.linspace(0, 20, 41)

    def together() -> tuple[Trajectory, ...]:
        return integrate(problem, starts, times, rtol=RTOL)

    def one_by_one() -> tuple[Trajectory, ...]:
        return tuple(integrate(problem, start, times, rtol=RTOL) for start in starts)

    seconds = race((together, one_by_one), rounds)
    pairs = zip(together(), one_by_one(), strict=True)
    apart = max(float(np.abs(a.modes() - b.modes()).max()) for a, b in pairs)
    name = f"batch of {count}, loop; {m} x {n}, r = {r}"
    return Ratio(name, seconds[0], seconds[1], 4, apart)


PARTS: Mapping[str, Callable[[argparse.Namespace], Sequence[Ratio | Bound]]] = {
    # First, as a process begins with the peak of the one that it was forked from.
    "tall": lambda options: tall(options.quick),
    "full rank": lambda options: full_rank(options.quick, options.diffrax_python),
    "reduction": lambda options: reduction(
        200 if options.quick else 500, 8, 1 if options.quick else 3
    ),
    "batch": lambda options: [
        batch(6, 6, 4, 32 if options.quick else 256, 1),
        batch(12, 10, 4, 32 if options.quick else 256, 1),
    ],
}
"""What is measured, but for the growth."""


def on_one_thread() -> None:
    """Begin again with one thread for all of BLAS, which reads its settings when it is loaded.

    Its kernel is the one it takes by itself on this processor: both settings that name another go.
    """
    pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    forced = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
    if any(os.environ.get(pool) != "1" for pool in pools) or set(forced) & set(os.environ):
        kept = {name: value for name, value in os.environ.items() if name not in forced}
        settings = {**kept, **dict.fromkeys(pools, "1")}
        os.execve(sys.executable, [sys.executable, *sys.argv], settings)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="small sizes; the ratios mean little")
    parser.add_argument("--parts", nargs="+", choices=[*PARTS, "growth"], help="only these")
    parser.add_argument("--json", type=Path, default=Path("out/benchmarks/flows.json"))
    parser.add_argument("--plot", type=Path, default=Path("out/benchmarks/flows.png"))
    parser.add_argument("--only-plot", action="store_true", help="draw from the JSON that is there")
    parser.add_argument(
        "--diffrax-python",
        default="",
        help="interpreter of an environment with diffrax (see README.md)",
    )
    return parser.parse_args()


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All the rows, printed as they come."""
    parts = options.parts or [*PARTS, "growth"]
    found: list[dict[str, Any]] = []
    for name, part in PARTS.items():
        if name in parts:
            for row in part(options):
                print(row.line(options.quick), flush=True)
                found.append({**asdict(row), "ratio": row.ratio})
    results: dict[str, Any] = {"machine": machine(), "blas": blas(), "ratios": found}
    return {**results, "growth": growth(options.quick) if "growth" in parts else []}


def main() -> None:
    """Print the table, write the JSON, draw the figure from it."""
    options = arguments()
    if not options.only_plot:
        print(f"{machine()}\n{blas()}")
        results = measure(options)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    saved = json.loads(options.json.read_text())
    if saved["growth"]:
        plot(saved, options.plot)


if __name__ == "__main__":
    on_one_thread()
    main()

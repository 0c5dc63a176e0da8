"""Flows: the reduced problem beside the whole one, a batch of starts beside a loop over them.

    python benchmarks/flows.py [--quick] [--json FILE]

prints ratios, all measured in one run on one thread: the two sides of a ratio take turns, and the
least of the runs of each counts. CPU time, so that what else the machine does counts little. Every
pair is also compared: a fast answer that differs does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from machine import machine

from nonmixing.dynamics.integrate import integrate
from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.problem import BilinearProblem, Factors, gaussian

RTOL = 1e-9
SAME = 1e-6
"""How far two runs at rtol 1e-9 may be apart: a hundred steps, errors grown tenfold."""


@dataclass(frozen=True)
class Ratio:
    """Two ways to one result.

    Attributes:
        name: What is compared.
        fast: Seconds of the way under test.
        slow: Seconds of the other.
        wanted: The ratio that is the aim.
        apart: The largest difference between the results.
    """

    name: str
    fast: float
    slow: float
    wanted: float
    apart: float

    @property
    def ratio(self) -> float:
        """How many times faster."""
        return self.slow / self.fast

    def line(self, quick: bool) -> str:
        """One line of the table."""
        verdict = "reached" if self.ratio >= self.wanted and self.apart <= SAME else "missed"
        verdict = "at full size" if quick else verdict
        return (
            f"{self.name:58s} {self.fast * 1e3:9.1f} ms {self.slow * 1e3:9.1f} ms "
            f"{self.ratio:7.1f}x  (at least {self.wanted:g}x: {verdict})  apart {self.apart:.0e}"
        )


def race(ways: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The least CPU time of each way; they take turns."""
    best = [float("inf")] * len(ways)
    for _ in range(rounds):
        for place, way in enumerate(ways):
            begun = time.process_time()
            way()
            best[place] = min(best[place], time.process_time() - begun)
    return best


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


PARTS: Mapping[str, Callable[[bool], list[Ratio]]] = {
    "reduction": lambda quick: reduction(200 if quick else 500, 8, 1 if quick else 3),
    "batch": lambda quick: [
        batch(6, 6, 4, 32 if quick else 256, 1),
        batch(12, 10, 4, 32 if quick else 256, 1),
    ],
}
"""What is measured. The closed forms beside SciPy and the 100,000 rows are to stand here too."""


def on_one_thread() -> None:
    """Begin again with one thread for all of BLAS, which reads its settings when it is loaded."""
    pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    if any(os.environ.get(pool) != "1" for pool in pools):
        settings = {**os.environ, **dict.fromkeys(pools, "1")}
        os.execve(sys.executable, [sys.executable, *sys.argv], settings)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="small sizes; the ratios mean little")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    arguments = parser.parse_args()
    print(machine())
    found: list[Ratio] = []
    for part in PARTS.values():
        for ratio in part(arguments.quick):
            print(ratio.line(arguments.quick), flush=True)
            found.append(ratio)
    if arguments.json:
        rows = [{**asdict(ratio), "ratio": ratio.ratio} for ratio in found]
        arguments.json.write_text(json.dumps({"machine": machine(), "ratios": rows}, indent=1))


if __name__ == "__main__":
    on_one_thread()
    main()

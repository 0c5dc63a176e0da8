"""Ways to one result, timed in one run on one thread, and the rows that come of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SAME = 1e-6
"""How far two runs at rtol 1e-9 may be apart: a hundred steps, errors grown tenfold."""


@dataclass(frozen=True)
class Ratio:
    """Two ways to one result.

    Attributes:
        name: What is compared.
        fast: Seconds of the way under test.
        slow: Seconds of the other.
        wanted: The ratio that is the aim; None where it is only reported.
        apart: The largest difference between the results.
    """

    name: str
    fast: float
    slow: float
    wanted: float | None
    apart: float

    @property
    def ratio(self) -> float:
        """How many times faster."""
        return self.slow / self.fast

    def line(self, quick: bool) -> str:
        """One line of the table."""
        reached = self.wanted is None or self.ratio >= self.wanted
        aim = (
            "" if self.wanted is None else f"  (at least {self.wanted:g}x: {said(reached, quick)})"
        )
        same = "" if self.apart <= SAME else " DIFFERENT"
        return (
            f"{self.name:64s} {self.fast * 1e3:9.1f} ms {self.slow * 1e3:9.1f} ms "
            f"{self.ratio:7.1f}x{aim}  apart {self.apart:.0e}{same}"
        )


@dataclass(frozen=True)
class Bound:
    """What something costs in units of what it needs in any case, or against a fixed limit.

    Attributes:
        name: What is measured.
        cost: What it costs.
        unit: What it is compared with.
        measure: "s" or "GB".
        wanted: The largest multiple that is the aim.
        strict: Whether the multiple must be below it, and not at it.
    """

    name: str
    cost: float
    unit: float
    measure: str
    wanted: float
    strict: bool = False

    @property
    def ratio(self) -> float:
        """The multiple."""
        return self.cost / self.unit

    def line(self, quick: bool) -> str:
        """One line of the table."""
        reached = self.ratio < self.wanted if self.strict else self.ratio <= self.wanted
        scale, unit = (1e3, "ms") if self.measure == "s" else (1.0, self.measure)
        aim = "below" if self.strict else "at most"
        return (
            f"{self.name:64s} {self.cost * scale:9.2f} {unit} {self.unit * scale:9.2f} {unit} "
            f"{self.ratio:7.2f}   ({aim} {self.wanted:g}: {said(reached, quick)})"
        )


def said(reached: bool, quick: bool) -> str:
    """The verdict, which small sizes do not give."""
    if quick:
        return "at full size"
    return "reached" if reached else "missed"


def race(ways: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The least CPU time of each way; they take turns."""
    best = [float("inf")] * len(ways)
    for _ in range(rounds):
        for place, way in enumerate(ways):
            begun = time.process_time()
            way()
            best[place] = min(best[place], time.process_time() - begun)
    return best

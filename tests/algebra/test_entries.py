"""Differences as polynomials in entries: the smallest sizes, few entries, small integers."""

from __future__ import annotations

from typing import Any

import pytest
from algebra.declare import judged, statement

from nonmixing.algebra import Disagreement, decide
from nonmixing.algebra.entries import Differences, _nonzero

SMALLEST: list[tuple[str, dict[str, int], dict[str, Any]]] = [
    ("A == 2 * A", {"m": 1, "n": 1}, {"A": ((1,),)}),
    ("X @ Y == Y @ X", {"n": 2}, {}),
    ("tr(X @ Y @ Z) == tr(X @ Z @ Y)", {"n": 2}, {}),
    ("X * X == X", {"n": 1}, {"X": ((-1,),)}),
    ("X * X * X == X", {"n": 1}, {"X": ((2,),)}),
    ("X * X * X * X * X == 5 * X * X * X - 4 * X", {"n": 1}, {"X": ((3,),)}),
    ("K == 0", {"n": 2}, {"K": ((0, 1), (-1, 0))}),
    ("S == diagpart(S)", {"n": 2}, {"S": ((0, 1), (1, 0))}),
    ("1 == 0", {}, {}),
    ("n * X == X", {"n": 2}, {}),
    ("tr(X) * eye(n) == X", {"n": 2}, {}),
]


@pytest.mark.parametrize(("says", "dims", "values"), SMALLEST)
def test_counterexamples_are_the_smallest(
    says: str, dims: dict[str, int], values: dict[str, Any]
) -> None:
    found = judged(says).counterexample
    assert found is not None
    assert found.dims == dims
    assert {name: found.values[name] for name in values} == values


@pytest.mark.parametrize("says", [says for says, _, _ in SMALLEST])
def test_they_use_few_entries(says: str) -> None:
    """No more of them are not 0 than the smallest term has; `judged` replays them elsewhere."""
    found = judged(says).counterexample
    assert found is not None
    matrices = [value for value in found.values.values() if isinstance(value, tuple)]
    assert sum(x != 0 for rows in matrices for row in rows for x in row) <= 4


def test_a_difference_that_evaluates_to_nothing_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search trusts the index form, the evaluator does not."""
    claim = statement("X @ Y == Y @ X")
    real = Differences.separating

    def zero(self: Differences, names: Any, sizes: Any, tick: Any) -> Any:
        found = real(self, names, sizes, tick)
        return found and {name: ((0,) * 2,) * 2 for name in found}

    monkeypatch.setattr(Differences, "separating", zero)
    with pytest.raises(Disagreement):
        decide(claim)


def test_one_entry_after_the_other_finds_a_value() -> None:
    """(x - 1)(x + 1)(x - 2)(y - 1) vanishes at the first values that are tried."""
    x, y = ("x", 0, 0), ("y", 0, 0)
    poly: dict[Any, Any] = {}
    for power, factor in ((3, 1), (2, -2), (1, -1), (0, 2)):
        poly[(x,) * power + (y,)] = factor
        poly[(x,) * power] = -factor
    chosen = _nonzero(poly)
    a, b = chosen[x], chosen[y]
    assert (a - 1) * (a + 1) * (a - 2) * (b - 1) != 0
    assert (abs(a), abs(b)) <= (2, 2)

"""Counterexamples: exact, of the declared kinds, small, and found where they must exist."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
from algebra.declare import judged, statement
from algebra.oracle import array, is_of_kind

from nonmixing.algebra.refute import sizes
from nonmixing.algebra.ring import Undefined
from nonmixing.algebra.sampling import feasible, sample
from nonmixing.algebra.setting import Names, names_of
from nonmixing.errors import InputError

KINDS = ["diagonal", "symmetric", "skew", "orthogonal", "invertible"]
PAIRS = [
    *(["symmetric", other] for other in ("orthogonal", "invertible", "diagonal")),
    *(["diagonal", other] for other in ("orthogonal", "invertible")),
    *(["skew", other] for other in ("orthogonal", "invertible")),
    ["orthogonal", "invertible"],
    ["symmetric", "diagonal", "invertible"],
]


@pytest.mark.parametrize("kinds", [*([k] for k in KINDS), *PAIRS], ids=" ".join)
@pytest.mark.parametrize("bound", [1, 3])
@pytest.mark.parametrize("prime", [None, 2**61 - 1])
def test_samples_are_of_their_kinds(kinds: list[str], bound: int, prime: int | None) -> None:
    claim = statement("X == Y", kinds={"X": kinds})
    names = names_of(claim)
    rng = random.Random(0)
    drawn = 0
    for n in (1, 2, 3, 4):
        if not feasible(claim.setting, names, {"n": n}):
            continue
        for _ in range(5):
            try:
                value = sample(claim, names, {"n": n}, rng, bound, prime)["X"]
            except Undefined:
                continue
            drawn += 1
            for kind in kinds:
                if prime is None:
                    assert is_of_kind(array(value), kind)
                else:
                    assert is_of_kind_modulo(value, kind, prime)
    assert drawn >= 8


def is_of_kind_modulo(value: Any, kind: str, prime: int) -> bool:
    a = array(value)
    n = a.shape[0]
    one = [[int(i == j) for j in range(n)] for i in range(n)]
    match kind:
        case "orthogonal":
            return ((a.T @ a - array(one)) % prime == 0).all()
        case "symmetric":
            return ((a - a.T) % prime == 0).all()
        case "skew":
            return ((a + a.T) % prime == 0).all()
        case "diagonal":
            return all(a[i, j] % prime == 0 for i in range(n) for j in range(n) if i != j)
        case _:
            return True


@pytest.mark.parametrize(("rows", "cols"), [(3, 2), (2, 2), (4, 1)])
def test_samples_with_orthonormal_columns(rows: int, cols: int) -> None:
    claim = statement("U == P", kinds={"P": "orthonormal"})
    names = names_of(claim)
    dims = {"m": rows, "r": cols}
    assert feasible(claim.setting, names, dims)
    assert not feasible(claim.setting, names, {"m": 1, "r": 2})
    for bound in (1, 2, 5):
        value = sample(claim, names, dims, random.Random(bound), bound, None)["P"]
        assert is_of_kind(array(value), "orthonormal")


def test_sizes_grow() -> None:
    names = Names((), (), ("m", "n"), ())
    order = [tuple(s.values()) for s in sizes(names, 3)]
    assert order[0] == (1, 1)
    assert len(set(order)) == len(order) == 9
    assert [max(s) for s in order] == sorted(max(s) for s in order)


SEPARATED = [
    ("X @ Y == Y @ X", {"n": 2}),
    ("X @ (Y @ Z - Z @ Y) == (Y @ Z - Z @ Y) @ X", {"n": 2}),
    ("tr(X @ X.T @ X @ X.T) == norm2(X) ** 2", {"n": 2}),
    ("tr(X) ** 2 == tr(X @ X) * n", {"n": 2}),
    ("A * A == A", {"m": 1, "n": 1}),
    ("a * b == a + b", {}),
    ("a ** 2 == a", {}),
    ("a ** 3 == a", {}),
    ("a ** 5 + 4 * a == 5 * a ** 3", {}),  # holds for |a| <= 2
    ("X ** 3 == X", {"n": 1}),
    ("O @ O @ O == O", {"n": 2}),
    ("sum(O ** 4) == n", {"n": 2}),
    ("O ** 3 == O", {"n": 2}),  # holds for signed permutations
    ("tr(K @ K @ J @ J) == tr(K @ J @ K @ J)", {"n": 3}),
    ("(S @ T - T @ S) @ (S @ T - T @ S) == 0", {"n": 2}),
    ("P @ P.T == eye(m)", {"m": 2, "r": 1}),
    ("inv(G) == G", {"n": 1}),
    ("inv(G) @ inv(G) == eye(n)", {"n": 1}),
    ("x.T @ X @ x == sum(x * x * (diagpart(X) @ ones(n, 1)))", {"n": 2}),
    ("X / n == X / n ** 2", {"n": 2}),
]


@pytest.mark.parametrize(("says", "dims"), SEPARATED)
def test_smallest_sizes(says: str, dims: dict[str, int]) -> None:
    decision = judged(says)
    assert decision.counterexample is not None
    assert dict(decision.counterexample.dims) == dims


def test_rational_where_a_kind_forces_it() -> None:
    decision = judged("O ** 3 == O")
    assert decision.counterexample is not None
    entries = [x for row in decision.counterexample.values["O"] for x in row]  # type: ignore[union-attr]
    assert any(isinstance(x, Fraction) for x in entries)


def test_integers_are_integers() -> None:
    decision = judged("inv(2 * G) == inv(G)")
    found = decision.counterexample
    assert found is not None
    for rows in (found.left, found.right):
        for row in rows:
            for x in row:
                assert isinstance(x, int) or x.denominator > 1


def test_hypotheses_hold_in_the_counterexample() -> None:
    for says, assume in (
        ("U == 0", ["U.T @ U == V.T @ V"]),
        ("P @ P.T @ U == U", ["P.T @ P == eye(r)"]),
        ("X == Y", ["X @ Y == Y @ X", "X @ X == X"]),
        ("tr(X @ Y) == 0", ["X == Y.T"]),
        ("X @ X == eye(n)", ["X @ X @ X == eye(n)"]),
    ):
        decision = judged(says, assume=assume, kinds={"U": [], "V": [], "P": []})
        assert decision.verdict == "refuted"  # the oracle has checked the hypotheses


@pytest.mark.parametrize("kinds", [["symmetric", "skew"], ["diagonal", "skew"]])
def test_kinds_that_only_0_has_are_refused(kinds: list[str]) -> None:
    with pytest.raises(InputError, match="only the zero matrix is both"):
        judged("X == 0", kinds={"X": kinds})

"""The fast route gives the index form that the long route gives, and says so where it cannot."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from algebra.declare import statement, verdict

from nonmixing.algebra import Disagreement, decide
from nonmixing.algebra import words as module
from nonmixing.algebra.decide import _cells
from nonmixing.algebra.expand import Expander
from nonmixing.algebra.kinds import Kinds
from nonmixing.algebra.setting import Statement
from nonmixing.algebra.terms import Poly, Table
from nonmixing.algebra.words import Unsuited, Words

SAYS = [
    "d(U @ V.T) == -E @ V @ V.T - U @ U.T @ E",
    "d(U.T @ U - V.T @ V) == 0",
    "grad(norm2(E) / 2, U) == E @ V",
    "grad(tr(S @ X @ S), S) == X.T @ S + S @ X.T",
    "grad(x.T @ X @ x, x) == X @ x + X.T @ x",
    "grad(tr(inv(G) @ X), G) == -(inv(G) @ X @ inv(G)).T",
    "D(inv(G) @ X, G, Y) == -inv(G) @ Y @ inv(G) @ X",
    "D(tr(X @ X) ** 3, X, Y) == 6 * tr(X @ X) ** 2 * tr(X @ Y)",
    "after(U @ V.T) == U @ V.T",
    "after(tr(U.T @ U)) == tr(U.T @ U)",
    "(x @ y.T) @ (y @ x.T) == norm2(y) * (x @ x.T)",
    "x @ (y.T @ y) @ x.T == norm2(y) * x @ x.T",
    "tr(x @ y.T) == tr(y @ x.T)",
    "tr(K @ X) == -tr(K @ X.T)",
    "tr(K) == 0",
    "tr(K @ S) == 0",
    "inv(O) @ X == O.T @ X",
    "S @ X == (X.T @ S).T",
    "tr(eye(n)) * X == n * X",
    "X / (1 + a) + a * X / (1 + a) == X",
    "grad(a ** 2 * norm2(X), a) == 2 * a * norm2(X)",
    "D(1 / (1 + a), a, b) == -b / (1 + a) ** 2",
    "(X * Y) @ Z == (X * Y) @ Z",
    "norm2(2 * X) == 4 * norm2(X)",
]
DECLARED: dict[str, Any] = {
    "matrices": {"U": ("m", "r"), "V": ("n", "r"), "T": ("m", "n")},
    "define": {"E": "U @ V.T - T"},
}
FLOW = """[flow]
loss = "norm2(E) / 2"
variables = ["U", "V"]
"""
STEP = """[step.update]
U = "U - a * E @ V"
V = "V - a * E.T @ U"
"""


def claim(says: str) -> Statement:
    if not set("UVE") & set(says):
        return statement(says)
    moving = FLOW if " d(" in f" {says}" else STEP if "after" in says else ""
    return statement(says, more=moving, **DECLARED)


def both(claimed: Statement) -> tuple[Poly, Poly] | None:
    """The difference by words and by indices, under the kinds; None where words do not do."""
    table = Table()
    kinds = Kinds(claimed.setting, table)
    expander = Expander(claimed.setting, table)
    words = Words(claimed.setting)
    short: Poly = {}
    long: Poly = {}
    for place, (r, c) in enumerate(_cells(expander, claimed.shape)):
        assert place == 0, "words have one cell"
        try:
            short = words.gap(claimed.left, claimed.right, r, c, table)
        except Unsuited:
            return None
        long = dict(expander.entry(claimed.left, r, c))
        table.add_to(long, expander.entry(claimed.right, r, c), -1)
    return (
        table.clear_denominators(table.settle(kinds.impose(short))),
        table.clear_denominators(table.settle(kinds.impose(long))),
    )


@pytest.mark.parametrize("says", SAYS)
def test_words_and_indices_agree(says: str) -> None:
    found = both(claim(says))
    assert found is not None
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "says", ["inner(X, Y * Z) == inner(Y, X * Z)", "(X * Y) @ Z == (Y * X) @ Z"]
)
def test_what_is_left_over_of_other_operations_says_nothing(says: str) -> None:
    assert both(claim(says)) is None
    assert verdict(says) == "proved"


Pair = tuple[str, str]
ATOMS: dict[Pair, list[str]] = {
    ("m", "n"): ["A", "B"],
    ("n", "n"): ["X", "Y", "S", "K", "G", "O", "L", "eye(n)", "inv(G)", "inv(O)"],
    ("n", "1"): ["x", "y"],
    ("m", "1"): ["u"],
}


class Drawn:
    """Draws expressions that are made of words."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def matrix(self, rows: str, cols: str, degree: int) -> str:
        if (rows, cols) == ("1", "1"):
            return self.scalar(degree)
        roll = self.rng.random()
        if degree > 1 and roll < 0.6:
            inner = self.rng.choice(["m", "n", "n", "1"])
            cut = self.rng.randint(1, degree - 1)
            return f"({self.matrix(rows, inner, cut)} @ {self.matrix(inner, cols, degree - cut)})"
        if degree > 1 and roll < 0.75:
            sign = self.rng.choice("+-")
            return (
                f"({self.matrix(rows, cols, degree)} {sign} {self.matrix(rows, cols, degree - 1)})"
            )
        if degree > 1 and roll < 0.85:
            cut = self.rng.randint(1, degree - 1)
            return f"({self.scalar(cut)} * {self.matrix(rows, cols, degree - cut)})"
        if degree > 2 and roll < 0.93:
            if (rows, cols) == ("n", "n"):
                return f"grad({self.scalar(degree)}, {self.rng.choice('XYSG')})"
            moving = self.rng.choice("XY")
            return f"D({self.matrix(rows, cols, degree)}, {moving}, {self.matrix('n', 'n', 1)})"
        own = ATOMS.get((rows, cols), [])
        turned = [f"{atom}.T" for atom in ATOMS.get((cols, rows), []) if atom != "eye(n)"]
        if not own + turned:
            return f"({self.matrix(rows, 'n', 1)} @ {self.matrix('n', cols, 1)})"
        return self.rng.choice(own + turned)

    def scalar(self, degree: int) -> str:
        roll = self.rng.random()
        if degree <= 1 and roll < 0.5:
            return self.rng.choice(["a", "b", "2", "n", "1 / a"])
        if roll < 0.4:
            dim = self.rng.choice("mn")
            return f"tr({self.matrix(dim, dim, degree)})"
        if roll < 0.6:
            cut = max(1, degree // 2)
            return f"({self.matrix('1', 'n', cut)} @ {self.matrix('n', '1', cut)})"
        if roll < 0.8:
            return f"inner({self.matrix('m', 'n', 1)}, {self.matrix('m', 'n', max(1, degree - 1))})"
        return f"norm2({self.matrix('n', 'n', max(1, degree // 2))})"


@pytest.mark.parametrize("part", range(4))
def test_random_claims_by_both_routes(part: int) -> None:
    """Random words on both sides, and a side against itself transposed twice."""
    rng = random.Random(f"words {part}")
    drawn = Drawn(rng)
    different = equal = 0
    for number in range(50):
        shape = rng.choice([("m", "n"), ("n", "n"), ("1", "1"), ("n", "1")])
        left = drawn.matrix(*shape, 2 + number % 5)
        right = f"2 * ({left}) - ({left}).T.T" if number % 5 == 0 else drawn.matrix(*shape, 3)
        found = both(statement(f"{left} == {right}"))
        assert found is not None, left
        assert found[0] == found[1], f"{left} == {right}"
        different += bool(found[0])
        equal += not found[0]
    assert different >= 20
    assert equal >= 5


def _patched(name: str, wrong: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(module, name, wrong)


def lose_a_factor(patch: pytest.MonkeyPatch) -> None:
    real = Words._slope

    def slope(self: Words, number: int, variable: Any) -> Any:
        return dict(list(real(self, number, variable).items())[:1])

    patch.setattr(Words, "_slope", slope)


def forget_the_split(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Words, "_split", lambda self, scalars, word: (scalars, tuple(sorted(word))))


def wrong_inverse(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Words, "_inverse", lambda self, inside: self.form(inside))


SABOTAGE: list[tuple[Callable[[pytest.MonkeyPatch], None], str]] = [
    (_patched("_backwards", lambda word: word[::-1]), "X.T == X"),
    (_patched("_backwards", lambda word: tuple(x ^ 1 for x in word)), "(X @ Y).T == X.T @ Y.T"),
    (_patched("_least_cycle", lambda word: tuple(sorted(word))), "tr(X @ Y @ Z) == tr(X @ Z @ Y)"),
    (_patched("_constant", lambda expr: module.ONE), "2 * X == X"),
    (lose_a_factor, "grad(tr(X @ X @ Y), X) == Y.T @ X.T"),
    (forget_the_split, "x @ y.T == y @ x.T"),
    (wrong_inverse, "inv(G) @ X == G @ X"),
]


@pytest.mark.parametrize(("sabotage", "says"), SABOTAGE)
def test_the_second_opinion_notices_a_wrong_word(
    sabotage: Callable[[pytest.MonkeyPatch], None], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No counterexample search hides it: what words call equal is evaluated."""
    assert verdict(says) == "refuted"
    claimed = statement(says)
    sabotage(monkeypatch)
    with pytest.raises(Disagreement):
        decide(claimed, timeout=10)


@pytest.mark.parametrize(
    "says",
    [
        "inv(X + Y) * A == inv(X + Y) * A",  # hidden in a letter, it would not be refused
        "(1 / (a - a)) * X == (1 / (a - a)) * X",
    ],
)
def test_what_has_no_meaning_is_no_letter(says: str) -> None:
    from nonmixing.errors import InputError

    with pytest.raises(InputError):
        decide(statement(says))

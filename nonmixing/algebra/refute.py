"""Counterexamples: smallest dimensions first, then small integers, exact, then shrunk."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from nonmixing.algebra import expr as ex
from nonmixing.algebra.entries import Differences, TooMany
from nonmixing.algebra.evaluate import Evaluator
from nonmixing.algebra.node import Expr
from nonmixing.algebra.ring import PRIME, Number, Ring, Rows, Undefined
from nonmixing.algebra.sampling import feasible, sample
from nonmixing.algebra.setting import Equation, Names, Statement
from nonmixing.algebra.terms import exact
from nonmixing.errors import Disagreement

Tick = Callable[[], None]

BOUNDS = (1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 6, 9, 20, 100)
"""Sizes of the entries tried, in order."""
DRAWS = 12
"""Draws at each size of the entries."""
SHRINK_PASSES = 6
RIGID_DRAWS = 8
"""Draws of orthogonal matrices, whose signs are drawn too."""


@dataclass(frozen=True)
class Counterexample:
    """Sizes and values at which the two sides differ, in exact arithmetic.

    Attributes:
        dims: size of every symbolic dimension.
        values: matrices as rows; scalars as bare numbers; opaque functions as polynomials in z.
        left: value of the left side, as rows.
        right: value of the right side, as rows.
    """

    dims: Mapping[str, int]
    values: Mapping[str, Rows | Number | str]
    left: Rows
    right: Rows


def sizes(names: Names, largest: int) -> Iterator[dict[str, int]]:
    """Sizes of the symbolic dimensions, by their maximum, then their sum."""
    for top in range(1, largest + 1):
        choices = [
            c
            for c in itertools.product(range(1, top + 1), repeat=len(names.dims))
            if max(c, default=1) == top
        ]
        for choice in sorted(choices, key=lambda c: (sum(c), c)):
            yield dict(zip(names.dims, choice, strict=True))
        if not names.dims:
            return


def both_sides(
    statement: Statement, dims: Mapping[str, int], values: Mapping[str, Rows], prime: int | None
) -> tuple[Rows, Rows]:
    """Both sides of a statement by exact evaluation."""
    evaluator = Evaluator(statement.setting, dims, values, prime)
    return sides(evaluator, statement.left, statement.right)


def sides(evaluator: Evaluator, left: Expr, right: Expr) -> tuple[Rows, Rows]:
    """Both sides of an equation; a literal 0 takes the other side's shape."""
    one, other = evaluator.at(left), evaluator.at(right)
    if ex.is_zero_literal(left):
        one = tuple((0,) * len(row) for row in other)
    if ex.is_zero_literal(right):
        other = tuple((0,) * len(row) for row in one)
    return one, other


def holds(
    statement: Statement, equation: Equation, dims: Mapping[str, int], values: Mapping[str, Rows]
) -> bool:
    """Whether a hypothesis is satisfied exactly."""
    evaluator = Evaluator(statement.setting, dims, values)
    one, other = sides(evaluator, equation.left, equation.right)
    return one == other


def probably_equal(
    statement: Statement, names: Names, dims: Mapping[str, int], rng: random.Random, draws: int = 1
) -> bool:
    """Whether the sides agree at random matrices modulo a prime near 2^61.

    Wrong with probability ~ degree / 2^61.
    """
    rigid = {"orthonormal", "orthogonal"}
    if any(statement.setting.kinds_of(name) & rigid for name in names.matrices):
        draws *= RIGID_DRAWS  # these have several components, and a draw meets only one
    for _ in range(draws):
        values = _draw(statement, names, dims, rng, 1, PRIME)
        if values is None:
            continue
        try:
            left, right = both_sides(statement, dims, values, PRIME)
        except Undefined:
            continue
        if left != right:
            return False
    return True


def _draw(
    statement: Statement,
    names: Names,
    dims: Mapping[str, int],
    rng: random.Random,
    bound: int,
    prime: int | None,
) -> dict[str, Rows] | None:
    for _ in range(5):
        try:
            return sample(statement, names, dims, rng, bound, prime)
        except Undefined:
            continue
    return None


def find_counterexample(
    statement: Statement,
    names: Names,
    largest: int,
    tick: Tick,
    differences: Differences | None = None,
) -> Counterexample | None:
    """The smallest counterexample the search meets; None if it meets none.

    Args:
        statement: what to refute.
        names: its names.
        largest: largest size of a symbolic dimension to try.
        tick: called often; raises when time is up.
        differences: what the sides differ by, where that is known and settles the matter.

    Raises:
        Disagreement: the sides are equal where the differences are not 0.
    """
    rng = random.Random(0)  # so that the same claim gives the same counterexample
    for dims in sizes(names, largest):
        tick()
        if not feasible(statement.setting, names, dims):
            continue
        if differences is not None:
            try:
                found = differences.separating(names, dims, tick)
            except TooMany:
                pass
            else:
                if found is None:
                    continue
                shown = _finish(statement, dims, found)
                if shown is not None:
                    return shown
                if _too_long(statement, dims, found):
                    continue
                raise Disagreement(
                    f"claim {statement.id!r}: refuted, but the sides agree at {dims}; "
                    "please report this"
                )
        if not statement.assume and probably_equal(statement, names, dims, rng):
            continue
        found = _small(statement, names, dims, rng, tick)
        if found is not None:
            exact_one = _finish(statement, dims, _shrink(statement, names, dims, found, tick))
            if exact_one is not None:
                return exact_one
    return None


def _small(
    statement: Statement, names: Names, dims: Mapping[str, int], rng: random.Random, tick: Tick
) -> dict[str, Rows] | None:
    """Small integers that separate the sides at given sizes."""
    draws = DRAWS * 6 if statement.assume else DRAWS
    for bound in BOUNDS:
        for _ in range(draws):
            tick()
            values = _draw(statement, names, dims, rng, bound, None)
            if values is not None and _separates(statement, names, dims, values):
                return values
    return None


def _separates(
    statement: Statement, names: Names, dims: Mapping[str, int], values: Mapping[str, Rows]
) -> bool:
    """Whether the hypotheses hold and the sides differ, modulo a prime.

    Sides that differ modulo a prime differ; the hypotheses are checked exactly at the end. No
    divisor may vanish, not even where a derivative has lost what it divides.
    """
    evaluator = Evaluator(statement.setting, dims, values, PRIME)
    try:
        if any(evaluator.at(divisor) == ((0,),) for divisor in names.divisors):
            return False
        for equation in statement.assume:
            one, other = sides(evaluator, equation.left, equation.right)
            if one != other:
                return False
        left, right = sides(evaluator, statement.left, statement.right)
    except Undefined:
        return False
    return left != right


def _shrink(
    statement: Statement, names: Names, dims: Mapping[str, int], values: dict[str, Rows], tick: Tick
) -> dict[str, Rows]:
    """Make entries smaller, one after the other, as long as the sides still differ."""
    for name in names.matrices:
        if not statement.setting.kinds_of(name) & {"orthonormal", "orthogonal", "invertible"}:
            nought = {**values, name: tuple((0,) * len(row) for row in values[name])}
            if _separates(statement, names, dims, nought):
                values = nought
    for _ in range(SHRINK_PASSES):
        changed = False
        for name in (*names.scalars, *names.matrices, *names.functions):
            kinds = statement.setting.kinds_of(name)
            if kinds & {"orthonormal", "orthogonal"}:
                continue
            rows = range(len(values[name]))
            # Of a function's polynomial the high powers go first.
            for i in reversed(rows) if name in names.functions else rows:
                for j in range(len(values[name][i])):
                    for smaller in _smaller(values[name][i][j]):
                        tick()
                        tried = _with_entry(values, name, i, j, smaller, kinds)
                        if tried is not None and _separates(statement, names, dims, tried):
                            values, changed = tried, True
                            break
        if not changed:
            break
    return values


def _smaller(x: Number) -> list[int]:
    """Simpler values of an entry, simplest first."""
    options = (
        [0, 1, -1]
        if isinstance(x, Fraction) or abs(x) > 1
        else [0, 1]
        if x == -1
        else [0]
        if x == 1
        else []
    )
    if isinstance(x, int) and abs(x) > 2:
        options += [2, -2, x - 1 if x > 0 else x + 1]
    return options


def _with_entry(
    values: dict[str, Rows], name: str, i: int, j: int, x: int, kinds: frozenset[str]
) -> dict[str, Rows] | None:
    """The values with one entry changed, its mirror image too where the kind asks for that."""
    rows: list[list[Number]] = [list(row) for row in values[name]]
    if (i != j and "diagonal" in kinds) or (i == j and "skew" in kinds):
        return None
    rows[i][j] = x
    if i != j and "symmetric" in kinds:
        rows[j][i] = x
    if i != j and "skew" in kinds:
        rows[j][i] = -x
    changed = tuple(map(tuple, rows))
    if "invertible" in kinds:
        try:
            Ring().inverse(changed)
        except Undefined:
            return None
    return {**values, name: changed}


def _finish(
    statement: Statement, dims: Mapping[str, int], values: Mapping[str, Rows]
) -> Counterexample | None:
    """The counterexample with its sides in exact arithmetic; None if a hypothesis fails there."""
    left, right = both_sides(statement, dims, values, None)
    if _long(left) or _long(right):
        return None
    if left == right or not all(holds(statement, e, dims, values) for e in statement.assume):
        return None
    setting = statement.setting
    used = statement.left.names | statement.right.names
    shown: dict[str, Rows | Number | str] = {}
    for name, value in values.items():
        if not used & {name, ex.EVERYTHING} and not statement.assume:
            continue  # averaged over: it has no value
        if name in setting.scalars:
            shown[name] = value[0][0]
        elif name in setting.matrices:
            shown[name] = value
        else:
            shown[name] = _polynomial([row[0] for row in value])
    return Counterexample(dict(dims), shown, _tidy(left), _tidy(right))


LONGEST = 14_000
"""Bits of the longest number that is shown: 4200 digits; Python writes no more than 4300."""


def _long(rows: Rows) -> bool:
    return any(
        max(Fraction(x).numerator.bit_length(), Fraction(x).denominator.bit_length()) > LONGEST
        for row in rows
        for x in row
    )


def _too_long(statement: Statement, dims: Mapping[str, int], values: Mapping[str, Rows]) -> bool:
    """Whether the sides are numbers too long to be shown."""
    return any(map(_long, both_sides(statement, dims, values, None)))


def _polynomial(coefficients: list[Number]) -> str:
    """An opaque function's value, as text in z."""
    powers = ["", "z", *(f"z ** {k}" for k in range(2, len(coefficients)))]
    terms = [
        power if x == 1 and power else f"{x} * {power}" if power else f"{x}"
        for x, power in zip(coefficients, powers, strict=True)
        if x
    ]
    return " + ".join(terms) or "0"


def _tidy(rows: Rows) -> Rows:
    """Whole fractions as integers."""
    return tuple(tuple(map(exact, row)) for row in rows)

"""Exact matrices of a declared kind.

Random ones modulo a prime, small integers and rationals otherwise.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from nonmixing.algebra.dims import Dim, size
from nonmixing.algebra.evaluate import Evaluator
from nonmixing.algebra.ring import PRIME, Number, Ring, Rows, Undefined
from nonmixing.algebra.setting import Names, Setting, Statement

NONZERO_TRIES = 20
FUNCTION_DEGREE = 5
"""Opaque functions are sampled as polynomials of this degree."""


def draw(rows: int, cols: int, kinds: frozenset[str], rng: random.Random) -> Rows:
    """A random matrix of the kinds modulo the prime."""
    return _Draw(Ring(PRIME), rng, 1).matrix(rows, cols, kinds)


def sample(
    statement: Statement,
    names: Names,
    dims: Mapping[str, int],
    rng: random.Random,
    bound: int,
    prime: int | None,
) -> dict[str, Rows]:
    """Values for every name of a statement, of their kinds; equations `X == ...` are solved for X.

    Args:
        statement: the statement.
        names: its names (`names_of(statement)`).
        dims: size of each symbolic dimension.
        rng: source of randomness.
        bound: entries lie in [-bound, bound] (ignored modulo a prime).
        prime: sample modulo this prime; None for integers, and rationals where a kind forces them.

    Raises:
        Undefined: no matrix of that kind at that size was found.
    """
    setting, ring = statement.setting, Ring(prime)
    drawn = _Draw(ring, rng, bound)
    values: dict[str, Rows] = {name: ((drawn.nonzero(),),) for name in names.scalars}
    for name in names.functions:
        values[name] = drawn.matrix(FUNCTION_DEGREE + 1, 1, frozenset())
    for name in names.matrices:
        rows, cols = (_size(dim, dims) for dim in setting.matrices[name])
        values[name] = drawn.matrix(rows, cols, setting.kinds_of(name))
    for equation in statement.assume:
        defined = equation.defines(setting)
        if defined is not None:
            name, other = defined
            value = Evaluator(setting, dims, values, prime).at(other)
            values[name] = _fit(value, values[name])
    return values


def _fit(value: Rows, like: Rows) -> Rows:
    """A literal 0 takes the shape of what it stands beside."""
    return (
        value
        if len(value) == len(like) and len(value[0]) == len(like[0])
        else tuple((0,) * len(r) for r in like)
    )


def _size(dim: Dim, dims: Mapping[str, int]) -> int:
    return size(dim, dims)


def feasible(setting: Setting, names: Names, dims: Mapping[str, int]) -> bool:
    """Whether matrices of the declared kinds exist at these sizes.

    Orthonormal columns need rows >= columns.
    """
    for name in names.matrices:
        rows, cols = (_size(dim, dims) for dim in setting.matrices[name])
        kinds = setting.kinds_of(name)
        if "orthonormal" in kinds and rows < cols:
            return False
        if "skew" in kinds and kinds & {"invertible", "orthogonal"} and rows % 2:
            return False
    return True


class _Draw:
    """Draws entries and matrices."""

    def __init__(self, ring: Ring, rng: random.Random, bound: int) -> None:
        self.ring, self.rng, self.bound = ring, rng, bound

    def entry(self) -> int:
        if self.ring.prime is not None:
            return self.rng.randrange(self.ring.prime)
        return self.rng.randint(-self.bound, self.bound)

    def nonzero(self) -> int:
        return next((x for x in (self.entry() for _ in range(NONZERO_TRIES)) if x), 1)

    def matrix(self, rows: int, cols: int, kinds: frozenset[str]) -> Rows:
        """One matrix of the kinds."""
        if kinds & {"orthonormal", "orthogonal"}:
            return self._orthonormal(rows, cols, kinds)
        for _ in range(NONZERO_TRIES):
            value = self._linear(rows, cols, kinds)
            if "invertible" not in kinds:
                return value
            try:
                self.ring.inverse(value)
            except Undefined:
                continue
            return value
        raise Undefined(f"no invertible {rows} x {cols} matrix was drawn")

    def _linear(self, rows: int, cols: int, kinds: frozenset[str]) -> Rows:
        entries: list[list[Number]] = [[self.entry() for _ in range(cols)] for _ in range(rows)]
        for i in range(rows):
            for j in range(cols):
                if "diagonal" in kinds and i != j:
                    entries[i][j] = 0
                if "symmetric" in kinds and i > j:
                    entries[i][j] = entries[j][i]
                if "skew" in kinds and i >= j:
                    entries[i][j] = -entries[j][i] if i > j else 0
        return self.ring.rows(entries)

    def _orthonormal(self, rows: int, cols: int, kinds: frozenset[str]) -> Rows:
        if "diagonal" in kinds:
            return self.ring.rows(
                [
                    [self.rng.choice((-1, 1)) if i == j else 0 for j in range(cols)]
                    for i in range(rows)
                ]
            )
        square = self._orthogonal(rows)
        if kinds & {"symmetric", "skew"}:
            core = self._core(rows, kinds)
            return self.ring.product(
                self.ring.product(square, core), tuple(zip(*square, strict=True))
            )
        return tuple(row[:cols] for row in square)

    def _core(self, n: int, kinds: frozenset[str]) -> Rows:
        """A simple symmetric (signs) or skew (quarter turns) orthogonal matrix."""
        if "skew" in kinds:
            if n % 2 or "symmetric" in kinds:
                raise Undefined(f"no skew orthogonal {n} x {n} matrix")
            return self.ring.rows(
                [
                    [(j == i + 1) * (i % 2 == 0) - (j == i - 1) * (i % 2) for j in range(n)]
                    for i in range(n)
                ]
            )
        signs = [self.rng.choice((-1, 1)) for _ in range(n)]
        return self.ring.rows([[signs[i] if i == j else 0 for j in range(n)] for i in range(n)])

    def _orthogonal(self, n: int) -> Rows:
        """A signed permutation, or Cayley's transform of a skew matrix times signs.

        The latter with a bound > 1, or modulo a prime.
        """
        if self.ring.prime is None and self.bound <= 1:
            order = self.rng.sample(range(n), n)
            signs = [self.rng.choice((-1, 1)) for _ in range(n)]
            return tuple(
                tuple(signs[i] if order[i] == j else 0 for j in range(n)) for i in range(n)
            )
        skew = self._linear(n, n, frozenset({"skew"}))
        plus = self.ring.rows(
            [[(i == j) + x for j, x in enumerate(row)] for i, row in enumerate(skew)]
        )
        minus = self.ring.rows(
            [[(i == j) - x for j, x in enumerate(row)] for i, row in enumerate(skew)]
        )
        signs = [self.rng.choice((-1, 1)) for _ in range(n)]
        turned = self.ring.product(minus, self.ring.inverse(plus))
        return self.ring.rows(
            [[sign * x for sign, x in zip(signs, row, strict=True)] for row in turned]
        )

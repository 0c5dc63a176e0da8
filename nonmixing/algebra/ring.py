"""Matrices as rows of exact numbers: rationals, or integers modulo a prime; and dual numbers.

A dual number is value + e * tangent with e^2 = 0; nested derivatives have an e of their own each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

Number = int | Fraction
Rows = tuple[tuple[Number, ...], ...]
Entries = Iterable[Iterable[Number]]

PRIME = 2**61 - 1


class Undefined(ArithmeticError):
    """The expression has no value here (a singular inverse, a zero divisor)."""


@dataclass(frozen=True, slots=True)
class Dual:
    """value + e * tangent, with e of the given level; deeper derivatives have higher levels."""

    level: int
    value: Value
    tangent: Value


Value = Rows | Dual
Linear = Callable[[Rows], Entries]
Bilinear = Callable[[Rows, Rows], Entries]


@dataclass(frozen=True)
class Ring:
    """The ring that entries live in: rationals (`prime` None) or integers modulo a prime."""

    prime: int | None = None

    def rows(self, entries: Entries) -> Rows:
        """A matrix of sums and products of entries, reduced."""
        if self.prime is None:
            return tuple(map(tuple, entries))
        prime = self.prime
        # Modulo a prime there are integers only: fractions come in through `lifted`.
        return tuple([tuple([x % prime for x in row]) for row in entries])  # type: ignore[misc]

    def lifted(self, entries: Entries) -> Rows:
        """A matrix of rationals, as one of the ring."""
        if self.prime is None:
            return tuple(map(tuple, entries))
        prime = self.prime
        return tuple(
            [
                tuple([x % prime if isinstance(x, int) else self._mod(x) for x in row])
                for row in entries
            ]
        )

    def _mod(self, x: Fraction) -> int:
        assert self.prime is not None
        return x.numerator * pow(x.denominator, -1, self.prime) % self.prime

    def product(self, a: Rows, b: Rows) -> Rows:
        """Matrix product."""
        return self.rows(matmul(a, b))

    def reciprocal(self, x: Number) -> Number:
        """1 / x."""
        if x == 0:
            raise Undefined("division by zero")
        return pow(int(x), -1, self.prime) if self.prime is not None else 1 / Fraction(x)

    def inverse(self, a: Rows) -> Rows:
        """Inverse by Gauss-Jordan elimination."""
        n, a = len(a), self.rows(a)
        work = [[*row, *(1 if i == j else 0 for j in range(n))] for i, row in enumerate(a)]
        for column in range(n):
            pivot = next((i for i in range(column, n) if work[i][column] != 0), None)
            if pivot is None:
                raise Undefined("a singular matrix has no inverse")
            work[column], work[pivot] = work[pivot], work[column]
            scale = self.reciprocal(work[column][column])
            work[column] = [x * scale for x in work[column]]
            for i in range(n):
                factor = work[i][column]
                if i != column and factor != 0:
                    work[i] = [x - factor * y for x, y in zip(work[i], work[column], strict=True)]
            if self.prime is not None:
                work = [[x % self.prime for x in row] for row in work]
        return self.rows(row[n:] for row in work)

    # --- on values with tangents ------------------------------------------------------------------

    def linear(self, f: Linear, a: Value) -> Value:
        """A linear operation."""
        if isinstance(a, Dual):
            return Dual(a.level, self.linear(f, a.value), self.linear(f, a.tangent))
        return tuple(map(tuple, f(a)))  # sums stay small: they are reduced with the next product

    def add(self, a: Value, b: Value) -> Value:
        """Sum."""
        if type(a) is tuple and type(b) is tuple:
            return tuple(map(tuple, plus(a, b)))
        level = max(_level(a), _level(b))
        (a0, a1), (b0, b1) = _split(a, level), _split(b, level)
        tangent = b1 if a1 is None else a1 if b1 is None else self.add(a1, b1)
        assert tangent is not None
        return Dual(level, self.add(a0, b0), tangent)

    def bilinear(self, f: Bilinear, a: Value, b: Value) -> Value:
        """A bilinear operation."""
        if type(a) is tuple and type(b) is tuple:
            return self.rows(f(a, b))
        level = max(_level(a), _level(b))
        (a0, a1), (b0, b1) = _split(a, level), _split(b, level)
        parts = [
            self.bilinear(f, x, y)
            for x, y in ((a1, b0), (a0, b1))
            if x is not None and y is not None
        ]
        tangent = parts[0] if len(parts) == 1 else self.add(parts[0], parts[1])
        return Dual(level, self.bilinear(f, a0, b0), tangent)

    def inverted(self, a: Value, given: Rows | None = None) -> Value:
        """The inverse, or what is given to stand for it."""
        if not isinstance(a, Dual):
            return self.inverse(a) if given is None else given
        value = self.inverted(a.value, given)
        return Dual(a.level, value, self.inverse_slope(value, a.tangent))

    def inverse_slope(self, value: Value, tangent: Value) -> Value:
        """d(X^-1) = -X^-1 dX X^-1, given X^-1 and dX."""
        inner = self.bilinear(matmul, value, self.bilinear(matmul, tangent, value))
        return self.linear(negative, inner)


def _level(value: Value) -> int:
    return value.level if isinstance(value, Dual) else 0


def _split(value: Value, level: int) -> tuple[Value, Value | None]:
    if isinstance(value, Dual) and value.level == level:
        return value.value, value.tangent
    return value, None


# --- operations -----------------------------------------------------------------------------------


def matmul(a: Rows, b: Rows) -> list[list[Number]]:
    """Matrix product."""
    columns = list(zip(*b, strict=True))
    return [[sum(map(mul, row, column)) for column in columns] for row in a]


def plus(a: Rows, b: Rows) -> Entries:
    """Sum."""
    return [
        [x + y for x, y in zip(row, other, strict=True)] for row, other in zip(a, b, strict=True)
    ]


def elementwise(a: Rows, b: Rows) -> Entries:
    """Elementwise product."""
    return [
        [x * y for x, y in zip(row, other, strict=True)] for row, other in zip(a, b, strict=True)
    ]


def scale(a: Rows, b: Rows) -> Entries:
    """A 1 x 1 matrix times a matrix."""
    factor = a[0][0]
    return [[factor * x for x in row] for row in b]


def inner(a: Rows, b: Rows) -> list[list[Number]]:
    """Frobenius inner product, 1 x 1."""
    pairs = zip(a, b, strict=True)
    return [[sum([x * y for row, other in pairs for x, y in zip(row, other, strict=True)])]]


def negative(a: Rows) -> Entries:
    """Minus a matrix."""
    return [[-x for x in row] for row in a]


def transpose(a: Rows) -> Entries:
    """Transpose."""
    return zip(*a, strict=True)


def trace(a: Rows) -> Entries:
    """Trace, 1 x 1."""
    return [[sum(row[i] for i, row in enumerate(a))]]


def total(a: Rows) -> Entries:
    """Sum of all entries, 1 x 1."""
    return [[sum(map(sum, a))]]


def diag(a: Rows) -> Entries:
    """The diagonal matrix of a column."""
    return [[row[0] if i == j else 0 for j in range(len(a))] for i, row in enumerate(a)]


def diagonal(a: Rows) -> Entries:
    """The diagonal of a matrix, as a column."""
    return [[row[i]] for i, row in enumerate(a)]


def diagpart(a: Rows) -> Entries:
    """The diagonal part of a matrix."""
    return [[x if i == j else 0 for j, x in enumerate(row)] for i, row in enumerate(a)]


def vec(a: Rows) -> Entries:
    """The columns, stacked."""
    return [[x] for column in zip(*a, strict=True) for x in column]


def kron(a: Rows, b: Rows) -> Entries:
    """Kronecker product."""
    return [[x * y for x in row for y in other] for row in a for other in b]


def face(a: Rows, b: Rows) -> Entries:
    """Face-splitting product."""
    return [[x * y for x in row for y in other] for row, other in zip(a, b, strict=True)]


LINEAR: Mapping[str, Linear] = {
    "T": transpose,
    "tr": trace,
    "total": total,
    "diag": diag,
    "diagpart": diagpart,
    "vec": vec,
}
"""Linear operations, by their names in expressions."""

BILINEAR: Mapping[str, Bilinear] = {
    "matmul": matmul,
    "times": elementwise,
    "scale": scale,
    "kron": kron,
    "face": face,
}
"""Bilinear operations, by their names in expressions."""

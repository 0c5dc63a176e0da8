"""Exact evaluation of expressions at given matrices: integers, fractions, or a prime field.

This is the second opinion, so it shares nothing with the index form: matrices are lists of rows,
and derivatives are dual numbers (value + e * tangent, e^2 = 0), nested where derivatives are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import prod
from operator import mul

from nonmixing.algebra import dims
from nonmixing.algebra.dims import Dim
from nonmixing.algebra.node import EVERYTHING, INVERSE, Expr
from nonmixing.algebra.setting import Setting

Number = int | Fraction
Rows = tuple[tuple[Number, ...], ...]

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


@dataclass(frozen=True)
class Arithmetic:
    """The ring that entries live in: rationals (`prime` None) or integers modulo a prime."""

    prime: int | None = None

    def rows(self, entries: Iterable[Iterable[Number]]) -> Rows:
        """A matrix of sums and products of entries, reduced."""
        if self.prime is None:
            return tuple(map(tuple, entries))
        prime = self.prime
        # Modulo a prime there are integers only: fractions come in through `lifted`.
        return tuple([tuple([x % prime for x in row]) for row in entries])  # type: ignore[misc]

    def lifted(self, entries: Iterable[Iterable[Number]]) -> Rows:
        """A matrix of rationals, as one of the ring."""
        if self.prime is None:
            return tuple(map(tuple, entries))
        prime = self.prime
        return tuple(
            tuple(x % prime if isinstance(x, int) else self._mod(x) for x in row) for row in entries
        )

    def _mod(self, x: Fraction) -> int:
        assert self.prime is not None
        return x.numerator * pow(x.denominator, -1, self.prime) % self.prime

    def product(self, a: Rows, b: Rows) -> Rows:
        """Matrix product."""
        return self.rows(_matmul(a, b))

    def reciprocal(self, x: Number) -> Number:
        """1 / x."""
        if x == 0:
            raise Undefined("division by zero")
        return pow(int(x), -1, self.prime) if self.prime is not None else 1 / Fraction(x)

    def inverse(self, a: Rows) -> Rows:
        """Inverse by Gauss-Jordan elimination."""
        n = len(a)
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


def _matmul(a: Rows, b: Rows) -> list[list[Number]]:
    columns = list(zip(*b, strict=True))
    return [[sum(map(mul, row, column)) for column in columns] for row in a]


def _elementwise(a: Rows, b: Rows) -> list[list[Number]]:
    return [
        [x * y for x, y in zip(row, other, strict=True)] for row, other in zip(a, b, strict=True)
    ]


def _scale(a: Rows, b: Rows) -> list[list[Number]]:
    factor = a[0][0]
    return [[factor * x for x in row] for row in b]


def _plus(a: Rows, b: Rows) -> list[list[Number]]:
    return [
        [x + y for x, y in zip(row, other, strict=True)] for row, other in zip(a, b, strict=True)
    ]


def _transpose(a: Rows) -> list[tuple[Number, ...]]:
    return list(zip(*a, strict=True))


def _trace(a: Rows) -> list[list[Number]]:
    return [[sum(row[i] for i, row in enumerate(a))]]


def _total(a: Rows) -> list[list[Number]]:
    return [[sum(map(sum, a))]]


def _diag(a: Rows) -> list[list[Number]]:
    return [[row[0] if i == j else 0 for j in range(len(a))] for i, row in enumerate(a)]


def _diagpart(a: Rows) -> list[list[Number]]:
    return [[x if i == j else 0 for j, x in enumerate(row)] for i, row in enumerate(a)]


def _kron(a: Rows, b: Rows) -> list[list[Number]]:
    return [[x * y for x in row for y in other] for row in a for other in b]


def _face(a: Rows, b: Rows) -> list[list[Number]]:
    return [[x * y for x in row for y in other] for row, other in zip(a, b, strict=True)]


_LINEAR: Mapping[str, Callable[[Rows], Iterable[Iterable[Number]]]] = {
    "T": _transpose,
    "tr": _trace,
    "total": _total,
    "diag": _diag,
    "diagpart": _diagpart,
    "vec": lambda a: [[x] for column in zip(*a, strict=True) for x in column],
}
_BILINEAR: Mapping[str, Callable[[Rows, Rows], Iterable[Iterable[Number]]]] = {
    "matmul": _matmul,
    "times": _elementwise,
    "scale": _scale,
    "kron": _kron,
    "face": _face,
}


class Evaluator:
    """Evaluates expressions of a setting at given sizes and values.

    Args:
        setting: gives velocities and updates their meaning.
        sizes: size of each symbolic dimension.
        values: value of each matrix and (1 x 1) of each scalar.
        prime: evaluate modulo this prime; exact rationals if None.
        inverses: what stands for the inverses of matrices, by name with `INVERSE`; the inverses
            themselves where it has none.
    """

    def __init__(
        self,
        setting: Setting,
        sizes: Mapping[str, int],
        values: Mapping[str, Rows],
        prime: int | None = None,
        inverses: Mapping[str, Rows] | None = None,
    ) -> None:
        self.inverses = inverses or {}
        self.setting = setting
        self.dims = sizes
        self.ring = Arithmetic(prime)
        self._root = _State({name: self.ring.lifted(value) for name, value in values.items()})

    def at(self, expr: Expr) -> Rows:
        """The value, as rows."""
        value = self._value(expr, self._root)
        assert not isinstance(value, Dual)
        return value

    def size(self, dim: Dim) -> int:
        """A dimension's size here."""
        return dims.size(dim, self.dims)

    # --- one operation each -----------------------------------------------------------------------

    def _value(self, expr: Expr, state: _State) -> Value:
        while state.parent is not None and expr.names.isdisjoint(state.moved):
            state = state.parent
        known = state.memo.get(expr)
        if known is None:
            known = state.memo[expr] = self._compute(expr, state)
        return known

    def _compute(self, expr: Expr, state: _State) -> Value:
        op, data = expr.op, expr.data
        if op in ("symbol", "scalar"):
            return state.values[str(data)]
        if op in ("d", "after", "D", "grad"):
            return self._calculus(expr, state)
        if op == "expect":
            return self._mean(expr, state)
        if op == "inv" and self.inverses:
            return self._given_inverse(expr.args[0], state)
        args = [self._value(arg, state) for arg in expr.args]
        if op in _BILINEAR:
            return self._bilinear(_BILINEAR[op], args[0], args[1])
        if op in _LINEAR:
            return self._linear(_LINEAR[op], args[0])
        match op:
            case "add":
                result = args[0]
                for other in args[1:]:
                    result = self._add(result, other)
                return result
            case "power":
                assert isinstance(data, int)
                result = self._constant(expr, 1)
                for _ in range(data):
                    result = self._bilinear(_elementwise, result, args[0])
                return result
            case "hstack" | "vstack" | "blkdiag":
                return self._blocks(expr, args)
            case "apply":
                assert isinstance(data, tuple)
                return self._apply(expr, data, args[0], state)
            case "inv" | "reciprocal":
                return self._inverse(args[0])
            case "number":
                assert isinstance(data, Fraction)
                return self.ring.lifted([[data.numerator if data.denominator == 1 else data]])
            case "dim":
                return ((self.size(str(data)),),)
            case "eye":
                return tuple(
                    tuple(int(i == j) for j in range(self.size(expr.cols)))
                    for i in range(self.size(expr.rows))
                )
            case "ones":
                return self._constant(expr, 1)
            case "zeros":
                return self._constant(expr, 0)
            case _:
                raise TypeError(f"no evaluation rule for {op!r}")

    def _constant(self, expr: Expr, entry: int) -> Rows:
        return tuple((entry,) * self.size(expr.cols) for _ in range(self.size(expr.rows)))

    def _blocks(self, expr: Expr, args: Sequence[Value]) -> Value:
        """Blocks, as a sum of matrices with one block each."""
        height, breadth = self.size(expr.rows), self.size(expr.cols)
        total: Value = self._constant(expr, 0)
        top = left = 0
        for arg, value in zip(expr.args, args, strict=True):

            def placed(block: Rows, top: int = top, left: int = left) -> list[list[Number]]:
                whole: list[list[Number]] = [[0] * breadth for _ in range(height)]
                for i, row in enumerate(block):
                    whole[top + i][left : left + len(row)] = row
                return whole

            total = self._add(total, self._linear(placed, value))
            if expr.op != "hstack":
                top += self.size(arg.rows)
            if expr.op != "vstack":
                left += self.size(arg.cols)
        return total

    def _apply(self, expr: Expr, which: tuple[str, int], value: Value, state: _State) -> Value:
        """A polynomial, entry by entry, by Horner's rule."""
        column = state.values[which[0]]
        assert not isinstance(column, Dual)
        coefficients = derivative([row[0] for row in column], which[1])
        total: Value = self._constant(expr, 0)
        for coefficient in reversed(coefficients):
            total = self._bilinear(_elementwise, total, value)
            constant = self._bilinear(_scale, ((coefficient,),), self._constant(expr, 1))
            total = self._add(total, constant)
        return total

    def _mean(self, expr: Expr, state: _State) -> Value:
        """Mean over a Gaussian column, by a rational rule that is exact to the degree."""
        name = str(expr.data)
        nodes, weights = gaussian_rule(degree(expr.args[0], name))
        size = self.size(expr.args[1].rows)
        if len(nodes) ** size > MAX_POINTS:
            raise Undefined("too many points to average over")
        total: Value = self._constant(expr, 0)
        for choice in itertools.product(range(len(nodes)), repeat=size):
            weight = prod((weights[i] for i in choice), start=Fraction(1))
            column = self.ring.lifted([[nodes[i]] for i in choice])
            value = self._value(expr.args[0], state.with_values({name: column}))
            factor = self.ring.lifted([[weight]])
            total = self._add(total, self._bilinear(_scale, factor, value))
        return total

    def _given_inverse(self, inside: Expr, state: _State) -> Value:
        """An inverse made of the given inverses of symbols."""
        match inside.op:
            case "symbol" if f"{inside.data}{INVERSE}" in self.inverses:
                given = self.inverses[f"{inside.data}{INVERSE}"]
                return self._inverse(self._value(inside, state), given)
            case "matmul":
                left, right = (self._given_inverse(arg, state) for arg in inside.args)
                return self._bilinear(_matmul, right, left)
            case "T":
                return self._linear(_transpose, self._given_inverse(inside.args[0], state))
            case "scale":
                factor = self._inverse(self._value(inside.args[0], state))
                return self._bilinear(_scale, factor, self._given_inverse(inside.args[1], state))
            case "inv":
                return self._value(inside.args[0], state)
            case _:
                return self._inverse(self._value(inside, state))

    # --- dual numbers -----------------------------------------------------------------------------

    def _linear(self, f: Callable[[Rows], Iterable[Iterable[Number]]], a: Value) -> Value:
        if isinstance(a, Dual):
            return Dual(a.level, self._linear(f, a.value), self._linear(f, a.tangent))
        return self.ring.rows(f(a))

    def _add(self, a: Value, b: Value) -> Value:
        level = max(_level(a), _level(b))
        if level == 0:
            assert not isinstance(a, Dual)
            assert not isinstance(b, Dual)
            return self.ring.rows(_plus(a, b))
        (a0, a1), (b0, b1) = _split(a, level), _split(b, level)
        tangent = b1 if a1 is None else a1 if b1 is None else self._add(a1, b1)
        assert tangent is not None
        return Dual(level, self._add(a0, b0), tangent)

    def _bilinear(
        self, f: Callable[[Rows, Rows], Iterable[Iterable[Number]]], a: Value, b: Value
    ) -> Value:
        level = max(_level(a), _level(b))
        if level == 0:
            assert not isinstance(a, Dual)
            assert not isinstance(b, Dual)
            return self.ring.rows(f(a, b))
        (a0, a1), (b0, b1) = _split(a, level), _split(b, level)
        parts = [
            self._bilinear(f, x, y)
            for x, y in ((a1, b0), (a0, b1))
            if x is not None and y is not None
        ]
        tangent = parts[0] if len(parts) == 1 else self._add(parts[0], parts[1])
        return Dual(level, self._bilinear(f, a0, b0), tangent)

    def _inverse(self, a: Value, given: Rows | None = None) -> Value:
        if not isinstance(a, Dual):
            return self.ring.inverse(a) if given is None else given
        value = self._inverse(a.value, given)
        return Dual(a.level, value, self._inverse_slope(value, a.tangent))

    def _inverse_slope(self, value: Value, tangent: Value) -> Value:
        """d(X^-1) = -X^-1 dX X^-1, given X^-1 and dX."""
        inner = self._bilinear(_matmul, value, self._bilinear(_matmul, tangent, value))
        return self._bilinear(_scale, ((-1,),), inner)

    # --- derivatives and steps --------------------------------------------------------------------

    def _calculus(self, expr: Expr, state: _State) -> Value:
        if expr.op == "after":
            updates = self.setting.update.items()
            moved = {name: self._value(update, state) for name, update in updates}
            return self._value(expr.args[0], state.with_values(moved))
        if expr.op == "grad":
            return self._gradient(expr, state)
        if expr.op == "D":
            directions = {str(expr.data): self._value(expr.args[1], state)}
        else:
            velocities = self.setting.velocity.items()
            directions = {name: self._value(velocity, state) for name, velocity in velocities}
        return self._along(expr.args[0], state, directions)

    def _along(self, f: Expr, state: _State, directions: Mapping[str, Value]) -> Value:
        known = {name: way for name, way in directions.items() if name in state.values}
        tangent = self._tangent(f, _Motion(state, known))
        return self._constant(f, 0) if tangent is None else tangent

    def _gradient(self, expr: Expr, state: _State) -> Value:
        """One tangent an entry, put together in the variable's shape."""
        rows, cols = self.size(expr.rows), self.size(expr.cols)
        name = str(expr.data)
        total: Value = self._constant(expr, 0)
        for i in range(rows):
            for j in range(cols):
                entry = tuple(
                    tuple(int((i, j) == (a, b)) for b in range(cols)) for a in range(rows)
                )
                slope = self._tangent(expr.args[0], _Motion(state, {name: entry}))
                if slope is not None:
                    total = self._add(total, self._bilinear(_scale, slope, entry))
        return total

    def _tangent(self, expr: Expr, motion: _Motion) -> Value | None:
        """What an expression moves by when its names move; None if it stands still."""
        if expr.names.isdisjoint(motion.moved):
            return None
        if expr not in motion.memo:
            motion.memo[expr] = self._compute_tangent(expr, motion)
        return motion.memo[expr]

    def _compute_tangent(self, expr: Expr, motion: _Motion) -> Value | None:
        op, args, state = expr.op, expr.args, motion.state
        if op in ("symbol", "scalar"):
            return motion.directions.get(str(expr.data))
        if op in ("d", "after", "D", "grad", "expect") or (op == "inv" and self.inverses):
            return self._dual_tangent(expr, motion)
        tangents = [self._tangent(arg, motion) for arg in args]
        if op in _BILINEAR:
            f, (a, b) = _BILINEAR[op], args
            left, right = tangents
            return self._sum(
                None if left is None else self._bilinear(f, left, self._value(b, state)),
                None if right is None else self._bilinear(f, self._value(a, state), right),
            )
        if op == "add":
            return self._sum(*tangents)
        inside = tangents[0]
        if op in ("hstack", "vstack", "blkdiag"):
            filled = [
                self._constant(arg, 0) if t is None else t
                for arg, t in zip(args, tangents, strict=True)
            ]
            return self._blocks(expr, filled)
        if inside is None:
            return None
        if op in _LINEAR:
            return self._linear(_LINEAR[op], inside)
        return self._slope(expr, inside, state)

    def _sum(self, *parts: Value | None) -> Value | None:
        """The sum of what is there."""
        total: Value | None = None
        for part in parts:
            if part is not None:
                total = part if total is None else self._add(total, part)
        return total

    def _slope(self, expr: Expr, inside: Value, state: _State) -> Value:
        """The tangent of a function of one argument."""
        match expr.op:
            case "power":
                assert isinstance(expr.data, int)
                slope = self._constant(expr, expr.data)
                for _ in range(expr.data - 1):
                    slope = self._bilinear(_elementwise, slope, self._value(expr.args[0], state))
                return self._bilinear(_elementwise, slope, inside)
            case "apply":
                assert isinstance(expr.data, tuple)
                name, order = expr.data
                slope = self._apply(
                    expr, (name, order + 1), self._value(expr.args[0], state), state
                )
                return self._bilinear(_elementwise, slope, inside)
            case "inv" | "reciprocal":
                return self._inverse_slope(self._value(expr, state), inside)
            case op:
                raise TypeError(f"no tangent rule for {op!r}")

    def _dual_tangent(self, expr: Expr, motion: _Motion) -> Value | None:
        """The tangent of what is a derivative itself, by evaluating it in dual numbers."""
        state = motion.state
        level = state.level + 1
        moved = {
            name: Dual(level, state.values[name], way) for name, way in motion.directions.items()
        }
        result = self._value(expr, state.with_values(moved, level))
        if isinstance(result, Dual) and result.level == level:
            return result.tangent
        return None


class _State:
    """Values of all names, with what has been computed from them.

    Attributes:
        values: by name.
        moved: the names in which this differs from its parent, and `EVERYTHING`.
        level: the highest level of a dual number among the values.
    """

    def __init__(
        self, values: dict[str, Value], parent: _State | None = None, level: int = 0
    ) -> None:
        self.values = values
        self.parent = parent
        self.level = level
        self.moved: frozenset[str] = frozenset()
        self.memo: dict[Expr, Value] = {}

    def with_values(self, changed: Mapping[str, Value], level: int | None = None) -> _State:
        """This state with other values for some names."""
        new = _State({**self.values, **changed}, self, self.level if level is None else level)
        new.moved = frozenset({*changed, EVERYTHING})
        return new


class _Motion:
    """A state and what some of its names move by."""

    def __init__(self, state: _State, directions: Mapping[str, Value]) -> None:
        self.state = state
        self.directions = directions
        self.moved = frozenset({*directions, EVERYTHING})
        self.memo: dict[Expr, Value | None] = {}


def _level(value: Value) -> int:
    return value.level if isinstance(value, Dual) else 0


def _split(value: Value, level: int) -> tuple[Value, Value | None]:
    if isinstance(value, Dual) and value.level == level:
        return value.value, value.tangent
    return value, None


MAX_POINTS = 4_000
"""Most points at which a mean is taken."""


def derivative(coefficients: Sequence[Number], order: int) -> list[Number]:
    """Coefficients of a polynomial's derivative, lowest first."""
    result = list(coefficients)
    for _ in range(order):
        result = [k * x for k, x in enumerate(result)][1:]
    return result


def horner(coefficients: Sequence[int], x: int, prime: int) -> int:
    """Value of a polynomial modulo a prime."""
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * x + coefficient) % prime
    return value


@cache
def gaussian_rule(order: int) -> tuple[tuple[int, ...], tuple[Fraction, ...]]:
    """Integer nodes and rational weights with the Gaussian moments up to an order."""
    nodes = tuple((k + 1) // 2 * (1 if k % 2 else -1) for k in range(order + 1))
    moments = [0 if k % 2 else prod(range(1, k, 2)) for k in range(order + 1)]
    vandermonde = tuple(tuple(Fraction(x) ** k for x in nodes) for k in range(order + 1))
    inverse = Arithmetic().inverse(vandermonde)
    weights = tuple(
        Fraction(sum(w * m for w, m in zip(row, moments, strict=True))) for row in inverse
    )
    return nodes, weights


def degree(expr: Expr, name: str) -> int:
    """A bound on the degree of an expression in a matrix."""
    inside = [degree(arg, name) for arg in expr.args]
    match expr.op:
        case "symbol":
            return int(expr.data == name)
        case "matmul" | "times" | "scale" | "kron" | "face":
            return sum(inside)
        case "power":
            assert isinstance(expr.data, int)
            return expr.data * inside[0]
        case "D":
            return inside[0] + inside[1]
        case "inv" | "reciprocal" | "apply" | "d" | "after" if any(inside):
            raise Undefined(f"the mean of {expr.op} of the variable is not known")
        case _:
            return max(inside, default=0)

"""Exact evaluation of expressions at given matrices: integers, fractions, or a prime field.

This is the second opinion, so it shares nothing with the index form: matrices are lists of rows,
directional derivatives are tangents carried along (dual numbers where derivatives are nested), and
gradients are pulled back from the value to the variables.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import prod

from nonmixing.algebra import dims
from nonmixing.algebra.dims import Dim
from nonmixing.algebra.node import EVERYTHING, INVERSE, Expr
from nonmixing.algebra.ring import (
    BILINEAR,
    LINEAR,
    Dual,
    Number,
    Ring,
    Rows,
    Undefined,
    Value,
    diagonal,
    diagpart,
    elementwise,
    inner,
    matmul,
    scale,
    transpose,
)
from nonmixing.algebra.setting import Setting


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
        self.ring = Ring(prime)
        self._root = _State({name: self.ring.lifted(value) for name, value in values.items()})

    def at(self, expr: Expr) -> Rows:
        """The value, as rows."""
        value = self._value(expr, self._root)
        assert not isinstance(value, Dual)
        return self.ring.rows(value)

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
        if op in BILINEAR:
            return self.ring.bilinear(BILINEAR[op], args[0], args[1])
        if op in LINEAR:
            return self.ring.linear(LINEAR[op], args[0])
        match op:
            case "add":
                result = args[0]
                for other in args[1:]:
                    result = self.ring.add(result, other)
                return result
            case "power":
                assert isinstance(data, int)
                result = self._constant(expr, 1)
                for _ in range(data):
                    result = self.ring.bilinear(elementwise, result, args[0])
                return result
            case "hstack" | "vstack" | "blkdiag":
                return self._blocks(expr, args)
            case "apply":
                assert isinstance(data, tuple)
                return self._apply(expr, data, args[0], state)
            case "inv" | "reciprocal":
                return self.ring.inverted(args[0])
            case "number":
                assert isinstance(data, Fraction)
                return self.ring.lifted([[data.numerator if data.denominator == 1 else data]])
            case "dim":
                return ((self.size(str(data)),),)
            case "eye":
                return self._unit(expr)
            case "ones":
                return self._constant(expr, 1)
            case "zeros":
                return self._constant(expr, 0)
            case _:
                raise TypeError(f"no evaluation rule for {op!r}")

    def _constant(self, expr: Expr, entry: int) -> Rows:
        return tuple((entry,) * self.size(expr.cols) for _ in range(self.size(expr.rows)))

    def _unit(self, expr: Expr) -> Rows:
        rows, cols = self.size(expr.rows), self.size(expr.cols)
        return tuple([tuple([int(i == j) for j in range(cols)]) for i in range(rows)])

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

            total = self.ring.add(total, self.ring.linear(placed, value))
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
            total = self.ring.bilinear(elementwise, total, value)
            constant = self.ring.bilinear(scale, ((coefficient,),), self._constant(expr, 1))
            total = self.ring.add(total, constant)
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
            total = self.ring.add(total, self.ring.bilinear(scale, factor, value))
        return total

    def _given_inverse(self, inside: Expr, state: _State) -> Value:
        """An inverse made of the given inverses of symbols."""
        match inside.op:
            case "symbol" if f"{inside.data}{INVERSE}" in self.inverses:
                given = self.inverses[f"{inside.data}{INVERSE}"]
                return self.ring.inverted(self._value(inside, state), given)
            case "matmul":
                left, right = (self._given_inverse(arg, state) for arg in inside.args)
                return self.ring.bilinear(matmul, right, left)
            case "T":
                return self.ring.linear(transpose, self._given_inverse(inside.args[0], state))
            case "scale":
                factor = self.ring.inverted(self._value(inside.args[0], state))
                return self.ring.bilinear(scale, factor, self._given_inverse(inside.args[1], state))
            case "inv":
                return self._value(inside.args[0], state)
            case _:
                return self.ring.inverted(self._value(inside, state))

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
        """The slopes of a scalar, pulled back to the variable; else one tangent an entry."""
        name, inside = str(expr.data), expr.args[0]
        if EVERYTHING in inside.names:
            return self._gradient_by_entries(expr, state)
        slopes = state.slopes.get(inside)
        if slopes is None:
            slopes = state.slopes[inside] = self._pulled_back(inside, state)
        slope = slopes.get(name, self._constant(expr, 0))
        return self._gradient_by_entries(expr, state) if slope is None else slope

    def _gradient_by_entries(self, expr: Expr, state: _State) -> Value:
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
                    total = self.ring.add(total, self.ring.bilinear(scale, slope, entry))
        return total

    def _pulled_back(self, f: Expr, state: _State) -> dict[str, Value | None]:
        """The gradients of a scalar; None for the names behind an operation without a rule."""
        slopes: dict[Expr, Value] = {f: ((1,),)}
        found: dict[str, Value | None] = {}
        for node in reversed(_operands_first(f)):
            slope = slopes.pop(node)
            if node.op in ("symbol", "scalar"):
                found.setdefault(str(node.data), slope)  # None if an operation hides it, too
                continue
            if node.op not in _PULLED_BACK or (node.op == "inv" and self.inverses):
                found.update(dict.fromkeys(node.names))
            for arg, part in self._parts(node, slope, state):
                if arg.names:
                    slopes[arg] = self.ring.add(slopes[arg], part) if arg in slopes else part
        return found

    def _parts(self, node: Expr, slope: Value, state: _State) -> Iterator[tuple[Expr, Value]]:
        """What the slope of an operation means for its operands."""
        ring, args = self.ring, node.args
        match node.op:
            case "add":
                yield from ((arg, slope) for arg in args)
            case "matmul":
                left, right = (ring.linear(transpose, self._value(arg, state)) for arg in args)
                yield args[0], ring.bilinear(matmul, slope, right)
                yield args[1], ring.bilinear(matmul, left, slope)
            case "scale":
                yield args[0], ring.bilinear(inner, slope, self._value(args[1], state))
                yield args[1], ring.bilinear(scale, self._value(args[0], state), slope)
            case "times":
                yield args[0], ring.bilinear(elementwise, slope, self._value(args[1], state))
                yield args[1], ring.bilinear(elementwise, slope, self._value(args[0], state))
            case "T":
                yield args[0], ring.linear(transpose, slope)
            case "tr":
                yield args[0], ring.bilinear(scale, slope, self._unit(args[0]))
            case "total":
                yield args[0], ring.bilinear(scale, slope, self._constant(args[0], 1))
            case "diag":
                yield args[0], ring.linear(diagonal, slope)
            case "diagpart":
                yield args[0], ring.linear(diagpart, slope)
            case "power" | "apply":
                yield args[0], self._slope(node, slope, state)
            case "inv" | "reciprocal":
                turned = ring.linear(transpose, self._value(node, state))
                yield args[0], ring.inverse_slope(turned, slope)
            case _:
                # The operation has no rule, but all of its operands have slopes to be passed on.
                yield from ((arg, self._constant(arg, 0)) for arg in args)

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
        if op in BILINEAR:
            f, (a, b) = BILINEAR[op], args
            left, right = tangents
            return self._sum(
                None if left is None else self.ring.bilinear(f, left, self._value(b, state)),
                None if right is None else self.ring.bilinear(f, self._value(a, state), right),
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
        if op in LINEAR:
            return self.ring.linear(LINEAR[op], inside)
        return self._slope(expr, inside, state)

    def _sum(self, *parts: Value | None) -> Value | None:
        """The sum of what is there."""
        total: Value | None = None
        for part in parts:
            if part is not None:
                total = part if total is None else self.ring.add(total, part)
        return total

    def _slope(self, expr: Expr, inside: Value, state: _State) -> Value:
        """The tangent of a function of one argument."""
        match expr.op:
            case "power":
                assert isinstance(expr.data, int)
                slope = self._constant(expr, expr.data)
                for _ in range(expr.data - 1):
                    slope = self.ring.bilinear(elementwise, slope, self._value(expr.args[0], state))
                return self.ring.bilinear(elementwise, slope, inside)
            case "apply":
                assert isinstance(expr.data, tuple)
                name, order = expr.data
                slope = self._apply(
                    expr, (name, order + 1), self._value(expr.args[0], state), state
                )
                return self.ring.bilinear(elementwise, slope, inside)
            case "inv" | "reciprocal":
                return self.ring.inverse_slope(self._value(expr, state), inside)
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


_PULLED_BACK = frozenset(
    "add matmul scale times T tr total diag diagpart power apply inv reciprocal".split()
)
"""Operations with a rule that takes a slope to the operands."""


def _operands_first(f: Expr) -> list[Expr]:
    """Every node below an expression that depends on a name, operands before operations."""
    order: list[Expr] = []
    seen: set[Expr] = set()

    def visit(node: Expr) -> None:
        if node not in seen and node.names:
            seen.add(node)
            for arg in node.args:
                visit(arg)
            order.append(node)

    visit(f)
    return order


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
        self.slopes: dict[Expr, dict[str, Value | None]] = {}

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
    inverse = Ring().inverse(vandermonde)
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

"""Explicit SymPy matrices of small sizes, to refute: agreement there proves nothing.

All entries are free symbols; derivatives are SymPy's, entry by entry; at the end the symbols give
way to small integers of the declared kinds.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import sympy as _sympy

from judges.answer import CannotExpressError
from nonmixing.algebra import Statement
from nonmixing.algebra import expr as ex
from nonmixing.algebra.dims import size
from nonmixing.algebra.expr import Expr
from nonmixing.algebra.setting import Names, names_of

# SymPy carries no usable types for its matrix expressions: `Any` stands for one, and for the
# modules that make them.
sympy: Any = _sympy

Z = sympy.Symbol("z")
OPAQUE = Z + 2 * Z**2 - 3 * Z**3
"""What stands for an opaque function; any function that tells the sides apart will do."""
DRAWS = 3
BOUND = 3


class Entries:
    """Evaluates the expressions of a statement at given sizes, entries being symbols."""

    def __init__(self, statement: Statement, names: Names, sizes: Mapping[str, int]) -> None:
        self.setting, self.sizes, self.names = statement.setting, sizes, names
        self.values: dict[str, Any] = {
            name: sympy.ImmutableMatrix([[sympy.Symbol(name)]]) for name in names.scalars
        }
        for name in names.matrices:
            rows, cols = self.setting.matrices[name]
            self.values[name] = sympy.ImmutableMatrix(
                size(rows, sizes),
                size(cols, sizes),
                lambda i, j, name=name: sympy.Symbol(f"{name}[{i},{j}]"),
            )

    def at(self, expr: Expr) -> Any:
        """The value, as an explicit matrix."""
        args = [self.at(arg) for arg in expr.args] if expr.op not in ("d", "after") else []
        rows, cols = size(expr.rows, self.sizes), size(expr.cols, self.sizes)
        match expr.op:
            case "number":
                value = Fraction(str(expr.data))
                return sympy.ImmutableMatrix([[sympy.Rational(value.numerator, value.denominator)]])
            case "scalar" | "symbol":
                return self.values[str(expr.data)]
            case "dim":
                return sympy.ImmutableMatrix([[self.sizes[str(expr.data)]]])
            case "add":
                return sum(args[1:], args[0])
            case "scale":
                return args[0][0, 0] * args[1]
            case "times":
                return args[0].multiply_elementwise(args[1])
            case "power":
                return args[0].applyfunc(lambda x: x**expr.data)
            case "reciprocal":
                return args[0].applyfunc(lambda x: 1 / x)
            case "matmul":
                return args[0] * args[1]
            case "T":
                return args[0].T
            case "tr":
                return sympy.ImmutableMatrix([[args[0].trace()]])
            case "total":
                return sympy.ImmutableMatrix([[sum(args[0])]])
            case "diag" | "diagpart":
                entries = list(args[0]) if expr.op == "diag" else list(args[0].diagonal())
                return sympy.ImmutableMatrix(sympy.diag(*entries))
            case "inv":
                return args[0].inv()
            case "eye":
                return sympy.ImmutableMatrix(sympy.eye(rows))
            case "ones" | "zeros":
                return sympy.ImmutableMatrix(rows, cols, [int(expr.op == "ones")] * (rows * cols))
            case "kron":
                return sympy.kronecker_product(*args)
            case "vec":
                return args[0].vec()
            case "apply":
                return self._applied(expr, args[0])
            case _:
                return self._calculus(expr, args)

    def _applied(self, expr: Expr, value: Any) -> Any:
        if not isinstance(expr.data, tuple):
            raise CannotExpressError(f"an apply node that holds {expr.data!r}")
        function = OPAQUE.diff(Z, expr.data[1])
        return value.applyfunc(lambda x: function.xreplace({Z: x}))

    def _calculus(self, expr: Expr, args: list[Any]) -> Any:
        name = str(expr.data)
        match expr.op:
            case "grad":
                return self.values[name].applyfunc(args[0][0, 0].diff)
            case "D":
                return self._along(args[0], {name: args[1]})
            case "d":
                moved = self._used(self.setting.velocity)
                return self._along(self.at(expr.args[0]), moved)
            case "after":
                moved = self._used(self.setting.update)
                return self.at(expr.args[0]).xreplace(self.pairs(moved))
            case "expect":
                return args[0].applyfunc(lambda x: _mean(x, list(self.values[name])))
            case op:
                raise CannotExpressError(f"{op} has no counterpart")

    def _used(self, values: Mapping[str, Expr]) -> dict[str, Any]:
        return {name: self.at(value) for name, value in values.items() if name in self.values}

    def _along(self, value: Any, motion: Mapping[str, Any]) -> Any:
        total = 0 * value
        for name, step in motion.items():
            for entry, by in zip(self.values[name], step, strict=True):
                total += value.diff(entry) * by
        return total

    def pairs(self, values: Mapping[str, Any]) -> dict[Any, Any]:
        """Symbol by symbol what the values put in the place of matrices."""
        return {
            entry: sympy.sympify(new)
            for name, value in values.items()
            for entry, new in zip(self.values[name], value, strict=True)
        }


def _mean(value: Any, column: list[Any]) -> Any:
    """Mean of a polynomial over a standard Gaussian column."""
    total = sympy.Integer(0)
    for exponents, coefficient in sympy.Poly(value, *column).terms():
        if not any(k % 2 for k in exponents):
            total += coefficient * sympy.prod(sympy.factorial2(k - 1) for k in exponents)
    return total


def proved_at_stated_sizes(statement: Statement) -> bool:
    """Whether all sizes are integers and the entries agree as polynomials, which proves it."""
    names = names_of(statement)
    if names.dims or statement.assume or any(map(statement.setting.kinds_of, names.matrices)):
        return False
    gap = Entries(statement, names, {}).at(_difference(statement))
    return all(sympy.expand(entry) == 0 for entry in gap)


def refuted(statement: Statement) -> bool:
    """Whether small integer matrices that satisfy the hypotheses separate the sides."""
    names = names_of(statement)
    rng = random.Random(0)
    for choice in _sizes(len(names.dims)):
        sizes = dict(zip(names.dims, choice, strict=True))
        entries = Entries(statement, names, sizes)
        gap = entries.at(_difference(statement))
        for _ in range(DRAWS):
            point = _point(statement, entries, rng)
            if point is None:
                continue
            if any(sympy.sympify(x).xreplace(point) != 0 for x in gap):
                return True
        if not names.dims:
            break
    return False


def _sizes(count: int) -> list[tuple[int, ...]]:
    rising = tuple(1 + (i + 1) % 3 for i in range(count))
    falling = tuple(1 + (2 - i) % 3 for i in range(count))
    return [(2,) * count, rising, falling]


def _difference(statement: Statement) -> Expr:
    left, right = statement.left, statement.right
    if ex.is_zero_literal(right):
        return left
    return ex.negative(right) if ex.is_zero_literal(left) else ex.subtract(left, right)


def _point(statement: Statement, entries: Entries, rng: random.Random) -> dict[Any, Any] | None:
    """Integers for all symbols; rationals for orthogonal matrices; None if a draw fails."""
    values: dict[str, Any] = {}
    for name, symbols in entries.values.items():
        kinds = statement.setting.kinds_of(name)
        values[name] = _matrix(symbols.rows, symbols.cols, kinds, rng)
        if values[name] is None:
            return None
    for equation in statement.assume:
        if equation.left.op != "symbol":
            raise CannotExpressError("a hypothesis that is no value of a symbol")
        name = str(equation.left.data)
        right = entries.at(equation.right).xreplace(entries.pairs(values))
        values[name] = 0 * values[name] if ex.is_zero_literal(equation.right) else right
    return entries.pairs(values)


def _matrix(rows: int, cols: int, kinds: frozenset[str], rng: random.Random) -> Any:
    value = sympy.Matrix(rows, cols, lambda i, j: rng.randint(-BOUND, BOUND))
    if kinds & {"orthogonal", "orthonormal"}:
        if rows < cols:
            return None
        square = sympy.Matrix(rows, rows, lambda i, j: rng.randint(-BOUND, BOUND))
        skew, one = square - square.T, sympy.eye(rows)
        return ((one - skew) * (one + skew).inv())[:, :cols]
    for i, j in itertools.product(range(rows), range(cols)):
        if "symmetric" in kinds and i > j:
            value[i, j] = value[j, i]
        if "skew" in kinds and i >= j:
            value[i, j] = -value[j, i] if i > j else 0
        if "diagonal" in kinds and i != j:
            value[i, j] = 0
    return None if "invertible" in kinds and value.det() == 0 else value

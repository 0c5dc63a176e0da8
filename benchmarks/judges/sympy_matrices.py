"""Expressions as SymPy's matrix expressions, with its own derivatives.

Gradients are SymPy's: trace by trace, because its derivative of a sum of traces can be silently 0,
with the product rule between traces. Derivatives along a flow or in a direction follow the product
rule; a step is a simultaneous substitution.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import sympy as _sympy
from sympy.matrices import expressions as _expressions

from judges.answer import CannotExpressError
from nonmixing.algebra.expr import Expr
from nonmixing.algebra.setting import Setting

# SymPy carries no usable types for its matrix expressions: `Any` stands for one, and for the
# modules that make them.
sympy: Any = _sympy
mx: Any = _expressions


def size(dim: object) -> Any:
    """A dimension as a SymPy integer or symbol."""
    if isinstance(dim, int):
        return sympy.Integer(dim)
    if isinstance(dim, str):
        return sympy.Symbol(dim, integer=True, positive=True)
    raise CannotExpressError(f"the dimension {dim} is composite")


class Writer:
    """Writes expressions of one setting as SymPy objects."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def write(self, expr: Expr) -> Any:
        """A scalar for 1 x 1 values, a matrix expression for others."""
        return self.scalar(expr) if expr.is_scalar else self.matrix(expr)

    def symbol(self, name: str) -> Any:
        """A declared matrix."""
        rows, cols = self.setting.matrices[name]
        return mx.MatrixSymbol(name, size(rows), size(cols))

    def scalar(self, expr: Expr) -> Any:
        """A 1 x 1 value."""
        args = expr.args
        match expr.op:
            case "number":
                value = Fraction(str(expr.data))
                return sympy.Rational(value.numerator, value.denominator)
            case "scalar":
                return sympy.Symbol(str(expr.data))
            case "dim":
                return size(str(expr.data))
            case "symbol":
                return mx.Trace(self.symbol(str(expr.data)))
            case "add":
                return sympy.Add(*map(self.scalar, args))
            case "scale" | "times":
                return self.scalar(args[0]) * self.scalar(args[1])
            case "power":
                return self.scalar(args[0]) ** expr.data
            case "reciprocal":
                return 1 / self.scalar(args[0])
            case "matmul" if not args[0].is_scalar:
                return mx.Trace(self.matrix(args[0]) * self.matrix(args[1]))
            case "matmul":
                return self.scalar(args[0]) * self.scalar(args[1])
            case "tr":
                return self.write(args[0]) if args[0].is_scalar else mx.Trace(self.matrix(args[0]))
            case "total":
                return self.total(args[0])
            case "eye" | "ones":
                return sympy.Integer(1)
            case "zeros":
                return sympy.Integer(0)
            case _:
                return self.calculus(expr)

    def total(self, inside: Expr) -> Any:
        """The sum of all entries."""
        if inside.is_scalar:
            return self.scalar(inside)
        if inside.op == "power" and inside.data == 2:
            written = self.matrix(inside.args[0])
            return mx.Trace(written.T * written)
        if inside.op == "times":
            return mx.Trace(self.matrix(inside.args[0]).T * self.matrix(inside.args[1]))
        left, right = mx.OneMatrix(1, size(inside.rows)), mx.OneMatrix(size(inside.cols), 1)
        return mx.Trace(left * self.matrix(inside) * right)

    def matrix(self, expr: Expr) -> Any:
        """A value that is not 1 x 1."""
        args = expr.args
        match expr.op:
            case "symbol":
                return self.symbol(str(expr.data))
            case "add":
                return mx.MatAdd(*map(self.matrix, args))
            case "scale":
                return self.scalar(args[0]) * self.matrix(args[1])
            case "times":
                return elementwise(*map(self.matrix, args))
            case "power":
                return mx.HadamardPower(self.matrix(args[0]), expr.data)
            case "matmul":
                left, right = map(self.write, args)
                return left * right
            case "T":
                return self.matrix(args[0]).T
            case "diag":
                return mx.DiagMatrix(self.matrix(args[0]))
            case "diagpart":
                return mx.DiagonalMatrix(self.matrix(args[0]))
            case "inv":
                return mx.Inverse(self.matrix(args[0])).doit()
            case "eye":
                return mx.Identity(size(expr.rows))
            case "ones":
                return mx.OneMatrix(size(expr.rows), size(expr.cols))
            case "zeros":
                return mx.ZeroMatrix(size(expr.rows), size(expr.cols))
            case "apply":
                return self.applied(expr)
            case _:
                return self.calculus(expr)

    def applied(self, expr: Expr) -> Any:
        """An opaque function, entry by entry."""
        if not isinstance(expr.data, tuple):
            raise CannotExpressError(f"an apply node that holds {expr.data!r}")
        name, order = expr.data
        z = sympy.Symbol("z")
        value = sympy.Function(name)(z)
        value = value.diff(z, order) if order else value
        return self.matrix(expr.args[0]).applyfunc(sympy.Lambda(z, value))

    def calculus(self, expr: Expr) -> Any:
        """Derivatives and steps."""
        args = expr.args
        match expr.op:
            case "grad" if str(expr.data) in self.setting.matrices:
                return gradient(self.scalar(args[0]), self.symbol(str(expr.data)))
            case "D":
                return along(self.write(args[0]), self._values({str(expr.data): args[1]}))
            case "d":
                return along(self.write(args[0]), self._values(self.setting.velocity))
            case "after":
                return self.write(args[0]).xreplace(self._values(self.setting.update))
            case op:
                raise CannotExpressError(f"{op} has no counterpart")

    def _values(self, values: Mapping[str, Expr]) -> dict[Any, Any]:
        return {
            sympy.Symbol(name) if name in self.setting.scalars else self.symbol(name): self.write(
                value
            )
            for name, value in values.items()
        }


def elementwise(*factors: Any) -> Any:
    """Elementwise product, with scalar factors in front."""
    scalars, matrices = zip(*(factor.as_coeff_mmul() for factor in factors), strict=True)
    return sympy.Mul(*scalars) * mx.HadamardProduct(*matrices).doit()


def split_traces(scalar: Any) -> Any:
    """Every trace of a sum as a sum of traces, with products expanded."""
    return scalar.replace(
        lambda node: isinstance(node, mx.Trace),
        lambda node: mx.Trace(node.arg.doit().expand()).doit(),
    ).expand()


def gradient(scalar: Any, variable: Any) -> Any:
    """SymPy's derivative, trace by trace."""
    scalar = split_traces(scalar)
    total = mx.ZeroMatrix(*variable.shape)
    traces = {trace: sympy.Dummy() for trace in scalar.atoms(mx.Trace) if trace.has(variable)}
    back = {dummy: trace for trace, dummy in traces.items()}
    hidden = scalar.xreplace(traces)
    if hidden.has(variable):
        raise CannotExpressError("the variable stands outside traces")
    for trace, dummy in traces.items():
        total += hidden.diff(dummy).xreplace(back) * _trace_derivative(trace, variable)
    return total


def _trace_derivative(trace: Any, variable: Any) -> Any:
    """SymPy's derivative of a trace, past two of its limits.

    What is constant and no product is a symbol meanwhile; powers are spelled out.
    """
    constant = {
        node: mx.MatrixSymbol(f"constant {number}", *node.shape)
        for number, node in enumerate(trace.atoms(mx.DiagMatrix, mx.DiagonalMatrix))
        if not node.has(variable)
    }
    back = {symbol: node for node, symbol in constant.items()}
    spelled = trace.xreplace(constant).replace(
        lambda node: isinstance(node, sympy.MatPow) and node.exp.is_Integer and node.exp > 0,
        lambda node: mx.MatMul(*mx.MatMul.make_args(node.base) * int(node.exp), evaluate=False),
    )
    return spelled.diff(variable).xreplace(back)


def along(value: Any, motion: Mapping[Any, Any]) -> Any:
    """Directional derivative by the product rule."""
    if value in motion:
        return motion[value]
    args = value.args
    match value:
        case sympy.MatAdd() | sympy.Add():
            return value.func(*(along(arg, motion) for arg in args))
        case sympy.MatMul() | sympy.Mul() | mx.HadamardProduct():
            moved = [
                value.func(*args[:i], along(arg, motion), *args[i + 1 :])
                for i, arg in enumerate(args)
                if any(arg.has(name) for name in motion)
            ]
            return sum(moved[1:], moved[0]) if moved else 0 * value
        case mx.Transpose() | mx.Trace() | mx.DiagonalMatrix() | mx.DiagMatrix():
            return value.func(along(args[0], motion))
        case sympy.MatPow() if value.exp.is_Integer and value.exp > 0:
            return along(mx.MatMul(*[value.base] * int(value.exp), evaluate=False), motion)
        case mx.Inverse():
            return -value * along(args[0], motion) * value
        case sympy.Pow() if value.exp.is_Integer:
            return value.exp * value.base ** (value.exp - 1) * along(value.base, motion)
        case mx.HadamardPower() if value.exp.is_Integer and value.exp > 1:
            lower = mx.HadamardPower(value.base, value.exp - 1).doit()
            return value.exp * mx.HadamardProduct(lower, along(value.base, motion))
        case _ if not any(value.has(name) for name in motion):
            return 0 * value
        case _:
            raise CannotExpressError(f"no product rule for {type(value).__name__}")

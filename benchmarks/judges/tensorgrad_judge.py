"""tensorgrad: both sides as its tensors, then its randomised equality modulo a prime.

Each matrix is a tensor with two named edges (one for a column), a dimension is the size symbol of
its edges. Derivatives are tensorgrad's. A matrix of a linear kind is differentiated as a free one,
then replaced by (S + S^T) / 2 and the like; matrices with orthonormal columns carry that equation,
which tensorgrad uses when it simplifies. An opaque function is a polynomial.

`equal_szfp` is exact where no inverse stands, up to a probability of (degree / 2^19)^3. It neither
proves nor shows a counterexample; where an inverse or a constraint stands, only its "equal" is
used, as its documentation says.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import sympy
from tensorgrad import (  # pyright: ignore[reportMissingImports]
    Delta,
    Expectation,
    Ones,
    Product,
    Sum,
    Variable,
    Zero,
)
from tensorgrad import functions as F  # pyright: ignore[reportMissingImports]
from tensorgrad.compiler.szfp import equal_szfp  # pyright: ignore[reportMissingImports]

import nonmixing.algebra.dims as sizes
from judges.answer import Answer, CannotExpressError
from judges.reading import prepare
from nonmixing.algebra import Statement
from nonmixing.algebra import expr as ex
from nonmixing.algebra.expr import Expr
from nonmixing.algebra.setting import Setting, names_of, walk

__all__ = ["judge", "prepare"]

OPAQUE = (0, 1, 2, -3, 5, -7)
"""Coefficients of the polynomial that stands for an opaque function, lowest first."""
LINEAR_KINDS = ("diagonal", "symmetric", "skew")
ONE_SIDED = ("invertible", "orthogonal", "orthonormal")

Edges = tuple[str, ...]
"""The edges of one index: none over 1, several over a product of dimensions."""


def size(dim: object) -> sympy.Symbol:
    """A dimension as the size symbol of an edge."""
    if not isinstance(dim, str):
        raise CannotExpressError(f"the dimension {dim} is no symbol")
    return sympy.Symbol(dim)


class Tensors:
    """Translates the expressions of one setting.

    Args:
        setting: the declared names.
        values: matrices that stand for others, for a step.
    """

    def __init__(
        self,
        setting: Setting,
        values: Mapping[str, Expr] | None = None,
        fresh: Iterator[int] | None = None,
    ) -> None:
        self.setting, self.values = setting, values or {}
        self._fresh = fresh or itertools.count()

    def edges(self, dim: object) -> Edges:
        """New edges for an index over a dimension."""
        if isinstance(dim, sizes.Sum):
            raise CannotExpressError("blocks")
        return tuple(f"e{next(self._fresh)}" for _ in sizes.factors(dim))  # pyright: ignore

    def pairs(self, dim: object, edges: Edges) -> list[tuple[str, sympy.Symbol]]:
        """Edges with their sizes."""
        return list(zip(edges, map(size, sizes.factors(dim)), strict=True))  # pyright: ignore

    def variable(self, name: str) -> Any:
        """A declared matrix or scalar, with edges i and j."""
        if name in self.setting.scalars:
            return Variable(name)
        rows, cols = self.setting.matrices[name]
        shape = {e: size(d) for e, d in (("i", rows), ("j", cols)) if d != 1}
        free = Variable(name, **shape)
        if "orthonormal" in self.setting.kinds_of(name):
            return _with_orthonormal_columns(free, shape)
        if "orthogonal" in self.setting.kinds_of(name):
            both = _with_orthonormal_columns(free, shape)
            rows_too = free @ free.rename(i="k"), Delta(shape["i"], "i", "k")
            return both.with_eq_constraint(*rows_too)
        return free

    def at(self, expr: Expr, r: Edges, c: Edges) -> Any:
        """The tensor of an expression, its row and column index at these edges."""
        args = expr.args
        match expr.op:
            case "number":
                return Sum([Product([])], [Fraction(str(expr.data))])
            case "dim":
                return Delta(size(str(expr.data)))
            case "symbol" | "scalar" if str(expr.data) in self.values:
                return Tensors(self.setting, None, self._fresh).at(
                    self.values[str(expr.data)], r, c
                )
            case "symbol" | "scalar":
                variable = self.variable(str(expr.data))
                names = {old: new for old, new in zip("ij", (r, c), strict=True) if new}
                return variable.rename(**{old: new[0] for old, new in names.items()})
            case "add":
                return Sum([self.at(arg, r, c) for arg in args])
            case "scale":
                return Product([self.at(args[0], (), ()), self.at(args[1], r, c)])
            case "times":
                return self.at(args[0], r, c) * self.at(args[1], r, c)
            case "power" if expr.data == 0:
                return self.ones(expr, r, c)
            case "power":
                return F.pow(self.at(args[0], r, c), expr.data)
            case "reciprocal":
                return F.pow(self.at(args[0], (), ()), -1)
            case "T":
                return self.at(args[0], c, r)
            case "matmul":
                middle = self.edges(args[0].cols)
                return self.at(args[0], r, middle) @ self.at(args[1], middle, c)
            case "tr" | "total" | "diag" | "diagpart":
                return self.joined(expr, r, c)
            case "eye":
                return Product(
                    Delta(dim, one, other)
                    for (one, dim), other in zip(self.pairs(expr.rows, r), c, strict=True)
                )
            case "ones":
                return self.ones(expr, r, c)
            case "zeros":
                return Zero(**dict((*self.pairs(expr.rows, r), *self.pairs(expr.cols, c))))
            case "kron" | "vec" | "face":
                return self.composite(expr, r, c)
            case _:
                return self.calculus(expr, r, c)

    def ones(self, expr: Expr, r: Edges, c: Edges) -> Any:
        """All ones."""
        return Ones(**dict((*self.pairs(expr.rows, r), *self.pairs(expr.cols, c))))

    def joined(self, expr: Expr, r: Edges, c: Edges) -> Any:
        """What copy tensors make: traces, sums, diagonals."""
        inside = expr.args[0]
        rows, cols = self.edges(inside.rows), self.edges(inside.cols)
        value = self.at(inside, rows, cols)
        match expr.op:
            case "tr":
                joints = zip(self.pairs(inside.rows, rows), cols, strict=True)
                return Product([value, *(Delta(dim, one, other) for (one, dim), other in joints)])
            case "total":
                return F.sum(value, [*rows, *cols]) if value.edges else value
            case "diag":
                return Product([value, Delta(size(inside.rows), *rows, *r, *c)])
            case _:
                return Product([value, Delta(size(inside.rows), *rows, *cols, *r, *c)])

    def composite(self, expr: Expr, r: Edges, c: Edges) -> Any:
        """Kronecker products and stacked columns: several edges to an index."""
        first, *rest = expr.args
        if expr.op == "vec":
            count = len(sizes.factors(first.cols))
            return self.at(first, r[count:], r[:count])
        (second,) = rest
        across = len(sizes.factors(first.cols))
        if expr.op == "face":
            return self.at(first, r, c[:across]) * self.at(second, r, c[across:])
        down = len(sizes.factors(first.rows))
        return Product(
            [self.at(first, r[:down], c[:across]), self.at(second, r[down:], c[across:])]
        )

    def calculus(self, expr: Expr, r: Edges, c: Edges) -> Any:
        """Derivatives, steps, means, inverses, opaque functions."""
        args = expr.args
        match expr.op:
            case "grad":
                return self.derivative(self.at(args[0], (), ()), str(expr.data), r, c)
            case "D":
                return self.along(self.at(args[0], r, c), {str(expr.data): args[1]})
            case "d":
                return self.along(self.at(args[0], r, c), self.setting.velocity)
            case "after":
                stepped = Tensors(self.setting, self.setting.update, self._fresh)
                return stepped.at(args[0], r, c)
            case "expect":
                return Expectation(self.at(args[0], r, c), self.variable(str(expr.data)))
            case "inv":
                return self.inverse(args[0], r, c)
            case "apply":
                return self.applied(expr, self.at(args[0], r, c))
            case op:
                raise CannotExpressError(f"{op} has no counterpart")

    def inverse(self, inside: Expr, r: Edges, c: Edges) -> Any:
        """The inverse of a declared matrix, or of a product, transpose or multiple of such."""
        match inside.op:
            case "symbol" if str(inside.data) not in self.values:
                # tensorgrad's inverse keeps the edges of the matrix: its rows are at the columns.
                return F.inverse(self.variable(str(inside.data))).rename(i=c[0], j=r[0])
            case "matmul":
                return self.at(ex.matmul(*map(ex.inv, reversed(inside.args))), r, c)
            case "T":
                return self.inverse(inside.args[0], c, r)
            case op:
                raise CannotExpressError(f"the inverse of {op}")

    def derivative(self, value: Any, name: str, r: Edges, c: Edges) -> Any:
        """The derivative in a variable, by tensorgrad, its new edges at these."""
        if self.values:
            raise CannotExpressError("a gradient after a step")
        names = {old: new[0] for old, new in (("i", r), ("j", c)) if new}
        return value.grad(self.variable(name), names)

    def along(self, value: Any, motion: Mapping[str, Expr]) -> Any:
        """The derivative contracted with what each variable moves by."""
        parts: list[Any] = []
        for name, step in motion.items():
            r, c = self.edges(step.rows), self.edges(step.cols)
            parts.append(self.derivative(value, name, r, c) @ self.at(step, r, c))
        return Sum(parts)

    def applied(self, expr: Expr, value: Any) -> Any:
        """The polynomial that stands for an opaque function, or a derivative of it."""
        if not isinstance(expr.data, tuple):
            raise CannotExpressError(f"an apply node that holds {expr.data!r}")
        coefficients = list(OPAQUE)
        for _ in range(expr.data[1]):
            coefficients = [k * x for k, x in enumerate(coefficients)][1:]
        return Sum([F.pow(value, k) for k in range(len(coefficients))], coefficients)


def _with_orthonormal_columns(free: Any, shape: Mapping[str, sympy.Symbol]) -> Any:
    return free.with_eq_constraint(free @ free.rename(j="k"), Delta(shape["j"], "j", "k"))


def judge(statement: Statement) -> Answer:
    """Whether the sides are equal by `equal_szfp`; no proof, no counterexample."""
    try:
        left, right = _sides(statement)
    except (CannotExpressError, NotImplementedError) as error:
        return Answer("abstains", how=str(error))
    if equal_szfp(left, right):
        return Answer("true", how="equal_szfp")
    if _kinds(statement).intersection(ONE_SIDED):
        return Answer("abstains", how="unequal, but that says nothing here")
    return Answer("false", how="equal_szfp")


def _kinds(statement: Statement) -> frozenset[str]:
    """All kinds of the matrices that the statement uses."""
    names = names_of(statement).matrices
    return frozenset[str]().union(*map(statement.setting.kinds_of, names))


def _sides(statement: Statement) -> tuple[Any, Any]:
    """Both sides without derivatives, matrices of linear kinds put in."""
    tensors = Tensors(statement.setting)
    shape = statement.left if not ex.is_zero_literal(statement.left) else statement.right
    r, c = tensors.edges(shape.rows), tensors.edges(shape.cols)
    both: list[Any] = []
    for side in (statement.left, statement.right):
        zero = ex.is_zero_literal(side) and not shape.is_scalar
        expr = ex.zeros(shape.rows, shape.cols) if zero else side
        value = _simplified(tensors.at(expr, r, c), expr, statement)
        for equation in statement.assume:
            if equation.left.op != "symbol":
                raise CannotExpressError("a hypothesis that is no value of a symbol")
            value = _put_in(value, tensors, str(equation.left.data), equation.right)
        both.append(_of_kinds(value, statement))
    return both[0], both[1]


def _simplified(value: Any, expr: Expr, statement: Statement) -> Any:
    """No more than is needed before the test: that is fastest."""
    if _kinds(statement) & {"orthogonal", "orthonormal"}:
        return value.full_simplify()  # so that the constraints meet what they are about
    operations = {node.op for node in walk(statement.setting, expr)}
    if "expect" in operations:
        return value.full_simplify(expand=False)
    return value.simplify() if operations & {"grad", "d", "D"} else value


def _put_in(value: Any, tensors: Tensors, name: str, other: Expr) -> Any:
    variable = tensors.variable(name)
    rows, cols = tensors.setting.matrices[name]
    expr = ex.zeros(rows, cols) if ex.is_zero_literal(other) else other
    r, c = ("i",) if rows != 1 else (), ("j",) if cols != 1 else ()
    return value.substitute(variable, tensors.at(expr, r, c))


def _of_kinds(value: Any, statement: Statement) -> Any:
    """Free matrices replaced by ones of their linear kinds."""
    for name, kinds in statement.setting.kinds.items():
        if not kinds.intersection(LINEAR_KINDS):
            continue
        if kinds.intersection(ONE_SIDED) or len(kinds.intersection(LINEAR_KINDS)) > 1:
            raise CannotExpressError(f"{name} of the kinds {', '.join(sorted(kinds))}")
        dim = size(statement.setting.matrices[name][0])
        free = Variable(name, i=dim, j=dim)
        turned = free.rename(i="j", j="i")
        image = Product([Variable(f"diagonal of {name}", k=dim), Delta(dim, "k", "i", "j")])
        if "diagonal" not in kinds:
            sign = 1 if "symmetric" in kinds else -1
            image = Sum([free, turned], [Fraction(1, 2), Fraction(sign, 2)])
        value = value.substitute(free, image)
    return value

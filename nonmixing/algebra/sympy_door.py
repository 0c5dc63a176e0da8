"""SymPy's matrix expressions in, and back out.

Dimensions are SymPy symbols or positive integers. A `Symbol` that no shape uses is a scalar.
`X.inv()` of a matrix symbol declares it invertible; other kinds are SymPy's own predicates among
the assumptions: `Q.symmetric(X)`, `Q.diagonal(X)`, `Q.orthogonal(X)`, `Q.invertible(X)`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import sympy as _sympy
from sympy.core.function import AppliedUndef
from sympy.logic.boolalg import BooleanFalse, BooleanTrue
from sympy.matrices import expressions as _expressions
from sympy.matrices.expressions.applyfunc import ElementwiseApplyFunction as _ElementwiseFunction

from nonmixing.algebra import dims
from nonmixing.algebra import expr as ex
from nonmixing.algebra.dims import Dim, Product
from nonmixing.algebra.node import INVERSE, Expr
from nonmixing.algebra.setting import Equation, Setting, Statement
from nonmixing.algebra.text import same_shape
from nonmixing.errors import InputError, ShapeError

# SymPy carries no usable types for its matrix expressions; `Any` stands for a SymPy object here,
# and for the modules that make them.
SymPy = Any
sympy: Any = _sympy
mx: Any = _expressions
MatrixSymbol: Any = _expressions.MatrixSymbol
ElementwiseFunction: Any = _ElementwiseFunction

_PREDICATES = ("symmetric", "diagonal", "orthogonal", "invertible")


@dataclass(frozen=True)
class Read:
    """Expressions read from SymPy, and the setting of their names."""

    exprs: tuple[Expr, ...]
    setting: Setting


def norm2(matrix: SymPy) -> SymPy:
    """Squared Frobenius norm of a SymPy matrix expression, as a SymPy expression tr(X^T X)."""
    if not _is_matrix(matrix):
        raise InputError(f"norm2: expected a SymPy matrix expression, got {matrix!r:.80}")
    return mx.Trace(matrix.T * matrix)


def inner(left: SymPy, right: SymPy) -> SymPy:
    """Frobenius inner product of two SymPy matrix expressions, as a SymPy expression tr(X^T Y)."""
    if tuple(left.shape) != tuple(right.shape):
        raise ShapeError(
            f"inner needs two matrices of one shape; got {left.shape} and {right.shape}"
        )
    return mx.Trace(left.T * right)


def read(objects: Sequence[SymPy], predicates: Iterable[SymPy] = ()) -> Read:
    """Read SymPy expressions that share their names.

    Raises:
        InputError: something outside the language, named.
    """
    sympified: list[SymPy] = [_checked(item) for item in objects]
    _refuse_namesakes(sympified)
    symbols: list[SymPy] = sorted(
        {s for item in sympified for s in item.atoms(MatrixSymbol)}, key=lambda s: s.name
    )
    matrices: dict[str, tuple[Dim, Dim]] = {}
    for symbol in symbols:
        shape = (_dim(symbol.shape[0]), _dim(symbol.shape[1]))
        if matrices.setdefault(symbol.name, shape) != shape:
            raise ShapeError(
                f"the matrix {symbol.name} is used with two shapes, "
                f"{matrices[symbol.name]} and {shape}"
            )
    used = {symbol for shape in matrices.values() for dim in shape for symbol in dims.symbols(dim)}
    for item in sympified:
        for node in sympy.preorder_traversal(item):
            if isinstance(node, mx.Identity | mx.ZeroMatrix | mx.OneMatrix):
                used |= {symbol for dim in map(_dim, node.shape) for symbol in dims.symbols(dim)}
    free = {s.name for item in sympified for s in item.free_symbols if isinstance(s, sympy.Symbol)}
    kinds = _kinds(sympified, predicates)
    scalars = frozenset(free - used - set(matrices))
    setting = Setting(matrices, {name: k for name, k in kinds.items() if name in matrices}, scalars)
    reader = _Reader(frozenset(used))
    exprs = tuple(reader.read(item) for item in sympified)
    functions = {
        "d" * order + name: (name, order) for name in reader.functions for order in range(5)
    }
    return Read(exprs, dataclasses.replace(setting, functions=functions))


def _checked(item: SymPy) -> SymPy:
    """A SymPy object; what is none is refused."""
    try:
        return sympy.sympify(item, strict=True)
    except (sympy.SympifyError, TypeError, AttributeError):
        raise InputError(f"expected a SymPy expression, got {item!r:.80}") from None


def _refuse_namesakes(objects: Sequence[SymPy]) -> None:
    """Two different symbols of one name would be taken for one, and some names stand for more."""
    known: dict[str, SymPy] = {}
    for item in objects:
        for symbol in item.atoms(sympy.Symbol, MatrixSymbol):
            name = str(symbol.name)
            same = known.setdefault(name, symbol)
            kind = isinstance(same, MatrixSymbol), isinstance(symbol, MatrixSymbol)
            if same != symbol and not all(kind):
                raise InputError(
                    f"two different symbols are called {name!r}; give each its own name"
                )
            if name.endswith(INVERSE) or "#" in name or name[:1].isdigit() or not name.strip():
                raise InputError(f"the name {name!r} cannot be used here; give it another one")


def equation(
    lhs: SymPy, rhs: SymPy = None, assuming: Sequence[SymPy] = (), name: str = "claim"
) -> Statement:
    """A statement from SymPy.

    Args:
        lhs: left side; or a SymPy `Eq` (or the `true` it has already become) with `rhs` left out.
        rhs: right side.
        assuming: equations (`Eq`) and predicates (`Q.symmetric(X)`).
        name: the statement's id.

    Raises:
        InputError: not an equation, or outside the language.
        ShapeError: the sides have different shapes.
    """
    if rhs is None:
        if lhs is True or isinstance(lhs, BooleanTrue):
            nought = ex.number(0)
            return Statement(name, nought, nought, Setting(), "true", "true")
        if lhs is False or isinstance(lhs, BooleanFalse):
            raise InputError(
                "prove: SymPy has already turned the equation into False; "
                "pass the two sides instead"
            )
        if not isinstance(lhs, sympy.Equality):
            raise InputError(f"prove: expected an equation or two sides, got {lhs}")
        lhs, rhs = lhs.lhs, lhs.rhs
    if isinstance(assuming, sympy.Basic):
        assuming = [assuming]
    if not isinstance(cast("object", assuming), Sequence):
        raise InputError(f"assuming: expected a list of equations and predicates, got {assuming!r}")
    equations = [item for item in assuming if isinstance(item, sympy.Equality)]
    predicates = [item for item in assuming if not isinstance(item, sympy.Equality | BooleanTrue)]
    flat: list[SymPy] = [lhs, rhs]
    for item in equations:
        flat += [item.lhs, item.rhs]
    result = read(flat, predicates)
    left, right, *rest = result.exprs
    same_shape(left, right, name)
    hypotheses: list[Equation] = []
    for number, item in enumerate(equations):
        one, other = rest[2 * number], rest[2 * number + 1]
        same_shape(one, other, f"{name}: assuming")
        hypotheses.append(Equation(one, other, f"{item.lhs} == {item.rhs}"))
    return Statement(name, left, right, result.setting, str(lhs), str(rhs), tuple(hypotheses))


def _kinds(objects: Sequence[SymPy], predicates: Iterable[SymPy]) -> dict[str, frozenset[str]]:
    kinds: dict[str, set[str]] = {}
    for item in objects:
        for node in sympy.preorder_traversal(item):
            inverted = isinstance(node, mx.MatPow) and node.exp.is_negative
            if isinstance(node, mx.Inverse) or inverted:
                for symbol in node.args[0].atoms(MatrixSymbol):
                    if symbol.shape[0] == symbol.shape[1]:
                        kinds.setdefault(symbol.name, set()).add("invertible")
    for predicate in predicates:
        name = str(getattr(getattr(predicate, "function", None), "name", ""))
        argument: SymPy = getattr(predicate, "arguments", (None,))[0]
        if name not in _PREDICATES or not isinstance(argument, MatrixSymbol):
            known = ", ".join(f"Q.{key}(X)" for key in _PREDICATES)
            raise InputError(
                f"assuming: {predicate} is neither an equation nor one of {known} "
                "of a matrix symbol"
            )
        kinds.setdefault(argument.name, set()).add(name)
    return {name: frozenset(many) for name, many in kinds.items()}


def _dim(dim: SymPy) -> Dim:
    if isinstance(dim, int | sympy.Integer) and int(dim) >= 1:
        return int(dim)
    if isinstance(dim, sympy.Symbol):
        return dim.name
    if isinstance(dim, sympy.Mul):
        return dims.multiply(*map(_dim, dim.args))
    if isinstance(dim, sympy.Add):
        return dims.add(*map(_dim, dim.args))
    raise InputError(f"a dimension is a symbol or a positive integer, got {dim}")


def _decimal(node: SymPy) -> Fraction:
    """A float as the shortest decimal that gives it back: 0.1 is 1/10."""
    return Fraction(repr(float(node)) if node._prec <= 53 else str(node))


class _Reader:
    """One rule a SymPy class."""

    def __init__(self, dims: frozenset[str]) -> None:
        self.dims = dims
        self.functions: set[str] = set()
        self.table = self._rules()

    def read(self, node: SymPy) -> Expr:
        for kinds, rule in self.table:
            if isinstance(node, kinds):
                return rule(node)
        raise InputError(f"{type(node).__name__} ({node}) is not in the language of this prover")

    def _rules(self) -> tuple[tuple[Any, Callable[[SymPy], Expr]], ...]:
        return (
            (
                MatrixSymbol,
                lambda node: ex.symbol(node.name, _dim(node.shape[0]), _dim(node.shape[1])),
            ),
            (sympy.Rational, lambda node: ex.number(Fraction(int(node.p), int(node.q)))),
            (sympy.Float, lambda node: ex.number(_decimal(node))),
            (sympy.Symbol, self._symbol),
            (mx.Identity, lambda node: ex.eye(_dim(node.shape[0]))),
            (mx.ZeroMatrix, lambda node: ex.zeros(_dim(node.shape[0]), _dim(node.shape[1]))),
            (mx.OneMatrix, lambda node: ex.ones(_dim(node.shape[0]), _dim(node.shape[1]))),
            (mx.Transpose, lambda node: ex.transpose(self.read(node.arg))),
            (mx.Trace, lambda node: ex.tr(self.read(node.arg))),
            (mx.Inverse, lambda node: ex.inv(self.read(node.arg))),
            (mx.HadamardProduct, lambda node: self._fold(ex.times, node.args)),
            (mx.HadamardPower, self._hadamard_power),
            (mx.DiagMatrix, lambda node: ex.diag(self._column(node.args[0]))),
            (mx.DiagonalMatrix, lambda node: ex.diagpart(self.read(node.args[0]))),
            (mx.MatPow, self._matrix_power),
            (mx.KroneckerProduct, lambda node: self._fold(ex.kron, node.args)),
            (mx.BlockMatrix, self._blocks),
            (ElementwiseFunction, self._apply),
            (mx.MatAdd | sympy.Add, lambda node: ex.add(*map(self.read, node.args))),
            (mx.MatMul, lambda node: self._fold(_matmul_or_scale, node.args)),
            (sympy.Mul, lambda node: self._fold(ex.multiply, node.args)),
            (sympy.Pow, self._power),
        )

    def _fold(self, combine: Callable[[Expr, Expr], Expr], args: Iterable[SymPy]) -> Expr:
        first, *rest = map(self.read, args)
        for other in rest:
            first = combine(first, other)
        return first

    def _blocks(self, node: SymPy) -> Expr:
        rows = [
            ex.hstack(*(self.read(node.blocks[i, j]) for j in range(node.blocks.shape[1])))
            for i in range(node.blocks.shape[0])
        ]
        return ex.vstack(*rows) if len(rows) > 1 else rows[0]

    def _apply(self, node: SymPy) -> Expr:
        """An undefined function, or a derivative of one, entry by entry."""
        variable = sympy.Dummy("z")
        body, order = node.function(variable), 0
        if isinstance(body, sympy.Derivative) and body.variables == (variable,) * len(
            body.variables
        ):
            body, order = body.expr, len(body.variables)
        if not isinstance(body, AppliedUndef) or body.args != (variable,):
            raise InputError(
                f"{node.function} is not in the language: only undefined functions, as in "
                'X.applyfunc(Function("phi")), and their derivatives are applied elementwise'
            )
        name = body.func.__name__
        self.functions.add(name)
        return ex.apply(name, order, self.read(node.expr))

    def _symbol(self, node: SymPy) -> Expr:
        return ex.dimension(node.name) if node.name in self.dims else ex.scalar(node.name)

    def _column(self, node: SymPy) -> Expr:
        column = self.read(node)
        return ex.transpose(column) if column.rows == 1 and column.cols != 1 else column

    def _exponent(self, node: SymPy) -> int:
        if not isinstance(node, sympy.Integer) or abs(int(node)) > 64:
            raise InputError(f"the exponent {node} is not an integer between -64 and 64")
        return int(node)

    def _power(self, node: SymPy) -> Expr:
        return ex.power(self.read(node.base), self._exponent(node.exp))

    def _hadamard_power(self, node: SymPy) -> Expr:
        return ex.power(self.read(node.base), self._exponent(node.exp))

    def _matrix_power(self, node: SymPy) -> Expr:
        base, exponent = self.read(node.base), self._exponent(node.exp)
        if exponent < 0:
            base, exponent = ex.inv(base), -exponent
        result = base if exponent else ex.eye(base.rows)
        for _ in range(exponent - 1):
            result = ex.matmul(result, base)
        return result


def _matmul_or_scale(left: Expr, right: Expr) -> Expr:
    scaling = (
        left.op in ("number", "scalar", "dim", "scale", "tr", "reciprocal", "power", "add")
        and left.is_scalar
    )
    return ex.multiply(left, right) if scaling else ex.matmul(left, right)


def write(expr: Expr) -> SymPy:
    """An expression as a SymPy object (without derivatives: these have been taken)."""
    args = [write(arg) for arg in expr.args]
    rows, cols = _sympy_dim(expr.rows), _sympy_dim(expr.cols)
    match expr.op:
        case "number":
            value = cast(Fraction, expr.data)
            return sympy.Rational(value.numerator, value.denominator)
        case "scalar" | "dim":
            return sympy.Symbol(str(expr.data))
        case "symbol":
            return MatrixSymbol(str(expr.data), rows, cols)
        case "add":
            if expr.is_scalar:
                return sympy.Add(*map(_as_scalar, args))
            return mx.MatAdd(*args)
        case "scale":
            return _as_scalar(args[0]) * args[1]
        case "times":
            return (
                mx.HadamardProduct(*args)
                if any(_is_matrix(arg) for arg in args)
                else args[0] * args[1]
            )
        case "matmul":
            return args[0] * args[1]
        case "power":
            return (
                mx.HadamardPower(args[0], expr.data)
                if _is_matrix(args[0])
                else args[0] ** expr.data
            )
        case "reciprocal":
            return 1 / args[0]
        case "T":
            return args[0].T
        case "tr":
            return mx.Trace(args[0])
        case "total":
            return _write_total(expr.args[0], args[0])
        case "diag":
            return mx.DiagMatrix(args[0])
        case "diagpart":
            return mx.DiagonalMatrix(args[0])
        case "inv":
            return mx.Inverse(args[0])
        case "kron":
            return mx.KroneckerProduct(*args)
        case "hstack":
            return mx.BlockMatrix([args])
        case "vstack":
            return mx.BlockMatrix([[arg] for arg in args])
        case "blkdiag":
            return mx.BlockDiagMatrix(*args)
        case "apply":
            return _write_function(cast("tuple[str, int]", expr.data), args[0])
        case "eye":
            return mx.Identity(rows)
        case "ones":
            return mx.OneMatrix(rows, cols)
        case "zeros":
            return mx.ZeroMatrix(rows, cols)
        case op:
            raise InputError(f"{op} has no counterpart in SymPy")


def _write_total(inside: Expr, written: SymPy) -> SymPy:
    """The sum of all entries: a squared norm, or the trace of a product with ones on both sides."""
    if inside.op == "power" and inside.data == 2:
        return norm2(write(inside.args[0]))
    left = mx.OneMatrix(1, _sympy_dim(inside.rows))
    right = mx.OneMatrix(_sympy_dim(inside.cols), 1)
    return mx.Trace(left * written * right)


def _write_function(which: tuple[str, int], argument: SymPy) -> SymPy:
    name, order = which
    z = sympy.Symbol("z")
    body = sympy.Function(name)(z)
    slope = sympy.Derivative(body, (z, order)) if order else body
    return ElementwiseFunction(sympy.Lambda(z, slope), argument)


def _as_scalar(value: SymPy) -> SymPy:
    """A 1 x 1 matrix as a number, which SymPy tells apart."""
    return mx.Trace(value) if _is_matrix(value) else value


def _is_matrix(value: SymPy) -> bool:
    return bool(getattr(value, "is_Matrix", False))


def _sympy_dim(dim: Dim) -> SymPy:
    if isinstance(dim, int):
        return sympy.Integer(dim)
    if isinstance(dim, str):
        return sympy.Symbol(dim)
    parts = dim.factors if isinstance(dim, Product) else dim.parts
    combine = sympy.Mul if isinstance(dim, Product) else sympy.Add
    return combine(*map(_sympy_dim, parts))


__all__ = ["Read", "equation", "inner", "norm2", "read", "write"]

"""Makers of expressions, one for each operation, with the shapes checked on the way in.

Sugar (`norm2`, `inner`, `sym`, `skew`, `tensor`, `contract`) is spelled out here and nowhere else;
whoever reads an `Expr` meets the core operations of `node` only.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from nonmixing.algebra import dims
from nonmixing.algebra.dims import Dim, same_size
from nonmixing.algebra.node import EVERYTHING, INVERSE, Expr, node, terms_bound
from nonmixing.algebra.printing import to_text
from nonmixing.errors import InputError, ShapeError

__all__ = [
    "EVERYTHING",
    "INVERSE",
    "Dim",
    "Expr",
    "add",
    "after",
    "apply",
    "blkdiag",
    "contract",
    "d",
    "diag",
    "diagpart",
    "dimension",
    "directional",
    "expect",
    "eye",
    "face_splitting",
    "fits",
    "grad",
    "hstack",
    "inner",
    "inv",
    "is_zero_literal",
    "kron",
    "matmul",
    "multiply",
    "negative",
    "norm2",
    "number",
    "ones",
    "power",
    "rebuilt",
    "reciprocal",
    "scalar",
    "skew",
    "subtract",
    "sym",
    "symbol",
    "tensor",
    "terms_bound",
    "times",
    "total",
    "tr",
    "transpose",
    "vec",
    "vstack",
    "zeros",
]


def spell(expr: Expr) -> str:
    """The expression and its shape, for messages."""
    text = to_text(expr)
    if len(text) > 60:
        text = text[:57] + "..."
    return f"{text} ({expr.rows} x {expr.cols})"


def fits(left: Expr, right: Expr) -> bool:
    """Whether two values have one shape, whatever their dimensions are."""
    return same_size(left.rows, right.rows) and same_size(left.cols, right.cols)


def number(value: int | Fraction) -> Expr:
    """A rational number."""
    return node("number", data=Fraction(value))


def scalar(name: str) -> Expr:
    """A declared scalar."""
    return node("scalar", data=name)


def dimension(dim: Dim) -> Expr:
    """A dimension used as a number."""
    if isinstance(dim, int):
        return number(dim)
    if isinstance(dim, str):
        return node("dim", data=dim)
    parts = dim.factors if isinstance(dim, dims.Product) else dim.parts
    combine = multiply if isinstance(dim, dims.Product) else add
    result = dimension(parts[0])
    for part in parts[1:]:
        result = combine(result, dimension(part))
    return result


def symbol(name: str, rows: Dim, cols: Dim) -> Expr:
    """A matrix by name."""
    return node("symbol", data=name, rows=rows, cols=cols)


def is_zero_literal(expr: Expr) -> bool:
    """Whether this is the number 0, which may stand for a zero matrix of any shape."""
    return expr.op == "number" and expr.data == 0


def add(*terms: Expr) -> Expr:
    """Sum of matrices of one shape; a literal 0 fits every shape."""
    parts = [t for t in terms if not is_zero_literal(t)]
    if not parts:
        return terms[0]
    first = parts[0]
    for term in parts[1:]:
        if not fits(term, first):
            raise ShapeError(
                f"cannot add {spell(first)} and {spell(term)}: "
                "the shapes differ (there is no broadcasting)"
            )
    if len(parts) == 1:
        return first
    flat: list[Expr] = []
    for part in parts:
        flat.extend(part.args if part.op == "add" else (part,))
    return node("add", tuple(flat), rows=first.rows, cols=first.cols)


def negative(expr: Expr) -> Expr:
    """Minus the expression."""
    if expr.op == "number" and isinstance(expr.data, Fraction):
        return number(-expr.data)
    return node("scale", (number(-1), expr), rows=expr.rows, cols=expr.cols)


def subtract(left: Expr, right: Expr) -> Expr:
    """Difference."""
    if not is_zero_literal(left) and not is_zero_literal(right) and not fits(left, right):
        raise ShapeError(
            f"cannot subtract {spell(right)} from {spell(left)}: "
            "the shapes differ (there is no broadcasting)"
        )
    return add(left, negative(right))


def times(left: Expr, right: Expr) -> Expr:
    """Elementwise product of two matrices of one shape."""
    if not fits(left, right):
        raise ShapeError(
            f"cannot multiply {spell(left)} and {spell(right)} elementwise: the shapes differ "
            "(use @ for the matrix product)"
        )
    return node("times", (left, right), rows=left.rows, cols=left.cols)


def multiply(left: Expr, right: Expr) -> Expr:
    """NumPy's `*`: elementwise between matrices of one shape, scaling when a side is 1 x 1."""
    if left.is_scalar:
        return node("scale", (left, right), rows=right.rows, cols=right.cols)
    if right.is_scalar:
        return node("scale", (right, left), rows=left.rows, cols=left.cols)
    return times(left, right)


def power(base: Expr, exponent: int) -> Expr:
    """Integer power; elementwise for a matrix, as in NumPy. Negative powers need a scalar base."""
    if exponent < 0:
        return power(reciprocal(base), -exponent)
    return node("power", (base,), data=exponent, rows=base.rows, cols=base.cols)


def reciprocal(expr: Expr) -> Expr:
    """One over a scalar expression (of declared scalars, dimensions and numbers)."""
    if not expr.is_scalar:
        raise ShapeError(
            f"cannot divide by {spell(expr)}: only scalars may be divided by (use inv for a matrix)"
        )
    _refuse_matrices_in_denominator(expr)
    if expr.op == "number" and isinstance(expr.data, Fraction):
        if expr.data == 0:
            raise InputError(
                "division by zero: the divisor is the number 0; remove it or write another one"
            )
        return number(1 / expr.data)
    return node("reciprocal", (expr,))


def _refuse_matrices_in_denominator(expr: Expr) -> None:
    if expr.op not in (
        "number",
        "scalar",
        "dim",
        "add",
        "scale",
        "times",
        "power",
        "reciprocal",
        "matmul",
    ):
        raise InputError(
            f"cannot divide by {spell(expr)}: "
            "only numbers, dimensions and declared scalars may stand in a divisor"
        )
    for arg in expr.args:
        _refuse_matrices_in_denominator(arg)


def matmul(left: Expr, right: Expr) -> Expr:
    """Matrix product."""
    if not same_size(left.cols, right.rows):
        raise ShapeError(
            f"cannot multiply {spell(left)} by {spell(right)}: "
            f"the inner dimensions are {left.cols} and {right.rows}"
        )
    return node("matmul", (left, right), rows=left.rows, cols=right.cols)


def transpose(expr: Expr) -> Expr:
    """Transpose."""
    if expr.op == "T":
        return expr.args[0]
    if expr.is_scalar:
        return expr
    return node("T", (expr,), rows=expr.cols, cols=expr.rows)


def _square(expr: Expr, what: str) -> None:
    if not same_size(expr.rows, expr.cols):
        raise ShapeError(f"{what} needs a square matrix; {spell(expr)} is not square")


def tr(expr: Expr) -> Expr:
    """Trace."""
    _square(expr, "tr")
    return node("tr", (expr,))


def total(expr: Expr) -> Expr:
    """Sum of all entries (`sum` in text)."""
    return node("total", (expr,))


def norm2(expr: Expr) -> Expr:
    """Squared Frobenius norm."""
    return total(node("power", (expr,), data=2, rows=expr.rows, cols=expr.cols))


def inner(left: Expr, right: Expr) -> Expr:
    """Frobenius inner product."""
    if not fits(left, right):
        raise ShapeError(
            f"inner needs two matrices of one shape; got {spell(left)} and {spell(right)}"
        )
    return total(times(left, right))


def sym(expr: Expr) -> Expr:
    """Symmetric part, (X + X^T) / 2."""
    _square(expr, "sym")
    return multiply(number(Fraction(1, 2)), add(expr, transpose(expr)))


def skew(expr: Expr) -> Expr:
    """Skew part, (X - X^T) / 2."""
    _square(expr, "skew")
    return multiply(number(Fraction(1, 2)), subtract(expr, transpose(expr)))


def diag(expr: Expr) -> Expr:
    """Diagonal matrix of a column vector."""
    if expr.cols != 1:
        raise ShapeError(
            f"diag needs a column (n x 1); got {spell(expr)} (diagpart keeps a matrix's diagonal)"
        )
    return node("diag", (expr,), rows=expr.rows, cols=expr.rows)


def diagpart(expr: Expr) -> Expr:
    """Diagonal part of a square matrix, kept as a matrix."""
    _square(expr, "diagpart")
    return node("diagpart", (expr,), rows=expr.rows, cols=expr.cols)


def inv(expr: Expr) -> Expr:
    """Inverse of a square matrix."""
    _square(expr, "inv")
    return node("inv", (expr,), rows=expr.rows, cols=expr.cols)


def eye(n: Dim) -> Expr:
    """Identity."""
    return node("eye", rows=n, cols=n)


def ones(m: Dim, n: Dim) -> Expr:
    """Matrix of ones."""
    return node("ones", rows=m, cols=n)


def zeros(m: Dim, n: Dim) -> Expr:
    """Zero matrix."""
    return node("zeros", rows=m, cols=n)


def kron(left: Expr, right: Expr) -> Expr:
    """Kronecker product: rows and columns of the left factor vary slowest."""
    rows, cols = dims.multiply(left.rows, right.rows), dims.multiply(left.cols, right.cols)
    return node("kron", (left, right), rows=rows, cols=cols)


def vec(expr: Expr) -> Expr:
    """The columns of a matrix, stacked into one."""
    return node("vec", (expr,), rows=dims.multiply(expr.cols, expr.rows), cols=1)


def face_splitting(left: Expr, right: Expr) -> Expr:
    """Row-wise Kronecker product: row i is the Kronecker product of the rows i."""
    if not same_size(left.rows, right.rows):
        raise ShapeError(
            f"face_splitting needs equally many rows; got {spell(left)} and {spell(right)}"
        )
    cols = dims.multiply(left.cols, right.cols)
    return node("face", (left, right), rows=left.rows, cols=cols)


def hstack(*parts: Expr) -> Expr:
    """Matrices side by side."""
    for part in parts[1:]:
        if not same_size(part.rows, parts[0].rows):
            raise ShapeError(
                f"hstack needs equally many rows; got {spell(parts[0])} and {spell(part)}"
            )
    cols = dims.add(*(part.cols for part in parts))
    return node("hstack", parts, rows=parts[0].rows, cols=cols)


def vstack(*parts: Expr) -> Expr:
    """Matrices one below the other."""
    for part in parts[1:]:
        if not same_size(part.cols, parts[0].cols):
            raise ShapeError(
                f"vstack needs equally many columns; got {spell(parts[0])} and {spell(part)}"
            )
    rows = dims.add(*(part.rows for part in parts))
    return node("vstack", parts, rows=rows, cols=parts[0].cols)


def blkdiag(*parts: Expr) -> Expr:
    """Block-diagonal matrix."""
    rows, cols = dims.add(*(p.rows for p in parts)), dims.add(*(p.cols for p in parts))
    return node("blkdiag", parts, rows=rows, cols=cols)


def tensor(first: Expr, second: Expr, third: Expr) -> Expr:
    """The third-order tensor sum_k P[o, k] W[k, i] V[k, j] as a matrix, rows o, columns (i, j).

    Its value is P @ face_splitting(W, V); `contract` undoes the flattening.
    """
    if not same_size(first.cols, second.rows) or not same_size(second.rows, third.rows):
        raise ShapeError(
            "tensor(P, W, V) sums over the columns of P and the rows of W and V; "
            f"got {spell(first)}, {spell(second)}, {spell(third)}"
        )
    return matmul(first, face_splitting(second, third))


def contract(flattened: Expr, *vectors: Expr) -> Expr:
    """A flattened tensor (o; i, j) with columns y in j, or x in i and y in j.

    contract(T, y) is the matrix with rows o and columns i; contract(T, x, y) is a column.
    """
    for vector in vectors:
        if vector.cols != 1:
            raise ShapeError(f"contract needs columns (n x 1); got {spell(vector)}")
    if len(vectors) == 2:
        if not same_size(flattened.cols, dims.multiply(vectors[0].rows, vectors[1].rows)):
            raise ShapeError(
                f"contract: the columns of {spell(flattened)} are not pairs "
                f"({vectors[0].rows}, {vectors[1].rows})"
            )
        return matmul(flattened, kron(vectors[0], vectors[1]))
    last = vectors[0].rows
    parts = dims.factors(flattened.cols)
    if len(parts) < 2 or parts[-1] != last:
        raise ShapeError(
            f"contract: the columns of {spell(flattened)} are not pairs (i, j) with j up to {last}"
        )
    return matmul(flattened, kron(eye(dims.multiply(*parts[:-1])), vectors[0]))


def apply(name: str, order: int, expr: Expr) -> Expr:
    """An opaque function, or its derivative of an order, entry by entry."""
    return node("apply", (expr,), data=(name, order), rows=expr.rows, cols=expr.cols)


def expect(expr: Expr, variable: Expr) -> Expr:
    """Mean over a standard Gaussian column."""
    if variable.op != "symbol" or variable.cols != 1:
        raise InputError(
            f"expect needs a declared column (n x 1) to average over; {spell(variable)} is none"
        )
    return node("expect", (expr, variable), data=variable.data, rows=expr.rows, cols=expr.cols)


def _is_variable(expr: Expr) -> bool:
    return expr.op in ("symbol", "scalar")


def grad(f: Expr, variable: Expr) -> Expr:
    """Frobenius gradient of a scalar, in the shape of the variable."""
    if not f.is_scalar:
        raise ShapeError(f"grad needs a scalar to differentiate; {spell(f)} is not 1 x 1")
    if not _is_variable(variable):
        raise InputError(
            f"grad differentiates in a declared matrix; {spell(variable)} is an expression"
        )
    return node("grad", (f, variable), data=variable.data, rows=variable.rows, cols=variable.cols)


def directional(f: Expr, variable: Expr, direction: Expr) -> Expr:
    """Directional derivative D(F, X, H)."""
    if not _is_variable(variable):
        raise InputError(
            f"D differentiates in a declared matrix; {spell(variable)} is an expression"
        )
    if not fits(direction, variable):
        raise ShapeError(
            "D needs a direction of the variable's shape; "
            f"got {spell(variable)}, {spell(direction)}"
        )
    return node("D", (f, direction, variable), data=variable.data, rows=f.rows, cols=f.cols)


def d(expr: Expr) -> Expr:
    """Derivative along the flow of the setting."""
    return node("d", (expr,), rows=expr.rows, cols=expr.cols)


def after(expr: Expr) -> Expr:
    """Value after one step of the setting."""
    return node("after", (expr,), rows=expr.rows, cols=expr.cols)


def rebuilt(expr: Expr, args: tuple[Expr, ...]) -> Expr:
    """The same operation on other arguments.

    Raises:
        ShapeError: they do not fit.
    """
    two: dict[str, Callable[[Expr, Expr], Expr]] = {
        "scale": multiply,
        "times": times,
        "matmul": matmul,
        "kron": kron,
        "face": face_splitting,
        "grad": grad,
        "expect": expect,
    }
    one: dict[str, Callable[[Expr], Expr]] = {
        "reciprocal": reciprocal,
        "T": transpose,
        "tr": tr,
        "total": total,
        "diag": diag,
        "diagpart": diagpart,
        "inv": inv,
        "d": d,
        "after": after,
        "vec": vec,
    }
    many: dict[str, Callable[..., Expr]] = {
        "add": add,
        "hstack": hstack,
        "vstack": vstack,
        "blkdiag": blkdiag,
    }
    if expr.op in two:
        return two[expr.op](*args)
    if expr.op in one:
        return one[expr.op](*args)
    if expr.op in many:
        return many[expr.op](*args)
    if expr.op == "power" and isinstance(expr.data, int):
        return power(args[0], expr.data)
    if expr.op == "D":
        return directional(args[0], args[2], args[1])
    if expr.op == "apply" and isinstance(expr.data, tuple):
        return apply(*expr.data, args[0])
    return expr

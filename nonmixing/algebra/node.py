"""What both doors (text, SymPy) deliver: trees of nodes over a small set of operations.

A scalar is a 1 x 1 matrix, so that one set of rules serves both. `expr` has the makers, which check
shapes; whoever reads an `Expr` meets these operations only:

============  ========================  ============================================================
operation     arguments, data           value
============  ========================  ============================================================
number        data: Fraction            a rational number
scalar, dim   data: name                a declared scalar; a dimension used as a number
symbol        data: name                a declared matrix
add           two or more of one shape  sum
scale         1 x 1, matrix             scalar multiple
times         two of one shape          elementwise (Hadamard) product
power         one, data: exponent >= 0  elementwise power
reciprocal    1 x 1                     1 / scalar
matmul        p x q, q x s              matrix product
T, tr, total  one                       transpose, trace, sum of all entries
diag          n x 1                     the diagonal matrix of a column
diagpart      n x n                     the diagonal part, kept as a matrix
inv           n x n                     inverse
eye, ones     none                      identity, matrix of ones
zeros         none                      zero matrix
grad          f (1 x 1), data: name     Frobenius gradient of f, every entry of the variable free
D             F, H, data: name          directional derivative of F in the variable along H
d             one                       derivative along the flow of the setting
after         one                       value after one step of the setting
kron          two                       Kronecker product
vec           one                       the columns, stacked
face          two of equally many rows  face-splitting (row-wise Kronecker) product
hstack        of equally many rows      side by side
vstack        of equally many columns   one below the other
blkdiag       two or more               block-diagonal matrix
apply         one, data: (name, order)  an opaque function or derivative of it, elementwise
expect        F, x                      mean of F over a standard Gaussian column x
============  ========================  ============================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import comb, prod
from threading import Lock
from weakref import WeakValueDictionary

from nonmixing.algebra.dims import Dim

__all__ = ["EVERYTHING", "INVERSE", "Dim", "Expr", "node", "terms_bound"]

INVERSE = "^-1"
"""Suffix of the name that stands for a symbol's inverse; no identifier can end in it."""


Data = str | int | Fraction | tuple[str, int] | None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Expr:
    """A node: operation, arguments, data, and the shape of its value. Made by `node` alone.

    Equal expressions are one object, so that comparing and hashing them costs nothing: they are
    keys of every memo. `names` are the matrices, scalars and functions that it depends on, with
    `EVERYTHING` where it depends on velocities or updates.
    """

    op: str
    args: tuple[Expr, ...] = ()
    data: Data = None
    rows: Dim = 1
    cols: Dim = 1
    names: frozenset[str] = field(default=frozenset(), init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _names(self))

    def __reduce__(self) -> tuple[object, ...]:
        """Copies and unpickled ones are the one object, too."""
        return node, (self.op, self.args, self.data, self.rows, self.cols)

    @property
    def shape(self) -> tuple[Dim, Dim]:
        """Rows and columns."""
        return self.rows, self.cols

    @property
    def is_scalar(self) -> bool:
        """Whether the value is 1 x 1."""
        return self.rows == 1 and self.cols == 1


EVERYTHING = "*"
"""Stands among the names of an expression that depends on the whole setting (d, after)."""


def _names(expr: Expr) -> frozenset[str]:
    """The matrices, scalars and functions that an expression depends on."""
    if expr.op in ("symbol", "scalar"):
        return frozenset({str(expr.data)})
    own = frozenset({EVERYTHING}) if expr.op in ("d", "after") else frozenset[str]()
    if isinstance(expr.data, tuple):
        own = frozenset({expr.data[0]})
    names = own.union(*(arg.names for arg in expr.args))
    return names - {str(expr.data)} if expr.op == "expect" else names


_nodes: WeakValueDictionary[tuple[object, ...], Expr] = WeakValueDictionary()
_making = Lock()


def node(
    op: str,
    args: tuple[Expr, ...] = (),
    data: Data = None,
    rows: Dim = 1,
    cols: Dim = 1,
) -> Expr:
    """The node of these parts: the one there is, or a new one."""
    key = (op, args, data, rows, cols)
    known = _nodes.get(key)
    if known is None:
        with _making:
            known = _nodes.get(key)
            if known is None:
                known = _nodes[key] = Expr(op, args, data, rows, cols)
    return known


MANY_TERMS = 10**9
"""A bound on terms is not counted further than this."""


def terms_bound(expr: Expr, known: dict[Expr, int] | None = None) -> int:
    """A bound on the number of terms of the expanded form, derivatives not counted.

    It is capped at `MANY_TERMS`, more than anybody expands.
    """
    known = {} if known is None else known
    if expr not in known:
        inside = [terms_bound(arg, known) for arg in expr.args]
        if expr.op == "add":
            known[expr] = sum(inside)
        elif expr.op == "power" and isinstance(expr.data, int):
            # Numbers commute, so that a power of a sum has multinomially many terms.
            count = inside[0] if expr.is_scalar else 2 * inside[0]
            known[expr] = comb(count + expr.data - 1, expr.data)
        else:
            known[expr] = prod(max(x, 1) for x in inside)
        known[expr] = min(known[expr], MANY_TERMS)
    return known[expr]

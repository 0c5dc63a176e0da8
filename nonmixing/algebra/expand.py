"""Expressions to index form, and the calculus on it.

`Expander.entry(expr, r, c)` is the entry of a matrix expression at a row index and a column index.
An index is a free label (< 0) where the dimension is symbolic, and a constant (>= 0) where it is
expanded: dimension 1 always, other integers when `expand_integers` is set (a claim at integer sizes
is first decided with these sizes as symbols: true for all sizes is true at one). Sums over an index
are contractions, or plain sums over constants.

Derivatives are a derivation on the atoms: each factor X[i, j] in turn gives way to what X moves by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from nonmixing.algebra import dims
from nonmixing.algebra import expr as ex
from nonmixing.algebra.canonical import Factor, Head, row_and_column
from nonmixing.algebra.dims import Block, Dim, Index
from nonmixing.algebra.gaussian import gaussian_mean
from nonmixing.algebra.node import INVERSE, Expr
from nonmixing.algebra.setting import Setting
from nonmixing.algebra.terms import (
    Atom,
    Component,
    Entry,
    Poly,
    Reciprocal,
    Scalar,
    Table,
    open_factors,
)
from nonmixing.errors import InputError

Motion = Mapping[str, Callable[[Index, Index], Poly]]
"""What each moving matrix moves by, as a function of the two indices."""


class Expander:
    """Expands expressions of one setting over one table. Kinds are not used here (see `kinds`)."""

    def __init__(self, setting: Setting, table: Table, *, expand_integers: bool = False) -> None:
        self.setting = setting
        self.table = table
        self.expand_integers = expand_integers
        self._known: dict[tuple[Expr, Index, Index], Poly] = {}
        self._flow: Motion = {
            name: self._entries(velocity) for name, velocity in setting.velocity.items()
        }
        self._step: Motion = {
            name: self._entries(update) for name, update in setting.update.items()
        }

    def _entries(self, expr: Expr) -> Callable[[Index, Index], Poly]:
        return lambda row, col: self.entry(expr, row, col)

    # --- indices ----------------------------------------------------------------------------------

    def indices(self, dim: Dim, label: int) -> Iterable[Index]:
        """The values that a free index over a dimension takes, with labels from `label` down."""
        return (index for index, _ in dims.indices(dim, label, self.expand_integers))

    def _sum(self, dim: Dim, label: int, summand: Callable[[Index], Poly]) -> Poly:
        result: Poly = {}
        for index, labels in dims.indices(dim, label, self.expand_integers):
            part = summand(index)
            for each, over in labels:
                part = self.table.contract(part, each, over)
            self.table.add_to(result, part)
        return result

    def _delta(self, one: Index, other: Index) -> Poly:
        """Kronecker delta of two indices over one dimension."""
        if isinstance(one, int) and isinstance(other, int):
            return self.table.delta(one, other)
        if isinstance(one, Block) and isinstance(other, Block):
            return self._delta(one.index, other.index) if one.number == other.number else {}
        if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
            result = self.table.constant(1)
            for x, y in zip(one, other, strict=True):
                result = self.table.multiply(result, self._delta(x, y))
            return result
        raise dims.NeedsExpansion

    def _over(self, index: Index, dim: Dim, other: Dim) -> Index:
        """The index, for a dimension that is the same number as its own, maybe in other form."""
        if dim != other:
            raise dims.NeedsExpansion
        return index

    # --- entries ----------------------------------------------------------------------------------

    def entry(self, expr: Expr, r: Index, c: Index) -> Poly:
        """Entry (r, c) of an expression, with every matrix taken as a general one.

        Raises:
            NeedsExpansion: an index over an integer must be taken apart first, or dimensions agree
                as numbers only.
        """
        key = (expr, r, c)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._entry(expr, r, c)
        return known

    def _entry(self, expr: Expr, r: Index, c: Index) -> Poly:
        table, args = self.table, expr.args
        match expr.op:
            case "number":
                return table.constant(_fraction(expr))
            case "scalar":
                return table.of(Scalar(str(expr.data)))
            case "dim":
                return table.dimension(str(expr.data))
            case "symbol":
                return self._symbol(str(expr.data), expr.rows, expr.cols, r, c)
            case "add" | "times":
                parts = [self._like(expr, arg, r, c) for arg in args]
                return table.add(*parts) if expr.op == "add" else table.multiply(*parts)
            case "scale":
                return table.multiply(self.entry(args[0], 0, 0), self.entry(args[1], r, c))
            case "power":
                return table.power(self.entry(args[0], r, c), _integer(expr))
            case "reciprocal":
                divisor = self.entry(args[0], 0, 0)
                if not table.clear_denominators(divisor):
                    raise InputError(f"cannot divide by {ex.spell(args[0])}: it is identically 0")
                return table.reciprocal(divisor)
            case "T":
                return self.entry(args[0], c, r)
            case "diag":
                return table.multiply(self._delta(r, c), self.entry(args[0], r, 0))
            case "diagpart":
                return table.multiply(self._delta(r, c), self.entry(args[0], r, r))
            case "inv":
                return self._inverse(args[0], r, c)
            case "eye":
                return self._delta(r, c)
            case "ones":
                return table.constant(1)
            case "zeros":
                return {}
            case "matmul" | "tr" | "total":
                return self._summed(expr, r, c)
            case "kron" | "vec" | "face" | "hstack" | "vstack" | "blkdiag":
                return self._shaped(expr, r, c)
            case _:
                return self._calculus(expr, r, c)

    def _like(self, expr: Expr, arg: Expr, r: Index, c: Index) -> Poly:
        """Entry of an argument of the expression's own shape."""
        return self.entry(
            arg, self._over(r, expr.rows, arg.rows), self._over(c, expr.cols, arg.cols)
        )

    def _summed(self, expr: Expr, r: Index, c: Index) -> Poly:
        """Entry of an operation that sums over an index."""
        inside = expr.args[0]
        below = dims.lowest(r, c) - 1
        if expr.op == "matmul":
            right = expr.args[1]

            def product(k: Index) -> Poly:
                return self.table.multiply(
                    self.entry(inside, r, k),
                    self.entry(right, self._over(k, inside.cols, right.rows), c),
                )

            return self._sum(inside.cols, below, product)
        if expr.op == "tr":
            return self._sum(
                inside.rows,
                below,
                lambda k: self.entry(inside, k, self._over(k, inside.rows, inside.cols)),
            )
        further = below - dims.width(inside.rows)
        return self._sum(
            inside.rows,
            below,
            lambda i: self._sum(inside.cols, further, lambda j: self.entry(inside, i, j)),
        )

    def _shaped(self, expr: Expr, r: Index, c: Index) -> Poly:
        """Entry of a Kronecker product or of blocks."""
        args = expr.args
        match expr.op:
            case "kron":
                left, right = args
                i, k = dims.split(r, left.rows, right.rows)
                j, m = dims.split(c, left.cols, right.cols)
                return self.table.multiply(self.entry(left, i, j), self.entry(right, k, m))
            case "vec":
                j, i = dims.split(r, args[0].cols, args[0].rows)
                return self.entry(args[0], i, j)
            case "face":
                left, right = args
                i, j = dims.split(c, left.cols, right.cols)
                row = self._over(r, left.rows, right.rows)
                return self.table.multiply(self.entry(left, r, i), self.entry(right, row, j))
            case "hstack":
                place, j = dims.block(c, tuple(arg.cols for arg in args))
                return self.entry(args[place], self._over(r, expr.rows, args[place].rows), j)
            case "vstack":
                place, i = dims.block(r, tuple(arg.rows for arg in args))
                return self.entry(args[place], i, self._over(c, expr.cols, args[place].cols))
            case _:
                place, i = dims.block(r, tuple(arg.rows for arg in args))
                other, j = dims.block(c, tuple(arg.cols for arg in args))
                return self.entry(args[place], i, j) if place == other else {}

    def _calculus(self, expr: Expr, r: Index, c: Index) -> Poly:
        """Entry of a derivative, of a step, of a mean, or of an opaque function."""
        args = expr.args
        below = dims.lowest(r, c) - 1
        match expr.op:
            case "d":
                return self.along(self.entry(args[0], r, c), self._flow, below)
            case "after":
                return self.substitute(self.entry(args[0], r, c), self._step, below)
            case "D":
                motion = {str(expr.data): self._entries(args[1])}
                return self.along(self.entry(args[0], r, c), motion, below)
            case "grad":
                return self.along(
                    self.entry(args[0], 0, 0), {str(expr.data): self._unit(r, c)}, below
                )
            case "expect":
                return gaussian_mean(self.table, self.entry(args[0], r, c), str(expr.data))
            case "apply":
                name, order = _function(expr)
                labelled = tuple(
                    (label, over)
                    for index, dim in ((r, expr.rows), (c, expr.cols))
                    for label, over in dims.labels(index, dim)
                )
                labels, over = dict(labelled).keys(), dict(labelled).values()
                return self.table.applied(
                    name, order, self.entry(args[0], r, c), tuple(labels), tuple(over)
                )
            case other:
                raise InputError(f"the operation {other!r} is not in the language")

    def _unit(self, r: Index, c: Index) -> Callable[[Index, Index], Poly]:
        """The motion of the single entry (r, c)."""
        return lambda i, j: self.table.multiply(self._delta(i, r), self._delta(j, c))

    def _symbol(self, name: str, rows: Dim, cols: Dim, r: Index, c: Index) -> Poly:
        if not isinstance(r, int) or not isinstance(c, int):
            raise dims.NeedsExpansion
        if r >= 0 and c >= 0:
            return self.table.of(Entry(name, r, c))
        fixed = (r if r >= 0 else -1, c if c >= 0 else -1)
        over = tuple(str(dim) for dim, index in ((rows, r), (cols, c)) if index < 0)
        slots = tuple(index for index in (r, c) if index < 0)
        sign, mono = self.table.product([(Head(name, fixed, over), slots)])
        return {mono: sign}

    def _inverse(self, inside: Expr, r: Index, c: Index) -> Poly:
        """Entry of an inverse.

        Of an invertible symbol, or of products, transposes and multiples of such.
        """
        kinds = (
            self.setting.kinds_of(str(inside.data)) if inside.op == "symbol" else frozenset[str]()
        )
        match inside.op:
            case "symbol" if kinds & {"invertible", "orthogonal"}:
                return self._symbol(f"{inside.data}{INVERSE}", inside.rows, inside.cols, r, c)
            case "eye":
                return self._delta(r, c)
            case "inv":
                return self.entry(inside.args[0], r, c)
            case "T":
                return self._inverse(inside.args[0], c, r)
            case "scale":
                factor = self.entry(ex.reciprocal(inside.args[0]), 0, 0)
                return self.table.multiply(factor, self._inverse(inside.args[1], r, c))
            case "matmul" if all(arg.rows == arg.cols for arg in inside.args):
                left, right = inside.args
                return self._sum(
                    left.rows,
                    dims.lowest(r, c) - 1,
                    lambda k: self.table.multiply(
                        self._inverse(right, r, k), self._inverse(left, k, c)
                    ),
                )
            case _:
                raise InputError(
                    f"inv({ex.spell(inside)}): only matrices declared invertible or orthogonal, "
                    "and products, transposes and multiples of them, can be inverted; "
                    "declare the kind under [kinds]"
                )

    # --- calculus ---------------------------------------------------------------------------------

    def along(self, poly: Poly, motion: Motion, below: int) -> Poly:
        """Directional derivative: each moving factor in turn gives way to its motion."""
        return self.table.derive(poly, lambda atom: self._change(atom, motion, below))

    def _change(self, atom: Atom, motion: Motion, below: int) -> Poly | None:
        match atom:
            case Scalar(name):
                return motion[name](0, 0) if name in motion else None
            case Entry(name, row, col):
                return self._factor_motion(name, row, col, motion, below)
            case Component(key):
                return self._component_change(key, motion, below)
            case Reciprocal(items):  # d(1/p) = -dp / p^2
                inside = self.along(dict(items), motion, below)
                square: Poly = {((self.table.number(atom), 2),): -1}
                return self.table.multiply(square, inside)
            case _:
                return None

    def _factor_motion(
        self, name: str, i: Index, j: Index, motion: Motion, below: int
    ) -> Poly | None:
        """What the factor name[i, j] moves by; None if it stands still."""
        if name in motion:
            return motion[name](i, j)
        base = name.removesuffix(INVERSE)
        if base == name or base not in motion:
            return None
        # d(X^-1) = -X^-1 dX X^-1
        rows = self.setting.matrices[base][0]
        step = motion[base]
        table = self.table

        def inner(k: Index) -> Poly:
            left = self._symbol(name, rows, rows, i, k)
            return self._sum(
                rows,
                below - 1,
                lambda m: table.multiply(
                    table.multiply(left, step(k, m)), self._symbol(name, rows, rows, m, j)
                ),
            )

        return table.scale(self._sum(rows, below, inner), -1)

    def _component_change(self, key: tuple[Factor, ...], motion: Motion, below: int) -> Poly | None:
        result: Poly = {}
        moved_any = False
        for position, (head, slots) in enumerate(key):
            applied = self.table.function(head)
            base = head.name.removesuffix(INVERSE)
            if applied is None and head.name not in motion and base not in motion:
                continue
            moved_any = True
            rest, opened, free = open_factors(key, (position,), below)
            labels = tuple(free.get(label, label) for label in slots)
            lower = below - len(opened)
            if applied is None:
                i, j = row_and_column(head, labels)
                change = self._factor_motion(head.name, i, j, motion, lower)
            else:  # phi(z)' = phi'(z) z'
                inside = self.along(applied.at(self.table, labels), motion, lower)
                slope = self.table.applied(
                    applied.name,
                    applied.order + 1,
                    applied.at(self.table, labels),
                    labels,
                    head.dims,
                )
                change = self.table.multiply(slope, inside) if inside else None
            if not change:
                continue
            sign, mono = self.table.product(rest)
            self._close(result, self.table.multiply({mono: sign}, change) if sign else {}, opened)
        return result if moved_any else None

    def _close(self, result: Poly, poly: Poly, opened: Iterable[tuple[int, str]]) -> None:
        for label, dim in opened:
            poly = self.table.contract(poly, label, dim)
        self.table.add_to(result, poly)

    def substitute(self, poly: Poly, values: Motion, below: int) -> Poly:
        """Put the given values in the place of matrices, all at once."""

        def image(atom: Atom) -> Poly | None:
            match atom:
                case Scalar(name):
                    return values[name](0, 0) if name in values else None
                case Entry(name, row, col):
                    self._refuse_inverse(name, values)
                    return values[name](row, col) if name in values else None
                case Component(key):
                    return self._component_substitute(key, values, below)
                case Reciprocal(items):
                    return self.table.reciprocal(self.substitute(dict(items), values, below))
                case _:
                    return None

        return self.table.map_atoms(poly, image)

    def _refuse_inverse(self, name: str, values: Motion) -> None:
        base = name.removesuffix(INVERSE)
        if base != name and base in values:
            raise InputError(
                f"after(inv({base})): the inverse of an updated matrix is outside the language"
            )

    def _component_substitute(
        self, key: tuple[Factor, ...], values: Motion, below: int
    ) -> Poly | None:
        for head, _ in key:
            self._refuse_inverse(head.name, values)
        places = tuple(
            i
            for i, (head, _) in enumerate(key)
            if head.name in values or self.table.function(head) is not None
        )
        if not places:
            return None
        rest, opened, free = open_factors(key, places, below)
        sign, mono = self.table.product(rest)
        poly: Poly = {mono: sign} if sign else {}
        for place in places:
            head, slots = key[place]
            labels = tuple(free.get(label, label) for label in slots)
            applied = self.table.function(head)
            if applied is None:
                value = values[head.name](*row_and_column(head, labels))
            else:
                lower = below - len(opened)
                inside = self.substitute(applied.at(self.table, labels), values, lower)
                value = self.table.applied(applied.name, applied.order, inside, labels, head.dims)
            poly = self.table.multiply(poly, value)
        result: Poly = {}
        self._close(result, poly, opened)
        return result


def _function(expr: Expr) -> tuple[str, int]:
    if not isinstance(expr.data, tuple):
        raise TypeError(f"an apply node holds {expr.data!r}")
    return expr.data


def _fraction(expr: Expr) -> Fraction:
    if not isinstance(expr.data, Fraction):
        raise TypeError(f"a number node holds {expr.data!r}")
    return expr.data


def _integer(expr: Expr) -> int:
    if not isinstance(expr.data, int):
        raise TypeError(f"a power node holds {expr.data!r}")
    return expr.data

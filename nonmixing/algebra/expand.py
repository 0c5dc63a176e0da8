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

from nonmixing.algebra import expr as ex
from nonmixing.algebra.canonical import Factor, Head
from nonmixing.algebra.expr import Dim, Expr
from nonmixing.algebra.setting import Setting
from nonmixing.algebra.terms import Atom, Component, Entry, Poly, Reciprocal, Scalar, Table
from nonmixing.errors import InputError

INVERSE = "^-1"
"""Suffix of the head that stands for a symbol's inverse; no identifier can end in it."""

Motion = Mapping[str, Callable[[int, int], Poly]]
"""What each moving matrix moves by, as a function of the two indices."""


class Expander:
    """Expands expressions of one setting over one table. Kinds are not used here (see `kinds`)."""

    def __init__(self, setting: Setting, table: Table, *, expand_integers: bool = False) -> None:
        self.setting = setting
        self.table = table
        self.expand_integers = expand_integers
        self._known: dict[tuple[Expr, int, int], Poly] = {}
        self._flow: Motion = {
            name: self._entries(velocity) for name, velocity in setting.velocity.items()
        }
        self._step: Motion = {
            name: self._entries(update) for name, update in setting.update.items()
        }

    def _entries(self, expr: Expr) -> Callable[[int, int], Poly]:
        return lambda row, col: self.entry(expr, row, col)

    # --- indices ----------------------------------------------------------------------------------

    def indices(self, dim: Dim, label: int) -> Iterable[int]:
        """The values an index over this dimension takes: the label, or constants."""
        if dim == 1:
            return (0,)
        if isinstance(dim, int) and self.expand_integers:
            return range(dim)
        return (label,)

    def _sum(self, dim: Dim, label: int, summand: Callable[[int], Poly]) -> Poly:
        result: Poly = {}
        for index in self.indices(dim, label):
            part = summand(index)
            self.table.add_to(
                result, self.table.contract(part, index, str(dim)) if index < 0 else part
            )
        return result

    # --- entries ----------------------------------------------------------------------------------

    def entry(self, expr: Expr, r: int, c: int) -> Poly:
        """Entry (r, c) of an expression, with every matrix taken as a general one."""
        key = (expr, r, c)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._entry(expr, r, c)
        return known

    def _entry(self, expr: Expr, r: int, c: int) -> Poly:
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
            case "add":
                return table.add(*(self.entry(arg, r, c) for arg in args))
            case "scale":
                return table.multiply(self.entry(args[0], 0, 0), self.entry(args[1], r, c))
            case "times":
                return table.multiply(self.entry(args[0], r, c), self.entry(args[1], r, c))
            case "power":
                return table.power(self.entry(args[0], r, c), _integer(expr))
            case "reciprocal":
                return table.reciprocal(self.entry(args[0], 0, 0))
            case "T":
                return self.entry(args[0], c, r)
            case "diag":
                return table.multiply(table.delta(r, c), self.entry(args[0], r, 0))
            case "diagpart":
                return table.multiply(table.delta(r, c), self.entry(args[0], r, r))
            case "inv":
                return self._inverse(args[0], r, c)
            case "eye":
                return table.delta(r, c)
            case "ones":
                return table.constant(1)
            case "zeros":
                return {}
            case "matmul" | "tr" | "total":
                return self._summed(expr, r, c)
            case _:
                return self._calculus(expr, r, c)

    def _summed(self, expr: Expr, r: int, c: int) -> Poly:
        """Entry of an operation that sums over an index."""
        inside = expr.args[0]
        below = _below(r, c)
        if expr.op == "matmul":
            right = expr.args[1]
            return self._sum(
                inside.cols,
                below,
                lambda k: self.table.multiply(self.entry(inside, r, k), self.entry(right, k, c)),
            )
        if expr.op == "tr":
            return self._sum(inside.rows, below, lambda k: self.entry(inside, k, k))
        return self._sum(
            inside.rows,
            below,
            lambda i: self._sum(inside.cols, below - 1, lambda j: self.entry(inside, i, j)),
        )

    def _calculus(self, expr: Expr, r: int, c: int) -> Poly:
        """Entry of a derivative or of a step."""
        args = expr.args
        below = _below(r, c)
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
            case other:
                raise InputError(f"the operation {other!r} is not in the language")

    def _unit(self, r: int, c: int) -> Callable[[int, int], Poly]:
        """The motion of the single entry (r, c)."""
        return lambda i, j: self.table.multiply(self.table.delta(i, r), self.table.delta(j, c))

    def _symbol(self, name: str, rows: Dim, cols: Dim, r: int, c: int) -> Poly:
        if r >= 0 and c >= 0:
            return self.table.of(Entry(name, r, c))
        fixed = (r if r >= 0 else -1, c if c >= 0 else -1)
        dims = tuple(str(dim) for dim, index in ((rows, r), (cols, c)) if index < 0)
        slots = tuple(index for index in (r, c) if index < 0)
        sign, mono = self.table.product([(Head(name, fixed, dims), slots)])
        return {mono: sign}

    def _inverse(self, inside: Expr, r: int, c: int) -> Poly:
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
                return self.table.delta(r, c)
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
                    _below(r, c),
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

    def _factor_motion(self, name: str, i: int, j: int, motion: Motion, below: int) -> Poly | None:
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

        def inner(k: int) -> Poly:
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
            if head.name not in motion and head.name.removesuffix(INVERSE) not in motion:
                continue
            moved_any = True
            rest, opened, free = _open(key, (position,), below)
            i, j = _two_indices(head, tuple(free.get(label, label) for label in slots))
            change = self._factor_motion(head.name, i, j, motion, below - len(opened))
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
        places = tuple(i for i, (head, _) in enumerate(key) if head.name in values)
        if not places:
            return None
        rest, opened, free = _open(key, places, below)
        sign, mono = self.table.product(rest)
        poly: Poly = {mono: sign} if sign else {}
        for place in places:
            head, slots = key[place]
            i, j = _two_indices(head, tuple(free.get(label, label) for label in slots))
            poly = self.table.multiply(poly, values[head.name](i, j))
        result: Poly = {}
        self._close(result, poly, opened)
        return result


def _below(r: int, c: int) -> int:
    """The label from which downwards none is in use."""
    return min(r, c, -2) - 1


def _open(
    key: tuple[Factor, ...], places: tuple[int, ...], below: int
) -> tuple[list[Factor], list[tuple[int, str]], dict[int, int]]:
    """Take factors out of a component.

    Returns:
        The rest, with the summed labels of the removed factors made free; these labels with
        their dimensions; and the free label of each summed one.
    """
    free: dict[int, int] = {}
    opened: list[tuple[int, str]] = []
    for place in places:
        head, slots = key[place]
        for label, dim in zip(slots, head.dims, strict=True):
            if label >= 0 and label not in free:
                free[label] = below - len(opened)
                opened.append((free[label], dim))
    rest = [
        (head, tuple(free.get(label, label) for label in slots))
        for position, (head, slots) in enumerate(key)
        if position not in places
    ]
    return rest, opened, free


def _two_indices(head: Head, slots: tuple[int, ...]) -> tuple[int, int]:
    """Row and column index of a factor, its fixed ones included."""
    remaining = iter(slots)
    row, col = (fixed if fixed >= 0 else next(remaining) for fixed in head.fixed)
    return row, col


def _fraction(expr: Expr) -> Fraction:
    if not isinstance(expr.data, Fraction):
        raise TypeError(f"a number node holds {expr.data!r}")
    return expr.data


def _integer(expr: Expr) -> int:
    if not isinstance(expr.data, int):
        raise TypeError(f"a power node holds {expr.data!r}")
    return expr.data

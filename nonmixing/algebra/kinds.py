"""Declared kinds, used on the index form after all derivatives have been taken.

Kinds that are linear, and so can be parametrised, are imposed here: a diagonal matrix becomes a
vector, D[i, j] = delta(i, j) D[i]; symmetric and skew heads let canonical labelling swap their
slots; the inverse of a symmetric, skew or diagonal matrix is one too, that of an orthogonal matrix
is its transpose; and D[i] D^-1[i] = 1 for an invertible diagonal, D[i] D[i] = 1 for an orthogonal
one. The other kinds are equations (`equations`), used like those that a claim assumes: P^T P = I
for orthonormal columns, X X^-1 = I for an invertible matrix.
"""

from __future__ import annotations

from nonmixing.algebra import expr as ex
from nonmixing.algebra.canonical import SKEW, SYMMETRIC, Factor, Head
from nonmixing.algebra.node import INVERSE
from nonmixing.algebra.printing import to_text
from nonmixing.algebra.setting import Equation, Setting
from nonmixing.algebra.terms import Atom, Component, Entry, Poly, Table, identify


def equations(setting: Setting, names: tuple[str, ...]) -> tuple[Equation, ...]:
    """What the kinds that are no linear ones say of the named matrices, as equations."""
    result: list[Equation] = []
    for name in names:
        kinds = setting.kinds_of(name)
        matrix = setting.symbol(name)
        if "diagonal" in kinds:
            continue
        if kinds & {"orthonormal", "orthogonal"}:
            result.append(_identity(ex.matmul(ex.transpose(matrix), matrix)))
        if "orthogonal" in kinds:
            result.append(_identity(ex.matmul(matrix, ex.transpose(matrix))))
        elif "invertible" in kinds:
            result.append(_identity(ex.matmul(matrix, ex.inv(matrix))))
            result.append(_identity(ex.matmul(ex.inv(matrix), matrix)))
    return tuple(result)


def _identity(product: ex.Expr) -> Equation:
    one = ex.eye(product.rows)
    return Equation(product, one, f"{to_text(product)} == {to_text(one)}")


class Kinds:
    """The declared kinds of a setting, ready to be imposed on polynomials of a table."""

    def __init__(self, setting: Setting, table: Table) -> None:
        self.table = table
        self.diagonal: set[str] = set()
        self.symmetry: dict[str, int] = {}
        self.partner: dict[str, str] = {}  # D[i] partner[i] = 1
        self.transposed: dict[str, str] = {}  # the inverse of an orthogonal matrix is its transpose
        for name, kinds in setting.kinds.items():
            self._declare(name, kinds)
        self.silent = not (self.diagonal or self.symmetry or self.transposed)

    def _declare(self, name: str, kinds: frozenset[str]) -> None:
        inverse = name + INVERSE
        if "diagonal" in kinds:
            self.diagonal |= {name, inverse}
            if "orthogonal" in kinds:
                self.partner[name] = name
            elif "invertible" in kinds:
                self.partner[name], self.partner[inverse] = inverse, name
        for kind, symmetry in (("symmetric", SYMMETRIC), ("skew", SKEW)):
            if kind in kinds:
                self.symmetry[name] = self.symmetry[inverse] = symmetry
        if "orthogonal" in kinds:
            self.transposed[inverse] = name

    def impose(self, poly: Poly) -> Poly:
        """The polynomial under the declared kinds."""
        if self.silent:
            return poly
        poly = self.table.map_functions(poly, lambda head, slots: True, self._inside)
        poly = self.table.map_atoms(poly, self._image)
        return self._cancel_free(poly) if self.partner else poly

    def _inside(self, argument: Poly) -> Poly:
        """The argument of an opaque function under the kinds."""
        return self.table.settle(self.impose(argument))

    # --- factors ----------------------------------------------------------------------------------

    def _image(self, atom: Atom) -> Poly | None:
        match atom:
            case Entry(name, row, col):
                return self._entry(name, row, col)
            case Component(key):
                if any(self._touches(head.name) for head, _ in key):
                    return self._reduced(list(key))
                return None
            case _:
                return None

    def _touches(self, name: str) -> bool:
        return name in self.diagonal or name in self.symmetry or name in self.transposed

    def _entry(self, name: str, row: int, col: int) -> Poly | None:
        if name in self.transposed:
            return self.table.of(Entry(self.transposed[name], col, row))
        if name in self.diagonal:
            return {} if row != col else None
        symmetry = self.symmetry.get(name, 0)
        if symmetry == SKEW and row == col:
            return {}
        if symmetry and row > col:
            return self.table.scale(self.table.of(Entry(name, col, row)), symmetry)
        return None

    def _reduced(self, factors: list[Factor]) -> Poly:
        deltas: list[tuple[int, int, str]] = []
        factors = [self._with_kind(factor, deltas) for factor in factors]
        poly = identify(self.table, factors, deltas)
        return self.table.map_atoms(poly, self._cancelled) if self.partner else poly

    def _with_kind(self, factor: Factor, deltas: list[tuple[int, int, str]]) -> Factor:
        head, slots = factor
        if len(slots) != 2:
            return factor
        if head.name in self.transposed:
            name = self.transposed[head.name]
            head, slots = head._replace(name=name, dims=head.dims[::-1]), slots[::-1]
        if head.name in self.diagonal:
            deltas.append((slots[0], slots[1], head.dims[0]))
            return Head(head.name, (-1,), head.dims[:1]), slots[:1]
        symmetry = self.symmetry.get(head.name)
        return (head._replace(symmetry=symmetry), slots) if symmetry else (head, slots)

    def _cancel_free(self, poly: Poly) -> Poly:
        """D[r] D^-1[r] = 1 at a free label, where the two are components of their own."""
        result: Poly = {}
        for mono, value in poly.items():
            powers = dict(mono)
            for number in list(powers):
                atom = self.table.atom(number)
                if isinstance(atom, Entry):
                    self._cancel_entry(powers, number, atom)
                    continue
                if not isinstance(atom, Component) or len(atom.key) != 1:
                    continue
                head, slots = atom.key[0]
                partner = self.partner.get(head.name)
                if partner is None or len(slots) != 1:
                    continue
                if partner == head.name:
                    powers[number] %= 2
                    continue
                other = self.table.number(Component(((head._replace(name=partner), slots),)))
                common = min(powers.get(number, 0), powers.get(other, 0))
                if common:
                    powers[number] -= common
                    powers[other] -= common
            kept = tuple((n, e) for n, e in sorted(powers.items()) if e)
            self.table.add_to(result, {kept: value})
        return result

    def _cancel_entry(self, powers: dict[int, int], number: int, entry: Entry) -> None:
        """The same for single entries on the diagonal."""
        partner = self.partner.get(entry.matrix)
        if partner == entry.matrix:
            powers[number] %= 2
        elif partner is not None:
            other = self.table.number(entry._replace(matrix=partner))
            common = min(powers.get(number, 0), powers.get(other, 0))
            if common:
                powers[number] -= common
                powers[other] -= common

    def _cancelled(self, atom: Atom) -> Poly | None:
        """D[i] D^-1[i] = 1 at one label."""
        if not isinstance(atom, Component):
            return None
        factors, deltas, changed = list(atom.key), list[tuple[int, int, str]](), False
        i = 0
        while i < len(factors):
            head, slots = factors[i]
            partner = self.partner.get(head.name) if len(slots) == 1 else None
            other = next(
                (
                    j
                    for j in range(i + 1, len(factors))
                    if factors[j][0].name == partner and factors[j][1] == slots
                ),
                None,
            )
            if partner is None or other is None:
                i += 1
                continue
            deltas.append((slots[0], slots[0], head.dims[0]))
            factors = [f for j, f in enumerate(factors) if j not in (i, other)]
            changed = True
        return identify(self.table, factors, deltas) if changed else None

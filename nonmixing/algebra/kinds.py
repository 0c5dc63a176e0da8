"""Declared kinds, used on the index form after all derivatives have been taken.

A diagonal matrix becomes a vector, D[i, j] = delta(i, j) D[i]; symmetric and skew heads let
canonical labelling swap their slots; orthonormal columns, orthogonal and inverse matrices contract
in pairs, sum_i P[i, k] P[i, l] = delta(k, l), wherever a summed label stands in exactly two fitting
slots. These pair rules are terminating and confluent.
"""

from __future__ import annotations

from nonmixing.algebra.canonical import SKEW, SYMMETRIC, Factor, Head
from nonmixing.algebra.expand import INVERSE
from nonmixing.algebra.setting import Setting
from nonmixing.algebra.terms import ONE, Atom, Component, Entry, Poly, Table

PairRules = dict[tuple[str, int, str, int], int]
"""(head, slot, head, slot) joined by a summed label, and the sign with which it becomes a delta."""


class Kinds:
    """The declared kinds of a setting, ready to be imposed on polynomials of a table."""

    def __init__(self, setting: Setting, table: Table) -> None:
        self.table = table
        self.diagonal: set[str] = set()
        self.symmetry: dict[str, int] = {}
        self.pairs: PairRules = {}
        self.inverse_of: dict[str, str] = {}
        self.transposed: dict[str, str] = {}  # the inverse of an orthogonal matrix is its transpose
        for name, kinds in setting.kinds.items():
            self._declare(name, kinds)
        self.silent = not (self.diagonal or self.symmetry or self.pairs)

    def _declare(self, name: str, kinds: frozenset[str]) -> None:
        inverse = name + INVERSE
        if "diagonal" in kinds:
            self.diagonal |= {name, inverse}
        for kind, symmetry in (("symmetric", SYMMETRIC), ("skew", SKEW)):
            if kind in kinds:
                self.symmetry[name] = self.symmetry[inverse] = symmetry
        if "orthogonal" in kinds:
            self.transposed[inverse] = name
        elif "invertible" in kinds:
            self.inverse_of[inverse] = name
            self._pair(name, inverse, (1, 0))
            self._pair(name, inverse, (0, 1))
        if kinds & {"orthonormal", "orthogonal"}:
            self._pair(name, name, (0, 0))
        if "orthogonal" in kinds:
            self._pair(name, name, (1, 1))

    def _pair(self, one: str, other: str, slots: tuple[int, int]) -> None:
        """The sum over the label in these slots is a delta.

        With a symmetry, so is the sum over the label in the swapped slots, signed.
        """
        a, b = slots
        options = [(a, b, 1)]
        symmetry = self.symmetry.get(one)
        if symmetry:
            options = [
                (x, y, 1 if (x == a) == (y == b) else symmetry) for x in (0, 1) for y in (0, 1)
            ]
        for x, y, sign in options:
            self.pairs[one, x, other, y] = sign
            self.pairs[other, y, one, x] = sign

    def impose(self, poly: Poly) -> Poly:
        """The polynomial under the declared kinds."""
        return poly if self.silent else self.table.map_atoms(poly, self._image)

    def _image(self, atom: Atom) -> Poly | None:
        match atom:
            case Entry(name, row, col):
                return self._entry(name, row, col)
            case Component(key):
                if any(self._touches(head.name) for head, _ in key):
                    return self.reduce(list(key), [])
                return None
            case _:
                return None

    def _touches(self, name: str) -> bool:
        return (
            name in self.diagonal
            or name in self.symmetry
            or name in self.transposed
            or any(rule[0] == name for rule in self.pairs)
        )

    def _entry(self, name: str, row: int, col: int) -> Poly | None:
        if name in self.diagonal:
            return {} if row != col else None
        symmetry = self.symmetry.get(name, 0)
        if symmetry == SKEW and row == col:
            return {}
        if symmetry and row > col:
            return self.table.scale(self.table.of(Entry(name, col, row)), symmetry)
        return None

    def reduce(self, factors: list[Factor], deltas: list[tuple[int, int, str]]) -> Poly:
        """A product of factors and deltas (label, label, dimension) under the kinds."""
        coefficient: Poly = {ONE: 1}
        kept: list[tuple[int, int]] = []
        sign = 1
        factors = [self._with_kind(factor, deltas) for factor in factors]
        while True:
            while deltas:
                one, other, dim = deltas.pop()
                if one == other:
                    if one >= 0 and not _stands(one, factors, deltas):  # sum of delta(k, k)
                        coefficient = self.table.multiply(coefficient, self.table.dimension(dim))
                    continue
                # A summed label gives way, to a free one first.
                old, new = max(one, other), min(one, other)
                if old < 0:
                    kept.append((one, other))
                    continue
                factors = [
                    (h, tuple(new if s == old else s for s in slots)) for h, slots in factors
                ]
                deltas = [(new if a == old else a, new if b == old else b, d) for a, b, d in deltas]
                if new >= 0 and not _stands(new, factors, deltas):
                    coefficient = self.table.multiply(coefficient, self.table.dimension(dim))
            found = self._find_pair(factors)
            if found is None:
                break
            factors, deltas, factor = found
            sign *= factor
        part_sign, mono = self.table.product(factors, kept)
        return self.table.multiply(coefficient, {mono: sign * part_sign}) if part_sign else {}

    def _with_kind(self, factor: Factor, deltas: list[tuple[int, int, str]]) -> Factor:
        head, slots = factor
        if head.name in self.transposed and len(slots) == 2:
            head, slots = (
                head._replace(name=self.transposed[head.name], dims=head.dims[::-1]),
                slots[::-1],
            )
        if len(slots) != 2:
            return head, slots
        if head.name in self.diagonal:
            deltas.append((slots[0], slots[1], head.dims[0]))
            return Head(head.name, (-1,), head.dims[:1]), slots[:1]
        symmetry = self.symmetry.get(head.name)
        return (head._replace(symmetry=symmetry), slots) if symmetry else (head, slots)

    def _find_pair(
        self, factors: list[Factor]
    ) -> tuple[list[Factor], list[tuple[int, int, str]], int] | None:
        """One application of a pair rule, or of D[i] D^-1[i] = 1."""
        if not self.pairs:
            return None
        at: dict[int, list[tuple[int, int]]] = {}
        for number, (_, slots) in enumerate(factors):
            for slot, label in enumerate(slots):
                at.setdefault(label, []).append((number, slot))
        for label, places in at.items():
            cancelled = self._cancel_diagonal(factors, label, places)
            if cancelled is not None:
                return cancelled
            if label < 0 or len(places) != 2 or places[0][0] == places[1][0]:
                continue
            (first, x), (second, y) = places
            (head, slots), (other, other_slots) = factors[first], factors[second]
            sign = self.pairs.get((head.name, x, other.name, y))
            if sign is None or len(slots) != 2 or len(other_slots) != 2:
                continue
            rest = [
                factor for number, factor in enumerate(factors) if number not in (first, second)
            ]
            return rest, [(slots[1 - x], other_slots[1 - y], head.dims[1 - x])], sign
        return None

    def _cancel_diagonal(
        self, factors: list[Factor], label: int, places: list[tuple[int, int]]
    ) -> tuple[list[Factor], list[tuple[int, int, str]], int] | None:
        here = {
            factors[number][0].name: number for number, _ in places if len(factors[number][1]) == 1
        }
        for inverse, base in self.inverse_of.items():
            if inverse in here and base in here:
                gone = (here[inverse], here[base])
                dim = factors[gone[0]][0].dims[0]
                rest = [factor for number, factor in enumerate(factors) if number not in gone]
                return rest, [(label, label, dim)], 1
        return None


def _stands(label: int, factors: list[Factor], deltas: list[tuple[int, int, str]]) -> bool:
    return any(label in slots for _, slots in factors) or any(label in (a, b) for a, b, _ in deltas)

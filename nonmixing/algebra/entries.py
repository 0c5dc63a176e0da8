"""The index form at given sizes: polynomials in the entries, and integers where one is not 0.

What two sides differ by is known as an index form before a counterexample is looked for. At given
sizes it is a polynomial in the entries of the matrices for each entry of the difference. If all of
them vanish, no counterexample of these sizes exists. If one does not, it has a term with the fewest
distinct entries; all others may be 0, and what is left is a polynomial in these few, which is not 0
and so takes a value other than 0 on any grid of degree + 1 values a side (Alon 1999, "Combinatorial
Nullstellensatz"; here one entry after the other).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from nonmixing.algebra import dims
from nonmixing.algebra.canonical import Head, row_and_column
from nonmixing.algebra.dims import Dim, Index
from nonmixing.algebra.ring import Number, Rows
from nonmixing.algebra.setting import Names, Setting
from nonmixing.algebra.terms import (
    Coefficient,
    Component,
    Delta,
    Dimension,
    Entry,
    Poly,
    Scalar,
    Table,
    bound_dims,
)

MOST_TERMS = 4_000
"""Most terms, before like ones are collected, that are written out at given sizes."""

MOST_FACTORS = 1_000
"""Most factors of a term that is written out."""

Place = tuple[str, int, int]
"""An entry: matrix (or scalar), row, column."""
Entries = dict[tuple[Place, ...], Coefficient]
"""A polynomial in entries: sorted products of them, with coefficients."""


class TooMany(Exception):
    """The polynomials are too long to be written out."""


def settled_by_entries(setting: Setting, names: Names) -> bool:
    """Whether entries may be any integers, up to linear kinds, with a value for all operations."""
    rigid = {"orthonormal", "orthogonal", "invertible"}
    return (
        not names.functions
        and "reciprocal" not in names.operations
        and "inv" not in names.operations
        and not any(setting.kinds_of(name) & rigid for name in names.matrices)
    )


class Differences:
    """The cells of a difference, as polynomials in entries at any sizes.

    Args:
        setting: shapes and kinds of the matrices.
        table: of the index forms.
        shape: of the difference.
        cells: row index, column index and index form of each cell.
    """

    def __init__(
        self,
        setting: Setting,
        table: Table,
        shape: tuple[Dim, Dim],
        cells: Sequence[tuple[Index, Index, Poly]],
    ) -> None:
        self.setting, self.table = setting, table
        self.cells = [
            ((*dims.labels(r, shape[0]), *dims.labels(c, shape[1])), poly)
            for r, c, poly in cells
            if poly
        ]

    def separating(
        self, names: Names, sizes: Mapping[str, int], tick: Callable[[], None]
    ) -> dict[str, Rows] | None:
        """Values of all names at which the sides differ; None if there are none at these sizes.

        Raises:
            TooMany: the polynomials are too long here.
        """
        best: tuple[int, int, tuple[Place, ...]] | None = None
        chosen: Entries = {}
        for labels, poly in self.cells:
            self._refuse_long(labels, poly, sizes)
            for at in dims.points(labels, sizes):
                tick()
                written = self._entries(poly, at, sizes)
                for product in written:
                    rank = (len(set(product)), len(product), product)
                    if best is None or rank < best:
                        best, chosen = rank, written
        if best is None:
            return None
        few = set(best[2])
        rest = {product: value for product, value in chosen.items() if few.issuperset(product)}
        return self._filled(names, sizes, _nonzero(rest))

    def _refuse_long(
        self, labels: Sequence[tuple[int, str]], poly: Poly, sizes: Mapping[str, int]
    ) -> None:
        count = 0
        for mono in poly:
            terms = 1
            if sum(exponent for _, exponent in mono) > MOST_FACTORS:
                raise TooMany
            for number, exponent in mono:
                atom = self.table.atom(number)
                if isinstance(atom, Component):
                    for dim in bound_dims(atom.key).values():
                        terms *= dims.label_size(dim, sizes) ** exponent
            count += terms
        for _, dim in labels:
            count *= dims.label_size(dim, sizes)
        if count > MOST_TERMS:
            raise TooMany

    def _entries(self, poly: Poly, at: Mapping[int, int], sizes: Mapping[str, int]) -> Entries:
        """The polynomial at values of its free labels."""
        result: Entries = {}
        for mono, value in poly.items():
            terms: list[tuple[tuple[Place, ...], Coefficient]] = [((), value)]
            for number, exponent in mono:
                factor = self._atom(number, at, sizes)
                if len(factor) == 1:  # x ** 1000 is one product
                    ((places, sign),) = factor
                    factor, exponent = [(places * exponent, sign**exponent)], 1
                for _ in range(exponent):
                    terms = [(product + more, x * y) for product, x in terms for more, y in factor]
            for product, x in terms:
                key = tuple(sorted(product))
                total = result.get(key, 0) + x
                if total:
                    result[key] = total
                else:
                    result.pop(key, None)
        return result

    def _atom(
        self, number: int, at: Mapping[int, int], sizes: Mapping[str, int]
    ) -> list[tuple[tuple[Place, ...], Coefficient]]:
        match self.table.atom(number):
            case Scalar(name):
                return [(((name, 0, 0),), 1)]
            case Dimension(dim):
                return [((), dims.label_size(dim, sizes))]
            case Entry(name, row, col):
                return [(((name, row, col),), 1)]
            case Delta(low, high):
                return [((), 1)] if at[low] == at[high] else []
            case Component(key):
                terms: list[tuple[tuple[Place, ...], Coefficient]] = []
                for point in dims.points(tuple(bound_dims(key).items()), sizes):
                    sign, places = 1, list[Place]()
                    for head, slots in key:
                        factor, place = self._place(
                            head, [point[x] if x >= 0 else at[x] for x in slots]
                        )
                        sign *= factor
                        places.append(place)
                    if sign:
                        terms.append((tuple(places), sign))
                return terms
            case _:
                raise TooMany  # a divisor

    def _place(self, head: Head, indices: Sequence[int]) -> tuple[int, Place]:
        """Sign and place of a factor; the upper triangle stands for a symmetric or skew matrix."""
        if len(head.fixed) == 1:  # a diagonal matrix kept as the vector of its diagonal
            return 1, (head.name, indices[0], indices[0])
        row, col = row_and_column(head, indices)
        kinds = self.setting.kinds_of(head.name)
        if "diagonal" in kinds and row != col:
            return 0, (head.name, row, col)
        if "skew" in kinds:
            sign = (row < col) - (row > col)
            return sign, (head.name, min(row, col), max(row, col))
        if "symmetric" in kinds and row > col:
            row, col = col, row
        return 1, (head.name, row, col)

    def _filled(
        self, names: Names, sizes: Mapping[str, int], chosen: Mapping[Place, int]
    ) -> dict[str, Rows]:
        """Every matrix, with the chosen entries and 0 elsewhere."""
        values: dict[str, Rows] = {
            name: ((chosen.get((name, 0, 0), 0),),) for name in names.scalars
        }
        for name in names.matrices:
            rows, cols = (dims.size(dim, sizes) for dim in self.setting.matrices[name])
            values[name] = tuple(
                tuple(self._value(name, i, j, chosen) for j in range(cols)) for i in range(rows)
            )
        return values

    def _value(self, name: str, i: int, j: int, chosen: Mapping[Place, int]) -> Number:
        sign, place = self._place(Head(name, (i, j), ()), ())
        return sign * chosen.get(place, 0)


def _nonzero(poly: Entries) -> dict[Place, int]:
    """Small integers at which a polynomial that is not 0 is not 0: all 1, or one by one."""
    places = sorted({place for product in poly for place in product})
    if sum(poly.values()):
        return dict.fromkeys(places, 1)
    chosen: dict[Place, int] = {}
    for place in places:
        for value in _by_size():
            tried = _at(poly, place, value)
            if tried:
                poly, chosen[place] = tried, value
                break
    return chosen


def _by_size() -> Iterator[int]:
    """1, -1, 2, -2, 3, ..."""
    for size in itertools.count(1):
        yield from (size, -size)


def _at(poly: Entries, place: Place, value: int) -> Entries:
    """The polynomial with one entry replaced by a number."""
    result: Entries = {}
    for product, factor in poly.items():
        rest = tuple(x for x in product if x != place)
        total = result.get(rest, 0) + factor * value ** (len(product) - len(rest))
        if total:
            result[rest] = total
        else:
            result.pop(rest, None)
    return result

"""Means over a standard Gaussian vector, by Wick's theorem (Isserlis 1918).

The mean of x[i] x[j] x[k] ... is the sum over all ways to pair the factors of the product of the
deltas of the pairs; it is 0 for an odd number of factors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nonmixing.algebra.canonical import Factor
from nonmixing.algebra.terms import Component, Entry, Monomial, Poly, Table, identify, shifted
from nonmixing.errors import InputError


def gaussian_mean(table: Table, poly: Poly, name: str) -> Poly:
    """Mean of a polynomial over the standard Gaussian column of that name.

    Raises:
        InputError: the column stands inside an opaque function.
    """
    result: Poly = {}
    for mono, value in poly.items():
        table.add_to(result, _mean(table, mono, name), value)
    return result


def _mean(table: Table, mono: Monomial, name: str) -> Poly:
    rest: list[tuple[int, int]] = []
    factors: list[Factor] = []
    entries: list[int] = []
    top = 0
    for number, exponent in mono:
        atom = table.atom(number)
        if isinstance(atom, Entry) and atom.matrix == name:
            entries += [atom.row] * exponent
        elif isinstance(atom, Component) and any(head.name == name for head, _ in atom.key):
            for _ in range(exponent):
                part, top = shifted(atom.key, top)
                factors += part
        else:
            if isinstance(atom, Component):
                _refuse_inside(table, atom, name)
            rest.append((number, exponent))
    kept = [factor for factor in factors if factor[0].name != name]
    places = [(slots[0], head.dims[0]) for head, slots in factors if head.name == name]
    if any(table.function(head) is not None for head, _ in kept):
        _refuse_inside(table, Component(tuple(kept)), name)
    outside: Poly = {tuple(rest): 1}
    if entries and places:
        raise InputError(f"expect: {name} stands beside single entries of itself")
    if entries:
        return table.scale(outside, _entry_moment(entries))
    result: Poly = {}
    for pairing in pairings(places):
        deltas = [(one, other, dim) for (one, dim), (other, _) in pairing]
        table.add_to(result, identify(table, kept, deltas))
    return table.multiply(outside, result)


def _refuse_inside(table: Table, atom: Component, name: str) -> None:
    for head, _ in atom.key:
        applied = table.function(head)
        if applied is not None and table.mentions(applied.argument, name):
            raise InputError(
                f"expect: {name} stands inside the opaque function {applied.name}, "
                "whose mean is not known"
            )


def _entry_moment(rows: Sequence[int]) -> int:
    """Mean of a product of entries of a Gaussian column with independent entries."""
    moment = 1
    for row in set(rows):
        count = rows.count(row)
        if count % 2:
            return 0
        for odd in range(1, count, 2):
            moment *= odd
    return moment


def pairings(
    items: Sequence[tuple[int, str]],
) -> Iterator[list[tuple[tuple[int, str], tuple[int, str]]]]:
    """All ways to pair up the items; none for an odd number."""
    if not items:
        yield []
        return
    first, *others = items
    for i, partner in enumerate(others):
        for rest in pairings([*others[:i], *others[i + 1 :]]):
            yield [(first, partner), *rest]

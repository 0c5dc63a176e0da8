"""Dimensions: symbols, integers, and the products and sums that Kronecker products and blocks make.

An index over a dimension mirrors its form. Over a symbol it is a label (< 0); over an integer that
is expanded, a constant (>= 0); over a product the tuple of its factors' indices, slowest first;
over a sum a block number with the index in that block.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

__all__ = [
    "Block",
    "Dim",
    "Index",
    "Product",
    "Sum",
    "labels",
    "lowest",
    "position",
    "same_size",
    "size",
    "split",
    "width",
]


@dataclass(frozen=True, slots=True)
class Product:
    """A product of dimensions, slowest first.

    It is flat, has no ones, and neighbouring integers are multiplied.
    """

    factors: tuple[Dim, ...]

    def __str__(self) -> str:
        return "*".join(f"({f})" if isinstance(f, Sum) else str(f) for f in self.factors)


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of dimensions: blocks, one after the other; flat, and not all integers."""

    parts: tuple[Dim, ...]

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))


Dim: TypeAlias = "int | str | Product | Sum"
"""A dimension."""


@dataclass(frozen=True, slots=True)
class Block:
    """An index into one block of a sum."""

    number: int
    index: Index


Index: TypeAlias = "int | tuple[Index, ...] | Block"
"""An index; see the module's text."""


class NeedsExpansion(Exception):
    """An integer dimension must be expanded before its index can be taken apart."""


def factors(dim: Dim) -> tuple[Dim, ...]:
    """The factors of a dimension; none for 1."""
    if dim == 1:
        return ()
    return dim.factors if isinstance(dim, Product) else (dim,)


def multiply(*dims: Dim) -> Dim:
    """The product of dimensions, slowest first."""
    flat: list[Dim] = []
    for factor in (factor for dim in dims for factor in factors(dim)):
        if flat and isinstance(factor, int) and isinstance(flat[-1], int):
            flat[-1] *= factor
        else:
            flat.append(factor)
    if not flat:
        return 1
    return flat[0] if len(flat) == 1 else Product(tuple(flat))


def add(*dims: Dim) -> Dim:
    """The sum of dimensions, as blocks."""
    parts = [part for dim in dims for part in (dim.parts if isinstance(dim, Sum) else (dim,))]
    if all(isinstance(part, int) for part in parts):
        return sum(part for part in parts if isinstance(part, int))
    return parts[0] if len(parts) == 1 else Sum(tuple(parts))


def split(index: Index, left: Dim, right: Dim) -> tuple[Index, Index]:
    """The two indices that make up an index over multiply(left, right)."""
    if left == 1:
        return 0, index
    if right == 1:
        return index, 0
    parts = index if isinstance(index, tuple) else (index,)
    first, second = factors(left), factors(right)
    if isinstance(first[-1], int) and isinstance(second[0], int):
        # Neighbouring integers were multiplied: their index is one number.
        place = len(first) - 1
        joint = parts[place]
        if not isinstance(joint, int) or joint < 0:
            raise NeedsExpansion
        high, low = divmod(joint, second[0])
        return _tuple((*parts[:place], high)), _tuple((low, *parts[place + 1 :]))
    return _tuple(parts[: len(first)]), _tuple(parts[len(first) :])


def _tuple(parts: tuple[Index, ...]) -> Index:
    return parts[0] if len(parts) == 1 else parts


def block(index: Index, parts: tuple[Dim, ...]) -> tuple[int, Index]:
    """Which of the blocks that add(*parts) joins an index falls in, and the index there."""
    if len(parts) == 1:
        return 0, index
    if isinstance(index, Block):
        number, before = index.number, 0
        for position, part in enumerate(parts):
            inside = len(part.parts) if isinstance(part, Sum) else 1
            if number < before + inside:
                local = (
                    Block(number - before, index.index) if isinstance(part, Sum) else index.index
                )
                return position, local
            before += inside
    if not isinstance(index, int) or index < 0:
        raise NeedsExpansion
    for position, part in enumerate(parts):
        length = part if isinstance(part, int) else 0
        if index < length:
            return position, index
        index -= length
    raise NeedsExpansion


def width(dim: Dim) -> int:
    """How many labels an index over a dimension can need."""
    if isinstance(dim, Product):
        return sum(map(width, dim.factors))
    if isinstance(dim, Sum):
        return max(map(width, dim.parts))
    return 1


def lowest(*indices: Index) -> int:
    """The lowest label among indices, at most -2."""
    low = -2
    for index in indices:
        if isinstance(index, int):
            low = min(low, index)
        else:
            low = min(low, lowest(*(index if isinstance(index, tuple) else (index.index,))))
    return low


def indices(
    dim: Dim, label: int, expand: bool
) -> Iterator[tuple[Index, tuple[tuple[int, str], ...]]]:
    """The values an index takes, each with the labels to be summed in it (label, dimension).

    Args:
        dim: the dimension.
        label: the first label that may be used; further ones lie below it.
        expand: take integers apart; else they are symbols.
    """
    if isinstance(dim, Sum):
        for number, part in enumerate(dim.parts):
            for inside, labels in indices(part, label, expand):
                yield Block(number, inside), labels
    elif isinstance(dim, Product):
        yield from _products(dim.factors, label, expand)
    elif dim == 1:
        yield 0, ()
    elif isinstance(dim, int) and expand:
        yield from ((constant, ()) for constant in range(dim))
    else:
        yield label, ((label, str(dim)),)


def _products(
    dims: tuple[Dim, ...], label: int, expand: bool
) -> Iterator[tuple[tuple[Index, ...], tuple[tuple[int, str], ...]]]:
    if not dims:
        yield (), ()
        return
    for first, labels in indices(dims[0], label, expand):
        for rest, more in _products(dims[1:], label - width(dims[0]), expand):
            yield (first, *rest), (*labels, *more)


def symbols(dim: Dim) -> frozenset[str]:
    """The symbols in a dimension."""
    if isinstance(dim, str):
        return frozenset({dim})
    if isinstance(dim, Product | Sum):
        inside = dim.factors if isinstance(dim, Product) else dim.parts
        return frozenset(symbol for part in inside for symbol in symbols(part))
    return frozenset()


def integers(dim: Dim) -> frozenset[int]:
    """The integers above 1 in a dimension."""
    if isinstance(dim, int):
        return frozenset({dim} if dim > 1 else ())
    if isinstance(dim, Product | Sum):
        inside = dim.factors if isinstance(dim, Product) else dim.parts
        return frozenset(number for part in inside for number in integers(part))
    return frozenset()


def size(dim: Dim, sizes: Mapping[str, int]) -> int:
    """The dimension as a number."""
    if isinstance(dim, int):
        return dim
    if isinstance(dim, str):
        return sizes[dim]
    if isinstance(dim, Product):
        return prod(size(factor, sizes) for factor in dim.factors)
    return sum(size(part, sizes) for part in dim.parts)


def label_size(dim: str, sizes: Mapping[str, int]) -> int:
    """The size of what a label runs over: a symbol, or an integer that is not taken apart."""
    return int(dim) if dim.isdigit() else sizes[dim]


def points(labels: Sequence[tuple[int, str]], sizes: Mapping[str, int]) -> Iterator[dict[int, int]]:
    """All values of labels, each with its dimension."""
    names = [label for label, _ in labels]
    for choice in itertools.product(*(range(label_size(dim, sizes)) for _, dim in labels)):
        yield dict(zip(names, choice, strict=True))


def same_size(one: Dim, other: Dim) -> bool:
    """Whether two dimensions are the same number whatever the symbols are: n*m and m*n, say."""
    return one == other or _polynomial(one) == _polynomial(other)


def _polynomial(dim: Dim) -> Mapping[tuple[str, ...], int]:
    if isinstance(dim, int):
        return {(): dim}
    if isinstance(dim, str):
        return {(dim,): 1}
    parts = dim.factors if isinstance(dim, Product) else dim.parts
    result: dict[tuple[str, ...], int] = {(): 1} if isinstance(dim, Product) else {}
    for part in parts:
        poly = _polynomial(part)
        if isinstance(dim, Sum):
            for mono, value in poly.items():
                result[mono] = result.get(mono, 0) + value
        else:
            grown: dict[tuple[str, ...], int] = {}
            for mono, value in result.items():
                for other, factor in poly.items():
                    both = tuple(sorted(mono + other))
                    grown[both] = grown.get(both, 0) + value * factor
            result = grown
    return result


def position(index: Index, dim: Dim, sizes: Mapping[str, int], at: Mapping[int, int]) -> int:
    """The place of an index, counted from 0, when its labels have values."""
    if isinstance(index, int):
        return at[index] if index < 0 else index
    if isinstance(index, Block):
        parts = dim.parts if isinstance(dim, Sum) else (dim,)
        before = sum(size(part, sizes) for part in parts[: index.number])
        return before + position(index.index, parts[index.number], sizes, at)
    place = 0
    for each, factor in zip(index, factors(dim), strict=True):
        place = place * size(factor, sizes) + position(each, factor, sizes, at)
    return place


def labels(index: Index, dim: Dim) -> tuple[tuple[int, str], ...]:
    """The labels in an index, with their dimensions."""
    if isinstance(index, int):
        return ((index, str(dim)),) if index < 0 else ()
    if isinstance(index, Block):
        assert isinstance(dim, Sum)
        return labels(index.index, dim.parts[index.number])
    inside = zip(index, factors(dim), strict=True)
    return tuple(pair for each, factor in inside for pair in labels(each, factor))

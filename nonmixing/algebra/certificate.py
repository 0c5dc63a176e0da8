"""Checks proofs under equations: difference == sum of cofactor * hypothesis.

The check is made at matrices that satisfy no hypothesis. The index form is evaluated here entry by
entry from its factors, and the two sides and the hypotheses by the evaluator of expressions, so
that the rewriting that found the cofactors has no part in the check.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

from nonmixing.algebra.canonical import Key
from nonmixing.algebra.evaluate import PRIME, Arithmetic, Rows, Undefined
from nonmixing.algebra.expand import INVERSE
from nonmixing.algebra.expr import Dim
from nonmixing.algebra.hypotheses import Use
from nonmixing.algebra.readback import COL, ROW
from nonmixing.algebra.refute import both_sides
from nonmixing.algebra.sampling import sample
from nonmixing.algebra.setting import Names, Statement
from nonmixing.algebra.terms import (
    Component,
    Delta,
    Dimension,
    Entry,
    Monomial,
    Poly,
    Reciprocal,
    Scalar,
    Table,
    bound_dims,
)


def check_certificate(
    statement: Statement,
    names: Names,
    dims: Mapping[str, int],
    table: Table,
    uses: Sequence[Use],
    rng: random.Random,
) -> bool:
    """Whether left - right equals the sum of cofactor * (hypothesis left - right).

    Both are evaluated at random matrices of the kinds.
    """
    bare = dataclasses.replace(statement, assume=())
    try:
        values = sample(bare, names, dims, rng, 1, PRIME)
        left, right = both_sides(bare, dims, values, PRIME)
        gaps = [_gap(statement, number, dims, values) for number in range(len(statement.assume))]
    except Undefined:
        return True  # no such matrices at these sizes: nothing to check here
    numbers = _Numbers(table, dims, values)
    for i, (row, other) in enumerate(zip(left, right, strict=True)):
        for j, (x, y) in enumerate(zip(row, other, strict=True)):
            expected = sum(numbers.use(use, gaps[use.hypothesis], {ROW: i, COL: j}) for use in uses)
            if (int(x) - int(y) - expected) % PRIME:
                return False
    return True


def _gap(
    statement: Statement, number: int, dims: Mapping[str, int], values: Mapping[str, Rows]
) -> Rows:
    equation = statement.assume[number]
    hypothesis = dataclasses.replace(statement, left=equation.left, right=equation.right, assume=())
    left, right = both_sides(hypothesis, dims, values, PRIME)
    return tuple(
        tuple(int(x) - int(y) for x, y in zip(row, other, strict=True))
        for row, other in zip(left, right, strict=True)
    )


class _Numbers:
    """Index forms as numbers modulo the prime, by summing over all labels."""

    def __init__(self, table: Table, dims: Mapping[str, int], values: Mapping[str, Rows]) -> None:
        self.table, self.dims = table, dims
        self.values = dict(values)
        for name, value in values.items():
            if len(value) == len(value[0]):
                try:
                    self.values[name + INVERSE] = Arithmetic(PRIME).inverse(value)
                except Undefined:
                    continue  # a singular matrix has no inverse to stand in a cofactor

    def size(self, dim: Dim) -> int:
        return int(dim) if str(dim).isdigit() else self.dims[str(dim)]

    def use(self, use: Use, gap: Rows, at: Mapping[int, int]) -> int:
        """Sum over the hypothesis's labels of cofactor * gap."""
        rows, cols = len(gap), len(gap[0])
        ranges = [range(rows)] if rows > 1 or len(use.labels) == 2 else []
        if cols > 1 or len(use.labels) == 2:
            ranges.append(range(cols))
        if len(ranges) != len(use.labels):  # one label over a dimension that is 1 here
            ranges = [range(max(rows, cols))] * len(use.labels)
        total = 0
        for indices in itertools.product(*ranges):
            point = {**at, **dict(zip(use.labels, indices, strict=True))}
            i, j = self._position(indices, rows, cols)
            total += self.poly(use.cofactor, point) * int(gap[i][j])
        return total

    @staticmethod
    def _position(indices: Sequence[int], rows: int, cols: int) -> tuple[int, int]:
        if len(indices) == 2:
            return indices[0], indices[1]
        if not indices:
            return 0, 0
        return (indices[0], 0) if cols == 1 and rows >= 1 else (0, indices[0])

    def poly(self, poly: Poly, at: Mapping[int, int]) -> int:
        total = 0
        for mono, value in poly.items():
            total += int(Arithmetic(PRIME).rows([[value]])[0][0]) * self._monomial(mono, at)
        return total % PRIME

    def _monomial(self, mono: Monomial, at: Mapping[int, int]) -> int:
        result = 1
        for number, exponent in mono:
            result = result * pow(self._atom(number, at), exponent, PRIME) % PRIME
        return result

    def _atom(self, number: int, at: Mapping[int, int]) -> int:
        match self.table.atom(number):
            case Scalar(name):
                return int(self.values[name][0][0])
            case Dimension(dim):
                return self.size(dim)
            case Entry(name, row, col):
                return int(self.values[name][row][col])
            case Delta(low, high):
                return int(at[low] == at[high])
            case Reciprocal(items):
                return int(Arithmetic(PRIME).reciprocal(self.poly(dict(items), at)))
            case Component(key):
                return sum(self._products(key, at)) % PRIME

    def _products(self, key: Key, at: Mapping[int, int]) -> Iterator[int]:
        bound = bound_dims(key)
        for choice in itertools.product(*(range(self.size(dim)) for dim in bound.values())):
            point = {**at, **dict(zip(bound, choice, strict=True))}
            product = 1
            for head, slots in key:
                factor = self._factor(head.name, head.fixed, [point[slot] for slot in slots])
                product = product * factor % PRIME
            yield product

    def _factor(self, name: str, fixed: tuple[int, ...], indices: Sequence[int]) -> int:
        if len(fixed) == 1:  # a diagonal matrix kept as the vector of its diagonal
            return int(self.values[name][indices[0]][indices[0]])
        remaining = iter(indices)
        row, col = (index if index >= 0 else next(remaining) for index in fixed)
        return int(self.values[name][row][col])

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

from nonmixing.algebra import dims
from nonmixing.algebra.canonical import Head, Key, row_and_column
from nonmixing.algebra.dims import Index
from nonmixing.algebra.evaluate import Evaluator, derivative, horner
from nonmixing.algebra.hypotheses import Use
from nonmixing.algebra.node import INVERSE
from nonmixing.algebra.refute import sides
from nonmixing.algebra.ring import PRIME, Ring, Rows, Undefined
from nonmixing.algebra.sampling import draw, sample
from nonmixing.algebra.setting import LINEAR_KINDS, Equation, Names, Setting, Statement
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


@dataclasses.dataclass(frozen=True)
class Cell:
    """An entry of the difference of the two sides: its indices, and the uses that make it 0."""

    row: Index
    col: Index
    uses: tuple[Use, ...]


def check_certificate(
    statement: Statement,
    hypotheses: Sequence[Equation],
    names: Names,
    sizes: Mapping[str, int],
    table: Table,
    cells: Sequence[Cell],
    rng: random.Random,
) -> bool:
    """Whether left - right equals the sum of cofactor * (hypothesis left - right).

    Both are evaluated at random matrices modulo a prime. They are of the linear kinds, and of no
    other: columns are not orthonormal, the inverse of X is any matrix beside X.
    """
    bare = dataclasses.replace(statement, assume=(), setting=_linear(statement.setting))
    try:
        values = sample(bare, names, sizes, rng, 1, PRIME)
        inverses = _inverses(statement, names, values, rng)
        gaps = [_gap(bare, equation, sizes, values, inverses) for equation in hypotheses]
        rows = _gap(bare, Equation(bare.left, bare.right, ""), sizes, values, inverses)
    except Undefined:
        return True  # a divisor is 0 here: nothing to check
    numbers = _Numbers(table, sizes, {**values, **inverses})
    shape = bare.shape
    for cell in cells:
        pairs = (*dims.labels(cell.row, shape[0]), *dims.labels(cell.col, shape[1]))
        for at in numbers.points(pairs):
            i = dims.position(cell.row, shape[0], sizes, at)
            j = dims.position(cell.col, shape[1], sizes, at)
            expected = sum(
                numbers.use(use, hypotheses[use.rule.number], gaps[use.rule.number], at)
                for use in cell.uses
            )
            if (int(rows[i][j]) - expected) % PRIME:
                return False
    return True


def _linear(setting: Setting) -> Setting:
    """The setting with linear kinds alone."""
    kinds = {
        name: (kinds if "diagonal" in kinds else kinds & LINEAR_KINDS)
        for name, kinds in setting.kinds.items()
    }
    return dataclasses.replace(setting, kinds=kinds)


def _inverses(
    statement: Statement, names: Names, values: Mapping[str, Rows], rng: random.Random
) -> dict[str, Rows]:
    """What stands for the inverse of each matrix.

    The inverse of a diagonal one, the transpose of an orthogonal one, anything (of the linear
    kinds) for the others.
    """
    result: dict[str, Rows] = {}
    for name in names.matrices:
        kinds = statement.setting.kinds_of(name)
        if not kinds & {"invertible", "orthogonal"}:
            continue
        value = values[name]
        if "diagonal" in kinds:
            result[name + INVERSE] = Ring(PRIME).inverse(value)
        elif "orthogonal" in kinds:
            result[name + INVERSE] = tuple(zip(*value, strict=True))
        else:
            size = len(value)
            result[name + INVERSE] = draw(size, size, kinds & LINEAR_KINDS, rng)
    return result


def _gap(
    statement: Statement,
    equation: Equation,
    sizes: Mapping[str, int],
    values: Mapping[str, Rows],
    inverses: Mapping[str, Rows],
) -> Rows:
    """Left - right of an equation."""
    evaluator = Evaluator(statement.setting, sizes, values, PRIME, inverses)
    left, right = sides(evaluator, equation.left, equation.right)
    return tuple(
        tuple(int(x) - int(y) for x, y in zip(row, other, strict=True))
        for row, other in zip(left, right, strict=True)
    )


class _Numbers:
    """Index forms as numbers modulo the prime, by summing over all labels."""

    def __init__(self, table: Table, sizes: Mapping[str, int], values: Mapping[str, Rows]) -> None:
        self.table, self.sizes, self.values = table, sizes, values
        self._components: dict[tuple[int, tuple[int, ...]], int] = {}

    def size(self, dim: str) -> int:
        return dims.label_size(dim, self.sizes)

    def points(self, labels: Sequence[tuple[int, str]]) -> Iterator[dict[int, int]]:
        """All values of labels."""
        return dims.points(labels, self.sizes)

    def use(self, use: Use, equation: Equation, gap: Rows, at: Mapping[int, int]) -> int:
        """Sum over the hypothesis's labels of cofactor * gap."""
        shape = equation.shape
        total = 0
        for own in self.points(use.rule.labels):
            i = dims.position(use.rule.row, shape[0], self.sizes, own)
            j = dims.position(use.rule.col, shape[1], self.sizes, own)
            renamed = {
                new: own[old] for (old, _), new in zip(use.rule.labels, use.labels, strict=True)
            }
            total += self.poly(use.cofactor, {**at, **renamed}) * int(gap[i][j])
        return total

    def poly(self, poly: Poly, at: Mapping[int, int]) -> int:
        total = 0
        for mono, value in poly.items():
            total += int(Ring(PRIME).lifted([[value]])[0][0]) * self._monomial(mono, at)
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
                return int(Ring(PRIME).reciprocal(self.poly(dict(items), at)))
            case Component(key):
                place = (number, tuple([at[label] for label in self.table.free(number)]))
                known = self._components.get(place)
                if known is None:
                    known = self._components[place] = self._component(key, at)
                return known

    def _component(self, key: Key, at: Mapping[int, int]) -> int:
        """Value of a component: its labels are summed one after the other."""
        bound = dict(bound_dims(key))
        pieces = [self._piece(head, slots, at, bound) for head, slots in key]
        while bound:
            # The label that ties the fewest others together goes first.
            label = min(bound, key=lambda x: len({y for p in pieces if x in p[0] for y in p[0]}))
            joined = [piece for piece in pieces if label in piece[0]]
            rest = [piece for piece in pieces if label not in piece[0]]
            kept = tuple(dict.fromkeys(y for p in joined for y in p[0] if y != label))
            table: dict[tuple[int, ...], int] = {}
            for choice in itertools.product(*(range(self.size(bound[y])) for y in kept)):
                point = dict(zip(kept, choice, strict=True))
                total = 0
                for value in range(self.size(bound[label])):
                    point[label] = value
                    product = 1
                    for names, values in joined:
                        product = product * values[tuple([point[y] for y in names])] % PRIME
                    total += product
                table[choice] = total % PRIME
            del bound[label]
            pieces = [*rest, (kept, table)]
        result = 1
        for _, values in pieces:
            result = result * values[()] % PRIME
        return result

    def _piece(
        self, head: Head, slots: Sequence[int], at: Mapping[int, int], bound: Mapping[int, str]
    ) -> tuple[tuple[int, ...], dict[tuple[int, ...], int]]:
        """A factor as a table over its summed labels."""
        names = tuple(dict.fromkeys(slot for slot in slots if slot >= 0))
        table: dict[tuple[int, ...], int] = {}
        for choice in itertools.product(*(range(self.size(bound[y])) for y in names)):
            point = {**at, **dict(zip(names, choice, strict=True))}
            table[choice] = self._factor(head, [point[slot] for slot in slots])
        return names, table

    def _factor(self, head: Head, indices: Sequence[int]) -> int:
        applied = self.table.function(head)
        if applied is not None:
            labels = range(-FAR, -FAR - len(indices), -1)
            at = dict(zip(labels, indices, strict=True))
            argument = self.poly(applied.at(self.table, tuple(labels)), at)
            coefficients = [row[0] for row in self.values[applied.name]]
            slope = [int(x) for x in derivative(coefficients, applied.order)]
            return horner(slope, argument, PRIME)
        if len(head.fixed) == 1:  # a diagonal matrix kept as the vector of its diagonal
            return int(self.values[head.name][indices[0]][indices[0]])
        row, col = row_and_column(head, indices)
        return int(self.values[head.name][row][col])


FAR = 2_000_000
"""Labels that no polynomial has."""

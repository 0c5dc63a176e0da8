"""Equations as oriented rules on the index form, each use of them checkable by its cofactor.

An equation left == right is the polynomial h[r, c] = left[r, c] - right[r, c]. Its leading term
(most factors, then the largest key) must be a single component; wherever that component is found
inside another, it gives way to the rest of h. Each use is recorded as cofactor * h, so that a proof
is the identity difference == sum of cofactor * h, which holds without any hypothesis and is checked
like that. Rules are not completed: where a remainder is left and no counterexample is found, the
decision is UNDECIDED.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from nonmixing.algebra.canonical import Factor, Key
from nonmixing.algebra.terms import Component, Monomial, Poly, Table, bound_dims, exact

MAX_STEPS = 2_000


@dataclass(frozen=True)
class Rule:
    """lead[r, c] -> -(h - coefficient * lead)[r, c] / coefficient.

    Attributes:
        number: which hypothesis this is.
        lead: the leading component; its free labels are the equation's indices.
        coefficient: of the lead in h.
        equation: h, the whole polynomial.
        labels: the equation's free labels with their dimensions.
    """

    number: int
    lead: Key
    coefficient: Fraction
    equation: Poly
    labels: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Use:
    """One use of a hypothesis: cofactor * h, summed over its labels (renamed to `labels`)."""

    hypothesis: int
    cofactor: Poly
    labels: tuple[int, ...]


@dataclass(frozen=True)
class Reduction:
    """What is left of a polynomial, and the uses that account for the difference."""

    remainder: Poly
    uses: tuple[Use, ...]


def orient(
    table: Table, equation: Poly, labels: Sequence[tuple[int, str]], number: int
) -> Rule | None:
    """The rule of a hypothesis.

    None where its leading term is not a single component with all of its labels.
    """
    candidates: list[tuple[int, Key, Fraction]] = []
    for mono, value in equation.items():
        degree = 0
        for atom_number, exponent in mono:
            atom = table.atom(atom_number)
            if isinstance(atom, Component):
                degree += exponent * len(atom.key)
        only = table.atom(mono[0][0]) if len(mono) == 1 and mono[0][1] == 1 else None
        candidates.append(
            (degree, only.key if isinstance(only, Component) else (), Fraction(value))
        )
    if not candidates:
        return None
    degree, lead, coefficient = max(candidates, key=lambda candidate: candidate[:2])
    if not lead or sum(1 for other in candidates if other[0] == degree and not other[1]):
        return None
    present = {label for _, slots in lead for label in slots if label < 0}
    if present != {label for label, _ in labels}:
        return None
    return Rule(number, lead, coefficient, equation, tuple(labels))


def reduce(
    table: Table,
    poly: Poly,
    rules: Sequence[Rule],
    impose: Callable[[Poly], Poly],
    tick: Callable[[], None],
) -> Reduction:
    """Apply the rules until none fits.

    Where the step limit is met, what is left is returned as it is.

    Args:
        table: the atoms' table.
        poly: what to reduce.
        rules: oriented hypotheses.
        impose: puts a polynomial under the declared kinds.
        tick: called at each step; raises when time is up.
    """
    uses: list[Use] = []
    todo, remainder = dict(poly), dict[Monomial, int | Fraction]()
    steps = 0
    while todo:
        tick()
        mono, value = todo.popitem()
        use = None if steps >= MAX_STEPS else _first_use(table, mono, value, rules)
        if use is None:
            table.add_to(remainder, {mono: value})
            continue
        steps += 1
        uses.append(use[0])
        table.add_to(todo, {mono: value})
        table.add_to(todo, impose(use[1]), -1)
    return Reduction(remainder, tuple(uses))


def _first_use(
    table: Table, mono: Monomial, value: int | Fraction, rules: Sequence[Rule]
) -> tuple[Use, Poly] | None:
    for rule in rules:
        for number, exponent in mono:
            atom = table.atom(number)
            if not isinstance(atom, Component):
                continue
            match = next(_matches(rule.lead, atom.key), None)
            if match is None:
                continue
            places, image = match
            rest = dict(mono)
            rest[number] = exponent - 1
            outside = {
                tuple((n, e) for n, e in sorted(rest.items()) if e): exact(
                    Fraction(value) / rule.coefficient
                )
            }
            return _use(table, rule, atom.key, places, image, outside)
    return None


def _use(
    table: Table, rule: Rule, key: Key, places: frozenset[int], image: dict[int, int], outside: Poly
) -> tuple[Use, Poly]:
    """The cofactor at one match, and cofactor * h in full."""
    low = min((label for _, slots in key for label in slots), default=0)
    low = min(low, -2)
    cofactor_labels = tuple(low - 1 - i for i in range(len(rule.labels)))
    by_target: dict[int, list[int]] = {}
    for (label, _), fresh in zip(rule.labels, cofactor_labels, strict=True):
        by_target.setdefault(image[label], []).append(fresh)
    # A summed label at the border of the match is opened: the cofactor carries the fresh label in
    # its place. A free label of the component, and a second fresh label at the same place, are tied
    # to it by a delta.
    opened = {target: fresh[0] for target, fresh in by_target.items() if target >= 0}
    rest: list[Factor] = [
        (head, tuple(opened.get(s, s) for s in slots))
        for i, (head, slots) in enumerate(key)
        if i not in places
    ]
    deltas: list[tuple[int, int]] = []
    for target, fresh in by_target.items():
        anchor = fresh[0] if target >= 0 else target
        deltas += [(anchor, label) for label in fresh if label != anchor]
    sign, inside = table.product(rest, deltas)
    cofactor = table.multiply(outside, {inside: sign}) if sign else {}
    full = rule.equation
    for (label, _), fresh in zip(rule.labels, cofactor_labels, strict=True):
        full = table.rename(full, label, fresh)
    full = table.multiply(cofactor, full)
    for (_, dim), fresh in zip(rule.labels, cofactor_labels, strict=True):
        full = table.contract(full, fresh, dim)
    return Use(rule.number, cofactor, cofactor_labels), full


def _matches(pattern: Key, key: Key) -> Iterator[tuple[frozenset[int], dict[int, int]]]:
    """Places in a component where a pattern fits.

    The pattern's summed labels go onto summed labels that stand nowhere else.
    """
    counts: dict[int, int] = {}
    for _, slots in key:
        for label in slots:
            counts[label] = counts.get(label, 0) + 1
    needs: dict[int, int] = {}
    for _, slots in pattern:
        for label in slots:
            needs[label] = needs.get(label, 0) + 1
    dims = bound_dims(pattern)

    def extend(
        position: int, used: frozenset[int], image: dict[int, int]
    ) -> Iterator[tuple[frozenset[int], dict[int, int]]]:
        if position == len(pattern):
            inner = [image[label] for label in dims]
            if len(set(inner)) == len(inner) and all(
                image[label] >= 0 and counts[image[label]] == needs[label] for label in dims
            ):
                yield used, image
            return
        head, slots = pattern[position]
        for place, (other, other_slots) in enumerate(key):
            if place in used or other != head:
                continue
            orders = [other_slots]
            if head.symmetry == 1 and len(other_slots) == 2:
                orders.append((other_slots[1], other_slots[0]))
            for order in orders:
                merged = dict(image)
                if all(
                    merged.setdefault(label, target) == target
                    for label, target in zip(slots, order, strict=True)
                ):
                    yield from extend(position + 1, used | {place}, merged)

    yield from extend(0, frozenset(), {})

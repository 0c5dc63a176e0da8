"""Equations as oriented rules on the index form, with the cofactors that make each use checkable.

An equation left == right is the polynomial h[r, c] = left[r, c] - right[r, c]. Its leading term
(most matrices, then most factors, then the later names; or the matrix that the equation defines) is
a set of factors and scalars; wherever these are found among the factors of a term, they give way to
the rest of h. Hypotheses are reduced by one another, definitions first. Each use is recorded as
cofactor * h, so that a proof is the identity

    left - right == sum of cofactor * h,

which holds without any hypothesis and is checked like that. Where two leading terms overlap as
chains of matrices, the two ways to rewrite the overlap are compared, and their difference, if it
does not reduce to 0, becomes a further rule (Knuth and Bendix 1970), up to a limit. Where a
remainder is left and no counterexample is found, the decision is UNDECIDED.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from nonmixing.algebra.canonical import Factor, Head
from nonmixing.algebra.dims import Index
from nonmixing.algebra.terms import (
    Component,
    Delta,
    Entry,
    Monomial,
    Poly,
    Reciprocal,
    Scalar,
    Table,
    exact,
    identify,
    shifted,
)

MAX_STEPS = 600
MAX_RULES = 24
MAX_LEAD = 6
"""Completion makes no rules with longer leading terms."""

Impose = Callable[[Poly], Poly]
Tick = Callable[[], None]
Plain = tuple[tuple[int, int], ...]
"""Atoms that are no components (scalars, dimensions, entries), with their exponents."""


Weight = tuple[tuple[int, int], tuple[str, ...], tuple[Factor, ...]]
"""What terms are ordered by; see `_weight`."""


class Contradiction(Exception):
    """The hypotheses cannot hold together: a number that is not 0 would be 0."""


def refuse_contradiction(table: Table, equation: Poly) -> None:
    """Raise where an equation, reduced by others, says that a number other than 0 is 0.

    With deltas it says so where all indices are equal, which some are at every size.
    """
    deltas = all(isinstance(table.atom(n), Delta) for mono in equation for n, _ in mono)
    if deltas and sum(equation.values()):
        raise Contradiction


@dataclass(frozen=True)
class Lead:
    """A leading term: its factors, labels below 0 being the equation's indices, and its scalars."""

    factors: tuple[Factor, ...]
    plain: Plain
    coefficient: Fraction


@dataclass(frozen=True)
class Rule:
    """lead[r, c] gives way to (lead - h / coefficient)[r, c].

    Attributes:
        number: which hypothesis this is; -1 for one that completion made.
        lead: the leading term.
        equation: h, the whole polynomial.
        row: row index of the equation's entry.
        col: column index.
        labels: the labels in these, with their dimensions.
        origin: for a rule that completion made, h as uses of the hypotheses.
    """

    number: int
    lead: Lead
    equation: Poly
    row: Index
    col: Index
    labels: tuple[tuple[int, str], ...]
    origin: tuple[Use, ...] = ()


@dataclass(frozen=True)
class Use:
    """One use of a hypothesis: cofactor * h, summed over its labels (renamed to `labels`)."""

    rule: Rule
    cofactor: Poly
    labels: tuple[int, ...]


@dataclass(frozen=True)
class Reduction:
    """What is left of a polynomial, and the uses that account for the difference."""

    remainder: Poly
    uses: tuple[Use, ...]


def orient(
    table: Table,
    equation: Poly,
    row: Index,
    col: Index,
    labels: Sequence[tuple[int, str]],
    number: int,
    origin: tuple[Use, ...] = (),
    *,
    eliminate: str | None = None,
) -> Rule | None:
    """The rule of an equation; None where no term has all of the labels, so that none can lead.

    Args:
        table: the atoms' table.
        equation: left - right.
        row: row index of the entry.
        col: column index.
        labels: the labels in these, with their dimensions.
        number: of the hypothesis; -1 for a consequence of several.
        origin: such a consequence as uses of hypotheses.
        eliminate: a matrix that stands alone on one side and not on the other; it leads.
    """
    wanted = {label for label, _ in labels}
    if eliminate is not None:
        for mono, value in equation.items():
            factors = _flat(table, mono)[0]
            if [head.name for head, _ in factors] == [eliminate]:
                lead = Lead(tuple(factors), (), Fraction(value))
                return Rule(number, lead, equation, row, col, tuple(labels), origin)
    best: tuple[Weight, Lead] | None = None
    highest: Weight | None = None
    for mono, value in equation.items():
        factors, plain, pure = _flat(table, mono)
        weight = _weight(table, factors, plain)
        if highest is None or weight[:2] > highest[:2]:
            highest = weight
        present = {label for _, slots in factors for label in slots if label < 0}
        # A number cannot lead: 1 -> 1/n would go on for ever.
        leads = pure and present == wanted and bool(factors or plain)
        if leads and (best is None or weight > best[0]):
            best = weight, Lead(tuple(factors), plain, Fraction(value))
    if best is None or highest is None or best[0][:2] != highest[:2]:
        return None
    return Rule(number, best[1], equation, row, col, tuple(labels), origin)


def consequence(
    table: Table,
    equation: Poly,
    row: Index,
    col: Index,
    labels: Sequence[tuple[int, str]],
    number: int,
    reduction: Reduction,
) -> tuple[Use, ...]:
    """A reduced equation as uses of hypotheses: itself once, less what was used to reduce it."""
    low = min([-2, *(label for label, _ in labels)])
    fresh = tuple(low - 1 - k for k in range(len(labels)))
    whole = Rule(number, Lead((), (), Fraction(1)), equation, row, col, tuple(labels))
    tie = table.constant(1)
    for (label, _), new in zip(labels, fresh, strict=True):
        tie = table.multiply(tie, table.delta(label, new))
    itself = Use(whole, tie, fresh)
    return (itself, *(_negative(table, use) for use in reduction.uses))


def _flat(table: Table, mono: Monomial) -> tuple[list[Factor], Plain, bool]:
    """All factors of a monomial with their summed labels kept apart, and the other atoms.

    The last value says whether there are neither deltas nor reciprocals among these.
    """
    factors: list[Factor] = []
    plain: list[tuple[int, int]] = []
    pure, top = True, 0
    for number, exponent in mono:
        atom = table.atom(number)
        if isinstance(atom, Component):
            for _ in range(exponent):
                part, top = shifted(atom.key, top)
                factors += part
        else:
            pure = pure and not isinstance(atom, Delta | Reciprocal)
            plain.append((number, exponent))
    return factors, tuple(plain), pure


def _weight(table: Table, factors: Sequence[Factor], plain: Plain) -> Weight:
    """Orders terms: factors, those with two labels first; then names, later ones more; then form.

    All but the last are additive, so that a rule that lowers them does so in every surrounding.
    Matrices weigh more than vectors, so that S P = P diag(s) takes S P away.
    """
    names = [head.name for head, _ in factors]
    for number, exponent in plain:
        atom = table.atom(number)
        if isinstance(atom, Scalar | Entry):
            names += [atom[0]] * exponent
    matrices = sum(len(slots) > 1 for _, slots in factors)
    return (matrices, len(names)), tuple(sorted(names, reverse=True)), tuple(factors)


def complete(table: Table, rules: Sequence[Rule], impose: Impose, tick: Tick) -> tuple[Rule, ...]:
    """Add the rules that overlapping leading terms call for, as far as the limits allow."""
    done = list(rules)
    pairs = [(i, j) for i in range(len(done)) for j in range(i + 1)]
    while pairs and len(done) < MAX_RULES:
        i, j = pairs.pop(0)
        for gap in _critical(table, done[i], done[j]):
            tick()
            reduced = reduce(table, gap.remainder, done, impose, tick)
            remainder = table.settle(impose(reduced.remainder))
            if not remainder:
                continue
            refuse_contradiction(table, remainder)
            origin = (*gap.uses, *(_negative(table, use) for use in reduced.uses))
            # Over the overlap's two ends, -1 and -2.
            new = orient(table, remainder, -1, -2, gap.labels, -1, origin)
            if new is None or len(new.lead.factors) > MAX_LEAD or len(done) >= MAX_RULES:
                continue
            pairs += [(len(done), k) for k in range(len(done) + 1)]
            done.append(new)
    return tuple(done)


def _negative(table: Table, use: Use) -> Use:
    return Use(use.rule, table.scale(use.cofactor, -1), use.labels)


@dataclass(frozen=True)
class _Gap:
    """The difference of two ways to rewrite an overlap: a polynomial, and uses of the rules."""

    remainder: Poly
    uses: tuple[Use, ...]
    labels: tuple[tuple[int, str], ...]


def _critical(table: Table, one: Rule, other: Rule) -> Iterator[_Gap]:
    """Overlaps of two leading terms that are chains of matrices from label -1 to label -2."""
    for first in _words(one):
        for second in _words(other):
            for size in range(1, min(len(first), len(second)) + 1):
                if first[-size:] != second[:size] or (one is other and size == len(first)):
                    continue
                word = (*first, *second[size:])
                factors = _chain(word)
                ends = ((-1, _dims(word[0])[0]), (-2, _dims(word[-1])[1]))
                places = (
                    frozenset(range(len(first))),
                    frozenset(range(len(first) - size, len(word))),
                )
                uses: list[tuple[Use, Poly]] = []
                for rule, where in zip((one, other), places, strict=True):
                    match = next(
                        (m for m in matches(rule.lead.factors, factors) if m[0] == where), None
                    )
                    if match is not None:
                        outside: Poly = {(): exact(match[2] / rule.lead.coefficient)}
                        uses.append(_use(table, rule, factors, match, outside))
                if len(uses) == 2:
                    (left, left_poly), (right, right_poly) = uses
                    gap = dict(left_poly)
                    table.add_to(gap, right_poly, -1)
                    yield _Gap(gap, (left, _negative(table, right)), ends)


Word = tuple[tuple[Head, int], ...]


def _words(rule: Rule) -> tuple[Word, ...]:
    """The leading term as a word, in both directions; none if it is no chain from end to end."""
    factors = rule.lead.factors
    if rule.lead.plain or any(len(slots) != 2 for _, slots in factors) or len(rule.labels) != 2:
        return ()
    found: list[Word] = []
    for start, end in ((-1, -2), (-2, -1)):
        word: list[tuple[Head, int]] = []
        here, left = start, list(factors)
        while left:
            step = [(f, f[1].index(here)) for f in left if here in f[1]]
            if len(step) != 1:
                return ()
            (head, slots), entering = step[0]
            left.remove((head, slots))
            word.append((head, 0 if head.symmetry else entering))
            here = slots[1 - entering]
        if here != end:
            return ()
        found.append(tuple(word))
    return tuple(dict.fromkeys(found))


def _dims(letter: tuple[Head, int]) -> tuple[str, str]:
    head, entering = letter
    return head.dims[entering], head.dims[1 - entering]


def _chain(word: Word) -> tuple[Factor, ...]:
    """The chain of a word from label -1 to label -2."""
    last = len(word) - 1
    factors: list[Factor] = []
    for position, (head, entering) in enumerate(word):
        ends = (-1 if position == 0 else position - 1, -2 if position == last else position)
        factors.append((head, ends if entering == 0 else ends[::-1]))
    return tuple(factors)


def reduce(
    table: Table, poly: Poly, rules: Sequence[Rule], impose: Impose, tick: Tick
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
        use = None if steps >= MAX_STEPS else _first_use(table, mono, value, rules, impose)
        if use is None:
            table.add_to(remainder, {mono: value})
            continue
        steps += 1
        uses.append(use[0])
        table.add_to(todo, {mono: value})
        table.add_to(todo, use[1], -1)
    return Reduction(remainder, tuple(uses))


def expanded(table: Table, uses: Sequence[Use]) -> tuple[Use, ...]:
    """The uses with those of completion's rules written out as uses of the hypotheses."""
    result: list[Use] = []
    for use in uses:
        if use.rule.number >= 0:
            result.append(use)
            continue
        inner: list[Use] = []
        for part in use.rule.origin:
            low = min([-2, *use.labels, *part.labels, *_free(table, use.cofactor)]) - 1
            # The origin speaks of the labels -1 and -2; here they are the use's own.
            cofactor, moved = part.cofactor, list(part.labels)
            for k, label in enumerate(part.labels):
                cofactor, moved[k] = table.rename(cofactor, label, low - k), low - k
            for (label, _), own in zip(use.rule.labels, use.labels, strict=True):
                cofactor = table.rename(cofactor, label, own)
            product = table.multiply(use.cofactor, cofactor)
            for (_, dim), own in zip(use.rule.labels, use.labels, strict=True):
                product = table.contract(product, own, dim)
            inner.append(Use(part.rule, product, tuple(moved)))
        result += expanded(table, inner)
    return tuple(result)


def _free(table: Table, poly: Poly) -> set[int]:
    return {label for mono in poly for number, _ in mono for label in table.free(number)}


def _first_use(
    table: Table, mono: Monomial, value: int | Fraction, rules: Sequence[Rule], impose: Impose
) -> tuple[Use, Poly] | None:
    """A use of a rule that does away with a term: the use, and cofactor * h under the kinds."""
    factors, plain, _ = _flat(table, mono)
    have = dict(plain)
    heads = {head for head, _ in factors}
    for rule in rules:
        lead = rule.lead
        if any(head not in heads for head, _ in lead.factors):
            continue
        if any(have.get(number, 0) < exponent for number, exponent in lead.plain):
            continue
        match = next(matches(lead.factors, factors), None)
        if match is None:
            continue
        rest = dict(have)
        for number, exponent in lead.plain:
            rest[number] -= exponent
        kept = tuple((n, e) for n, e in sorted(rest.items()) if e)
        outside: Poly = {kept: exact(match[2] * Fraction(value) / lead.coefficient)}
        use, full = _use(table, rule, factors, match, outside)
        full = table.settle(impose(full))
        # A rule such as U V^T -> V U^T leaves tr(U V^T) as it was: that is no progress.
        if full.get(mono) == value:
            return use, full
    return None


def _use(
    table: Table, rule: Rule, factors: Sequence[Factor], match: Match, outside: Poly
) -> tuple[Use, Poly]:
    """The cofactor at one match, and cofactor * h in full."""
    places, image, _ = match
    low = min((label for _, slots in factors for label in slots), default=0)
    low = min([low, -2, *_free(table, outside)])
    labels = tuple(low - 1 - i for i in range(len(rule.labels)))
    by_target: dict[int, list[int]] = {}
    for (label, _), fresh in zip(rule.labels, labels, strict=True):
        by_target.setdefault(image[label], []).append(fresh)
    # A summed label at the border of the match is opened: the cofactor carries the fresh label in
    # its place. A free label of the term, and a second fresh label at the same place, are tied to
    # it by a delta.
    opened = {target: fresh[0] for target, fresh in by_target.items() if target >= 0}
    rest: list[Factor] = [
        (head, tuple(opened.get(s, s) for s in slots))
        for i, (head, slots) in enumerate(factors)
        if i not in places
    ]
    over = dict(zip(labels, (dim for _, dim in rule.labels), strict=True))
    deltas: list[tuple[int, int, str]] = []
    for target, fresh in by_target.items():
        anchor = fresh[0] if target >= 0 else target
        deltas += [(anchor, label, over[label]) for label in fresh if label != anchor]
    cofactor = table.multiply(outside, identify(table, rest, deltas))
    full = rule.equation
    for (label, _), fresh in zip(rule.labels, labels, strict=True):
        full = table.rename(full, label, fresh)
    full = table.multiply(cofactor, full)
    for fresh, dim in over.items():
        full = table.contract(full, fresh, dim)
    return Use(rule, cofactor, labels), full


Match = tuple[frozenset[int], dict[int, int], int]
"""Places of the matched factors, images of the pattern's labels, and the sign of swapped slots."""


def matches(pattern: Sequence[Factor], factors: Sequence[Factor]) -> Iterator[Match]:
    """Places among factors where a pattern fits.

    The pattern's summed labels go onto summed labels that stand nowhere else; its free labels go
    anywhere.
    """
    counts = _counts(factors)
    needs = _counts(pattern)
    inner = [label for label in needs if label >= 0]

    def extend(
        position: int, used: frozenset[int], image: dict[int, int], sign: int
    ) -> Iterator[Match]:
        if position == len(pattern):
            images = [image[label] for label in inner]
            if len(set(images)) == len(images) and all(
                image[label] >= 0 and counts[image[label]] == needs[label] for label in inner
            ):
                yield used, image, sign
            return
        head, slots = pattern[position]
        for place, (other, other_slots) in enumerate(factors):
            if place in used or other != head:
                continue
            orders = [(other_slots, 1)]
            if head.symmetry and len(other_slots) == 2:
                orders.append((other_slots[::-1], head.symmetry))
            for order, turned in orders:
                merged = dict(image)
                if all(
                    merged.setdefault(label, target) == target
                    for label, target in zip(slots, order, strict=True)
                ):
                    yield from extend(position + 1, used | {place}, merged, sign * turned)

    yield from extend(0, frozenset(), {}, 1)


def _counts(factors: Sequence[Factor]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for _, slots in factors:
        for label in slots:
            counts[label] = counts.get(label, 0) + 1
    return counts

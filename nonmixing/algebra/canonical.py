"""Canonical labelling of connected products of factors.

A *factor* is `X[i, j]`: a head (which symbol, with which symmetry) and labels in its slots.
Negative labels are free and fixed; labels >= 0 are summed, and their names do not matter. A
*component* is a product of factors connected by summed labels. `canonical` gives two components the
same key if and only if they differ by the names of summed labels alone, by the order of factors,
and by the symmetries of their heads; for skew heads it also gives the sign, and 0 for a component
that equals its own negative (tr K, x^T K x).

Two routes give keys of the same form. A component in which each factor has at most two slots,
and each summed label stands in at most two of them, is a path or a cycle and is walked directly.
Everything else (elementwise products, diagonals, higher tensors) goes through colour refinement
with individualisation; automorphisms found on the way prune the search (McKay and Piperno 2014,
"Practical graph isomorphism, II", in its simplest form).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

SYMMETRIC = 1
SKEW = -1


class Head(NamedTuple):
    """What stands before the brackets of a factor.

    Attributes:
        name: the symbol.
        fixed: per slot of the symbol, the constant index there, or -1 where a label stands.
        dims: dimension names of the slots that carry labels.
        symmetry: 0, `SYMMETRIC` or `SKEW`; meaningful for two labelled slots.
    """

    name: str
    fixed: tuple[int, ...]
    dims: tuple[str, ...]
    symmetry: int = 0


Slots = tuple[int, ...]
Factor = tuple[Head, Slots]
Key = tuple[Factor, ...]

_DANGLING = 0
_TIP = 1


def row_and_column(head: Head, slots: Sequence[int]) -> tuple[int, int]:
    """Row and column index of a factor of a matrix, its fixed ones included."""
    remaining = iter(slots)
    row, col = (fixed if fixed >= 0 else next(remaining) for fixed in head.fixed)
    return row, col


def connected(factors: Iterable[Factor]) -> list[list[Factor]]:
    """Split a product of factors into its components (connected through summed labels)."""
    groups: list[tuple[set[int], list[Factor]]] = []
    for factor in factors:
        labels = {label for label in factor[1] if label >= 0}
        members = [factor]
        apart: list[tuple[set[int], list[Factor]]] = []
        for group in groups:
            if labels.isdisjoint(group[0]):
                apart.append(group)
            else:
                labels |= group[0]
                members = group[1] + members
        apart.append((labels, members))
        groups = apart
    return [members for _, members in groups]


def canonical(factors: Sequence[Factor], tick: Callable[[], None] | None = None) -> tuple[int, Key]:
    """Sign and canonical key of one component; sign 0 means that the component is zero.

    Args:
        factors: of the component.
        tick: called in long searches; raises when time is up.
    """
    where: dict[int, int] = {}
    chain = True
    for head, slots in factors:
        if head.symmetry == SKEW and len(slots) == 2 and slots[0] == slots[1]:
            return 0, ()
        chain = chain and len(slots) <= 2
        for label in slots:
            if label >= 0:
                where[label] = where.get(label, 0) + 1
    if not any(slots for _, slots in factors):
        return 1, tuple(factors)
    if chain and all(count <= 2 for count in where.values()):
        return _canonical_chain(factors, where)
    return _Search(factors, tick).run()


# --- paths and cycles -----------------------------------------------------------------------------


class _Walk(NamedTuple):
    """A chain read in one direction.

    Attributes:
        code: what is compared.
        sign: product of the factors' signs.
        steps: head and entering slot of each factor.
        first: label before the first factor: free, dangling (>= 0), or None at a one-slot tip.
        last: label after the last factor, likewise.
    """

    code: tuple[object, ...]
    sign: int
    steps: tuple[tuple[Head, int], ...]
    first: int | None
    last: int | None


def _canonical_chain(factors: Sequence[Factor], where: dict[int, int]) -> tuple[int, Key]:
    ends: list[tuple[int, int]] = []
    at: dict[int, list[tuple[int, int]]] = {}
    for number, (_, slots) in enumerate(factors):
        for slot, label in enumerate(slots):
            if label < 0 or where[label] == 1:
                ends.append((number, slot))
            else:
                at.setdefault(label, []).append((number, slot))
        if len(slots) == 1:
            ends.append((number, -1))
    if not ends:
        return _canonical_cycle(factors, at)
    # A walk's code begins with its end, so where the two ends differ one walk is enough.
    starts = [_end_code(factors, number, slot) for number, slot in ends]
    least = min(starts)
    walks = [
        _walk(factors, at, number, slot)
        for (number, slot), start in zip(ends, starts, strict=True)
        if start == least
    ]
    best = min(walks, key=lambda walk: walk.code) if len(walks) > 1 else walks[0]
    if any(walk.code == best.code and walk.sign != best.sign for walk in walks):
        return 0, ()
    return best.sign, _write(best)


def _end_code(factors: Sequence[Factor], number: int, slot: int) -> int:
    """What a walk from this end begins with."""
    if slot == -1:
        return _TIP
    label = factors[number][1][slot]
    return _DANGLING if label >= 0 else label


def _letter(head: Head, entering: int) -> tuple[tuple[Head, int], int]:
    """The comparable letter of a factor entered at a slot, and its sign."""
    if head.symmetry and len(head.dims) == 2:
        return (head, 0), (-1 if head.symmetry == SKEW and entering == 1 else 1)
    return (head, entering), 1


def _walk(
    factors: Sequence[Factor], at: dict[int, list[tuple[int, int]]], number: int, slot: int
) -> _Walk:
    """Follow the path from an end: (factor, slot), or (one-slot factor, -1)."""
    first = None if slot == -1 else factors[number][1][slot]
    code: list[object] = [_end_code(factors, number, slot)]
    steps: list[tuple[Head, int]] = []
    sign = 1
    entering = slot
    while True:
        head, slots = factors[number]
        letter, factor_sign = _letter(head, max(entering, 0))
        sign *= factor_sign
        code.append(letter)
        steps.append((head, max(entering, 0)))
        if len(slots) == 1 and entering != -1:
            last = None
            break
        leaving = 0 if len(slots) == 1 else 1 - entering
        last = slots[leaving]
        ends = at.get(last)
        if ends is None:
            break
        number, entering = ends[1] if ends[0] == (number, leaving) else ends[0]
    code.append(_TIP if last is None else _DANGLING if last >= 0 else last)
    return _Walk(tuple(code), sign, tuple(steps), first, last)


def _write(walk: _Walk) -> Key:
    """Key of a path: labels numbered along the walk."""
    fresh = 0
    written: list[Factor] = []
    label = walk.first
    if label is not None and label >= 0:
        label, fresh = 0, 1
    for position, (head, entering) in enumerate(walk.steps):
        final = position == len(walk.steps) - 1
        if len(head.dims) == 1:
            if label is None:  # a one-slot tip at the start: its only slot leads on
                label, fresh = (
                    (walk.last, fresh)
                    if final and walk.last is not None and walk.last < 0
                    else (fresh, fresh + 1)
                )
            written.append((head, (label,)))
            continue
        if final and walk.last is not None and walk.last < 0:
            following = walk.last
        else:
            following, fresh = fresh, fresh + 1
        assert label is not None
        pair = (label, following) if entering == 0 or head.symmetry else (following, label)
        written.append((head, pair))
        label = following
    return tuple(written)


def _canonical_cycle(
    factors: Sequence[Factor], at: dict[int, list[tuple[int, int]]]
) -> tuple[int, Key]:
    steps: list[tuple[Head, int]] = []
    number, entering = 0, 0
    while True:
        head, slots = factors[number]
        steps.append((head, entering))
        leaving = 1 - entering
        ends = at[slots[leaving]]
        number, entering = ends[1] if ends[0] == (number, leaving) else ends[0]
        if (number, entering) == (0, 0):
            break
    candidates: list[tuple[tuple[tuple[Head, int], ...], int]] = []
    for direction in (steps, [(head, 1 - entering) for head, entering in reversed(steps)]):
        letters = [_letter(head, entering) for head, entering in direction]
        sign = 1
        for _, factor_sign in letters:
            sign *= factor_sign
        word = tuple(letter for letter, _ in letters)
        least = min(word)
        candidates += [
            (word[i:] + word[:i], sign) for i, letter in enumerate(word) if letter == least
        ]
    code, sign = min(candidates)
    if any(other == code and other_sign != sign for other, other_sign in candidates):
        return 0, ()
    length = len(code)
    written: list[Factor] = []
    for position, (head, entering) in enumerate(code):
        here, following = position, (position + 1) % length
        pair = (here, following) if entering == 0 else (following, here)
        written.append((head, pair))
    return sign, tuple(written)


# --- everything else ------------------------------------------------------------------------------

_Code = tuple[Factor, ...]


class _Search:
    """Canonical labelling by refinement and individualisation, with automorphism pruning."""

    def __init__(self, factors: Sequence[Factor], tick: Callable[[], None] | None) -> None:
        self.tick = tick
        self.factors = list(factors)
        self.labels = sorted({label for _, slots in factors for label in slots if label >= 0})
        self.at: dict[int, list[tuple[int, int]]] = {label: [] for label in self.labels}
        for number, (head, slots) in enumerate(factors):
            for slot, label in enumerate(slots):
                if label >= 0:
                    self.at[label].append((number, 0 if head.symmetry else slot))
        # The least code so far, its sign, the order of labels that gave it, and the path to it.
        self.best: tuple[_Code, int, list[int], tuple[int, ...]] | None = None
        self.zero = False
        self.automorphisms: list[dict[int, int]] = []

    def run(self) -> tuple[int, Key]:
        self._explore(self._refine(dict.fromkeys(self.labels, 0)), ())
        if self.zero or self.best is None:
            return 0, ()
        return self.best[1], self.best[0]

    def _refine(self, colour: dict[int, int]) -> dict[int, int]:
        """Split colours by what each label is joined to until nothing splits any more."""
        count = len(set(colour.values()))
        while True:
            if self.tick is not None:
                self.tick()
            signatures: list[tuple[Head, tuple[tuple[int, int], ...], Slots]] = []
            for head, slots in self.factors:
                seen = tuple((0, label) if label < 0 else (1, colour[label]) for label in slots)
                pattern = tuple(slots.index(label) for label in slots)
                signatures.append((head, tuple(sorted(seen)) if head.symmetry else seen, pattern))
            ranks = {signature: i for i, signature in enumerate(sorted(set(signatures)))}
            named = {
                label: (
                    colour[label],
                    tuple(
                        sorted((ranks[signatures[number]], slot) for number, slot in self.at[label])
                    ),
                )
                for label in self.labels
            }
            order = {name: i for i, name in enumerate(sorted(set(named.values())))}
            colour = {label: order[name] for label, name in named.items()}
            if len(order) == count:
                return colour
            count = len(order)

    def _explore(self, colour: dict[int, int], path: tuple[int, ...]) -> int:
        """Search below a node.

        Returns:
            The depth to go back to (its own depth to go on as usual).
        """
        depth = len(path)
        cells: dict[int, list[int]] = {}
        for label, value in colour.items():
            cells.setdefault(value, []).append(label)
        target = min((value for value, cell in cells.items() if len(cell) > 1), default=None)
        if target is None:
            return self._leaf(colour, path)
        done: list[int] = []
        for label in cells[target]:
            if done and self._equivalent(label, done, path):
                continue
            done.append(label)
            split = {
                other: 2 * value + (1 if value == target else 0) for other, value in colour.items()
            }
            split[label] = 2 * target
            back = self._explore(self._refine(split), (*path, label))
            if back < depth or self.zero:
                return back
        return depth

    def _leaf(self, colour: dict[int, int], path: tuple[int, ...]) -> int:
        sign = 1
        code: list[Factor] = []
        for head, slots in self.factors:
            named = tuple(label if label < 0 else colour[label] for label in slots)
            if head.symmetry and len(named) == 2 and named[0] > named[1]:
                named = (named[1], named[0])
                sign *= head.symmetry
            code.append((head, named))
        key = tuple(sorted(code))
        order = sorted(self.labels, key=colour.__getitem__)
        if self.best is None or key < self.best[0]:
            self.best = (key, sign, order, path)
            return len(path)
        if key > self.best[0]:
            return len(path)
        # The same code by another order: an automorphism.
        # One that reverses the sign makes the component zero.
        if sign != self.best[1]:
            self.zero = True
            return -1
        self.automorphisms.append(dict(zip(self.best[2], order, strict=True)))
        shared = 0
        for mine, theirs in zip(path, self.best[3], strict=False):
            if mine != theirs:
                break
            shared += 1
        return shared

    def _equivalent(self, label: int, done: list[int], path: tuple[int, ...]) -> bool:
        """Whether a known automorphism that fixes the path takes an explored label to this one."""
        reached = {label}
        frontier = [label]
        fixing = [a for a in self.automorphisms if all(a[p] == p for p in path)]
        while frontier:
            here = frontier.pop()
            for automorphism in fixing:
                there = automorphism[here]
                if there not in reached:
                    reached.add(there)
                    frontier.append(there)
        return not reached.isdisjoint(done)

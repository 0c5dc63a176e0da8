"""Canonical index form: sums of terms, a term being a coefficient times a product of atoms.

One structure serves scalars and matrices alike. A `Poly` is a polynomial with rational
coefficients in commuting *atoms*; an atom is a declared scalar, a dimension, a reciprocal,
a single entry `X[0, 1]`, a Kronecker delta between two free labels, or a canonical component
(see `canonical`): a product of factors that summed labels hold together. Components without
free labels are numbers such as tr(X Y); those with free labels are the entries of a matrix.
The matrix product is polynomial multiplication followed by contraction of the shared label; the
elementwise product is multiplication alone. Atoms are numbered by a `Table`, so that monomials
are short tuples of integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from nonmixing.algebra.canonical import (
    SYMMETRIC,
    Factor,
    Head,
    Key,
    Slots,
    canonical,
    connected,
)
from nonmixing.errors import InputError

Coefficient = int | Fraction
Monomial = tuple[tuple[int, int], ...]
"""Sorted (atom number, exponent) pairs."""
Poly = dict[Monomial, Coefficient]

ONE: Monomial = ()

MAX_TERMS = 50_000
"""A product of polynomials that could have more terms is refused."""


class TooLarge(InputError):
    """The expanded form would have more terms than the budget allows."""


class Scalar(NamedTuple):
    """A declared scalar."""

    name: str


class Dimension(NamedTuple):
    """A symbolic dimension used as a number."""

    dim: str


class Entry(NamedTuple):
    """A single entry of a matrix, both indices constant."""

    matrix: str
    row: int
    col: int


class Delta(NamedTuple):
    """Kronecker delta between two free labels, smaller first."""

    low: int
    high: int


class Reciprocal(NamedTuple):
    """One over a polynomial in scalars and dimensions, kept as sorted items."""

    items: tuple[tuple[Monomial, Coefficient], ...]


class Component(NamedTuple):
    """Connected product of factors."""

    key: Key


Atom = Scalar | Dimension | Entry | Delta | Reciprocal | Component


def exact(value: Coefficient) -> Coefficient:
    """The same number, as an int where it is one (ints are much faster than Fractions)."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    return value


_PLACEHOLDER = -1_000_000
"""The label that stands for a function's first slot in its argument; the next ones lie below."""


class Applied(NamedTuple):
    """An opaque function of an argument.

    Attributes:
        name: the function.
        order: of the derivative.
        argument: the argument, with placeholders for the slots.
    """

    name: str
    order: int
    argument: Poly

    def at(self, table: Table, labels: Sequence[int]) -> Poly:
        """The argument at labels."""
        poly = self.argument
        for i, label in enumerate(labels):
            poly = table.rename(poly, _PLACEHOLDER - i, label)
        return poly


class Table:
    """Numbers atoms and does the arithmetic of polynomials in them.

    One per decision; nothing is shared.
    """

    def __init__(self, tick: Callable[[], None] | None = None) -> None:
        self._numbers: dict[Atom, int] = {}
        self._atoms: list[Atom] = []
        self._free: list[frozenset[int]] = []
        self._deltas: set[int] = set()
        self._partner: dict[int, int] = {}  # of an atom its reciprocal, and back
        self._merged: dict[tuple[Monomial, int, str], tuple[Coefficient, Monomial]] = {}
        self._renamed: dict[tuple[int, int, int], tuple[int, Monomial]] = {}
        self._applied: dict[tuple[str, int, frozenset[tuple[Monomial, Coefficient]]], Head] = {}
        self._functions: dict[str, Applied] = {}
        self._tick = tick

    def tick(self) -> None:
        """Look at the clock, in loops that may be long."""
        if self._tick is not None:
            self._tick()

    # --- atoms ------------------------------------------------------------------------------------

    def number(self, atom: Atom) -> int:
        """The atom's number, given on first sight."""
        known = self._numbers.get(atom)
        if known is None:
            known = self._numbers[atom] = len(self._atoms)
            self._atoms.append(atom)
            self._free.append(_free_labels(atom))
            if isinstance(atom, Delta):
                self._deltas.add(known)
        return known

    def atom(self, number: int) -> Atom:
        """The atom of that number."""
        return self._atoms[number]

    def free(self, number: int) -> frozenset[int]:
        """Free labels of the atom."""
        return self._free[number]

    def of(self, atom: Atom) -> Poly:
        """The atom as a polynomial."""
        return {((self.number(atom), 1),): 1}

    def product(
        self,
        factors: Sequence[Factor],
        deltas: Iterable[tuple[int, int]] = (),
        *,
        joined: bool = False,
    ) -> tuple[int, Monomial]:
        """Sign and monomial of a product of factors and deltas of free labels.

        The factors may form any number of components; `joined` says that they form one.
        """
        sign = 1
        found: dict[int, int] = {}
        for members in [factors] if joined or len(factors) == 1 else connected(factors):
            part_sign, key = canonical(members, self._tick)
            if part_sign == 0:
                return 0, ONE
            sign *= part_sign
            number = self.number(Component(key))
            found[number] = found.get(number, 0) + 1
        for low, high in deltas:
            if low != high:
                found[self.number(Delta(min(low, high), max(low, high)))] = 1
        return sign, tuple(sorted(found.items()))

    def delta(self, one: int, other: int) -> Poly:
        """Kronecker delta of two indices of one dimension.

        Two labels, or two constants (>= 0), never mixed.
        """
        if one == other:
            return {ONE: 1}
        if one >= 0 and other >= 0:
            return {}
        return self.of(Delta(min(one, other), max(one, other)))

    # --- opaque functions -------------------------------------------------------------------------

    def applied(
        self,
        name: str,
        order: int,
        argument: Poly,
        labels: Sequence[int],
        dims: Sequence[str],
    ) -> Poly:
        """An opaque function (or its derivative of an order) of an argument, as a factor.

        The factor's slots are the labels that the argument has. Two arguments that are equal as
        index forms give the same head; one that does not change when its labels are swapped
        gives a symmetric one.

        Args:
            name: the function.
            order: of the derivative.
            argument: what it is applied to.
            labels: the argument's free labels, in order, with or without some that it lacks.
            dims: their dimensions.
        """
        argument = self.settle(argument)
        present = {label for mono in argument for number, _ in mono for label in self._free[number]}
        used = [(x, d) for x, d in dict(zip(labels, dims, strict=True)).items() if x in present]
        places = [(label, _PLACEHOLDER - i) for i, (label, _) in enumerate(used)]
        normal = self._relabelled(argument, places)
        slots = tuple(label for label, _ in used)
        head = self._applied.get((name, order, frozenset(normal.items())))
        if head is None and len(used) == 2:
            turned = self._relabelled(
                argument, [(used[0][0], _PLACEHOLDER - 1), (used[1][0], _PLACEHOLDER)]
            )
            head = self._applied.get((name, order, frozenset(turned.items())))
            if head is not None:
                slots = slots[::-1]
            symmetry = SYMMETRIC if turned == normal and used[0][1] == used[1][1] else 0
        else:
            symmetry = 0
        if head is None:
            over = tuple(dim for _, dim in used)
            head = Head(f"{name}#{order}#{len(self._functions)}", (-1,) * len(used), over, symmetry)
            self._applied[name, order, frozenset(normal.items())] = head
            self._functions[head.name] = Applied(name, order, normal)
        sign, mono = self.product([(head, slots)])
        return {mono: sign}

    def function(self, head: Head) -> Applied | None:
        """The function that a head stands for; None for a matrix."""
        return self._functions.get(head.name)

    def map_functions(
        self,
        poly: Poly,
        wanted: Callable[[Head, Slots], bool],
        change: Callable[[Poly], Poly],
    ) -> Poly:
        """Apply a change to the arguments of the wanted functions, but not of those inside them.

        Args:
            poly: the polynomial.
            wanted: given a function's factor, whether its argument is to be changed.
            change: of the argument, whose labels are the factor's.
        """

        def image(atom: Atom) -> Poly | None:
            if not isinstance(atom, Component):
                return None
            key = atom.key
            places = tuple(
                i for i, (h, s) in enumerate(key) if h.name in self._functions and wanted(h, s)
            )
            if not places:
                return None
            low = min((label for _, slots in key for label in slots), default=0)
            rest, opened, free = open_factors(key, places, min(low, -2) - 1)
            sign, mono = self.product(rest)
            result: Poly = {mono: sign} if sign else {}
            for place in places:
                head, slots = key[place]
                applied = self._functions[head.name]
                labels = tuple(free.get(label, label) for label in slots)
                argument = change(applied.at(self, labels))
                over = tuple(dict(zip(labels, head.dims, strict=True)).items())
                made = self.applied(
                    applied.name,
                    applied.order,
                    argument,
                    tuple(label for label, _ in over),
                    tuple(dim for _, dim in over),
                )
                result = self.multiply(result, made)
            for label, dim in opened:
                result = self.contract(result, label, dim)
            return result

        return self.map_atoms(poly, image)

    def _relabelled(self, poly: Poly, pairs: Iterable[tuple[int, int]]) -> Poly:
        for old, new in pairs:
            poly = self.rename(poly, old, new)
        return poly

    def mentions(self, poly: Poly, name: str) -> bool:
        """Whether a matrix or a scalar occurs in a polynomial, inside functions too."""
        for number in {number for mono in poly for number, _ in mono}:
            atom = self._atoms[number]
            if isinstance(atom, Component):
                for head, _ in atom.key:
                    inside = self._functions.get(head.name)
                    if head.name == name or (inside and self.mentions(inside.argument, name)):
                        return True
            elif (isinstance(atom, Entry) and atom.matrix == name) or atom == Scalar(name):
                return True
        return False

    # --- arithmetic -------------------------------------------------------------------------------

    def constant(self, value: Coefficient) -> Poly:
        """A number."""
        value = exact(value)
        return {ONE: value} if value else {}

    def dimension(self, dim: str) -> Poly:
        """A dimension used as a number; dimensions that are integers are numbers."""
        return self.constant(int(dim)) if dim.isdigit() else self.of(Dimension(dim))

    def add_to(self, target: Poly, source: Poly, factor: Coefficient = 1) -> None:
        """In place, target += factor * source."""
        for mono, value in source.items():
            new = target.get(mono, 0) + factor * value
            if new:
                target[mono] = exact(new)
            else:
                target.pop(mono, None)

    def add(self, *polys: Poly) -> Poly:
        """Sum."""
        result = dict(polys[0])
        for poly in polys[1:]:
            self.add_to(result, poly)
        return result

    def scale(self, poly: Poly, factor: Coefficient) -> Poly:
        """Scalar multiple."""
        return {mono: exact(value * factor) for mono, value in poly.items()} if factor else {}

    def multiply(self, left: Poly, right: Poly) -> Poly:
        """Product."""
        if len(left) * len(right) > MAX_TERMS:
            raise TooLarge(
                f"the expanded form has over {MAX_TERMS} terms; split the claim into smaller ones"
            )
        if self._tick is not None:
            self._tick()
        result: Poly = {}
        for mono, value in left.items():
            for other, other_value in right.items():
                both = self._times(mono, other)
                new = result.get(both, 0) + value * other_value
                if new:
                    result[both] = exact(new)
                else:
                    del result[both]
        return result

    def _times(self, left: Monomial, right: Monomial) -> Monomial:
        if not left:
            return right
        if not right:
            return left
        exponents = dict(left)
        for number, exponent in right:
            exponents[number] = exponents.get(number, 0) + exponent
        if self._deltas:  # a delta is its own square
            for number in self._deltas.intersection(exponents):
                exponents[number] = 1
        if self._partner:  # x (1/x) = 1
            for number in tuple(exponents):
                other = self._partner.get(number)
                common = (
                    min(exponents.get(number, 0), exponents.get(other, 0))
                    if other is not None
                    else 0
                )
                if common and other is not None:
                    for each in (number, other):
                        exponents[each] -= common
                        if not exponents[each]:
                            del exponents[each]
        return tuple(sorted(exponents.items()))

    def power(self, poly: Poly, exponent: int) -> Poly:
        """Power, by squaring."""
        result: Poly = {ONE: 1}
        base = poly
        while exponent:
            if exponent & 1:
                result = self.multiply(result, base)
            exponent >>= 1
            if exponent:
                base = self.multiply(base, base)
        return result

    def reciprocal(self, poly: Poly) -> Poly:
        """One over a polynomial in scalars and dimensions."""
        if not poly:
            raise InputError("division by an expression that is identically 0")
        if list(poly) == [ONE]:
            return self.constant(Fraction(1) / Fraction(poly[ONE]))
        if len(poly) == 1:
            ((mono, value),) = poly.items()
            return {self._inverted(mono): exact(1 / Fraction(value))}
        # A constant factor is taken out, so that 1/(2x) and (1/2)(1/x) are one atom.
        items = sorted(poly.items())
        lead = Fraction(items[0][1])
        monic = tuple((mono, exact(Fraction(value) / lead)) for mono, value in items)
        return {((self.number(Reciprocal(monic)), 1),): exact(1 / lead)}

    def _inverted(self, mono: Monomial) -> Monomial:
        """One over a product, as a product: of the atoms' reciprocals, which cancel with them."""
        inverted: list[tuple[int, int]] = []
        for number, exponent in mono:
            other = self._partner.get(number)
            if other is None:
                other = self.number(Reciprocal(((((number, 1),), 1),)))
                self._partner[number], self._partner[other] = other, number
            inverted.append((other, exponent))
        return tuple(sorted(inverted))

    # --- labels -----------------------------------------------------------------------------------

    def rename(self, poly: Poly, old: int, new: int) -> Poly:
        """Put the free label `new` in the place of the free label `old`."""
        result: Poly = {}
        for mono, value in poly.items():
            sign, renamed = self._rename_monomial(mono, old, new)
            if sign:
                self.add_to(result, {renamed: sign * value})
        return result

    def _rename_monomial(self, mono: Monomial, old: int, new: int) -> tuple[int, Monomial]:
        sign = 1
        result: Monomial = ONE
        for number, exponent in mono:
            if old not in self._free[number]:
                result = self._times(result, ((number, exponent),))
                continue
            step = self._renamed.get((number, old, new))
            if step is None:
                step = self._renamed[number, old, new] = self._rename_atom(
                    self._atoms[number], old, new
                )
            if step[0] == 0:
                return 0, ONE
            sign *= step[0] ** exponent
            result = self._times(result, tuple((n, e * exponent) for n, e in step[1]))
        return sign, result

    def _rename_atom(self, atom: Atom, old: int, new: int) -> tuple[int, Monomial]:
        if isinstance(atom, Delta):
            other = atom.high if atom.low == old else atom.low
            return 1, next(iter(self.delta(other, new)))
        assert isinstance(atom, Component)
        return self.product(
            [(h, tuple(new if s == old else s for s in slots)) for h, slots in atom.key]
        )

    def contract(self, poly: Poly, label: int, dim: str) -> Poly:
        """Sum over a free label that runs over a dimension."""
        result: Poly = {}
        for mono, value in poly.items():
            if self._tick is not None:
                self._tick()
            touched = tuple(pair for pair in mono if label in self._free[pair[0]])
            rest = tuple(pair for pair in mono if label not in self._free[pair[0]])
            key = (touched, label, dim)
            merged = self._merged.get(key)
            if merged is None:
                merged = self._merged[key] = self._merge(touched, label, dim)
            if merged[0]:
                self.add_to(result, {self._times(rest, merged[1]): value * merged[0]})
        return result

    def _merge(self, touched: Monomial, label: int, dim: str) -> tuple[Coefficient, Monomial]:
        if not touched:
            (mono, value), *_ = self.dimension(dim).items()
            return value, mono
        factors: list[Factor] = []
        substitute: int | None = None
        deltas: list[tuple[int, int]] = []
        top = 1  # 0 is kept for the contracted label
        for number, exponent in touched:
            atom = self._atoms[number]
            if isinstance(atom, Delta):
                other = atom.high if atom.low == label else atom.low
                if substitute is None:
                    substitute = other
                else:
                    deltas.append((substitute, other))
                continue
            assert isinstance(atom, Component)
            for _ in range(exponent):
                part, top = shifted(atom.key, top)
                factors += part
        bound = 0 if substitute is None else substitute
        placed = [(h, tuple([bound if s == label else s for s in slots])) for h, slots in factors]
        return self.product(placed, deltas, joined=substitute is None)

    # --- calculus ---------------------------------------------------------------------------------

    def derive(self, poly: Poly, of_atom: Callable[[Atom], Poly | None]) -> Poly:
        """Apply a derivation, given its value on atoms (None: the atom is constant)."""
        result: Poly = {}
        known: dict[int, Poly | None] = {}
        for mono, value in poly.items():
            for position, (number, exponent) in enumerate(mono):
                if number not in known:
                    known[number] = of_atom(self._atoms[number])
                change = known[number]
                if not change:
                    continue
                lowered = ((number, exponent - 1),) if exponent > 1 else ()
                rest = self._times(mono[:position] + mono[position + 1 :], lowered)
                self.add_to(result, self.multiply({rest: 1}, change), value * exponent)
        return result

    def map_atoms(self, poly: Poly, image: Callable[[Atom], Poly | None]) -> Poly:
        """Replace atoms by polynomials (None: the atom stays)."""
        result: Poly = {}
        known: dict[int, Poly | None] = {}
        for mono, value in poly.items():
            kept: list[tuple[int, int]] = []
            moved: Poly = {ONE: value}
            for number, exponent in mono:
                if number not in known:
                    known[number] = image(self._atoms[number])
                new = known[number]
                if new is None:
                    kept.append((number, exponent))
                else:
                    moved = self.multiply(moved, self.power(new, exponent))
            self.add_to(result, self.multiply(moved, {tuple(kept): 1}) if kept else moved)
        return result

    # --- deciding ---------------------------------------------------------------------------------

    def settle(self, poly: Poly) -> Poly:
        """Use deltas of free labels, delta(i, j) f(j) = delta(i, j) f(i): terms become independent.

        Independent, because the labels that no delta joins can take distinct values: terms without
        deltas must cancel among themselves, then those with the coarser patterns of equal labels,
        one pattern after the other.
        """
        result: Poly = {}
        for mono, value in poly.items():
            joined = [
                atom
                for atom in (self._atoms[number] for number, _ in mono)
                if isinstance(atom, Delta)
            ]
            if not joined:
                self.add_to(result, {mono: value})
                continue
            leader: dict[int, int] = {}
            for low, high in joined:
                one, other = leader.get(low, low), leader.get(high, high)
                leader.update(
                    {label: max(one, other) for label in leader if leader[label] in (one, other)}
                )
                leader.update({low: max(one, other), high: max(one, other)})
            sign, rest = 1, tuple(pair for pair in mono if pair[0] not in self._deltas)
            for label, lead in leader.items():
                if label != lead:
                    factor, rest = self._rename_monomial(rest, label, lead)
                    sign *= factor
            if sign:
                deltas = {
                    (self.number(Delta(label, lead)), 1)
                    for label, lead in leader.items()
                    if label != lead
                }
                self.add_to(result, {self._times(rest, tuple(sorted(deltas))): sign * value})
        if self._functions:  # phi(X)[i, i] is a function of X[i, i]
            return self.map_functions(result, lambda _, s: len(set(s)) < len(s), lambda x: x)
        return result

    def clear_denominators(self, poly: Poly) -> Poly:
        """Multiply by every divisor.

        The result is zero exactly when the rational function is.
        """
        while True:
            worst: dict[int, int] = {}
            for mono in poly:
                for number, exponent in mono:
                    if isinstance(self._atoms[number], Reciprocal):
                        worst[number] = max(worst.get(number, 0), exponent)
            if not worst:
                return poly
            number, most = next(iter(worst.items()))
            atom = self._atoms[number]
            assert isinstance(atom, Reciprocal)
            divisor: Poly = dict(atom.items)
            cleared: Poly = {}
            for mono, value in poly.items():
                exponent = dict(mono).get(number, 0)
                rest = tuple(pair for pair in mono if pair[0] != number)
                self.add_to(
                    cleared, self.multiply({rest: value}, self.power(divisor, most - exponent))
                )
            poly = cleared


def _free_labels(atom: Atom) -> frozenset[int]:
    if isinstance(atom, Delta):
        return frozenset(label for label in atom if label < 0)
    if isinstance(atom, Component):
        return frozenset(label for _, slots in atom.key for label in slots if label < 0)
    return frozenset()


def shifted(key: Key, top: int) -> tuple[list[Factor], int]:
    """The factors with summed labels moved up by `top`, and the first label not used afterwards."""
    highest = -1
    moved: list[Factor] = []
    for head, slots in key:
        highest = max((highest, *slots))
        moved.append((head, tuple(label + top if label >= 0 else label for label in slots)))
    return moved, top + highest + 1


def open_factors(
    key: tuple[Factor, ...], places: tuple[int, ...], below: int
) -> tuple[list[Factor], list[tuple[int, str]], dict[int, int]]:
    """Take factors out of a component.

    Returns:
        The rest, with the summed labels of the removed factors made free; these labels with
        their dimensions; and the free label of each summed one.
    """
    free: dict[int, int] = {}
    opened: list[tuple[int, str]] = []
    for place in places:
        head, slots = key[place]
        for label, dim in zip(slots, head.dims, strict=True):
            if label >= 0 and label not in free:
                free[label] = below - len(opened)
                opened.append((free[label], dim))
    rest = [
        (head, tuple(free.get(label, label) for label in slots))
        for position, (head, slots) in enumerate(key)
        if position not in places
    ]
    return rest, opened, free


def bound_dims(factors: Iterable[Factor]) -> Mapping[int, str]:
    """Dimension of each summed label."""
    return {
        label: dim
        for head, slots in factors
        for label, dim in zip(slots, head.dims, strict=True)
        if label >= 0
    }


def identify(table: Table, factors: list[Factor], deltas: list[tuple[int, int, str]]) -> Poly:
    """A product of factors and deltas (label, label, dimension), the summed labels summed."""
    coefficient: Poly = {ONE: 1}
    kept: list[tuple[int, int]] = []
    deltas = list(deltas)
    while deltas:
        one, other, dim = deltas.pop()
        if one == other:
            if one >= 0 and not _stands(one, factors, deltas):  # sum of delta(k, k)
                coefficient = table.multiply(coefficient, table.dimension(dim))
            continue
        old, new = max(one, other), min(one, other)  # a summed label gives way, to a free one first
        if old < 0:
            kept.append((one, other))
            continue
        factors = [(h, tuple(new if s == old else s for s in slots)) for h, slots in factors]
        deltas = [(new if a == old else a, new if b == old else b, d) for a, b, d in deltas]
        if new >= 0 and not _stands(new, factors, deltas):
            coefficient = table.multiply(coefficient, table.dimension(dim))
    sign, mono = table.product(factors, kept)
    return table.multiply(coefficient, {mono: sign}) if sign else {}


def _stands(label: int, factors: list[Factor], deltas: list[tuple[int, int, str]]) -> bool:
    return any(label in slots for _, slots in factors) or any(label in (a, b) for a, b, _ in deltas)

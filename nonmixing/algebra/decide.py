"""The decision on a statement.

Proved for all dimensions, refuted by a small exact counterexample, or honestly undecided.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from nonmixing.algebra import dims
from nonmixing.algebra import expr as ex
from nonmixing.algebra.abbreviate import in_short
from nonmixing.algebra.certificate import Cell, check_certificate
from nonmixing.algebra.depth import recursion_limit
from nonmixing.algebra.dims import Dim, Index, NeedsExpansion
from nonmixing.algebra.entries import Differences, settled_by_entries
from nonmixing.algebra.expand import Expander
from nonmixing.algebra.hypotheses import (
    Contradiction,
    Rule,
    Use,
    complete,
    consequence,
    expanded,
    orient,
    reduce,
    refuse_contradiction,
)
from nonmixing.algebra.kinds import Kinds, equations
from nonmixing.algebra.node import Expr, terms_bound
from nonmixing.algebra.readback import ROW, Reader
from nonmixing.algebra.refute import Counterexample, find_counterexample, probably_equal
from nonmixing.algebra.sampling import feasible
from nonmixing.algebra.setting import Setting, Statement, names_of, walk
from nonmixing.algebra.terms import MAX_TERMS, Component, Poly, Table, TooLarge
from nonmixing.algebra.words import Unsuited, Words
from nonmixing.errors import Disagreement, InputError

DEFAULT_TIMEOUT = 60.0
"""Seconds after which a decision is given up as undecided."""

DEPTH = 12_000
"""Recursion limit of a decision: products of hundreds of factors are deep."""

LARGEST_SIZE = 6
"""Largest size that the search for a counterexample goes to, where completeness asks for more."""


RIGID_SIZE = 4
"""Size up to which matrices with orthonormal columns are tried at least."""

LARGEST_SIZES = {1: 16, 2: 10, 3: 7}
"""The same where there are few dimensions, and so few combinations of sizes."""

MOST_WORK = 3_000_000
"""Most multiplications of one evaluation at integer sizes."""

SMALL_SIZE = 3
"""The same for claims whose expanded form may be too large."""


class TimeIsUp(Exception):
    """The time limit was met."""


@dataclass(frozen=True)
class Decision:
    """What the prover says about one statement.

    Attributes:
        id: of the statement.
        verdict: "proved", "refuted" or "undecided".
        scope: when proved, for which sizes and under which hypotheses; when refuted, for which
            sizes already; "" when undecided.
        left: left side, as written.
        right: right side, as written.
        difference: left - right in matrix notation ("0" when proved).
        counterexample: when refuted.
        seconds: time taken.
        reason: why undecided, else "".
        certificate: where hypotheses were used, left - right as the sum of cofactor * hypothesis;
            that identity was checked at matrices that satisfy none of them.
    """

    id: str
    verdict: Literal["proved", "refuted", "undecided"]
    scope: str
    left: str
    right: str
    difference: str
    counterexample: Counterexample | None
    seconds: float
    reason: str = ""
    certificate: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """True exactly when proved."""
        return self.verdict == "proved"


def decide(statement: Statement, *, timeout: float | None = DEFAULT_TIMEOUT) -> Decision:
    """Decide a statement for every size of its symbolic dimensions.

    Args:
        statement: the claim, from `load_claims` or `equation`.
        timeout: seconds; None for no limit.

    Returns:
        The decision. A proof is an identity of canonical index forms and has been checked by exact
        evaluation at random sizes modulo a prime; a counterexample is exact.

    Raises:
        InputError: an expression outside the language, such as the inverse of what is not
            declared invertible.
        Disagreement: the prover contradicts itself; please report it.
    """
    start = time.perf_counter()
    clock = _Clock(start, timeout)
    work = _Work(statement, clock)
    try:
        with recursion_limit(DEPTH):
            verdict, scope, difference, counterexample, reason = work.run()
    except InputError as error:
        raise type(error)(f"claim {statement.id!r}: {error}") from None
    except ValueError as error:
        if "digits" not in str(error):
            raise
        # Python does not write integers of more than 4300 digits.
        message = f"claim {statement.id!r}: a number has over 4300 digits; write it as a scalar"
        raise InputError(message) from None
    except TimeIsUp:
        verdict, scope, counterexample = "undecided", "", None
        difference, reason = (
            work.difference,
            f"no decision within {timeout:g} s (raise the timeout)",
        )
    except RecursionError:
        verdict, scope, counterexample, difference = "undecided", "", None, ""
        reason = "the expression is nested too deeply; split the claim into smaller ones"
    seconds = time.perf_counter() - start
    return Decision(
        statement.id,
        verdict,
        scope,
        statement.left_text,
        statement.right_text,
        difference,
        counterexample,
        seconds,
        reason,
        work.certificate if verdict == "proved" else (),
    )


class _Clock:
    """Raises when the time is up; looks at the clock at every call, which is cheap."""

    def __init__(self, start: float, timeout: float | None) -> None:
        self._end = None if timeout is None else start + timeout

    def tick(self) -> None:
        if self._end is not None and time.perf_counter() > self._end:
            raise TimeIsUp


_Outcome = tuple[Literal["proved", "refuted", "undecided"], str, str, Counterexample | None, str]


class _Work:
    """One decision under way."""

    def __init__(self, statement: Statement, clock: _Clock) -> None:
        self.statement = statement
        self.clock = clock
        self.names = names_of(statement)
        self.rng = random.Random(0)
        self.table = Table(tick=clock.tick)
        self.words = Words(statement.setting, clock.tick)
        self.kinds = Kinds(statement.setting, self.table)
        self.hypotheses = (
            *statement.assume,
            *equations(statement.setting, self.names.matrices),
        )
        self.difference = ""
        self.certificate: tuple[str, ...] = ()
        self.usable: set[int] = set()  # hypotheses that could be made rules

    def run(self) -> _Outcome:
        if max(terms_bound(self.statement.left), terms_bound(self.statement.right)) > MAX_TERMS:
            # Expanding may be long, and in vain; a false claim of this kind is refuted before that.
            found = find_counterexample(self.statement, self.names, SMALL_SIZE, self.clock.tick)
            if found is not None:
                return "refuted", _already(found), self._as_written(), found, ""
        try:
            cells = self._reduced(Expander(self.statement.setting, self.table))
        except TooLarge as error:
            return "undecided", "", "", None, str(error)
        except Contradiction:
            reason = (
                "the assumptions contradict each other (or the declared kinds), so that everything "
                "would follow from them; drop or correct one"
            )
            return "undecided", "", "", None, reason
        except NeedsExpansion:
            # Only taken apart, or only as numbers, do these dimensions make sense together.
            self.difference = self._as_written()
            return self._by_sizes(LARGEST_SIZE)
        left = [cell for cell in cells if not self._is_zero(cell[1])]
        if not left:
            self._second_opinion([cell for cell, _ in cells])
            return "proved", self._scope(), "0", None, ""
        self.difference = self._as_written()
        largest = max(self._largest(poly) for _, poly in left)
        verdict, scope, _, found, reason = self._by_sizes(largest, self._differences(left))
        if verdict == "proved":
            return verdict, scope, "0", found, reason
        # Last, so that what is known is not lost where the difference takes too long to be read.
        with suppress(TimeIsUp):
            self.difference = self._shown([poly for _, poly in cells])
        return verdict, scope, self.difference, found, reason

    def _differences(self, cells: Sequence[tuple[Cell, Poly]]) -> Differences | None:
        """The cells that are not 0, where any integers may stand for the entries."""
        statement = self.statement
        if statement.assume or not settled_by_entries(statement.setting, self.names):
            return None
        forms = [(cell.row, cell.col, poly) for cell, poly in cells]
        return Differences(statement.setting, self.table, statement.shape, forms)

    def _by_sizes(self, largest: int, differences: Differences | None = None) -> _Outcome:
        """What can be said where the sides are no equal index forms."""
        if self._huge():
            reason = "not true for all sizes; these integer sizes are too large to be tried"
            return "undecided", "", self.difference, None, reason
        reason = ""
        if self.names.integers and not self.statement.assume and self._equal_at_sizes():
            outcome = self._at_sizes()
            if outcome[0] == "proved":
                return outcome
            reason = outcome[-1]
        found = find_counterexample(
            self.statement, self.names, largest, self.clock.tick, differences
        )
        if found is not None:
            return "refuted", _already(found), self.difference, found, ""
        return "undecided", "", self.difference, None, reason or self._why_undecided(largest)

    # --- forms ------------------------------------------------------------------------------------

    def _reduced(self, expander: Expander) -> list[tuple[Cell, Poly]]:
        """For each cell of the difference what is left of it under the hypotheses."""
        rules: tuple[Rule, ...] | None = None
        cells: list[tuple[Cell, Poly]] = []
        for r, c in _cells(expander, self.statement.shape):
            poly = self._normal(
                self._gap(expander, self.statement.left, self.statement.right, r, c)
            )
            uses: tuple[Use, ...] = ()
            if poly and self.hypotheses:
                if rules is None:
                    rules = self._rules(expander)
                first = reduce(self.table, poly, rules, self.kinds.impose, self.clock.tick)
                poly, uses = self._normal(first.remainder), first.uses
                if poly and self.statement.assume and not self._is_zero(poly):
                    rules = complete(self.table, rules, self.kinds.impose, self.clock.tick)
                    second = reduce(self.table, poly, rules, self.kinds.impose, self.clock.tick)
                    poly = self._normal(second.remainder)
                    uses = (*uses, *second.uses)
            cells.append((Cell(r, c, expanded(self.table, uses)), poly))
        return cells

    def _gap(self, expander: Expander, left: Expr, right: Expr, r: Index, c: Index) -> Poly:
        """Entry of left - right."""
        none = [ex.is_zero_literal(side) for side in (left, right)]
        if not any(none) and left.shape != right.shape:
            raise NeedsExpansion  # equal as numbers, not in form
        if not expander.expand_integers:
            try:
                return self.words.gap(left, right, r, c, self.table)
            except Unsuited:
                pass  # not both of them are made of words
        result = {} if none[0] else dict(self._entry(expander, left, r, c))
        if not none[1]:
            self.table.add_to(result, self._entry(expander, right, r, c), -1)
        return result

    def _entry(self, expander: Expander, side: Expr, r: Index, c: Index) -> Poly:
        """Entry of a side, by words if it is made of them."""
        if not expander.expand_integers:
            try:
                return self.words.entry(self.words.form(side), r, c, self.table)
            except Unsuited:
                pass  # the index form takes everything
        return expander.entry(side, r, c)

    def _normal(self, poly: Poly) -> Poly:
        return self.table.settle(self.kinds.impose(poly))

    def _is_zero(self, poly: Poly) -> bool:
        return not self.table.clear_denominators(self._normal(poly))

    def _rules(self, expander: Expander) -> tuple[Rule, ...]:
        """The hypotheses as rules, each reduced by those before it.

        Definitions of a matrix come first, then what the declared kinds say, then the others.
        """
        rules: list[Rule] = []
        alone = {n: e.defines(self.statement.setting) for n, e in enumerate(self.hypotheses)}
        assumed = len(self.statement.assume)
        order = sorted(alone, key=lambda n: (alone[n] is None, n < assumed, n))
        for number in order:
            equation, defined = self.hypotheses[number], alone[number]
            lead = None if defined is None else defined[0]
            shape = equation.shape
            for r, c in _cells(expander, shape):
                raw = self._normal(self._gap(expander, equation.left, equation.right, r, c))
                labels = (*dims.labels(r, shape[0]), *dims.labels(c, shape[1]))
                reduced = reduce(self.table, raw, rules, self.kinds.impose, self.clock.tick)
                rest = self._normal(reduced.remainder)
                refuse_contradiction(self.table, rest)
                if not reduced.uses:
                    rule = orient(self.table, raw, r, c, labels, number, eliminate=lead)
                else:
                    origin = consequence(self.table, raw, r, c, labels, number, reduced)
                    rule = orient(self.table, rest, r, c, labels, -1, origin)
                if rule is not None:
                    rules.append(rule)
                    self.usable.add(number)
                elif not rest:
                    self.usable.add(number)
        return tuple(rules)

    def _huge(self) -> bool:
        """Whether one evaluation at the integer sizes takes too long."""
        if not self.names.integers and self.names.operations.isdisjoint(("kron", "face", "vec")):
            return False
        sizes = dict.fromkeys(self.names.dims, 2)
        nodes = walk(self.statement.setting, self.statement.left, self.statement.right)
        return sum(_multiplications(node, sizes) for node in nodes) > MOST_WORK

    # --- integer sizes ----------------------------------------------------------------------------

    def _equal_at_sizes(self) -> bool:
        """Whether the sides seem to agree at the stated integer sizes.

        Symbolic sizes are 1 to 3.
        """
        tried = 0
        for size, shift in itertools.product((1, 2, 3), (0, 1)):
            # Unequal sizes, each way round: columns are orthonormal one way only.
            sizes = {dim: size + (i + shift) % 2 for i, dim in enumerate(self.names.dims)}
            if feasible(self.statement.setting, self.names, sizes):
                self.clock.tick()
                tried += 1
                if not probably_equal(self.statement, self.names, sizes, self.rng):
                    return False
        return tried > 0

    def _at_sizes(self) -> _Outcome:
        """Expand the entries along integer dimensions and compare them one by one."""
        expander = Expander(self.statement.setting, self.table, expand_integers=True)
        rules: tuple[Rule, ...] | None = None
        cells: list[Cell] = []
        try:
            for r, c in _cells(expander, self.statement.shape):
                self.clock.tick()
                gap = self._normal(
                    self._gap(expander, self.statement.left, self.statement.right, r, c)
                )
                uses: tuple[Use, ...] = ()
                if gap and self.hypotheses:
                    rules = self._rules(expander) if rules is None else rules
                    first = reduce(self.table, gap, rules, self.kinds.impose, self.clock.tick)
                    gap, uses = self._normal(first.remainder), first.uses
                if not self._is_zero(gap):
                    reason = (
                        "equal wherever it was tried at these sizes, "
                        "but not by the rules for the declared kinds"
                    )
                    return "undecided", "", self.difference, None, reason
                cells.append(Cell(r, c, expanded(self.table, uses)))
        except NeedsExpansion:
            reason = "the dimensions agree as numbers only, and no counterexample was found"
            return "undecided", "", self.difference, None, reason
        self._second_opinion(cells)
        many = "s" if len(self.names.integers) > 1 else ""
        every = f", every {', '.join(self.names.dims)}" if self.names.dims else ""
        sizes = ", ".join(map(str, self.names.integers))
        return "proved", f"at the stated size{many} {sizes}{every}", "0", None, ""

    # --- second opinion ---------------------------------------------------------------------------

    def _second_opinion(self, cells: list[Cell]) -> None:
        """Evaluate what was proved at random matrices of random unequal sizes modulo a prime.

        Without equations at matrices of the declared kinds; and where hypotheses were used, the
        identity with their cofactors at matrices that satisfy none of them.
        """
        sizes = self._random_sizes()
        if sizes is None:
            return
        used = any(cell.uses for cell in cells)
        agreed = bool(self.statement.assume) or probably_equal(
            self.statement, self.names, sizes, self.rng
        )
        if agreed and (used or self.statement.assume):
            agreed = check_certificate(
                self.statement, self.hypotheses, self.names, sizes, self.table, cells, self.rng
            )
        if used:
            self.certificate = self._certificate(cells)
        if not agreed:
            raise Disagreement(
                f"claim {self.statement.id!r}: proved, but the sides differ at {sizes}; "
                "please report this"
            )

    def _random_sizes(self) -> dict[str, int] | None:
        """Small sizes, distinct ones if they are few; None where no matrices of the kinds exist."""
        if self._huge():
            return None
        count = len(self.names.dims)
        setting = self.statement.setting
        least = 2 if count < 3 and "expect" not in self.names.operations else 1
        for _ in range(50):
            sizes = self.rng.sample(range(least, max(count, 3) + least), count)
            chosen = dict(zip(self.names.dims, sizes, strict=True))
            if feasible(setting, self.names, chosen):
                return chosen
        return None

    def _certificate(self, cells: list[Cell]) -> tuple[str, ...]:
        """The identity left - right == sum of cofactor * hypothesis, in words."""
        used = sorted({use.rule.number for cell in cells for use in cell.uses})
        named = {number: f"H{place + 1}" for place, number in enumerate(used)}
        lines = [f"{named[n]} := left - right of {self.hypotheses[n].says}" for n in used]
        if len(cells) > 1:
            return (*lines, f"left - right is made of these in {len(cells)} blocks")
        (cell,) = cells
        products = (*lines, "left - right is made of these, of products of dimensions")
        if not all(isinstance(dim, int | str) for dim in self.statement.shape):
            return products
        setting = self.statement.setting
        shapes = {named[n]: self.hypotheses[n].shape for n in used}
        wide = dataclasses.replace(setting, matrices={**setting.matrices, **shapes})
        expander = Expander(wide, self.table)
        total: Poly = {}
        for use in cell.uses:
            rule, name = use.rule, named[use.rule.number]
            rows, cols = shapes[name]
            try:
                part = expander.entry(ex.symbol(name, rows, cols), rule.row, rule.col)
            except NeedsExpansion:
                return products
            for (old, _), new in zip(rule.labels, use.labels, strict=True):
                part = self.table.rename(part, old, new)
            part = self.table.multiply(use.cofactor, part)
            for (_, dim), new in zip(rule.labels, use.labels, strict=True):
                part = self.table.contract(part, new, dim)
            self.table.add_to(total, part)
        rows, cols = self.statement.shape
        text = Reader(wide, self.table, rows, cols).text(self.table.settle(total))
        return (*lines, f"left - right == {text}")

    def _shown(self, polys: list[Poly]) -> str:
        """The difference in matrix notation, in the file's abbreviations if that is shorter."""
        rows, cols = self.statement.shape
        if len(polys) == 1 and isinstance(rows, int | str) and isinstance(cols, int | str):
            return in_short(polys[0], self.statement.setting, self.table, rows, cols)
        return self._as_written()

    def _as_written(self) -> str:
        """The difference of the sides as they stand."""
        left, right = self.statement.left_text, self.statement.right_text
        sums = self.statement.right.op in ("add", "scale", "number")
        return f"{left} - ({right})" if sums else f"{left} - {right}"

    # --- words ------------------------------------------------------------------------------------

    def _scope(self) -> str:
        every = f"every {', '.join(self.names.dims)}" if self.names.dims else "all values"
        if self.statement.assume:
            every += " with " + ", ".join(equation.says for equation in self.statement.assume)
        return every

    def _largest(self, poly: Poly) -> int:
        """Size up to which a counterexample is looked for: where completeness says one exists.

        That is the number of labels of the largest term, two free ones and the degree of its
        coefficient included, but at most `LARGEST_SIZE`. Kinds that are equations are outside that
        theorem: orthogonal 2 x 2 matrices satisfy more than those of size 3.
        """
        kinds = (self.statement.setting.kinds_of(name) for name in self.names.matrices)
        rigid = any(each & {"orthonormal", "orthogonal"} for each in kinds)
        most = RIGID_SIZE if rigid else 1
        for mono in poly:
            labels = 2
            for number, exponent in mono:
                atom = self.table.atom(number)
                if isinstance(atom, Component):
                    labels += exponent * len({s for _, slots in atom.key for s in slots if s >= 0})
                else:
                    labels += exponent
            most = max(most, labels)
        return min(most, LARGEST_SIZES.get(len(self.names.dims), LARGEST_SIZE))

    def _why_undecided(self, largest: int) -> str:
        if not self.usable.issuperset(range(len(self.statement.assume))):
            return (
                "an assumption could not be used as a rule, and no counterexample was found; "
                "left - right is what remains"
            )
        if self.hypotheses:
            return "the rules of the hypotheses do not settle it, and no counterexample was found"
        return (
            f"the sides differ as index forms, but no counterexample was found up to size {largest}"
        )


def _cells(expander: Expander, shape: tuple[Dim, Dim]) -> Iterator[tuple[Index, Index]]:
    """Row and column indices that together cover a matrix: one pair, or one for each block."""
    rows, cols = shape
    for r in expander.indices(rows, ROW):
        for c in expander.indices(cols, ROW - dims.width(rows)):
            yield r, c


def _multiplications(expr: Expr, sizes: Mapping[str, int]) -> int:
    """About how many multiplications an operation takes."""
    rows, cols = (dims.size(dim, sizes) for dim in expr.shape)
    if expr.op == "matmul":
        return rows * cols * dims.size(expr.args[0].cols, sizes)
    if expr.op == "grad":  # one evaluation of what is differentiated for each entry
        inside = walk(Setting(), expr.args[0])
        return rows * cols * (1 + sum(_multiplications(node, sizes) for node in inside))
    return rows * cols


def _already(found: Counterexample) -> str:
    """The sizes of a counterexample, in words: already for m = n = r = 1."""
    if not found.dims:
        return "already for the values below"
    by_size: dict[int, list[str]] = {}
    for name, size in found.dims.items():
        by_size.setdefault(size, []).append(name)
    return "already for " + ", ".join(
        f"{' = '.join(names)} = {size}" for size, names in sorted(by_size.items())
    )

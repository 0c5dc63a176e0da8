"""The decision on a statement.

Proved for all dimensions, refuted by a small exact counterexample, or honestly undecided.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Literal

from nonmixing.algebra import expr as ex
from nonmixing.algebra.abbreviate import in_short
from nonmixing.algebra.certificate import check_certificate
from nonmixing.algebra.expand import Expander
from nonmixing.algebra.expr import Dim
from nonmixing.algebra.hypotheses import Reduction, Rule, orient, reduce
from nonmixing.algebra.kinds import Kinds
from nonmixing.algebra.readback import COL, ROW
from nonmixing.algebra.refute import Counterexample, find_counterexample, probably_equal
from nonmixing.algebra.sampling import feasible
from nonmixing.algebra.setting import Statement, names_of
from nonmixing.algebra.terms import Component, Poly, Table, TooLarge

DEFAULT_TIMEOUT = 60.0
"""Seconds after which a decision is given up as undecided."""

LARGEST_SIZE = 6
"""Largest size that the search for a counterexample goes to, where completeness asks for more."""


class Disagreement(RuntimeError):
    """Two independent routes of the prover disagree: a bug in this package, never in the claim."""


class TimeIsUp(Exception):
    """The time limit was met."""


@dataclass(frozen=True)
class Decision:
    """What the prover says about one statement.

    Attributes:
        id: of the statement.
        verdict: "proved", "refuted" or "undecided".
        scope: for which sizes and under which hypotheses, in words.
        left: left side, as written.
        right: right side, as written.
        difference: left - right in matrix notation ("0" when proved).
        counterexample: when refuted.
        seconds: time taken.
        reason: why undecided, else "".
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
        verdict, scope, difference, counterexample, reason = work.run()
    except TimeIsUp:
        verdict, scope, counterexample = "undecided", "", None
        difference, reason = (
            work.difference,
            f"no decision within {timeout:g} s (raise the limit with --timeout)",
        )
    except TooLarge as error:
        verdict, scope, counterexample, difference, reason = "undecided", "", None, "", str(error)
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
        self.kinds = Kinds(statement.setting, self.table)
        self.difference = ""

    def run(self) -> _Outcome:
        expander = Expander(self.statement.setting, self.table)
        rows, cols = _shape(self.statement)
        poly = self._normal(self._difference_at(expander, *_labels(rows, cols)))
        reduction = Reduction(poly, ())
        rules: tuple[Rule, ...] = ()
        if self._is_zero(poly):
            reduction = Reduction({}, ())
        elif self.statement.assume:
            rules = self._rules(expander)
            reduction = reduce(self.table, poly, rules, self.kinds.impose, self.clock.tick)
        if self._is_zero(reduction.remainder):
            self._second_opinion(reduction)
            return "proved", self._scope(), "0", None, ""
        self.difference = in_short(
            reduction.remainder, self.statement.setting, self.table, rows, cols
        )
        if self.names.integers and not self.statement.assume and self._equal_at_sizes():
            return self._at_sizes(rows, cols)
        largest = self._largest(reduction.remainder)
        found = find_counterexample(self.statement, self.names, largest, self.clock.tick)
        if found is not None:
            return "refuted", _already(found), self.difference, found, ""
        return "undecided", "", self.difference, None, self._why_undecided(rules)

    # --- forms ------------------------------------------------------------------------------------

    def _difference_at(self, expander: Expander, r: int, c: int) -> Poly:
        left, right = self.statement.left, self.statement.right
        result = dict(expander.entry(left, r, c)) if not ex.is_zero_literal(left) else {}
        if not ex.is_zero_literal(right):
            self.table.add_to(result, expander.entry(right, r, c), -1)
        return result

    def _normal(self, poly: Poly) -> Poly:
        return self.table.settle(self.kinds.impose(poly))

    def _is_zero(self, poly: Poly) -> bool:
        return not self.table.clear_denominators(self._normal(poly))

    def _rules(self, expander: Expander) -> tuple[Rule, ...]:
        rules: list[Rule] = []
        for number, equation in enumerate(self.statement.assume):
            left, right = equation.left, equation.right
            shape = right.shape if ex.is_zero_literal(left) else left.shape
            r, c = _labels(*shape)
            poly = dict(expander.entry(left, r, c)) if not ex.is_zero_literal(left) else {}
            if not ex.is_zero_literal(right):
                self.table.add_to(poly, expander.entry(right, r, c), -1)
            poly = self._normal(poly)
            labels = [
                (label, str(dim)) for label, dim in zip((r, c), shape, strict=True) if label < 0
            ]
            rule = orient(self.table, poly, labels, number)
            if rule is not None:
                rules.append(rule)
        return tuple(rules)

    # --- integer sizes ----------------------------------------------------------------------------

    def _equal_at_sizes(self) -> bool:
        """Whether the sides seem to agree at the stated integer sizes.

        Symbolic sizes are 1 to 3.
        """
        for size in (1, 2, 3):
            dims = {dim: size + i % 2 for i, dim in enumerate(self.names.dims)}
            if feasible(self.statement.setting, self.names, dims):
                self.clock.tick()
                if not probably_equal(self.statement, self.names, dims, self.rng):
                    return False
        return True

    def _at_sizes(self, rows: Dim, cols: Dim) -> _Outcome:
        """Expand the entries along integer dimensions and compare them one by one."""
        expander = Expander(self.statement.setting, self.table, expand_integers=True)
        for r in expander.indices(rows, ROW):
            for c in expander.indices(cols, COL):
                self.clock.tick()
                if not self._is_zero(self._difference_at(expander, r, c)):
                    reason = (
                        "equal wherever it was tried at these sizes, "
                        "but not by the rules for the declared kinds"
                    )
                    return "undecided", "", self.difference, None, reason
        sizes = ", ".join(map(str, self.names.integers))
        every = f", every {', '.join(self.names.dims)}" if self.names.dims else ""
        return (
            "proved",
            f"at the stated size{'s' if len(self.names.integers) > 1 else ''} {sizes}{every}",
            "0",
            None,
            "",
        )

    # --- second opinion ---------------------------------------------------------------------------

    def _second_opinion(self, reduction: Reduction) -> None:
        """Evaluate what was proved at random matrices of random unequal sizes modulo a prime."""
        dims = self._random_sizes()
        if dims is None:
            return
        if not self.statement.assume:
            agreed = probably_equal(self.statement, self.names, dims, self.rng, draws=1)
        else:
            agreed = check_certificate(
                self.statement, self.names, dims, self.table, reduction.uses, self.rng
            )
        if not agreed:
            raise Disagreement(
                f"claim {self.statement.id!r}: proved, but the sides differ at {dims}; "
                "please report this"
            )

    def _random_sizes(self) -> dict[str, int] | None:
        for _ in range(50):
            sizes = self.rng.sample(
                range(1, max(4, len(self.names.dims) + 2)), len(self.names.dims)
            )
            dims = dict(zip(self.names.dims, sizes, strict=True))
            if feasible(self.statement.setting, self.names, dims):
                return dims
        return None

    # --- words ------------------------------------------------------------------------------------

    def _scope(self) -> str:
        every = f"every {', '.join(self.names.dims)}" if self.names.dims else "all values"
        if self.statement.assume:
            every += " with " + ", ".join(equation.says for equation in self.statement.assume)
        return every

    def _largest(self, poly: Poly) -> int:
        """Size up to which a counterexample must exist if the kinds are complete.

        It is the number of labels of the largest term.
        """
        most = 1
        for mono in poly:
            labels = 2
            for number, exponent in mono:
                atom = self.table.atom(number)
                if isinstance(atom, Component):
                    labels += exponent * len({s for _, slots in atom.key for s in slots if s >= 0})
                else:
                    labels += exponent
            most = max(most, labels)
        return min(most, LARGEST_SIZE)

    def _why_undecided(self, rules: tuple[Rule, ...]) -> str:
        if len(rules) < len(self.statement.assume):
            return (
                "an assumption could not be used as a rule, and no counterexample was found; "
                "left - right is what remains"
            )
        if self.statement.assume or self.kinds.pairs:
            return "the rules of the hypotheses do not settle it, and no counterexample was found"
        return (
            "the sides differ as index forms, "
            f"but no counterexample was found up to size {LARGEST_SIZE}"
        )


def _labels(rows: Dim, cols: Dim) -> tuple[int, int]:
    """Row and column index of a matrix of that shape.

    Free labels, and the constant 0 along dimension 1.
    """
    return (0 if rows == 1 else ROW), (0 if cols == 1 else COL)


def _shape(statement: Statement) -> tuple[Dim, Dim]:
    return statement.right.shape if ex.is_zero_literal(statement.left) else statement.left.shape


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

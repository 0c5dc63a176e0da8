"""Claims, and how their evidence is had.

A `Claim` states something about learning, names the evidence for it, and says how each piece must
come out. A piece of evidence gives a `Verdict`: the prover's decision of a statement, or a measured
number held against its band.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from nonmixing.algebra import DEFAULT_TIMEOUT, Statement, decide, load_claims
from nonmixing.errors import InputError
from nonmixing.verdict import Evidence, Verdict, VerdictWord, check_word, judge

if TYPE_CHECKING:
    from sympy import Basic

__all__ = [
    "Claim",
    "Expected",
    "Experiment",
    "Outcome",
    "Task",
    "Verdict",
    "expectation",
    "from_text",
    "judge",
    "proof",
    "prove",
]


def prove(
    lhs: Basic | bool,
    rhs: Basic | float | None = None,
    assuming: Sequence[Basic | bool] = (),
    *,
    timeout: float | None = DEFAULT_TIMEOUT,
) -> Verdict:
    """Decide whether two SymPy expressions are equal, for all dimensions at once.

    Args:
        lhs: the left side; or, alone, an `Eq` (or the `true` that SymPy may have made of it).
        rhs: the right side, of the same shape.
        assuming: equations that may be used.
        timeout: seconds after which it is given up as undecided; None for no limit.

    Returns:
        A verdict `proved`, `refuted` (with a counterexample in exact arithmetic) or `undecided`.

    Raises:
        InputError: a function outside the language, or something that is no equation.
        ShapeError: the two sides, or the operands in one of them, do not fit.
    """
    from nonmixing.algebra.sympy_door import equation

    return proof(equation(lhs, rhs, assuming), timeout=timeout)


def proof(
    statement: Statement, *, lemma: str = "", timeout: float | None = DEFAULT_TIMEOUT
) -> Verdict:
    """Decide a statement; the scope of what is proved names the lemma that it uses, if any."""
    decision = decide(statement, timeout=timeout)
    scope = decision.scope or decision.reason
    if lemma and decision.verdict == "proved":
        scope = f"{scope}; with the lemma: {lemma}"
    kinds = statement.setting.kinds.items()
    declared = [f"{name} is {kind}" for name, several in kinds for kind in sorted(several)]
    return Verdict(
        verdict=decision.verdict,
        evidence="proof",
        scope=scope,
        reason=decision.reason,
        seconds=decision.seconds,
        hypotheses=(*declared, *(equation.says for equation in statement.assume)),
        decision=decision,
    )


@dataclass(frozen=True)
class Expected:
    """A statement for the prover, and how it must come out."""

    statement: Statement
    verdict: VerdictWord = "proved"

    def __post_init__(self) -> None:
        check_word(self.verdict, "proof", f"expected verdict of {self.statement.id!r}")


def from_text(
    text: str, expected: Mapping[str, VerdictWord] | None = None, *, where: str = "statements"
) -> tuple[Expected, ...]:
    """The statements of a claim file's text, each with the verdict expected of it.

    Args:
        text: TOML, as in a claim file.
        expected: statement id to verdict; else the file's own `expect`, else `proved`.
        where: what to call the text in messages.

    Raises:
        InputError: an id in `expected` that the text does not have, or text that is no claim file.
    """
    expected = expected or {}
    statements = load_claims(text, where)
    unknown = sorted(expected.keys() - {statement.id for statement in statements})
    if unknown:
        have = ", ".join(statement.id for statement in statements)
        raise InputError(f"expected: no statement is called {unknown[0]!r}; there are: {have}")
    return tuple(
        Expected(statement, expected.get(statement.id) or expectation(statement))
        for statement in statements
    )


def expectation(statement: Statement) -> VerdictWord:
    """The verdict that a claim file expects of a statement; `proved` where it says nothing."""
    return cast(
        "VerdictWord", statement.expect or "proved"
    )  # the reader of the file has checked it


@dataclass(frozen=True)
class Experiment:
    """A simulation or a training run, and how it must come out.

    Attributes:
        run: takes `quick` (a smaller run of the same question) and gives the verdict.
        expected: `supported`, or `unsupported` where the claim must fail by measurement.
        name: told apart by it in the report, where a claim has several.
    """

    run: Callable[[bool], Verdict]
    expected: VerdictWord = "supported"
    name: str = ""

    def __post_init__(self) -> None:
        check_word(
            self.expected, "simulation", f"expected verdict of {self.name or 'experiment'!r}"
        )


@dataclass(frozen=True)
class Outcome:
    """A verdict beside the one that was expected."""

    name: str
    expected: VerdictWord
    verdict: Verdict

    @property
    def as_expected(self) -> bool:
        """Whether it came out as the claim says; an error never does."""
        return self.verdict.verdict == self.expected != "error"

    def to_json(self) -> dict[str, Any]:
        """The verdict's JSON with the name, the expectation and whether it was met."""
        return {
            "name": self.name,
            "expected": self.expected,
            "as_expected": self.as_expected,
            **self.verdict.to_json(),
        }


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Something said about learning, with its evidence.

    Attributes:
        id: as in the ledger, `F1`.
        title: the claim in one line.
        source: where it was made: paper, equation, differing notation.
        statements: for the prover, each with its expected verdict.
        simulation: experiments on the flow, each with its expected verdict.
        training: experiments with a network that is trained.
        lemma: the written lemma that the proof uses beside the identities; empty if none.
        figure: draws the claim's picture into a folder and returns the file's path. It is given the
            claim's entry of the ledger's JSON and nothing else, so that a picture can be drawn
            again from saved results.
    """

    id: str
    title: str
    source: str
    statements: tuple[Expected, ...] = ()
    simulation: tuple[Experiment, ...] = ()
    training: tuple[Experiment, ...] = ()
    lemma: str = ""
    figure: Callable[[Mapping[str, Any], Path], Path] | None = None

    def __post_init__(self) -> None:
        if not (self.statements or self.simulation or self.training):
            raise InputError(
                f"claim {self.id!r}: no evidence; give statements, simulation or training"
            )
        if self.lemma and not self.statements:
            raise InputError(f"claim {self.id!r}: a lemma without a statement that it completes")

    def tasks(self) -> tuple[Task, ...]:
        """The pieces of evidence, in the order in which they are had."""
        proofs = (Task("proof", item.statement.id, item) for item in self.statements)
        simulations = (Task("simulation", item.name, item) for item in self.simulation)
        trainings = (Task("training", item.name, item) for item in self.training)
        return (*proofs, *simulations, *trainings)

    def settle(self, task: Task, *, quick: bool = False) -> Outcome:
        """Have one piece of evidence.

        Raises:
            InputError: an experiment that returns no verdict of its own kind of evidence.
        """
        begin = perf_counter()
        item = task.item
        if isinstance(item, Expected):
            verdict = proof(item.statement, lemma=self.lemma)
            return Outcome(task.name, item.verdict, _timed(verdict, begin))
        verdict = cast("object", item.run(quick))  # scripts are not type-checked when they run
        if not isinstance(verdict, Verdict) or verdict.evidence != task.evidence:
            raise InputError(
                f"claim {self.id!r}: its {task.evidence} returned {verdict!s:.80}; "
                f"expected a Verdict with evidence {task.evidence!r}"
            )
        return Outcome(task.name, item.expected, _timed(verdict, begin))


@dataclass(frozen=True)
class Task:
    """One piece of evidence that is still to be had."""

    evidence: Evidence
    name: str
    item: Expected | Experiment

    @property
    def expected(self) -> VerdictWord:
        """How it must come out."""
        return self.item.verdict if isinstance(self.item, Expected) else self.item.expected


def _timed(verdict: Verdict, begin: float) -> Verdict:
    return replace(verdict, seconds=perf_counter() - begin)

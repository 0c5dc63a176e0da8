"""The mutation score: how many broken variants of the ledger's proved statements are noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nonmixing.algebra import Decision, decide
from nonmixing.algebra.mutants import Mutant, mutants
from nonmixing.claim import Claim
from nonmixing.errors import InputError
from nonmixing.ledger import load

__all__ = ["Tried", "lines", "score"]

TIMEOUT = 20.0
"""Seconds for a mutant; one that takes longer counts as undecided, which is a failure."""

Watch = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Tried:
    """A mutant and what became of it.

    Attributes:
        claim: id of the claim.
        statement: id of the statement.
        mutant: the variant.
        outcome: "refuted"; "proved", so that it says the same or is true as well; "undecided", a
            failure; "refused" where it is no statement at all (a divisor that is 0).
        decision: of the prover; None where it refused.
    """

    claim: str
    statement: str
    mutant: Mutant
    outcome: Literal["refuted", "proved", "undecided", "refused"]
    decision: Decision | None


def score(paths: Iterable[Path], watch: Watch | None = None) -> tuple[Tried, ...]:
    """Decide every mutant of every statement that the claims in these scripts say is proved.

    Raises:
        InputError: a script that cannot be read.
    """
    claims = [load(path) for path in paths]
    todo = [(claim, mutant, name) for claim in claims for name, mutant in _mutants(claim)]
    done: list[Tried] = []
    for place, (claim, mutant, name) in enumerate(todo):
        if watch is not None:
            watch(f"{claim.id} {name}", place, len(todo))
        try:
            decision = decide(mutant.statement, timeout=TIMEOUT)
        except InputError:
            done.append(Tried(claim.id, name, mutant, "refused", None))
        else:
            done.append(Tried(claim.id, name, mutant, decision.verdict, decision))
    return tuple(done)


def _mutants(claim: Claim) -> Iterable[tuple[str, Mutant]]:
    for item in claim.statements:
        if item.verdict == "proved":
            yield from ((item.statement.id, mutant) for mutant in mutants(item.statement))


def lines(tried: Iterable[Tried]) -> list[str]:
    """The score, a line for each claim, then the mutants that were not refuted."""
    everything = tuple(tried)
    result: list[str] = []
    for claim in dict.fromkeys(item.claim for item in everything):
        mine = [item for item in everything if item.claim == claim]
        result.append(f"{claim:5} {_counts(mine)}")
    for outcome, says in (
        ("proved", "true as well, or the same statement in other words"),
        ("undecided", "undecided: a failure"),
    ):
        rest = [item for item in everything if item.outcome == outcome]
        if rest:
            result += ["", f"{says}:"]
            result += [f"  {item.claim} {item.statement}: {item.mutant.change}" for item in rest]
    return [*result, "", f"all   {_counts(everything)}"]


def _counts(tried: Iterable[Tried]) -> str:
    outcomes = [item.outcome for item in tried]
    judged = len(outcomes) - outcomes.count("refused")
    return (
        f"{judged} mutants: {outcomes.count('refuted')} refuted, "
        f"{outcomes.count('proved')} proved, {outcomes.count('undecided')} undecided"
    )

"""Mutants of the ledger's statements: each is refuted, and an independent evaluator agrees."""

from __future__ import annotations

import dataclasses
import json

import pytest
from oracle import separates

from nonmixing import ledger, mutation
from nonmixing.algebra.mutants import mutants
from nonmixing.algebra.printing import to_text
from nonmixing.algebra.setting import Statement

PROOFS = ledger.folder("proofs")
QUICK = ("F1", "F8", "F9", "N3")


def toml_of(statement: Statement) -> str:
    """A claim file that states what the statement states."""
    setting = statement.setting
    lines = ["[matrices]", *(f"{n} = {json.dumps(list(s))}" for n, s in setting.matrices.items())]
    lines += ["[scalars]", *(f"{name} = {{}}" for name in sorted(setting.scalars))]
    lines += [
        "[functions]",
        *(f"{n} = {{}}" for n in sorted({f for f, _ in setting.functions.values()})),
    ]
    lines += ["[kinds]", *(f"{n} = {json.dumps(sorted(k))}" for n, k in setting.kinds.items())]
    for section, entries in (("flow.velocity", setting.velocity), ("step.update", setting.update)):
        if entries:
            lines += [
                f"[{section}]",
                *(f"{n} = {json.dumps(to_text(e))}" for n, e in entries.items()),
            ]
    lines += ["[[claim]]", 'id = "c"', f"says = {json.dumps(statement.says)}"]
    lines += [f"assume = {json.dumps([equation.says for equation in statement.assume])}"]
    return "\n".join(lines)


def spelled(statement: Statement) -> Statement:
    """Both sides and the equations written out, without abbreviations."""
    assume = tuple(
        dataclasses.replace(e, says=f"{to_text(e.left)} == {to_text(e.right)}")
        for e in statement.assume
    )
    return dataclasses.replace(
        statement,
        left_text=to_text(statement.left),
        right_text=to_text(statement.right),
        assume=assume,
    )


def check(names) -> int:
    tried = mutation.score([PROOFS / f"{name}.py" for name in names])
    undecided = [item for item in tried if item.outcome == "undecided"]
    assert not undecided, [(i.claim, i.statement, i.mutant.change) for i in undecided]
    rechecked = 0
    for item in tried:
        if item.outcome == "refuted":
            assert item.decision is not None
            text = toml_of(spelled(item.mutant.statement))
            assert separates(text, item.decision.counterexample), (
                item.claim,
                item.mutant.change,
                text,
            )
            rechecked += 1
    return rechecked


def test_mutants_of_some_claims_are_refuted_and_the_oracle_agrees():
    assert check(QUICK) > 60


@pytest.mark.nightly
@pytest.mark.parametrize("name", [path.stem for path in ledger.scripts(PROOFS)])
def test_mutants_of_every_claim_are_refuted_and_the_oracle_agrees(name):
    claim = ledger.load(PROOFS / f"{name}.py")
    proved = [item for item in claim.statements if item.verdict == "proved"]
    assert check([name]) > 0 or not proved


def test_a_mutant_says_what_was_changed():
    (statement, *_) = [item.statement for item in ledger.load(PROOFS / "F1.py").statements]
    made = list(mutants(statement))
    assert {m.change.split(": ")[0] for m in made} <= {"left", "right"}
    assert len({m.statement.says for m in made}) == len(made)


def test_the_score_is_counted():
    tried = mutation.score([PROOFS / "F8.py"])
    lines = mutation.lines(tried)
    refuted = sum(item.outcome == "refuted" for item in tried)
    assert lines[-1].endswith(f"{refuted} refuted, {len(tried) - refuted} proved, 0 undecided")

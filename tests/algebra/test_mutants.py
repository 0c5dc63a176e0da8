"""Mutants of the ledger's statements: each is refuted, and an independent evaluator agrees."""

from __future__ import annotations

import dataclasses
import json
import random

import pytest
from algebra.oracle import World, separates

from nonmixing import ledger, mutation
from nonmixing.algebra.mutants import mutants
from nonmixing.algebra.printing import to_text
from nonmixing.algebra.setting import Statement

PROOFS = ledger.folder("proofs")
SCRIPTS = [path.stem for path in ledger.scripts(PROOFS)]
QUICK = ("F1", "F8", "F9", "N3")
LEDGER = {
    *(f"F{number}" for number in range(1, 13)),
    *("M2", "M3", "M13", "M15", "M16", "D1", "D2", "D3", "D6", "N2", "N3", "N9"),
}
"""Claims that stand on identities; there may be more."""


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


def at(sizes: dict[str, int], dim: str | int) -> int:
    return sizes[dim] if isinstance(dim, str) else dim


def holds(text: str, rng: random.Random) -> bool:
    """Whether a statement without equations holds at random matrices of its kinds, by the oracle.

    The sizes are the first three of twenty at which there are such matrices and no division by 0.
    """
    world = World(text)
    dims = sorted({d for shape in world.matrices.values() for d in shape if isinstance(d, str)})
    tall = [world.matrices[name] for name, kinds in world.kinds.items() if "orthonormal" in kinds]
    done = 0
    for _ in range(20):
        sizes = {dim: rng.randint(1, 3) for dim in dims}
        if not all(at(sizes, m) >= at(sizes, n) for m, n in tall):
            continue
        try:
            equal = world.equal(sizes, world.draw(sizes, rng, 2))
        except ZeroDivisionError:
            continue
        if not equal:
            return False
        done += 1
        if done == 3:
            break
    return done > 0


def check(names) -> int:
    tried = mutation.score([PROOFS / f"{name}.py" for name in names])
    undecided = [item for item in tried if item.outcome == "undecided"]
    assert not undecided, [(i.claim, i.statement, i.mutant.change) for i in undecided]
    rechecked = 0
    for item in tried:
        if item.outcome == "refused":
            continue
        text = toml_of(spelled(item.mutant.statement))
        if item.outcome == "proved" and not item.mutant.statement.assume:
            assert holds(text, random.Random(0)), (item.claim, item.mutant.change, text)
        if item.outcome == "refuted":
            assert item.decision is not None
            assert separates(text, item.decision.counterexample), (
                item.claim,
                item.mutant.change,
                text,
            )
            rechecked += 1
    return rechecked


def test_mutants_of_some_claims_are_refuted_and_the_oracle_agrees():
    assert check(QUICK) > 60


def test_an_undecided_mutant_is_a_failure(monkeypatch):
    monkeypatch.setattr(mutation, "TIMEOUT", 0.0)
    with pytest.raises(AssertionError, match="no decision within 0 s"):
        check(["F8"])


def test_every_claim_that_stands_on_identities_has_its_mutants_tried():
    assert set(SCRIPTS) >= LEDGER


@pytest.mark.nightly
@pytest.mark.parametrize("name", SCRIPTS)
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

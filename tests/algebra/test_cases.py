"""Claim files with known verdicts; each counterexample is put into the tests' own evaluator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from algebra.oracle import World, separates

from nonmixing.algebra import decide, load_claims
from nonmixing.errors import InputError, ShapeError

HERE = Path(__file__).parent
OWN = sorted((HERE / "cases").glob("*.toml"))
SHARED = HERE.parents[2] / "shared" / "cases"
EXPECTED: Mapping[str, Any] = (
    json.loads((SHARED / "expected.json").read_text("utf-8"))
    if (SHARED / "expected.json").exists()
    else {}
)
"""Further cases, where the folder beside the repository has them."""


def test_there_are_cases() -> None:
    assert len(OWN) >= 12


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_own_cases(path: Path) -> None:
    text = path.read_text("utf-8")
    if path.stem == "mismatch":
        with pytest.raises(ShapeError, match=r"C \(m x n\)|m x n.*n x m|n x m"):
            load_claims(text, path.name)
        return
    statements = load_claims(text, path.name)
    assert {s.expect for s in statements} == {"proved", "refuted"}
    for statement in statements:
        decision = decide(statement, timeout=20)
        assert decision.verdict == statement.expect, statement.id
        if decision.verdict == "refuted":
            assert separates(text, decision.counterexample, statement.id), statement.id


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_shared_cases(name: str) -> None:
    text = (SHARED / f"{name}.toml").read_text("utf-8")
    expected = EXPECTED[name]
    if expected["verdict"] == "bad-input":
        with pytest.raises(InputError) as caught:
            load_claims(text, name)
        assert "\n" not in str(caught.value)
        return
    (statement,) = load_claims(text, name)
    decision = decide(statement, timeout=20)
    assert decision.verdict == expected["verdict"]
    if decision.verdict == "refuted":
        assert separates(text, decision.counterexample)
    if "right" in expected:
        left = World(text).claim()["says"].split("==")[0]
        corrected = text.replace(World(text).claim()["says"], f"{left} == {expected['right']}")
        (statement,) = load_claims(corrected, name)
        assert decide(statement, timeout=20).verdict == "proved"

"""This package's prover, from the text of a claim file to the verdict."""

from __future__ import annotations

import time

from judges.answer import Answer
from nonmixing.algebra import decide, load_claims


def judge(text: str) -> Answer:
    """Read a claim file with one claim, and decide it."""
    start = time.process_time()
    (statement,) = load_claims(text, "benchmark")
    reading = time.process_time() - start
    decision = decide(statement)
    if decision.verdict == "proved":
        return Answer("true", proof=True, how=decision.scope, reading=reading)
    if decision.verdict == "refuted":
        found = decision.counterexample is not None
        return Answer("false", counterexample=found, how=decision.scope, reading=reading)
    return Answer("abstains", how=decision.reason, reading=reading)


def prepare(text: str) -> str:
    """Nothing is taken out of the timing: reading the text counts."""
    return text

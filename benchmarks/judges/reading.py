"""Claims as the peers get them: parsed already, outside the timing."""

from __future__ import annotations

from nonmixing.algebra import Statement, load_claims


def prepare(text: str) -> Statement:
    """The statement of a claim file with one claim."""
    (statement,) = load_claims(text, "benchmark")
    return statement

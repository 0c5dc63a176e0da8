"""What a judge says about a claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


class CannotExpressError(Exception):
    """The claim, or a part of it, has no counterpart in the judge's own language."""


@dataclass(frozen=True)
class Answer:
    """One verdict.

    Attributes:
        verdict: "true", "false" or "abstains"; "timeout" and "error" are what a run can end in.
        proof: the verdict "true" rests on a derivation for every size.
        counterexample: the verdict "false" comes with exact matrices that separate the sides.
        how: the route that settled it, or why there is no verdict.
        reading: CPU seconds that went into reading the claim's text, if that is timed.
    """

    verdict: Literal["true", "false", "abstains", "timeout", "error"]
    proof: bool = False
    counterexample: bool = False
    how: str = ""
    reading: float = 0.0

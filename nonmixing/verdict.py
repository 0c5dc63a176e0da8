"""What a piece of evidence says: the one type of verdict, and how a measured number becomes one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Literal, cast

from nonmixing.errors import InputError

if TYPE_CHECKING:
    from nonmixing.algebra import Counterexample, Decision

__all__ = [
    "OPEN",
    "WORDS",
    "Evidence",
    "Verdict",
    "VerdictWord",
    "check_word",
    "counterexample_line",
    "counterexample_parts",
    "decision_to_json",
    "exit_code",
    "judge",
    "numbers_line",
    "to_plain",
]

Evidence = Literal["proof", "simulation", "training"]
VerdictWord = Literal[
    "proved", "refuted", "undecided", "supported", "unsupported", "inconclusive", "error"
]
Numbers = float | tuple[float, ...]
"""One number, or one for each mode."""

WORDS: Mapping[Evidence, tuple[VerdictWord, ...]] = {
    "proof": ("proved", "refuted", "undecided", "error"),
    "simulation": ("supported", "unsupported", "inconclusive", "error"),
    "training": ("supported", "unsupported", "inconclusive", "error"),
}
FINE = 0.01
"""A band narrower than this, relative to its middle, is shown by the deviation from the middle."""
OPEN: frozenset[str] = frozenset({"undecided", "inconclusive"})
"""The verdicts that settle nothing."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict:
    """What one piece of evidence says.

    Attributes:
        verdict: `proved`, `refuted`, `undecided` (the prover's words); `supported`, `unsupported`,
            `inconclusive` (a measurement's); `error` where the evidence could not be had, the
            message being in `scope`.
        evidence: `proof`, `simulation` or `training`.
        scope: what the verdict covers; names the written lemma where one is used.
        measured: the measured number, or one for each mode; None for a proof.
        predicted: the number (or numbers) that theory gives.
        tolerance: half the width of the band around `predicted`.
        because: where the tolerance comes from.
        reason: what kept it from `supported` or `proved`, in words.
        nulls: for each null comparison, by name, what would have been measured under it.
        seconds: how long it took.
        seed: the seed of the randomness, if there was any.
        hypotheses: the hypotheses as they were checked.
        details: further numbers, ready for JSON.
        decision: the prover's decision, of a proof.
    """

    verdict: VerdictWord
    evidence: Evidence
    scope: str
    measured: Numbers | None = None
    predicted: Numbers | None = None
    tolerance: Numbers | None = None
    because: str = ""
    reason: str = ""
    nulls: Mapping[str, Numbers] = field(default_factory=dict[str, Numbers])
    seconds: float = 0.0
    seed: int | None = None
    hypotheses: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    decision: Decision | None = None

    def __post_init__(self) -> None:
        if self.evidence not in WORDS:
            raise InputError(f"evidence: got {self.evidence!r}; expected one of {', '.join(WORDS)}")
        check_word(self.verdict, self.evidence, "verdict")

    def __bool__(self) -> bool:
        """Whether the claim stands, so that `assert nm.prove(...)` means what it says."""
        return self.verdict in ("proved", "supported")

    @property
    def counterexample(self) -> Counterexample | None:
        """The matrices that separate the two sides of a refuted statement."""
        return self.decision.counterexample if self.decision is not None else None

    def to_json(self) -> dict[str, Any]:
        """The verdict in JSON's types, as `to_plain` has them."""
        plain: dict[str, Any] = {
            "verdict": self.verdict,
            "evidence": self.evidence,
            "scope": self.scope,
            "measured": to_plain(self.measured),
            "predicted": to_plain(self.predicted),
            "tolerance": to_plain(self.tolerance),
            "because": self.because,
            "reason": self.reason,
            "nulls": to_plain(self.nulls),
            "seconds": self.seconds,
            "seed": self.seed,
            "hypotheses": list(self.hypotheses),
            "details": to_plain(self.details),
        }
        if self.decision is not None:
            plain["decision"] = decision_to_json(self.decision)
            plain["certificate"] = list(self.decision.certificate)
        return plain

    def __repr__(self) -> str:
        shown = [f"{self.verdict} by {self.evidence}: {self.scope}"]
        if self.counterexample is not None:
            shown.append(counterexample_line(self.counterexample))
        if self.measured is not None:
            shown.append(numbers_line(self))
        return f"<Verdict {'; '.join(shown)}>"

    def _repr_html_(self) -> str:
        """A notebook's view: the verdict, what it covers, and the counterexample or the numbers."""
        rows = [("verdict", self.verdict), ("evidence", self.evidence), ("scope", self.scope)]
        if self.decision is not None:
            rows += [("left", self.decision.left), ("right", self.decision.right)]
            if self.verdict != "proved":
                rows.append(("left - right", self.decision.difference))
            rows += [("certificate", line) for line in self.decision.certificate]
        if self.counterexample is not None:
            rows.append(("counterexample", counterexample_line(self.counterexample)))
        if self.measured is not None:
            rows.append(("numbers", numbers_line(self)))
        cells = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows)
        return f"<table>{cells}</table>"


def judge(
    evidence: Literal["simulation", "training"],
    *,
    measured: float | Iterable[float],
    predicted: float | Iterable[float],
    tolerance: float | Iterable[float],
    because: str,
    scope: str,
    nulls: Mapping[str, float | Iterable[float]] | None = None,
    seed: int | None = None,
    hypotheses: Sequence[str] = (),
    details: Mapping[str, Any] | None = None,
) -> Verdict:
    """Hold measured numbers against their band, `predicted` ± `tolerance`, entry by entry.

    `unsupported` if an entry lies outside. Else `inconclusive` if in some entry a null comparison
    lies inside as well, for that entry could not have failed. Else `supported`.

    Args:
        evidence: which kind of evidence was measured.
        measured: one number, or one for each mode.
        predicted: what theory says, a number for all or one for each.
        tolerance: half the band's width, fixed before the measurement.
        because: where the tolerance comes from.
        scope: what was measured, in a few words.
        nulls: what the same measurement gives where nothing should be found.
        seed: the seed, if there was randomness.
        hypotheses: the hypotheses as they were checked.
        details: further numbers for the report.

    Raises:
        InputError: lengths that differ, or a band that is not finite.
    """
    values = _numbers(measured)
    size = len(values) if isinstance(values, tuple) else 1
    middle, width = _numbers(predicted), _numbers(tolerance)
    band = _band(middle, width, size)
    if not all(isfinite(p) and isfinite(w) and w >= 0 for p, w in band):
        raise InputError(f"tolerance: got {tolerance} around {predicted}; expected finite numbers")
    null_values = {name: _numbers(value) for name, value in (nulls or {}).items()}
    outside = _inside(values, band).count(False)
    passing = [name for name, value in null_values.items() if any(_inside(value, band))]
    word: VerdictWord = "supported"
    reason = ""
    if outside:
        word, reason = "unsupported", f"outside the band: {outside} of {size}"
    elif passing:
        word, reason = "inconclusive", f"the null comparison passes too: {', '.join(passing)}"
    return Verdict(
        verdict=word,
        evidence=evidence,
        scope=scope,
        measured=values,
        predicted=middle,
        tolerance=width,
        because=because,
        reason=reason,
        nulls=null_values,
        seed=seed,
        hypotheses=tuple(hypotheses),
        details=details or {},
    )


def exit_code(outcomes: Iterable[tuple[str, str]]) -> int:
    """The command's exit code for pairs of a verdict and the one expected.

    Returns:
        0 if each is as expected; 3 if those that are not settle nothing (undecided,
        inconclusive); else 1.
    """
    differing = {verdict for verdict, expected in outcomes if verdict != expected}
    if not differing:
        return 0
    return 3 if differing <= OPEN else 1


def to_plain(value: Any) -> Any:
    """A value in JSON's types: integers as numbers, other rationals as strings, arrays as lists.

    A rational is `p/q`; a float that is not finite is `nan`, `inf` or `-inf`, for JSON has none.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else str(value)
    if isinstance(value, float):
        return float(value) if isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return {str(key): to_plain(item) for key, item in entries.items()}
    if isinstance(value, Iterable):
        return [to_plain(item) for item in cast("Iterable[object]", value)]
    if hasattr(value, "item"):  # a NumPy scalar
        return to_plain(value.item())
    raise InputError(f"result: {value!r} of type {type(value).__name__} has no place in JSON")


def decision_to_json(decision: Decision) -> dict[str, Any]:
    """A decision as `nonmixing check --json` prints it."""
    counterexample = decision.counterexample
    return {
        "id": decision.id,
        "verdict": decision.verdict,
        "scope": decision.scope,
        "left": decision.left,
        "right": decision.right,
        "difference": decision.difference,
        "counterexample": None
        if counterexample is None
        else {
            "dims": dict(counterexample.dims),
            "values": to_plain(counterexample.values),
            "left": to_plain(counterexample.left),
            "right": to_plain(counterexample.right),
        },
        "seconds": decision.seconds,
    }


def counterexample_parts(counterexample: Counterexample) -> list[str]:
    """`W = [1]`, ..., then the sides: `left = -16, right = -4`. Semicolons part a matrix's rows."""
    parts = [f"{name} = {_show(value)}" for name, value in counterexample.values.items()]
    left, right = _show(counterexample.left), _show(counterexample.right)
    if _is_number(counterexample.left):
        left, right = left.strip("[]"), right.strip("[]")
    return [*parts, f"left = {left}, right = {right}"]


def counterexample_line(counterexample: Counterexample) -> str:
    """A counterexample on one line: `W = [1]  V = [1]:  left = -16, right = -4`."""
    *values, sides = counterexample_parts(counterexample)
    return f"{'  '.join(values)}:  {sides}" if values else sides


def numbers_line(verdict: Verdict) -> str:
    """The measured number beside its band; of several, the one that strains the band most."""
    if verdict.measured is None:
        return ""
    measured = verdict.measured if isinstance(verdict.measured, tuple) else (verdict.measured,)
    if verdict.predicted is None or verdict.tolerance is None or not measured:
        return ", ".join(f"{value:.3g}" for value in measured)
    band = _band(verdict.predicted, verdict.tolerance, len(measured))
    rows = [(value, *bounds) for value, bounds in zip(measured, band, strict=True)]
    value, middle, width = max(rows, key=lambda row: _strain(*row))
    off = abs(value - middle)
    inside = off <= width
    if width < FINE * abs(middle) or middle == 0:  # three digits would hide the deviation
        words = "" if middle == 0 else "off by "
        line = f"{words}{off:.3g} {'≤' if inside else '>'} {width:.2g}"
    else:
        line = f"{value:.3g} {'in' if inside else 'outside'} {middle:.3g} ± {width:.2g}"
    return line if len(rows) == 1 else f"{line}, worst of {len(rows)}"


def check_word(word: str, evidence: Evidence, argument: str) -> None:
    """Refuse a verdict that this kind of evidence cannot give."""
    if word not in WORDS[evidence]:
        raise InputError(
            f"{argument}: got {word!r}; a {evidence} says one of {', '.join(WORDS[evidence])}"
        )


def _numbers(value: float | Iterable[float]) -> Numbers:
    return tuple(map(float, value)) if isinstance(value, Iterable) else float(value)


def _spread(value: Numbers, size: int) -> tuple[float, ...]:
    if not isinstance(value, tuple):
        return (value,) * size
    if len(value) != size:
        raise InputError(f"numbers: got {len(value)} beside {size} measured; expected one for each")
    return value


def _band(middle: Numbers, width: Numbers, size: int) -> list[tuple[float, float]]:
    return list(zip(_spread(middle, size), _spread(width, size), strict=True))


def _inside(numbers: Numbers, band: Sequence[tuple[float, float]]) -> list[bool]:
    # A value that is not a number is outside: the comparison is false.
    spread = _spread(numbers, len(band))
    return [abs(x - middle) <= width for x, (middle, width) in zip(spread, band, strict=True)]


def _strain(value: float, middle: float, width: float) -> float:
    """The distance in units of the band's half width; infinite for what is not a number."""
    distance = abs(value - middle)
    if distance != distance:
        return inf
    return distance / width if width > 0 else (inf if distance > 0 else 0.0)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Fraction) or (len(value) == 1 and len(value[0]) == 1)


LONGEST_NUMBER = 60
"""Characters of a number that are shown in full."""


def _show(value: Any) -> str:
    if isinstance(value, int | Fraction | str):
        text = str(value)
        digits = f"... ({len(text.lstrip('-'))} digits)"
        return text if len(text) <= LONGEST_NUMBER else text[: LONGEST_NUMBER // 2] + digits
    return "[" + "; ".join(", ".join(_show(entry) for entry in row) for row in value) + "]"

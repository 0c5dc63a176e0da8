"""Comparisons of trajectories as verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from nonmixing.compare import BAND, EFFECT_HALVING, HALVING, Comparison, StepSizeBand
from nonmixing.verdict import Verdict

__all__ = ["of_band", "of_comparison"]

Measured = Literal["simulation", "training"]


def of_comparison(
    evidence: Measured,
    comparison: Comparison,
    scope: str,
    *,
    seed: int | None = None,
    details: Mapping[str, Any] | None = None,
) -> Verdict:
    """The verdict of a comparison: the distance in each mode against its tolerance.

    Args:
        evidence: which kind of evidence was compared.
        comparison: from `compare`.
        scope: what was compared, in a few words.
        seed: of the start, if it is random.
        details: further numbers for the report.
    """
    return Verdict(
        verdict=comparison.verdict,
        evidence=evidence,
        scope=_scope(scope, comparison.reason),
        measured=tuple(map(float, comparison.measured)),
        predicted=0.0,
        tolerance=tuple(map(float, comparison.tolerance)),
        because=comparison.because,
        nulls={name: tuple(map(float, values)) for name, values in comparison.nulls.items()},
        seed=seed,
        details={
            "time factor": comparison.time_factor,
            "scale": comparison.predicted_scale,
            "outcomes": comparison.outcomes,
            "times": comparison.times,
            **(details or {}),
        },
    )


def of_band(
    evidence: Measured,
    band: StepSizeBand,
    scope: str,
    *,
    seed: int | None = None,
    details: Mapping[str, Any] | None = None,
) -> Verdict:
    """The verdict of a step-size test: in each mode (measured − flow)/(modified − flow) in 1 ± 0.2.

    How the remaining gap falls when the learning rate is halved, 4 ± 20 %, and how the effect
    itself does, 2 ± 20 %, are part of the verdict and stand in the details, as do the nulls' own
    ratio and fall.

    Args:
        evidence: which kind of evidence was compared.
        band: from `step_size_band`.
        scope: what was compared, in a few words.
        seed: of the start, if it is random.
        details: further numbers for the report.
    """
    return Verdict(
        verdict=band.verdict,
        evidence=evidence,
        scope=_scope(scope, band.reason),
        measured=tuple(map(float, band.ratio)),
        predicted=1.0,
        tolerance=BAND,
        because=band.because,
        nulls={name: tuple(map(float, values)) for name, values in band.null_ratio.items()},
        seed=seed,
        details={
            "fall": band.fall,
            "fall expected": HALVING,
            "effect fall": band.effect_fall,
            "effect fall expected": EFFECT_HALVING,
            "null fall": dict(band.null_fall),
            "effect": band.effect,
            "gap": band.gap,
            "gap at half the rate": band.gap_half,
            "floor": band.floor,
            "outcomes": band.outcomes,
            "times": band.times,
            **(details or {}),
        },
    )


def _scope(scope: str, reason: str) -> str:
    return f"{scope} ({reason})" if reason else scope

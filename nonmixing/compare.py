"""Two trajectories in, a verdict out: does the measured one follow the predicted one?

Every comparison is also made with nulls, stand-ins that a good comparison must turn down: nothing
moved (frozen), and the right curve on the wrong clock (slowed, hurried). Where a null would pass as
well, the comparison decides nothing. Nothing here asks which route a trajectory came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator
from scipy.optimize import minimize_scalar

from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError, ShapeError
from nonmixing.problem import Array, BilinearProblem, described, real_array

Outcome: TypeAlias = Literal["supported", "unsupported", "inconclusive"]

CLOCKS: Final[Mapping[str, float]] = MappingProxyType({"slowed": 0.8, "hurried": 1.25})
"""The time-rescaled nulls: the curve c(t) becomes c(0.8 t) or c(1.25 t)."""

CLOCK_RANGE: Final = 2.0
"""Clock factors are sought between 1/2 and 2."""

BAND: Final = 0.2
"""How far from its prediction a ratio of the step-size test may be, relative."""

HALVING: Final = 4.0
"""By how much an error of second order in the learning rate falls when the rate is halved."""

EFFECT_HALVING: Final = 2.0
"""By how much the effect of the learning rate itself, of first order, falls when it is halved."""

STEP_SIZE_REASON: Final = (
    "descent with rate η follows the flow of L + (η/4)‖∇L‖² to second order in η "
    "[Barrett and Dherin 2021]"
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """How far a measured trajectory is from a predicted one, mode by mode.

    Attributes:
        verdict: "unsupported" if a mode is further off than its tolerance; "inconclusive" if none
            is but a null passes in some mode, or a run did not end well; "supported" otherwise.
        measured: max_t |c_measured − c_predicted|, shape (k,).
        predicted_scale: How far the predicted mode moves from its start, max_t, shape (k,).
        tolerance: Shape (k,).
        because: Where the tolerance comes from.
        nulls: The same distance for "frozen" (the prediction: no motion), "slowed" and "hurried"
            (the prediction on a clock of 0.8 and of 1.25), each of shape (k,).
        time_factor: The factor on the prediction's clock that fits best, 1 for a good one, shape
            (k,); NaN where the prediction does not move.
        outcomes: The verdict on each mode.
        reason: What kept the verdict from "supported", else "".
        sources: The measured and the predicted route.
        times: The number of times compared.
    """

    verdict: Outcome
    measured: Array
    predicted_scale: Array
    tolerance: Array
    because: str
    nulls: Mapping[str, Array]
    time_factor: Array
    outcomes: tuple[Outcome, ...]
    reason: str
    sources: tuple[str, str]
    times: int

    def __str__(self) -> str:
        """The verdict, and a line for each mode."""
        return _as_text(self._title(), self._table(), self._notes())

    def _repr_html_(self) -> str:
        return _as_html(self._title(), self._table(), self._notes())

    def _title(self) -> str:
        what = f"{self.sources[0]} against {self.sources[1]}"
        return f"{self.verdict}: {what}, {_plural(len(self.measured), 'mode')}, " + _plural(
            self.times, "time"
        )

    def _table(self) -> list[list[str]]:
        head = ["mode", "distance", "tolerance", "scale", *self.nulls, "clock", "verdict"]
        numbers = [self.measured, self.tolerance, self.predicted_scale, *self.nulls.values()]
        rows = [
            [
                str(i + 1),
                *(f"{column[i]:.2e}" for column in numbers),
                f"{self.time_factor[i]:.3f}",
                self.outcomes[i],
            ]
            for i in range(len(self.measured))
        ]
        return [head, *rows]

    def _notes(self) -> list[str]:
        return [f"tolerance: {self.because}", *([self.reason] if self.reason else [])]


def compare(
    a: Trajectory,
    b: Trajectory,
    *,
    tolerance: float | Array,
    because: str,
    modes: int | None = None,
) -> Comparison:
    """Hold a measured trajectory against a predicted one, mode by mode, at the measured times.

    The distance in a mode is max_t |c_a − c_b|, and it must be at most the tolerance. Each null is
    scored in the same way in place of b. The clock nulls read b between its times by monotone cubic
    interpolation (PCHIP, which adds no overshoot), and hold it beyond its last time; to see the
    hurried one in full, let b run to 1.25 times the last measured time.

    Args:
        a: Measured.
        b: Predicted; its times contain those of a (to rounding).
        tolerance: One number or shape (k,), in the units of the target.
        because: Where the tolerance comes from, in words: theory, or an estimated error.
        modes: How many of the leading modes to compare; all by default.

    Returns:
        The comparison. The modes are those of a's target, or of b's where a names no problem.

    Raises:
        InputError: A measured time that b lacks, no problem in either, or a tolerance that is not
            positive and finite or has no reason.
        ShapeError: Operators of different shapes, or a tolerance of another length.
    """
    if not because.strip():
        raise InputError("because: empty; say where the tolerance comes from")
    _check_runs(a=a, b=b)
    problem = _common_problem(a, b)
    count = _mode_count(modes, problem)
    limit = _per_mode("tolerance", tolerance, count)
    if not (limit > 0).all():
        raise InputError(f"tolerance: got {float(limit.min())}; positive numbers are expected")
    at = _places(a, b, "b, the prediction")
    seen, every = a.modes(problem)[:, :count], b.modes(problem)[:, :count]
    stand_ins = {"frozen": _frozen(seen)} | {
        name: _on_clock(b.times, every, a.times, factor) for name, factor in CLOCKS.items()
    }
    distance = np.abs(seen - every[at]).max(axis=0)
    nulls = {name: np.abs(seen - curve).max(axis=0) for name, curve in stand_ins.items()}
    fails = distance > limit
    passing = {name: (null <= limit) & ~fails for name, null in nulls.items()}
    outcomes = _outcomes(fails, np.any(list(passing.values()), axis=0))
    reasons = [_about(fails, "further off than the tolerance")]
    reasons += [_about(passed, f"the {name} null passes too") for name, passed in passing.items()]
    verdict, reason = _conclude(outcomes, reasons, (a, b))
    return Comparison(
        verdict=verdict,
        measured=distance,
        predicted_scale=np.abs(every[at] - every[at][0]).max(axis=0),
        tolerance=limit,
        because=because,
        nulls=MappingProxyType(nulls),
        time_factor=_clock_factors(a.times, seen, b.times, every),
        outcomes=outcomes,
        reason=reason,
        sources=(a.source, b.source),
        times=len(a),
    )


@dataclass(frozen=True, eq=False)
class StepSizeBand:
    """Whether descent leaves the flow in the way that its learning rate η makes it (ledger D5).

    With m measured, f the flow and g the modified flow, all at the measured times, and ⟨·,·⟩ the
    sum over those times:

    Attributes:
        verdict: "unsupported" if a mode that can be resolved is out of its band, "inconclusive" if
            none is but some mode decides nothing, "supported" otherwise.
        ratio: ⟨m − f, g − f⟩ / ⟨g − f, g − f⟩, shape (k,); 1 ± 0.2 is expected.
        fall: ‖m − g‖ at η over ‖m − g‖ at η/2, shape (k,); 4 ± 20 % is expected.
        effect_fall: ‖g − f‖ at η over ‖g − f‖ at η/2, shape (k,); 2 ± 20 % is expected. Were f
            another curve than the flow, the ratio would be near 1 all the same, but not this.
        effect: The root mean square of g − f, shape (k,).
        gap: The root mean square of m − g at η, shape (k,).
        gap_half: The same at η/2, shape (k,).
        floor: What rounding and integration leave uncertain, shape (k,).
        null_ratio: The ratio with m frozen, slowed, hurried, each of shape (k,).
        null_fall: The fall with m frozen, slowed, hurried, each of shape (k,).
        outcomes: The verdict on each mode.
        reason: What kept the verdict from "supported", else "".
        because: Where the bands come from.
        times: The number of times compared.
    """

    verdict: Outcome
    ratio: Array
    fall: Array
    effect_fall: Array
    effect: Array
    gap: Array
    gap_half: Array
    floor: Array
    null_ratio: Mapping[str, Array]
    null_fall: Mapping[str, Array]
    outcomes: tuple[Outcome, ...]
    reason: str
    because: str
    times: int

    def __str__(self) -> str:
        """The verdict, and a line for each mode."""
        return _as_text(self._title(), self._table(), self._notes())

    def _repr_html_(self) -> str:
        return _as_html(self._title(), self._table(), self._notes())

    def _title(self) -> str:
        return (
            f"{self.verdict}: step-size band, {_plural(len(self.ratio), 'mode')}, "
            f"{_plural(self.times, 'time')}"
        )

    def _table(self) -> list[list[str]]:
        head = ["mode", "ratio", "fall", "effect", "g - f", "m - g", "at half", "floor"]
        head += [f"{name}: ratio, fall" for name in self.null_ratio] + ["verdict"]
        numbers = (self.effect, self.gap, self.gap_half, self.floor)
        rows = [
            [
                str(i + 1),
                f"{self.ratio[i]:.3f}",
                f"{self.fall[i]:.2f}",
                f"{self.effect_fall[i]:.2f}",
                *(f"{column[i]:.1e}" for column in numbers),
                *(
                    f"{self.null_ratio[name][i]:.3g}, {self.null_fall[name][i]:.2f}"
                    for name in self.null_ratio
                ),
                self.outcomes[i],
            ]
            for i in range(len(self.ratio))
        ]
        return [head, *rows]

    def _notes(self) -> list[str]:
        bands = (
            f"bands: ratio 1 ± {BAND}, fall {HALVING:g} ± {BAND:.0%}, "
            f"effect {EFFECT_HALVING:g} ± {BAND:.0%}: {self.because}"
        )
        return [bands, *([self.reason] if self.reason else [])]


def step_size_band(
    measured: Trajectory,
    flow: Trajectory,
    modified: Trajectory,
    measured_half: Trajectory,
    modified_half: Trajectory,
    *,
    floor: float | Array = 0.0,
    modes: int | None = None,
) -> StepSizeBand:
    """Test descent against the flow that its learning rate modifies, mode by mode.

    Descent with rate η follows the flow of L + (η/4)‖∇L‖² to second order [Barrett and Dherin
    2021]. So measured − flow must be modified − flow up to a relative error of order η: the ratio
    must be in 1 ± 0.2. And what is left, measured − modified, must fall by 4 ± 20 % when η is
    halved; its size is its root mean square over the measured times, the norm of the ratio too, in
    which no single time decides. Nothing in the bands depends on what is measured. And the effect
    itself, modified − flow, must fall by 2 ± 20 %, or the flow is another curve than it should be.

    The same two numbers are taken with the measured curves frozen at their start and put on a clock
    of 0.8 and of 1.25 (at η and at η/2; PCHIP, held at the end). A null that is within both bands
    passes, and then the mode decides nothing.

    Args:
        measured: Descent with rate η; its times are the ones that are used.
        flow: The gradient flow, at those times among others (as for all that follow).
        modified: The modified flow for η, `integrate(..., rate=η)`.
        measured_half: Descent with rate η/2 from the same start.
        modified_half: The modified flow for η/2.
        floor: What rounding and the integrator's tolerance leave uncertain in a mode's strength,
            one number or shape (k,). What is not above five floors, 1/0.2, is not resolved.
        modes: How many of the leading modes to test; all by default.

    Returns:
        The verdict, with its numbers for each mode.

    Raises:
        InputError: Times that are lacking, no problem, a negative floor, or rates that are recorded
            and are not η and η/2.
        ShapeError: Operators of different shapes, or a floor of another length.
    """
    _check_runs(
        measured=measured,
        flow=flow,
        modified=modified,
        measured_half=measured_half,
        modified_half=modified_half,
    )
    runs = (measured, flow, modified, measured_half, modified_half)
    names = ("measured", "flow", "modified", "measured_half", "modified_half")
    _check_halved(modified, modified_half)
    problem = _common_problem(*runs)
    count = _mode_count(modes, problem)
    lost = _per_mode("floor", floor, count)
    if (lost < 0).any():
        raise InputError(f"floor: got {float(lost.min())}; numbers from 0 on are expected")
    places = [_places(measured, run, name) for run, name in zip(runs, names, strict=True)]
    every = [run.modes(problem)[:, :count] for run in runs]
    m, f, g, m_half, g_half = (curves[at] for curves, at in zip(every, places, strict=True))
    nulls = {"frozen": _band_score(_frozen(m), f, g, _frozen(m_half), g_half)}
    for name, factor in CLOCKS.items():
        off = _on_clock(measured.times, every[0], measured.times, factor)
        off_half = _on_clock(measured_half.times, every[3], measured.times, factor)
        nulls[name] = _band_score(off, f, g, off_half, g_half)
    return _judge_band(_band_score(m, f, g, m_half, g_half), nulls, lost, runs)


def _judge_band(
    score: _BandScore, nulls: Mapping[str, _BandScore], floor: Array, runs: Sequence[Trajectory]
) -> StepSizeBand:
    """The verdict on the scores of the measured curves and of the nulls."""
    no_effect = floor >= BAND * score.effect
    no_gap = ~no_effect & (floor >= BAND * score.gap_half)
    off_ratio = ~no_effect & ~score.ratio_in_band
    off_fall = ~no_effect & ~no_gap & ~score.fall_in_band
    off_effect = ~no_effect & ~score.effect_fall_in_band
    fails = off_ratio | off_fall | off_effect
    passing = {
        name: null.ratio_in_band & null.fall_in_band & ~fails for name, null in nulls.items()
    }
    undecided = no_effect | no_gap | np.any(list(passing.values()), axis=0)
    outcomes = _outcomes(fails, undecided)
    reasons = [
        _about(off_ratio, "the ratio is out of its band"),
        _about(off_fall, "the gap does not fall as η²"),
        _about(off_effect, "modified − flow does not fall as η: is the flow the right one?"),
        _about(no_effect, "modified − flow is not resolved above the floor"),
        _about(no_gap, "measured − modified is not resolved above the floor"),
    ]
    reasons += [_about(passed, f"the {name} null passes too") for name, passed in passing.items()]
    verdict, reason = _conclude(outcomes, reasons, runs)
    return StepSizeBand(
        verdict=verdict,
        ratio=score.ratio,
        fall=score.fall,
        effect_fall=score.effect_fall,
        effect=score.effect,
        gap=score.gap,
        gap_half=score.gap_half,
        floor=floor,
        null_ratio=MappingProxyType({name: null.ratio for name, null in nulls.items()}),
        null_fall=MappingProxyType({name: null.fall for name, null in nulls.items()}),
        outcomes=outcomes,
        reason=reason,
        because=STEP_SIZE_REASON,
        times=len(runs[0]),
    )


@dataclass(frozen=True, eq=False)
class _BandScore:
    """The numbers of the step-size test for one set of curves, each of shape (k,)."""

    ratio: Array
    fall: Array
    effect_fall: Array
    effect: Array
    gap: Array
    gap_half: Array

    @property
    def ratio_in_band(self) -> NDArray[np.bool_]:
        return np.abs(self.ratio - 1) <= BAND

    @property
    def fall_in_band(self) -> NDArray[np.bool_]:
        return np.abs(self.fall / HALVING - 1) <= BAND

    @property
    def effect_fall_in_band(self) -> NDArray[np.bool_]:
        return np.abs(self.effect_fall / EFFECT_HALVING - 1) <= BAND


def _band_score(m: Array, f: Array, g: Array, m_half: Array, g_half: Array) -> _BandScore:
    """NaN, which is in no band, where a quotient is 0/0 or over 0."""
    shift = g - f
    across, square = np.sum((m - f) * shift, axis=0), np.sum(shift**2, axis=0)
    effect, gap, gap_half = _rms(shift), _rms(m - g), _rms(m_half - g_half)
    return _BandScore(
        ratio=_quotient(across, square),
        fall=_quotient(gap, gap_half),
        effect_fall=_quotient(effect, _rms(g_half - f)),
        effect=effect,
        gap=gap,
        gap_half=gap_half,
    )


def _rms(curves: Array) -> Array:
    return np.sqrt(np.mean(curves**2, axis=0))


def _quotient(top: Array, bottom: Array) -> Array:
    return np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), np.nan)


def _frozen(curves: Array) -> Array:
    return np.broadcast_to(curves[0], curves.shape)


def _check_halved(modified: Trajectory, modified_half: Trajectory) -> None:
    """Where both modified flows say their rate, the second must be half of the first."""
    rates = [float(run.stats.get("rate", np.nan)) for run in (modified, modified_half)]
    if np.isfinite(rates).all() and not np.isclose(rates[0], 2 * rates[1], rtol=1e-9, atol=0):
        raise InputError(
            f"modified_half: its rate is {rates[1]:.6g} beside {rates[0]:.6g} for modified; "
            f"{rates[0] / 2:.6g} is expected"
        )


def _check_runs(**runs: object) -> None:
    """Refuse what is no trajectory, by its name."""
    for name, run in runs.items():
        if not isinstance(run, Trajectory):
            raise InputError(
                f"{name}: got {described(run)}; a Trajectory is expected, as solve, integrate, "
                "train and Trajectory.from_arrays give it"
            )


def _common_problem(*runs: Trajectory) -> BilinearProblem:
    """The first problem that a run names; its modes are used for all of them."""
    problem = next((run.problem for run in runs if run.problem is not None), None)
    if problem is None:
        raise InputError(
            "problem: none of the trajectories was made with one, and the target fixes the modes; "
            "pass problem= to Trajectory.from_arrays"
        )
    return problem


def _mode_count(modes: int | None, problem: BilinearProblem) -> int:
    """How many leading modes to look at."""
    k = len(problem.svd.s)
    if modes is None:
        return k
    if not 1 <= modes <= k:
        raise InputError(f"modes: got {modes}; a number from 1 to {k} is expected for this target")
    return modes


def _per_mode(name: str, value: ArrayLike, count: int) -> Array:
    """One number for each mode."""
    numbers = real_array(name, np.atleast_1d(np.asarray(value)), 1)
    if len(numbers) == 1:
        return np.repeat(numbers, count)
    if len(numbers) != count:
        raise ShapeError(
            f"{name}: got {len(numbers)} numbers; 1, or {count} for as many modes, is expected"
        )
    return numbers


def _places(measured: Trajectory, other: Trajectory, name: str) -> NDArray[np.intp]:
    """Where the measured times are among the other's, to a part in 10^12 of the last."""
    after = np.minimum(np.searchsorted(other.times, measured.times), len(other) - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.abs(other.times[before] - measured.times) <= np.abs(
        other.times[after] - measured.times
    )
    places = np.where(nearer, before, after)
    off = np.abs(other.times[places] - measured.times)
    missing = np.flatnonzero(off > 1e-12 * np.abs(measured.times).max())
    if len(missing):
        ended = "" if other.status == "ok" else f" ({other.status})"
        raise InputError(
            f"{name}: has no state at t = {measured.times[missing[0]]:.6g} and "
            f"{len(missing) - 1} more of the measured times{ended}; evaluate it at those"
        )
    return places


def _on_clock(times: Array, curves: Array, at: Array, factor: float) -> Array:
    """The curves at factor · `at`, held outside the times, monotone between them."""
    if len(times) == 1:
        return np.repeat(curves, len(at), axis=0)
    wanted = np.clip(factor * at, times[0], times[-1])
    return np.asarray(PchipInterpolator(times, curves, axis=0)(wanted), np.float64)


def _clock_factors(times: Array, seen: Array, other: Array, predicted: Array) -> Array:
    """For each mode the clock factor of the prediction with the least squared distance."""
    trial = [CLOCK_RANGE ** (step / 28) for step in range(-28, 29)]  # 2.5 % apart
    misfits = np.array(
        [np.sum((seen - _on_clock(other, predicted, times, x)) ** 2, axis=0) for x in trial]
    )
    factors = np.full(seen.shape[1], np.nan)
    for i in np.flatnonzero(np.ptp(predicted, axis=0) > 0):
        best = int(np.argmin(misfits[:, i]))

        def misfit(x: float, i: int = int(i)) -> float:
            curve = _on_clock(other, predicted[:, i : i + 1], times, float(x))
            return float(np.sum((seen[:, i : i + 1] - curve) ** 2))

        bounds = (trial[max(best - 1, 0)], trial[min(best + 1, len(trial) - 1)])
        factors[i] = float(minimize_scalar(misfit, bounds=bounds, method="bounded").x)
    return factors


def _outcomes(fails: NDArray[np.bool_], undecided: NDArray[np.bool_]) -> tuple[Outcome, ...]:
    return tuple(
        "unsupported" if bad else "inconclusive" if open_ else "supported"
        for bad, open_ in zip(fails, undecided, strict=True)
    )


def _conclude(
    outcomes: Sequence[Outcome], reasons: Sequence[str], runs: Sequence[Trajectory]
) -> tuple[Outcome, str]:
    """One verdict: a failing mode decides, then an undecided one, then a run that ended badly."""
    stopped = [f"{run.source}: {run.status}" for run in runs if run.status != "ok"]
    reason = "; ".join([text for text in reasons if text] + stopped)
    if "unsupported" in outcomes:
        return "unsupported", reason
    if "inconclusive" in outcomes or stopped:
        return "inconclusive", reason
    return "supported", ""


def _about(which: NDArray[np.bool_], what: str) -> str:
    """The numbers of the modes, and what about them; nothing where there are none."""
    numbers = ", ".join(str(i + 1) for i in np.flatnonzero(which))
    return f"mode {numbers}: {what}" if numbers else ""


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _as_text(title: str, table: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in table]
    return "\n".join([title, *lines, *notes])


def _as_html(title: str, table: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table[1:]
    )
    foot = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        f"<p><strong>{escape(title)}</strong></p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{foot}"
    )

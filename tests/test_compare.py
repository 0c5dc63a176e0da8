"""Comparisons that can fail: synthetic curves, real descent, and what must be turned down."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nonmixing.compare import BAND, StepSizeBand, compare, step_size_band
from nonmixing.dynamics.exact import solve
from nonmixing.dynamics.integrate import integrate
from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError, ShapeError
from nonmixing.problem import Array, BilinearProblem, Factors, aligned, balanced, orthonormal

TWO = BilinearProblem(np.diag([2.0, 1.0]))
TIMES = np.linspace(0, 8, 81)


def curve(times: Array, *modes: Array, problem: BilinearProblem | None = TWO) -> Trajectory:
    """A made-up run with the given mode strengths on diagonal problems: U = diag(c), V = I."""
    strengths = np.stack(modes, axis=1)
    k = strengths.shape[1]
    return Trajectory.from_arrays(
        times,
        strengths[:, :, None] * np.eye(k),
        np.tile(np.eye(k), (len(times), 1, 1)),
        problem=problem,
    )


def sigmoid(times: Array, s: float, middle: float) -> Array:
    return s / (1 + np.exp(-2 * s * (times - middle)))


def two(times: Array, clock: float = 1.0, shift: float = 0.0) -> Trajectory:
    return curve(
        times, sigmoid(clock * times, 2.0, 2.0) + shift, sigmoid(clock * times, 1.0, 4.0) + shift
    )


# --- compare ---------------------------------------------------------------------------------


def test_the_distance_is_the_largest_over_the_times() -> None:
    found = compare(two(TIMES, shift=0.01), two(TIMES), tolerance=0.02, because="made up")
    np.testing.assert_allclose(found.measured, 0.01, rtol=1e-9)
    assert found.verdict == "supported"
    assert found.outcomes == ("supported", "supported")
    assert found.reason == ""
    assert found.times == 81
    np.testing.assert_allclose(found.predicted_scale, [2.0, 1.0], rtol=2e-3)
    np.testing.assert_allclose(found.time_factor, 1.0, atol=0.02)


def test_a_mode_out_of_its_tolerance_decides() -> None:
    found = compare(
        two(TIMES, shift=0.01), two(TIMES), tolerance=np.array([0.0101, 0.0099]), because="x"
    )
    assert found.verdict == "unsupported"
    assert found.outcomes == ("supported", "unsupported")
    assert found.reason == "mode 2: further off than the tolerance"


@pytest.mark.parametrize(
    ("clock", "null"), [(0.8, "slowed"), (1.25, "hurried"), (1 / 0.8, "hurried")]
)
def test_the_wrong_clock_fails_and_its_factor_is_found(clock: float, null: str) -> None:
    longer = np.linspace(0, 12, 121)
    found = compare(two(TIMES, clock), two(longer), tolerance=0.1, because="made up")
    assert found.verdict == "unsupported"
    np.testing.assert_allclose(found.time_factor, clock, rtol=0.01)
    # The null of that clock is the measured curve itself, up to interpolation.
    np.testing.assert_allclose(found.nulls[null], 0.0, atol=2e-3)
    other = "hurried" if null == "slowed" else "slowed"
    assert (found.nulls[other] > 0.1).all()


def test_the_nulls_are_what_they_are_said_to_be() -> None:
    longer = np.linspace(0, 12, 1201)
    found = compare(two(TIMES), two(longer), tolerance=0.1, because="made up")
    seen = two(TIMES).modes()
    np.testing.assert_allclose(found.nulls["frozen"], np.ptp(seen, axis=0), rtol=1e-12)
    for null, clock in (("slowed", 0.8), ("hurried", 1.25)):
        expected = np.abs(two(TIMES, clock).modes() - seen).max(axis=0)
        np.testing.assert_allclose(found.nulls[null], expected, rtol=1e-4)


def test_nothing_moved_is_inconclusive() -> None:
    still = curve(TIMES, np.full(81, 0.3), np.full(81, 0.1))
    found = compare(still, still, tolerance=0.01, because="made up")
    assert found.verdict == "inconclusive"
    assert "mode 1, 2: the frozen null passes too" in found.reason
    assert np.isnan(found.time_factor).all()


def test_a_tolerance_that_a_clock_null_meets_is_inconclusive() -> None:
    """The lead that a band of that size would give away."""
    found = compare(two(TIMES), two(TIMES), tolerance=0.9, because="made up")
    assert found.verdict == "inconclusive"
    assert "slowed" in found.reason


def test_one_idle_mode_leaves_the_whole_undecided_unless_left_out() -> None:
    idle = curve(TIMES, sigmoid(TIMES, 2.0, 2.0), np.full(81, 1e-9))
    found = compare(idle, idle, tolerance=0.01, because="made up")
    assert found.verdict == "inconclusive"
    assert found.outcomes == ("supported", "inconclusive")
    assert compare(idle, idle, tolerance=0.01, because="made up", modes=1).verdict == "supported"


def test_a_single_time_decides_nothing() -> None:
    once = two(np.array([1.0]))
    assert compare(once, once, tolerance=0.01, because="made up").verdict == "inconclusive"


def test_a_prediction_may_have_more_times() -> None:
    finer = np.union1d(TIMES * (1 + 2e-16), np.linspace(0.01, 20, 333))
    found = compare(two(TIMES), two(finer), tolerance=1e-9, because="made up")
    assert found.verdict == "supported"
    assert found.measured.max() < 1e-12


@pytest.mark.parametrize("predicted", [TIMES[:-1], TIMES + 1e-6, TIMES[1:], np.array([3.0])])
def test_a_missing_time_is_refused(predicted: Array) -> None:
    with pytest.raises(InputError, match=r"b, the prediction: has no state at t = .*evaluate it"):
        compare(two(TIMES), two(predicted), tolerance=0.1, because="made up")


def test_a_run_that_stopped_is_never_supported() -> None:
    broken = replace(two(TIMES), status="stopped at t = 8, short of t = 9: overflow")
    found = compare(broken, two(TIMES), tolerance=0.01, because="made up")
    assert found.verdict == "inconclusive"
    assert "stopped at t = 8" in found.reason


def test_the_problem_may_come_from_either() -> None:
    bare = replace(two(TIMES), problem=None)
    for a, b in ((bare, two(TIMES)), (two(TIMES), bare)):
        assert compare(a, b, tolerance=0.01, because="made up").verdict == "supported"
    with pytest.raises(InputError, match="none of the trajectories was made with one"):
        compare(bare, bare, tolerance=0.01, because="made up")


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"tolerance": 0.0}, InputError, "tolerance: got 0.0"),
        ({"tolerance": np.array([0.1, -1.0])}, InputError, "tolerance: got -1.0"),
        ({"tolerance": np.nan}, InputError, "tolerance: entry"),
        ({"tolerance": np.ones(3)}, ShapeError, "tolerance: got 3 numbers; 1, or 2"),
        ({"tolerance": 0.1, "because": " "}, InputError, "because: empty"),
        ({"tolerance": 0.1, "modes": 3}, InputError, "modes: got 3; a number from 1 to 2"),
        ({"tolerance": 0.1, "modes": 0}, InputError, "modes: got 0"),
    ],
)
def test_bad_arguments_are_refused(
    settings: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        compare(two(TIMES), two(TIMES), **({"because": "made up"} | settings))  # pyright: ignore[reportArgumentType]


def test_operators_of_other_shapes_are_refused() -> None:
    other = BilinearProblem(np.ones((3, 2)))
    with pytest.raises(ShapeError, match="2 and 2 rows"):
        compare(
            solve(other, aligned(other, 0.1), TIMES), two(TIMES), tolerance=0.1, because="made up"
        )


def test_a_comparison_shows_itself() -> None:
    found = compare(two(TIMES, shift=0.01), two(TIMES), tolerance=0.005, because="a < b & c")
    lines = str(found).splitlines()
    assert lines[0] == "unsupported: recorded against recorded, 2 modes, 81 times"
    assert lines[1].split()[:2] == ["mode", "distance"]
    assert len({len(line) for line in lines[1:4]}) == 1
    assert lines[4:] == ["tolerance: a < b & c", "mode 1, 2: further off than the tolerance"]
    page = found._repr_html_()
    assert page.count("<tr>") == 3
    assert "a &lt; b &amp; c" in page


# --- descent against the flow, and against the flow that the rate modifies -------------------


def descend(problem: BilinearProblem, start: Factors, rate: float, until: float) -> Trajectory:
    """Plain gradient descent."""
    u, v = start.U, start.V
    states = [(u, v)]
    for _ in range(round(until / rate)):
        error = u @ v.T - problem.target
        u, v = u - rate * error @ v, v - rate * error.T @ u
        states.append((u, v))
    return Trajectory.from_arrays(
        rate * np.arange(len(states)),
        np.array([state[0] for state in states]),
        np.array([state[1] for state in states]),
        problem=problem,
        source="descent",
    )


GENERATOR = np.random.default_rng(11)
REAL = BilinearProblem(
    (orthonormal(4, 3, GENERATOR) * np.array([1.2, 0.8, 0.5])) @ orthonormal(3, 3, GENERATOR).T
)
STARTS = {
    "aligned": aligned(REAL, 0.1, seed=0),
    "unequal": aligned(REAL, [0.1, 0.2, 0.1], [0.2, 0.1, 0.15], seed=0),
    "balanced": balanced(REAL, scale=0.1, width=3, seed=0),
}
RATE, UNTIL = 0.04, 12.0


def band_of(
    start: Factors,
    *,
    correction: float = 1.0,
    predicted: BilinearProblem = REAL,
    floor: float = 1e-7,
    measured: tuple[Trajectory, Trajectory] | None = None,
) -> StepSizeBand:
    """The step-size test of real descent, with the correction η/4 times the given number."""
    runs = measured or (descend(REAL, start, RATE, UNTIL), descend(REAL, start, RATE / 2, UNTIL))
    grid = runs[0].times
    return step_size_band(
        runs[0],
        integrate(predicted, start, grid, rtol=1e-10),
        integrate(predicted, start, grid, rtol=1e-10, rate=correction * RATE),
        runs[1],
        integrate(predicted, start, grid, rtol=1e-10, rate=correction * RATE / 2),
        floor=floor,
    )


@pytest.mark.parametrize("kind", STARTS)
def test_real_descent_is_in_the_step_size_band(kind: str) -> None:
    found = band_of(STARTS[kind])
    assert found.verdict == "supported", str(found)
    assert (np.abs(found.ratio - 1) <= BAND).all()
    for name, ratio in found.null_ratio.items():
        inside = (np.abs(ratio - 1) <= BAND) & (np.abs(found.null_fall[name] / 4 - 1) <= BAND)
        assert not inside.any()


@pytest.mark.parametrize("correction", [0.5, 2.0])
def test_another_correction_fails_ratio_and_order(correction: float) -> None:
    """D5: η/8 or η/2 in place of η/4 leave a gap of first order, which falls by 2 and not by 4."""
    found = band_of(STARTS["aligned"], correction=correction)
    assert found.verdict == "unsupported"
    np.testing.assert_allclose(found.ratio, 1 / correction, rtol=0.1)
    np.testing.assert_allclose(found.fall, 2.0, rtol=0.15)
    assert "does not fall" in found.reason
    assert "out of its band" in found.reason


def test_a_shuffled_target_fails() -> None:
    shuffled = BilinearProblem(REAL.target[[2, 0, 3, 1]])
    start = STARTS["balanced"]
    assert band_of(start, predicted=shuffled).verdict == "unsupported"
    run = descend(REAL, start, RATE, UNTIL)
    wrong = solve(shuffled, start, run.times)
    right = solve(REAL, start, run.times)
    assert compare(run, wrong, tolerance=0.1, because="a tenth").verdict == "unsupported"
    assert compare(run, right, tolerance=0.1, because="a tenth").verdict == "supported"


def test_a_rescaled_or_frozen_descent_fails_the_band() -> None:
    start = STARTS["aligned"]
    run, half = descend(REAL, start, RATE, UNTIL), descend(REAL, start, RATE / 2, UNTIL)
    for factor in (0.8, 1.25):
        off = [descend(REAL, start, factor * r, factor * UNTIL) for r in (RATE, RATE / 2)]
        off = [replace(a, times=b.times) for a, b in zip(off, (run, half), strict=True)]
        assert band_of(start, measured=(off[0], off[1])).verdict == "unsupported"
    still = [
        replace(a, U=np.broadcast_to(a.U[0], a.U.shape), V=np.broadcast_to(a.V[0], a.V.shape))
        for a in (run, half)
    ]
    assert band_of(start, measured=(still[0], still[1])).verdict == "unsupported"


def test_at_a_fixed_point_the_band_decides_nothing() -> None:
    found = band_of(aligned(REAL, np.sqrt(REAL.svd.s), seed=1))
    assert found.verdict == "inconclusive"
    assert set(found.outcomes) == {"inconclusive"}
    assert "mode 1, 2, 3: modified − flow is not resolved above the floor" in found.reason


def test_a_floor_above_what_is_left_decides_nothing() -> None:
    resolved = band_of(STARTS["aligned"])
    between = float(BAND * np.sqrt(resolved.effect.min() * resolved.gap_half.max()))
    found = band_of(STARTS["aligned"], floor=between)
    assert found.verdict == "inconclusive"
    assert "measured − modified is not resolved above the floor" in found.reason
    np.testing.assert_array_equal(found.ratio, resolved.ratio)


def test_the_numbers_of_the_band_are_what_they_are_said_to_be() -> None:
    """Made-up curves: m = f + 0.9 (g − f) at η, and gaps of 1 and 1/4.2 in the second mode."""
    shift = np.sin(TIMES)
    f = curve(TIMES, TIMES, TIMES**2)
    g = curve(TIMES, TIMES + shift, TIMES**2 + shift)
    m = curve(TIMES, TIMES + 0.9 * shift, TIMES**2 + shift + 0.1 * np.cos(3 * TIMES))
    g_half = curve(TIMES, TIMES + shift / 2, TIMES**2 + shift / 2)
    gap_half = 0.1 * np.cos(3 * TIMES) / 4.2
    m_half = curve(TIMES, TIMES + 0.475 * shift, TIMES**2 + shift / 2 + gap_half)
    found = step_size_band(m, f, g, m_half, g_half)
    np.testing.assert_allclose(found.effect_fall, 2.0)
    np.testing.assert_allclose(found.ratio[0], 0.9)
    np.testing.assert_allclose(found.fall, [4.0, 4.2])
    np.testing.assert_allclose(found.effect, np.sqrt(np.mean(shift**2)))
    np.testing.assert_allclose(found.gap[0], 0.1 * found.effect[0])
    np.testing.assert_allclose(found.gap_half[0], 0.025 * found.effect[0])
    assert found.verdict == "supported"


def test_the_nulls_of_the_band_are_what_they_are_said_to_be() -> None:
    """Each null is taken at η and at η/2; a fine grid makes interpolation exact enough."""
    times = np.linspace(0, 8, 1601)

    def m(t: Array) -> Array:
        return sigmoid(t, 1.0, 3.0)

    def m_half(t: Array) -> Array:
        return sigmoid(t, 1.0, 3.5)

    f, g, g_half = times / 8, np.sin(times), np.cos(times)
    runs = (curve(times, c, c) for c in (m(times), f, g, m_half(times), g_half))
    found = step_size_band(*runs)
    clocks = {"frozen": 0 * times, "slowed": 0.8 * times, "hurried": np.minimum(1.25 * times, 8)}
    for name, clock in clocks.items():
        ratio = np.sum((m(clock) - f) * (g - f)) / np.sum((g - f) ** 2)
        fall = np.linalg.norm(m(clock) - g) / np.linalg.norm(m_half(clock) - g_half)
        np.testing.assert_allclose(found.null_ratio[name], ratio, rtol=1e-5)
        np.testing.assert_allclose(found.null_fall[name], fall, rtol=1e-5)


def test_a_band_that_a_null_meets_decides_nothing() -> None:
    """Nothing moves, up to the gap: at η descent is at 0, at η/2 at a half, the flow is at 1."""
    still, gap = np.zeros(81), 0.01 * np.cos(TIMES)
    f, g, g_half = (curve(TIMES, c, c) for c in (still + 1, gap, 0.5 + gap / 4))
    m, m_half = curve(TIMES, still, still), curve(TIMES, still + 0.5, still + 0.5)
    found = step_size_band(m, f, g, m_half, g_half)
    np.testing.assert_allclose(found.ratio, 1.0, atol=0.01)
    np.testing.assert_allclose(found.fall, 4.0)
    assert found.verdict == "inconclusive"
    assert "mode 1, 2: the frozen null passes too" in found.reason


def test_a_wrong_flow_is_noticed_by_the_effect() -> None:
    """Descent and its modified flow agree, but the flow is that of another start."""
    start, other = (aligned(REAL, np.sqrt(c)) for c in (0.02, 0.03))
    run, half = descend(REAL, start, RATE, UNTIL), descend(REAL, start, RATE / 2, UNTIL)
    modified = integrate(REAL, start, run.times, rate=RATE)
    modified_half = integrate(REAL, start, run.times, rate=RATE / 2)
    right = step_size_band(run, integrate(REAL, start, run.times), modified, half, modified_half)
    wrong = step_size_band(run, integrate(REAL, other, run.times), modified, half, modified_half)
    assert right.verdict == "supported"
    assert wrong.verdict == "unsupported"
    assert "modified − flow does not fall as η" in wrong.reason


def test_rates_that_are_not_halved_are_refused() -> None:
    start = STARTS["aligned"]
    run = descend(REAL, start, RATE, 1.0)
    flow = integrate(REAL, start, run.times)
    modified = integrate(REAL, start, run.times, rate=RATE)
    with pytest.raises(InputError, match=r"modified_half: its rate is 0\.04 beside 0\.04"):
        step_size_band(run, flow, modified, run, modified)
    coarse = descend(REAL, start, 2 * RATE, 1.0)
    with pytest.raises(InputError, match="measured_half: has no state at"):
        step_size_band(run, flow, flow, coarse, flow)
    with pytest.raises(InputError, match="floor: got -1"):
        step_size_band(run, flow, flow, run, flow, floor=-1.0)


def test_a_band_shows_itself() -> None:
    found = band_of(STARTS["aligned"])
    lines = str(found).splitlines()
    assert lines[0] == "supported: step-size band, 3 modes, 301 times"
    assert len({len(line) for line in lines[1:5]}) == 1
    assert lines[5].startswith("bands: ratio 1 ± 0.2, fall 4 ± 20%, effect 2 ± 20%: ")
    assert found._repr_html_().count("<tr>") == 4


def test_what_is_no_trajectory_is_named() -> None:
    run = Trajectory.from_arrays([0.0, 1.0], np.ones((2, 2, 1)), np.ones((2, 2, 1)))
    wrong: Any = np.ones((2, 2))
    with pytest.raises(InputError, match=r"a: got an array of shape \(2, 2\); a Trajectory"):
        compare(wrong, run, tolerance=1.0, because="a test")
    with pytest.raises(InputError, match=r"flow: got an array"):
        step_size_band(run, wrong, run, run, run)

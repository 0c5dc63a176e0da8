"""Many starts at once, against SciPy one by one."""

from __future__ import annotations

import numpy as np
import pytest
from flow_models import MODELS, Model

from nonmixing.dynamics.batch import march
from nonmixing.dynamics.integrate import Method, integrate
from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError, NonmixingError
from nonmixing.problem import Array, BilinearProblem, aligned, balanced, gaussian

TIMES = np.linspace(0, 6, 13)


@pytest.fixture
def problem() -> BilinearProblem:
    return BilinearProblem(np.random.default_rng(3).standard_normal((4, 3)) / 2)


def assert_same_run(one: Trajectory, other: Trajectory) -> None:
    """The same steps as SciPy's, up to rounding.

    Rounding moves the estimated errors, and with them the steps, by a small part, and the states by
    that part of their tolerance: they differ by less than one step is allowed to be off, 1e-9.
    """
    assert one.stats["steps"] == other.stats["steps"]
    assert one.status == other.status
    np.testing.assert_array_equal(one.times, other.times)
    asked = np.linspace(0, one.times[-1], 40)
    for a, b in ((one, other), (one.resampled(asked), other.resampled(asked))):
        for name in ("U", "V"):
            expected = getattr(b, name)
            allowed = 1e-9 * np.abs(expected).max()
            np.testing.assert_allclose(getattr(a, name), expected, rtol=0, atol=allowed)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_each_start_takes_the_steps_that_scipy_takes(model: Model) -> None:
    rng = np.random.default_rng(0)
    posed = model.problem(rng, 4, 3, 2)
    starts = [model.state(rng, posed, 2) for _ in range(4)]
    for found, start in zip(integrate(posed, starts, TIMES), starts, strict=True):
        assert_same_run(found, integrate(posed, start, TIMES))


def test_starts_that_need_different_steps_do_not_share_them(problem: BilinearProblem) -> None:
    starts = [gaussian(problem, scale=10.0**e, width=2, seed=0) for e in (-6, -2, 0, 1)]
    runs = integrate(problem, starts, TIMES)
    assert len({run.stats["steps"] for run in runs}) > 2
    for found, start in zip(runs, starts, strict=True):
        assert_same_run(found, integrate(problem, start, TIMES))


def test_one_state_of_many_would_hide_its_error() -> None:
    """The mean over a stack, which SciPy takes, is what lets a start's error pass unseen.

    One start moves, 399 rest at 1 with a tolerance of their own. Alone the moving one is held to
    rtol; in SciPy's norm over all its error counts 1/400 in the square.
    """
    from scipy.integrate import solve_ivp

    states = np.ones((400, 1))
    states[0] = 1e-3

    def velocity(rows: Array) -> Array:  # c' = 2 c (1 − c), the law of one mode
        return 2 * rows * (1 - rows)

    exact = 1 / (1 + (1e3 - 1) * np.exp(-2 * 4.0))
    own = march(velocity, states, 4.0, rtol=1e-6, atol=1e-12, most=10_000)
    alone = solve_ivp(
        lambda _, y: velocity(y), (0, 4), [1e-3], method="DOP853", rtol=1e-6, atol=1e-12
    )
    stacked = solve_ivp(
        lambda _, y: velocity(y), (0, 4), states[:, 0], method="DOP853", rtol=1e-6, atol=1e-12
    )
    errors = [
        abs(value - exact)
        for value in (
            own[0].interpolant()(np.array([4.0]))[0, 0],
            alone.y[0, -1],
            stacked.y[0, -1],
        )
    ]
    assert errors[0] == pytest.approx(errors[1], rel=1e-4)
    assert errors[2] > 3 * errors[0]


def test_widths_may_differ_and_order_is_kept(problem: BilinearProblem) -> None:
    starts = [gaussian(problem, scale=0.3, width=w, seed=w) for w in (2, 1, 2, 3)]
    runs = integrate(problem, starts, TIMES)
    for found, start in zip(runs, starts, strict=True):
        np.testing.assert_allclose(found.start.U, start.U, atol=1e-14)


def test_reduced_starts_go_together_too() -> None:
    rng = np.random.default_rng(1)
    P, R = (np.linalg.qr(rng.standard_normal((size, 2)))[0] for size in (20, 15))
    posed = BilinearProblem((P, [1.0, 0.5], R))
    starts = [balanced(posed, scale=0.1, width=2, seed=seed) for seed in range(3)]
    for found, start in zip(integrate(posed, starts, TIMES), starts, strict=True):
        assert found.stats["space"] == "4 x 4"
        assert_same_run(found, integrate(posed, start, TIMES))


@pytest.mark.parametrize("method", ["LSODA", "RK45"])
def test_other_methods_run_one_by_one(problem: BilinearProblem, method: Method) -> None:
    starts = [gaussian(problem, scale=0.3, width=2, seed=seed) for seed in range(2)]
    runs = integrate(problem, starts, TIMES, method=method)
    for found, start in zip(runs, starts, strict=True):
        alone = integrate(problem, start, TIMES, method=method)
        np.testing.assert_array_equal(found.U, alone.U)


def test_what_stops_one_start_does_not_stop_the_others() -> None:
    stiff = BilinearProblem(np.diag([1e3, 1.0]))
    starts = [balanced(stiff, scale=0.1, width=2, seed=0), aligned(stiff, 0.0, width=2)]
    far, still = integrate(stiff, starts, TIMES, max_evaluations=1000)
    assert far.status.startswith("stopped at t = ")
    assert "1000 evaluations are spent" in far.status
    assert far.times[-1] <= float(far.status.split()[4].rstrip(","))
    assert still.status == "ok"
    alone = integrate(stiff, starts[0], TIMES, max_evaluations=1000)
    assert len(alone) == len(far)


def test_overflow_and_explosion_are_statuses_of_their_own(problem: BilinearProblem) -> None:
    starts = [aligned(problem, 1e150), aligned(problem, 0.5)]
    over, fine = integrate(problem, starts, [0.0, 1.0])
    assert over.status == "stopped at t = 0, short of t = 1: the velocity overflows"
    assert fine.status == "ok"
    with pytest.raises(NonmixingError, match="the first of them was not reached"):
        integrate(problem, starts, [1.0])

    def explosion(rows: Array) -> Array:  # x' = x², infinite at 1/x₀
        return rows**2

    starts_ = np.array([[1.0], [0.25]])
    with np.errstate(all="ignore"):
        early, late = march(explosion, starts_, 2.0, rtol=1e-9, atol=1e-12, most=100_000)
    assert early.fault == "Required step size is less than spacing between numbers"
    assert early.time == pytest.approx(1, abs=1e-6)
    assert (late.fault, late.time) == ("", 2.0)
    np.testing.assert_allclose(late.interpolant()(np.array([2.0])), [[0.5]], rtol=1e-8)


def test_the_start_alone_is_enough(problem: BilinearProblem) -> None:
    starts = [gaussian(problem, scale=0.4, width=2, seed=seed) for seed in range(2)]
    for found, start in zip(integrate(problem, starts, [0.0]), starts, strict=True):
        np.testing.assert_array_equal(found.U[0], start.U)
    with pytest.raises(InputError, match=r"^start: got an empty sequence"):
        integrate(problem, [], [0.0])

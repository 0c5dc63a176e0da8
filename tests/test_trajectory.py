"""What is read off a trajectory, against the definitions."""

from __future__ import annotations

import numpy as np
import pytest

from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError, ShapeError
from nonmixing.problem import BilinearProblem, Factors, aligned

GENERATOR = np.random.default_rng(0)
PROBLEM = BilinearProblem(GENERATOR.standard_normal((4, 3)))
U, V = GENERATOR.standard_normal((5, 4, 2)), GENERATOR.standard_normal((5, 3, 2))
TIMES = np.array([0.0, 0.5, 1.0, 3.0, 3.5])


@pytest.fixture
def run() -> Trajectory:
    return Trajectory.from_arrays(TIMES, U, V, problem=PROBLEM)


def test_states_count_from_either_end(run: Trajectory) -> None:
    assert len(run) == 5
    np.testing.assert_array_equal(run.start.U, U[0])
    np.testing.assert_array_equal(run.factors(3).V, V[3])
    np.testing.assert_array_equal(run.operator(-1), U[4] @ V[4].T)
    np.testing.assert_array_equal(run.factors(-5).U, U[0])
    for k in (5, -6):
        with pytest.raises(IndexError):
            run.operator(k)
        with pytest.raises(IndexError):
            run.factors(k)


def test_modes_mixing_loss_and_imbalance_are_their_definitions(run: Trajectory) -> None:
    svd = PROBLEM.svd
    for k in range(5):
        q = U[k] @ V[k].T
        crossed = svd.P.T @ q @ svd.R
        np.testing.assert_allclose(run.modes()[k], np.diag(crossed), rtol=1e-12)
        off = crossed - np.diag(np.diag(crossed))
        np.testing.assert_allclose(run.mixing()[k], np.abs(off).max(), rtol=1e-12)
        np.testing.assert_allclose(run.loss()[k], np.sum((q - PROBLEM.target) ** 2) / 2)
        gap = np.linalg.norm(U[k].T @ U[k] - V[k].T @ V[k])
        np.testing.assert_allclose(run.imbalance()[k], gap, rtol=1e-12)
    assert run.modes().shape == (5, 3)


def test_one_mode_has_nothing_to_mix_with() -> None:
    single = BilinearProblem(np.array([[2.0], [1.0]]))
    start = aligned(single, 0.5)
    run = Trajectory.from_arrays([0.0], start.U[None], start.V[None], problem=single)
    np.testing.assert_array_equal(run.mixing(), [0.0])
    np.testing.assert_allclose(run.modes(), [[0.25]])


def test_a_given_problem_goes_before_its_own(run: Trajectory) -> None:
    other = BilinearProblem(GENERATOR.standard_normal((4, 3)))
    bare = Trajectory.from_arrays(TIMES, U, V)
    for name in ("modes", "mixing", "loss"):
        np.testing.assert_array_equal(getattr(run, name)(other), getattr(bare, name)(other))
        assert np.abs(getattr(run, name)(other) - getattr(run, name)()).max() > 1e-3
        with pytest.raises(InputError, match=r"problem: this trajectory \(recorded\) .*problem="):
            getattr(bare, name)()
        with pytest.raises(ShapeError, match="4 and 3 rows; 2 and 2 are expected"):
            getattr(run, name)(BilinearProblem(np.eye(2)))


def test_what_is_kept_cannot_be_changed(run: Trajectory) -> None:
    times, stats = TIMES.copy(), {"steps": 3}
    kept = Trajectory.from_arrays(times, U, V, source="mine", status="stopped", stats=stats)
    times[0], stats["steps"] = -1, 4
    assert kept.times[0] == 0
    assert kept.stats["steps"] == 3
    assert (kept.source, kept.status) == ("mine", "stopped")
    assert (run.source, run.status, dict(run.stats)) == ("recorded", "ok", {})
    with pytest.raises(ValueError, match="read-only"):
        kept.U[0] = 0
    with pytest.raises(TypeError):
        kept.stats["steps"] = 5  # pyright: ignore[reportIndexIssue]


def test_lists_of_states_are_welcome() -> None:
    run = Trajectory.from_arrays([0, 1], [[[1], [2]], [[3], [4]]], [[[1]], [[2]]])
    np.testing.assert_array_equal(run.operator(1), [[6.0], [8.0]])


@pytest.mark.parametrize(
    ("times", "u", "v", "error", "words"),
    [
        ([0.0, 1.0, 1.0, 2.0, 3.0], U, V, InputError, r"times: 1 is followed by 1 \(entry 2\)"),
        ([0.0, 1.0, np.nan, 2.0, 3.0], U, V, InputError, r"times: entry \(2,\) is nan"),
        (TIMES[:4], U, V, ShapeError, "got 4, 5 and 5 states"),
        (TIMES, U[:, 0], V, ShapeError, r"U: got shape \(5, 2\), 2 axes; 3 are expected"),
        (TIMES, U, V[:, :, :1], ShapeError, "the same number of columns"),
        (TIMES, V, U, ShapeError, "3 and 4 rows; 4 and 3 are expected"),
        (
            TIMES,
            np.where(U == U[3, 1, 1], np.inf, U),
            V,
            InputError,
            r"U: entry \(3, 1, 1\) is inf",
        ),
        ([], U[:0], V[:0], InputError, "times: empty"),
    ],
)
def test_bad_arrays_are_refused(
    times: object, u: object, v: object, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        Trajectory.from_arrays(times, u, v, problem=PROBLEM)  # pyright: ignore[reportArgumentType]
    assert "\n" not in str(caught.value)


def test_factors_know_their_operator_and_imbalance() -> None:
    state = Factors(U[0], V[0])
    np.testing.assert_array_equal(state.operator, U[0] @ V[0].T)
    np.testing.assert_array_equal(state.imbalance, U[0].T @ U[0] - V[0].T @ V[0])
    assert state.width == 2

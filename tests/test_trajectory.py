"""What is read off a trajectory, against the definitions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nonmixing.dynamics.integrate import integrate
from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError, MissingExtra, ShapeError
from nonmixing.parameterisation import layers
from nonmixing.problem import Array, BilinearProblem, Factors, aligned, gaussian

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


def bases(rng: np.random.Generator, m: int, n: int, p: int, q: int) -> tuple[Array, Array]:
    left, _ = np.linalg.qr(rng.standard_normal((m, p)))
    right, _ = np.linalg.qr(rng.standard_normal((n, q)))
    return left, right


@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize("holds_target", [False, True])
def test_coordinates_are_read_like_the_factors_they_stand_for(
    factored: bool, holds_target: bool
) -> None:
    """Also where the bases do not hold the target, and where the target is in factors."""
    rng = np.random.default_rng(1)
    left, right = bases(rng, 9, 8, 5, 4)
    core = rng.standard_normal((5, 4))
    target = left @ core @ right.T if holds_target else rng.standard_normal((9, 8))
    problem = BilinearProblem(target)
    if factored:
        svd = problem.svd
        rank = svd.rank
        problem = BilinearProblem((svd.P[:, :rank], svd.s[:rank], svd.R[:, :rank]))
    U, V = rng.standard_normal((5, 5, 2)), rng.standard_normal((5, 4, 2))
    small = Trajectory.from_arrays(TIMES, U, V, problem=problem, left=left, right=right)
    whole = Trajectory.from_arrays(TIMES, left @ U, right @ V, problem=problem)
    np.testing.assert_allclose(small.factors(-1).U, whole.factors(-1).U, atol=1e-14)
    np.testing.assert_array_equal(small.coordinates(2).V, V[2])
    np.testing.assert_allclose(small.operator(1), whole.operator(1), atol=1e-13)
    for name in ("modes", "mixing", "loss", "imbalance"):
        np.testing.assert_allclose(getattr(small, name)(), getattr(whole, name)(), atol=1e-12)
    by_hand = [np.sum((whole.operator(k) - problem.target) ** 2) / 2 for k in range(5)]
    np.testing.assert_allclose(small.loss(), by_hand, rtol=1e-12)


def test_relative_mixing_is_relative_to_the_smaller_mode(run: Trajectory) -> None:
    for k in range(5):
        crossed = PROBLEM.svd.P.T @ U[k] @ V[k].T @ PROBLEM.svd.R
        sizes = np.abs(np.diag(crossed))
        ratio = np.abs(crossed) / np.minimum.outer(sizes, sizes)
        np.fill_diagonal(ratio, 0)
        np.testing.assert_allclose(run.mixing(relative=True)[k], ratio.max(), rtol=1e-10)
    still = Trajectory.from_arrays([0.0], np.zeros((1, 4, 1)), np.zeros((1, 3, 1)), problem=PROBLEM)
    np.testing.assert_array_equal(still.mixing(relative=True), [0.0])


def test_modes_of_equal_singular_values_do_not_depend_on_the_basis() -> None:
    """One target, two choices of its singular vectors; modes one by one would differ."""
    rng = np.random.default_rng(2)
    P, R = bases(rng, 7, 6, 5, 5)
    s = np.array([2.0, 1.0, 1.0, 0.0, 0.0])
    turn, other = bases(rng, 2, 2, 2, 2)
    turned_p, turned_r = P.copy(), R.copy()
    turned_p[:, 1:3], turned_r[:, 1:3] = P[:, 1:3] @ turn, R[:, 1:3] @ turn
    turned_p[:, 3:], turned_r[:, 3:] = P[:, 3:] @ turn, R[:, 3:] @ other
    one = Trajectory.from_arrays(
        TIMES,
        rng.standard_normal((5, 7, 2)),
        rng.standard_normal((5, 6, 2)),
        problem=BilinearProblem((P, s, R)),
    )
    two = BilinearProblem((turned_p, s, turned_r))
    assert one.subspaces() == ((0,), (1, 2), (3, 4))
    for relative in (False, True):
        found, again = one.mixing(relative=relative), one.mixing(two, relative=relative)
        np.testing.assert_allclose(found, again, rtol=1e-10)
    np.testing.assert_allclose(one.modes(), one.modes(two), rtol=1e-10, atol=1e-12)
    C = np.array([P.T @ one.operator(k) @ R for k in range(5)])
    moved = np.array([turned_p.T @ one.operator(k) @ turned_r for k in range(5)])
    single = np.diagonal(C, axis1=1, axis2=2) - np.diagonal(moved, axis1=1, axis2=2)
    assert np.abs(single[:, 1:]).max() > 0.1
    # By their definitions.
    block = C[:, 1:3, 1:3]
    expected = np.linalg.eigvalsh((block + np.swapaxes(block, 1, 2)) / 2)[:, ::-1]
    np.testing.assert_allclose(one.modes()[:, 1:3], expected, rtol=1e-12)
    expected = np.linalg.svd(C[:, 3:, 3:], compute_uv=False)
    np.testing.assert_allclose(one.modes()[:, 3:], expected, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(one.modes()[:, 0], C[:, 0, 0], rtol=1e-12)
    worst = np.max(
        [
            [np.linalg.norm(C[k, a, b], 2) for a in GROUPS for b in GROUPS if a is not b]
            + [abs(C[k, 1, 2] - C[k, 2, 1]) / 2]
            for k in range(5)
        ],
        axis=1,
    )
    np.testing.assert_allclose(one.mixing(), worst, rtol=1e-12)


GROUPS = (slice(0, 1), slice(1, 3), slice(3, 5))


def test_an_aligned_run_of_equal_modes_mixes_nothing() -> None:
    problem = BilinearProblem(np.eye(3))
    rng = np.random.default_rng(3)
    turn, _ = bases(rng, 3, 3, 3, 3)
    state = turn * [0.5, 0.3, 0.1]
    run = Trajectory.from_arrays([0.0], state[None], turn[None], problem=problem)
    np.testing.assert_allclose(run.modes(), [[0.5, 0.3, 0.1]], rtol=1e-12)
    assert run.mixing()[0] < 1e-15
    assert np.abs(run.operator(0) - np.diag(np.diag(run.operator(0)))).max() > 0.01


def test_states_between_the_times() -> None:
    problem = BilinearProblem(GENERATOR.standard_normal((4, 3)))
    start = gaussian(problem, scale=0.3, width=2, seed=0)
    run = integrate(problem, start, [0.0, 1.0, 4.0])
    fine = integrate(problem, start, [0.0, 0.7, 3.3])
    np.testing.assert_allclose(run.at(3.3).operator, fine.operator(2), atol=1e-7)
    again = run.resampled([0.7, 3.3])
    np.testing.assert_allclose(again.U, fine.U[1:], atol=1e-7)
    np.testing.assert_allclose(again.modes(), fine.modes()[1:], atol=1e-7)
    assert np.abs(run.at(0.7).operator - run.operator(0)).max() > 0.01
    for time in (-0.1, 4.1):
        with pytest.raises(InputError, match="is outside what was integrated, 0 to 4"):
            run.at(time)


def test_a_recorded_run_knows_its_own_times_only(run: Trajectory) -> None:
    np.testing.assert_array_equal(run.at(3.0).U, U[3])
    np.testing.assert_array_equal(run.resampled([0.5, 3.5]).V, V[[1, 4]])
    for time in (0.7, 9.0, -1.0):
        with pytest.raises(InputError, match="nothing is known between them"):
            run.at(time)


def layered_run() -> Trajectory:
    rng = np.random.default_rng(4)
    P, R = bases(rng, 9, 8, 2, 2)
    problem = BilinearProblem((P, [1.0, 0.5], R), parameterisation=layers(3))
    start = {
        "W1": rng.standard_normal((2, 8)) / 3,
        "W2": rng.standard_normal((2, 2)),
        "W3": rng.standard_normal((9, 2)) / 3,
    }
    return integrate(problem, start, [0.0, 1.0])


def test_arrays_and_json_bring_a_run_back(run: Trajectory) -> None:
    reduced = layered_run()
    assert reduced.left is not None
    for kept in (run, reduced):
        back = Trajectory.from_json(kept.to_json(), kept.problem)
        for name, value in kept.to_arrays().items():
            np.testing.assert_array_equal(back.to_arrays()[name], value)
        assert (back.source, back.status) == (kept.source, kept.status)
        assert dict(back.stats) == dict(kept.stats)
        np.testing.assert_array_equal(back.loss(), kept.loss())
    numbers: dict[str, Any] = dict(run.to_arrays())
    arrays = Trajectory.from_arrays(**numbers, problem=PROBLEM)
    np.testing.assert_array_equal(arrays.modes(), run.modes())
    for text in ("", "[]", "{}", '{"times": 3}'):
        with pytest.raises(InputError) as caught:
            Trajectory.from_json(text)
        assert "\n" not in str(caught.value)


def test_variables_of_a_user_make_a_trajectory() -> None:
    reduced = layered_run()
    assert reduced.problem is not None
    states = [reduced.state(k) for k in range(2)]
    whole = Trajectory.from_variables(
        reduced.times,
        {name: [s[name] for s in states] for name in ("W1", "W2", "W3")},  # pyright: ignore[reportIndexIssue]
        reduced.problem,
    )
    for name in ("modes", "loss", "imbalance"):
        np.testing.assert_allclose(
            getattr(whole, name)(), getattr(reduced, name)(), rtol=1e-9, atol=1e-12
        )
    with pytest.raises(InputError, match=r"^variables: got W1; W1, W2, W3 are expected"):
        Trajectory.from_variables([0.0], {"W1": np.ones((1, 2, 8))}, reduced.problem)
    with pytest.raises(InputError, match=r"^problem: its variables are W1, W2, W3 .* U and V"):
        Trajectory.from_arrays([0.0], whole.U[:1], whole.V[:1], problem=reduced.problem)
    bare = Trajectory.from_arrays([0.0], whole.U[:1], whole.V[:1])
    with pytest.raises(InputError, match="which this trajectory"):
        bare.loss(BilinearProblem(reduced.problem.target, parameterisation=layers(3)))


def test_xarray_gets_everything_by_name() -> None:
    pytest.importorskip("xarray")
    run = layered_run()
    found = run.to_xarray()
    assert set(found.data_vars) >= {"U", "V", "modes", "mixing", "loss", "variable_W2"}
    np.testing.assert_array_equal(found["time"], run.times)
    np.testing.assert_array_equal(found["modes"], run.modes())
    assert found.attrs["status"] == "ok"


def test_a_missing_xarray_is_named(run: Trajectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(MissingExtra, match=r"^to_xarray: needs xarray.*nonmixing\[data\]"):
        run.to_xarray()


def test_the_last_time_may_be_the_limit() -> None:
    run = Trajectory.from_arrays([0.0, 1.0, np.inf], U[:3], V[:3], problem=PROBLEM)
    assert run.times[-1] == np.inf
    np.testing.assert_array_equal(Trajectory.from_json(run.to_json(), PROBLEM).loss(), run.loss())
    for times in ([0.0, np.inf, 1.0], [-np.inf, 0.0, 1.0], [0.0, np.inf, np.inf]):
        with pytest.raises(InputError, match=r"^times: entry"):
            Trajectory.from_arrays(times, U[:3], V[:3])


@pytest.mark.parametrize(
    ("left", "error", "words"),
    [
        (np.ones((4, 2)), ShapeError, r"^left: got shape \(4, 2\); 4 columns are expected"),
        (np.ones((6, 4)), InputError, "^left: its columns are not orthonormal"),
        (np.eye(6)[:, :4] * np.nan, InputError, "^left: entry"),
        (np.eye(6)[:, :4] * 1j, InputError, "^left: real numbers are expected"),
    ],
)
def test_bad_bases_are_refused(left: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        Trajectory.from_arrays(TIMES, U, V, left=left)  # pyright: ignore[reportArgumentType]
    assert "\n" not in str(caught.value)


def test_factors_know_their_operator_and_imbalance() -> None:
    state = Factors(U[0], V[0])
    np.testing.assert_array_equal(state.operator, U[0] @ V[0].T)
    np.testing.assert_array_equal(state.imbalance, U[0].T @ U[0] - V[0].T @ V[0])
    assert state.width == 2


def test_a_state_that_is_not_there_is_refused_with_their_number() -> None:
    run = Trajectory.from_arrays([0.0, 1.0], np.ones((2, 3, 2)), np.ones((2, 4, 2)))
    for ask in (run.operator, run.factors, run.coordinates, run.state):
        for k in (2, 99, -3):
            with pytest.raises(
                IndexError, match=f"k: got {k}; this trajectory has 2 states, 0 to 1"
            ):
                ask(k)
        with pytest.raises(InputError, match=r"k: got 0.5; a whole number is expected"):
            ask(0.5)  # pyright: ignore[reportArgumentType]
        ask(-1)
        ask(int(np.int64(1)))


def test_what_is_no_problem_and_no_time_is_refused() -> None:
    problem = BilinearProblem(np.ones((3, 4)))
    run = Trajectory.from_arrays([0.0, 1.0], np.ones((2, 3, 2)), np.ones((2, 4, 2)))
    array: Any = problem.target
    asked: list[Callable[[], object]] = [
        lambda: run.modes(array),
        lambda: run.mixing(array),
        lambda: run.loss(array),
        lambda: Trajectory.from_arrays(run.times, run.U, run.V, problem=array),
        lambda: Trajectory.from_variables(run.times, {"U": run.U, "V": run.V}, array),
    ]
    for ask in asked:
        with pytest.raises(InputError, match=r"^problem: got an array of shape \(3, 4\)") as caught:
            ask()
        assert "\n" not in str(caught.value)
    for time in ("1", True, [0.0], np.inf):
        with pytest.raises(InputError, match=r"^time: got .*; a finite number is expected"):
            run.at(time)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"^times: real numbers are expected"):
        Trajectory.from_arrays([[0.0], [1.0, 2.0]], run.U, run.V)  # pyright: ignore

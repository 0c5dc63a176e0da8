"""The reduction to the space of the flow: what it is, what it costs, where it is refused."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from flow_models import MODELS, Model

from nonmixing import parameterisation as models
from nonmixing.dynamics.equations import equations
from nonmixing.dynamics.integrate import integrate
from nonmixing.dynamics.reduce import lifted, reduced, reductions, restricted
from nonmixing.errors import InputError, ShapeError
from nonmixing.problem import BilinearProblem, Factors, aligned, balanced, gaussian

every_model = pytest.mark.parametrize(
    "model", [model for model in MODELS if model.name != "second moments"], ids=lambda m: m.name
)


def low_rank(
    m: int = 30, n: int = 20, k: int = 3, *, factored: bool = True, seed: int = 0
) -> BilinearProblem:
    rng = np.random.default_rng(seed)
    P = np.linalg.qr(rng.standard_normal((m, k)))[0]
    R = np.linalg.qr(rng.standard_normal((n, k)))[0]
    s = np.linspace(1, 0.4, k)
    return BilinearProblem((P, s, R) if factored else (P * s) @ R.T)


@pytest.mark.parametrize("factored", [True, False])
def test_the_small_problem_is_the_problem_in_orthonormal_bases(factored: bool) -> None:
    problem = low_rank(factored=factored)
    start = gaussian(problem, scale=0.3, width=2, seed=1)
    small = reduced(problem, start)
    assert small.left is not None
    assert small.right is not None
    assert isinstance(small.start, Factors)
    assert small.problem.shape == (5, 5)
    np.testing.assert_allclose(small.left.T @ small.left, np.eye(5), atol=1e-14)
    np.testing.assert_allclose(small.left @ small.start.U, start.U, atol=1e-14)
    np.testing.assert_allclose(small.right @ small.start.V, start.V, atol=1e-14)
    lifted_target = small.left @ small.problem.target @ small.right.T
    np.testing.assert_allclose(lifted_target, problem.target, atol=1e-14)
    np.testing.assert_allclose(small.problem.svd.s[:3], [1, 0.7, 0.4], rtol=1e-13)


@every_model
@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_the_velocity_of_the_small_problem_is_the_velocity(model: Model, rate: float) -> None:
    """At one instant, to rounding; also for the flow of descent, with a gradient in its loss."""
    rng = np.random.default_rng(2)
    problem = model.problem(rng, 16, 14, 2, rank=3, decay=0.1)
    state = model.state(rng, problem, 2)
    small = reduced(problem, state)
    assert small.left is not None
    inner = small.problem.variables(small.start)
    moved = dict(
        zip(inner, equations(small.problem, rate).velocity(tuple(inner.values())), strict=True)
    )
    back = lifted(problem.parameterisation, moved, small.left, small.right)
    outer = problem.variables(state)
    expected = equations(problem, rate).velocity(tuple(outer.values()))
    for name, value in zip(outer, expected, strict=True):
        np.testing.assert_allclose(back[name], value, atol=1e-12)
    half = restricted(problem, small.left[:, 1:], small.right)
    assert half is None or model.square


def test_a_side_that_gains_nothing_is_left_alone() -> None:
    rng = np.random.default_rng(3)
    wide = BilinearProblem(rng.standard_normal((3, 20)))
    small = reduced(wide, gaussian(wide, scale=0.3, width=2, seed=0))
    assert small.left is None
    assert small.right is not None
    assert small.problem.shape == (3, 5)
    square = BilinearProblem(rng.standard_normal((4, 4)))
    start = gaussian(square, scale=0.3, width=2, seed=0)
    same = reduced(square, start)
    assert same.problem is square
    assert same.start is start
    assert (same.left, same.right) == (None, None)


def test_starts_inside_the_target_space_and_targets_of_zero() -> None:
    """Neither a start aligned with the target nor no target at all leaves the QR a full rank."""
    problem = low_rank()
    for posed, start in (
        (problem, aligned(problem, 0.2, seed=0)),
        (BilinearProblem(np.zeros((30, 20))), gaussian(problem, scale=0.5, width=2, seed=0)),
    ):
        small, whole = (integrate(posed, start, [0.0, 2.0], reduce=flag) for flag in (True, False))
        assert small.left is not None
        np.testing.assert_allclose(small.operator(-1), whole.operator(-1), atol=1e-7)
    assert integrate(problem, aligned(problem, 0.2, seed=0), [0.0, 2.0]).mixing().max() < 1e-12


def test_starts_of_one_width_share_the_small_problem() -> None:
    problem = low_rank()
    starts = [gaussian(problem, scale=0.3, width=w, seed=w) for w in (2, 2, 1)]
    first, second, narrow = reductions(problem, starts)
    assert first.problem is second.problem
    assert narrow.problem.shape == (4, 4)
    assert first.left is not None
    assert second.left is not None
    np.testing.assert_array_equal(first.left[:, :3], second.left[:, :3])


def test_nothing_of_the_target_size_is_formed() -> None:
    """100,000 x 80,000 would be 64 GB; the run, read off in every way, stays below 0.3 GB."""
    m, n, k = 100_000, 80_000, 4
    rng = np.random.default_rng(4)
    P = np.linalg.qr(rng.standard_normal((m, k)))[0]
    R = np.linalg.qr(rng.standard_normal((n, k)))[0]
    tracemalloc.start()
    problem = BilinearProblem((P, [1.0, 0.8, 0.8, 0.5], R))
    run = integrate(problem, balanced(problem, scale=1e-3, width=3, seed=0), np.linspace(0, 9, 30))
    assert run.status == "ok"
    assert run.modes().shape == (30, 4)
    for values in (run.mixing(), run.mixing(relative=True), run.loss(), run.imbalance()):
        assert np.isfinite(values).all()
    assert run.at(4.5).U.shape == (m, 3)
    assert tracemalloc.get_traced_memory()[1] < 3e8
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["adam", "sign", "clip-value", "rmsprop", "adamw", "sgd"])
def test_optimisers_that_leave_the_space_are_refused(name: str) -> None:
    problem = low_rank()
    start = gaussian(problem, scale=0.3, width=2, seed=0)
    with pytest.raises(InputError, match=f"^reduced: {name} .* whole problem") as caught:
        reduced(problem, start, optimiser=name)
    assert "\n" not in str(caught.value)
    assert reduced(problem, start, optimiser="muon").problem.shape == (5, 5)
    with pytest.raises(InputError, match=r"^optimiser: got 'adagrad'; one of"):
        reduced(problem, start, optimiser="adagrad")


def test_the_refusals_are_right() -> None:
    """A step of sign descent, and the flow under general second moments, do leave the span."""
    problem = low_rank()
    start = gaussian(problem, scale=0.3, width=2, seed=0)
    small = reduced(problem, start)
    assert small.left is not None
    slope = (start.operator - problem.target) @ start.V
    outside = np.eye(30) - small.left @ small.left.T
    assert np.abs(outside @ slope).max() < 1e-14
    assert np.abs(outside @ np.sign(slope)).max() > 0.1
    rng = np.random.default_rng(0)
    root = rng.standard_normal((30, 30))
    moments = models.second_moments(root @ root.T / 30, np.eye(20))
    uneven = BilinearProblem(problem.target, parameterisation=moments)
    with pytest.raises(InputError, match=r"^reduced: Sx is not a multiple of the identity"):
        reduced(uneven, start)
    velocity = equations(uneven).velocity((start.U, start.V))[0]
    assert np.abs(outside @ velocity).max() > 0.1
    assert integrate(uneven, start, [1.0]).stats["space"] == "30 x 20"


def test_a_start_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"^start: U and V have 3 and 3 rows"):
        reduced(low_rank(), Factors(np.ones((3, 2)), np.ones((3, 2))))

"""Every parameterisation: its derived flow against a loss typed by hand; what the prover says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from flow_models import MODELS, Model

from nonmixing import parameterisation as models
from nonmixing.algebra import Statement, decide
from nonmixing.algebra import expr as ex
from nonmixing.algebra.claimfile import load_scope
from nonmixing.algebra.text import parse
from nonmixing.dynamics.equations import derive, equations
from nonmixing.errors import InputError, ShapeError
from nonmixing.parameterisation import Parameterisation
from nonmixing.problem import BilinearProblem, Factors

every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)


@every_model
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_the_derived_flow_is_the_gradient_of_the_loss_typed_by_hand(
    model: Model, decay: float
) -> None:
    """Gradients by complex steps, which are exact to rounding; another loss is told apart."""
    rng = np.random.default_rng(0)
    problem = model.problem(rng, 4, 3, 2, decay=decay)
    variables = problem.variables(model.state(rng, problem, 2))
    velocity = equations(problem).velocity(tuple(variables.values()))
    for (name, value), found in zip(variables.items(), velocity, strict=True):
        expected = np.empty(value.shape)
        for place in np.ndindex(value.shape):
            moved = value.astype(complex)
            moved[place] += 1e-30j
            loss = model.hand_loss(problem, {**variables, name: moved})
            expected[place] = -np.imag(loss) / 1e-30
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        assert np.abs(found - 2 * expected).max() > 1e-3


@every_model
def test_the_loss_is_the_one_typed_by_hand(model: Model) -> None:
    rng = np.random.default_rng(1)
    problem = model.problem(rng, 4, 3, 2, decay=0.2)
    variables = problem.variables(model.state(rng, problem, 2))
    found = equations(problem).loss(tuple(variables.values()))[0]
    np.testing.assert_allclose(found, [[model.hand_loss(problem, variables)]], rtol=1e-13)


@every_model
def test_what_is_conserved_is_proved_for_all_rates(model: Model) -> None:
    """With learning rates as symbols: the velocity of X is rate_X times minus the gradient."""
    made = model.make(np.random.default_rng(0), 4, 4 if model.square else 3, 2)
    derived = derive(made)
    setting = derived.flow.setting
    paced = {
        name: ex.multiply(ex.scalar(f"rate_{name}"), velocity)
        for name, velocity in setting.velocity.items()
    }
    setting = dataclasses.replace(setting, velocity=paced)
    for invariant in derived.invariants:
        zero = ex.zeros(invariant.rows, invariant.cols)
        assert decide(_same(ex.d(invariant), zero, setting)).verdict == "proved"
    for left in derived.factors:
        gram = ex.matmul(ex.transpose(left), left)
        zero = ex.zeros(gram.rows, gram.cols)
        assert decide(_same(ex.d(gram), zero, setting)).verdict == "refuted"


@every_model
def test_under_decay_what_was_conserved_falls_at_twice_the_rate(model: Model) -> None:
    made = model.make(np.random.default_rng(0), 4, 4 if model.square else 3, 2)
    derived = derive(made, decay=True)
    setting = derived.flow.setting
    scope = load_scope(made.document(), "test")
    for text in made.invariants:
        for name in made.variables:
            text = text.replace(f" / rate_{name}", "")
        invariant = parse(text, scope, "test")
        fall = ex.multiply(ex.multiply(ex.number(-2), ex.scalar("decay")), invariant)
        assert decide(_same(ex.d(invariant), fall, setting)).verdict == "proved"


def _same(left: ex.Expr, right: ex.Expr, setting: object) -> Statement:
    return Statement("same", left, right, setting, "left", "right")  # pyright: ignore[reportArgumentType]


def test_the_loss_of_one_gaussian_input_is_its_mean() -> None:
    """F5: the closed loss, against the mean over a standard Gaussian input, for all n and r."""
    document = models.one_input().document()
    document["matrices"]["x"] = ["n", 1]  # pyright: ignore[reportIndexIssue]
    scope = load_scope(document, "test")
    mean = parse("expect((x.T @ E @ x) ** 2 / 2, x)", scope, "test")
    closed = parse("L", scope, "test")
    plain = parse("norm2(E) / 2", scope, "test")
    assert decide(_same(closed, mean, scope.setting)).verdict == "proved"
    assert decide(_same(plain, mean, scope.setting)).verdict == "refuted"


def test_two_layers_are_two_factors() -> None:
    rng = np.random.default_rng(2)
    problem = BilinearProblem(rng.standard_normal((4, 3)))
    deep = dataclasses.replace(problem, parameterisation=models.layers(2), rates=())
    U, V = rng.standard_normal((4, 2)), rng.standard_normal((3, 2))
    flat = equations(problem).velocity((U, V))
    layered = equations(deep).velocity((V.T.copy(), U))
    np.testing.assert_allclose(layered[1], flat[0], rtol=1e-13)
    np.testing.assert_allclose(layered[0], flat[1].T, rtol=1e-13)


def test_learning_rates_scale_the_velocities() -> None:
    rng = np.random.default_rng(3)
    slow = BilinearProblem(rng.standard_normal((4, 3)))
    fast = BilinearProblem(slow.target, rates=(2.0, 0.5))
    state = (rng.standard_normal((4, 2)), rng.standard_normal((3, 2)))
    one, two = equations(slow).velocity(state), equations(fast).velocity(state)
    np.testing.assert_array_equal(two[0], 2 * one[0])
    np.testing.assert_array_equal(two[1], 0.5 * one[1])


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: models.fixed_gates([1.0, np.nan]), InputError, r"^gates: entry \(1,\) is nan"),
        (lambda: models.fixed_gates([]), InputError, "^gates: empty"),
        (lambda: models.fixed_gates([1j]), InputError, "^gates: real numbers are expected"),
        (lambda: models.layers(1), InputError, "^count: got 1"),
        (lambda: models.layers(2.5), InputError, "^count: got 2.5"),  # pyright: ignore[reportArgumentType]
        (lambda: models.adapter([1.0]), ShapeError, "^base: got shape"),
        (
            lambda: models.second_moments(np.ones((2, 3)), np.eye(2)),
            ShapeError,
            "^Sx: got shape .* square",
        ),
        (
            lambda: models.second_moments(np.eye(2), [[1.0, 2.0], [0.0, 1.0]]),
            InputError,
            "^Sy: not symmetric",
        ),
        (
            lambda: models.second_moments(-np.eye(2), np.eye(2)),
            InputError,
            "^Sx: has the eigenvalue -1",
        ),
    ],
)
def test_bad_constants_are_refused(
    make: Callable[[], Parameterisation], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("target", "made", "error", "words"),
    [
        (np.ones((3, 2)), models.one_input(), ShapeError, r"^target: got shape \(3, 2\); a square"),
        (np.ones((3, 2)), models.tied(), ShapeError, r"^target: got shape \(3, 2\); a square"),
        (np.arange(4.0).reshape(2, 2), models.tied(), InputError, "^target: not symmetric"),
        (
            (np.eye(3)[:, :1], [1.0], np.eye(3)[:, 1:2]),
            models.tied(),
            InputError,
            "^target: not symmetric",
        ),
        (
            np.ones((3, 2)),
            models.second_moments(np.eye(3), np.eye(3)),
            ShapeError,
            r"^Sy: got shape \(3, 3\); \(2, 2\) is expected",
        ),
        (np.ones((3, 2)), models.adapter(np.ones((2, 3))), ShapeError, "^base: got shape"),
    ],
)
def test_targets_that_do_not_fit_are_refused(
    target: object, made: Parameterisation, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        BilinearProblem(target, parameterisation=made)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("made", "state", "error", "words"),
    [
        (models.layers(2), Factors(np.ones((3, 1)), np.ones((2, 1))), InputError, "W1, W2"),
        (models.layers(2), {"W1": np.ones((1, 2))}, InputError, "^start: got W1; W1, W2 are"),
        (models.layers(2), {}, InputError, "^start: got no variables"),
        (
            models.layers(2),
            {"W1": np.ones((1, 2)), "W2": np.ones((3, 2))},
            ShapeError,
            r"^start: W2 has shape \(3, 2\); \(3, 1\) is expected",
        ),
        (
            models.trained_gates(),
            {"W": np.ones((3, 1)), "V": np.ones((2, 1)), "a": np.array([np.inf])},
            InputError,
            r"^a: entry \(0,\) is inf",
        ),
        (
            models.fixed_gates([1.0, 2.0]),
            Factors(np.ones((3, 1)), np.ones((2, 1))),
            ShapeError,
            r"^start: W has shape \(3, 1\); \(3, 2\)",
        ),
        (
            models.trained_gates(),
            {"W": np.ones((3, 0)), "V": np.ones((2, 0)), "a": np.ones(0)},
            InputError,
            "^W: empty",
        ),
    ],
)
def test_states_that_do_not_fit_are_refused(
    made: Parameterisation, state: object, error: type[Exception], words: str
) -> None:
    problem = BilinearProblem(np.ones((3, 2)), parameterisation=made)
    with pytest.raises(error, match=words) as caught:
        problem.variables(state)  # pyright: ignore[reportArgumentType]
    assert "\n" not in str(caught.value)


def test_states_go_in_and_out() -> None:
    problem = BilinearProblem(np.ones((3, 2)), parameterisation=models.trained_gates())
    state = {"W": np.ones((3, 2)), "V": np.ones((2, 2)), "a": np.array([1.0, 2.0])}
    inside = problem.variables(state)
    assert inside["a"].shape == (2, 1)
    back = problem.state(inside)
    assert isinstance(back, dict)
    np.testing.assert_array_equal(back["a"], state["a"])

"""Derived flows as NumPy functions, against torch-free numbers and the oracle."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp
from algebra.declare import SHAPES, toml
from algebra.oracle import World, array
from sympy import MatrixSymbol, Trace
from test_flow import LOSSES, text_flow

from nonmixing.algebra.sympy_door import norm2
from nonmixing.dynamics.equations import equations
from nonmixing.dynamics.lower import lower
from nonmixing.errors import InputError, ShapeError
from nonmixing.flow import GradientFlow, problem_flow
from nonmixing.parameterisation import one_input, trained_gates
from nonmixing.problem import BilinearProblem

SIZES = {"m": 4, "n": 3, "r": 2}


def numbers(names: list[str], seed: int = 0) -> dict[str, Any]:
    """Random matrices with entries that are small multiples of 1/8: exact as floats."""
    rng = np.random.default_rng(seed)
    shapes: Any = {k: [SIZES.get(str(d), d) for d in SHAPES[k]] for k in names if k in SHAPES}
    at: dict[str, Any] = {k: rng.integers(-9, 10, s) / 8 for k, s in shapes.items()}
    return at | {k: 0.75 + i for i, k in enumerate(names) if k not in SHAPES}


@pytest.mark.parametrize(("loss", "variables"), LOSSES)
def test_velocities_agree_with_the_oracle(loss: str, variables: list[str]) -> None:
    flow = text_flow(loss, variables)
    names = [*flow.setting.matrices, *(s for s in "ab" if f"{s} *" in loss or f" {s}" in loss)]
    at = numbers(names)
    parameters = {k: v for k, v in at.items() if k not in variables}
    velocity = lower(flow, parameters)
    state = [np.atleast_2d(at[k]) for k in variables]
    found = velocity(state)
    world = World(toml(f"{loss} == {loss}"))
    exact = {
        k: array([[Fraction(x) for x in row] for row in np.atleast_2d(v)]) for k, v in at.items()
    }
    for name, value in zip(variables, found, strict=True):
        expected = (-1 * world.at(f"grad({loss}, {name})", SIZES, exact)).astype(float)
        assert value.dtype == np.float64
        assert value.shape == expected.shape
        np.testing.assert_allclose(value, expected, rtol=1e-13, atol=1e-13)


def test_the_bilinear_problem() -> None:
    rng = np.random.default_rng(1)
    u, v, t = rng.normal(size=(5, 3)), rng.normal(size=(4, 3)), rng.normal(size=(5, 4))
    velocity = lower(problem_flow(), {"T": t})
    du, dv = velocity([u, v])
    gap = u @ v.T - t
    np.testing.assert_allclose(du, -gap @ v, rtol=1e-12)
    np.testing.assert_allclose(dv, -gap.T @ u, rtol=1e-12)


def test_other_sizes_with_the_same_function() -> None:
    flow = problem_flow()
    rng = np.random.default_rng(2)
    t = rng.normal(size=(5, 4))
    velocity = lower(flow, {"T": t})
    for r in (1, 2, 7):
        u, v = rng.normal(size=(5, r)), rng.normal(size=(4, r))
        np.testing.assert_allclose(velocity([u, v])[0], (t - u @ v.T) @ v, rtol=1e-11, atol=1e-12)


def test_what_comes_out_is_not_what_went_in() -> None:
    """The caller may change a velocity in place."""
    flow = text_flow("tr(X.T @ Y)", ["X"])
    y = np.arange(9.0).reshape(3, 3)
    velocity = lower(flow, {"Y": y})
    (first,) = velocity([np.zeros((3, 3))])
    first += 100
    (second,) = velocity([np.zeros((3, 3))])
    np.testing.assert_array_equal(second, -np.arange(9.0).reshape(3, 3))
    x = np.eye(3)
    (own,) = lower(text_flow("-norm2(X) / 2", ["X"]), {})([x])
    own += 1
    np.testing.assert_array_equal(x, np.eye(3))


def test_later_changes_of_a_parameter_are_not_seen() -> None:
    y = np.ones((3, 3))
    velocity = lower(text_flow("tr(X.T @ Y)", ["X"]), {"Y": y})
    before = velocity([np.zeros((3, 3))])[0].copy()
    y[:] = 5
    np.testing.assert_array_equal(velocity([np.zeros((3, 3))])[0], before)


def test_integers_are_taken_as_floats() -> None:
    velocity = lower(text_flow("norm2(X - Y) / 2 * a", ["X"]), {"Y": np.eye(3, dtype=int), "a": 2})
    (found,) = velocity([np.zeros((3, 3))])
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, 2 * np.eye(3))


def test_a_long_product_is_bracketed_well() -> None:
    """A column at the end of a chain is multiplied first: linear, not cubic."""
    flow = text_flow("x.T @ X @ X @ X @ X @ X @ y", ["x"])
    rng = np.random.default_rng(0)
    n = 300
    big = rng.normal(size=(n, n)) / n**0.5
    y = rng.normal(size=(n, 1))
    velocity = lower(flow, {"X": big, "y": y})
    x = rng.normal(size=(n, 1))
    shapes: list[tuple[int, ...]] = []
    real = np.matmul

    def watched(a: Any, b: Any) -> Any:
        shapes.append((*a.shape, b.shape[1]))
        return real(a, b)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "matmul", watched)
        velocity = lower(flow, {"X": big, "y": y})
        (found,) = velocity([x])
    assert shapes
    assert all(1 in shape for shape in shapes)
    np.testing.assert_allclose(found, -big @ (big @ (big @ (big @ (big @ y)))), rtol=1e-10)


def test_sympy_flows() -> None:
    m, n, r = sp.symbols("m n r")
    u, v, t = MatrixSymbol("U", m, r), MatrixSymbol("V", n, r), MatrixSymbol("T", m, n)
    decay = sp.Symbol("lam")
    loss = norm2(u * v.T - t) / 2 + decay * Trace(u.T * u) / 2
    flow = GradientFlow(loss, [u, v])
    at = numbers(["U", "V"])
    target = np.ones((4, 3))
    du, dv = lower(flow, {"T": target, "lam": 0.5})([at["U"], at["V"]])
    gap = at["U"] @ at["V"].T - target
    np.testing.assert_allclose(du, -gap @ at["V"] - 0.5 * at["U"], rtol=1e-12)
    np.testing.assert_allclose(dv, -gap.T @ at["U"], rtol=1e-12)


def test_kinds_project() -> None:
    flow = text_flow("tr(S @ Y) + tr(K @ Y)", ["S", "K"], S="symmetric", K="skew")
    at = numbers(["S", "K", "Y"])
    ds, dk = lower(flow, {"Y": at["Y"]})([at["S"] + at["S"].T, at["K"] - at["K"].T])
    np.testing.assert_allclose(ds, -(at["Y"] + at["Y"].T) / 2)
    np.testing.assert_allclose(dk, -(at["Y"].T - at["Y"]) / 2)


def test_a_variable_that_stands_still() -> None:
    flow = text_flow("norm2(X - Y) + 0 * tr(Z)", ["X", "Z"])
    (dx, dz) = lower(flow, {"Y": np.ones((2, 2))})([np.zeros((2, 2)), np.ones((2, 2))])
    np.testing.assert_array_equal(dx, 2 * np.ones((2, 2)))
    np.testing.assert_array_equal(dz, np.zeros((2, 2)))


def test_inverses_powers_and_dimensions() -> None:
    flow = text_flow("tr(inv(G) @ X) / n + sum(X ** 3)", ["X"], G="invertible")
    g = np.array([[2.0, 1.0], [0.0, 1.0]])
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    (found,) = lower(flow, {"G": g})([x])
    np.testing.assert_allclose(found, -np.linalg.inv(g).T / 2 - 3 * x**2, rtol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({}, "T"),
        ({"T": np.ones((4, 3)), "W": 1.0}, "W"),
        ({"t": np.ones((4, 3))}, "T"),
    ],
)
def test_parameters_that_are_missing_or_unknown(parameters: Any, named: str) -> None:
    with pytest.raises(InputError) as caught:
        lower(problem_flow(), parameters)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("state", "named"),
    [
        ([np.ones((4, 2)), np.ones((3, 5))], "V"),
        ([np.ones((5, 2)), np.ones((3, 2))], "4"),
        ([np.ones(4), np.ones((3, 2))], "U"),
        ([np.ones((4, 2))], "V"),
        ([np.ones((4, 2)), np.ones((3, 2)), np.ones((3, 2))], "3"),
    ],
)
def test_states_that_do_not_fit(state: Any, named: str) -> None:
    velocity = lower(problem_flow(), {"T": np.ones((4, 3))})
    with pytest.raises(ShapeError) as caught:
        velocity(state)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parameters_of_another_shape() -> None:
    velocity = lower(problem_flow(), {"T": np.ones(3)})
    with pytest.raises(ShapeError):
        velocity([np.ones((4, 2)), np.ones((3, 2))])


def test_a_stack_of_states_is_lowered_like_each_of_them() -> None:
    rng = np.random.default_rng(9)
    made = trained_gates()  # transposes, diagonals, ones and products
    problem = BilinearProblem(rng.standard_normal((4, 3)), parameterisation=made)
    both = (
        equations(problem),
        equations(BilinearProblem(rng.standard_normal((3, 3)), parameterisation=one_input())),
    )
    states = (
        tuple(rng.standard_normal((2, 5, *shape)) for shape in ((4, 2), (3, 2), (2, 1))),
        (rng.standard_normal((2, 5, 3, 2)), rng.standard_normal((2, 5, 3, 2))),
    )
    for found, stack in zip(both, states, strict=True):
        for function in (found.velocity, found.loss, found.factors, found.invariants):
            for k, value in enumerate(function(stack)):
                for place in np.ndindex(2, 5):
                    single = function(tuple(part[place] for part in stack))[k]
                    np.testing.assert_allclose(value[place], single, rtol=1e-12, atol=1e-14)
    with pytest.raises(ShapeError, match=r"^state: got leading axes"):
        both[0].velocity((states[0][0], states[0][1][0], states[0][2]))


def test_what_is_returned_may_be_changed() -> None:
    """A factor that is a variable itself comes back as a copy."""
    problem = BilinearProblem(np.ones((2, 2)))
    state = (np.ones((2, 1)), np.ones((2, 1)))
    for function in (equations(problem).factors, equations(problem).velocity):
        for value in function(state):
            value[:] = 7.0
    np.testing.assert_array_equal(state[0], 1.0)

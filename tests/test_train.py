"""`train` against a gradient that is written out by hand, and against its own promises."""

import ast
import inspect
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nonmixing.dynamics.integrate import integrate
from nonmixing.errors import InputError, MissingExtra, ShapeError
from nonmixing.networks.train import train
from nonmixing.parameterisation import trained_gates
from nonmixing.problem import BilinearProblem, Factors, balanced, gaussian, whiten

SHAPES = [(3, 2, 4), (2, 5, 1), (4, 4, 2), (1, 1, 1)]


def posed(shape: tuple[int, int, int], *, on_samples: bool) -> tuple[BilinearProblem, Factors]:
    m, n, r = shape
    generator = np.random.default_rng([m, n, r])
    inputs = whiten(generator.standard_normal((17, n))).data
    outputs = generator.standard_normal((17, m))
    problem = BilinearProblem.from_samples(inputs, outputs)
    start = gaussian(problem, scale=0.5, width=r, seed=1)
    return (problem if on_samples else BilinearProblem(problem.target)), start


def gradient(problem: BilinearProblem, U: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, ...]:
    """By hand, from the loss of the samples one by one where there are any."""
    if problem.samples is None:
        error = U @ V.T - problem.target
    else:
        x, y = problem.samples.inputs, problem.samples.outputs
        one_by_one = [np.outer(U @ (V.T @ xi) - yi, xi) for xi, yi in zip(x, y, strict=True)]
        error = np.mean(one_by_one, axis=0)
    return error @ V, error.T @ U


def descent(problem: BilinearProblem, start: Factors, rate: float, steps: int) -> list[Factors]:
    states = [start]
    for _ in range(steps):
        dU, dV = gradient(problem, states[-1].U, states[-1].V)
        states.append(Factors(states[-1].U - rate * dU, states[-1].V - rate * dV))
    return states


@pytest.mark.parametrize("on_samples", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_step_is_the_gradient_by_hand(shape, on_samples):
    problem, start = posed(shape, on_samples=on_samples)
    run = train(problem, start, rate=1.0, steps=1)
    dU, dV = gradient(problem, start.U, start.V)
    np.testing.assert_allclose(run.U[0] - run.U[1], dU, atol=1e-12, rtol=0)
    np.testing.assert_allclose(run.V[0] - run.V[1], dV, atol=1e-12, rtol=0)
    assert np.abs(dU).max() > 1e-2


@pytest.mark.parametrize("on_samples", [True, False])
def test_many_steps_are_plain_descent(on_samples):
    problem, start = posed((3, 2, 4), on_samples=on_samples)
    run = train(problem, start, rate=0.1, steps=50)
    by_hand = descent(problem, start, 0.1, 50)
    assert len(run) == 51
    assert run.status == "ok"
    np.testing.assert_array_equal(run.times, 0.1 * np.arange(51))
    for k, state in enumerate(by_hand):
        np.testing.assert_allclose(run.U[k], state.U, atol=1e-12, rtol=0)
        np.testing.assert_allclose(run.V[k], state.V, atol=1e-12, rtol=0)
    assert run.loss()[-1] < 0.5 * run.loss()[0]


def test_whitened_samples_and_their_target_train_alike():
    on_samples, start = posed((3, 2, 4), on_samples=True)
    on_target = replace(on_samples, samples=None)
    a = train(on_samples, start, rate=0.1, steps=80)
    b = train(on_target, start, rate=0.1, steps=80)
    np.testing.assert_allclose(a.U, b.U, atol=1e-12, rtol=0)
    np.testing.assert_allclose(a.V, b.V, atol=1e-12, rtol=0)
    constant = float(a.stats["loss"]) - float(b.stats["loss"])
    assert on_samples.samples is not None
    x, y = on_samples.samples.inputs, on_samples.samples.outputs
    residual = y - x @ on_samples.target.T
    assert constant == pytest.approx(0.5 * np.mean(np.sum(residual**2, axis=1)), abs=1e-12)


def test_the_samples_are_what_is_trained_on():
    problem, start = posed((3, 2, 4), on_samples=True)
    other = replace(problem, target=problem.target + 1.0)
    a = train(problem, start, rate=0.1, steps=3)
    b = train(other, start, rate=0.1, steps=3)
    np.testing.assert_array_equal(a.U, b.U)


def test_records_every_so_many_steps_and_the_last():
    problem, start = posed((3, 2, 4), on_samples=False)
    all_steps = train(problem, start, rate=0.1, steps=11)
    told: list[tuple[int, int]] = []
    run = train(
        problem, start, rate=0.1, steps=11, every=4, progress=lambda *done: told.append(done)
    )
    np.testing.assert_array_equal(run.times, 0.1 * np.array([0, 4, 8, 11]))
    np.testing.assert_array_equal(run.U, all_steps.U[[0, 4, 8, 11]])
    assert told == [(0, 11), (4, 11), (8, 11), (11, 11)]


def test_halving_the_rate_gives_the_same_times():
    problem, start = posed((3, 2, 4), on_samples=False)
    whole = train(problem, start, rate=0.13, steps=10, every=2)
    half = train(problem, start, rate=0.13 / 2, steps=20, every=4)
    np.testing.assert_array_equal(whole.times, half.times)


def test_the_same_bits_twice_and_torch_left_as_it_was():
    problem, start = posed((3, 2, 4), on_samples=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        generator = torch.get_rng_state()
        first = train(problem, start, rate=0.1, steps=30)
        with torch.inference_mode():
            second = train(problem, start, rate=0.1, steps=30)
        np.testing.assert_array_equal(first.U, second.U)
        np.testing.assert_array_equal(first.V, second.V)
        assert first.stats == second.stats
        assert torch.get_num_threads() == 2
        assert torch.equal(torch.get_rng_state(), generator)
    finally:
        torch.set_num_threads(threads)


def test_the_start_is_not_written_to():
    problem, start = posed((3, 2, 4), on_samples=False)
    before = start.U.copy(), start.V.copy()
    train(problem, start, rate=0.1, steps=5)
    np.testing.assert_array_equal(start.U, before[0])
    np.testing.assert_array_equal(start.V, before[1])


def test_divergence_is_a_status_with_the_last_good_time():
    problem = BilinearProblem(np.array([[2.0]]))
    start = Factors(np.array([[1.0]]), np.array([[1.5]]))
    run = train(problem, start, rate=5.0, steps=100, every=2)
    assert run.status.startswith("diverged")
    assert f"the last good time is {run.times[-1]:.6g}" in run.status
    assert 0 < run.times[-1] < 500
    assert np.isfinite(run.U).all()
    assert run.stats["steps"] == run.times[-1] / 5.0


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"rate": 0.0}, "rate"),
        ({"rate": float("nan")}, "rate"),
        ({"rate": "fast"}, "rate"),
        ({"rate": True}, "rate"),
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"every": 0}, "every"),
    ],
)
def test_bad_numbers_are_named(changed, named):
    problem, start = posed((3, 2, 4), on_samples=False)
    arguments: dict[str, Any] = {"rate": 0.1, "steps": 3, **changed}
    with pytest.raises(InputError, match=rf"^{named}: got .*expected") as caught:
        train(problem, start, **arguments)
    assert "\n" not in str(caught.value)


def test_a_start_of_another_shape_is_named():
    problem, _ = posed((3, 2, 4), on_samples=False)
    with pytest.raises(ShapeError, match=r"^start: .*\(3, 2\)"):
        train(problem, Factors(np.ones((2, 1)), np.ones((3, 1))), rate=0.1, steps=3)


def test_a_start_too_large_for_float64_is_named():
    problem, start = posed((3, 2, 4), on_samples=False)
    with pytest.raises(InputError, match=r"^start: its loss is not finite"):
        train(problem, Factors(start.U * 1e150, start.V * 1e150), rate=0.1, steps=3)


def test_without_torch_the_extra_is_named(monkeypatch):
    problem, start = posed((3, 2, 4), on_samples=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r'pip install "nonmixing\[train\]"'):
        train(problem, start, rate=0.1, steps=3)


def test_only_calling_it_loads_torch():
    code = "import sys, nonmixing.networks.train; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_knows_nothing_of_the_flow():
    """The witness is independent: neither the flow nor its solutions are within its reach."""
    tree = ast.parse(Path(inspect.getfile(train)).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in imported if name is not None and name.startswith("nonmixing")}
    assert ours == {"nonmixing.dynamics.trajectory", "nonmixing.errors", "nonmixing.problem"}


def test_a_balanced_start_stays_balanced_to_the_order_of_the_rate():
    """D3: the drift of UᵀU − VᵀV in one step is exactly η²(VᵀEᵀE V − UᵀE EᵀU)."""
    problem, _ = posed((3, 2, 4), on_samples=True)
    start = balanced(problem, scale=0.7, width=4, seed=5)
    run = train(problem, start, rate=0.2, steps=1)
    E = start.operator - problem.target
    U, V = start.U, start.V
    drift = 0.2**2 * (V.T @ E.T @ E @ V - U.T @ E @ E.T @ U)
    np.testing.assert_allclose(
        run.factors(1).imbalance - start.imbalance, drift, atol=1e-12, rtol=0
    )
    assert np.abs(drift).max() > 1e-4


def test_decay_and_rates_are_those_of_the_integrated_flow() -> None:
    """Two rates and a decay: the network follows the flow that is derived from the same problem."""
    target = np.random.default_rng(3).normal(size=(4, 3))
    problem = BilinearProblem(target, decay=0.3, rates=(1.0, 0.4))
    plain = BilinearProblem(target)
    start = gaussian(problem, scale=0.5, width=2, seed=3)
    run = train(problem, start, rate=1e-3, steps=1000, every=500)
    flow = integrate(problem, start, run.times)
    other = integrate(plain, start, run.times)
    gap = np.linalg.norm(run.operator(-1) - flow.operator(-1))
    apart = np.linalg.norm(other.operator(-1) - flow.operator(-1))
    assert gap < 1e-2 * apart  # descent is off by the order of the rate, 1e-3


def test_other_parameterisations_are_refused() -> None:
    problem = BilinearProblem(np.eye(3), parameterisation=trained_gates())
    with pytest.raises(InputError, match="trained gates"):
        train(
            problem, gaussian(BilinearProblem(np.eye(3)), scale=1, width=2, seed=0), rate=1, steps=1
        )

"""A two-factor linear network, trained by torch: the independent witness.

Nothing here knows the flow, its solutions or a gradient in closed form. There is a network, a
loss, autograd and plain gradient descent; agreement with the other routes is therefore evidence
about them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError, MissingExtra
from nonmixing.problem import Array, BilinearProblem, Factors

if TYPE_CHECKING:
    import torch

Progress: TypeAlias = Callable[[int, int], None]
"""Told (steps done, steps in all)."""


def train(
    problem: BilinearProblem,
    start: Factors,
    *,
    rate: float,
    steps: int,
    every: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Trajectory:
    """Train x → U (Vᵀ x) by full-batch gradient descent, in float64 on the CPU.

    The network is two linear layers without bias, Vᵀ and then U. With samples (x_i, y_i), i = 1..N,
    the loss is 1/(2N) Σ_i ‖y_i − U Vᵀ x_i‖²; without, it is ½‖U Vᵀ − target‖². The problem's decay
    adds (decay/2)(‖U‖² + ‖V‖²), and its rates multiply the learning rate of each factor. The
    gradient is autograd's.

    Two runs give the same bits: the arithmetic is on one thread, whatever torch is set to. Torch's
    global state (threads, random generator, gradient mode) is left as it was.

    Args:
        problem: The target (m, n), and the samples where there are any.
        start: The factors U (m, r) and V (n, r) at step 0.
        rate: Learning rate, positive; the state after step k is recorded at time rate · k.
        steps: Number of steps, at least 1.
        every: Record after steps 0, every, 2 every, ... and the last.
        seed: Written into `stats`; descent on the full batch draws no random number.
        progress: Called with (steps done, steps) at every record.

    Returns:
        The recorded run. If the loss stops being finite the run ends there, and `status` names the
        step and the last good time.

    Raises:
        InputError: A rate or a count that cannot be used, a start whose loss is not finite, or a
            problem that two layers do not parametrise.
        ShapeError: A start that does not fit the problem.
        MissingExtra: torch is not installed.
    """
    rate = _positive("rate", rate)
    steps, every = _count("steps", steps), _count("every", every)
    if problem.parameterisation.name != "absorbed":
        raise InputError(
            f"problem: its parameterisation is {problem.parameterisation.name!r}, and two layers "
            "are trained here; train it with your own loop and Trajectory.from_variables"
        )
    start.check(problem)
    _require_torch()
    import torch
    from torch.nn.functional import mse_loss

    recorded: dict[int, tuple[Array, Array]] = {}
    status, last_loss = "ok", 0.0
    with _own_settings():
        network = _network(start)
        inputs, outputs, scale = _data(problem)
        descent = torch.optim.SGD(_groups(network, problem, rate))
        for step in range(steps + 1):
            loss = scale * mse_loss(network(inputs), outputs, reduction="sum")
            if problem.decay > 0:
                squares = [weight.square().sum() for weight in network.parameters()]
                loss = loss + 0.5 * problem.decay * sum(squares)
            if not bool(torch.isfinite(loss)):
                status = _stopped(step, rate, recorded)
                break
            if step % every == 0 or step == steps:
                recorded[step] = _factors(network)
                last_loss = float(loss.detach())
                if progress is not None:
                    progress(step, steps)
            if step < steps:
                descent.zero_grad()
                loss.backward()  # pyright: ignore[reportUnknownMemberType]
                descent.step()  # pyright: ignore[reportUnknownMemberType]
    return Trajectory.from_arrays(
        rate * np.array(list(recorded), dtype=np.float64),
        np.stack([U for U, _ in recorded.values()]),
        np.stack([V for _, V in recorded.values()]),
        problem=problem,
        source="trained",
        status=status,
        stats={
            "rate": rate,
            "steps": max(recorded),
            "seed": seed,
            "loss": last_loss,
            "torch": str(torch.__version__),
        },
    )


def _positive(name: str, value: object) -> float:
    if not isinstance(value, bool) and isinstance(value, Real):
        number = float(value)
        if np.isfinite(number) and number > 0:
            return number
    raise InputError(f"{name}: got {value!r}; a positive finite number is expected")


def _count(name: str, value: object) -> int:
    if not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 1:
        return int(value)
    raise InputError(f"{name}: got {value!r}; a whole number of at least 1 is expected")


def _require_torch() -> None:
    try:
        import torch  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as missing:
        raise MissingExtra(
            'train: needs torch, which is not installed; pip install "nonmixing[train]"'
        ) from missing


@contextmanager
def _own_settings() -> Generator[None]:
    """One thread, so that sums are always taken in the same order; gradients on."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        torch.set_num_threads(threads)


def _network(start: Factors) -> torch.nn.Sequential:
    """Two linear layers without bias, x → Vᵀ x → U Vᵀ x."""
    import torch

    network = torch.nn.Sequential()
    for weight in (start.V.T, start.U):
        rows, columns = weight.shape
        # A layer on the device "meta" has no numbers yet: its random initialisation, which would
        # advance the caller's generator, is skipped.
        layer = torch.nn.Linear(columns, rows, bias=False, device="meta")
        layer.weight = torch.nn.Parameter(_tensor(weight))
        network.append(layer)
    return network


def _groups(
    network: torch.nn.Sequential, problem: BilinearProblem, rate: float
) -> list[dict[str, Any]]:
    """Each factor with its learning rate."""
    first, second = network.parameters()
    left, right = problem.rates
    return [{"params": [second], "lr": rate * left}, {"params": [first], "lr": rate * right}]


def _factors(network: torch.nn.Sequential) -> tuple[Array, Array]:
    """U (m, r) and V (n, r), copied out of the network."""
    first, second = (
        np.array(weight.detach().numpy(), dtype=np.float64) for weight in network.parameters()
    )
    return second, first.T


def _data(problem: BilinearProblem) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Inputs (N, n), outputs (N, m) and the factor in front of the sum of squared errors.

    Without samples the inputs are the n unit vectors, which Q maps to its columns.
    """
    if problem.samples is None:
        return _tensor(np.eye(problem.shape[1])), _tensor(problem.target.T), 0.5
    samples = problem.samples
    return _tensor(samples.inputs), _tensor(samples.outputs), 0.5 / len(samples)


def _tensor(array: Array) -> torch.Tensor:
    import torch

    return torch.tensor(np.ascontiguousarray(array), dtype=torch.float64, device="cpu")


def _stopped(step: int, rate: float, good: Collection[int]) -> str:
    """The status of a run whose loss stopped being finite."""
    if not good:
        raise InputError("start: its loss is not finite; pass smaller factors or a smaller target")
    return (
        f"diverged: the loss after step {step} is not finite; the last good time is "
        f"{rate * max(good):.6g} (step {max(good)}); pass a smaller rate"
    )

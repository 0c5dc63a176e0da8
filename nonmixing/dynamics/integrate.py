"""The gradient flow from any start, integrated by SciPy.

What is integrated is lowered from the symbolic flow, which is derived from the loss: no formula of
it is written here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import BDF, DOP853, LSODA, RK23, RK45, OdeSolver, Radau

from nonmixing.dynamics.lower import lower
from nonmixing.dynamics.trajectory import Trajectory, flow_times
from nonmixing.errors import InputError, NonmixingError
from nonmixing.flow import problem_flow
from nonmixing.problem import Array, BilinearProblem, Factors

Method: TypeAlias = Literal["RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"]
Velocity: TypeAlias = Callable[[float, NDArray[Any]], Array]

METHODS: Final[Mapping[str, type[OdeSolver]]] = {
    "RK23": RK23,
    "RK45": RK45,
    "DOP853": DOP853,
    "Radau": Radau,
    "BDF": BDF,
    "LSODA": LSODA,
}

FINEST: Final = 100 * float(np.finfo(np.float64).eps)
"""SciPy's integrators raise any smaller relative tolerance to this, 2.2e-14."""


def integrate(
    problem: BilinearProblem,
    start: Factors,
    times: ArrayLike,
    *,
    rtol: float = 1e-9,
    atol: float = 1e-12,
    method: Method = "DOP853",
    rate: float = 0.0,
    max_evaluations: int = 200_000,
) -> Trajectory:
    """The gradient flow from any start, by numerical integration.

    Args:
        problem: The problem, target (m, n).
        start: The state at time 0, U (m, r) and V (n, r).
        times: Shape (K,), increasing, from 0 on.
        rtol: Relative tolerance of a step, at least 2.2e-14.
        atol: Absolute tolerance of a step, in the units of U and V; well below the start's entries.
        method: One of SciPy's; "LSODA" or "Radau" where singular values differ widely.
        rate: A learning rate η. Above 0 the flow of L + (η/4)‖∇L‖² is integrated instead, which
            gradient descent with that rate follows to second order [Barrett and Dherin 2021].
        max_evaluations: Evaluations of the right-hand side after which to give up, as an explicit
            method must on a stiff problem.

    Returns:
        A trajectory. Its status is "ok", or names where and why the integrator stopped; it then
        ends with the last of the times reached. Its stats count evaluations of the right-hand side
        and steps, and at rate 0 say how far UᵀU − VᵀV, which the flow conserves, drifted at the
        most (Frobenius norm).

    Raises:
        InputError: Tolerances that float64 cannot meet, a negative rate, an unknown method, times
            that are negative, do not increase, or are not finite.
        ShapeError: A start that does not fit the target.
        NonmixingError: The integrator stopped before the first of the times.
    """
    start.check(problem)
    grid = flow_times("times", times)
    _check_settings(rtol, atol, method, rate)
    parameters: dict[str, Array | float] = {"T": problem.target}
    if rate > 0:
        parameters["eta"] = rate
    velocity = _flattened(lower(problem_flow(rate_symbol=rate > 0), parameters), start)
    solver = partial(METHODS[method], velocity, rtol=rtol, atol=atol)
    states, status, counts = _march(solver, velocity, start, grid, max_evaluations)
    if not len(states):
        raise NonmixingError(f"times: the first of them was not reached; {status}")
    U = states[:, : start.U.size].reshape(-1, *start.U.shape)
    V = states[:, start.U.size :].reshape(-1, *start.V.shape)
    stats: dict[str, float | int | str] = {**counts, "rtol": rtol, "atol": atol, "rate": rate}
    if rate == 0:
        stats["imbalance drift"] = _drift(U, V, start)
    return Trajectory.from_arrays(
        grid[: len(states)],
        U,
        V,
        problem=problem,
        source=f"integrated: {method}" + (f", rate {rate:.6g}" if rate > 0 else ""),
        status=status,
        stats=stats,
    )


def _check_settings(rtol: float, atol: float, method: str, rate: float) -> None:
    """Refuse what SciPy would silently change or choke on."""
    if not FINEST <= rtol < 1:
        raise InputError(
            f"rtol: got {rtol}; a number from {FINEST:.2g}, the finest that float64 can meet, to "
            "below 1 is expected"
        )
    if not (np.isfinite(atol) and atol > 0):
        raise InputError(f"atol: got {atol}; a positive finite number is expected")
    if not (np.isfinite(rate) and rate >= 0):
        raise InputError(f"rate: got {rate}; a finite number is expected, 0 for the plain flow")
    if method not in METHODS:
        raise InputError(f"method: got {method!r}; one of {', '.join(METHODS)} is expected")


def _flattened(
    velocity: Callable[[Sequence[Array]], tuple[Array, ...]], start: Factors
) -> Velocity:
    """The velocity of (U, V) as that of one vector."""
    cut, left, right = start.U.size, start.U.shape, start.V.shape

    def flat(_: float, state: NDArray[Any]) -> Array:
        moved = velocity((state[:cut].reshape(left), state[cut:].reshape(right)))
        return np.concatenate([part.ravel() for part in moved])

    return flat


def _march(
    begin: Callable[..., OdeSolver], velocity: Velocity, start: Factors, times: Array, most: int
) -> tuple[Array, str, dict[str, int]]:
    """The states (K', ·) at the times reached, the status, and what was counted.

    Step by step, where `solve_ivp` would run to the end, so that whatever stops the integrator the
    last good time is known.
    """
    state = np.concatenate([start.U.ravel(), start.V.ravel()])
    found = [state for time in times if time == 0]
    counts = {"evaluations": 0, "steps": 0}
    last, fault = 0.0, ""
    # What goes wrong in here is said once, in the status.
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not np.isfinite(velocity(0.0, state)).all():
            return np.array(found), f"stopped at {_at(0.0, times)}: the velocity overflows", counts
        solver = begin(0.0, state, float(times[-1]))
        while len(found) < len(times) and not fault:
            fault = _step(solver, most)
            if not fault:
                last, inside = float(solver.t), solver.dense_output()
                due = times[len(found) :]
                found.extend(np.asarray(inside(time), np.float64) for time in due[due <= last])
                counts["steps"] += 1
    counts["evaluations"] = int(solver.nfev) + 1
    status = f"stopped at {_at(last, times)}: {fault}" if fault else "ok"
    return np.array(found), status, counts


def _at(time: float, times: Array) -> str:
    return f"t = {time:.6g}, short of t = {times[-1]:.6g}"


def _step(solver: OdeSolver, most: int) -> str:
    """Take one step; returns what went wrong with it, or nothing."""
    if solver.nfev >= most:
        return f"{most} evaluations are spent; try LSODA or Radau, or a larger max_evaluations"
    try:
        message = solver.step()
    except (ValueError, np.linalg.LinAlgError) as error:  # from the implicit methods
        message = str(error)
    if solver.status != "failed" and not message and np.isfinite(solver.y).all():
        return ""
    return " ".join((message or "the state is not finite").split()).rstrip(".")


def _drift(U: Array, V: Array, start: Factors) -> float:
    """The largest Frobenius norm of the change in UᵀU − VᵀV."""
    imbalance = np.swapaxes(U, 1, 2) @ U - np.swapaxes(V, 1, 2) @ V
    return float(np.sqrt(np.sum((imbalance - start.imbalance) ** 2, axis=(1, 2))).max())

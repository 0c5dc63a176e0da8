"""The gradient flow from any start, integrated by SciPy.

What is integrated is lowered from the symbolic flow, which is derived from the loss: no formula of
it is written here. It is integrated on the space that the flow lives in (`reduce`), where that is
smaller.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import BDF, DOP853, LSODA, RK23, RK45, OdeSolution, OdeSolver, Radau

from nonmixing.arrays import Array, whole_number
from nonmixing.dynamics.batch import TOO_SMALL, march, spent
from nonmixing.dynamics.equations import Equations, equations
from nonmixing.dynamics.reduce import Reduction, obstacle, reductions
from nonmixing.dynamics.trajectory import Trajectory, flow_times, increasing_times
from nonmixing.errors import InputError, NonmixingError
from nonmixing.problem import (
    BilinearProblem,
    State,
    checked_problem,
    checked_state,
    described,
    is_state,
    real_number,
)

Method: TypeAlias = Literal["RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"]
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


@overload
def integrate(
    problem: BilinearProblem,
    start: State,
    times: ArrayLike,
    *,
    rtol: float = 1e-9,
    atol: float = 1e-12,
    method: Method = "DOP853",
    rate: float = 0.0,
    max_evaluations: int = 200_000,
    reduce: bool = True,
) -> Trajectory: ...


@overload
def integrate(
    problem: BilinearProblem,
    start: Sequence[State],
    times: ArrayLike,
    *,
    rtol: float = 1e-9,
    atol: float = 1e-12,
    method: Method = "DOP853",
    rate: float = 0.0,
    max_evaluations: int = 200_000,
    reduce: bool = True,
) -> tuple[Trajectory, ...]: ...


def integrate(
    problem: BilinearProblem,
    start: State | Sequence[State],
    times: ArrayLike,
    *,
    rtol: float = 1e-9,
    atol: float = 1e-12,
    method: Method = "DOP853",
    rate: float = 0.0,
    max_evaluations: int = 200_000,
    reduce: bool = True,
) -> Trajectory | tuple[Trajectory, ...]:
    """The gradient flow from any start, by numerical integration.

    Args:
        problem: The problem, target (m, n), of any parameterisation.
        start: The state at time 0: U (m, r) and V (n, r), or the parameterisation's variables by
            name. Or a sequence of such states; with "DOP853" they are then integrated together,
            each with the steps that it would take alone.
        times: Shape (K,), increasing, from 0 on, finite (`solve` has the limit).
        rtol: Relative tolerance of a step, at least 2.2e-14.
        atol: Absolute tolerance of a step, in the units of U and V; well below the start's entries.
        method: One of SciPy's; "LSODA" or "Radau" where singular values differ widely.
        rate: A learning rate η. Above 0 the flow of L + (η/4)‖∇L‖² is integrated instead, which
            gradient descent with that rate follows to second order [Barrett and Dherin 2021].
        max_evaluations: Evaluations of the right-hand side after which to give up, as an explicit
            method must on a stiff problem.
        reduce: Integrate on the space that the flow lives in, where that is smaller; False: on the
            whole space in any case.

    Returns:
        A trajectory, or a tuple of one for each of a sequence of starts. Its status is "ok", or
        names where and why the integrator stopped; it then ends with the last of the times reached.
        Its stats count evaluations of the right-hand side and steps, name the space of the
        integration, and at rate 0 say how far what the flow conserves (`Trajectory.conserved`)
        drifted at the most (Frobenius norm; under weight decay it should fall by a known factor,
        and the drift is the deviation from that; left out under decay with unequal rates). It can
        be asked between the times (`Trajectory.at`).

    Raises:
        InputError: Tolerances that float64 cannot meet, a negative rate, an unknown method, times
            that are negative, do not increase, or are not finite; no problem, no state for a start,
            or an empty sequence of them.
        ShapeError: A start that does not fit the target.
        NonmixingError: The integrator stopped before the first of the times.
    """
    problem = checked_problem(problem)
    if not isinstance(start, Sequence):
        single, starts = True, [checked_state(problem, start)]
    else:
        single, starts = False, _several(problem, start)
    settings = _Settings(rtol, atol, method, rate, max_evaluations)
    grid = flow_times("times", times)
    if reduce and not obstacle(problem):
        small = reductions(problem, starts)
    else:
        small = [
            Reduction(problem, problem.state(problem.variables(s)), None, None) for s in starts
        ]
    found: dict[int, Trajectory] = {}
    for members in _alike(small):
        group = _Group(problem, settings, grid, [small[index] for index in members])
        found |= zip(members, group.trajectories(), strict=True)
    return found[0] if single else tuple(found[index] for index in range(len(starts)))


def _several(problem: BilinearProblem, starts: Sequence[State]) -> list[State]:
    """The states of a sequence; two arrays in a row are none, and meant as one."""
    if not starts:
        raise InputError("start: got an empty sequence; at least one state is expected")
    if not any(is_state(item) for item in starts):
        checked_state(problem, starts)
    return [checked_state(problem, item) for item in starts]


@dataclass(frozen=True)
class _Settings:
    """How to integrate; refuses what SciPy would silently change or choke on."""

    rtol: float
    atol: float
    method: str
    rate: float
    most: int

    def __post_init__(self) -> None:
        finest = f"a number from {FINEST:.2g}, the finest that float64 can meet, to below 1"
        numbers = {
            "rtol": real_number("rtol", self.rtol, finest, lambda x: FINEST <= x < 1),
            "atol": real_number("atol", self.atol, "a positive finite number", lambda x: x > 0),
            "rate": real_number(
                "rate", self.rate, "a finite number from 0, the plain flow, on", lambda x: x >= 0
            ),
        }
        for name, number in numbers.items():
            object.__setattr__(self, name, number)
        whole_number("max_evaluations", self.most, 1)
        if str(self.method) not in METHODS:
            raise InputError(
                f"method: got {described(self.method)}; one of {', '.join(METHODS)} is expected"
            )

    @property
    def source(self) -> str:
        return f"integrated: {self.method}" + (f", rate {self.rate:.6g}" if self.rate > 0 else "")


def _alike(small: Sequence[Reduction]) -> list[list[int]]:
    """The places of the reductions in groups with one problem and one shape of the start."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for index, reduction in enumerate(small):
        variables = reduction.problem.variables(reduction.start)
        key = (id(reduction.problem), *(value.shape for value in variables.values()))
        groups.setdefault(key, []).append(index)
    return list(groups.values())


@dataclass(frozen=True, eq=False)
class _Run:
    """One start integrated: how far it got, and its states between."""

    time: float
    fault: str
    evaluations: int
    steps: int
    states: Callable[[Array], Array]  # times (K,) to states (K, D)


class _Group:
    """Starts on one small problem, all of one shape: they share the equations."""

    def __init__(
        self,
        problem: BilinearProblem,
        settings: _Settings,
        times: Array,
        members: Sequence[Reduction],
    ) -> None:
        self.problem, self.settings, self.times = problem, settings, times
        self.members = members
        self.inner = members[0].problem
        self.equations: Equations = equations(self.inner, settings.rate)
        first = self.inner.variables(members[0].start)
        self.names = tuple(first)
        self.shapes = [value.shape for value in first.values()]
        edges = [0, *np.cumsum([value.size for value in first.values()]).tolist()]
        self.parts = [slice(a, b) for a, b in pairwise(edges)]
        self.starts = np.array(
            [
                np.concatenate([x.ravel() for x in self.inner.variables(m.start).values()])
                for m in members
            ]
        )

    def trajectories(self) -> list[Trajectory]:
        """One for each member."""
        end, settings = float(self.times[-1]), self.settings
        # What goes wrong in here is said once, in the status.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if settings.method == "DOP853" and len(self.members) > 1 and end > 0:
                runs = self._together(end)
            else:
                solver = partial(
                    METHODS[settings.method], self.at, rtol=settings.rtol, atol=settings.atol
                )
                runs = [_alone(solver, self.velocity, s, end, settings.most) for s in self.starts]
        return [
            self._trajectory(member, start, run)
            for member, start, run in zip(self.members, self.starts, runs, strict=True)
        ]

    def velocity(self, states: NDArray[Any]) -> Array:
        """From states (..., D) to their velocities."""
        flat, lead = np.empty(states.shape), states.shape[:-1]
        for part, moved in zip(
            self.parts, self.equations.velocity(self.split(states)), strict=True
        ):
            flat[..., part] = moved.reshape(*lead, -1)
        return flat

    def at(self, _: float, state: NDArray[Any]) -> Array:
        """The velocity as SciPy asks for it: it does not depend on time."""
        return self.velocity(state)

    def split(self, states: NDArray[Any]) -> list[Array]:
        """States (..., D) as the variables, each (..., ·, ·)."""
        lead = states.shape[:-1]
        return [
            states[..., part].reshape(lead + shape)
            for part, shape in zip(self.parts, self.shapes, strict=True)
        ]

    def _together(self, end: float) -> list[_Run]:
        settings = self.settings
        found = march(
            self.velocity,
            self.starts,
            end,
            rtol=settings.rtol,
            atol=settings.atol,
            most=settings.most,
        )
        return [
            _Run(run.time, run.fault, run.evaluations, len(run.pieces), run.interpolant())
            for run in found
        ]

    def _trajectory(self, member: Reduction, start: Array, run: _Run) -> Trajectory:
        settings, last = self.settings, run.time
        reached = self.times[self.times <= last]
        status = "ok"
        if run.fault:
            status = f"stopped at t = {last:.6g}, short of t = {self.times[-1]:.6g}: {run.fault}"
            if not len(reached):
                raise NonmixingError(f"times: the first of them was not reached; {status}")
        stats: dict[str, float | int | str] = {
            "evaluations": run.evaluations,
            "steps": run.steps,
            "rtol": settings.rtol,
            "atol": settings.atol,
            "rate": settings.rate,
            "space": "{} x {}".format(*self.inner.shape),
        }
        states = run.states(reached)
        drift = self._drift(states, start, reached) if settings.rate == 0 else None
        if drift is not None:
            stats["imbalance drift"] = drift

        def dense(times: Array) -> Trajectory:
            asked = increasing_times("times", times)
            if asked[0] < 0 or asked[-1] > last:
                outside = asked[0] if asked[0] < 0 else asked[-1]
                raise InputError(
                    f"times: {outside:.6g} is outside what was integrated, 0 to {last:.6g}; "
                    "integrate further"
                )
            return self._wrap(member, asked, run.states(asked), status, stats, dense)

        return self._wrap(member, reached, states, status, stats, dense)

    def _wrap(
        self,
        member: Reduction,
        times: Array,
        states: Array,
        status: str,
        stats: Mapping[str, float | int | str],
        dense: Callable[[Array], Trajectory],
    ) -> Trajectory:
        parts = self.split(states)
        two = self.problem.parameterisation.two_factors
        U, V = parts if two else self.equations.factors(parts)
        return Trajectory(
            times,
            U,
            V,
            self.problem,
            self.settings.source,
            status,
            stats,
            member.left,
            member.right,
            None if two else dict(zip(self.names, parts, strict=True)),
            dense,
            own=True,
        )

    def _drift(self, states: Array, start: Array, times: Array) -> float | None:
        """The largest Frobenius norm of the change in what is conserved."""
        decay, rates = self.inner.decay, set(self.inner.rates)
        if decay > 0 and len(rates) > 1:
            return None
        fall = np.exp(-2 * decay * max(rates) * times)[:, None, None]
        before = self.equations.invariants(self.split(start))
        after = self.equations.invariants(self.split(states))
        total = np.zeros(len(times))
        for then, now in zip(before, after, strict=True):
            total += np.sum((now - fall * then) ** 2, axis=(1, 2))
        return float(np.sqrt(total.max()))


def _alone(
    begin: Callable[..., OdeSolver],
    velocity: Callable[[Array], Array],
    start: Array,
    end: float,
    most: int,
) -> _Run:
    """One start by SciPy.

    Step by step, where `solve_ivp` would run to the end, so that whatever stops the integrator the
    last good time is known.
    """
    if not np.isfinite(velocity(start)).all():
        return _Run(0.0, "the velocity overflows", 1, 0, partial(_constant, start))
    if end == 0:
        return _Run(0.0, "", 1, 0, partial(_constant, start))
    solver = begin(0.0, start, end)
    breaks, pieces, fault = [0.0], list[Any](), ""
    while breaks[-1] < end and not fault:
        fault = _step(solver, most)
        if not fault and solver.t <= breaks[-1]:  # LSODA goes on like that for ever
            fault = TOO_SMALL
        if not fault:
            breaks.append(float(solver.t))
            pieces.append(solver.dense_output())
    states = _between(OdeSolution(breaks, pieces)) if pieces else partial(_constant, start)
    return _Run(breaks[-1], fault, int(solver.nfev) + 1, len(pieces), states)


def _constant(start: Array, times: Array) -> Array:
    return np.repeat(start[None], len(times), axis=0)


def _between(solution: OdeSolution) -> Callable[[Array], Array]:
    def states(times: Array) -> Array:
        return np.asarray(solution(times), np.float64).T

    return states


def _step(solver: OdeSolver, most: int) -> str:
    """Take one step; returns what went wrong with it, or nothing."""
    if solver.nfev >= most:
        return spent(most)
    try:
        message = solver.step()
    except (ValueError, np.linalg.LinAlgError) as error:  # from the implicit methods
        message = str(error)
    if solver.status != "failed" and not message and np.isfinite(solver.y).all():
        return ""
    return " ".join((message or "the state is not finite").split()).rstrip(".")

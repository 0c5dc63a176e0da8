"""Many starts at once: the Dormand-Prince method of order 8, with each start's error its own.

SciPy integrates one state. To stack many into one would let a start that needs small steps hide
among those that do not, since the error is then a mean over all of them. Here every start has its
own error norm, its own step size and its own clock; what they share is that one evaluation of the
right-hand side serves all that are still under way. Each start takes the very steps that SciPy's
`DOP853` would take alone, up to rounding: the coefficients are SciPy's, and so are the rules for
the first step, the error and the next step [Hairer, Norsett, Wanner 1993, II.4, II.5 and II.10].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import DOP853

from nonmixing.arrays import Array

Velocity: TypeAlias = Callable[[Array], Array]
"""From states (B, D) to their velocities (B, D)."""

_METHOD: Final = cast("Any", DOP853)
STAGES: Final = int(_METHOD.n_stages)
NODES: Final = np.asarray(_METHOD.A, np.float64)
WEIGHTS: Final = np.asarray(_METHOD.B, np.float64)
ERROR_3: Final = np.asarray(_METHOD.E3, np.float64)
ERROR_5: Final = np.asarray(_METHOD.E5, np.float64)
EXTRA_NODES: Final = np.asarray(_METHOD.A_EXTRA, np.float64)
DENSE: Final = np.asarray(_METHOD.D, np.float64)
ORDER: Final = int(_METHOD.error_estimator_order)
TOO_SMALL: Final = str(_METHOD.TOO_SMALL_STEP).rstrip(".")

SAFETY, LEAST_FACTOR, MOST_FACTOR = 0.9, 0.2, 10.0  # SciPy's, which it does not export


@dataclass(frozen=True, eq=False)
class Interpolant:
    """The steps of one start, and the polynomials of degree 7 between them.

    Attributes:
        breaks: The times between steps, shape (S + 1,).
        steps: The step lengths, shape (S,).
        origins: The states at the beginning of each, shape (S, D).
        shapes: The coefficients, shape (S, 7, D).
    """

    breaks: Array
    steps: Array
    origins: Array
    shapes: Array

    def __call__(self, times: Array) -> Array:
        """The states at times (K,) within the breaks, shape (K, D)."""
        if not len(self.steps):
            return np.repeat(self.origins[:1], len(times), axis=0)
        # A time at a break belongs to the step that ends there, but for the first.
        place = np.clip(np.searchsorted(self.breaks, times) - 1, 0, len(self.steps) - 1)
        x = ((times - self.breaks[place]) / self.steps[place])[:, None]
        state = np.zeros((len(times), self.origins.shape[1]))
        for index in range(self.shapes.shape[1]):
            state += self.shapes[place, -1 - index]
            state *= x if index % 2 == 0 else 1 - x
        return state + self.origins[place]


@dataclass(eq=False)
class March:
    """How far one start has come.

    Attributes:
        origin: Its state at time 0.
        time: The last good time.
        fault: What stopped it, or nothing.
        evaluations: Of the right-hand side, on its behalf.
        pieces: Of each step: its length, the state at its beginning, the coefficients.
    """

    origin: Array
    time: float = 0.0
    fault: str = ""
    evaluations: int = 1
    breaks: list[float] = field(default_factory=lambda: [0.0])
    pieces: list[tuple[float, Array, Array]] = field(
        default_factory=list[tuple[float, Array, Array]]
    )

    def interpolant(self) -> Interpolant:
        """The steps so far as one function of time."""
        if not self.pieces:
            empty = np.empty((0, len(DENSE) + 3, len(self.origin)))
            return Interpolant(np.zeros(1), np.empty(0), self.origin[None], empty)
        lengths, origins, shapes = zip(*self.pieces, strict=True)
        return Interpolant(
            np.array(self.breaks), np.array(lengths), np.array(origins), np.array(shapes)
        )


def march(
    velocity: Velocity, starts: Array, end: float, *, rtol: float, atol: float, most: int
) -> list[March]:
    """Integrate every start from time 0 to the end, or until something stops it.

    Args:
        velocity: From states (B, D) to their velocities.
        starts: Shape (B, D).
        end: The last time, positive.
        rtol: Relative tolerance of a step.
        atol: Absolute tolerance of a step.
        most: Evaluations after which a start is given up.
    """
    runs = [March(start) for start in starts]
    slope = velocity(starts)
    finite = np.array([bool(np.isfinite(row).all()) for row in slope])
    for run, good in zip(runs, finite.tolist(), strict=True):
        run.fault = "" if good else "the velocity overflows"
    active = np.flatnonzero(finite)
    front = _Front(starts[active], slope[active], np.zeros(len(active)), np.zeros(len(active)))
    if len(active):
        front.step = _first_steps(velocity, front.state, front.slope, end, rtol, atol)
    for index in active:
        runs[index].evaluations += 1
    rejected = np.zeros(len(active), np.bool_)
    while len(active):
        tried = _attempt(velocity, front, rejected, end, rtol, atol)
        _record(runs, active, front, tried)
        front, rejected = tried.front, ~tried.accepted
        going = np.array([_under_way(runs[index], end, most) for index in active])
        if not going.all():
            active, rejected = active[going], rejected[going]
            front = front.only(going)
    return runs


@dataclass(eq=False)
class _Front:
    """The starts under way: state and slope (A, D), time and next step (A,)."""

    state: Array
    slope: Array
    time: Array
    step: Array

    def only(self, going: NDArray[np.bool_]) -> _Front:
        """Those that go on."""
        return _Front(self.state[going], self.slope[going], self.time[going], self.step[going])


@dataclass(frozen=True, eq=False)
class _Attempt:
    """One step tried by each start.

    `shapes` (A, 7, D) are the polynomials over `length` (A,); `stuck` marks steps that have become
    too small to change the time.
    """

    front: _Front
    accepted: NDArray[np.bool_]
    stuck: NDArray[np.bool_]
    length: Array
    shapes: Array


def _attempt(
    velocity: Velocity,
    front: _Front,
    rejected: NDArray[np.bool_],
    end: float,
    rtol: float,
    atol: float,
) -> _Attempt:
    """Try one step for every start under way; a step refused leaves its start where it is."""
    least = 10 * np.abs(np.nextafter(front.time, np.inf) - front.time)
    stuck = rejected & (front.step < least)
    asked = np.maximum(front.step, least)
    later = np.minimum(front.time + asked, end)
    length = later - front.time
    stages = np.empty((STAGES + 1 + len(EXTRA_NODES), *front.state.shape))
    stages[0] = front.slope
    wide = length[:, None]
    for index in range(1, STAGES):
        stages[index] = velocity(
            front.state + _combined(NODES[index, :index], stages[:index]) * wide
        )
    state = front.state + _combined(WEIGHTS, stages[:STAGES]) * wide
    slope = stages[STAGES] = velocity(state)
    scale = atol + np.maximum(np.abs(front.state), np.abs(state)) * rtol
    error = _error_norm(stages[: STAGES + 1], length, scale)
    accepted = (error < 1) & ~stuck
    # A norm of 0 gives an infinite factor, which is cut; one that is not a number the smallest.
    wanted = SAFETY * np.where(error > 0, error, 1e-300) ** (-1 / (ORDER + 1))
    growth = np.minimum(np.where(rejected, 1.0, MOST_FACTOR), wanted)
    factor = np.where(accepted, growth, np.fmax(LEAST_FACTOR, wanted))
    shapes = _dense(velocity, front, stages, length, state)
    keep = accepted[:, None]
    return _Attempt(
        _Front(
            np.where(keep, state, front.state),
            np.where(keep, slope, front.slope),
            np.where(accepted, later, front.time),
            length * factor,
        ),
        accepted,
        stuck,
        length,
        shapes,
    )


def _combined(weights: Array, stages: Array) -> Array:
    """The weighted sum of stages (s, A, D)."""
    return (weights @ stages.reshape(len(stages), -1)).reshape(stages.shape[1:])


def _error_norm(stages: Array, length: Array, scale: Array) -> Array:
    """The error of a step relative to its tolerance, shape (A,); below 1 is good enough."""
    fifth = np.sum((_combined(ERROR_5, stages) / scale) ** 2, axis=1)
    third = np.sum((_combined(ERROR_3, stages) / scale) ** 2, axis=1)
    total = fifth + 0.01 * third
    safe = np.where(total == 0, 1.0, total)
    return length * fifth / np.sqrt(safe * scale.shape[1])


def _dense(velocity: Velocity, front: _Front, stages: Array, length: Array, state: Array) -> Array:
    """The interpolating polynomials of a step, shape (A, 7, D)."""
    wide = length[:, None]
    for index, nodes in enumerate(EXTRA_NODES, STAGES + 1):
        stages[index] = velocity(front.state + _combined(nodes[:index], stages[:index]) * wide)
    change = state - front.state
    shapes = np.empty((3 + len(DENSE), *state.shape))
    shapes[0] = change
    shapes[1] = wide * front.slope - change
    shapes[2] = 2 * change - wide * (stages[STAGES] + front.slope)
    shapes[3:] = (DENSE @ stages.reshape(len(stages), -1)).reshape(-1, *state.shape) * wide
    return np.swapaxes(shapes, 0, 1)


def _record(runs: list[March], active: NDArray[np.intp], front: _Front, tried: _Attempt) -> None:
    """Write down what each start has done in an attempt."""
    for place, index in enumerate(active):
        run = runs[int(index)]
        run.evaluations += STAGES
        if tried.accepted[place]:
            run.evaluations += len(EXTRA_NODES)
            run.time = float(tried.front.time[place])
            run.breaks.append(run.time)
            piece = (float(tried.length[place]), front.state[place], tried.shapes[place])
            run.pieces.append(piece)
        elif tried.stuck[place]:
            run.fault = TOO_SMALL


def _under_way(run: March, end: float, most: int) -> bool:
    if not run.fault and run.time < end and run.evaluations >= most:
        run.fault = spent(most)
    return not run.fault and run.time < end


def spent(most: int) -> str:
    """What to say when the evaluations are used up."""
    return f"{most} evaluations are spent; try LSODA or Radau, or a larger max_evaluations"


def _first_steps(
    velocity: Velocity, state: Array, slope: Array, end: float, rtol: float, atol: float
) -> Array:
    """A first step for each start, by its size, slope and curvature [Hairer et al., II.4]."""
    scale = atol + np.abs(state) * rtol
    size, first = _mean_square(state / scale), _mean_square(slope / scale)
    small = (size < 1e-5) | (first < 1e-5)
    guess = np.where(small, 1e-6, 0.01 * size / np.where(small, 1.0, first))
    guess = np.minimum(guess, end)
    change = velocity(state + guess[:, None] * slope) - slope
    second = _mean_square(change / scale) / guess
    flat = (first <= 1e-15) & (second <= 1e-15)
    steepest = np.where(flat, 1.0, np.maximum(first, second))
    step = np.where(flat, np.maximum(1e-6, guess * 1e-3), (0.01 / steepest) ** (1 / (ORDER + 1)))
    return np.minimum(np.minimum(100 * guess, step), end)


def _mean_square(rows: Array) -> Array:
    """The root of the mean square of each row."""
    return np.sqrt(np.mean(rows**2, axis=1))

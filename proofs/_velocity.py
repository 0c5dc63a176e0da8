"""Two witnesses of a formula for the velocity of an operator, used by the scripts beside this one.

The formula is typed by hand in each script. Here it is held against the flow that the prover
derives from the loss, lowered to NumPy and integrated by SciPy; and against torch, which is given
the loss as a network computes it and derives everything else on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from nonmixing.algebra import Statement
from nonmixing.compare import CLOCKS
from nonmixing.dynamics.lower import lower
from nonmixing.flow import GradientFlow
from nonmixing.verdict import Verdict, judge

Array = NDArray[np.float64]
Formula = Callable[..., Array]
RTOL = 1e-10


@dataclass(frozen=True)
class March:
    """An integrated flow.

    Attributes:
        states: the variables by name, at each of the times asked for.
        integrals: what was carried along, flat, at each of the times.
        noise: the relative tolerance of a step times the number of evaluations.
    """

    states: list[dict[str, Array]]
    integrals: Array
    noise: float


@dataclass(frozen=True, kw_only=True)
class Velocity:
    """A formula for the velocity of an operator, and a state at which to test it.

    Attributes:
        statement: a statement whose setting defines the loss `L`.
        start: the variables' values, all 2-D, in the order of the arguments below.
        parameters: the values of what else is in the loss; the target is called `T`.
        operator: of the variables; written with what NumPy and torch have in common.
        formula: its velocity, of the variables and then the parameters. All its terms, once the
            target is taken with a minus sign, have one sign.
        wrong: other formulas, by name, which must be turned down.
        loss: of the variables as torch tensors, as the network computes it.
        seed: of the start.
    """

    statement: Statement
    start: Mapping[str, Array]
    parameters: Mapping[str, Array]
    operator: Callable[..., Any]
    formula: Formula
    loss: Callable[..., Any]
    wrong: Mapping[str, Formula]
    seed: int

    def simulation(self, quick: bool) -> Verdict:
        """The change of the operator along the flow against the formula's integral."""
        change, found, noise = self._carried(self.formula)

        def off(value: Array) -> float:
            return float(np.linalg.norm(value - change) / np.linalg.norm(change))

        clocks = {"frozen": 0.0, **CLOCKS}
        others = {name: off(self._carried(other)[1]) for name, other in self.wrong.items()}
        return judge(
            "simulation",
            measured=off(found),
            predicted=0.0,
            tolerance=noise,
            because="the integrator's rtol for each evaluation; both are integrated side by side, "
            "so that errors add up and do not grow",
            scope="relative gap between the formula's integral and the change along the flow",
            nulls={name: off(factor * found) for name, factor in clocks.items()} | others,
            seed=self.seed,
        )

    def training(self, quick: bool) -> Verdict:
        """The velocity that torch gives the operator when its factors descend, to the formula."""
        import torch
        from torch.autograd.functional import jvp

        state = tuple(torch.tensor(value, requires_grad=True) for value in self.start.values())
        descent = tuple(-slope for slope in torch.autograd.grad(self.loss(*state), state))
        moved: Any = jvp(self.operator, state, descent)[1]
        velocity: Array = moved.numpy()
        size = np.linalg.norm(velocity)

        def off(value: Array) -> float:
            return float(np.linalg.norm(value - velocity) / size)

        values = (*self.start.values(), *self.parameters.values())
        signs = [-1 if name == "T" else 1 for name in (*self.start, *self.parameters)]
        sums = self.formula(*(sign * abs(value) for sign, value in zip(signs, values, strict=True)))
        clocks = {"frozen": 0.0, **CLOCKS}
        others = {name: off(other(*values)) for name, other in self.wrong.items()}
        return judge(
            "training",
            measured=off(self.formula(*values)),
            predicted=0.0,
            tolerance=float(100 * np.finfo(np.float64).eps * np.linalg.norm(sums) / size),
            because="rounding: two routes of fewer than 100 operations in a row, so 100 machine "
            "epsilons of the formula with all of its terms made of one sign",
            scope="relative gap between the operator's velocity in a torch network and the formula",
            nulls={name: off(factor * velocity) for name, factor in clocks.items()} | others,
            seed=self.seed,
        )

    def _carried(self, formula: Formula) -> tuple[Array, Array, float]:
        """The operator's change up to time 1, the formula's integral, what is left uncertain."""
        fixed = tuple(self.parameters.values())

        def integrand(*state: Array) -> Array:
            return formula(*state, *fixed)

        run = march(self.statement, self.start, self.parameters, (0, 1), integrand=integrand)
        first, last = (self.operator(*state.values()) for state in run.states)
        return last - first, run.integrals[-1].reshape(last.shape), run.noise


def march(
    statement: Statement,
    start: Mapping[str, Array],
    parameters: Mapping[str, Array],
    times: Sequence[float],
    *,
    integrand: Callable[..., Array] | None = None,
    rtol: float = RTOL,
) -> March:
    """Integrate the gradient flow of the loss `L` of a statement's setting.

    Args:
        statement: its setting defines `L`.
        start: the variables' values at time 0.
        parameters: the values of what else is in the loss.
        times: when to record, from 0 on.
        integrand: of the variables; its integral is carried along.
        rtol: relative tolerance of a step.
    """
    setting = statement.setting
    flow = GradientFlow(setting.abbreviations["L"], list(start), setting=setting)
    velocity = lower(flow, parameters)
    shapes = [value.shape for value in start.values()]
    cuts = np.cumsum([value.size for value in start.values()])

    def unpack(flat: Array) -> list[Array]:
        pieces = np.split(flat, cuts)[: len(shapes)]
        return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]

    def rate(_: float, flat: Array) -> Array:
        state = unpack(flat)
        carried = () if integrand is None else (integrand(*state),)
        return np.concatenate([side.ravel() for side in (*velocity(state), *carried)])

    extra = 0 if integrand is None else integrand(*start.values()).size
    begin = np.concatenate([*(value.ravel() for value in start.values()), np.zeros(extra)])
    run = solve_ivp(
        rate, (0, times[-1]), begin, "DOP853", t_eval=times, rtol=rtol, atol=rtol / 1000
    )
    states = [dict(zip(start, unpack(flat), strict=True)) for flat in run.y.T]
    return March(states, run.y.T[:, cuts[-1] :], run.nfev * rtol)

"""Three witnesses of equations for modes of aligned states, used by the scripts beside this one.

The equations, a' and b' of every mode, are typed by hand in each script. They are held against the
flow that the prover derives from the loss, integrated by SciPy (`flow`); against steps of gradient
descent along that same flow (`steps`); and against a torch network, which is given the loss as the
network computes it and derives everything else on its own (`network`). Steps add velocities, so
that a⁺ = a + η a', b⁺ = b + η b' is exact for both of the latter: D1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import nonmixing as nm
from nonmixing.algebra import Statement
from nonmixing.compare import compare
from nonmixing.dynamics.lower import lower
from nonmixing.evidence import of_comparison
from nonmixing.ledger import folder, load_script
from nonmixing.verdict import Verdict, judge

Array = NDArray[np.float64]
Route = Literal["flow", "steps", "network"]
RTOL = 1e-11
EPSILON = float(np.finfo(np.float64).eps)
SOURCES = {"flow": "the flow", "steps": "descent", "network": "a torch network"}


@dataclass(frozen=True, kw_only=True)
class Modes:
    """Equations for modes, and an aligned start at which to test them.

    Attributes:
        statement: a statement whose setting defines the loss `L` of U, V and the target T.
        problem: the target, whose singular vectors the modes are.
        a: strengths of U's modes at the start, shape (k,), positive.
        b: strengths of V's, shape (k,), positive.
        velocity: (a, b) to (a', b'), typed by hand.
        loss: of U and V as torch tensors, as the network computes it.
        parameters: the values of what else is in the loss.
        rate: the learning rate; runs are recorded at its multiples.
        steps: how many of them.
        units: machine epsilons that a step rounds by, at most.
        seed: of the start's O.
    """

    statement: Statement
    problem: nm.BilinearProblem
    a: Array
    b: Array
    velocity: Callable[[Array, Array], tuple[Array, Array]]
    loss: Callable[..., Any]
    rate: float
    steps: int
    units: int
    seed: int
    parameters: Mapping[str, Array] = field(default_factory=dict[str, Array])

    def modes(self, route: Route) -> Verdict:
        """Each mode against its equation."""
        run = self.run(route, self.start)
        tolerance, because = self._uncertain(route, run)
        predicted = self._predicted(self._integrated if route == "flow" else self._stepped)
        result = compare(run, predicted, tolerance=tolerance, because=because)
        scope = f"modes of {run.source} against their equations"
        return of_comparison(_evidence(route), result, scope, seed=self.seed)

    def mixing(self, route: Route) -> Verdict:
        """What is off the diagonal of Pᵀ Q R, against the same from a start that is not aligned."""
        scale = float(np.sqrt(np.mean(self.a * self.b)))
        apart = nm.gaussian(self.problem, scale=scale, width=len(self.a), seed=self.seed)
        run = self.run(route, self.start)
        tolerance, because = self._uncertain(route, run)
        return judge(
            _evidence(route),
            measured=float(run.mixing().max()),
            predicted=0.0,
            tolerance=tolerance,
            because=because,
            scope=f"largest off-diagonal entry of Pᵀ Q R in {run.source}",
            nulls={"a start that is not aligned": float(self.run(route, apart).mixing().max())},
            seed=self.seed,
        )

    @property
    def start(self) -> nm.Factors:
        """The aligned start."""
        return nm.aligned(self.problem, self.a, self.b, width=len(self.a), seed=self.seed)

    @property
    def times(self) -> Array:
        """When runs are recorded."""
        return np.arange(self.steps + 1, dtype=np.float64) * self.rate

    def run(self, route: Route, start: nm.Factors) -> nm.Trajectory:
        """A run from a start by one of the routes."""
        flat, noise = _flat(start.U, start.V), self.steps * self.units * EPSILON
        match route:
            case "flow":
                states, noise = self._integrated(self._derived(start), flat)
            case "steps":
                states, noise = self._stepped(self._derived(start), flat)
            case "network":
                states = self._network(start)
        U, V = states[:, : start.U.size], states[:, start.U.size :]
        return nm.Trajectory.from_arrays(
            self.times,
            U.reshape(-1, *start.U.shape),
            V.reshape(-1, *start.V.shape),
            problem=self.problem,
            source=SOURCES[route],
            stats={"noise": noise},
        )

    def _derived(self, start: nm.Factors) -> Callable[[Array], Array]:
        """The velocity of U and V, flat, lowered from the derived flow."""
        setting = self.statement.setting
        flow = nm.GradientFlow(setting.abbreviations["L"], ["U", "V"], setting=setting)
        lowered = lower(flow, {"T": self.problem.target, **self.parameters})
        cut = start.U.size

        def velocity(flat: Array) -> Array:
            state = (flat[:cut].reshape(start.U.shape), flat[cut:].reshape(start.V.shape))
            return np.concatenate([part.ravel() for part in lowered(state)])

        return velocity

    def _network(self, start: nm.Factors) -> Array:
        import torch

        factors = [torch.tensor(part.copy(), requires_grad=True) for part in (start.U, start.V)]
        optimiser = torch.optim.SGD(factors, lr=self.rate)
        states = [_flat(start.U, start.V)]
        with load_script(folder("proofs") / "_threads.py").one_thread():
            for _ in range(self.steps):
                optimiser.zero_grad()
                self.loss(*factors).backward()
                optimiser.step()
                states.append(_flat(*(part.detach().numpy() for part in factors)))
        return np.array(states)

    def _predicted(self, follow: Callable[..., tuple[Array, float]]) -> nm.Trajectory:
        """The modes by the equations typed by hand."""

        def velocity(flat: Array) -> Array:
            return _flat(*self.velocity(*np.split(flat, 2)))

        states, _ = follow(velocity, _flat(self.a, self.b))
        a, b = np.split(states[:, None, :], 2, axis=2)
        frame, k = self.problem.svd, len(self.a)
        return nm.Trajectory.from_arrays(self.times, frame.P[:, :k] * a, frame.R[:, :k] * b)

    def _integrated(self, velocity: Callable[[Array], Array], start: Array) -> tuple[Array, float]:
        """States at the times, and the integrator's tolerance times its evaluations."""
        run = solve_ivp(
            lambda _, flat: velocity(flat),
            (0, self.times[-1]),
            start,
            "DOP853",
            self.times,
            rtol=RTOL,
            atol=RTOL / 1000,
        )
        return run.y.T, run.nfev * RTOL

    def _stepped(self, velocity: Callable[[Array], Array], start: Array) -> tuple[Array, float]:
        """States after each step of descent, and their rounding."""
        states = [start]
        for _ in range(self.steps):
            states.append(states[-1] + self.rate * velocity(states[-1]))
        return np.array(states), self.steps * self.units * EPSILON

    def _uncertain(self, route: Route, run: nm.Trajectory) -> tuple[float, str]:
        """What an entry of Pᵀ Q R may be off by, and why.

        An error in a factor grows at most like the factors do while they rise from the start's
        saddle, by less than s₁/c₀; an entry is made of two factors.
        """
        growth = float(self.problem.svd.s[0] / np.min(self.a * self.b)) ** 2
        noise = float(run.stats["noise"]) * growth
        if route == "flow":
            return noise, "the integrator's rtol for each evaluation, grown as modes rise, (s₁/c₀)²"
        return noise, f"rounding, {self.units} units a step, grown as modes rise, (s₁/c₀)²"


def _evidence(route: Route) -> Literal["simulation", "training"]:
    return "training" if route == "network" else "simulation"


def _flat(*parts: Array) -> Array:
    return np.concatenate([part.ravel() for part in parts])

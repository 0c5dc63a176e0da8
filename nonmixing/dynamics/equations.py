"""The equations of a problem as NumPy functions: its flow, loss, factors and conserved quantities.

All of them are lowered from one text, the problem's parameterisation; the flow is derived from the
loss by the prover. Each takes the variables' values in order, one state or a stack (..., ·, ·).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from nonmixing.algebra.claimfile import load_scope
from nonmixing.algebra.node import Expr
from nonmixing.algebra.text import parse
from nonmixing.arrays import Array
from nonmixing.dynamics.lower import lowered, velocities
from nonmixing.flow import GradientFlow
from nonmixing.parameterisation import Parameterisation
from nonmixing.problem import BilinearProblem

Function: TypeAlias = Callable[[Sequence[Array]], tuple[Array, ...]]


@dataclass(frozen=True)
class DerivedFlow:
    """What a parameterisation says, as expressions of the prover.

    Attributes:
        flow: The gradient flow of the loss.
        velocities: Of the variables at learning rate 1, derivatives taken.
        factors: The left and the right factor of Q.
        invariants: What the flow conserves (without weight decay).
    """

    flow: GradientFlow
    velocities: tuple[Expr, ...]
    factors: tuple[Expr, Expr]
    invariants: tuple[Expr, ...]


def derive(
    parameterisation: Parameterisation, *, decay: bool = False, rate: bool = False
) -> DerivedFlow:
    """Derive the flow of a parameterisation from its loss.

    Args:
        parameterisation: The variables and the loss L.
        decay: Add (decay/2) ‖X‖² for each variable X.
        rate: Add (eta/4) Σ rate_X ‖grad(L, X)‖², so that the flow follows gradient descent with
            learning rates eta · rate_X to second order [Barrett and Dherin 2021, eq. 5, whose h is
            the learning rate; with unequal ones the norm of the gradient is weighted by them].
    """
    model = parameterisation
    document = json.dumps(model.document())
    factors = (model.left, model.right)
    return _derive(document, tuple(model.variables), factors, model.invariants, decay, rate)


@cache
def _derive(
    document: str,
    variables: tuple[str, ...],
    factors: tuple[str, str],
    invariants: tuple[str, ...],
    decay: bool,
    rate: bool,
) -> DerivedFlow:
    """The same from text alone, on which the flow depends: derived once for each text."""
    scope = load_scope(json.loads(document), "parameterisation")
    loss = "L"
    if decay:
        loss += " + decay / 2 * (" + " + ".join(f"norm2({X})" for X in variables) + ")"
    if rate:
        slopes = [f"rate_{X} * norm2(grad({loss}, {X}))" for X in variables]
        loss += " + eta / 4 * (" + " + ".join(slopes) + ")"

    def read(text: str) -> Expr:
        return parse(text, scope, "parameterisation")

    flow = GradientFlow(read(loss), variables, setting=scope.setting)
    left, right = map(read, factors)
    return DerivedFlow(flow, velocities(flow), (left, right), tuple(map(read, invariants)))


@dataclass(frozen=True)
class Equations:
    """A problem in NumPy.

    Attributes:
        velocity: The variables' velocities.
        loss: The problem's loss, weight decay included, one entry (..., 1, 1).
        factors: The left (..., m, r) and the right (..., n, r) factor of Q.
        invariants: What is conserved where there is no weight decay; with it, and learning rates
            that are all η, each falls as exp(−2 η decay t).
    """

    velocity: Function
    loss: Function
    factors: Function
    invariants: Function


def equations(problem: BilinearProblem, rate: float = 0.0) -> Equations:
    """The equations of a problem; with a learning rate, those of the flow of its descent."""
    model = problem.parameterisation
    moving = derive(model, decay=problem.decay > 0, rate=rate > 0)
    still = derive(model, decay=problem.decay > 0)
    velocity = _numpy(problem, moving.flow, moving.velocities, rate)
    steps = problem.rates

    def scaled(state: Sequence[Array]) -> tuple[Array, ...]:
        return tuple(step * part for step, part in zip(steps, velocity(state), strict=True))

    return Equations(
        velocity if set(steps) == {1.0} else scaled,
        _numpy(problem, still.flow, (still.flow.loss,)),
        operator_factors(problem),
        conserved_quantities(problem),
    )


def operator_factors(problem: BilinearProblem) -> Function:
    """From a problem's variables to the factors of its operator; the target is not touched."""
    derived = derive(problem.parameterisation)
    return _numpy(problem, derived.flow, derived.factors)


def conserved_quantities(problem: BilinearProblem) -> Function:
    """From a problem's variables to what its plain flow conserves; the target is not touched."""
    derived = derive(problem.parameterisation)
    return _numpy(problem, derived.flow, derived.invariants)


def _numpy(
    problem: BilinearProblem, flow: GradientFlow, expressions: Sequence[Expr], rate: float = 0.0
) -> Function:
    """Expressions in NumPy, with the numbers that they need, and only those.

    A target in factors is multiplied out only if it is needed, and variables in coordinates need
    not fit constants that are not.
    """
    model = problem.parameterisation
    used = {name for expression in expressions for name in expression.names}
    rates = dict(zip(model.variables, problem.rates, strict=True))
    numbers: dict[str, Array | float] = {
        "decay": problem.decay,
        "eta": rate,
        **{f"rate_{name}": value for name, value in rates.items()},
        **model.values,
    }
    needed = {name: value for name, value in numbers.items() if name in used}
    if "T" in used:
        needed["T"] = problem.target
    return lowered(flow, expressions, needed)

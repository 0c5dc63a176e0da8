"""What one step of training changes, to first order in the learning rate.

A witness of flow equations that takes no limit. After one step of gradient descent the factors are
linear in the learning rate η, so that anything polynomial in the factors is a polynomial in η, of
known degree. Its values at a few rates give the slope at η = 0, which is the velocity that gradient
flow would have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nonmixing.errors import InputError
from nonmixing.networks.train import train
from nonmixing.problem import Array, BilinearProblem, Factors


@dataclass(frozen=True, eq=False)
class Slope:
    """A slope at learning rate zero.

    Attributes:
        value: the slope, in the quantity's shape.
        rounding: bound on the norm of its rounding error.
    """

    value: Array
    rounding: float


def first_step(
    problem: BilinearProblem,
    start: Factors,
    quantity: Callable[[Factors], ArrayLike],
    *,
    degree: int,
    rate: float,
) -> Slope:
    """The derivative of a quantity after one step of `train` in its learning rate, at rate zero.

    Args:
        problem: the problem to train on.
        start: the state before the step, U (m, r) and V (n, r).
        quantity: a polynomial in the factors; any shape.
        degree: its degree in the factors.
        rate: the largest learning rate used.

    Returns:
        The slope, exact but for rounding.

    Raises:
        InputError: a degree below one or a rate that is not positive.
    """
    if degree < 1 or not rate > 0:
        raise InputError(
            f"first_step: got degree {degree} and rate {rate}; expected degree ≥ 1, rate > 0"
        )
    rates = rate * np.arange(degree + 1) / degree
    states = [
        start,
        *(train(problem, start, rate=float(h), steps=1).factors(-1) for h in rates[1:]),
    ]
    values = np.array([np.asarray(quantity(state), dtype=np.float64) for state in states])
    # Row 1 of the inverse Vandermonde matrix: the weights whose sum over the values is the slope.
    scaled = np.linalg.inv(np.vander(rates / rate, increasing=True))[1] / rate
    unit = float(np.finfo(np.float64).eps) * max(*problem.shape, start.width, degree + 1)
    sizes = np.array([np.linalg.norm(value) for value in values])
    # Forming a value rounds relative to the factors it is made of, not to itself.
    largest = max(
        float(np.linalg.norm(state.U)) ** 2 + float(np.linalg.norm(state.V)) ** 2
        for state in states
    )
    rounding = 8 * unit * float(np.abs(scaled) @ np.maximum(sizes, largest))
    slope = np.asarray(np.tensordot(scaled, values, axes=1), dtype=np.float64)
    return Slope(slope, rounding)

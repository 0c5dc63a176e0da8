"""Closed forms of the gradient flow U' = −E V − d U, V' = −EᵀU − d V, E = U Vᵀ − target.

Two families of starts have one:

- aligned starts, where the flow falls apart into one pair of numbers for each singular mode:
  `nonmixing.dynamics.mode_laws` (ledger M4, M5; D9 with weight decay d);
- balanced and λ-balanced starts, UᵀU − VᵀV = λI, where it is a matrix Riccati equation:
  `nonmixing.dynamics.riccati` (ledger M8 and M9). A width of 1 is always one of these.

Two learning rates are absorbed: with η = √(η_U η_V) the factors U/√η_U and V/√η_V follow, in the
time η² t, the flow with the target divided by η (ledger F9).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from nonmixing.dynamics.mode_laws import mode_factors
from nonmixing.dynamics.riccati import Coordinates, Spectrum, evolve
from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError, NoClosedForm, ShapeError
from nonmixing.problem import Array, BilinearProblem, Factors

ALIGNED_UNITS: Final = 8
"""What counts as rounding when a start is held to be aligned, in units of max(m, n, r) ε ‖[U; V]‖.
An entry of PᵀU, a sum of m products, is off by about one unit; U and P come with errors of their
own. A part of a mode below this is taken as zero, so it must not be larger than it has to be."""

BALANCED_UNITS: Final = 256
"""The same when a start is held to be balanced. Fresh starts are within one unit; states that a
flow has carried have more, as rounding grows with the modes. Nothing larger is let through: the
flow amplifies an imbalance without bound, and it would be neglected silently."""

EQUAL_UNITS: Final = 2
"""Singular values closer than this, in units of max(m, n) ε s₁, are taken as equal (and as 0, if
they are that close to it): their computed difference is rounding, and late it would decide alone
which of them is learned."""


def solve(problem: BilinearProblem, start: Factors, times: ArrayLike) -> Trajectory:
    """The exact gradient flow of ½‖U Vᵀ − target‖²_F + (d/2)(‖U‖² + ‖V‖²) from a start that has one.

    Args:
        problem: The problem, target (m, n), decay d, rates.
        start: The state at time 0, U (m, r) and V (n, r), any r.
        times: Shape (K,), increasing, from 0 on; the last may be infinity, which gives the limit.

    Returns:
        A trajectory in coordinates: `left` holds P and what U has outside it, `right` the same for
        R and V. Its source names the closed form, "exact: M4" (aligned, every a_i² = b_i²), "M5"
        (aligned), "D9" (as M4, with decay), "M8" (balanced, with decay or without) or "M9"
        (λ-balanced). Its factors are one representative, up to one rotation on the right: compare
        U Vᵀ, U Uᵀ and V Vᵀ. Work and accuracy do not depend on how late the times are.

        Its stats hold the relative deviations from aligned and balanced, λ as "imbalance constant",
        and "neglected": the largest part of the start, relative to the whole, that is within its
        rounding and was taken as zero, since the flow would make something of it otherwise. Such
        parts are a_i ± b_i of an aligned start, and else a direction of the columns of [U; V], what
        lies outside P or R, and a growing eigenvector's row.

    Raises:
        NoClosedForm: The start is not aligned with the singular vectors of `problem.svd`, nor
            balanced or λ-balanced; or decay meets an imbalance or two different rates. The message
            says by how much; `integrate` takes it.
        InputError: Times that are negative, do not increase, or are not numbers.
        ShapeError: A start that does not fit the target.
    """
    start.check(problem)
    grid = _times(times)
    scaled = _Scaled.of(problem)
    posed = Factors(start.U / scaled.left_root, start.V / scaled.right_root)
    unit = float(np.finfo(np.float64).eps) * max(*problem.shape, start.width)
    found = _coordinates(problem, posed, ALIGNED_UNITS * unit)
    balance = _balance(posed, unit)
    misalignment = _misalignment(found)
    if misalignment <= ALIGNED_UNITS * unit:
        states, form, lost = _aligned_flow(scaled, found, ALIGNED_UNITS * unit, grid)
    elif min(balance.deviation, balance.deviation_from_constant) <= BALANCED_UNITS * unit:
        even = balance.deviation <= BALANCED_UNITS * unit
        states, lost = _riccati_flow(
            scaled, found, 0.0 if even else balance.constant, ALIGNED_UNITS * unit, grid
        )
        form = "M8" if even else "M9"
    else:
        raise NoClosedForm(_refusal(posed, balance, misalignment, unit))
    stats = {
        "imbalance": balance.deviation,
        "imbalance constant": balance.constant if form == "M9" else 0.0,
        "misalignment": misalignment,
        "neglected": max(lost, found.neglected),
    }
    return Trajectory.from_arrays(
        grid,
        np.concatenate([states.left, states.left_rest], axis=1) * scaled.left_root,
        np.concatenate([states.right, states.right_rest], axis=1) * scaled.right_root,
        problem=problem,
        source=f"exact: {form}",
        stats=stats,
        left=found.left_basis,
        right=found.right_basis,
    )


def _times(times: ArrayLike) -> Array:
    """The times, checked; the last may be infinity."""
    grid = np.array(times, np.float64)
    return grid

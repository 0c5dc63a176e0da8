"""Closed forms of the gradient flow U' = −E V − d U, V' = −EᵀU − d V, E = U Vᵀ − target.

Two families of starts have one:

- aligned starts, where the flow falls apart into one pair of numbers for each singular mode:
  `nonmixing.dynamics.mode_laws` (ledger M4, M5; D9 with weight decay d);
- balanced and λ-balanced starts, UᵀU − VᵀV = λI, where it is a matrix Riccati equation:
  `nonmixing.dynamics.riccati` (ledger M8 and M9). A width of 1 is always one of these.

Two layers, and an adapter of a frozen matrix, are the same under other names. Three layers and more
have one where they are aligned and balanced: `nonmixing.dynamics.layered` (ledger M14).

Two learning rates are absorbed: with η = √(η_U η_V) the factors U/√η_U and V/√η_V follow, in the
time η² t, the flow with the target divided by η (ledger F9).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from nonmixing.dynamics.alignment import Alignment, read_alignment
from nonmixing.dynamics.equations import operator_factors
from nonmixing.dynamics.layered import layered_flow
from nonmixing.dynamics.mode_laws import mode_factors
from nonmixing.dynamics.posing import Balance, Posed
from nonmixing.dynamics.riccati import Coordinates, Spectrum, evolve
from nonmixing.dynamics.trajectory import Trajectory, flow_times
from nonmixing.errors import NoClosedForm
from nonmixing.problem import Array, BilinearProblem, Factors, State, checked_problem

ALIGNED_UNITS: Final = 8
"""What counts as rounding when a start is held to be aligned, in units of max(m, n, r) ε ‖[U; V]‖.
An entry of PᵀU, a sum of m products, is off by about one unit; U and P come with errors of their
own. A part of a mode below this is taken as zero, so it must not be larger than it has to be."""

BALANCED_UNITS: Final = 256
"""The same when a start is held to be balanced. Fresh starts are within one unit; states that a
flow has carried have more, as rounding grows with the modes. Nothing larger is let through: the
flow amplifies an imbalance without bound, and it would be neglected silently."""


def solve(problem: BilinearProblem, start: State, times: ArrayLike) -> Trajectory:
    """The exact gradient flow of ½‖U Vᵀ − target‖² + (d/2)(‖U‖² + ‖V‖²), where that is known.

    Args:
        problem: The problem, target (m, n), decay d, rates; of two factors, an adapter, or layers.
        start: The state at time 0: U (m, r) and V (n, r), any r; of an adapter or of layers the
            variables by name.
        times: Shape (K,), increasing, from 0 on; the last may be infinity, which gives the limit.

    Returns:
        A trajectory in coordinates: `left` holds P and what U has outside it, `right` the same for
        R and V. Its source names the closed form, "exact: M4" (aligned, every a_i² = b_i²), "M5"
        (aligned), "D9" (as M4, with decay), "M8" (balanced, with decay or without), "M9"
        (λ-balanced) or "M14" (three layers or more, aligned and balanced). Its factors are one
        representative, up to one rotation on the right: compare U Vᵀ, U Uᵀ and V Vᵀ. Work and
        accuracy do not depend on how late the times are. A start that is near one that ends on a
        saddle leaves the saddle, as its flow does; where the distance is its own rounding the time
        of that is rounding's too (a balanced start with m = n = r and det Q of the other sign than
        the target's is such a start).

        Its stats hold the relative deviations from aligned and balanced, λ as "imbalance constant",
        and "neglected": the largest part of the start, relative to the whole, that is within its
        rounding and was taken as zero, since the flow would make something of it otherwise. Such
        parts are a_i ± b_i of an aligned start, and else a direction of the columns of [U; V], what
        lies outside P or R, and the row of an eigenvector.

    Raises:
        NoClosedForm: The start is not aligned with singular vectors of the target, nor
            balanced or λ-balanced; or decay meets an imbalance or two different rates; or three
            layers or more are not both aligned and balanced, have a mode below 0, decay, or
            different rates; or the parameterisation has no closed form. The message says by how
            much; `integrate` takes it.
        InputError: Times that are negative, do not increase, or are not numbers; no problem, or no
            state for a start.
        ShapeError: A start that does not fit the target.
    """
    model = checked_problem(problem).parameterisation
    grid = flow_times("times", times, limit=True)
    variables = problem.variables(start)
    if model.entry == "F7" and len(variables) > 2:
        return _layers(problem, start, variables, grid)
    if model.entry in ("F7", "F12"):
        return _renamed(problem, variables, grid)
    if model.entry != "F1":
        raise NoClosedForm(
            f"problem: {model.name} has no closed form here; call integrate(problem, start, times)"
        )
    return _two_factors(problem, Factors(*variables.values()), grid)


def _layers(
    problem: BilinearProblem, start: State, variables: Mapping[str, Array], times: Array
) -> Trajectory:
    """Three layers or more."""
    sizes = (size for layer in variables.values() for size in layer.shape)
    rounding = ALIGNED_UNITS * float(np.finfo(np.float64).eps) * max(sizes)
    flow = layered_flow(problem, variables, times, rounding)
    U, V = operator_factors(problem)(tuple(flow.variables.values()))
    return Trajectory(
        times,
        U,
        V,
        problem,
        "exact: M14",
        stats=flow.stats,
        left=flow.left,
        right=flow.right,
        variables=flow.variables,
        dense=partial(solve, problem, start),
        own=True,
    )


def _renamed(problem: BilinearProblem, variables: Mapping[str, Array], times: Array) -> Trajectory:
    """Two layers, or an adapter: two factors, of which one is transposed, and a target less Q₀."""
    model, names = problem.parameterisation, tuple(variables)
    adapter = bool(model.offset)
    left, right = names if adapter else names[::-1]
    target = problem.target - model.values[model.offset] if adapter else problem.svd
    rates = dict(zip(names, problem.rates, strict=True))
    inner = BilinearProblem(target, decay=problem.decay, rates=(rates[left], rates[right]))
    factors = Factors(variables[left], variables[right].T)

    def named(asked: Array) -> Trajectory:
        run = solve(inner, factors, asked)
        stacks = {left: run.U, right: np.swapaxes(run.V, 1, 2)}
        return replace(
            run,
            problem=problem,
            variables={name: stacks[name] for name in names},
            dense=named,
            own=True,
        )

    return named(times)


def _two_factors(problem: BilinearProblem, start: Factors, grid: Array) -> Trajectory:
    """The operator U Vᵀ."""
    unit = float(np.finfo(np.float64).eps) * max(*problem.shape, start.width)
    rounding, tolerance = ALIGNED_UNITS * unit, BALANCED_UNITS * unit
    posed = Posed.of(problem, start, rounding)
    balance = Balance.of(posed.start, unit)
    even = balance.deviation <= tolerance
    reading = read_alignment(posed, rounding, turned=not even)
    if reading.deviation <= rounding:
        form, states, lost = _aligned_flow(posed, reading, rounding, grid)
        bases, constant = (reading.left, reading.right), 0.0
    else:
        if not even and (balance.deviation_from_constant > tolerance or problem.decay > 0):
            raise NoClosedForm(_refusal(problem, balance, reading.deviation, unit))
        form, constant = ("M8", 0.0) if even else ("M9", balance.constant)
        states, lost = _riccati_flow(posed, constant, rounding, grid)
        bases = posed.left, posed.right
    for factor, rate in zip(states, problem.rates, strict=True):
        factor *= np.sqrt(rate)
    return Trajectory(
        grid,
        *states,
        problem,
        f"exact: {form}",
        stats={
            "imbalance": balance.deviation,
            "imbalance constant": constant,
            "misalignment": reading.deviation,
            "neglected": lost,
        },
        left=bases[0],
        right=bases[1],
        dense=partial(solve, problem, start),
        own=True,
    )


def _refusal(problem: BilinearProblem, balance: Balance, misalignment: float, unit: float) -> str:
    """Why no closed form holds, in one line."""
    eta_U, eta_V = problem.rates
    even = eta_U == eta_V
    unscaled = eta_U if even else 1.0  # the balance is that of U/√η_U and V/√η_V
    gap = "UᵀU − VᵀV" if even else "UᵀU/η_U − VᵀV/η_V"
    constant = unscaled * balance.constant
    rates = "" if even else f" with the rates η_U = {eta_U:.3g} and η_V = {eta_V:.3g}"
    decay = (
        f"; with decay {problem.decay:.3g} the imbalance shrinks, and λ = "
        f"{constant:.3g} would have to be 0"
        if problem.decay > 0
        else f", nor λ-balanced, {gap} = λI with λ = {constant:.3g} (relative "
        f"deviation {balance.deviation_from_constant:.2g})"
    )
    return (
        f"start: no closed form holds for it: it is not balanced, ‖{gap}‖_F = "
        f"{unscaled * balance.norm:.3g}{rates} (relative deviation {balance.deviation:.2g}, at "
        f"most {BALANCED_UNITS * unit:.1g} is rounding){decay}, nor aligned with the target's "
        f"singular modes (relative deviation {misalignment:.2g}, at most "
        f"{ALIGNED_UNITS * unit:.1g}); call integrate(problem, start, times), or start from "
        "balanced(problem, ...)"
    )


def _aligned_flow(
    posed: Posed, reading: Alignment, rounding: float, times: Array
) -> tuple[str, tuple[Array, Array], float]:
    """The closed form's name, the states in the reading's bases, and the part taken as zero."""
    state, frame = reading.state, reading.frame
    a, b = np.sum(state.left * frame, axis=1), np.sum(state.right * frame, axis=1)
    p, q, lost = a + b, a - b, rounding * posed.size
    small_p, small_q = np.abs(p) <= lost, np.abs(q) <= lost
    even = small_p | small_q
    if posed.decay > 0 and not even.all():
        worst = int(np.argmax(np.abs(p * q) * ~even))
        raise NoClosedForm(
            "start: with decay an aligned start must be balanced; a² − b² = "
            f"{np.sqrt(posed.speed) * p[worst] * q[worst]:.3g} in mode {worst}, and the decay "
            "makes it shrink; call integrate(problem, start, times)"
        )
    # Where neither is small a and b are kept as they are, to the last digit.
    middle_p, middle_q = np.where(small_p, 0.0, p) / 2, np.where(small_q, 0.0, q) / 2
    a, b = np.where(even, middle_p + middle_q, a), np.where(even, middle_p - middle_q, b)
    a_t, b_t = mode_factors(reading.s, a, b, posed.speed * times, decay=posed.decay)
    form = "D9" if posed.decay > 0 else "M4" if even.all() else "M5"
    states = (
        (a_t[:, :, None] * frame)[:, reading.left_modes],
        (b_t[:, :, None] * frame)[:, reading.right_modes],
    )
    dropped = np.concatenate([np.abs(p[small_p]), np.abs(q[small_q])]).max(initial=0.0)
    share = float(dropped) / posed.size if posed.size > 0 else 0.0
    return form, _padded(states, reading), max(share, reading.neglected)


def _padded(states: tuple[Array, Array], reading: Alignment) -> tuple[Array, Array]:
    """The states with zero rows for the columns of the bases that are no modes."""
    U, V = (
        np.pad(part, ((0, 0), (0, basis.shape[1] - part.shape[1]), (0, 0)))
        for part, basis in zip(states, (reading.left, reading.right), strict=True)
    )
    return U, V


def _riccati_flow(
    posed: Posed, constant: float, rounding: float, times: Array
) -> tuple[tuple[Array, Array], float]:
    """The states from a balanced or λ-balanced start, and the part taken as zero."""
    state, lost = posed.state, rounding * posed.size
    _, sizes, basis = np.linalg.svd(state.stacked, full_matrices=False)
    kept = sizes > lost
    turn = basis[kept]
    rests = (len(state.left_rest), len(state.right_rest))
    spectrum = Spectrum(posed.s, constant, posed.decay, rests)
    narrow = Coordinates(*(part @ turn.T for part in state.parts))
    rows = spectrum.rows(narrow)
    lengths = np.linalg.norm(rows, axis=1)
    absent = lengths <= lost
    if absent.any():
        rows[absent] = 0.0
        narrow = spectrum.state(rows)
    states = evolve(spectrum, narrow, posed.speed * times, turn)
    dropped = max(sizes[~kept].max(initial=0.0), lengths[absent].max(initial=0.0))
    return states, max(float(dropped) / posed.size, posed.neglected)

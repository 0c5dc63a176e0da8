"""May modes be taken one by one? The independent-mode prediction beside the true flow.

The picture of non-mixing modes gives each singular mode an equation of its own. Let u and v be the
mode's rows of PᵀU and RᵀV. If no other mode were there,

    u' = (s − c) v,  v' = (s − c) u,  c = u · v,    so    c' = (s − c) (‖u‖² + ‖v‖²),

with ‖u + v‖ ‖u − v‖ = λ constant and (‖u‖² + ‖v‖²)² = λ² + 4c²: the law of ledger M3, solved by M4
and M5. (From an aligned start u and v are parallel, and |λ| = |a² − b²|.) It is exact where the
rows of different modes are orthogonal, as they are from aligned starts, and nowhere else (M1, M2).
This report says how wrong it is, and until when it is good enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import ArrayLike

from nonmixing.arrays import Array
from nonmixing.dynamics.exact import solve
from nonmixing.dynamics.integrate import integrate
from nonmixing.dynamics.mode_laws import mode_factors
from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError, NoClosedForm
from nonmixing.problem import BilinearProblem, Factors, State, checked_problem, real_number

POINTS = 201
"""Times, where none are given."""


@dataclass(frozen=True, eq=False)
class Independence:
    """The prediction of independent modes beside the truth.

    Attributes:
        truth: the flow, exact where a closed form holds, else integrated.
        predicted: strengths of the modes as if each were alone, shape (K, k).
        actual: their true strengths, shape (K, k).
        error: the largest difference of a mode at each time, relative to s₁, shape (K,).
        mixing: the largest off-diagonal entry of Pᵀ Q R, relative to s₁, shape (K,).
        tolerance: what error is allowed, relative to s₁.
        usable_until: the first time at which the error is above the tolerance, between two of the
            times by a straight line; infinity if it never is.
        exponents: for modes i, j with s_i > s_j > 0 the predicted power x_ij = 1 − s_j/s_i with
            which the peak of |C_ij| falls as a balanced start is made smaller (ledger M10); NaN
            elsewhere. Shape (k, k).
        balanced: whether the start is balanced to rounding, as M10 wants it.
    """

    truth: Trajectory
    predicted: Array
    actual: Array
    error: Array
    mixing: Array
    tolerance: float
    usable_until: float
    exponents: Array
    balanced: bool

    @property
    def usable(self) -> bool:
        """Whether the prediction may be used at all of the times."""
        return bool(np.isinf(self.usable_until))

    def lines(self) -> tuple[str, ...]:
        """The report, line by line."""
        times, end = self.truth.times, self.truth.times[-1]
        worst, most = int(np.argmax(self.error)), int(np.argmax(self.mixing))
        until = (
            f"may be used for all t up to {end:.4g}"
            if self.usable
            else f"may be used until t = {self.usable_until:.4g} (of {end:.4g})"
        )
        lines = [
            f"independent modes: {until}, to within {self.tolerance:.2g} s₁",
            f"largest error {self.error[worst]:.2g} s₁, at t = {times[worst]:.4g}; "
            f"largest mixing {self.mixing[most]:.2g} s₁, at t = {times[most]:.4g}",
            f"the truth is {self.truth.source}",
        ]
        if self.truth.status != "ok":
            lines.append(f"which {self.truth.status}")
        if np.isfinite(self.exponents).any() and self.mixing[most] > 0:
            i, j = np.unravel_index(np.nanargmin(self.exponents), self.exponents.shape)
            power = float(self.exponents[i, j])
            lines.append(
                f"{'a' if self.balanced else 'a balanced'} start ten times smaller mixes modes "
                f"{i + 1} and {j + 1} {10**power:.2g} times less: |C_ij| ~ ε^{power:.2g} (M10)"
            )
        return tuple(lines)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        first, *rest = (escape(line) for line in self.lines())
        return f"<p><b>{first}</b><br>" + "<br>".join(rest) + "</p>"


def independence(
    problem: BilinearProblem,
    start: State,
    times: ArrayLike | None = None,
    *,
    tolerance: float = 0.05,
) -> Independence:
    """How far independent modes are from the truth, and until when they may be used.

    Args:
        problem: two factors, with or without weight decay.
        start: any U (m, r) and V (n, r).
        times: shape (K,), increasing, from 0 on; by default until every mode is learned.
        tolerance: the error that is allowed, relative to the largest singular value.

    Raises:
        InputError: no problem or no state, another parameterisation, unequal rates, decay with
            modes that are not balanced, a target that is 0, or a tolerance that is not positive.
        ShapeError: a start that does not fit the target.
    """
    if checked_problem(problem).parameterisation.name != "absorbed" or len(set(problem.rates)) > 1:
        raise InputError(
            "problem: independent modes are those of two factors at one learning rate; "
            f"this one is {problem.parameterisation.name!r} with rates {problem.rates}"
        )
    allowed = real_number("tolerance", tolerance, "a positive finite number", lambda x: x > 0)
    start = Factors(*problem.variables(start).values())
    svd = problem.svd
    if svd.s[0] == 0:
        raise InputError("problem: its target is 0, which has no modes; give another target")
    left, right = svd.P.T @ start.U, svd.R.T @ start.V
    rate = problem.rates[0]
    grid = _times(svd.s, left, right) / rate if times is None else times
    try:
        truth = solve(problem, start, grid)
    except NoClosedForm:
        truth = integrate(problem, start, grid, rtol=1e-10)
    predicted = _alone(problem, left, right, rate * truth.times)
    for group in svd.subspaces:  # strengths in a subspace come sorted
        predicted[:, group] = -np.sort(-predicted[:, group], axis=1)
    actual = truth.modes()
    error = np.abs(predicted - actual).max(axis=1) / svd.s[0]
    gap = np.linalg.norm(start.imbalance) / max(float(np.linalg.norm(left) ** 2), 1e-300)
    return Independence(
        truth=truth,
        predicted=predicted,
        actual=actual,
        error=error,
        mixing=truth.mixing() / svd.s[0],
        tolerance=allowed,
        usable_until=_first_above(truth.times, error, allowed),
        exponents=_exponents(svd.s),
        balanced=bool(gap < 1e-10),
    )


def _alone(problem: BilinearProblem, left: Array, right: Array, times: Array) -> Array:
    """Every mode by its own law, as if there were no other, at times for a learning rate of 1."""
    plus, minus = (np.linalg.norm(rows, axis=1) for rows in (left + right, left - right))
    first: Array = (plus + minus) / 2
    second: Array = (plus - minus) / 2
    try:
        a_t, b_t = mode_factors(problem.svd.s, first, second, times, decay=problem.decay)
    except NoClosedForm:
        raise InputError(
            f"problem: with decay {problem.decay:.3g} a mode alone has a closed form where its two "
            "rows are equally long; give a balanced aligned start, or no decay"
        ) from None
    return np.array(a_t * b_t)


def _times(s: Array, left: Array, right: Array) -> Array:
    """Until three e-folds after the slowest mode that is not negligible is half learned."""
    size = np.maximum(np.sum(left**2, axis=1), np.sum(right**2, axis=1))
    rises = (s > 1e-3 * s[0]) & (size > 0)
    growth = np.log1p(s[rises] / np.maximum(size[rises], 1e-300))
    end = np.max((growth / 2 + 3) / s[rises], initial=3 / s[0])
    return np.linspace(0, float(end), POINTS)


def _first_above(times: Array, error: Array, tolerance: float) -> float:
    above = np.flatnonzero(error > tolerance)
    if not len(above):
        return np.inf
    k = int(above[0])
    if k == 0:
        return float(times[0])
    if np.isinf(times[k]):
        return float(times[k - 1])
    share = (tolerance - error[k - 1]) / (error[k] - error[k - 1])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))


def _exponents(s: Array) -> Array:
    """1 − s_j/s_i where s_i > s_j > 0, else NaN."""
    i, j = s[:, None], s[None, :]
    pairs = (i > j) & (j > 0)
    return np.where(pairs, 1 - j / np.where(i > 0, i, 1.0), np.nan)

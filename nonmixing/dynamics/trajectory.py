"""The one result type: what every route returns, and what a user's own recorded run becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from nonmixing.errors import InputError, ShapeError
from nonmixing.problem import Array, BilinearProblem, Factors, real_array


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Factors at increasing times, and what is read off them.

    Attributes:
        times: Shape (K,), strictly increasing; for descent the sum of the learning rates so far.
        U: Shape (K, m, r).
        V: Shape (K, n, r). Exact routes give one representative of the factors, up to a right
            rotation: compare U Vᵀ, U Uᵀ, V Vᵀ.
        problem: The problem that was run, where it is known; it fixes the modes and the loss.
        source: The route: "exact: M8", "integrated: DOP853", "trained", "recorded", ...
        status: "ok", or a line that names what went wrong and the last good time; the trajectory
            then ends at that time or before.
        stats: What the route counted and measured on its way.
    """

    times: Array
    U: Array
    V: Array
    problem: BilinearProblem | None = None
    source: str = "recorded"
    status: str = "ok"
    stats: Mapping[str, float | int | str] = field(default_factory=dict[str, float | int | str])

    def __post_init__(self) -> None:
        """Check the arrays and keep read-only copies."""
        object.__setattr__(self, "times", increasing_times("times", self.times))
        object.__setattr__(self, "U", real_array("U", self.U, 3))
        object.__setattr__(self, "V", real_array("V", self.V, 3))
        object.__setattr__(self, "stats", MappingProxyType(dict(self.stats)))
        counts = (len(self.times), len(self.U), len(self.V))
        if len(set(counts)) > 1:
            raise ShapeError(
                f"times, U and V: got {counts[0]}, {counts[1]} and {counts[2]} states; "
                "one U and one V for each time is expected"
            )
        start = self.start  # the widths of U and V are compared there
        if self.problem is not None:
            start.check(self.problem)

    @classmethod
    def from_arrays(
        cls,
        times: ArrayLike,
        U: ArrayLike,
        V: ArrayLike,
        *,
        problem: BilinearProblem | None = None,
        source: str = "recorded",
        status: str = "ok",
        stats: Mapping[str, float | int | str] | None = None,
    ) -> Trajectory:
        """A trajectory from arrays, a run recorded elsewhere for one.

        Args:
            times: Shape (K,), strictly increasing.
            U: Shape (K, m, r).
            V: Shape (K, n, r).
            problem: What was run; without it `modes`, `mixing` and `loss` must be told.
            source: Where it comes from.
            status: "ok" or a line that names what went wrong.
            stats: Numbers to keep with it.

        Raises:
            InputError: Entries that are not finite (cut a run before it diverged), or times that do
                not increase.
            ShapeError: Shapes that do not fit each other or the problem.
        """
        return cls(
            real_array("times", times, 1),
            real_array("U", U, 3),
            real_array("V", V, 3),
            problem,
            source,
            status,
            {} if stats is None else stats,
        )

    def __len__(self) -> int:
        """The number of times K."""
        return len(self.times)

    @property
    def start(self) -> Factors:
        """The first state."""
        return self.factors(0)

    def factors(self, k: int) -> Factors:
        """State k, counted from the end where k is negative.

        Raises:
            IndexError: There is no such state.
        """
        return Factors(self.U[k], self.V[k])

    def operator(self, k: int) -> Array:
        """Q = U Vᵀ (m, n) of state k, counted from the end where k is negative.

        Raises:
            IndexError: There is no such state.
        """
        return self.U[k] @ self.V[k].T

    def modes(self, problem: BilinearProblem | None = None) -> Array:
        """The strengths c_i = p_iᵀ Q r_i of the target's singular modes, shape (K, k).

        Raises:
            InputError: Neither the trajectory nor the caller names a problem.
            ShapeError: The problem's target has another shape.
        """
        left, right = self._coordinates(problem)
        return np.einsum("tir,tir->ti", left, right)

    def mixing(self, problem: BilinearProblem | None = None) -> Array:
        """The largest |off-diagonal entry| of C = Pᵀ Q R at each time, shape (K,); 0 where k = 1.

        Raises:
            InputError: Neither the trajectory nor the caller names a problem.
            ShapeError: The problem's target has another shape.
        """
        left, right = self._coordinates(problem)
        crossed = left @ np.swapaxes(right, 1, 2)
        diagonal = np.eye(crossed.shape[1], dtype=np.bool_)
        return np.where(diagonal, 0.0, np.abs(crossed)).max(axis=(1, 2))

    def loss(self, problem: BilinearProblem | None = None) -> Array:
        """½‖U Vᵀ − target‖²_F at each time, shape (K,).

        Raises:
            InputError: Neither the trajectory nor the caller names a problem.
            ShapeError: The problem's target has another shape.
        """
        target = self._posed(problem).target
        # One operator at a time: all at once is K m n numbers.
        errors = (self.operator(k) - target for k in range(len(self)))
        return np.array([0.5 * float(np.sum(error**2)) for error in errors])

    def imbalance(self) -> Array:
        """‖UᵀU − VᵀV‖_F at each time, shape (K,)."""
        gap = np.swapaxes(self.U, 1, 2) @ self.U - np.swapaxes(self.V, 1, 2) @ self.V
        return np.sqrt(np.sum(gap**2, axis=(1, 2)))

    def _posed(self, problem: BilinearProblem | None) -> BilinearProblem:
        """The problem to measure against."""
        posed = self.problem if problem is None else problem
        if posed is None:
            raise InputError(
                f"problem: this trajectory ({self.source}) was made without one, and it is the "
                "target that fixes modes and loss; pass problem="
            )
        self.start.check(posed)
        return posed

    def _coordinates(self, problem: BilinearProblem | None) -> tuple[Array, Array]:
        """PᵀU and RᵀV at each time, shapes (K, k, r)."""
        svd = self._posed(problem).svd
        return svd.P.T @ self.U, svd.R.T @ self.V


def increasing_times(name: str, times: ArrayLike) -> Array:
    """The times as a checked, read-only array (K,).

    Raises:
        InputError: Empty, not finite, or not strictly increasing.
        ShapeError: Not one axis.
    """
    checked = real_array(name, times, 1)
    stuck = np.flatnonzero(np.diff(checked) <= 0)
    if len(stuck):
        k = int(stuck[0])
        raise InputError(
            f"{name}: {checked[k]:.6g} is followed by {checked[k + 1]:.6g} (entry {k + 1}); "
            "strictly increasing times are expected, sort them and drop repeats"
        )
    return checked


def flow_times(name: str, times: ArrayLike) -> Array:
    """Increasing times at which a flow that starts at time 0 can be asked.

    Raises:
        InputError: As `increasing_times`, or negative.
        ShapeError: Not one axis.
    """
    checked = increasing_times(name, times)
    if checked[0] < 0:
        raise InputError(
            f"{name}: begins at {checked[0]:.6g}; times from 0 on are expected, since the start is "
            "the state at time 0"
        )
    return checked

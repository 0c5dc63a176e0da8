"""The one result type: what every route returns, and what a user's own recorded run becomes."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from nonmixing.arrays import orthonormal_columns
from nonmixing.dynamics.equations import conserved_quantities, equations
from nonmixing.dynamics.interaction import Interaction
from nonmixing.dynamics.reduce import lifted, reduced, restricted
from nonmixing.errors import InputError, MissingExtra, ShapeError
from nonmixing.problem import (
    Array,
    BilinearProblem,
    Factors,
    State,
    checked_problem,
    described,
    real_array,
    real_number,
)

Stats: TypeAlias = Mapping[str, float | int | str]

_WRITTEN: Final = ("times", "U", "V", "source", "status", "stats", "left", "right", "variables")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Factors at increasing times, and what is read off them.

    Attributes:
        times: Shape (K,), strictly increasing; for descent the sum of the learning rates so far.
        U: Shape (K, m, r), the left factor of the operator.
        V: Shape (K, n, r), the right one. Exact routes give one representative of the factors, up
            to a right rotation: compare U Vᵀ, U Uᵀ, V Vᵀ.
        problem: The problem that was run, where it is known; it fixes the modes and the loss.
        source: The route: "exact: M8", "integrated: DOP853", "trained", "recorded", ...
        status: "ok", or a line that names what went wrong and the last good time; the trajectory
            then ends at that time or before.
        stats: What the route counted and measured on its way.
        left: Shape (m, p), orthonormal columns. Where it is given, `U` (K, p, r) are coordinates in
            it: the factor itself is left @ U[k].
        right: Shape (n, q), the same for `V` (K, q, r).
        variables: Where the problem's variables are not U and V: they, by name, each (K, ·, ·), in
            the same coordinates.
        dense: From times (K',) to this trajectory at those times, where the route can tell.
        own: The arrays were made for this trajectory alone: they are kept as they are, and that the
            columns of the bases are orthonormal, which costs more than a closed form, is believed.
    """

    times: Array
    U: Array
    V: Array
    problem: BilinearProblem | None = None
    source: str = "recorded"
    status: str = "ok"
    stats: Stats = field(default_factory=dict[str, float | int | str])
    left: Array | None = None
    right: Array | None = None
    variables: Mapping[str, Array] | None = None
    dense: Callable[[Array], Trajectory] | None = field(default=None, repr=False)
    own: InitVar[bool] = False

    def __post_init__(self, own: bool) -> None:
        """Check the arrays and keep read-only copies."""
        object.__setattr__(self, "times", increasing_times("times", self.times, limit=True))
        object.__setattr__(self, "U", real_array("U", self.U, 3, copy=not own))
        object.__setattr__(self, "V", real_array("V", self.V, 3, copy=not own))
        object.__setattr__(self, "stats", MappingProxyType(dict(self.stats)))
        counts = (len(self.times), len(self.U), len(self.V))
        if len(set(counts)) > 1:
            raise ShapeError(
                f"times, U and V: got {counts[0]}, {counts[1]} and {counts[2]} states; "
                "one U and one V for each time is expected"
            )
        for name, states in (("left", self.U), ("right", self.V)):
            basis: Array | None = getattr(self, name)
            if basis is not None and not own:
                object.__setattr__(self, name, _basis(name, basis, states.shape[1]))
        if self.variables is not None:
            kept = {name: real_array(name, value, 3) for name, value in self.variables.items()}
            object.__setattr__(self, "variables", MappingProxyType(kept))
        start = self.start  # the widths of U and V are compared there
        if self.problem is None:
            return
        model = checked_problem(self.problem).parameterisation
        if self.variables is None and not model.two_factors:
            raise InputError(
                f"problem: its variables are {', '.join(model.variables)} ({model.name}), of which "
                "U and V do not tell; make the trajectory with Trajectory.from_variables"
            )
        self.problem.variables(start if self.variables is None else self.state(0))

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
        stats: Stats | None = None,
        left: ArrayLike | None = None,
        right: ArrayLike | None = None,
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
            left: Shape (m, p), orthonormal columns, where U (K, p, r) are coordinates in them.
            right: Shape (n, q), the same for V (K, q, r).

        Raises:
            InputError: Entries that are not finite (cut a run before it diverged), or times that do
                not increase.
            ShapeError: Shapes that do not fit each other or the problem.
        """
        return cls(
            increasing_times("times", times, limit=True),
            real_array("U", U, 3),
            real_array("V", V, 3),
            problem,
            source,
            status,
            {} if stats is None else stats,
            None if left is None else real_array("left", left, 2),
            None if right is None else real_array("right", right, 2),
        )

    @classmethod
    def from_variables(
        cls,
        times: ArrayLike,
        variables: Mapping[str, ArrayLike],
        problem: BilinearProblem,
        *,
        source: str = "recorded",
        status: str = "ok",
        stats: Stats | None = None,
        left: Array | None = None,
        right: Array | None = None,
    ) -> Trajectory:
        """A trajectory of a problem's own variables: layers, gates, or U and V.

        Args:
            times: Shape (K,), strictly increasing.
            variables: By name, each (K, ·, ·), or (K, ·) for a column.
            problem: What was run.
            source: Where it comes from.
            status: "ok" or a line that names what went wrong.
            stats: Numbers to keep with it.
            left: Shape (m, p), orthonormal columns, where the variables are coordinates in them.
            right: Shape (n, q), likewise.

        Raises:
            InputError: Entries that are not finite, times that do not increase, another set of
                names than the problem's variables.
            ShapeError: Shapes that do not fit each other or the problem.
        """
        model = checked_problem(problem).parameterisation
        if set(variables) != set(model.variables):
            raise InputError(
                f"variables: got {', '.join(variables)}; {', '.join(model.variables)} are "
                f"expected for {model.name}"
            )
        stacks = {
            name: _stack(name, variables[name], shape) for name, shape in model.variables.items()
        }
        inner = restricted(problem, left, right)
        U, V = equations(problem if inner is None else inner).factors(tuple(stacks.values()))
        return cls(
            increasing_times("times", times, limit=True),
            U,
            V,
            problem,
            source,
            status,
            {} if stats is None else stats,
            left,
            right,
            None if model.two_factors else stacks,
        )

    def __len__(self) -> int:
        """The number of times K."""
        return len(self.times)

    @property
    def start(self) -> Factors:
        """The first state."""
        return self.factors(0)

    def factors(self, k: int) -> Factors:
        """The factors of the operator in state k, counted from the end where k is negative.

        Raises:
            IndexError: There is no such state.
        """
        k = self._place(k)
        return Factors(_lifted(self.left, self.U[k]), _lifted(self.right, self.V[k]))

    def coordinates(self, k: int) -> Factors:
        """State k in the bases `left` and `right`: U (p, r), V (q, r).

        Raises:
            IndexError: There is no such state.
        """
        k = self._place(k)
        return Factors(self.U[k], self.V[k])

    def state(self, k: int) -> State:
        """State k as the problem takes it for a start: its factors, or its variables by name.

        Raises:
            IndexError: There is no such state.
        """
        if self.variables is None or self.problem is None:
            return self.factors(k)
        k = self._place(k)
        inner = {name: value[k] for name, value in self.variables.items()}
        model = self.problem.parameterisation
        return self.problem.state(lifted(model, inner, self.left, self.right))

    def operator(self, k: int) -> Array:
        """Q (m, n) of state k, U Vᵀ and an offset if there is one; k may be negative.

        Raises:
            IndexError: There is no such state.
        """
        k = self._place(k)
        product = _lifted(self.left, self.U[k]) @ _lifted(self.right, self.V[k]).T
        offset = self._offset
        return product if offset is None else offset + product

    def at(self, time: float) -> Factors:
        """The factors at any time that the route covers, between the recorded ones too.

        Raises:
            InputError: The time is outside, or the trajectory was recorded and not at that time.
        """
        return self.resampled([real_number("time", time, "a finite number")]).factors(0)

    def resampled(self, times: ArrayLike) -> Trajectory:
        """The same trajectory at other times.

        Args:
            times: Shape (K',), increasing, within what the route covers. Integrated runs keep their
                dense output, closed forms are evaluated again; a recorded run knows only the times
                it has.

        Raises:
            InputError: Times outside, or not known to a recorded run.
        """
        asked = increasing_times("times", times)
        if self.dense is not None:
            return self.dense(asked)
        places = np.searchsorted(self.times, asked)
        known = (places < len(self)) & (self.times[np.minimum(places, len(self) - 1)] == asked)
        if not known.all():
            raise InputError(
                f"times: {asked[~known][0]:.6g} is not among the times of this trajectory "
                f"({self.source}), and nothing is known between them; ask for one of its times"
            )
        variables = self.variables
        return replace(
            self,
            times=asked,
            U=self.U[places],
            V=self.V[places],
            variables=None
            if variables is None
            else {name: value[places] for name, value in variables.items()},
        )

    def modes(self, problem: BilinearProblem | None = None) -> Array:
        """The strengths c_i = p_iᵀ Q r_i of the target's singular modes, shape (K, k).

        Where singular values are equal, single modes mean nothing: their basis is one choice of
        many. The strengths of such a subspace (`subspaces`) are then those in its own best basis,
        falling: the eigenvalues of the symmetric part of its block of Pᵀ Q R, or, where the
        singular value is 0, its singular values. They do not depend on the choice.

        Raises:
            InputError: Neither the trajectory nor the caller names a problem.
            ShapeError: The problem's target has another shape.
        """
        return self._interaction(problem).strengths()

    def subspaces(self, problem: BilinearProblem | None = None) -> tuple[tuple[int, ...], ...]:
        """The target's modes in groups of equal singular values; a single mode is a group of one.

        Raises:
            InputError: Neither the trajectory nor the caller names a problem.
            ShapeError: The problem's target has another shape.
        """
        svd = self._posed(problem).svd
        return tuple(tuple(range(len(svd.s))[group]) for group in svd.subspaces)

    def mixing(self, problem: BilinearProblem | None = None, *, relative: bool = False) -> Array:
        """The largest |off-diagonal entry| of C = Pᵀ Q R at each time, shape (K,); 0 where k = 1.

        Where singular values are equal, modes are taken by subspace: what counts is the spectral
        norm of a block between two subspaces, and inside one that of the block's skew part, which
        no choice of basis removes (nothing where the singular value is 0: there a basis always
        diagonalises the block).

        Args:
            problem: The problem to measure against; the trajectory's own by default.
            relative: Each entry C_ij relative to the smaller of |c_i| and |c_j|; 0 where the entry
                is 0 too.

        Raises:
            InputError: Neither the trajectory nor the caller names a problem.
            ShapeError: The problem's target has another shape.
        """
        return self._interaction(problem).mixing(relative=relative)

    def loss(self, problem: BilinearProblem | None = None) -> Array:
        """The problem's loss at each time, shape (K,): ½‖Q − target‖²_F, or what it declares.

        Weight decay is included.

        Raises:
            InputError: Neither the trajectory nor the caller names a problem.
            ShapeError: The problem's target has another shape.
        """
        posed = self._posed(problem)
        inner = None if posed.factored and self.left is None else self._inside(posed)
        if inner is not None:
            value = equations(inner).loss
            stacks = self._stacks(inner)
            # One state at a time: the errors of all at once are K p q numbers.
            states = ([stack[k] for stack in stacks] for k in range(len(self)))
            return np.array([float(value(state)[0][0, 0]) for state in states])
        return np.array([_single_loss(posed, self.state(k)) for k in range(len(self))])

    def imbalance(self) -> Array:
        """The Frobenius norm of what the plain flow conserves, at each time, shape (K,).

        That is ‖UᵀU − VᵀV‖_F (UᵀU/η_U − VᵀV/η_V at unequal learning rates) for two factors, its
        diagonal with gates, the differences of neighbouring layers; 0 where nothing is conserved.
        """
        gaps = self.conserved()
        return np.sqrt(sum((np.sum(gap**2, axis=(1, 2)) for gap in gaps), np.zeros(len(self))))

    def conserved(self) -> tuple[Array, ...]:
        """What the plain flow conserves, at each time, each (K, ·, ·); see `imbalance`."""
        if self.problem is None:
            return (_gram(self.U) - _gram(self.V),)
        return conserved_quantities(self.problem)(self._stacks(self.problem))

    def to_arrays(self) -> dict[str, Array]:
        """Everything numeric by name: times, U, V, and where there are any left, right, variables.

        `Trajectory.from_arrays(**run.to_arrays())` is the run of two factors again.
        """
        optional = {"left": self.left, "right": self.right}
        return {
            "times": self.times,
            "U": self.U,
            "V": self.V,
            **{name: basis for name, basis in optional.items() if basis is not None},
            **(self.variables or {}),
        }

    def to_json(self) -> str:
        """The run as JSON, numbers to the last bit; the problem is left out, as it may be large."""
        bases = {"left": self.left, "right": self.right}
        return json.dumps(
            {
                "times": self.times.tolist(),
                "U": self.U.tolist(),
                "V": self.V.tolist(),
                **{name: None if b is None else b.tolist() for name, b in bases.items()},
                "variables": None
                if self.variables is None
                else {name: value.tolist() for name, value in self.variables.items()},
                "source": self.source,
                "status": self.status,
                "stats": dict(self.stats),
            }
        )

    @classmethod
    def from_json(cls, text: str, problem: BilinearProblem | None = None) -> Trajectory:
        """The run that `to_json` wrote.

        Args:
            text: What it wrote.
            problem: What was run, for modes and loss.

        Raises:
            InputError: Not what `to_json` writes.
            ShapeError: Shapes that do not fit each other or the problem.
        """
        try:
            read: Any = json.loads(text)
            return cls(**{name: read[name] for name in _WRITTEN}, problem=problem)
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"text: not a trajectory as JSON ({type(error).__name__}: {reason}); pass what "
                "to_json returned"
            ) from error

    def to_xarray(self) -> Any:
        """The run as an `xarray.Dataset` over `time`: U, V, and what the problem makes of them.

        Raises:
            MissingExtra: xarray is not installed.
        """
        try:
            import xarray  # pyright: ignore[reportMissingImports]
        except ImportError as missing:
            raise MissingExtra(
                'to_xarray: needs xarray, which is not installed; pip install "nonmixing[data]"'
            ) from missing
        found: dict[str, tuple[Sequence[str], Array]] = {
            "U": (("time", "left", "column"), self.U),
            "V": (("time", "right", "column"), self.V),
            "imbalance": (("time",), self.imbalance()),
        }
        if self.left is not None:
            found["left_basis"] = (("row", "left"), self.left)
        if self.right is not None:
            found["right_basis"] = (("col", "right"), self.right)
        for name, value in (self.variables or {}).items():
            found[f"variable_{name}"] = (("time", f"{name}_row", f"{name}_column"), value)
        attributes: dict[str, object] = {"source": self.source, "status": self.status, **self.stats}
        if self.problem is not None:
            found["modes"] = (("time", "mode"), self.modes())
            found["mixing"] = (("time",), self.mixing())
            found["loss"] = (("time",), self.loss())
            attributes["subspaces"] = str(self.subspaces())
        dataset: Any = cast("Any", xarray).Dataset
        return dataset(found, coords={"time": self.times}, attrs=attributes)

    def _place(self, k: int) -> int:
        """The number of a state, if there is such a state."""
        try:
            place = operator.index(k)
        except TypeError:
            raise InputError(f"k: got {described(k)}; a whole number is expected") from None
        if not -len(self) <= place < len(self):
            raise IndexError(
                f"k: got {place}; this trajectory has {len(self)} states, 0 to {len(self) - 1}, or "
                f"{-len(self)} to -1 from the end"
            )
        return place

    @property
    def _offset(self) -> Array | None:
        """What the operator has beside its product, (m, n)."""
        model = None if self.problem is None else self.problem.parameterisation
        return model.values[model.offset] if model is not None and model.offset else None

    def _posed(self, problem: BilinearProblem | None) -> BilinearProblem:
        """The problem to measure against."""
        posed = self.problem if problem is None else checked_problem(problem)
        if posed is None:
            raise InputError(
                f"problem: this trajectory ({self.source}) was made without one, and it is the "
                "target that fixes modes and loss; pass problem="
            )
        rows = tuple(
            states.shape[1] if basis is None else len(basis)
            for states, basis in ((self.U, self.left), (self.V, self.right))
        )
        if rows != posed.shape:
            raise ShapeError(
                f"problem: U and V have {rows[0]} and {rows[1]} rows; {posed.shape[0]} and "
                f"{posed.shape[1]} are expected for a target of shape {posed.shape}"
            )
        return posed

    def _inside(self, posed: BilinearProblem) -> BilinearProblem | None:
        """The problem in this trajectory's bases, where they hold all of its target."""
        return restricted(posed, self.left, self.right)

    def _stacks(self, problem: BilinearProblem) -> tuple[Array, ...]:
        """The problem's variables at all times, in coordinates, in order."""
        model = problem.parameterisation
        if model.two_factors:
            return self.U, self.V
        if self.variables is None or set(self.variables) != set(model.variables):
            raise InputError(
                f"problem: its variables are {', '.join(model.variables)} ({model.name}), which "
                f"this trajectory ({self.source}) does not have"
            )
        return tuple(self.variables[name] for name in model.variables)

    def _interaction(self, problem: BilinearProblem | None) -> Interaction:
        """Pᵀ Q R at each time, as a product of PᵀU and RᵀV; m x n is never formed.

        An offset adds columns to the two: Pᵀ Q₀ R, and the identity.
        """
        svd = self._posed(problem).svd
        left = svd.P.T if self.left is None else svd.P.T @ self.left
        right = svd.R.T if self.right is None else svd.R.T @ self.right
        rows, columns = left @ self.U, right @ self.V
        offset = self._offset
        if offset is not None:
            shape = (len(self), len(svd.s), len(svd.s))
            fixed = np.broadcast_to(svd.P.T @ offset @ svd.R, shape)
            identity = np.broadcast_to(np.eye(len(svd.s)), shape)
            rows = np.concatenate([rows, fixed], axis=2)
            columns = np.concatenate([columns, identity], axis=2)
        return Interaction(rows, columns, svd)


def _single_loss(problem: BilinearProblem, state: State) -> float:
    """The loss of one state, in the smallest space that holds it and the target."""
    small = reduced(problem, state)
    variables = tuple(small.problem.variables(small.start).values())
    return float(equations(small.problem).loss(variables)[0][0, 0])


def _gram(states: Array) -> Array:
    return np.swapaxes(states, 1, 2) @ states


def _lifted(basis: Array | None, coordinates: Array) -> Array:
    """The array with these coordinates along its first axis; no basis is the identity."""
    return coordinates if basis is None else basis @ coordinates


def _stack(name: str, value: ArrayLike, shape: tuple[str, str]) -> Array:
    """A variable at all times with three axes; a column may come with two."""
    axes = 2 if shape[1] == "1" and np.ndim(value) == 2 else 3
    array = real_array(name, value, axes)
    return array[:, :, None] if axes == 2 else array


def _basis(name: str, basis: ArrayLike, columns: int) -> Array:
    """The basis, if its columns are orthonormal and as many as there are coordinates."""
    checked = real_array(name, basis, 2)
    if checked.shape[1] != columns:
        raise ShapeError(
            f"{name}: got shape {checked.shape}; {columns} columns are expected, one for each row "
            "of the coordinates"
        )
    orthonormal_columns(name, checked)
    return checked


def increasing_times(name: str, times: ArrayLike, *, limit: bool = False) -> Array:
    """The times as a checked, read-only array (K,).

    Args:
        name: What the caller calls them.
        times: Shape (K,).
        limit: Whether the last may be infinite, where the state is the limit.

    Raises:
        InputError: Empty, not finite, or not strictly increasing.
        ShapeError: Not one axis.
    """
    ends = _ends_at_infinity(times)
    if ends and not limit:
        raise InputError(
            f"{name}: ends at infinity; finite times are expected here, the limit is what "
            "solve(problem, start, times) has where a closed form holds"
        )
    checked = real_array(name, np.append(np.asarray(times)[:-1], 0.0) if ends else times, 1)
    if ends:
        checked = np.append(checked[:-1], np.inf)
        checked.setflags(write=False)
    stuck = np.flatnonzero(np.diff(checked) <= 0)
    if len(stuck):
        k = int(stuck[0])
        raise InputError(
            f"{name}: {checked[k]:.6g} is followed by {checked[k + 1]:.6g} (entry {k + 1}); "
            "strictly increasing times are expected, sort them and drop repeats"
        )
    return checked


def _ends_at_infinity(times: ArrayLike) -> bool:
    """Whether the last of the times is infinity."""
    try:
        given = np.asarray(times)
    except ValueError:  # ragged, which the check of the array says
        return False
    return given.ndim == 1 and given.size > 0 and bool(given[-1] == np.inf)


def flow_times(name: str, times: ArrayLike, *, limit: bool = False) -> Array:
    """Increasing times at which a flow that starts at time 0 can be asked.

    Args:
        name: What the caller calls them.
        times: Shape (K,).
        limit: Whether the last may be infinite.

    Raises:
        InputError: As `increasing_times`, or negative.
        ShapeError: Not one axis.
    """
    checked = increasing_times(name, times, limit=limit)
    if checked[0] < 0:
        raise InputError(
            f"{name}: begins at {checked[0]:.6g}; times from 0 on are expected, since the start is "
            "the state at time 0"
        )
    return checked

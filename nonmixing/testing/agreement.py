"""Whether two trajectories are the same run, up to a tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError, ShapeError
from nonmixing.testing.failure import refusing_at_the_call

Array = NDArray[np.float64]

SAME_TIME = 1e-12
"""Times this close, relative to the last one, are one time."""

SHOWN = 6
"""Of an operator at most this many rows and columns are shown."""


@dataclass(frozen=True)
class Agreement:
    """How far apart two trajectories are.

    Attributes:
        distance: the largest |entry of Q_a - Q_b| over all times, relative to the largest |entry|
            of Q_b.
        tolerance: what was allowed.
        nulls: the same distance with a stand-in for `b` that must not pass: `frozen`, a's start at
            all times; `slowed` and `hurried`, b on a clock of 0.8 and of 1.25.
    """

    distance: float
    tolerance: float
    nulls: Mapping[str, float]


@refusing_at_the_call
def assert_agree(
    a: Trajectory, b: Trajectory, *, tolerance: float = 1e-6, nulls: bool = True
) -> Agreement:
    """Assert that two trajectories have the same operator U Vᵀ at every time of `a`.

    Operators are compared, not factors: those are unique up to a right rotation only. Where a
    stand-in that nothing should agree with passes as well (nothing moved; the clock is off by a
    quarter), agreement would mean nothing, and the assertion fails too.

    Args:
        a: a trajectory.
        b: another one, whose times contain those of `a`.
        tolerance: the largest |entry of Q_a - Q_b| allowed, relative to the largest |entry| of Q_b.
        nulls: whether the stand-ins must fail; False for trajectories at rest.

    Returns:
        The distance, and those of the stand-ins.

    Raises:
        AssertionError: too far apart, ended early, or a stand-in passes.
        InputError: no trajectories, a time that `b` lacks, a tolerance that is not positive.
        ShapeError: operators of different shapes.
    """
    __tracebackhide__ = True
    _check(a, b, tolerance)
    for run in (a, b):
        if run.status != "ok":
            raise AssertionError(f"the trajectory {run.source!r} did not end well: {run.status}")
    left, every = _operators(a), _operators(b)
    right = every[_places(a, b)]
    scale = float(np.abs(right).max()) or 1.0
    gap = np.abs(left - right)
    distance = float(gap.max()) / scale
    stand_ins = _stand_ins(a, b, left, every) if nulls else {}
    scores = {name: float(np.abs(left - x).max()) / scale for name, x in stand_ins.items()}
    result = Agreement(distance, tolerance, scores)
    if not distance <= tolerance:
        raise AssertionError(_apart(a, b, left, right, result))
    passing = [f"{name} ({score:.3g})" for name, score in scores.items() if score <= tolerance]
    if passing:
        raise AssertionError(
            f"{a.source} and {b.source} agree ({distance:.3g}), but that says nothing: with a "
            f"tolerance of {tolerance:g} these pass as well: {', '.join(passing)}\n"
            "  use a smaller tolerance or longer times, or nulls=False for trajectories at rest"
        )
    return result


def _check(a: Trajectory, b: Trajectory, tolerance: float) -> None:
    for name, run in (("a", a), ("b", b)):
        if not isinstance(cast("object", run), Trajectory):
            raise InputError(
                f"{name}: got {type(run).__name__}; a Trajectory is expected "
                "(Trajectory.from_arrays makes one of recorded factors)"
            )
    if not (np.isfinite(tolerance) and tolerance > 0):
        raise InputError(f"tolerance: got {tolerance}; a positive finite number is expected")
    shapes = a.operator(0).shape, b.operator(0).shape
    if shapes[0] != shapes[1]:
        raise ShapeError(f"a and b: the operators are {shapes[0]} and {shapes[1]}; compare alike")


def _operators(run: Trajectory) -> Array:
    """U Vᵀ at each time, shape (K, m, n)."""
    return np.stack([run.operator(k) for k in range(len(run))])


def _places(a: Trajectory, b: Trajectory) -> NDArray[np.intp]:
    """Where the times of `a` are among those of `b`."""
    gaps = np.abs(a.times[:, None] - b.times[None, :])
    places = gaps.argmin(axis=1)
    missing = np.flatnonzero(gaps.min(axis=1) > SAME_TIME * max(1.0, float(np.abs(a.times).max())))
    if len(missing):
        raise InputError(
            f"b: has no state at t = {a.times[missing[0]]:.6g} and {len(missing) - 1} more of the "
            "times of a; evaluate it at those, or swap the two"
        )
    return places


def _stand_ins(a: Trajectory, b: Trajectory, left: Array, every: Array) -> dict[str, Array]:
    from scipy.interpolate import PchipInterpolator

    from nonmixing.compare import CLOCKS

    stand_ins = {"frozen": np.broadcast_to(left[0], left.shape)}
    if len(b) > 1:
        curve = PchipInterpolator(b.times, every, axis=0)
        for name, factor in CLOCKS.items():
            at = np.clip(factor * a.times, b.times[0], b.times[-1])
            stand_ins[name] = np.asarray(curve(at), np.float64)
    return stand_ins


def _apart(a: Trajectory, b: Trajectory, left: Array, right: Array, result: Agreement) -> str:
    gap = np.abs(left - right)
    k, i, j = (int(x) for x in np.unravel_index(int(np.nanargmax(gap)), gap.shape))
    rows = _around(i, left.shape[1])
    cols = _around(j, left.shape[2])
    corner = (k, slice(*rows), slice(*cols))
    part = "" if left[corner].shape == left.shape[1:] else f"[{_cut(rows)}, {_cut(cols)}]"
    nulls = "".join(f"  {name} {score:.3g}" for name, score in result.nulls.items())
    lines = [
        f"{a.source} (left) and {b.source} (right) disagree: {result.distance:.3g} of the largest "
        f"entry, tolerance {result.tolerance:g}",
        f"  left          U @ V.T of {a.source}",
        f"  right         U @ V.T of {b.source}",
        f"  left - right  {_brief(left[corner] - right[corner])}",
        f"  worst at      t = {a.times[k]:.6g} (state {k} of {len(a)}), entry ({i}, {j}): "
        f"{left[k, i, j]:.6g} and {right[k, i, j]:.6g}",
    ]
    if nulls:
        lines.append(f"  a stand-in for right would be off by{nulls}")
    lines += ["", f"The operators{part} there, to be pasted:", ""]
    code = [
        "import numpy as np",
        f"left = np.array({left[corner].tolist()})",
        f"right = np.array({right[corner].tolist()})",
        "print(left - right)",
    ]
    return "\n".join([*lines, *code])


def _around(index: int, size: int) -> tuple[int, int]:
    """At most `SHOWN` places with that one among them."""
    first = max(0, min(index - SHOWN // 2, size - SHOWN))
    return first, min(size, first + SHOWN)


def _cut(places: tuple[int, int]) -> str:
    return f"{places[0]}:{places[1]}"


def _brief(array: Array) -> str:
    rows = [", ".join(f"{x:.3g}" for x in row) for row in array]
    return "[" + "; ".join(rows) + "]"

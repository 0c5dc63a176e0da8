"""Trajectories and saved results to figures that read well on a projector.

A prediction (exact or integrated) is a curve, a measurement (trained or recorded) is dots, and a
mode has one colour in both. Colours run from dark to light with the number of the mode, so that
they are told apart without colour vision too, and each curve carries its number. Matplotlib is
loaded when something is drawn.
"""

# matplotlib's own annotations leave keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError
from nonmixing.problem import Array, BilinearProblem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["digits", "modes"]

PREDICTED: Final = ("exact", "integrated")
"""How the source of a predicted trajectory begins."""

MOST_MODES: Final = 10
"""Modes that are drawn when nobody says how many: more cannot be told apart."""

MOST_DOTS: Final = 32
"""Dots in one curve: more would hide the curve under them."""

TEXT: Final = 17.0
"""Font size, in points, in figures made here; in a caller's axes the caller's own size holds."""

CURVES: Final[tuple[Literal["-", "--", ":"], ...]] = ("-", "--", ":")
DOTS: Final = ("o", "s", "^")


@dataclass(frozen=True, eq=False)
class Series:
    """The modes of one route over time: what a panel is drawn from.

    Attributes:
        label: What it is, for the key.
        measured: Dots if so, else curves.
        times: Shape (K,).
        strengths: Shape (K, number of modes drawn).
    """

    label: str
    measured: bool
    times: Array
    strengths: Array


def modes(
    *trajectories: Trajectory,
    ax: Axes | None = None,
    modes: int | Sequence[int] | None = None,
) -> Axes:
    """Draw the strengths of the modes over time: predictions as curves, measurements as dots.

    Args:
        trajectories: Each drawn in its own line style or marker. One without a problem is seen in
            the modes of the first that has one.
        ax: Where to draw; a new figure by default.
        modes: How many, from the first on, or which ones (from 0); by default the first ten.

    Returns:
        The axes.

    Raises:
        InputError: No trajectory, no problem among them, or a mode that is not there.
        ShapeError: Trajectories of problems of different shapes.
    """
    problem = next((run.problem for run in trajectories if run.problem is not None), None)
    if problem is None:
        raise InputError(
            "trajectories: none has a problem, and the target fixes the modes; pass one that has"
        )
    chosen = _chosen(modes, problem)
    drawn = [
        Series(
            run.source,
            not run.source.startswith(PREDICTED),
            run.times,
            run.modes(problem)[:, chosen],
        )
        for run in trajectories
    ]
    if ax is not None:
        from matplotlib import rcParams

        return _panel(ax, drawn, chosen, float(rcParams["font.size"]))
    from matplotlib import pyplot

    _, own = pyplot.subplots(figsize=(11, 6.5), layout="constrained")
    return _panel(own, drawn, chosen, TEXT)


def digits(results: Mapping[str, Any], figure: Figure | None = None) -> Figure:
    """Draw the digits experiment from its saved results.

    Args:
        results: What `simulations/digits.py` wrote to `digits.json`.
        figure: Where to draw; a new one of 16 × 9 inches by default.

    Returns:
        The figure.
    """
    if figure is None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(16, 9), layout="constrained")
    axes = figure.subplots(2, 2)
    halves, classes = results["halves"]["cases"], results["classes"]["cases"]
    aligned, hard = halves["aligned"], classes["balanced"]
    step = {
        key: np.subtract(aligned[key], aligned["flow"]).tolist() for key in ("measured", "modified")
    }
    panels = (
        ("Aligned start: sigmoids (M4)", aligned, {"flow": "exact flow", "measured": "trained"}),
        (
            "Small unaligned start (M8)",
            halves["balanced"],
            {"flow": "exact flow", "measured": "trained"},
        ),
        (
            "What the step size adds, aligned start",
            {**step, "times": aligned["times"]},
            {"modified": "predicted", "measured": "trained"},
        ),
        (
            "Ten classes, unaligned: modes mix",
            {**hard, "independent": hard["independent"]["flow"]},
            {"flow": "exact flow (M8)", "independent": "independent (M4)", "measured": "trained"},
        ),
    )
    for ax, (title, case, labels) in zip(axes.flat, panels, strict=True):
        series = [
            Series(label, key == "measured", np.asarray(case["times"]), np.asarray(case[key]))
            for key, label in labels.items()
        ]
        _panel(ax, series, range(series[0].strengths.shape[1]), TEXT)
        ax.set_title(title, fontsize=TEXT, loc="left", weight="bold")
    axes[1, 0].set_ylabel("strength − exact flow", fontsize=TEXT)
    return figure


def _chosen(modes: int | Sequence[int] | None, problem: BilinearProblem) -> list[int]:
    """The numbers of the modes to draw, from 0."""
    available = len(problem.svd.s)
    if modes is None:
        return list(range(min(MOST_MODES, available)))
    chosen = list(range(modes)) if isinstance(modes, int) else [int(mode) for mode in modes]
    if not chosen or min(chosen) < 0 or max(chosen) >= available:
        raise InputError(
            f"modes: got {modes!r}; a count from 1 to {available} is expected, or numbers from 0 "
            f"to {available - 1}"
        )
    return chosen


def _panel(ax: Axes, series: Sequence[Series], chosen: Sequence[int], size: float) -> Axes:
    """One panel: curves under dots, a number at the end of each curve, and a key to the styles."""
    colours = _colours(len(chosen))
    keys: list[Any] = []
    for measured in (False, True):
        for order, part in enumerate(part for part in series if part.measured == measured):
            style = _style(part, order, size)
            for column, colour in enumerate(colours):
                ax.plot(part.times, part.strengths[:, column], color=colour, **style)
            keys += ax.plot([], [], color="0.35", label=part.label, **style)
    _number(ax, series[0], chosen, colours, size)
    ax.set_xlabel("time  t", fontsize=size)
    ax.set_ylabel("mode strength  $c_i$", fontsize=size)
    ax.tick_params(labelsize=0.9 * size)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(handles=keys, fontsize=0.9 * size, frameon=False, loc="upper left")
    return ax


def _style(part: Series, order: int, size: float) -> dict[str, Any]:
    if not part.measured:
        return {"linestyle": CURVES[order % len(CURVES)], "linewidth": 0.15 * size, "zorder": 2}
    return {
        "linestyle": "",
        "marker": DOTS[order % len(DOTS)],
        "markersize": 0.42 * size,
        "markeredgecolor": "white",
        "markeredgewidth": 0.05 * size,
        "markevery": max(1, -(-len(part.times) // MOST_DOTS)),
        "zorder": 3,
    }


def _colours(count: int) -> list[Any]:
    """From dark to light, the lightest still dark enough on white."""
    from matplotlib import colormaps

    return [colormaps["viridis"](x) for x in np.linspace(0.0, 0.82, count)]


def _number(
    ax: Axes, part: Series, chosen: Sequence[int], colours: Sequence[Any], size: float
) -> None:
    """The number of each mode, from 1, where its curve ends; moved up where two would overlap."""
    ends = part.strengths[-1]
    low, high = ax.get_ylim()
    points = ax.get_window_extent().height * 72 / ax.figure.dpi
    gap = 0.95 * size / points * (high - low)
    order = np.argsort(ends, kind="stable")
    rank = gap * np.arange(len(ends))
    places = rank + np.maximum.accumulate(ends[order] - rank)
    for place, mode in zip(places, order, strict=True):
        ax.annotate(
            f"{chosen[mode] + 1}",
            (1.01, float(place)),
            xycoords=("axes fraction", "data"),
            color=colours[mode],
            fontsize=0.9 * size,
            weight="bold",
            va="center",
        )

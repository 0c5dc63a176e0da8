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
    if ax is None:
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=(11, 6.5))
        figure.subplots_adjust(left=0.1, right=0.93, bottom=0.12, top=0.91)
        ax, size = figure.add_subplot(), TEXT
    else:
        from matplotlib import rcParams

        size = float(rcParams["font.size"])
    _panel(ax, drawn, chosen, _colours(max(chosen) + 1), size)
    # Above the axes, where no curve can be under it.
    ax.legend(
        fontsize=0.9 * size,
        frameon=False,
        ncols=len(drawn),
        loc="lower left",
        bbox_to_anchor=(0, 1),
    )
    return ax


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

        figure = Figure(figsize=(16, 9))
    left, top = 0.085, 0.88
    places = {"left": left, "right": 0.96, "bottom": 0.08, "top": top, "wspace": 0.19}
    axes = figure.subplots(2, 2, gridspec_kw={**places, "hspace": 0.3})
    halves, classes = results["halves"]["cases"], results["classes"]["cases"]
    aligned, hard = halves["aligned"], classes["balanced"]
    adds = {key: np.subtract(aligned[key], aligned["flow"]) for key in ("measured", "modified")}
    plain = {"flow": "predicted", "measured": "trained"}
    mixed = {"flow": "predicted", "independent": "if modes were independent", "measured": "trained"}
    panels = (
        ("Halves, aligned start: sigmoids (M4)", aligned, plain, 1),
        ("Halves, start aligned with nothing (M8)", halves["balanced"], plain, 1),
        (
            "Halves, aligned start: what the step size adds",
            {**adds, "times": aligned["times"]},
            {"modified": "predicted", "measured": "trained"},
            1,
        ),
        (
            "Ten classes, nearly degenerate: modes mix (M8)",
            {**hard, "independent": hard["independent"]["flow"]},
            mixed,
            3,
        ),
    )
    for ax, (title, case, labels, stride) in zip(axes.flat, panels, strict=True):
        count = np.shape(case["measured"])[1]
        chosen = range(0, count, stride)
        series = [
            Series(
                label,
                key == "measured",
                np.asarray(case["times"], dtype=np.float64),
                np.asarray(case[key], dtype=np.float64)[:, chosen],
            )
            for key, label in labels.items()
        ]
        _panel(ax, series, chosen, _colours(count), TEXT, numbered=case is not panels[2][1])
        ax.set_title(title, fontsize=TEXT, loc="left", weight="bold")
    axes[1, 0].set_ylabel("strength − exact flow", fontsize=TEXT)
    axes[1, 0].locator_params(axis="y", nbins=4)
    for ax in axes[0]:
        ax.set_xlabel("")
    for ax in axes[:, 1]:
        ax.set_ylabel("")
    keys = axes[1, 1].get_legend_handles_labels()
    figure.legend(
        *keys,
        fontsize=TEXT,
        frameon=False,
        ncols=len(keys[0]),
        loc="upper left",
        bbox_to_anchor=(left, 1),
        borderaxespad=0.4,
        borderpad=0.0,
    )
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


def _panel(
    ax: Axes,
    series: Sequence[Series],
    chosen: Sequence[int],
    colours: Sequence[Any],
    size: float,
    *,
    numbered: bool = True,
) -> Axes:
    """One panel: curves under dots, and the number of a mode at the end of its curve.

    Args:
        ax: Where to draw.
        series: What to draw; each has a column for each of the modes chosen.
        chosen: The numbers of the modes, from 0.
        colours: One for each mode there is.
        size: Font size in points; lines and dots go with it.
        numbered: Whether to write the numbers.
    """
    for measured in (False, True):
        for order, part in enumerate(part for part in series if part.measured == measured):
            style = _style(part, order, size)
            for column, mode in enumerate(chosen):
                ax.plot(part.times, part.strengths[:, column], color=colours[mode], **style)
            ax.plot([], [], color="0.35", label=part.label, **style)
    ax.margins(x=0.01)
    if numbered:
        _number(ax, series[0].strengths[-1], chosen, colours, size)
    ax.set_xlabel("time  t", fontsize=size)
    ax.set_ylabel("mode strength  $c_i$", fontsize=size)
    ax.tick_params(labelsize=0.9 * size)
    ax.spines[["top", "right"]].set_visible(False)
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

    return [colormaps["viridis"](x) for x in np.linspace(0.0, 0.78, count)]


def _number(
    ax: Axes, ends: Array, chosen: Sequence[int], colours: Sequence[Any], size: float
) -> None:
    """The number of each mode, from 1, beside the end of its curve, with a line to it."""
    low, high = ax.get_ylim()
    points = ax.get_window_extent().height * 72 / ax.figure.dpi
    order = np.argsort(ends, kind="stable")
    places = _apart(ends[order], 0.95 * size / points * (high - low))
    for place, column in zip(places, order, strict=True):
        mode = chosen[int(column)]
        ax.annotate(
            f"{mode + 1}",
            (1.0, float(ends[column])),
            (1.03, float(place)),
            xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"),
            color=colours[mode],
            fontsize=0.9 * size,
            weight="bold",
            va="center",
            arrowprops={"arrowstyle": "-", "color": colours[mode], "shrinkA": 1, "shrinkB": 0},
        )


def _apart(wanted: Array, gap: float) -> Array:
    """The places nearest to those wanted (rising), by least squares, that are a gap apart.

    Less the gaps that lie before it, each place may not be below the last: an isotonic regression,
    solved by pooling neighbours that are out of order.
    """
    before = gap * np.arange(len(wanted))
    means, sizes = list[float](), list[int]()
    for value in (wanted - before).tolist():
        mean, count = float(value), 1
        while means and means[-1] > mean:
            last = sizes.pop()
            mean, count = (means.pop() * last + mean * count) / (last + count), last + count
        means.append(mean)
        sizes.append(count)
    return before + np.repeat(np.array(means, dtype=np.float64), sizes)

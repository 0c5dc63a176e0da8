"""A picture of modes, predicted curves and measured dots, drawn from what a verdict has saved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import nonmixing as nm

COLOURS = ("#1f4e79", "#b5651d", "#2e7d32", "#7b1f5c", "#555555")
"""One a mode, apart in grey too."""


def curves(predicted: nm.Trajectory, measured: nm.Trajectory) -> dict[str, Any]:
    """What the picture needs: modes of both, and the singular values that they go to."""
    problem = predicted.problem
    assert problem is not None
    return {
        "curves": {
            "times": predicted.times,
            "predicted": predicted.modes(),
            "measured times": measured.times,
            "measured": measured.modes(),
            "s": problem.svd.s,
            "mixing": measured.mixing(problem),
        }
    }


def draw(entry: Mapping[str, Any], path: Path, title: str, measured: str) -> Path:
    """Modes against time: curves predicted, dots measured, dotted lines at the singular values.

    Args:
        entry: the claim's entry in the ledger's JSON, with `curves` in its first simulation.
        path: of the picture.
        title: what it shows.
        measured: what the dots are.
    """
    from matplotlib.figure import Figure

    saved = entry["simulation"][0]["details"]["curves"]
    times, predicted = np.array(saved["times"]), np.array(saved["predicted"])
    dots, found = np.array(saved["measured times"]), np.array(saved["measured"])
    every = max(1, len(dots) // 25)
    whole = Figure(figsize=(7, 4), layout="constrained")
    axes = whole.add_subplot()
    for i, (curve, points) in enumerate(zip(predicted.T, found.T, strict=True)):
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(times, curve, color=colour, lw=1.8)
        axes.plot(dots[::every], points[::every], "o", ms=4, color=colour, mfc="white")
        axes.annotate(
            f"mode {i + 1}",
            (times[-1], curve[-1]),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=10,
        )
    for value in saved["s"]:
        axes.axhline(value, color="#999999", lw=0.7, ls=":", zorder=0)
    axes.set(xlabel="time", ylabel="strength of a mode", title=title)
    axes.plot([], [], color="black", lw=1.8, label="closed form")
    axes.plot([], [], "o", ms=4, color="black", mfc="white", label=measured)
    axes.legend(frameon=False, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    whole.savefig(path, dpi=120)
    return path

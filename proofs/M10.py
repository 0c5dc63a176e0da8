"""M10. Non-mixing emerges from small starts: modes mix on the way, by a power of the start's size.

From a balanced start of size ε, not aligned, C = Pᵀ Q R is not diagonal on the way: for s_i > s_j
its entry C_ij rises and falls. While all is small the rows of Z grow like ε e^{s t}; mode i is
learned at t ≈ ln(1/ε)/s_i, and by then row j is ε e^{s_j t} ≈ ε^{1 − s_j/s_i}. C_ij is the product
of a row that is of order 1 and of that one, so its peak falls like

    max_t |C_ij(t)| ~ ε^{1 − s_j/s_i}    (ε → 0).

The next order is the square of row j, relative ε^{2(1 − s_j/s_i)}: for a ratio of 0.8 the exponent
is reached slowly. This is a scaling argument and no proof; the exponents are measured on exact
solutions (M8), over four decades of ε from several directions of the start.

Source: the exponent is ours; that small starts align is in Li, Luo, Lyu 2021 and Braun et al. 2022.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

import nonmixing as nm
from nonmixing.claim import Claim, Experiment
from nonmixing.verdict import Verdict, judge

SEED = 20
SEEDS = 5
RATIOS = (0.3, 0.5, 0.8)
SIZES = 10.0 ** np.arange(-1, -8.5, -0.5)
FITTED = SIZES <= 1e-5
"""Sizes at which exponents are read off; the others are in the figure."""


def peak(ratio: float, size: float, seed: int) -> float:
    """The largest |C_12| on the way, from a balanced start of this size."""
    problem = nm.BilinearProblem(np.diag([1.0, ratio]))
    unit = nm.balanced(problem, scale=1.0, width=2, seed=seed)
    # A start with det Q₀ < 0 runs into a saddle (M12): take its mirror image.
    mirror = np.sign(np.linalg.det(unit.operator))
    start = nm.Factors(size * unit.U * np.array([[1.0], [mirror]]), size * unit.V)
    learned = np.log(1 / size)
    coarse = np.linspace(0, 2 * learned + 10, 100)
    highest = 0.0
    for _ in range(4):  # zoom in on the peak
        run = nm.solve(problem, start, coarse)
        crossed = np.array([abs(run.operator(k)[0, 1]) for k in range(len(run))])
        top, highest = int(np.argmax(crossed)), float(crossed.max())
        low, high = coarse[max(top - 1, 0)], coarse[min(top + 1, len(coarse) - 1)]
        coarse = np.linspace(low, high, 12)
    return highest


def peaks(ratio: float) -> np.ndarray:
    """Peaks (seeds, sizes)."""
    return np.array([[peak(ratio, size, SEED + k) for size in SIZES] for k in range(SEEDS)])


def exponent(ratio: float) -> Verdict:
    """The fitted exponent, start by start, against 1 − s_j/s_i."""
    found = peaks(ratio)
    logs = np.log(SIZES[FITTED])
    slopes = np.array([np.polyfit(logs, np.log(row[FITTED]), 1)[0] for row in found])
    predicted = 1 - ratio
    # Peak = A ε^x (1 + B ε^{2x}), B of order 1/s_j (row j against its own end), at the largest ε.
    next_order = 2 * predicted * SIZES[FITTED].max() ** (2 * predicted) / ratio
    spread = float(np.std(slopes, ddof=1) / np.sqrt(SEEDS) * student.ppf(0.975, SEEDS - 1))
    return judge(
        "simulation",
        measured=float(np.mean(slopes)),
        predicted=predicted,
        tolerance=float(next_order + spread + 1e-3),
        because="the next order at ε = 1e-5, the 95 % interval over starts, 1e-3 for the grid",
        scope=f"exponent of max |C_12| in ε from 1e-5 to 1e-8, s_j/s_i = {ratio}",
        nulls={"s_j/s_i": ratio if ratio != 0.5 else 1.0, "1 (a balanced aligned start)": 1.0},
        seed=SEED,
        details={
            "ratio": ratio,
            "sizes": SIZES,
            "peaks": found,
            "slopes": slopes,
            "interval": (float(np.mean(slopes)) - spread, float(np.mean(slopes)) + spread),
        },
    )


def figure(entry: Mapping[str, Any], folder: Path) -> Path:
    """Peaks against the size of the start, log-log, with the predicted powers."""
    from matplotlib.figure import Figure

    whole = Figure(figsize=(7, 4.5), layout="constrained")
    axes = whole.add_subplot()
    for outcome, colour in zip(entry["simulation"], ("#1f4e79", "#b5651d", "#2e7d32"), strict=True):
        details = outcome["details"]
        sizes, found = np.array(details["sizes"]), np.array(details["peaks"])
        ratio = float(details["ratio"])
        middle = np.exp(np.mean(np.log(found), axis=0))
        axes.plot(sizes, found.T, "o", ms=3, color=colour, alpha=0.35)
        axes.plot(sizes, middle[-1] * (sizes / sizes[-1]) ** (1 - ratio), color=colour, lw=1.5)
        axes.annotate(
            f"s_j/s_i = {ratio:g}\n"
            f"predicted {1 - ratio:.2g}, fitted {float(outcome['measured']):.3f}",
            (sizes[-1], middle[-1]),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=10,
            color=colour,
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlim=(SIZES[0] * 2, SIZES[-1] / 3e3),
        xlabel="size of the start ε (smaller to the right)",
        ylabel="largest mixing, max |C_ij|",
        title="Smaller starts mix less: peaks fall like a power of ε",
    )
    axes.set_xticks(SIZES[::4])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    path = folder / "M10.png"
    whole.savefig(path, dpi=120)
    return path


claim = Claim(
    id="M10",
    title="emergent non-mixing: the peak of |C_ij| falls like ε^{1 − s_j/s_i} from balanced starts",
    source="the exponent is ours; small starts align: Li, Luo, Lyu 2021; Braun et al. 2022",
    simulation=tuple(
        Experiment(lambda quick, x=ratio: exponent(x), name=f"s_j/s_i = {ratio}")
        for ratio in RATIOS
    ),
    figure=figure,
)

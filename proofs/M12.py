"""M12. "The error decays late at the rate 2 s_min": only for square targets of full rank.

Near the end of a balanced run, Q ≈ Q*, an error E moves by E' = −(E V Vᵀ + U Uᵀ E), V Vᵀ and U Uᵀ
being (Q*ᵀQ*)^½ and (Q* Q*ᵀ)^½ there. In modes E_ij decays at the rate s_i + s_j; where one side of
E is outside the range of the target the rate is s_j alone, and where both are, 0: then it is the
next order that counts, e' = −e², and ‖E‖ falls like 1/t. So with k = rank Q*:

    m = n = k <= r             2 s_min          (both sides inside)
    else min(m, n, r) = k      s_min            (one side of E can be outside)
    min(m, n, r) > k           1/t              (both can, and the model has a direction to spare)

In the first case the start must have det Q₀ det Q* > 0: a balanced Q keeps its rank for all time,
so det Q cannot change its sign, and the other half of the starts runs into a saddle. (With sides
or rank to spare there is a way around.) This condition is not in the claim as it is usually made.

Generic imbalance λI shifts the rates to √(s² + λ²/4) and more; they are then no rates of the
target.

The late rates are measured on exact solutions, from generic balanced starts.

Source: rates of this kind are in Arora et al. 2018 ("2 s_min") and Min, Tarmoun, Vidal, Mallada
2021.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.verdict import Verdict, judge

LATE = """
[matrices]
P = ["m", "k"]
R = ["n", "k"]
s = ["k", 1]
E = ["m", "n"]
C = ["k", "k"]

[kinds]
P = "orthonormal"
R = "orthonormal"

[define]
inside = "P @ C @ R.T"
left = "P @ diag(s) @ P.T"
right = "R @ diag(s) @ R.T"

[[claim]]
id = "inside"
says = "P.T @ (inside @ right + left @ inside) @ R == C @ diag(s) + diag(s) @ C"

[[claim]]
id = "one-side-outside"
says = "(E @ right + left @ E) @ R == E @ R @ diag(s)"
assume = ["P.T @ E == 0"]

[[claim]]
id = "both-outside"
says = "E @ right + left @ E == 0"
assume = ["P.T @ E == 0", "E @ R == 0"]

[[claim]]
id = "always-twice"
says = "(E @ right + left @ E) @ R == 2 * E @ R @ diag(s)"
assume = ["P.T @ E == 0"]
"""

SEED = 22
S_MIN = 0.5
SEEDS = 5


@dataclass(frozen=True)
class Case:
    """Sizes of a model, and the rank of its target."""

    m: int
    n: int
    r: int
    rank: int

    def __str__(self) -> str:
        return f"{self.m} × {self.n}, r = {self.r}, rank {self.rank}"

    def problem(self) -> nm.BilinearProblem:
        """A target with singular values from 1 down to S_MIN."""
        generator = np.random.default_rng([SEED, self.m, self.n, self.r, self.rank])
        left = np.linalg.qr(generator.normal(size=(self.m, self.rank)))[0]
        right = np.linalg.qr(generator.normal(size=(self.n, self.rank)))[0]
        return nm.BilinearProblem((left, np.linspace(1, S_MIN, self.rank), right))

    def starts(self, sign: float) -> list[nm.Factors]:
        """Balanced starts; where the target is invertible, with this sign of det Q₀ det Q*."""
        problem = self.problem()
        starts = [
            nm.balanced(problem, scale=0.5, width=self.r, seed=SEED + k) for k in range(SEEDS)
        ]
        if not self.m == self.n == self.rank:
            return starts
        target = problem.svd.operator
        return [
            start
            if np.linalg.det(start.operator @ target) * sign > 0
            else nm.Factors(start.U * np.where(np.arange(self.m) == 0, -1.0, 1.0)[:, None], start.V)
            for start in starts
        ]

    def errors(self, times: np.ndarray, sign: float = 1.0) -> np.ndarray:
        """‖E‖_F at the times, for each of the starts: (starts, K)."""
        problem = self.problem()
        return np.sqrt([2 * nm.solve(problem, s, times).loss() for s in self.starts(sign)])


def exponential(case: Case, rate: float, sign: float = 1.0) -> Verdict:
    """The slope of ln‖E‖ at late times against a rate, start by start."""
    # Late: what decays at the next rates, s_min/4 faster or more, is below 1e-2 of the slowest.
    # Early enough for E, some e^{-24} in the fastest case, to stand out of Q's rounding, 1e-15.
    times = np.array([20.0, 24.0])
    early, late = case.errors(times, sign).T
    slopes = np.log(early / late) / (times[1] - times[0])
    return judge(
        "simulation",
        measured=slopes,
        predicted=rate,
        tolerance=0.1 * S_MIN,
        because="a tenth of s_min: rates of the theory differ by s_min, the next mode's by s_min/4",
        scope=f"late slope of −ln‖E‖ for {case}, from {SEEDS} balanced starts",
        nulls={"the other rate": 3 * S_MIN - rate},
        seed=SEED,
        details={"errors": early},
    )


def algebraic(case: Case) -> Verdict:
    """The slope of ln‖E‖ against ln t."""
    times = np.array([1e4, 1e5])
    early, late = case.errors(times).T
    return judge(
        "simulation",
        measured=np.log(early / late) / np.log(times[1] / times[0]),
        predicted=1.0,
        # e = 1/(t + 1/e₀): relative order 1/(e₀ t), and start 0.5² may give e₀ down to 1e-3.
        tolerance=0.1,
        because="e = 1/(t + 1/e₀), with e₀ above 1e-3 of the target, at t = 1e4",
        scope=f"late slope of −ln‖E‖ against ln t for {case}, from {SEEDS} balanced starts",
        nulls={"exponential": S_MIN * (times[1] - times[0]) / np.log(10)},
        seed=SEED,
        details={"decays": decays((SQUARE, TALL, case))},
    )


def decays(cases: Sequence[Case]) -> dict[str, Any]:
    """‖E‖ against time from one start each, for the figure."""
    times = np.concatenate([[0.0], np.geomspace(0.1, 1e3, 120)])
    return {"times": times, "errors": {str(case): case.errors(times)[0] for case in cases}}


def figure(entry: Mapping[str, Any], out: Path) -> Path:
    """‖E‖ against time, with both axes logarithmic: three ways to end."""
    from matplotlib.figure import Figure

    (details,) = (o["details"] for o in entry["simulation"] if "decays" in o["details"])
    times = np.array(details["decays"]["times"])
    whole = Figure(figsize=(7, 4), layout="constrained")
    axes = whole.add_subplot()
    colours = ("#1f4e79", "#b5651d", "#2e7d32")
    for (name, errors), colour in zip(details["decays"]["errors"].items(), colours, strict=True):
        axes.plot(times[1:], errors[1:], color=colour, lw=1.8, label=name)
    axes.set(
        xscale="log",
        yscale="log",
        ylim=(1e-8, 3),
        xlabel="time",
        ylabel="‖E‖",
        title="Late decay: exp(−2 s t), exp(−s t), and 1/t",
    )
    axes.legend(frameon=False, fontsize=10, loc="lower left")
    axes.spines[["top", "right"]].set_visible(False)
    path = out / "M12.png"
    whole.savefig(path, dpi=120)
    return path


SQUARE = Case(3, 3, 3, 3)
WIDE = Case(3, 3, 5, 3)
NARROW = Case(6, 4, 3, 3)
TALL = Case(5, 3, 3, 3)
SPARE = Case(5, 4, 4, 3)

claim = Claim(
    id="M12",
    title="late decay of ‖E‖: 2 s_min only for m = n = rank; else s_min, or 1/t with rank to spare",
    source="Arora, Cohen, Golowich, Hu 2018; Min, Tarmoun, Vidal, Mallada 2021",
    statements=from_text(LATE, {"always-twice": "refuted"}),
    lemma="the linearised flow at a minimum governs the late rates where it has no zero rate",
    simulation=(
        Experiment(lambda quick: exponential(SQUARE, 2 * S_MIN), name=f"2 s_min: {SQUARE}"),
        Experiment(lambda quick: exponential(WIDE, 2 * S_MIN), name=f"2 s_min: {WIDE}"),
        Experiment(
            lambda quick: exponential(SQUARE, 2 * S_MIN, -1.0),
            "unsupported",
            name=f"2 s_min: {SQUARE}, det Q₀ det Q* < 0",
        ),
        Experiment(
            lambda quick: exponential(TALL, 2 * S_MIN), "unsupported", name=f"2 s_min: {TALL}"
        ),
        Experiment(
            lambda quick: exponential(NARROW, 2 * S_MIN), "unsupported", name=f"2 s_min: {NARROW}"
        ),
        Experiment(lambda quick: exponential(TALL, S_MIN), name=f"s_min: {TALL}"),
        Experiment(lambda quick: exponential(NARROW, S_MIN), name=f"s_min: {NARROW}"),
        Experiment(lambda quick: algebraic(SPARE), name=f"1/t: {SPARE}"),
    ),
    figure=figure,
)

"""M4. A balanced aligned mode follows a sigmoid, in closed form.

From M1, c = ab obeys c' = (s − c)(a² + b²), and λ = a² − b² is constant. With λ = 0 there are three
cases, and each closed form solves its equation:

    a = b      c' = +2c (s − c),    c(t) = s / (1 + (s/c₀ − 1) e^{−2st})       → s
    a = −b     c' = −2c (s − c),    c(t) = s / (1 + (s/c₀ − 1) e^{+2st})       → 0
    s = 0      c' = −2|c| c,        c(t) = c₀ / (1 + 2|c₀| t)                  → 0

The exponential enters as a scalar x with x' = ∓2s x and x(0) = 1, so that each line is an identity
between rational functions.

Lemma. Uniqueness of solutions (Picard-Lindelöf): the closed form has the start c₀ and solves the
equation, so it is the mode; e^{∓2st} is the x of the proof.

Source: Saxe, McClelland, Ganguli 2014, eq. 12 (their u is our c, with time in units of τ/2); the
descending branch is in Tarmoun et al. 2021.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.evidence import of_comparison
from nonmixing.ledger import folder, load_script
from nonmixing.verdict import Verdict

FACTORS = """
[scalars]
a = {}
b = {}
s = {}

[flow.velocity]
a = "(s - a * b) * b"
b = "(s - a * b) * a"

[[claim]]
id = "mode"
says = "d(a * b) == (s - a * b) * (a ** 2 + b ** 2)"

[[claim]]
id = "imbalance-of-a-mode"
says = "d(a ** 2 - b ** 2) == 0"
"""

RISING = """
[scalars]
s = {}
c0 = {}
x = {}

[define]
c = "s / (1 + (s / c0 - 1) * x)"

[flow.velocity]
x = "-2 * s * x"

[[claim]]
id = "rising"
says = "d(c) == 2 * c * (s - c)"

[[claim]]
id = "rising-start"
says = "s / (1 + (s / c0 - 1) * 1) == c0"
"""

FALLING = (
    RISING.replace('x = "-2 * s * x"', 'x = "2 * s * x"')
    .replace("rising", "falling")
    .replace("2 * c * (s - c)", "-2 * c * (s - c)")
)

ZERO = """
[scalars]
c0 = {}
t = {}

[define]
positive = "c0 / (1 + 2 * c0 * t)"
negative = "c0 / (1 - 2 * c0 * t)"

[flow.velocity]
t = "1"

[[claim]]
id = "no-target-from-above"
says = "d(positive) == -2 * positive ** 2"

[[claim]]
id = "no-target-from-below"
says = "d(negative) == 2 * negative ** 2"
"""

BAND = load_script(folder("proofs") / "_band.py")
PICTURE = load_script(folder("proofs") / "_curves.py")

SEED = 14
S = np.array([1.0, 0.6, 0.35, 0.2])
RISING_START = 0.02


def problem() -> nm.BilinearProblem:
    """A 5 × 4 target with singular values S."""
    generator = np.random.default_rng(SEED)
    left = np.linalg.qr(generator.normal(size=(5, 4)))[0]
    right = np.linalg.qr(generator.normal(size=(4, 4)))[0]
    return nm.BilinearProblem(left @ np.diag(S) @ right.T)


def simulation(quick: bool) -> Verdict:
    """The closed form, all three cases at once, against the integrated flow."""
    posed = nm.BilinearProblem(np.diag([1.0, 0.6, 0.35, 0.0]))
    a, b = np.array([0.2, 0.5, 0.3, 0.5]), np.array([0.2, -0.5, 0.3, 0.5])
    start = nm.aligned(posed, a, b, width=4, seed=SEED)
    # a = −b is a saddle: an error grows like e^{2st} there, so the span is short.
    times, rtol = np.linspace(0, 6, 61), 1e-11
    run = nm.integrate(posed, start, times, rtol=rtol, atol=1e-14)
    exact = nm.solve(posed, start, times)
    tolerance = float(run.stats["evaluations"]) * rtol * np.exp(2 * 1.0 * 6)
    because = "the integrator's rtol for each evaluation, grown at the fastest rate 2 s₁"
    result = nm.compare(run, exact, tolerance=tolerance, because=because)
    return of_comparison(
        "simulation",
        result,
        "modes of the integrated flow against M4",
        seed=SEED,
        details=PICTURE.curves(exact, run),
    )


def training(quick: bool) -> Verdict:
    """A torch network from an aligned start, mode by mode, against M4 and the second-order flow."""
    posed = problem()
    start = nm.aligned(posed, np.sqrt(RISING_START), width=4, seed=SEED)
    rate = 0.1
    # Each mode must rise: time to half its value is ln(s/c₀ − 1)/(2s), the last one's is longest.
    span = float(1.5 * np.log(S[-1] / RISING_START - 1) / (2 * S[-1]))
    steps = int(np.ceil(span / rate))
    return BAND.trained(posed, start, rate=rate, steps=steps, form="M4", seed=SEED)


def figure(entry: Mapping[str, Any], out: Path) -> Path:
    """Modes against time."""
    title = "Balanced aligned modes: sigmoids, a descent, and 1/t"
    return PICTURE.draw(entry, out / "M4.png", title, "integrated flow")


claim = Claim(
    id="M4",
    title="balanced aligned modes: sigmoid, its descending branch, and 1/t where s = 0",
    source="Saxe, McClelland, Ganguli 2014, eq. 12",
    statements=(
        *from_text(FACTORS),
        *from_text(RISING),
        *from_text(FALLING),
        *from_text(ZERO),
    ),
    lemma="uniqueness of solutions (Picard-Lindelöf)",
    simulation=(Experiment(simulation, name="closed form against the integrated flow"),),
    training=(Experiment(training, name="torch network against closed form"),),
    figure=figure,
)

"""M5. An aligned mode that is not balanced follows a Möbius function of an exponential.

λ = a² − b² is constant (M3). For λ > 0 take x = b/a (for λ < 0 exchange a and b). Then

    c = ab = λ x / (1 − x²),    x' = s − λ x − s x²,

which is a Riccati equation with constant coefficients. Let p be its positive root, −1/p the other
(their product is −1, their sum −λ/s). With y = e^{−Kt}, K = √(4s² + λ²) = s (1 + p²)/p, the
quotient (x − p)/(x + 1/p) is C y, so that

    x = (p + C y/p) / (1 − C y),    and c → λ p/(1 − p²) = s.

Everything is written in p instead of λ and K, so that no root is left in the identities.

Lemma. Uniqueness of solutions (Picard-Lindelöf): C is fixed by the start, and y = e^{−Kt} is the
scalar with y' = −K y, y(0) = 1. x = tanh(θ/2) is the hyperbolic angle of the source.

Source: Saxe, McClelland, Ganguli 2014, their hyperbolae; Tarmoun et al. 2021.
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

COORDINATE = """
[scalars]
a = {}
b = {}
s = {}

[define]
c = "a * b"
lam = "a ** 2 - b ** 2"
x = "b / a"

[flow.velocity]
a = "(s - a * b) * b"
b = "(s - a * b) * a"

[[claim]]
id = "coordinate"
says = "c == lam * x / (1 - x ** 2)"

[[claim]]
id = "riccati"
says = "d(x) == s - lam * x - s * x ** 2"

[[claim]]
id = "not-linear"
says = "d(x) == s - lam * x"
"""

SOLUTION = """
[scalars]
s = {}
p = {}
C = {}
y = {}
x0 = {}

[define]
lam = "s * (1 - p ** 2) / p"
K = "s * (1 + p ** 2) / p"
x = "(p + C * y / p) / (1 - C * y)"
C0 = "(x0 - p) / (x0 + 1 / p)"

[flow.velocity]
y = "-K * y"

[[claim]]
id = "p-is-a-root"
says = "s - lam * p - s * p ** 2 == 0"

[[claim]]
id = "rate"
says = "K ** 2 == 4 * s ** 2 + lam ** 2"

[[claim]]
id = "moebius"
says = "d(x) == s - lam * x - s * x ** 2"

[[claim]]
id = "start"
says = "(p + C0 / p) / (1 - C0) == x0"

[[claim]]
id = "end"
says = "lam * p / (1 - p ** 2) == s"
"""

BAND = load_script(folder("proofs") / "_band.py")
PICTURE = load_script(folder("proofs") / "_curves.py")

SEED = 15
S = np.array([1.0, 0.6, 0.35, 0.2])
A = np.array([0.5, 0.1, 0.4, 0.2])
B = np.array([0.1, 0.4, 0.1, 0.6])


def problem() -> nm.BilinearProblem:
    """A 5 × 4 target with singular values S."""
    generator = np.random.default_rng(SEED)
    left = np.linalg.qr(generator.normal(size=(5, 4)))[0]
    right = np.linalg.qr(generator.normal(size=(4, 4)))[0]
    return nm.BilinearProblem(left @ np.diag(S) @ right.T)


def start() -> nm.Factors:
    """Aligned, with λ of both signs."""
    return nm.aligned(problem(), A, B, width=4, seed=SEED)


def simulation(quick: bool) -> Verdict:
    """The closed form against the integrated flow."""
    times, rtol = np.linspace(0, 12, 61), 1e-11
    run = nm.integrate(problem(), start(), times, rtol=rtol, atol=1e-14)
    exact = nm.solve(problem(), start(), times)
    # An error in a factor grows at most like the factor does while it rises, by less than s₁/c₀.
    tolerance = float(run.stats["evaluations"]) * rtol * float(S[0] / np.min(A * B)) ** 2
    because = "the integrator's rtol for each evaluation, grown as modes rise, (s₁/c₀)²"
    result = nm.compare(run, exact, tolerance=tolerance, because=because)
    return of_comparison(
        "simulation",
        result,
        "modes of the integrated flow against M5",
        seed=SEED,
        details=PICTURE.curves(exact, run),
    )


def training(quick: bool) -> Verdict:
    """A torch network from the imbalanced start, mode by mode, and the second-order flow."""
    rate, steps = 0.1, 150
    return BAND.trained(problem(), start(), rate=rate, steps=steps, form="M5", seed=SEED)


def figure(entry: Mapping[str, Any], out: Path) -> Path:
    """Modes against time."""
    title = "Imbalanced modes: the same ends, other ways"
    return PICTURE.draw(entry, out / "M5.png", title, "integrated flow")


claim = Claim(
    id="M5",
    title="imbalanced aligned modes: x' = s − λx − sx², a Möbius function of e^{−Kt}",
    source="Saxe, McClelland, Ganguli 2014; Tarmoun et al. 2021",
    statements=(
        *from_text(COORDINATE, {"not-linear": "refuted"}),
        *from_text(SOLUTION),
    ),
    lemma="uniqueness of solutions (Picard-Lindelöf)",
    simulation=(Experiment(simulation, name="closed form against the integrated flow"),),
    training=(Experiment(training, name="torch network against closed form"),),
    figure=figure,
)

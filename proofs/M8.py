"""M8. From a balanced start the flow is a matrix Riccati equation with a closed form.

Stack the factors, Z = [U; V], and let X = Z Zᵀ and F = [[0, Q*], [Q*ᵀ, 0]]. From a balanced start,
UᵀU = VᵀV (which F9 keeps), the three blocks of X obey X' = F X + X F − X²: in U Uᵀ, the term
−E V Uᵀ − U Vᵀ Eᵀ contains −2 U VᵀV Uᵀ, one half of which the balance turns into U UᵀU Uᵀ.

Its solution, with Y = e^{Ft} Z₀ and M = I + Z₀ᵀ ∫₀ᵗ e^{2Fs} ds Z₀, is X = Y M⁻¹ Yᵀ. For Y' = F Y
and M' = Yᵀ Y, and the derivative of M⁻¹ brings in −M⁻¹ Yᵀ Y M⁻¹.

Lemma. Uniqueness of solutions (Picard-Lindelöf), with M positive definite, so that M⁻¹ exists at
all times; and X fixes U and V up to one rotation on the right, as Z Zᵀ fixes Z.

Source: Fukumizu 1998; Braun et al. 2022, whose Q = [W₁ᵀ; W₂] is Z in the other order.
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

RICCATI = """
[matrices]
U = ["m", "r"]
V = ["n", "r"]
T = ["m", "n"]

[define]
E = "U @ V.T - T"

[flow]
loss = "norm2(E) / 2"
variables = ["U", "V"]

[[claim]]
id = "block-UU"
says = "d(U @ U.T) == T @ V @ U.T + U @ V.T @ T.T - U @ U.T @ U @ U.T - U @ V.T @ V @ U.T"
assume = ["U.T @ U == V.T @ V"]

[[claim]]
id = "block-UV"
says = "d(U @ V.T) == T @ V @ V.T + U @ U.T @ T - U @ U.T @ U @ V.T - U @ V.T @ V @ V.T"

[[claim]]
id = "block-VV"
says = "d(V @ V.T) == T.T @ U @ V.T + V @ U.T @ T - V @ U.T @ U @ V.T - V @ V.T @ V @ V.T"
assume = ["U.T @ U == V.T @ V"]

[[claim]]
id = "not-without-balance"
says = "d(U @ U.T) == T @ V @ U.T + U @ V.T @ T.T - U @ U.T @ U @ U.T - U @ V.T @ V @ U.T"
"""

CLOSED_FORM = """
[matrices]
Y = ["q", "r"]
M = ["r", "r"]
F = ["q", "q"]

[kinds]
M = ["symmetric", "invertible"]
F = "symmetric"

[define]
X = "Y @ inv(M) @ Y.T"

[flow.velocity]
Y = "F @ Y"
M = "Y.T @ Y"

[[claim]]
id = "closed-form"
says = "d(X) == F @ X + X @ F - X @ X"
"""

BAND = load_script(folder("proofs") / "_band.py")
PICTURE = load_script(folder("proofs") / "_curves.py")

SEED = 18


def problem() -> nm.BilinearProblem:
    """A 6 × 4 target."""
    target = np.random.default_rng(SEED).normal(size=(6, 4))
    return nm.BilinearProblem(target / np.linalg.norm(target, 2))


def start(scale: float) -> nm.Factors:
    """Balanced, not aligned, fewer columns than the target has modes."""
    return nm.balanced(problem(), scale=scale, width=3, seed=SEED)


def simulation(quick: bool) -> Verdict:
    """The closed form against the integrated flow."""
    times, rtol = np.linspace(0, 10, 41), 1e-11
    run = nm.integrate(problem(), start(0.3), times, rtol=rtol, atol=1e-14)
    exact = nm.solve(problem(), start(0.3), times)
    s = problem().svd.s
    # Off balance and apart, errors grow while Q rises, at most like e^{2 s₁ t} until it is there.
    rise = float(np.log(s[0] / 0.3**2) / s[0])
    tolerance = float(run.stats["evaluations"]) * rtol * float(np.exp(2 * s[0] * rise))
    because = (
        "the integrator's rtol for each evaluation, grown at rate 2 s₁ while the first mode rises"
    )
    result = nm.compare(run, exact, tolerance=tolerance, because=because)
    return of_comparison(
        "simulation",
        result,
        "modes of the integrated flow against M8",
        seed=SEED,
        details=PICTURE.curves(exact, run),
    )


def training(quick: bool) -> Verdict:
    """A torch network from the balanced start, mode by mode."""
    rate, steps = 0.1, 150
    begin = start(0.3)
    return BAND.trained(problem(), begin, rate=rate, steps=steps, form="M8", seed=SEED)


def figure(entry: Mapping[str, Any], out: Path) -> Path:
    """Modes against time."""
    title = "A balanced start that is not aligned: modes are not sigmoids"
    return PICTURE.draw(entry, out / "M8.png", title, "integrated flow")


claim = Claim(
    id="M8",
    title="balanced starts: X' = F X + X F − X² for X = Z Zᵀ, Z = [U; V], and its closed form",
    source="Fukumizu 1998; Braun et al. 2022",
    statements=(
        *from_text(RICCATI, {"not-without-balance": "refuted"}),
        *from_text(CLOSED_FORM),
    ),
    lemma="uniqueness of solutions (Picard-Lindelöf), M positive definite",
    simulation=(Experiment(simulation, name="closed form against the integrated flow"),),
    training=(Experiment(training, name="torch network against closed form"),),
    figure=figure,
)

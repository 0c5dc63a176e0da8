"""F11. The loss has more symmetries than the flow.

U and V enter the loss through U Vᵀ alone, and (U G) (V G⁻ᵀ)ᵀ = U Vᵀ for each invertible G. So the
loss cannot tell (U, V) from (U G, V G⁻ᵀ). The flow can. Moved along with the flow of (U, V), the
state U₁ = U G, V₁ = V G⁻ᵀ misses its own gradient by

    U₁' + E V₁ = −E V (G Gᵀ − I) G⁻ᵀ,        V₁' + Eᵀ U₁ = Eᵀ U G⁻ᵀ (Gᵀ G − I).

Both vanish at every state for orthogonal G, and for no other, as E and V may be any matrices. For
the gradient depends on how steps are measured, and only rotations keep the Frobenius norm of all
factors. One operator has therefore many velocities; the imbalance (F9) tells them apart.

Source: the symmetry is common knowledge of matrix factorisation; Du, Hu, Lee 2018 for what the
flow conserves.
"""

from typing import Literal

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.evidence import of_comparison
from nonmixing.verdict import Verdict

INVERTIBLE = """
[matrices]
U = ["m", "r"]
V = ["n", "r"]
T = ["m", "n"]
G = ["r", "r"]

[kinds]
G = "invertible"

[define]
E = "U @ V.T - T"
U1 = "U @ G"
V1 = "V @ inv(G).T"

[flow]
loss = "norm2(E) / 2"
variables = ["U", "V"]

[[claim]]
id = "loss-invertible"
says = "norm2(U1 @ V1.T - T) == norm2(E)"

[[claim]]
id = "flow-U-invertible"
says = "d(U1) == -(U1 @ V1.T - T) @ V1"

[[claim]]
id = "flow-V-invertible"
says = "d(V1) == -(U1 @ V1.T - T).T @ U1"

[[claim]]
id = "gap-U-invertible"
says = "d(U1) + E @ V1 == -E @ V @ (G @ G.T - eye(r)) @ inv(G).T"

[[claim]]
id = "gap-V-invertible"
says = "d(V1) + E.T @ U1 == E.T @ U @ inv(G).T @ (G.T @ G - eye(r))"
"""

ORTHOGONAL = INVERTIBLE.replace("invertible", "orthogonal").split('[[claim]]\nid = "gap')[0]

REFUTED = ("flow-U-invertible", "flow-V-invertible")

SEED = 21
TARGET = np.random.default_rng(SEED).normal(size=(5, 4))
PROBLEM = nm.BilinearProblem(TARGET / np.linalg.norm(TARGET, 2))
START = nm.gaussian(PROBLEM, scale=0.3, width=3, seed=SEED)
ROTATION = np.linalg.qr(np.random.default_rng(SEED).normal(size=(3, 3)))[0]
STRETCH = ROTATION * [2.0, 1.0, 0.5]
END, RATE, RTOL = 3.0, 0.05, 1e-11


def moved(G: np.ndarray) -> nm.Factors:
    """The start as (U G, V G⁻ᵀ)."""
    return nm.Factors(START.U @ G, START.V @ np.linalg.inv(G).T)


def verdict(
    evidence: Literal["simulation", "training"],
    run: nm.Trajectory,
    plain: nm.Trajectory,
    noise: float,
) -> Verdict:
    """Mode by mode, the run from the moved start against the one from the start itself."""
    both = (run, plain)
    # The loss's second derivative is nowhere below −‖E‖, and ‖E‖ falls: errors of the factors grow
    # at most so fast. A mode's error is that of U Vᵀ.
    norms = (np.linalg.norm(x.U, axis=(1, 2)) + np.linalg.norm(x.V, axis=(1, 2)) for x in both)
    size = max(float(norm.max()) for norm in norms)
    growth = float(np.exp(np.linalg.norm(START.operator - PROBLEM.target) * END))
    result = nm.compare(
        run,
        plain,
        tolerance=noise * size**2 * growth,
        because="the error of a step relative to the factors, in all steps, grown at the rate ‖E‖",
    )
    scope = "modes from (U G, V G⁻ᵀ) against those from (U, V)"
    return of_comparison(evidence, result, scope, seed=SEED)


def simulation(G: np.ndarray) -> Verdict:
    """Along the integrated flow."""
    times = np.linspace(0, END, 31)
    run = nm.integrate(PROBLEM, moved(G), times, rtol=RTOL, atol=1e-14)
    plain = nm.integrate(PROBLEM, START, times, rtol=RTOL, atol=1e-14)
    return verdict("simulation", run, plain, float(run.stats["evaluations"]) * RTOL)


def training(G: np.ndarray) -> Verdict:
    """In torch networks: descent has the same symmetry, so that only rounding is left."""
    steps = round(END / RATE)
    run = nm.train(PROBLEM, moved(G), rate=RATE, steps=steps)
    plain = nm.train(PROBLEM, START, rate=RATE, steps=steps)
    # Sums of at most 5 products, three of them in a row in each step, in both runs.
    return verdict("training", run, plain, 30 * steps * float(np.finfo(np.float64).eps))


claim = Claim(
    id="F11",
    title="the loss is invariant under U → U G, V → V G⁻ᵀ; the flow only for orthogonal G",
    source="symmetry of U Vᵀ; Du, Hu, Lee 2018 for what is conserved",
    statements=(
        *from_text(INVERTIBLE, dict.fromkeys(REFUTED, "refuted")),
        *from_text(ORTHOGONAL),
    ),
    simulation=(
        Experiment(lambda quick: simulation(ROTATION), name="orthogonal G"),
        Experiment(lambda quick: simulation(STRETCH), "unsupported", name="invertible G"),
    ),
    training=(
        Experiment(lambda quick: training(ROTATION), name="orthogonal G"),
        Experiment(lambda quick: training(STRETCH), "unsupported", name="invertible G"),
    ),
)

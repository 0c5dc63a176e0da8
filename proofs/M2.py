"""M2. "Modes never mix, from any start" is false; the exact cross terms.

In the singular basis of the target, C = Pᵀ Q R with P and R square and orthogonal, S = Pᵀ Q* R,
G_U = Pᵀ U Uᵀ P and G_V = Rᵀ V Vᵀ R. The flow equation F1 becomes

    C' = −(C − S) G_V − G_U (C − S).

Even at an instant at which C − S is diagonal, C' is so only if G_U and G_V do not couple what
C − S distinguishes. The prover finds the smallest case in integers: two modes, and factors that
overlap.

Source: "no cross terms" is how Nema et al. 2026 is summarised; it holds from aligned starts (M1).
"""

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.verdict import Verdict, judge

ANY_START = """
[matrices]
U = ["n", "r"]
V = ["n", "r"]
P = ["n", "n"]
R = ["n", "n"]
G = ["n", "n"]

[kinds]
P = "orthogonal"
R = "orthogonal"
G = "diagonal"

[define]
C = "P.T @ U @ V.T @ R"
E = "P @ G @ R.T"

# The instant at which C − S is the diagonal matrix G.
[flow.velocity]
U = "-E @ V"
V = "-E.T @ U"

[[claim]]
id = "never-mix"
says = "d(C) == diagpart(d(C))"
"""

CROSS_TERMS = """
[matrices]
U = ["m", "r"]
V = ["n", "r"]
P = ["m", "m"]
R = ["n", "n"]
T = ["m", "n"]

[kinds]
P = "orthogonal"
R = "orthogonal"

[define]
E = "U @ V.T - T"
C = "P.T @ U @ V.T @ R"
S = "P.T @ T @ R"
G_U = "P.T @ U @ U.T @ P"
G_V = "R.T @ V @ V.T @ R"

[flow]
loss = "norm2(E) / 2"
variables = ["U", "V"]

[[claim]]
id = "cross-terms"
says = "d(C) == -(C - S) @ G_V - G_U @ (C - S)"
"""

SEED = 12
S = np.array([1.0, 0.6, 0.3])


def simulation(quick: bool) -> Verdict:
    """How much of Q goes through off-diagonal entries, from a start that is not aligned."""
    problem = nm.BilinearProblem(np.diag(S))
    start = nm.balanced(problem, scale=0.1, width=3, seed=SEED)
    run = nm.integrate(problem, start, np.linspace(0, 30, 121), rtol=1e-9)
    aligned = nm.integrate(problem, nm.aligned(problem, 0.1), run.times, rtol=1e-9)
    return judge(
        "simulation",
        measured=float(run.mixing().max()),
        predicted=0.0,
        tolerance=float(run.stats["evaluations"]) * 1e-9,
        because="the integrator's rtol for each evaluation of the flow",
        scope="largest off-diagonal entry of Pᵀ Q R from a balanced start that is not aligned",
        seed=SEED,
        details={"from an aligned start": float(aligned.mixing().max())},
    )


def training(quick: bool) -> Verdict:
    """The same of a torch network."""
    problem = nm.BilinearProblem(np.diag(S))
    start = nm.balanced(problem, scale=0.1, width=3, seed=SEED)
    run = nm.train(problem, start, rate=0.05, steps=600, every=5)
    predicted = nm.integrate(problem, start, run.times, rate=0.05)
    return judge(
        "training",
        measured=float(run.mixing().max()),
        predicted=0.0,
        tolerance=1e-6,
        because="far above rounding, far below any singular value; an absence is claimed",
        scope="largest off-diagonal entry of Pᵀ Q R in a torch network, start not aligned",
        seed=SEED,
        details={"predicted by the flow with its cross terms": float(predicted.mixing().max())},
    )


claim = Claim(
    id="M2",
    title='"modes never mix" from any start: false; C\' = −(C − S) G_V − G_U (C − S)',
    source="Nema et al. 2026, as summarised",
    statements=(*from_text(ANY_START, {"never-mix": "refuted"}), *from_text(CROSS_TERMS)),
    simulation=(Experiment(simulation, "unsupported", name="mixing of the integrated flow"),),
    training=(Experiment(training, "unsupported", name="mixing in a torch network"),),
)

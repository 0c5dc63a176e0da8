"""M13. With equal singular values, modes do not mix in one singular basis and mix in another.

Where the target has equal singular values its singular vectors are not unique. In the plainest
case, Q* = s P Rᵀ with P and R square and orthogonal, each orthogonal G gives other ones:

    Q* = s P Rᵀ = s (P G) (R G)ᵀ.

Let a state be aligned with the first: U = P diag(a) Oᵀ, V = R diag(b) Oᵀ. It stays so (M1), and
Pᵀ Q R = diag(ab) is diagonal at all times. In the second basis the same trajectory reads

    (P G)ᵀ Q (R G) = Gᵀ diag(ab) G,

which is diagonal for each G only if all modes are equal; and its off-diagonal part moves. So "no
mixing, in every singular basis" is false: it is the start that chooses the basis.

Source: Nema et al. 2026 and Saxe, McClelland, Ganguli 2014 speak of the singular basis of Q*.
"""

from typing import Literal

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.verdict import Verdict, judge

STATEMENTS = """
[matrices]
P = ["n", "n"]
R = ["n", "n"]
G = ["n", "n"]
O = ["r", "n"]
a = ["n", 1]
b = ["n", 1]

[scalars]
s = {}

[kinds]
P = "orthogonal"
R = "orthogonal"
G = "orthogonal"
O = "orthonormal"

[define]
U = "P @ diag(a) @ O.T"
V = "R @ diag(b) @ O.T"
E = "U @ V.T - s * P @ R.T"
C = "P.T @ (U @ V.T) @ R"
C_G = "(P @ G).T @ (U @ V.T) @ (R @ G)"

[flow.velocity]
a = "(s * ones(n, 1) - a * b) * b"
b = "(s * ones(n, 1) - a * b) * a"

[[claim]]
id = "both-are-singular-bases"
says = "(P @ G) @ (s * eye(n)) @ (R @ G).T == s * P @ R.T"

[[claim]]
id = "one-flow-in-U"
says = "d(U) == -E @ V"

[[claim]]
id = "one-flow-in-V"
says = "d(V) == -E.T @ U"

[[claim]]
id = "one-basis"
says = "C == diag(a * b)"

[[claim]]
id = "other-basis"
says = "C_G == G.T @ diag(a * b) @ G"

[[claim]]
id = "every-basis"
says = "C_G == diagpart(C_G)"

[[claim]]
id = "every-basis-in-motion"
says = "d(C_G) == diagpart(d(C_G))"
"""

SEED = 23
PROBLEM = nm.BilinearProblem(np.eye(3))
MODES = np.array([0.02, 0.1, 0.4])
# Two singular bases of the target I, each on both sides; the start is aligned with the first.
OWN = np.linalg.qr(np.random.default_rng(SEED).normal(size=(3, 3)))[0]
OTHER = np.eye(3)
START = nm.Factors(OWN * np.sqrt(MODES), OWN * np.sqrt(MODES))
# An error of the factors grows at most at the rate ‖E‖ = s − c of the weakest mode, whose integral
# is ln(s/c₀)/2 (M4); norms of at most 1 carry it into U Vᵀ from either side.
GROWTH = 2 * np.sqrt(2 * 3) * np.sqrt(1 / MODES.min())


def mixing(run: nm.Trajectory, basis: np.ndarray) -> float:
    """The largest off-diagonal entry on the way, in a singular basis of the target."""
    crossed = [basis.T @ run.operator(k) @ basis for k in range(len(run))]
    return float(max(np.abs(C - np.diag(np.diag(C))).max() for C in crossed))


def verdict(
    evidence: Literal["simulation", "training"], run: nm.Trajectory, own: bool, noise: float
) -> Verdict:
    """Mixing of one and the same run, in its own basis or in the other one."""
    return judge(
        evidence,
        measured=mixing(run, OWN if own else OTHER),
        predicted=0.0,
        tolerance=noise * GROWTH,
        because="the error of a step relative to the factors, in all steps, grown at the rate ‖E‖",
        scope="largest off-diagonal entry of Q in a singular basis of the target",
        nulls={"the other basis": mixing(run, OTHER)} if own else {},
        seed=SEED,
    )


def simulation(own: bool) -> Verdict:
    """Along the integrated flow."""
    run = nm.integrate(PROBLEM, START, np.linspace(0, 5, 51), rtol=1e-11, atol=1e-14)
    return verdict("simulation", run, own, float(run.stats["evaluations"]) * 1e-11)


def training(own: bool) -> Verdict:
    """In a torch network."""
    run = nm.train(PROBLEM, START, rate=0.05, steps=100)
    # Three products of 3 × 3 matrices in a row in each step.
    return verdict("training", run, own, 10 * 100 * float(np.finfo(np.float64).eps))


claim = Claim(
    id="M13",
    title='equal singular values: "non-mixing in every singular basis" fails for one trajectory',
    source="Nema et al. 2026; Saxe, McClelland, Ganguli 2014",
    statements=from_text(
        STATEMENTS, {"every-basis": "refuted", "every-basis-in-motion": "refuted"}
    ),
    simulation=(
        Experiment(lambda quick: simulation(True), name="the start's own basis"),
        Experiment(lambda quick: simulation(False), "unsupported", name="another basis"),
    ),
    training=(
        Experiment(lambda quick: training(True), name="the start's own basis"),
        Experiment(lambda quick: training(False), "unsupported", name="another basis"),
    ),
)

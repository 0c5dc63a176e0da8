"""M16. Second moments: which data keep aligned states aligned.

With independent inputs x and y of second moments Σx and Σy, L = ½ tr(Σx E Σy Eᵀ) (F4), and

    U' = −Σx E Σy V,        V' = −Σy Eᵀ Σx U.

Suppose that each p_i is an eigenvector of Σx, with value σ_i, and each r_i of Σy, with value τ_i.
Then these velocities are again of the form P diag(·) Oᵀ and R diag(·) Oᵀ: aligned states stay
aligned, and data only give each mode a clock of its own,

    c_i' = σ_i τ_i (s_i − c_i) (a_i² + b_i²).

Conversely, put N = PᵀΣx P, M = RᵀΣy R, e = c − s, W = N diag(e) M. Then C = Pᵀ Q R moves by

    C' = −W diag(b²) − diag(a²) W,

and U leaves the span of P with velocity −(Σx P − P N) diag(e) M diag(b) Oᵀ.

Lemma. (i) Solutions are unique (Picard-Lindelöf). (ii) Let Σx and Σy be positive definite, and let
every aligned state stay aligned. Take one with a single error, e_l = 1. Off the diagonal C' = 0,
so N_il M_ll (a_i² + b_l²) = 0 for i ≠ l. Here M_ll > 0, and b_l ≠ 0 since c_l = s_l + 1: N is
diagonal, and M too, by symmetry. And U stays in the span of P, so that (Σx p_l − N_ll p_l) M_ll b_l
is 0: p_l is an eigenvector of Σx. So is r_l of Σy.

Definiteness is needed: of a mode that Σy does not see, τ_i = 0, nothing is asked of p_i. And
vectors are needed, not spaces: where all s_i are equal, it is not enough that Σx keeps P's span.

Source: F4 in modes; with whitened inputs, Σ = I, this is Saxe, McClelland and Ganguli 2014.
"""

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script

LOSS = """
[matrices]
U = ["m", "r"]
V = ["n", "r"]
T = ["m", "n"]
Sx = ["m", "m"]
Sy = ["n", "n"]

[kinds]
Sx = "symmetric"
Sy = "symmetric"

[define]
E = "U @ V.T - T"
L = "tr(Sx @ E @ Sy @ E.T) / 2"

[flow]
loss = "L"
variables = ["U", "V"]

[[claim]]
id = "velocity-of-U"
says = "d(U) == -Sx @ E @ Sy @ V"

[[claim]]
id = "velocity-of-V"
says = "d(V) == -Sy @ E.T @ Sx @ U"
"""

ALIGNED = """
[matrices]
P = ["m", "k"]
R = ["n", "k"]
O = ["r", "k"]
s = ["k", 1]
a = ["k", 1]
b = ["k", 1]
Lx = ["k", 1]  # the values σ
Ly = ["k", 1]  # the values τ
Sx = ["m", "m"]
Sy = ["n", "n"]
Z = ["k", "k"]

[kinds]
P = "orthonormal"
R = "orthonormal"
O = "orthonormal"
Sx = "symmetric"
Sy = "symmetric"

[define]
U = "P @ diag(a) @ O.T"
V = "R @ diag(b) @ O.T"
c = "a * b"
E = "P @ diag(c - s) @ R.T"
N = "P.T @ Sx @ P"
M = "R.T @ Sy @ R"
W = "N @ diag(c - s) @ M"
Cdot = "-P.T @ (Sx @ E @ Sy @ V @ V.T + U @ U.T @ Sx @ E @ Sy) @ R"
# Positive definite, and keeps the span of P, where its N is eye(k) + Z.T @ Z.
Sz = "P @ (eye(k) + Z.T @ Z) @ P.T + eye(m) - P @ P.T"
Equal = "P @ diag(c - ones(k, 1)) @ R.T"
Cdot_z = "-P.T @ (Sz @ Equal @ V @ V.T + U @ U.T @ Sz @ Equal) @ R"

[flow.velocity]
a = "Lx * Ly * (s - c) * b"
b = "Lx * Ly * (s - c) * a"

[[claim]]
id = "U-moves-in-the-family"
says = "d(U) == -Sx @ E @ Sy @ V"
assume = ["Sx @ P == P @ diag(Lx)", "Sy @ R == R @ diag(Ly)"]

[[claim]]
id = "V-moves-in-the-family"
says = "d(V) == -Sy @ E.T @ Sx @ U"
assume = ["Sx @ P == P @ diag(Lx)", "Sy @ R == R @ diag(Ly)"]

[[claim]]
id = "clocks"
says = "d(c) == Lx * Ly * (s - c) * (a * a + b * b)"

[[claim]]
id = "cross-terms"
says = "Cdot == -W @ diag(b * b) - diag(a * a) @ W"

[[claim]]
id = "leak"
says = "(P @ P.T - eye(m)) @ Sx @ E @ Sy @ V == -(Sx @ P - P @ N) @ diag(c - s) @ M @ diag(b) @ O.T"

[[claim]]
id = "unseen-modes-ask-nothing-U"
says = "d(U) == -Sx @ E @ Sy @ V"
assume = ["Sx @ P @ diag(Ly) == P @ diag(Lx * Ly)", "Sy @ R == R @ diag(Ly)"]

[[claim]]
id = "unseen-modes-ask-nothing-V"
says = "d(V) == -Sy @ E.T @ Sx @ U"
assume = ["diag(Ly) @ P.T @ Sx == diag(Lx * Ly) @ P.T", "Sy @ R == R @ diag(Ly)"]

[[claim]]
id = "unseen-modes-leave-N-diagonal"
says = "Z.T @ Z == diagpart(Z.T @ Z)"
assume = ["(eye(k) + Z.T @ Z) @ diag(Ly) == diag(Lx * Ly)"]

[[claim]]
id = "keeping-the-span-is-enough"
says = "Cdot_z == diagpart(Cdot_z)"
"""

SEED = 16
S, SIGMA, TAU = np.array([[1.0, 0.7, 0.4], [0.5, 1.5, 2.0], [1.0, 0.8, 1.2]])
LEFT, RIGHT = (np.linalg.qr(np.random.default_rng(SEED).normal(size=(k, k)))[0] for k in (4, 3))
TARGET = LEFT[:, :3] @ np.diag(S) @ RIGHT.T


def test(eigenvectors: bool):
    """The equations of the modes, with data whose moments have these eigenvectors, or others."""
    vectors = LEFT if eigenvectors else np.eye(4)
    root_x = vectors * np.sqrt([*SIGMA, 0.7]) @ vectors.T
    root_y = RIGHT * np.sqrt(TAU) @ RIGHT.T

    def loss(U, V):
        """The mean of ½(xᵀ U Vᵀ y − xᵀ T y)² over all pairs, which makes x and y independent."""
        import torch

        # Rows of √m times a root of Σx are m samples whose second moment is Σx exactly.
        x, y = torch.tensor(2 * root_x), torch.tensor(np.sqrt(3) * root_y)
        return ((x @ U) @ (y @ V).T - x @ torch.tensor(TARGET) @ y.T).square().mean() / 2

    def velocity(a, b):
        pull = SIGMA * TAU * (S - a * b)
        return pull * b, pull * a

    return load_script(folder("proofs") / "_modes.py").Modes(
        statement=from_text(LOSS)[0].statement,
        problem=nm.BilinearProblem(TARGET),
        parameters={"Sx": root_x @ root_x, "Sy": root_y @ root_y},
        a=np.array([0.3, 0.2, 0.1]),
        b=np.array([0.2, 0.3, 0.4]),
        velocity=velocity,
        loss=loss,
        rate=0.1,
        steps=80,
        units=120,  # sums over 12 pairs
        seed=SEED,
    )


def experiments(route: str) -> tuple[Experiment, ...]:
    """Eigenvectors that fit, whose modes run by their clocks and do not mix, and others."""
    return (
        Experiment(lambda quick: test(True).modes(route), name="eigenvectors: modes"),
        Experiment(lambda quick: test(True).mixing(route), name="eigenvectors: mixing"),
        Experiment(lambda quick: test(False).modes(route), "unsupported", name="others: modes"),
        Experiment(lambda quick: test(False).mixing(route), "unsupported", name="others: mixing"),
    )


claim = Claim(
    id="M16",
    title="aligned states stay so iff p_i, r_i are eigenvectors of Σx, Σy > 0: clocks σ_i τ_i",
    source="F4 in modes",
    statements=(
        *from_text(LOSS),
        *from_text(
            ALIGNED,
            {"unseen-modes-leave-N-diagonal": "refuted", "keeping-the-span-is-enough": "refuted"},
        ),
    ),
    lemma="uniqueness (Picard-Lindelöf); single errors and definiteness for the converse",
    simulation=experiments("flow"),
    training=experiments("network"),
)

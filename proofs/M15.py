"""M15. One input on both sides: the trace of the error couples all modes.

Feed one standard Gaussian input to both factors, f(x) = xᵀ Q x with Q = U Vᵀ, and fit xᵀ Q* x with
a symmetric Q* = P S Pᵀ. Then (F5, by Wick's theorem) with E = Q − Q*

    L = ½ (tr(E)² + tr(E²) + tr(E Eᵀ)),        ∂L/∂Q = tr(E) I + E + Eᵀ.

Take an aligned state of this symmetric kind, U = P diag(a) Oᵀ and V = P diag(b) Oᵀ. It stays of
that form, and the modes c = ab, with errors e = c − s, move by

    a_i' = −(2e_i + Σ_j e_j) b_i,   b_i' = −(2e_i + Σ_j e_j) a_i,
    c_i' = −(a_i² + b_i²) (2e_i + Σ_j e_j).

So "modes evolve alone" is false here: each hears the trace Σ_j (c_j − s_j) of the error. It falls
silent only at instants with tr E = 0, and the flow does not preserve these.

Lemma. The flow's right-hand side is a polynomial, so a start has one solution only
(Picard-Lindelöf), and the state stays aligned. Over the reals a_i² + b_i² = 0 only if the mode is
at rest, so that every other mode is coupled unless tr E = 0.

Source: F5 written in modes; nobody's theorem that we know of.
"""

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script

LOSS = """
[matrices]
U = ["n", "r"]
V = ["n", "r"]
T = ["n", "n"]
x = ["n", 1]

[define]
E = "U @ V.T - T"
L = "(tr(E) ** 2 + tr(E @ E) + norm2(E)) / 2"

[flow]
loss = "L"
variables = ["U", "V"]

[[claim]]
id = "the-loss"
says = "expect((x.T @ E @ x) ** 2, x) / 2 == L"

[[claim]]
id = "velocity-of-U"
says = "d(U) == -(tr(E) * eye(n) + E + E.T) @ V"

[[claim]]
id = "velocity-of-V"
says = "d(V) == -(tr(E) * eye(n) + E + E.T) @ U"
"""

MODES = """
[matrices]
P = ["n", "k"]
O = ["r", "k"]
s = ["k", 1]
a = ["k", 1]
b = ["k", 1]

[kinds]
P = "orthonormal"
O = "orthonormal"

[define]
U = "P @ diag(a) @ O.T"
V = "P @ diag(b) @ O.T"
E = "U @ V.T - P @ diag(s) @ P.T"
c = "a * b"
e = "c - s"
heard = "2 * e + sum(e) * ones(k, 1)"

[flow.velocity]
a = "-heard * b"
b = "-heard * a"

[[claim]]
id = "U-moves-in-the-family"
says = "d(U) == -(tr(E) * eye(n) + E + E.T) @ V"

[[claim]]
id = "V-moves-in-the-family"
says = "d(V) == -(tr(E) * eye(n) + E + E.T) @ U"

[[claim]]
id = "the-trace-couples"
says = "d(c) == -(a * a + b * b) * (2 * (c - s) + sum(c - s) * ones(k, 1))"

[[claim]]
id = "modes-evolve-alone"
says = "d(c) == -(a * a + b * b) * 2 * (c - s)"

[[claim]]
id = "alone-while-the-trace-is-zero"
says = "d(c) == -(a * a + b * b) * 2 * (c - s)"
assume = ["sum(e) == 0"]

[[claim]]
id = "the-trace-stays-zero"
says = "d(sum(e)) == 0"
assume = ["sum(e) == 0"]
"""

SEED = 15
S = np.array([1.0, 0.6, 0.3])
BASIS = np.linalg.qr(np.random.default_rng(SEED).normal(size=(3, 3)))[0]
TARGET = BASIS @ np.diag(S) @ BASIS.T


def loss(U, V):
    """The mean loss of a torch layer f(x) = Σ_k (u_k·x)(v_k·x) over a Gaussian x.

    By a quadrature with three nodes in each direction, exact for this polynomial of degree four.
    """
    import torch

    node, weight = np.array([-np.sqrt(3), 0.0, np.sqrt(3)]), np.array([1, 4, 1]) / 6
    x = torch.tensor(np.stack(np.meshgrid(node, node, node), axis=-1).reshape(-1, 3))
    weights = torch.tensor(np.einsum("i,j,k->jik", weight, weight, weight).ravel())
    error = ((x @ U) * (x @ V)).sum(dim=1) - ((x @ torch.tensor(TARGET)) * x).sum(dim=1)
    return weights @ error.square() / 2


def test(coupled: bool):
    """The equations of the modes, with the trace or without it, and where they are tested."""

    def velocity(a, b):
        heard = 2 * (a * b - S) + coupled * np.sum(a * b - S)
        return -heard * b, -heard * a

    return load_script(folder("proofs") / "_modes.py").Modes(
        statement=from_text(LOSS)[0].statement,
        problem=nm.BilinearProblem(TARGET),
        a=np.array([0.4, 0.25, 0.2]),
        b=np.array([0.1, 0.2, 0.25]),
        velocity=velocity,
        loss=loss,
        rate=0.1,
        steps=40,
        units=270,  # sums over 27 nodes
        seed=SEED,
    )


claim = Claim(
    id="M15",
    title="one Gaussian input: the trace of the error couples all modes",
    source="F5 in modes",
    statements=(
        *from_text(LOSS),
        *from_text(MODES, {"modes-evolve-alone": "refuted", "the-trace-stays-zero": "refuted"}),
    ),
    lemma="uniqueness of solutions (Picard-Lindelöf); a² + b² > 0 where a mode moves",
    simulation=(
        Experiment(lambda quick: test(True).modes("flow"), name="with the trace"),
        Experiment(lambda quick: test(False).modes("flow"), "unsupported", name="without it"),
        Experiment(lambda quick: test(True).mixing("flow"), name="mixing"),
    ),
    training=(
        Experiment(lambda quick: test(True).modes("network"), name="with the trace"),
        Experiment(lambda quick: test(False).modes("network"), "unsupported", name="without it"),
        Experiment(lambda quick: test(True).mixing("network"), name="mixing"),
    ),
)

"""D1. Gradient descent keeps aligned states aligned: no limit of small steps is needed.

Let Q* = P S Rᵀ, and let the state be aligned, U = P diag(a) Oᵀ and V = R diag(b) Oᵀ. Its gradients
E V and Eᵀ U have the same form (M1), and a step of gradient descent only adds multiples of them. So

    U − η E V = P diag(a⁺) Oᵀ,        a⁺ = a + η (s − a b) b,
    V − η Eᵀ U = R diag(b⁺) Oᵀ,       b⁺ = b + η (s − a b) a        (entry by entry),

for every learning rate η, large ones too. Step after step the state stays aligned, and each mode
runs through a recursion of its own.

Source: Saxe, McClelland and Ganguli 2014 for the flow; Gidel, Bach and Lacoste-Julien 2019 for the
steps.
"""

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script

STATEMENTS = """
[matrices]
P = ["m", "k"]
R = ["n", "k"]
O = ["r", "k"]
s = ["k", 1]
a = ["k", 1]
b = ["k", 1]

[kinds]
P = "orthonormal"
R = "orthonormal"
O = "orthonormal"

[scalars]
eta = {}

[define]
U = "P @ diag(a) @ O.T"
V = "R @ diag(b) @ O.T"
E = "U @ V.T - P @ diag(s) @ R.T"

[step.update]
a = "a + eta * (s - a * b) * b"
b = "b + eta * (s - a * b) * a"

[[claim]]
id = "U-steps-in-the-family"
says = "after(U) == U - eta * E @ V"

[[claim]]
id = "V-steps-in-the-family"
says = "after(V) == V - eta * E.T @ U"

[[claim]]
id = "no-mixing"
says = "P.T @ after(U @ V.T) @ R == diag(after(a * b))"
"""

LOSS = """
[matrices]
U = ["m", "r"]
V = ["n", "r"]
T = ["m", "n"]

[define]
E = "U @ V.T - T"
L = "norm2(E) / 2"

[[claim]]
id = "gradient-U"
says = "grad(L, U) == E @ V"

[[claim]]
id = "gradient-V"
says = "grad(L, V) == E.T @ U"
"""

SEED = 31
S = np.array([1.0, 0.7, 0.4, 0.0])
BASES = (np.linalg.qr(np.random.default_rng(SEED).normal(size=(k, 4)))[0] for k in (5, 4))
TARGET = next(BASES) @ np.diag(S) @ next(BASES).T


def loss(U, V):
    """The loss of a torch network of two layers, whose inputs are the unit vectors."""
    import torch

    return (U @ V.T - torch.tensor(TARGET)).square().sum() / 2


test = load_script(folder("proofs") / "_modes.py").Modes(
    statement=from_text(LOSS)[0].statement,
    problem=nm.BilinearProblem(TARGET),
    a=np.array([0.2, 0.3, 0.4, 0.5]),
    b=np.array([0.1, 0.4, 0.3, 0.2]),
    velocity=lambda a, b: ((S - a * b) * b, (S - a * b) * a),
    loss=loss,
    rate=0.5,  # of order one beside 2/s₁, where descent would diverge: far from the flow
    steps=30,
    units=40,  # sums of at most five products, three in a row, and back to Pᵀ Q R
    seed=SEED,
)

claim = Claim(
    id="D1",
    title="gradient descent keeps aligned states aligned: a⁺ = a + η(s − ab)b, b⁺ = b + η(s − ab)a",
    source="for the flow Saxe, McClelland, Ganguli 2014; for steps Gidel et al. 2019",
    statements=(*from_text(LOSS), *from_text(STATEMENTS)),
    simulation=(
        Experiment(lambda quick: test.modes("steps"), name="modes"),
        Experiment(lambda quick: test.mixing("steps"), name="mixing"),
    ),
    training=(
        Experiment(lambda quick: test.modes("network"), name="modes"),
        Experiment(lambda quick: test.mixing("network"), name="mixing"),
    ),
)

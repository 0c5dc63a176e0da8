"""F2. A gate that is not absorbed changes the flow equation.

Write Q = W A Vᵀ with a fixed diagonal gate A = diag(a), and train W and V. Reading F1 with U = W,
and the gate left out, is tempting and wrong. The gradients carry the gate,

    W' = −E V A,        V' = −Eᵀ W A,

and Q' = W' A Vᵀ + W A V'ᵀ carries it twice:

    Q' = −E V A² Vᵀ − W A² Wᵀ E.

The two agree where A² = I, in particular for gates ±1.

Source: Nema et al. 2026 state F1 for Q = Σ α_k w_k v_kᵀ; refuted here is its literal reading.
"""

import numpy as np

from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.verdict import Verdict, judge

GATED = """
[matrices]
W = ["m", "r"]
V = ["n", "r"]
a = ["r", 1]
T = ["m", "n"]

[define]
Q = "W @ diag(a) @ V.T"
E = "Q - T"

[flow]
loss = "norm2(E) / 2"
variables = ["W", "V"]

[[claim]]
id = "literal"
says = "d(Q) == -E @ V @ V.T - W @ W.T @ E"

[[claim]]
id = "corrected"
says = "d(Q) == -E @ V @ diag(a) @ diag(a) @ V.T - W @ diag(a) @ diag(a) @ W.T @ E"
"""

SQUARE_ONE = """
[matrices]
W = ["m", "r"]
V = ["n", "r"]
A = ["r", "r"]
T = ["m", "n"]

[kinds]
A = ["symmetric", "orthogonal"]

[define]
Q = "W @ A @ V.T"
E = "Q - T"

[flow]
loss = "norm2(E) / 2"
variables = ["W", "V"]

[[claim]]
id = "literal-where-A-squared-is-I"
says = "d(Q) == -E @ V @ V.T - W @ W.T @ E"
"""

SEED = 2


def training(corrected: bool) -> Verdict:
    """The velocity of Q that torch's autograd gives, against the formula."""
    import torch

    generator = np.random.default_rng(SEED)
    W, V, T = (generator.normal(size=shape) for shape in ((5, 3), (4, 3), (5, 4)))
    a = np.array([0.5, 1.5, -2.0])
    w, v = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (W, V))
    gate, target = torch.tensor(a), torch.tensor(T)
    loss = 0.5 * ((w * gate) @ v.T - target).square().sum()
    slope_w, slope_v = (g.numpy() for g in torch.autograd.grad(loss, (w, v)))
    velocity = -(slope_w * a) @ V.T - (W * a) @ slope_v.T
    E = (W * a) @ V.T - T
    gates = a**2 if corrected else np.ones(3)
    formula = -E @ (V * gates) @ V.T - (W * gates) @ W.T @ E
    size = np.linalg.norm(velocity)
    terms = np.linalg.norm(E) * (np.linalg.norm(V * a) ** 2 + np.linalg.norm(W * a) ** 2)
    return judge(
        "training",
        measured=float(np.linalg.norm(velocity - formula) / size),
        predicted=0.0,
        tolerance=float(50 * np.finfo(np.float64).eps * terms / size),
        because="rounding: products of matrices of at most 5 rows, 50 units of their norms",
        scope="relative gap between the velocity of Q by torch's autograd and the formula",
        nulls={"frozen": 1.0, "slowed": 0.2},
        seed=SEED,
    )


claim = Claim(
    id="F2",
    title="fixed gate: not F1 with U = W, but −E V A² Vᵀ − W A² Wᵀ E",
    source="Nema et al. 2026, the flow equation read literally for Q = Σ α_k w_k v_kᵀ",
    statements=(
        *from_text(GATED, {"literal": "refuted", "corrected": "proved"}),
        *from_text(SQUARE_ONE),
    ),
    training=(
        Experiment(lambda quick: training(False), "unsupported", name="literal"),
        Experiment(lambda quick: training(True), name="corrected"),
    ),
)

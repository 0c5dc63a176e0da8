"""F3. Gates that are trained add one term to the flow equation.

Let Q = W A Vᵀ with A = diag(a), as in F2, and now train the gates too. The gate α_k stands before
w_k v_kᵀ, so its gradient is w_kᵀ E v_k, the k-th diagonal entry of Wᵀ E V:

    A' = −diagpart(Wᵀ E V).

The product rule has a third term now, W A' Vᵀ, and F2 becomes

    Q' = −E V A² Vᵀ − W A² Wᵀ E − W diagpart(Wᵀ E V) Vᵀ.

Where all gates are closed, A = 0, the new term is the only one, and it opens them.

Source: Nema et al. 2026 train Q = Σ α_k w_k v_kᵀ; absorbing the gate hides the term.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script

STATEMENTS = from_text(
    """
[matrices]
W = ["m", "r"]
V = ["n", "r"]
a = ["r", 1]
T = ["m", "n"]

[define]
A = "diag(a)"
Q = "W @ A @ V.T"
E = "Q - T"
L = "norm2(E) / 2"
fixed = "-E @ V @ A @ A @ V.T - W @ A @ A @ W.T @ E"

[flow]
loss = "L"
variables = ["W", "V", "a"]

[[claim]]
id = "gate-velocity"
says = "d(A) == -diagpart(W.T @ E @ V)"

[[claim]]
id = "trained-gates"
says = "d(Q) == fixed - W @ diagpart(W.T @ E @ V) @ V.T"

[[claim]]
id = "as-if-fixed"
says = "d(Q) == fixed"

[[claim]]
id = "closed-gates"
says = "d(Q) == W @ diagpart(W.T @ T @ V) @ V.T"
assume = ["a == 0"]
""",
    {"as-if-fixed": "refuted"},
)

Array = NDArray[np.float64]
SEED = 3
DRAW = np.random.default_rng(SEED)
W, V, a, T = (DRAW.normal(size=shape) for shape in ((5, 3), (4, 3), (3, 1), (5, 4)))


def fixed(W: Array, V: Array, a: Array, T: Array) -> Array:
    """The right-hand side of F2, typed by hand."""
    A, E = np.diag(a[:, 0]), (W * a.T) @ V.T - T
    return -E @ V @ A @ A @ V.T - W @ A @ A @ W.T @ E


def trained(W: Array, V: Array, a: Array, T: Array) -> Array:
    """The right-hand side of F3."""
    E = (W * a.T) @ V.T - T
    return fixed(W, V, a, T) - W @ np.diag(np.diag(W.T @ E @ V)) @ V.T


def loss(W: Any, V: Any, a: Any) -> Any:
    """The loss of a torch network x ↦ W (a ∘ Vᵀx) on the unit vectors."""
    import torch

    outputs = [W @ (a[:, 0] * (V.T @ x)) for x in torch.eye(len(V), dtype=torch.float64)]
    return (torch.stack(outputs, 1) - torch.tensor(T)).square().sum() / 2


test = load_script(folder("proofs") / "_velocity.py").Velocity(
    statement=STATEMENTS[1].statement,
    start={"W": W, "V": V, "a": a},
    parameters={"T": T},
    operator=lambda W, V, a: (W * a.T) @ V.T,
    formula=trained,
    wrong={"gates as if fixed": fixed},
    loss=loss,
    seed=SEED,
)

claim = Claim(
    id="F3",
    title="trained gates add − W diagpart(Wᵀ E V) Vᵀ to F2",
    source="Nema et al. 2026, Q = Σ α_k w_k v_kᵀ with trained gates",
    statements=STATEMENTS,
    simulation=(Experiment(test.simulation, name="integral along the flow"),),
    training=(Experiment(test.training, name="velocity in a torch network"),),
)

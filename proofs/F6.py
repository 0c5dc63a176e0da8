"""F6. Tied factors, Q = U Uᵀ, move twice as fast as untied ones that are equal.

With one factor on both sides and a symmetric target, E is symmetric and the gradient of ½‖E‖²_F in
U has two equal parts, one for each place where U stands: U' = −2 E U. Then

    Q' = U' Uᵀ + U U'ᵀ = −2 (E Q + Q E).

Without the 2 this is false; it is the flow of two untied factors that start out equal, U = V. They
stay equal, as both obey U' = −E U, and take twice the time.

Source: F1 with V = U, a common misreading; the tied flow is that of symmetric matrix factorisation.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script

TIED = """
[matrices]
U = ["n", "r"]
T = ["n", "n"]

[kinds]
T = "symmetric"

[define]
Q = "U @ U.T"
E = "Q - T"
L = "norm2(E) / 2"

[flow]
loss = "L"
variables = ["U"]

[[claim]]
id = "tied"
says = "d(Q) == -2 * (E @ Q + Q @ E)"

[[claim]]
id = "without-the-2"
says = "d(Q) == -(E @ Q + Q @ E)"
"""

UNTIED = """
[matrices]
U = ["n", "r"]
V = ["n", "r"]
T = ["n", "n"]

[kinds]
T = "symmetric"

[define]
Q = "U @ V.T"
E = "Q - T"

[flow]
loss = "norm2(E) / 2"
variables = ["U", "V"]

[[claim]]
id = "untied-and-equal-stays-equal"
says = "d(U) == d(V)"
assume = ["V == U"]

[[claim]]
id = "untied-and-equal"
says = "d(Q) == -(E @ Q + Q @ E)"
assume = ["V == U"]
"""

STATEMENTS = (*from_text(TIED, {"without-the-2": "refuted"}), *from_text(UNTIED))
Array = NDArray[np.float64]
SEED = 6
DRAW = np.random.default_rng(SEED)
U, S = DRAW.normal(size=(4, 3)), DRAW.normal(size=(4, 4))
T = S + S.T


def tied(U: Array, T: Array) -> Array:
    """The right-hand side, typed by hand."""
    Q = U @ U.T
    return -2 * ((Q - T) @ Q + Q @ (Q - T))


def loss(U: Any) -> Any:
    """The loss of a torch network x ↦ U (Uᵀ x) on the unit vectors."""
    import torch

    outputs = [U @ (U.T @ x) for x in torch.eye(len(U), dtype=torch.float64)]
    return (torch.stack(outputs, 1) - torch.tensor(T)).square().sum() / 2


test = load_script(folder("proofs") / "_velocity.py").Velocity(
    statement=STATEMENTS[0].statement,
    start={"U": U},
    parameters={"T": T},
    operator=lambda U: U @ U.T,
    formula=tied,
    wrong={"without the 2": lambda U, T: tied(U, T) / 2},
    loss=loss,
    seed=SEED,
)

claim = Claim(
    id="F6",
    title="tied factor, symmetric target: dQ/dt = −2 (E Q + Q E); without the 2, untied",
    source="F1 with V = U; symmetric matrix factorisation",
    statements=STATEMENTS,
    simulation=(Experiment(test.simulation, name="integral along the flow"),),
    training=(Experiment(test.training, name="velocity in a torch network"),),
)

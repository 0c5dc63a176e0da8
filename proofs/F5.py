"""F5. A bilinear layer of one Gaussian input does not follow F1.

Let f(x) = xᵀ Q x, one bilinear layer with one output, learn xᵀ Q* x from standard Gaussian x. Now
both factors see the same input, and the loss holds fourth moments. Wick's theorem pairs the four
x in (xᵀ E x)² in three ways, each of which leaves one invariant of E:

    L = ½ E (xᵀ E x)² = ½ (tr(E)² + tr(E²) + tr(E Eᵀ)).

Its gradient in Q is

    G = tr(E) I + E + Eᵀ,

and G, not E, drives the flow of Q = U Vᵀ: Q' = −G V Vᵀ − U Uᵀ G. "A bilinear layer on whitened
Gaussian inputs follows F1" is false for two reasons. G has a trace term, which M15 follows into the
modes; and G does not see the skew part of E, which no single input does (N3). Only where E is
symmetric and without trace is G = 2 E.

Source: Nema et al. 2026 give a bilinear MLP the loss ½‖Q − Q*‖²_F; refuted is that whitened
Gaussian inputs lead to it. The pairing theorem is Isserlis 1918.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script

FREE = """
[matrices]
E = ["n", "n"]
x = ["n", 1]

[[claim]]
id = "gradient"
says = "grad(expect((x.T @ E @ x) ** 2 / 2, x), E) == tr(E) * eye(n) + E + E.T"
"""

FLOW = """
[matrices]
U = ["n", "r"]
V = ["n", "r"]
T = ["n", "n"]
H = ["n", "n"]
x = ["n", 1]

[kinds]
H = "symmetric"

[define]
Q = "U @ V.T"
E = "Q - T"
G = "tr(E) * eye(n) + E + E.T"
L = "expect((x.T @ E @ x) ** 2 / 2, x)"

[flow]
loss = "L"
variables = ["U", "V"]

[[claim]]
id = "loss"
says = "L == (tr(E) ** 2 + tr(E @ E) + tr(E @ E.T)) / 2"

[[claim]]
id = "flow-equation"
says = "d(Q) == -G @ V @ V.T - U @ U.T @ G"

[[claim]]
id = "follows-F1"
says = "d(Q) == -E @ V @ V.T - U @ U.T @ E"

# The instant at which E is the symmetric matrix H without trace.
[[claim]]
id = "twice-F1"
says = "d(Q) == -2 * E @ V @ V.T - 2 * U @ U.T @ E"
assume = ["T == Q - H", "tr(H) == 0"]
"""

STATEMENTS = (*from_text(FREE), *from_text(FLOW, {"follows-F1": "refuted"}))
Array = NDArray[np.float64]
SEED = 5
DRAW = np.random.default_rng(SEED)
U, V, T = (DRAW.normal(size=shape) for shape in ((3, 2), (3, 2), (3, 3)))


def gaussian(U: Array, V: Array, T: Array) -> Array:
    """The right-hand side, typed by hand."""
    E = U @ V.T - T
    G = np.trace(E) * np.eye(3) + E + E.T
    return -G @ V @ V.T - U @ U.T @ G


def plain(U: Array, V: Array, T: Array) -> Array:
    """The right-hand side of F1."""
    E = U @ V.T - T
    return -E @ V @ V.T - U @ U.T @ E


def loss(U: Any, V: Any) -> Any:
    """The layer's mean loss, by Gauss-Hermite quadrature.

    Three nodes an axis are exact up to degree five in each entry of x; the loss has degree four.
    """
    import torch

    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    inputs = torch.tensor(np.stack(np.meshgrid(nodes, nodes, nodes), -1).reshape(-1, 3))
    chances = torch.tensor(np.einsum("i,j,k->ijk", *[weights / weights.sum()] * 3).ravel())
    wanted = ((inputs @ torch.tensor(T)) * inputs).sum(1)
    outputs = ((inputs @ U) * (inputs @ V)).sum(1)
    return chances @ (outputs - wanted).square() / 2


test = load_script(folder("proofs") / "_velocity.py").Velocity(
    statement=STATEMENTS[2].statement,
    start={"U": U, "V": V},
    parameters={"T": T},
    operator=lambda U, V: U @ V.T,
    formula=gaussian,
    wrong={"F1": plain, "twice F1": lambda *state: 2 * plain(*state)},
    loss=loss,
    seed=SEED,
)

claim = Claim(
    id="F5",
    title="one Gaussian input: tr(E) I + E + Eᵀ takes the place of E; not F1",
    source="Nema et al. 2026, F1 for bilinear MLPs; Isserlis 1918 for the mean",
    statements=STATEMENTS,
    simulation=(Experiment(test.simulation, name="integral along the flow"),),
    training=(Experiment(test.training, name="velocity in a torch network"),),
)

"""F4. Two independent inputs: the data enter through their second moments.

A layer compares two inputs, f(x, y) = xᵀ Q y, and is to give xᵀ Q* y. One pair costs
½ (xᵀ E y)² = ½ tr(x xᵀ E y yᵀ Eᵀ). The mean over pairs with independent x and y turns x xᵀ into
Σx and y yᵀ into Σy, whatever else their distributions are:

    L = ½ tr(Σx E Σy Eᵀ).

(The prover shows it for Gaussians too, by Wick's theorem, with x = Ax g and Σx = Ax Axᵀ.) Its
gradient in Q is F = Σx E Σy, and F takes the place of E in F1:

    Q' = −F V Vᵀ − U Uᵀ F.

So "F1 holds for all data" is false; it holds where both inputs are whitened. If x and y are not
independent, fourth moments enter: F5.

Source: Nema et al. 2026 state F1; Saxe, McClelland, Ganguli 2014 have one such moment, their Σ¹¹,
and whiten it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script

MEAN = """
[matrices]
E = ["m", "n"]
x = ["m", 1]
y = ["n", 1]
Ax = ["m", "p"]
Ay = ["n", "q"]
g = ["p", 1]
h = ["q", 1]

[define]
Sx = "Ax @ Ax.T"
Sy = "Ay @ Ay.T"

[[claim]]
id = "one-pair"
says = "(x.T @ E @ y) ** 2 == tr((x @ x.T) @ E @ (y @ y.T) @ E.T)"

[[claim]]
id = "gaussian-mean"
says = "expect(expect(((Ax @ g).T @ E @ (Ay @ h)) ** 2, g), h) == tr(Sx @ E @ Sy @ E.T)"
"""

FLOW = """
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
Q = "U @ V.T"
E = "Q - T"
F = "Sx @ E @ Sy"
L = "tr(Sx @ E @ Sy @ E.T) / 2"

[flow]
loss = "L"
variables = ["U", "V"]

[[claim]]
id = "flow-equation"
says = "d(Q) == -F @ V @ V.T - U @ U.T @ F"

[[claim]]
id = "F1-for-all-data"
says = "d(Q) == -E @ V @ V.T - U @ U.T @ E"

[[claim]]
id = "F1-where-whitened"
says = "d(Q) == -E @ V @ V.T - U @ U.T @ E"
assume = ["Sx == eye(m)", "Sy == eye(n)"]
"""

STATEMENTS = (*from_text(MEAN), *from_text(FLOW, {"F1-for-all-data": "refuted"}))
Array = NDArray[np.float64]
SEED = 4
DRAW = np.random.default_rng(SEED)
U, V, T = (DRAW.normal(size=shape) for shape in ((4, 2), (3, 2), (4, 3)))
X, Y = DRAW.normal(size=(12, 4)), DRAW.uniform(size=(12, 3))


def moments(U: Array, V: Array, T: Array, Sx: Array, Sy: Array) -> Array:
    """The right-hand side, typed by hand."""
    F = Sx @ (U @ V.T - T) @ Sy
    return -F @ V @ V.T - U @ U.T @ F


def plain(U: Array, V: Array, T: Array, Sx: Array, Sy: Array) -> Array:
    """The right-hand side of F1."""
    return moments(U, V, T, np.eye(4), np.eye(3))


def loss(U: Any, V: Any) -> Any:
    """The mean over all pairs of an x and a y, which makes the two independent."""
    import torch

    x, y = torch.tensor(X), torch.tensor(Y)
    return ((x @ U) @ (y @ V).T - x @ torch.tensor(T) @ y.T).square().mean() / 2


test = load_script(folder("proofs") / "_velocity.py").Velocity(
    statement=STATEMENTS[2].statement,
    start={"U": U, "V": V},
    parameters={"T": T, "Sx": X.T @ X / len(X), "Sy": Y.T @ Y / len(Y)},
    operator=lambda U, V: U @ V.T,
    formula=moments,
    wrong={"F1": plain},
    loss=loss,
    seed=SEED,
)

claim = Claim(
    id="F4",
    title="independent inputs: Σx E Σy takes the place of E in F1; F1 does not hold for all data",
    source="Nema et al. 2026, F1; Saxe, McClelland, Ganguli 2014 for one moment, Σ¹¹",
    statements=STATEMENTS,
    simulation=(Experiment(test.simulation, name="integral along the flow"),),
    training=(Experiment(test.training, name="velocity in a torch network"),),
)

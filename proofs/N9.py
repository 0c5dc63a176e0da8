"""N9. The gradient of a gated layer, what attention it is, and the symmetry that its gate breaks.

A gated layer is D(φ(W X) ∘ (V X)), with inputs as columns of X. φ is any differentiable function,
entry by entry; φ(z) = z is the bilinear layer. With L = ½‖D(φ(W X) ∘ (V X)) − Y‖², the error F, and
H = Dᵀ F, what the error asks of the hidden units,

    ∂L/∂D = F (φ(W X) ∘ (V X))ᵀ,
    ∂L/∂V = (H ∘ φ(W X)) Xᵀ,
    ∂L/∂W = (H ∘ (V X) ∘ φ'(W X)) Xᵀ.

As attention: a head with query q x and key k x of ℓ numbers each scores (q x)ᵀ(k x) = xᵀ qᵀ k x.
It is ℓ bilinear units that share an output, and at ℓ = 1 a single one. So the layer is a sum of
rank-one bilinear heads, and reads the diagonal of the rank-one matrix of scores φ(W x)(V x)ᵀ.

Query and key are exchangeable in the bilinear layer. Its function does not change if W and V swap,
W = V stays if it holds once, and the flow conserves ‖v_k‖² − ‖w_k‖² as well as ‖v_k‖² − ‖d_k‖². A
nonlinearity on one factor breaks all of that but the last: V and D still enter linearly.

Source: "Gated MLPs as Symmetry-Broken Rank-1 Bilinear Attention", listed beside Pearce et al. 2024;
the conserved quantities as in Du, Hu and Lee 2018. (In the statements D is called O.)
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import expit

from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script
from nonmixing.verdict import Verdict, judge

one_thread = load_script(folder("proofs") / "_threads.py").one_thread
Array = np.ndarray

GATED = """
[matrices]
O = ["q", "k"]
W = ["k", "n"]
V = ["k", "n"]
X = ["n", "N"]
Y = ["q", "N"]
x = ["n", 1]

[functions]
phi = {}

[define]
gate = "phi(W @ X)"
slope = "dphi(W @ X)"
layer = "O @ (gate * (V @ X))"
F = "layer - Y"
H = "O.T @ F"
L = "norm2(F) / 2"

[flow]
loss = "L"
variables = ["O", "W", "V"]

[[claim]]
id = "gradient-D"
says = "grad(L, O) == F @ (gate * (V @ X)).T"

[[claim]]
id = "gradient-V"
says = "grad(L, V) == (H * gate) @ X.T"

[[claim]]
id = "gradient-W"
says = "grad(L, W) == (H * (V @ X) * slope) @ X.T"

[[claim]]
id = "diagonal-of-rank-one-attention"
says = "O @ (phi(W @ x) * (V @ x)) == O @ diagpart(phi(W @ x) @ (V @ x).T) @ ones(k, 1)"

[[claim]]
id = "value-and-output-conserved"
says = "d(diagpart(V @ V.T - O.T @ O)) == 0"

[[claim]]
id = "exchange-with-a-nonlinearity"
says = "layer == O @ (phi(V @ X) * (W @ X))"

[[claim]]
id = "factors-conserved-with-a-nonlinearity"
says = "d(diagpart(V @ V.T - W @ W.T)) == 0"

[[claim]]
id = "equal-factors-stay-with-a-nonlinearity"
says = "d(W - V) == 0"
assume = ["W == V"]
"""

BILINEAR = """
[matrices]
O = ["q", "k"]
W = ["k", "n"]
V = ["k", "n"]
X = ["n", "N"]
Y = ["q", "N"]
x = ["n", 1]
query = ["l", "n"]
key = ["l", "n"]
o = ["q", 1]

[define]
layer = "O @ ((W @ X) * (V @ X))"
L = "norm2(layer - Y) / 2"

[flow]
loss = "L"
variables = ["O", "W", "V"]

[[claim]]
id = "a-head-is-units-that-share-an-output"
says = "o @ (query @ x).T @ (key @ x) == contract(tensor(o @ ones(1, l), query, key), x, x)"

[[claim]]
id = "exchange"
says = "layer == O @ ((V @ X) * (W @ X))"

[[claim]]
id = "factors-conserved"
says = "d(diagpart(V @ V.T - W @ W.T)) == 0"

[[claim]]
id = "equal-factors-stay"
says = "d(W - V) == 0"
assume = ["W == V"]
"""

SEED = 49
EPSILON = float(np.finfo(np.float64).eps)
DRAW = np.random.default_rng(SEED)
X, Y = DRAW.normal(size=(4, 12)), DRAW.normal(size=(2, 12))
START = DRAW.normal(size=50) / 2  # D (2, 5), W (5, 4) and V (5, 4)


class Gate(NamedTuple):
    """φ and φ', typed by hand."""

    phi: Callable[[Array], Array]
    slope: Callable[[Array], Array]


IDENTITY = Gate(lambda z: z, np.ones_like)
SILU = Gate(lambda z: z * expit(z), lambda z: expit(z) * (1 + z * expit(-z)))
# |SiLU(z)| ≤ |z| and |SiLU'| ≤ 1.1.
BOUND = Gate(lambda z: z, lambda z: 1.1 * np.ones_like(z))


def gradients(state: Array, gate: Gate, X: Array = X, Y: Array = Y) -> Array:
    """The gradients in D, W and V, one vector as the state is, typed by hand."""
    D, W, V = split(state)
    gated, v = gate.phi(W @ X), V @ X
    error = D @ (gated * v) - Y
    asked = D.T @ error
    parts = error @ (gated * v).T, (asked * v * gate.slope(W @ X)) @ X.T, (asked * gated) @ X.T
    return np.concatenate([part.ravel() for part in parts])


def split(state: Array) -> list[Array]:
    """D, W and V."""
    return [state[:10].reshape(2, 5), state[10:30].reshape(5, 4), state[30:].reshape(5, 4)]


def conserved(gate: Gate, key: str) -> Verdict:
    """How ‖v_k‖² − ‖d_k‖², or ‖v_k‖² − ‖w_k‖², drifts along the flow, over how ‖v_k‖² changes."""
    rtol = 1e-10

    def velocity(_: float, state: Array) -> Array:
        return -gradients(state, gate)

    run = solve_ivp(velocity, (0, 2), START, "DOP853", rtol=rtol, atol=rtol / 1000)

    def squares(state: Array) -> dict[str, Array]:
        D, W, V = split(state)
        return {"d": np.sum(D**2, axis=0), "w": np.sum(W**2, axis=1), "v": np.sum(V**2, axis=1)}

    begin, end = squares(START), squares(run.y[:, -1])
    moved, partner = end["v"] - begin["v"], end[key] - begin[key]
    size = float(np.linalg.norm(moved))
    return judge(
        "simulation",
        measured=float(np.linalg.norm(moved - partner)) / size,
        predicted=0.0,
        tolerance=run.nfev * rtol * float(np.sum(run.y**2, axis=0).max()) / size,
        because="the integrator's rtol for each evaluation of the flow, of the sum of all squares",
        scope=f"drift of ‖v_k‖² − ‖{key}_k‖² over the change of ‖v_k‖²",
        nulls={
            "partner frozen": 1.0,
            "sum in its place": float(np.linalg.norm(moved + partner)) / size,
        },
        seed=SEED,
    )


def output(weights, gated: bool):
    """The layer in torch."""
    import torch

    D, W, V = weights
    first = W @ torch.tensor(X)
    return D @ ((torch.nn.functional.silu(first) if gated else first) * (V @ torch.tensor(X)))


def autograd(quick: bool) -> Verdict:
    """Torch's gradients of a SwiGLU layer against the formulas."""
    import torch

    weights = [torch.tensor(part, requires_grad=True) for part in split(START)]
    loss = (output(weights, gated=True) - torch.tensor(Y)).square().sum() / 2
    seen = np.concatenate([x.numpy().ravel() for x in torch.autograd.grad(loss, weights)])
    size = float(np.linalg.norm(seen))

    def off(gate: Gate) -> float:
        return float(np.linalg.norm(seen - gradients(START, gate))) / size

    one_sign = gradients(abs(START), BOUND, abs(X), -abs(Y))
    return judge(
        "training",
        measured=off(SILU),
        predicted=0.0,
        tolerance=100 * EPSILON * float(np.linalg.norm(one_sign)) / size,
        because="rounding: fewer than 100 operations in a row, of values with all signs alike",
        scope="relative gap between torch's gradients of a SwiGLU layer and the formulas",
        nulls={
            "frozen": 1.0,
            "without φ'": off(Gate(SILU.phi, np.ones_like)),
            "bilinear": off(IDENTITY),
        },
        seed=SEED,
    )


def apart(gated: bool) -> float:
    """‖W − V‖ over ‖V‖ after 100 steps in torch from W = V."""
    import torch

    D, W, _ = split(START)
    weights = [torch.tensor(part.copy(), requires_grad=True) for part in (D, W, W)]
    optimiser = torch.optim.SGD(weights, lr=0.01)
    with one_thread():
        for _ in range(100):
            optimiser.zero_grad()
            (output(weights, gated) - torch.tensor(Y)).square().mean().backward()
            optimiser.step()
    first, second = (part.detach().numpy() for part in weights[1:])
    return float(np.linalg.norm(first - second) / np.linalg.norm(second))


def equal(gated: bool) -> Verdict:
    """Whether a network that starts with W = V keeps it."""
    return judge(
        "training",
        measured=apart(gated),
        predicted=0.0,
        tolerance=100 * 100 * EPSILON,
        because="rounding: 100 steps of 100 operations",
        scope="‖W − V‖ / ‖V‖ after 100 steps from W = V",
        nulls={} if gated else {"SwiGLU": apart(True)},
        seed=SEED,
    )


claim = Claim(
    id="N9",
    title="gradient of a gated layer; rank-one bilinear attention; a nonlinearity breaks exchange",
    source='"Gated MLPs as Symmetry-Broken Rank-1 Bilinear Attention", with Pearce et al. 2024',
    statements=(
        *from_text(
            GATED,
            {
                "exchange-with-a-nonlinearity": "refuted",
                "factors-conserved-with-a-nonlinearity": "refuted",
                "equal-factors-stay-with-a-nonlinearity": "refuted",
            },
        ),
        *from_text(BILINEAR),
    ),
    simulation=(
        Experiment(lambda quick: conserved(SILU, "d"), name="SwiGLU: ‖v‖² − ‖d‖²"),
        Experiment(lambda quick: conserved(SILU, "w"), "unsupported", name="SwiGLU: ‖v‖² − ‖w‖²"),
        Experiment(lambda quick: conserved(IDENTITY, "w"), name="bilinear: ‖v‖² − ‖w‖²"),
    ),
    training=(
        Experiment(autograd, name="torch's gradients"),
        Experiment(lambda quick: equal(False), name="bilinear: W = V stays"),
        Experiment(lambda quick: equal(True), "unsupported", name="SwiGLU: W = V stays"),
    ),
)

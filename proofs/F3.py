"""F3. Gates that are trained add one term to the flow equation.

Let Q = W A Vᵀ with A = diag(a), as in F2, and now train the gates too. The gate α_k stands before
w_k v_kᵀ, so its gradient is w_kᵀ E v_k, the k-th diagonal entry of Wᵀ E V:

    A' = −diagpart(Wᵀ E V).

The product rule has a third term now, W A' Vᵀ, and F2 becomes

    Q' = −E V A² Vᵀ − W A² Wᵀ E − W diagpart(Wᵀ E V) Vᵀ.

Where all gates are closed, A = 0, the new term is the only one, and the one that opens them.

Source: Nema et al. 2026 train Q = Σ α_k w_k v_kᵀ; absorbing the gate hides the term.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.compare import CLOCKS
from nonmixing.dynamics.lower import lower
from nonmixing.flow import GradientFlow
from nonmixing.verdict import Verdict, judge

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
START = [DRAW.normal(size=shape) for shape in ((5, 3), (4, 3), (3, 1))]
TARGET = DRAW.normal(size=(5, 4))
SHAPES, CUTS = [x.shape for x in START], np.cumsum([x.size for x in START])


def formula(W: Array, V: Array, a: Array, T: Array, trained: bool = True) -> Array:
    """The right-hand side, typed by hand; that of fixed gates if they are not trained."""
    A = np.diag(a[:, 0])
    E = W @ A @ V.T - T
    fixed = -E @ V @ A @ A @ V.T - W @ A @ A @ W.T @ E
    return fixed - trained * W @ np.diag(np.diag(W.T @ E @ V)) @ V.T


def integral(trained: bool, rtol: float) -> tuple[Array, Array, int]:
    """The formula's integral along the flow, the change of Q, the number of evaluations."""
    setting = STATEMENTS[0].statement.setting
    flow = GradientFlow(setting.abbreviations["L"], ["W", "V", "a"], setting=setting)
    velocity = lower(flow, {"T": TARGET})

    def unpack(flat: Array) -> list[Array]:
        return [x.reshape(s) for x, s in zip(np.split(flat, CUTS), SHAPES, strict=False)]

    def rate(_: float, flat: Array) -> Array:
        W, V, a = unpack(flat)
        sides = (*velocity((W, V, a)), formula(W, V, a, TARGET, trained))
        return np.concatenate([x.ravel() for x in sides])

    begin = np.concatenate([*(x.ravel() for x in START), np.zeros(TARGET.size)])
    run = solve_ivp(rate, (0, 1), begin, method="DOP853", rtol=rtol, atol=rtol / 1000)
    (W0, V0, a0), (W, V, a) = START, unpack(run.y[:, -1])
    found = run.y[CUTS[-1] :, -1].reshape(TARGET.shape)
    return found, (W * a.T) @ V.T - (W0 * a0.T) @ V0.T, run.nfev


def simulation(quick: bool) -> Verdict:
    """The change of Q along the flow derived from the loss, against the formula's integral."""
    rtol = 1e-10
    found, change, evaluations = integral(True, rtol)

    def off(value: Array) -> float:
        return float(np.linalg.norm(value - change) / np.linalg.norm(change))

    nulls = {name: off(x * found) for name, x in {"frozen": 0.0, **CLOCKS}.items()}
    return judge(
        "simulation",
        measured=off(found),
        predicted=0.0,
        tolerance=evaluations * rtol,
        because="the integrator's rtol for each evaluation; the two are integrated side by side, "
        "so that their errors add up and do not grow",
        scope="relative gap between the formula's integral and the change of Q along the flow",
        nulls=nulls | {"gates as if fixed": off(integral(False, rtol)[0])},
        seed=SEED,
    )


def training(quick: bool) -> Verdict:
    """The velocity of Q under torch's gradients, with torch's product rule."""
    import torch
    from torch.autograd.functional import jvp

    def operator(w: torch.Tensor, v: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return (w * a.T) @ v.T

    state = tuple(torch.tensor(x, requires_grad=True) for x in START)
    loss = (operator(*state) - torch.tensor(TARGET)).square().sum() / 2
    descent = tuple(-slope for slope in torch.autograd.grad(loss, state))
    velocity = jvp(operator, state, descent)[1].numpy()
    size = np.linalg.norm(velocity)
    W, V, a = START
    sums = formula(abs(W), abs(V), abs(a), -abs(TARGET))
    return judge(
        "training",
        measured=float(np.linalg.norm(velocity - formula(W, V, a, TARGET)) / size),
        predicted=0.0,
        tolerance=float(100 * np.finfo(np.float64).eps * np.linalg.norm(sums) / size),
        because="rounding: 100 units of the formula with all its terms of one sign, more than the "
        "operations of both routes in a row",
        scope="relative gap between the velocity of Q in a torch network and the formula",
        nulls={
            **{name: abs(1 - x) for name, x in {"frozen": 0.0, **CLOCKS}.items()},
            "gates as if fixed": float(
                np.linalg.norm(velocity - formula(W, V, a, TARGET, trained=False)) / size
            ),
        },
        seed=SEED,
    )


claim = Claim(
    id="F3",
    title="trained gates add − W diagpart(Wᵀ E V) Vᵀ to F2",
    source="Nema et al. 2026, Q = Σ α_k w_k v_kᵀ with trained gates",
    statements=STATEMENTS,
    simulation=(Experiment(simulation, name="integral along the flow"),),
    training=(Experiment(training, name="velocity by torch's autograd"),),
)

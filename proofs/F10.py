"""F10. With gates, only part of the imbalance is conserved.

Where Q = U Vᵀ, the whole matrix UᵀU − VᵀV stands still (F9). With gates, Q = W A Vᵀ, it does not:
B = WᵀW − VᵀV moves, fixed gates or trained, as

    B' = A K − K A,        K = Wᵀ E V − Vᵀ Eᵀ W.

Entry (i, j) is (α_i − α_j) K_ij. So what is conserved is

- the diagonal, ‖w_k‖² − ‖v_k‖² for each k, fixed gates or trained;
- off the diagonal, the blocks of equal fixed gates, and these only;
- with trained gates, α_k² − ‖w_k‖² as well: each triple (α_k, w_k, v_k) is balanced in itself.

Source: Du, Hu, Lee 2018, section 2: the whole matrix for linear layers, which is refuted here for W
in the place of U; the diagonal, unit by unit, where something acts on each unit between the layers.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script
from nonmixing.verdict import Verdict, judge

GATES = """
[matrices]
W = ["m", "r"]
V = ["n", "r"]
a = ["r", 1]
T = ["m", "n"]

[define]
A = "diag(a)"
E = "W @ A @ V.T - T"
L = "norm2(E) / 2"
B = "W.T @ W - V.T @ V"
K = "W.T @ E @ V - V.T @ E.T @ W"

[flow]
loss = "L"
variables = ["W", "V"]

[[claim]]
id = "fixed-matrix"
says = "d(B) == 0"

[[claim]]
id = "fixed-rate"
says = "d(B) == A @ K - K @ A"

[[claim]]
id = "fixed-diagonal"
says = "d(diagpart(B)) == 0"

[[claim]]
id = "fixed-gates-and-norms"
says = "d(A @ A - diagpart(W.T @ W)) == 0"
"""

TRAINED = GATES.replace('["W", "V"]', '["W", "V", "a"]').replace("fixed", "trained")

BLOCKS = """
[matrices]
W1 = ["m", "p"]
W2 = ["m", "q"]
V1 = ["n", "p"]
V2 = ["n", "q"]
T = ["m", "n"]

[scalars]
alpha = {}
beta = {}

[define]
E = "hstack(W1, W2) @ blkdiag(alpha * eye(p), beta * eye(q)) @ hstack(V1, V2).T - T"

[flow]
loss = "norm2(E) / 2"
variables = ["W1", "V1", "W2", "V2"]

[[claim]]
id = "equal-gates"
says = "d(W1.T @ W1 - V1.T @ V1) == 0"

[[claim]]
id = "unequal-gates"
says = "d(W1.T @ W2 - V1.T @ V2) == 0"
"""

Array = NDArray[np.float64]
Change = Callable[[Callable[..., Any], int, bool], Array]
SEED = 10
DRAW = np.random.default_rng(SEED)
W, V, T = (DRAW.normal(size=shape) for shape in ((5, 3), (4, 3), (5, 4)))
a = np.array([[0.8], [0.8], [1.5]])  # the first two gates are equal
STATEMENTS = (
    *from_text(GATES, {"fixed-matrix": "refuted", "fixed-gates-and-norms": "refuted"}),
    *from_text(TRAINED, {"trained-matrix": "refuted"}),
    *from_text(BLOCKS, {"unequal-gates": "refuted"}),
)
march = load_script(folder("proofs") / "_velocity.py").march


def matrix(sign: int, W: Any, V: Any, a: Any) -> Any:
    """WᵀW − VᵀV; another sign gives what is not conserved."""
    return W.T @ W + sign * V.T @ V


def gates(sign: int, W: Any, V: Any, a: Any) -> Any:
    """The α_k² − ‖w_k‖²."""
    return a * a + sign * (W * W).sum(0)[:, None]


def simulation(quick: bool) -> Verdict:
    """The changes along the flow."""
    moving, constant = {"W": W, "V": V}, {"T": T, "a": a}
    fixed = march(STATEMENTS[0].statement, moving, constant, (0, 1))
    trained = march(STATEMENTS[4].statement, moving | {"a": a}, {"T": T}, (0, 1))

    def change(quantity: Callable[..., Any], sign: int, gates_move: bool) -> Array:
        run, rest = (trained, {}) if gates_move else (fixed, {"a": a})
        first, last = (quantity(sign, **state, **rest) for state in run.states)
        return last - first

    because = "the integrator's rtol for each evaluation of the flow"
    return verdict("simulation", change, max(fixed.noise, trained.noise), because)


def training(quick: bool) -> Verdict:
    """The velocities when the weights of a torch network descend."""
    import torch
    from torch.autograd.functional import jvp

    state = tuple(torch.tensor(x, requires_grad=True) for x in (W, V, a))
    loss = ((state[0] * state[2].T) @ state[1].T - torch.tensor(T)).square().sum() / 2
    w, v, gate = (-slope for slope in torch.autograd.grad(loss, state))

    def change(quantity: Callable[..., Any], sign: int, gates_move: bool) -> Array:
        moves = (w, v, gate if gates_move else torch.zeros_like(gate))
        velocity: Any = jvp(lambda *now: quantity(sign, *now), state, moves)[1]
        return velocity.numpy()

    terms = abs(W).T @ (abs(W * a.T) @ abs(V).T + abs(T)) @ abs(V) * abs(a.T)
    noise = 100 * np.finfo(np.float64).eps * np.linalg.norm(4 * terms)
    noise = float(noise / np.linalg.norm(change(matrix, 0, False)))
    because = "rounding: 100 machine epsilons of the four terms Wᵀ E V A with positive entries"
    return verdict("training", change, noise, because)


def verdict(
    evidence: Literal["simulation", "training"], change: Change, noise: float, because: str
) -> Verdict:
    """What is said to be conserved, relative to the change of WᵀW alone."""

    def parts(sign: int) -> tuple[Any, ...]:
        fixed, trained = change(matrix, sign, False), change(matrix, sign, True)
        return np.diag(fixed), fixed[0, 1], np.diag(trained), change(gates, sign, True)

    moved = np.linalg.norm(change(matrix, 0, False))
    whole = [change(matrix, -1, gates_move) for gates_move in (False, True)]
    return judge(
        evidence,
        measured=[float(np.linalg.norm(part) / moved) for part in parts(-1)],
        predicted=0.0,
        tolerance=noise,
        because=because,
        scope="change of the diagonal, of a block of equal gates, of the diagonal with trained "
        "gates, of α² − ‖w‖², over that of WᵀW",
        nulls={
            "sums, not differences": [float(np.linalg.norm(part) / moved) for part in parts(1)],
            "the whole matrix": float(min(np.linalg.norm(x) for x in whole) / moved),
        },
        seed=SEED,
    )


claim = Claim(
    id="F10",
    title="with gates WᵀW − VᵀV is not conserved; its diagonal is, and blocks of equal fixed gates",
    source="Du, Hu, Lee 2018, section 2",
    statements=STATEMENTS,
    simulation=(Experiment(simulation, name="along the flow"),),
    training=(Experiment(training, name="velocity in a torch network"),),
)

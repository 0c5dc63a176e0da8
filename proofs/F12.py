"""F12. A low-rank update, Q = Q₀ + B A, follows F1, and from B = 0 it is B that moves first.

Freeze Q₀ and train B and A on ½‖Q − Q*‖²_F. The frozen part only shifts the target: with U = B and
V = Aᵀ this is F1 with Q* − Q₀ in the place of Q*, so that

    Q' = −E Aᵀ A − B Bᵀ E,        BᵀB − A Aᵀ is conserved.

The usual start has B = 0, so that Q = Q₀ at first. Then A' = −Bᵀ E = 0: only B moves, by
B' = −E₀ Aᵀ, and Q moves by −E₀ Aᵀ A, the full gradient seen through the rows of A. A follows to
second order, A'' = A E₀ᵀ E₀. The conserved BᵀB − A Aᵀ is −A₀ A₀ᵀ: far from balanced.

Source: Hu et al. 2021 (LoRA) for Q₀ + B A and B = 0; F1 and F9 for the rest.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script
from nonmixing.verdict import Verdict, judge

STATEMENTS = from_text("""
[matrices]
Q0 = ["m", "n"]
B = ["m", "r"]
A = ["r", "n"]
T = ["m", "n"]

[define]
Q = "Q0 + B @ A"
E = "Q - T"
L = "norm2(E) / 2"

[flow]
loss = "L"
variables = ["B", "A"]

[[claim]]
id = "flow-equation"
says = "d(Q) == -E @ A.T @ A - B @ B.T @ E"

[[claim]]
id = "conserved"
says = "d(B.T @ B - A @ A.T) == 0"

[[claim]]
id = "A-stands"
says = "d(A) == 0"
assume = ["B == 0"]

[[claim]]
id = "B-moves"
says = "d(B) == -(Q0 - T) @ A.T"
assume = ["B == 0"]

[[claim]]
id = "A-follows"
says = "d(d(A)) == A @ (Q0 - T).T @ (Q0 - T)"
assume = ["B == 0"]
""")

Array = NDArray[np.float64]
SEED = 12
DRAW = np.random.default_rng(SEED)
Q0, B, A, T = (DRAW.normal(size=shape) for shape in ((5, 4), (5, 2), (2, 4), (5, 4)))
lora = load_script(folder("proofs") / "_velocity.py")


def formula(B: Array, A: Array, T: Array, Q0: Array) -> Array:
    """The right-hand side, typed by hand."""
    E = Q0 + B @ A - T
    return -E @ A.T @ A - B @ B.T @ E


def loss(B: Any, A: Any) -> Any:
    """The loss of a torch network x ↦ Q₀ x + B (A x) on the unit vectors."""
    import torch

    frozen = torch.tensor(Q0)
    outputs = [frozen @ x + B @ (A @ x) for x in torch.eye(4, dtype=torch.float64)]
    return (torch.stack(outputs, 1) - torch.tensor(T)).square().sum() / 2


def conserved(quick: bool) -> Verdict:
    """The drift of BᵀB − A Aᵀ from B = 0, over the change of BᵀB."""
    start = {"B": 0 * B, "A": A}
    run = lora.march(STATEMENTS[0].statement, start, {"T": T, "Q0": Q0}, (0, 1))
    first, last = run.states

    def change(sign: int) -> float:
        grams = [x["B"].T @ x["B"] + sign * x["A"] @ x["A"].T for x in (first, last)]
        return float(np.linalg.norm(grams[1] - grams[0]))

    return judge(
        "simulation",
        measured=change(-1) / change(0),
        predicted=0.0,
        tolerance=run.noise,
        because="the integrator's rtol for each evaluation of the flow",
        scope="drift of BᵀB − A Aᵀ from B = 0, over the change of BᵀB",
        nulls={"BᵀB + A Aᵀ in its place": change(1) / change(0)},
        seed=SEED,
    )


def first_step(quick: bool) -> Verdict:
    """How far A moves in a step of torch's descent from B = 0, over how far B moves."""
    import torch

    weights = [torch.tensor(x, requires_grad=True) for x in (0 * B, A)]
    descent = torch.optim.SGD(weights, lr=0.01)
    moves = []
    for _ in range(2):
        before = [weight.detach().clone() for weight in weights]
        descent.zero_grad()
        loss(*weights).backward()
        descent.step()
        pairs = zip(weights, before, strict=True)
        moves.append([float((x.detach() - y).norm()) for x, y in pairs])
    return judge(
        "training",
        measured=moves[0][1] / moves[0][0],
        predicted=0.0,
        tolerance=float(np.finfo(np.float64).eps),
        because="rounding: −Bᵀ E is a sum of zeros",
        scope="how far A moves in the first step from B = 0, over how far B moves",
        nulls={"the second step": moves[1][1] / moves[1][0]},
        seed=SEED,
    )


test = lora.Velocity(
    statement=STATEMENTS[0].statement,
    start={"B": B, "A": A},
    parameters={"T": T, "Q0": Q0},
    operator=lambda B, A: B @ A,
    formula=formula,
    wrong={"B moves, A does not": lambda B, A, T, Q0: -(Q0 + B @ A - T) @ A.T @ A},
    loss=loss,
    seed=SEED,
)

claim = Claim(
    id="F12",
    title="Q = Q₀ + B A: at B = 0 only B moves; BᵀB − A Aᵀ is conserved",
    source="Hu et al. 2021 (LoRA); Du, Hu, Lee 2018 for what is conserved",
    statements=STATEMENTS,
    simulation=(
        Experiment(test.simulation, name="integral along the flow"),
        Experiment(conserved, name="drift from B = 0"),
    ),
    training=(
        Experiment(test.training, name="velocity in a torch network"),
        Experiment(first_step, name="first step from B = 0"),
    ),
)

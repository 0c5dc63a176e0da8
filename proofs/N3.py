"""N3. One input sees the symmetric part of an operator; two inputs see all of it.

On one input, xᵀ Q x = xᵀ Qᵀ x, for a number is its own transpose: only sym(Q) = (Q + Qᵀ)/2 acts,
and the skew part is invisible. No more can be dropped, for the outputs give sym(Q) back:

    4 xᵀ sym(Q) y = (x + y)ᵀ Q (x + y) − (x − y)ᵀ Q (x − y).

So two bilinear layers are the same function iff all their sym(Q_o) agree; D((Wx) ∘ (Vx)) may swap W
and V. Nor does training on one Gaussian input ever ask Q itself for a skew part.

With two inputs, xᵀ Q y, the skew part acts, xᵀ Q y − xᵀ sym(Q) y = xᵀ skew(Q) y, and every entry
can be read off: the gradient in Q is x yᵀ, and unit vectors x, y give every matrix of one entry.
"Only sym(Q) acts" is false there, for W and V read different things.

Source: Pearce et al. 2024, who symmetrise the operators of a layer with one input.
"""

import numpy as np

from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script
from nonmixing.verdict import Verdict, judge

one_thread = load_script(folder("proofs") / "_threads.py").one_thread

STATEMENTS = """
[matrices]
Q = ["n", "n"]
E = ["n", "n"]  # Q − Q*; the gradient in Q is the one in E
O = ["q", "k"]
W = ["k", "n"]
V = ["k", "n"]
x = ["n", 1]
y = ["n", 1]

[define]
one = "expect((x.T @ E @ x) ** 2, x) / 2"
two = "expect(expect((x.T @ E @ y) ** 2, x), y) / 2"

[[claim]]
id = "one-input"
says = "x.T @ Q @ x == x.T @ sym(Q) @ x"

[[claim]]
id = "and-no-less"
says = "(x + y).T @ Q @ (x + y) - (x - y).T @ Q @ (x - y) == 4 * x.T @ sym(Q) @ y"

[[claim]]
id = "layer-on-one-input"
says = "O @ ((W @ x) * (V @ x)) == contract(tensor(O, W, V) + tensor(O, V, W), x, x) / 2"

[[claim]]
id = "one-input-asks-for-no-skew-part"
says = "skew(grad(one, E)) == 0"

[[claim]]
id = "two-inputs"
says = "x.T @ Q @ y == x.T @ sym(Q) @ y"

[[claim]]
id = "two-inputs-in-full"
says = "x.T @ Q @ y == x.T @ sym(Q) @ y + x.T @ skew(Q) @ y"

[[claim]]
id = "every-entry-counts"
says = "grad(x.T @ Q @ y, Q) == x @ y.T"

[[claim]]
id = "layer-on-two-inputs"
says = "O @ ((W @ x) * (V @ y)) == contract(tensor(O, W, V) + tensor(O, V, W), x, y) / 2"

[[claim]]
id = "two-inputs-ask-for-it-all"
says = "grad(two, E) == E"
"""

SEED, N, RATE, STEPS = 43, 4, 0.2, 300
DRAW = np.random.default_rng(SEED)
START, TARGET = DRAW.normal(size=(2, N, N))
INPUTS = DRAW.normal(size=(2, 200, N))  # x and y
EPSILON = float(np.finfo(np.float64).eps)


def simulation(quick: bool) -> Verdict:
    """How many directions of Q the outputs tell apart: the rank of their gradients in Q, x yᵀ."""
    x, y = INPUTS

    def rank(first: np.ndarray, second: np.ndarray) -> int:
        rows = np.einsum("ni,nj->nij", first, second).reshape(-1, N * N)
        return int(np.linalg.matrix_rank(rows))

    return judge(
        "simulation",
        measured=[rank(x, x), rank(x, y)],
        predicted=[N * (N + 1) / 2, N * N],
        tolerance=0.0,
        because="a count",
        scope="directions of a 4 × 4 operator that one input, and two inputs, tell apart",
        nulls={"one for the other": [rank(x, y), rank(x, x)], "one less": [9, 15]},
        seed=SEED,
    )


def descend(two: bool) -> tuple[float, float]:
    """How far the skew part of Q moves in torch, and how far from the target it ends.

    Both relative to how far it is from the target's at the start. Q itself is trained.
    """
    import torch

    x, y = (torch.tensor(each) for each in INPUTS)
    Q = torch.tensor(START.copy(), requires_grad=True)
    optimiser = torch.optim.SGD([Q], lr=RATE)
    with one_thread():
        for _ in range(STEPS):
            optimiser.zero_grad()
            error = ((x @ (Q - torch.tensor(TARGET))) * (y if two else x)).sum(dim=1)
            (error.square().mean() / 2).backward()
            optimiser.step()
    skew = [each - each.T for each in (START, Q.detach().numpy(), TARGET)]
    apart = float(np.linalg.norm(skew[0] - skew[2]))
    moved, left = np.linalg.norm(skew[1] - skew[0]), np.linalg.norm(skew[1] - skew[2])
    return float(moved) / apart, float(left) / apart


def one_input(quick: bool) -> Verdict:
    """The skew part does not move."""
    return judge(
        "training",
        measured=descend(two=False)[0],
        predicted=0.0,
        tolerance=STEPS * 2 * len(INPUTS[0]) * EPSILON,
        because="rounding, two units a step for each of 200 samples",
        scope="how far the skew part of Q moves in training on one input, to that of the target",
        nulls={"two inputs": descend(two=True)[0]},
        seed=SEED,
    )


def two_inputs(quick: bool) -> Verdict:
    """The skew part is learned, at the least at the rate of the slowest direction of the data."""
    pairs = np.einsum("ni,nj->nij", *INPUTS).reshape(-1, N * N)
    slowest = float(np.linalg.eigvalsh(pairs.T @ pairs / len(pairs))[0])
    whole, skew = TARGET - START, (TARGET - START - (TARGET - START).T) / 2
    error = (1 - RATE * slowest) ** STEPS * np.linalg.norm(whole) / np.linalg.norm(skew)
    return judge(
        "training",
        measured=descend(two=True)[1],
        predicted=0.0,
        tolerance=float(error),
        because="(1 − ηλ)^steps, λ the least eigenvalue of the second moment of x ⊗ y",
        scope="distance of the skew part of Q from the target's after training on two inputs",
        nulls={"one input": descend(two=False)[1], "frozen": 1.0},
        seed=SEED,
    )


claim = Claim(
    id="N3",
    title="one input: only sym(Q_o) acts; two inputs: all of Q_o does",
    source="Pearce et al. 2024 for the first half",
    statements=from_text(STATEMENTS, {"two-inputs": "refuted", "layer-on-two-inputs": "refuted"}),
    simulation=(Experiment(simulation, name="directions that outputs tell apart"),),
    training=(
        Experiment(one_input, name="one input: the skew part stays"),
        Experiment(two_inputs, name="two inputs: it is learned"),
    ),
)

"""F7. The flow equation of N factors.

Let Q = W_N ... W_2 W_1. Seen from one factor, Q = A W B: A is the product of the factors above W, B
of those below. The gradient in W is Aᵀ E Bᵀ, so that the motion of W alone changes Q by

    A W' B = −A Aᵀ E Bᵀ B,

and the product rule adds up what the factors do:

    Q' = −Σ_j (W_N ... W_{j+1}) (W_N ... W_{j+1})ᵀ E (W_{j−1} ... W_1)ᵀ (W_{j−1} ... W_1).

For N = 2, with U = W_2 and V = W_1ᵀ, this is F1. The prover decides N = 2, ..., 8, at all widths.

Lemma. Induction on the number of factors, by the product rule. Let A and B move in any way; then
Q' = A' W B − A Aᵀ E Bᵀ B + A W B'. The term of W stands apart, and A' and B' hold the motion of
fewer factors, to each of which the same identity applies, W being part of its own A or B.

Source: Arora, Cohen, Hazan 2018, in the proof of theorem 1, before balance is used.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script

STEP = """
[matrices]
A = ["m", "p"]
W = ["p", "q"]
B = ["q", "n"]
T = ["m", "n"]
A_moves = ["m", "p"]
B_moves = ["q", "n"]

[define]
Q = "A @ W @ B"
E = "Q - T"

[flow.velocity]
A = "A_moves"
W = "-grad(norm2(E) / 2, W)"
B = "B_moves"

[[claim]]
id = "induction-step"
says = "d(Q) == A_moves @ W @ B - A @ A.T @ E @ B.T @ B + A @ W @ B_moves"
"""


def chain(count: int) -> str:
    """The claim for so many factors, as a claim file."""
    names = [f"W{j}" for j in range(1, count + 1)]
    shapes = [f'{name} = ["d{j}", "d{j - 1}"]' for j, name in enumerate(names, 1)]
    terms = []
    for j in range(count):
        above, below = " @ ".join(names[:j:-1]), " @ ".join(reversed(names[:j]))
        left = f"({above}) @ ({above}).T @ " if above else ""
        right = f" @ ({below}).T @ ({below})" if below else ""
        terms.append(f"{left}E{right}")
    return "\n".join(
        [
            "[matrices]",
            *shapes,
            f'T = ["d{count}", "d0"]',
            "[define]",
            f'Q = "{" @ ".join(reversed(names))}"',
            'E = "Q - T"',
            'L = "norm2(E) / 2"',
            "[flow]",
            'loss = "L"',
            f"variables = {names}",
            "[[claim]]",
            f'id = "{count}-factors"',
            f'says = "d(Q) == -({" + ".join(terms)})"',
        ]
    )


Array = NDArray[np.float64]
SEED = 7
DRAW = np.random.default_rng(SEED)
WIDTHS = (4, 3, 5, 2, 4)
WEIGHTS = [DRAW.normal(size=shape) / 2 for shape in zip(WIDTHS[1:], WIDTHS[:-1], strict=True)]
TARGET = DRAW.normal(size=(WIDTHS[-1], WIDTHS[0]))


def product(*weights: Any) -> Any:
    """W_N ... W_1."""
    return reduce(lambda below, W: W @ below, weights)


def terms(*weights_and_target: Array) -> Iterator[Array]:
    """What each factor's motion adds to the velocity of Q, typed by hand."""
    *weights, T = weights_and_target
    E = product(*weights) - T
    for j in range(len(weights)):
        A = product(np.eye(len(weights[j])), *weights[j + 1 :])
        B = product(np.eye(weights[0].shape[1]), *weights[:j])
        yield -A @ A.T @ E @ B.T @ B


def loss(*weights: Any) -> Any:
    """The loss of a torch network with four layers, on the unit vectors."""
    import torch

    outputs = [product(x, *weights) for x in torch.eye(WIDTHS[0], dtype=torch.float64)]
    return (torch.stack(outputs, 1) - torch.tensor(TARGET)).square().sum() / 2


STATEMENTS = (*(item for count in range(2, 9) for item in from_text(chain(count))),)
test = load_script(folder("proofs") / "_velocity.py").Velocity(
    statement=STATEMENTS[2].statement,
    start={f"W{j}": weight for j, weight in enumerate(WEIGHTS, 1)},
    parameters={"T": TARGET},
    operator=product,
    formula=lambda *state: sum(terms(*state)),
    wrong={"outer factors alone": lambda *state: sum(list(terms(*state))[::3])},
    loss=loss,
    seed=SEED,
)

claim = Claim(
    id="F7",
    title="N factors: each adds −A Aᵀ E Bᵀ B, where Q = A W B",
    source="Arora, Cohen, Hazan 2018, in the proof of theorem 1",
    statements=(*STATEMENTS, *from_text(STEP)),
    lemma="induction on the number of factors",
    simulation=(Experiment(test.simulation, name="four factors: integral along the flow"),),
    training=(Experiment(test.training, name="four factors: velocity in a torch network"),),
)

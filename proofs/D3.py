"""D3. Descent in steps does not conserve the imbalance; it drifts by an exact amount.

The flow conserves B = UᵀU − VᵀV (F9). A step of gradient descent, U⁺ = U − η E V, V⁺ = V − η Eᵀ U,
keeps what is of first order in η, for it is the flow's velocity; but the squares of the two moves
remain:

    B⁺ − B = η² (Vᵀ Eᵀ E V − Uᵀ E Eᵀ U).

So balance is only approximate under descent: at a fixed time t the steps are t/η in number, and the
drift is of order η. It stops as the loss does, since it is a product of two gradients.

Source: Du, Hu and Lee 2018 bound what descent drifts by; Arora et al. 2018 call states that are
balanced up to it approximately balanced.
"""

from typing import Literal

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.dynamics.lower import lower
from nonmixing.flow import problem_flow
from nonmixing.verdict import Verdict, judge

Measured = Literal["simulation", "training"]

STATEMENTS = """
[matrices]
U = ["m", "r"]
V = ["n", "r"]
T = ["m", "n"]

[scalars]
eta = {}

[define]
E = "U @ V.T - T"
B = "U.T @ U - V.T @ V"

[step.update]
U = "U - eta * grad(norm2(E) / 2, U)"
V = "V - eta * grad(norm2(E) / 2, V)"

[[claim]]
id = "conserved"
says = "after(B) == B"

[[claim]]
id = "drift"
says = "after(B) - B == eta ** 2 * (V.T @ E.T @ E @ V - U.T @ E @ E.T @ U)"
"""

SEED = 33
RATE, STEPS = 0.05, 40
TARGET = np.random.default_rng(SEED).normal(size=(5, 4))
PROBLEM = nm.BilinearProblem(TARGET / np.linalg.norm(TARGET, 2))
START = nm.gaussian(PROBLEM, scale=0.5, width=3, seed=SEED)


def matrices() -> nm.Trajectory:
    """Steps along the lowered flow."""
    velocity, states = lower(problem_flow(), {"T": PROBLEM.target}), [(START.U, START.V)]
    for _ in range(STEPS):
        U, V = states[-1]
        moved, turned = velocity((U, V))
        states.append((U + RATE * moved, V + RATE * turned))
    stacks = (np.stack(part) for part in zip(*states, strict=True))
    return nm.Trajectory.from_arrays(RATE * np.arange(STEPS + 1), *stacks, problem=PROBLEM)


def torch_network() -> nm.Trajectory:
    """Steps of a torch network."""
    return nm.train(PROBLEM, START, rate=RATE, steps=STEPS)


def drift(state: nm.Factors) -> np.ndarray:
    """What one step adds to the imbalance, typed by hand."""
    E = state.operator - PROBLEM.target
    row, column = E @ state.V, E.T @ state.U
    return RATE**2 * (row.T @ row - column.T @ column)


def verdict(evidence: Measured, run: nm.Trajectory, conserved: bool) -> Verdict:
    """The imbalance's change in all steps, against the sum of the drifts, or against nothing."""
    change = run.factors(-1).imbalance - run.start.imbalance
    exact = sum((drift(run.factors(k)) for k in range(STEPS)), np.zeros_like(change))
    size = float(np.linalg.norm(change))
    norms = np.linalg.norm(run.U, axis=(1, 2)) ** 2 + np.linalg.norm(run.V, axis=(1, 2)) ** 2
    # A step rounds U and V by a few units, and so their squares; products have at most 5 terms.
    rounding = STEPS * 40 * float(np.finfo(np.float64).eps * norms.max())
    return judge(
        evidence,
        measured=float(np.linalg.norm(change - (0 if conserved else exact))) / size,
        predicted=0.0,
        tolerance=rounding / size,
        because="rounding, 40 units of the squares of the factors in each step",
        scope="change of UᵀU − VᵀV in 40 steps"
        + ("" if conserved else ", less η² Σ (VᵀEᵀEV − UᵀEEᵀU)")
        + ", over its own size",
        nulls={
            "the steps' drift frozen at the start": float(
                np.linalg.norm(change - STEPS * drift(run.start)) / size
            ),
            "four fifths of the drift": float(np.linalg.norm(change - 0.8 * exact) / size),
            "five quarters of it": float(np.linalg.norm(change - 1.25 * exact) / size),
        },
        seed=SEED,
        details={"change of the imbalance": size, "its size at the start": START.imbalance},
    )


def experiments(evidence: Measured, run) -> tuple[Experiment, ...]:
    """The exact drift, and the claim that there is none."""
    return (
        Experiment(lambda quick: verdict(evidence, run(), False), name="drift"),
        Experiment(lambda quick: verdict(evidence, run(), True), "unsupported", name="conserved"),
    )


claim = Claim(
    id="D3",
    title='"descent conserves UᵀU − VᵀV": false; it drifts by η²(VᵀEᵀE V − UᵀE EᵀU) a step',
    source="Du, Hu, Lee 2018; Arora et al. 2018",
    statements=from_text(STATEMENTS, {"conserved": "refuted"}),
    simulation=experiments("simulation", matrices),
    training=experiments("training", torch_network),
)

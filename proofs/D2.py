"""D2. A balanced mode descends by the recursion c⁺ = c (1 + η(s − c))².

From D1, with a = b in every mode, a⁺ = a (1 + η(s − a²)), and the same for b: a balanced aligned
state stays balanced, and c = a² obeys

    c⁺ = c (1 + η (s − c))².

Multiplied out, c⁺ = c + 2ηc(s − c) + η²c(s − c)². The first two terms are what Euler's method makes
of the flow's equation c' = 2c(s − c), M4. The last, which is never negative while c is not, is what
descent does beyond it: steps are taken by a and b, not by c.

Source: D1 with a = b; Gidel, Bach and Lacoste-Julien 2019 study this recursion.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.compare import compare
from nonmixing.dynamics.lower import lower
from nonmixing.evidence import of_comparison
from nonmixing.flow import problem_flow
from nonmixing.verdict import Verdict

Array = np.ndarray
Measured = Literal["simulation", "training"]

STATEMENTS = """
[matrices]
P = ["m", "k"]
R = ["n", "k"]
O = ["r", "k"]
s = ["k", 1]
a = ["k", 1]

[kinds]
P = "orthonormal"
R = "orthonormal"
O = "orthonormal"

[scalars]
eta = {}

[define]
U = "P @ diag(a) @ O.T"
V = "R @ diag(a) @ O.T"
E = "U @ V.T - P @ diag(s) @ R.T"
c = "a * a"

[step.update]
a = "a + eta * (s - a * a) * a"

[[claim]]
id = "U-stays-balanced"
says = "after(U) == U - eta * E @ V"

[[claim]]
id = "V-stays-balanced"
says = "after(V) == V - eta * E.T @ U"

[[claim]]
id = "recursion"
says = "after(c) == c * (ones(k, 1) + eta * (s - c)) ** 2"

[[claim]]
id = "in-the-operator"
says = "P.T @ after(U @ V.T) @ R == diag(c * (ones(k, 1) + eta * (s - c)) ** 2)"

[[claim]]
id = "only-a-step-of-Euler"
says = "after(c) == c + 2 * eta * c * (s - c)"

[[claim]]
id = "beyond-Euler"
says = "after(c) - (c + 2 * eta * c * (s - c)) == eta ** 2 * c * (s - c) ** 2"
"""

SEED = 32
S = np.array([1.0, 0.7, 0.4, 0.2])
START = np.array([0.02, 0.3, 1.2, 0.1])  # one of them from above
RATE, STEPS = 0.5, 30
POSED = nm.BilinearProblem(np.diag(S))


def descent(c: Array) -> Array:
    """The recursion of D2."""
    return c * (1 + RATE * (S - c)) ** 2


def euler(c: Array) -> Array:
    """A step of Euler's method for c' = 2c(s − c)."""
    return c + 2 * RATE * c * (S - c)


def predicted(step: Callable[[Array], Array]) -> nm.Trajectory:
    """The modes by a recursion, STEPS times."""
    values = [START]
    for _ in range(STEPS):
        values.append(step(values[-1]))
    roots = np.sqrt(np.array(values))[:, :, None] * np.eye(4)
    return nm.Trajectory.from_arrays(RATE * np.arange(STEPS + 1), roots, roots, problem=POSED)


def matrices() -> nm.Trajectory:
    """Steps along the lowered flow, as matrices."""
    velocity = lower(problem_flow(), {"T": POSED.target})
    start = nm.aligned(POSED, np.sqrt(START), width=6, seed=SEED)
    states = [(start.U, start.V)]
    for _ in range(STEPS):
        U, V = states[-1]
        moved, turned = velocity((U, V))
        states.append((U + RATE * moved, V + RATE * turned))
    stacks = (np.stack(part) for part in zip(*states, strict=True))
    return nm.Trajectory.from_arrays(RATE * np.arange(STEPS + 1), *stacks, problem=POSED)


def torch_network() -> nm.Trajectory:
    """Steps of a torch network."""
    start = nm.aligned(POSED, np.sqrt(START), width=6, seed=SEED)
    return nm.train(POSED, start, rate=RATE, steps=STEPS)


def verdict(evidence: Measured, run: nm.Trajectory, step: Callable[[Array], Array]) -> Verdict:
    """The distance in each mode."""
    # What a step rounds, 40 units, grows no more than the smallest mode does on its way to s₁.
    tolerance = STEPS * 40 * float(np.finfo(np.float64).eps * S[0] / START.min())
    because = "rounding, 40 units a step, grown as the smallest mode could grow, s₁/c₀"
    result = compare(run, predicted(step), tolerance=tolerance, because=because)
    scope = f"modes of descent at η = {RATE} against the recursion by {step.__name__}"
    return of_comparison(evidence, result, scope, seed=SEED)


claim = Claim(
    id="D2",
    title="balanced modes descend by c⁺ = c (1 + η(s − c))²",
    source="D1 with a = b; Gidel, Bach, Lacoste-Julien 2019",
    statements=from_text(STATEMENTS, {"only-a-step-of-Euler": "refuted"}),
    simulation=(
        Experiment(lambda quick: verdict("simulation", matrices(), descent), name="recursion"),
        Experiment(
            lambda quick: verdict("simulation", matrices(), euler), "unsupported", name="Euler"
        ),
    ),
    training=(
        Experiment(lambda quick: verdict("training", torch_network(), descent), name="recursion"),
        Experiment(
            lambda quick: verdict("training", torch_network(), euler), "unsupported", name="Euler"
        ),
    ),
)

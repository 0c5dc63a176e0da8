"""F8. The loss falls at the rate dL/dt = −‖E V‖² − ‖Eᵀ U‖².

Along any gradient flow dL/dt = −‖gradient‖². Here the gradient has two blocks, E V and Eᵀ U, so the
loss falls as long as one of them is not zero: the flow stops where E V = 0 and Eᵀ U = 0, and only
there.

Source: immediate from F1; used as an energy identity throughout the literature.
"""

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.networks.first_step import first_step
from nonmixing.verdict import Verdict, judge

STATEMENTS = """
[matrices]
U = ["m", "r"]
V = ["n", "r"]
T = ["m", "n"]

[define]
E = "U @ V.T - T"

[flow]
loss = "norm2(E) / 2"
variables = ["U", "V"]

[[claim]]
id = "loss-rate"
says = "d(norm2(E) / 2) == -norm2(E @ V) - norm2(E.T @ U)"
"""

SEED = 8
PROBLEM = nm.BilinearProblem(np.random.default_rng(SEED).normal(size=(4, 5)))
START = nm.gaussian(PROBLEM, scale=0.5, width=3, seed=SEED)


def rate(state: nm.Factors) -> float:
    """The right-hand side, typed by hand."""
    E = state.operator - PROBLEM.target
    return -float(np.sum((E @ state.V) ** 2) + np.sum((E.T @ state.U) ** 2))


def energy(order: int, end: float = 2.0) -> tuple[float, float]:
    """The integral of the rate by Gauss-Legendre quadrature, and the change of the loss."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    grid = np.concatenate([[0.0], (nodes + 1) * end / 2, [end]])
    run = nm.integrate(PROBLEM, START, grid, rtol=1e-12, atol=1e-14)
    rates = [rate(run.factors(k)) for k in range(1, order + 1)]
    return float(weights @ np.array(rates)) * end / 2, float(run.loss()[-1] - run.loss()[0])


def simulation(quick: bool) -> Verdict:
    """The loss lost between two times against the integral of the rate (Gauss-Legendre)."""
    (coarse, _), (lost, change) = energy(12), energy(24)
    return judge(
        "simulation",
        measured=lost / change,
        predicted=1.0,
        tolerance=abs((lost - coarse) / change) + 1e-10,
        because="what doubling the quadrature's order changes, and 100 × the integrator's rtol",
        scope="integral of −‖E V‖² − ‖Eᵀ U‖² along the flow, over the change of the loss",
        nulls={"frozen": 0.0, "slowed": 0.8, "hurried": 1.25},
        seed=SEED,
    )


def training(quick: bool) -> Verdict:
    """The first-order change of the loss in one torch step; the loss has degree four."""

    def loss(state: nm.Factors) -> float:
        return 0.5 * float(np.sum((state.operator - PROBLEM.target) ** 2))

    slope = first_step(PROBLEM, START, loss, degree=4, rate=0.1)
    return judge(
        "training",
        measured=float(slope.value) / rate(START),
        predicted=1.0,
        tolerance=slope.rounding / abs(rate(START)),
        because="rounding of the interpolation in the learning rate",
        scope="first-order change of the loss in a torch step, over −‖E V‖² − ‖Eᵀ U‖²",
        nulls={"frozen": 0.0, "slowed": 0.8, "hurried": 1.25},
        seed=SEED,
    )


claim = Claim(
    id="F8",
    title="the loss falls at the rate dL/dt = −‖E V‖² − ‖Eᵀ U‖²",
    source="energy identity of gradient flow with the gradients of F1",
    statements=from_text(STATEMENTS),
    simulation=(Experiment(simulation, name="integral of the rate"),),
    training=(Experiment(training, name="one torch step, to first order"),),
)

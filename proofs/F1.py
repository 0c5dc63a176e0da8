"""F1. The flow of a factored operator is dQ/dt = −E V Vᵀ − U Uᵀ E.

Take Q = U Vᵀ, with U of shape m × r and V of shape n × r, and let both move down the gradient of
L = ½‖Q − Q*‖²_F. With the error E = Q − Q*,

    U' = −∂L/∂U = −E V,        V' = −∂L/∂V = −Eᵀ U,

and the product rule, Q' = U' Vᵀ + U V'ᵀ, gives the equation. Nothing is assumed about m, n, r.

Source: Nema et al. 2026, where the gate α_k of Q = Σ α_k w_k v_kᵀ is absorbed into U; the same
equation with W₂ = U, W₁ = Vᵀ is in Saxe, McClelland and Ganguli 2014.
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
Q = "U @ V.T"
E = "Q - T"

[flow]
loss = "norm2(E) / 2"
variables = ["U", "V"]

[[claim]]
id = "gradient-U"
says = "grad(norm2(E) / 2, U) == E @ V"

[[claim]]
id = "gradient-V"
says = "grad(norm2(E) / 2, V) == E.T @ U"

[[claim]]
id = "flow-equation"
says = "d(Q) == -E @ V @ V.T - U @ U.T @ E"
"""

SEED = 1
PROBLEM = nm.BilinearProblem(np.random.default_rng(SEED).normal(size=(5, 4)))
START = nm.gaussian(PROBLEM, scale=0.5, width=3, seed=SEED)


def formula(state: nm.Factors) -> np.ndarray:
    """The right-hand side, typed by hand: a route of its own."""
    U, V = state.U, state.V
    E = U @ V.T - PROBLEM.target
    return -E @ V @ V.T - U @ U.T @ E


def simulation(quick: bool) -> Verdict:
    """Differences of the integrated Q(t) against the formula.

    Central differences with steps h and 2h are off by κh² and 4κh², so a third of what they differ
    by is the error of the better one; it, doubled, is the band.
    """
    h = 1e-3
    middles = np.linspace(0.2, 2.0, 3 if quick else 10)
    grid = np.unique(np.concatenate([[0.0], *(middles + k * h for k in (-2, -1, 0, 1, 2))]))
    run = nm.integrate(PROBLEM, START, grid, rtol=1e-12, atol=1e-14)
    residuals, errors = [], []
    for middle in middles:
        at = {k: int(np.argmin(np.abs(grid - middle - k * h))) for k in (-2, -1, 0, 1, 2)}
        near = (run.operator(at[1]) - run.operator(at[-1])) / (2 * h)
        far = (run.operator(at[2]) - run.operator(at[-2])) / (4 * h)
        expected = formula(run.factors(at[0]))
        size = np.linalg.norm(expected)
        residuals.append(np.linalg.norm(near - expected) / size)
        errors.append(2 * np.linalg.norm(far - near) / 3 / size)
    return judge(
        "simulation",
        measured=residuals,
        predicted=0.0,
        tolerance=errors,
        because="twice the error of the differences, estimated by halving their step",
        scope="relative gap between differences of the integrated Q(t) and the formula",
        nulls={"frozen": [1.0] * len(residuals), "slowed": [0.2] * len(residuals)},
        seed=SEED,
    )


def training(quick: bool) -> Verdict:
    """What one step of a torch network changes in Q, to first order in the learning rate.

    One step makes Q a polynomial of degree two in the rate, so three rates give its slope at rate
    zero exactly, but for rounding.
    """
    slope = first_step(PROBLEM, START, lambda state: state.operator, degree=2, rate=0.1)
    expected = formula(START)
    size = float(np.linalg.norm(expected))
    return judge(
        "training",
        measured=float(np.linalg.norm(slope.value - expected)) / size,
        predicted=0.0,
        tolerance=slope.rounding / size,
        because="rounding of the interpolation in the learning rate",
        scope="relative gap between the first-order change of Q in a torch step and the formula",
        nulls={"frozen": 1.0, "slowed": 0.2},
        seed=SEED,
    )


claim = Claim(
    id="F1",
    title="absorbed gate: dQ/dt = −E V Vᵀ − U Uᵀ E, all m, n, r",
    source="Nema et al. 2026; Saxe, McClelland, Ganguli 2014 with W₂ = U, W₁ = Vᵀ",
    statements=from_text(STATEMENTS),
    simulation=(Experiment(simulation, name="differences of the integrated flow"),),
    training=(Experiment(training, name="one torch step, to first order"),),
)

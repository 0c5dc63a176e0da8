"""F9. The imbalance UᵀU − VᵀV is conserved, and what becomes of that elsewhere.

With U' = −E V and V' = −Eᵀ U, both UᵀU' and VᵀV' are −UᵀE V or its transpose, so that UᵀU − VᵀV
stands still, as a whole matrix and at every size. The same cancellation happens

- with second moments Σx, Σy of two independent inputs, where E becomes Σx E Σy (F4);
- with weight decay λ, where the imbalance B obeys B' = −2λB, and dies out;
- with two learning rates, where UᵀU/η_U − VᵀV/η_V is what stands still.

Descent in steps does not conserve it: D3.

Source: Du, Hu and Lee 2018, section 2; Arora et al. 2018 for balanced starts.
"""

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.networks.first_step import first_step
from nonmixing.verdict import Verdict, judge

NAMES = """
[matrices]
U = ["m", "r"]
V = ["n", "r"]
T = ["m", "n"]
Sx = ["m", "m"]
Sy = ["n", "n"]

[kinds]
Sx = "symmetric"
Sy = "symmetric"

[scalars]
decay = {}
rate_U = {}
rate_V = {}

[define]
E = "U @ V.T - T"
B = "U.T @ U - V.T @ V"
"""

PLAIN = """
[flow]
loss = "norm2(E) / 2"
variables = ["U", "V"]

[[claim]]
id = "conserved"
says = "d(B) == 0"
"""

MOMENTS = """
[flow]
loss = "tr(Sx @ E @ Sy @ E.T) / 2"
variables = ["U", "V"]

[[claim]]
id = "conserved-with-second-moments"
says = "d(B) == 0"
"""

DECAY = """
[flow]
loss = "norm2(E) / 2 + decay / 2 * (norm2(U) + norm2(V))"
variables = ["U", "V"]

[[claim]]
id = "dies-out-under-weight-decay"
says = "d(B) == -2 * decay * B"
"""

TWO_RATES = """
[flow.velocity]
U = "-rate_U * grad(norm2(E) / 2, U)"
V = "-rate_V * grad(norm2(E) / 2, V)"

[[claim]]
id = "two-rates"
says = "d(U.T @ U / rate_U - V.T @ V / rate_V) == 0"

[[claim]]
id = "two-rates-unweighted"
says = "d(B) == 0"
"""

SEED = 9
PROBLEM = nm.BilinearProblem(np.random.default_rng(SEED).normal(size=(5, 4)))
START = nm.gaussian(PROBLEM, scale=0.7, width=3, seed=SEED)


def simulation(quick: bool) -> Verdict:
    """The drift of the imbalance along the integrated flow, against how far U itself moves."""
    rtol = 1e-10
    run = nm.integrate(PROBLEM, START, np.linspace(0, 5, 51), rtol=rtol, atol=1e-12)
    start, end = START.imbalance, run.factors(-1).imbalance
    moved = np.linalg.norm(run.factors(-1).U.T @ run.factors(-1).U - START.U.T @ START.U)
    steps = float(run.stats["evaluations"])
    return judge(
        "simulation",
        measured=float(np.linalg.norm(end - start) / moved),
        predicted=0.0,
        tolerance=steps * rtol,
        because="the integrator's rtol for each evaluation of the flow",
        scope="drift of UᵀU − VᵀV over the change of UᵀU alone",
        nulls={"UᵀU + VᵀV in its place": _null(run, START, float(moved))},
        seed=SEED,
    )


def _null(run: nm.Trajectory, start: nm.Factors, moved: float) -> float:
    """The same number for a quantity that is not conserved."""
    last = run.factors(-1)
    change = last.U.T @ last.U + last.V.T @ last.V - start.U.T @ start.U - start.V.T @ start.V
    return float(np.linalg.norm(change)) / moved


def training(quick: bool) -> Verdict:
    """The first-order change of the imbalance in one torch step, against that of UᵀU alone."""
    slope = first_step(PROBLEM, START, lambda state: state.imbalance, degree=2, rate=0.1)
    gram = first_step(PROBLEM, START, lambda state: state.U.T @ state.U, degree=2, rate=0.1)
    both = first_step(
        PROBLEM, START, lambda state: state.U.T @ state.U + state.V.T @ state.V, degree=2, rate=0.1
    )
    size = float(np.linalg.norm(gram.value))
    return judge(
        "training",
        measured=float(np.linalg.norm(slope.value)) / size,
        predicted=0.0,
        tolerance=slope.rounding / size,
        because="rounding of the interpolation in the learning rate",
        scope="first-order change of UᵀU − VᵀV in a torch step, over that of UᵀU",
        nulls={"UᵀU + VᵀV in its place": float(np.linalg.norm(both.value)) / size},
        seed=SEED,
    )


claim = Claim(
    id="F9",
    title="UᵀU − VᵀV is conserved; with moments too; decays at 2λ; weighted with two rates",
    source="Du, Hu, Lee 2018, section 2",
    statements=(
        *from_text(NAMES + PLAIN),
        *from_text(NAMES + MOMENTS),
        *from_text(NAMES + DECAY),
        *from_text(NAMES + TWO_RATES, {"two-rates-unweighted": "refuted"}),
    ),
    simulation=(Experiment(simulation, name="drift along the integrated flow"),),
    training=(Experiment(training, name="one torch step, to first order"),),
)

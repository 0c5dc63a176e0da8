"""M1. Aligned states stay aligned, and their modes evolve alone.

Let Q* = P S Rᵀ be the target's singular value decomposition. A state is aligned if

    U = P diag(a) Oᵀ,        V = R diag(b) Oᵀ,        with Oᵀ O = I.

Then E = P diag(ab − s) Rᵀ, and the velocities −E V and −Eᵀ U are again of this form, with

    a' = (s − a b) b,        b' = (s − a b) a        (entry by entry).

So if a(t), b(t) solve these equations, P diag(a(t)) Oᵀ and R diag(b(t)) Oᵀ solve the flow.

Lemma. The flow's right-hand side is a polynomial, so that a start has one solution only
(Picard-Lindelöf); the one just given is therefore it, and the state stays aligned.

Source: Saxe, McClelland, Ganguli 2014, section 1.2 (their a and b are ours, with time in units of
their τ); Nema et al. 2026.
"""

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.verdict import Verdict, judge

STATEMENTS = """
[matrices]
P = ["m", "k"]
R = ["n", "k"]
O = ["r", "k"]
s = ["k", 1]
a = ["k", 1]
b = ["k", 1]

[kinds]
P = "orthonormal"
R = "orthonormal"
O = "orthonormal"

[define]
U = "P @ diag(a) @ O.T"
V = "R @ diag(b) @ O.T"
E = "U @ V.T - P @ diag(s) @ R.T"

[flow.velocity]
a = "(s - a * b) * b"
b = "(s - a * b) * a"

[[claim]]
id = "U-moves-in-the-family"
says = "d(U) == -E @ V"

[[claim]]
id = "V-moves-in-the-family"
says = "d(V) == -E.T @ U"

[[claim]]
id = "no-mixing"
says = "P.T @ (U @ V.T) @ R == diag(a * b)"
"""

SEED = 11
S = np.array([1.0, 0.7, 0.4, 0.0])


def problem() -> nm.BilinearProblem:
    """A 5 × 4 target with singular values S."""
    generator = np.random.default_rng(SEED)
    left = np.linalg.qr(generator.normal(size=(5, 4)))[0]
    right = np.linalg.qr(generator.normal(size=(4, 4)))[0]
    return nm.BilinearProblem(left @ np.diag(S) @ right.T)


def measure(run: nm.Trajectory, noise: float, because: str, evidence: str) -> Verdict:
    """The largest mixing on the way, against the mixing from a start that is not aligned."""
    posed = problem()
    apart = nm.gaussian(posed, scale=0.3, width=4, seed=SEED)
    other = nm.integrate(posed, apart, run.times, rtol=1e-9)
    return judge(
        "training" if evidence == "training" else "simulation",
        measured=float(run.mixing().max()),
        predicted=0.0,
        tolerance=noise,
        because=because,
        scope="largest off-diagonal entry of Pᵀ Q R along the way, from an aligned start",
        nulls={"a start that is not aligned": float(other.mixing().max())},
        seed=SEED,
        details={"modes at the end": run.modes()[-1]},
    )


def start() -> nm.Factors:
    """Aligned, each mode with its own imbalance, turned by a random O."""
    a, b = np.array([0.05, 0.1, 0.2, 0.3]), np.array([0.05, 0.02, -0.1, 0.1])
    return nm.aligned(problem(), a, b, width=4, seed=SEED)


def simulation(quick: bool) -> Verdict:
    """Mixing along the integrated flow."""
    rtol = 1e-10
    run = nm.integrate(problem(), start(), np.linspace(0, 20, 81), rtol=rtol, atol=1e-13)
    steps = float(run.stats["evaluations"])
    because = "the integrator's rtol for each evaluation of the flow"
    return measure(run, steps * rtol, because, "simulation")


def training(quick: bool) -> Verdict:
    """Mixing of a torch network; descent keeps aligned states aligned too (D1)."""
    rate, steps = 0.05, 400
    run = nm.train(problem(), start(), rate=rate, steps=steps, every=5)
    # An off-diagonal error grows at most like e^{(s₁ + s₂) t}, its linear rate at Q = 0.
    growth = float(np.exp(S[0] * 2 * rate * steps / 2))
    unit = float(np.finfo(np.float64).eps)
    because = (
        "rounding of the start, grown at the fastest rate over half of the time, in which Q rises"
    )
    return measure(run, 5 * 4 * unit * growth, because, "training")


claim = Claim(
    id="M1",
    title="aligned states stay aligned: a' = (s − ab) b, b' = (s − ab) a",
    source="Saxe, McClelland, Ganguli 2014; Nema et al. 2026",
    statements=from_text(STATEMENTS),
    lemma="uniqueness of solutions (Picard-Lindelöf)",
    simulation=(Experiment(simulation, name="mixing along the integrated flow"),),
    training=(Experiment(training, name="mixing in a torch network"),),
)

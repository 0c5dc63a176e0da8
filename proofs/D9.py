"""D9. With weight decay λ a balanced aligned mode ends at max(s − λ, 0).

The loss gains (λ/2)(‖U‖² + ‖V‖²). Aligned states stay aligned, a' = (s − ab) b − λ a and
b' = (s − ab) a − λ b, and balanced ones balanced; with a = b

    c' = 2c ((s − λ) − c),

which is M4 with s − λ in the place of s, of either sign: c = σ / (1 + (σ/c₀ − 1) e^{−2σt}) with
σ = s − λ, and c₀/(1 + 2 c₀ t) for σ = 0.

Lemma. Uniqueness of solutions (Picard-Lindelöf). For σ > 0 the exponential falls and c → σ; for σ
< 0 it grows and c → 0; for σ = 0 c falls like 1/t. c₀ > 0 throughout.

Source: M4 with the decay in the loss; for training steps Mianjy, Arora, Vidal 2018, where weight
decay and dropout shrink singular values.
"""

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.evidence import of_comparison
from nonmixing.ledger import folder, load_script
from nonmixing.verdict import Verdict, judge

ALIGNED = """
[matrices]
P = ["m", "k"]
R = ["n", "k"]
O = ["r", "k"]
a = ["k", 1]
b = ["k", 1]
s = ["k", 1]
U = ["m", "r"]
V = ["n", "r"]
T = ["m", "n"]

[kinds]
P = "orthonormal"
R = "orthonormal"
O = "orthonormal"

[scalars]
lam = {}

[define]
L = "norm2(U @ V.T - T) / 2 + lam / 2 * (norm2(U) + norm2(V))"

[[claim]]
id = "aligned-states-stay-aligned"
says = "grad(L, U) == -P @ diag((s - a * b) * b - lam * a) @ O.T"
assume = ["U == P @ diag(a) @ O.T", "V == R @ diag(b) @ O.T", "T == P @ diag(s) @ R.T"]
"""

MODE = """
[scalars]
a = {}
b = {}
s = {}
lam = {}

[flow.velocity]
a = "(s - a * b) * b - lam * a"
b = "(s - a * b) * a - lam * b"

[[claim]]
id = "imbalance-decays"
says = "d(a ** 2 - b ** 2) == -2 * lam * (a ** 2 - b ** 2)"

[[claim]]
id = "mode"
says = "d(a * b) == 2 * a * b * ((s - lam) - a * b)"
assume = ["b == a"]

[[claim]]
id = "not-without-balance"
says = "d(a * b) == 2 * a * b * ((s - lam) - a * b)"
"""

SOLUTION = """
[scalars]
s = {}
lam = {}
c0 = {}
x = {}

[define]
sigma = "s - lam"
c = "sigma / (1 + (sigma / c0 - 1) * x)"

[flow.velocity]
x = "-2 * sigma * x"

[[claim]]
id = "closed-form"
says = "d(c) == 2 * c * (sigma - c)"

[[claim]]
id = "start"
says = "sigma / (1 + (sigma / c0 - 1) * 1) == c0"
"""

BAND = load_script(folder("proofs") / "_band.py")

SEED = 29
S = np.array([1.0, 0.6, 0.35, 0.2])
DECAY = 0.35
START = 0.05


def problem() -> nm.BilinearProblem:
    """A 5 × 4 target with singular values S, one of them equal to the decay."""
    generator = np.random.default_rng(SEED)
    left = np.linalg.qr(generator.normal(size=(5, 4)))[0]
    right = np.linalg.qr(generator.normal(size=(4, 4)))[0]
    return nm.BilinearProblem(left @ np.diag(S) @ right.T, decay=DECAY)


def start() -> nm.Factors:
    """Balanced, aligned, all modes equal."""
    return nm.aligned(problem(), np.sqrt(START), width=4, seed=SEED)


def simulation(quick: bool) -> Verdict:
    """The closed form against the integrated flow."""
    times, rtol = np.linspace(0, 20, 61), 1e-11
    run = nm.integrate(problem(), start(), times, rtol=rtol, atol=1e-14)
    exact = nm.solve(problem(), start(), times)
    tolerance = float(run.stats["evaluations"]) * rtol * float(S[0] / START) ** 2
    because = "the integrator's rtol for each evaluation, grown as modes rise, (s₁/c₀)²"
    result = nm.compare(run, exact, tolerance=tolerance, because=because)
    return of_comparison("simulation", result, "modes of the integrated flow against D9", seed=SEED)


def ends(quick: bool) -> Verdict:
    """Where integrated modes end."""
    time = 60.0
    run = nm.integrate(problem(), start(), np.array([0.0, time]), rtol=1e-10, atol=1e-14)
    slow = START / (1 + 2 * START * time)  # the mode with s = λ, which falls like 1/t
    left = np.where(S == DECAY, slow, np.exp(-2 * np.abs(S - DECAY) * time) / START + 1e-8)
    return judge(
        "simulation",
        measured=run.modes()[-1],
        predicted=np.maximum(S - DECAY, 0.0),
        tolerance=left * 1.01,
        because="what the closed form leaves at t = 60, with 1e-8 for the integrator",
        scope="modes at t = 60 against max(s − λ, 0)",
        nulls={"s": S, "frozen": np.full(4, START)},
        seed=SEED,
    )


def training(quick: bool) -> Verdict:
    """A torch network with weight decay in its loss, mode by mode."""
    rate, steps = 0.1, 200
    return BAND.trained(problem(), start(), rate=rate, steps=steps, form="D9", seed=SEED)


claim = Claim(
    id="D9",
    title="weight decay λ: balanced aligned modes follow M4 with s − λ, and end at max(s − λ, 0)",
    source="Mianjy, Arora, Vidal 2018; M4",
    statements=(
        *from_text(ALIGNED),
        *from_text(MODE, {"not-without-balance": "refuted"}),
        *from_text(SOLUTION),
    ),
    lemma="uniqueness of solutions (Picard-Lindelöf), and the limits of the exponential",
    simulation=(
        Experiment(simulation, name="closed form against the integrated flow"),
        Experiment(ends, name="where modes end"),
    ),
    training=(Experiment(training, name="torch network against closed form"),),
)

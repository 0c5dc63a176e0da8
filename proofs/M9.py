"""M9. λ-balanced starts: the same Riccati equation, with λ in F, for every rectangular shape.

Let UᵀU − VᵀV = λI, which the flow keeps (F9). With Z = [U; V] and X = Z Zᵀ,

    X' = F X + X F − X²,    F = [[λ/2 I, Q*], [Q*ᵀ, −λ/2 I]].

The prover decides it in blocks, all sizes at once. Its solution is that of M8 with this F, whose
eigenvalues are ±√(λ²/4 + s_i²), λ/2 on what Q* does not reach on the left, −λ/2 on the right.

Lemma. Uniqueness of solutions (Picard-Lindelöf), with M positive definite; X fixes U and V up to
one rotation on the right. λ > 0 needs r <= m, λ < 0 needs r <= n, as λI is a difference of Gram
matrices.

Source: Dominé et al. 2025, who need square or bottleneck shapes; Tarmoun et al. 2021.
"""

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.evidence import of_comparison
from nonmixing.ledger import folder, load_script
from nonmixing.verdict import Verdict

RICCATI = """
[matrices]
U = ["m", "r"]
V = ["n", "r"]
T = ["m", "n"]

[scalars]
lam = {}

[define]
Z = "vstack(U, V)"
F = "vstack(hstack(lam / 2 * eye(m), T), hstack(T.T, -lam / 2 * eye(n)))"

[flow]
loss = "norm2(U @ V.T - T) / 2"
variables = ["U", "V"]

[[claim]]
id = "riccati"
says = "d(Z @ Z.T) == F @ Z @ Z.T + Z @ Z.T @ F - Z @ Z.T @ Z @ Z.T"
assume = ["U.T @ U == V.T @ V + lam * eye(r)"]

[[claim]]
id = "stays-balanced"
says = "d(U.T @ U - V.T @ V - lam * eye(r)) == 0"

[[claim]]
id = "not-with-another-shift"
says = "d(Z @ Z.T) == 2 * F @ Z @ Z.T + Z @ Z.T @ F - Z @ Z.T @ Z @ Z.T"
assume = ["U.T @ U == V.T @ V + lam * eye(r)"]
"""

CLOSED_FORM = """
[matrices]
Y = ["q", "r"]
M = ["r", "r"]
F = ["q", "q"]

[kinds]
M = ["symmetric", "invertible"]
F = "symmetric"

[define]
X = "Y @ inv(M) @ Y.T"

[flow.velocity]
Y = "F @ Y"
M = "Y.T @ Y"

[[claim]]
id = "closed-form"
says = "d(X) == F @ X + X @ F - X @ X"
"""

BAND = load_script(folder("proofs") / "_band.py")

SEED = 19
SHAPES = ((6, 4, 3, 0.3), (4, 6, 3, -0.2))
"""m, n, r, λ."""


def problem(m: int, n: int) -> nm.BilinearProblem:
    """A target of top singular value 1."""
    target = np.random.default_rng([SEED, m, n]).normal(size=(m, n))
    return nm.BilinearProblem(target / np.linalg.norm(target, 2))


def start(m: int, n: int, r: int, lam: float) -> nm.Factors:
    """A random λ-balanced start: V (U, for λ < 0) is free, the other's Gram matrix fits it."""
    generator = np.random.default_rng([SEED, m, n, r])
    rows, free_rows = (m, n) if lam > 0 else (n, m)
    free = 0.3 * generator.normal(size=(free_rows, r))
    values, vectors = np.linalg.eigh(free.T @ free + abs(lam) * np.eye(r))
    root = (vectors * np.sqrt(values)) @ vectors.T
    other = np.linalg.qr(generator.normal(size=(rows, r)))[0] @ root
    return nm.Factors(other, free) if lam > 0 else nm.Factors(free, other)


def simulation(shape: tuple[int, int, int, float]) -> Verdict:
    """The closed form against the integrated flow."""
    posed, begin = problem(*shape[:2]), start(*shape)
    times, rtol = np.linspace(0, 10, 41), 1e-11
    run = nm.integrate(posed, begin, times, rtol=rtol, atol=1e-14)
    exact = nm.solve(posed, begin, times)
    smallest = float(np.min(np.linalg.svd(begin.operator, compute_uv=False)[: shape[2]]))
    tolerance = float(run.stats["evaluations"]) * rtol / smallest**2
    because = "the integrator's rtol for each evaluation, grown as modes rise, (s₁/c₀)²"
    result = nm.compare(run, exact, tolerance=tolerance, because=because)
    scope = f"modes of the integrated flow against {exact.source}"
    return of_comparison("simulation", result, scope, seed=SEED)


def training(shape: tuple[int, int, int, float]) -> Verdict:
    """A torch network from the λ-balanced start, mode by mode."""
    posed, begin = problem(*shape[:2]), start(*shape)
    rate, steps = 0.05, 240  # half of what M8 takes: imbalance makes the early flow stiffer
    return BAND.trained(posed, begin, rate=rate, steps=steps, form="M9", seed=SEED)


def name(shape: tuple[int, int, int, float]) -> str:
    """M × n, r, λ."""
    return f"{shape[0]} × {shape[1]}, r = {shape[2]}, λ = {shape[3]}"


claim = Claim(
    id="M9",
    title="λ-balanced starts: X' = F X + X F − X² with λ/2 and −λ/2 on F's diagonal blocks",
    source="Dominé et al. 2025; Tarmoun et al. 2021",
    statements=(
        *from_text(RICCATI, {"not-with-another-shift": "refuted"}),
        *from_text(CLOSED_FORM),
    ),
    lemma="uniqueness of solutions (Picard-Lindelöf), M positive definite",
    simulation=tuple(
        Experiment(lambda quick, s=shape: simulation(s), name=name(shape)) for shape in SHAPES
    ),
    training=tuple(
        Experiment(lambda quick, s=shape: training(s), name=name(shape)) for shape in SHAPES
    ),
)

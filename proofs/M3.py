"""M3. An aligned mode obeys one equation, whatever its imbalance: c' = (s − c) √(λ² + 4c²).

From M1, a' = (s − ab) b and b' = (s − ab) a. The mode's strength is c = ab, and

    c' = a' b + a b' = (s − c) (a² + b²).

The imbalance λ = a² − b² stands still, and a² + b² is a function of λ and c, for

    (a² + b²)² = (a² − b²)² + 4 a² b² = λ² + 4c²,

where a² + b² ≥ 0 is the positive root. At λ = 0 the speed is 2|c|, which vanishes at c = 0, as it
takes both factors to move (M4). With λ ≠ 0 it is never below |λ|, and c rises at once (M5).

Source: Saxe, McClelland, Ganguli 2014, section 1.2, who solve it along hyperbolas of constant λ.
"""

import numpy as np
from scipy.integrate import solve_ivp

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.compare import step_size_band
from nonmixing.evidence import of_band, of_comparison
from nonmixing.verdict import Verdict

STATEMENTS = """
[scalars]
a = {}
b = {}
s = {}

[define]
c = "a * b"
imbalance = "a ** 2 - b ** 2"
speed = "a ** 2 + b ** 2"

[flow.velocity]
a = "(s - a * b) * b"
b = "(s - a * b) * a"

[[claim]]
id = "mode"
says = "d(c) == (s - c) * speed"

[[claim]]
id = "imbalance"
says = "d(imbalance) == 0"

[[claim]]
id = "speed"
says = "speed ** 2 == imbalance ** 2 + 4 * c ** 2"
"""

SEED = 13
S = np.array([1.0, 0.7, 0.4, 0.2])
A, B = np.array([0.05, 0.6, 0.5, -0.4]), np.array([0.3, 0.1, -0.1, -0.1])


def problem() -> nm.BilinearProblem:
    """A 5 × 4 target with singular values S."""
    generator = np.random.default_rng(SEED)
    left = np.linalg.qr(generator.normal(size=(5, 4)))[0]
    right = np.linalg.qr(generator.normal(size=(4, 4)))[0]
    return nm.BilinearProblem(left @ np.diag(S) @ right.T)


def start(posed: nm.BilinearProblem) -> nm.Factors:
    """Aligned, each mode with its own imbalance of either sign, one of them with c < 0."""
    return nm.aligned(posed, A, B, width=4, seed=SEED)


def modes(posed: nm.BilinearProblem, times: np.ndarray, rtol: float) -> nm.Trajectory:
    """The modes' own equation, integrated, as the trajectory U = P diag(c), V = R."""
    imbalance = A**2 - B**2

    def rate(_: float, c: np.ndarray) -> np.ndarray:
        return (S - c) * np.sqrt(imbalance**2 + 4 * c**2)

    span = (0.0, float(times[-1]))
    run = solve_ivp(rate, span, A * B, "DOP853", t_eval=times, rtol=rtol, atol=rtol / 1000)
    return nm.Trajectory.from_arrays(
        times,
        posed.svd.P * run.y.T[:, None, :],
        np.broadcast_to(posed.svd.R, (len(times), 4, 4)),
        problem=posed,
        source="modes: M3",
        stats={"evaluations": run.nfev},
    )


def simulation(quick: bool) -> Verdict:
    """The modes of the whole network's integrated flow against their own equation."""
    posed, rtol = problem(), 1e-11
    times = np.linspace(0, 15, 61)
    run = nm.integrate(posed, start(posed), times, rtol=rtol, atol=1e-14)
    alone = modes(posed, times, rtol)
    evaluations = float(run.stats["evaluations"]) + float(alone.stats["evaluations"])
    # Errors grow at most at the rate 2(s − c), while c > 0; by the equation, the integral of that
    # over time is at most that of 2 / √(λ² + 4c²) over c, up to s.
    growth = np.exp(np.arcsinh(2 * S / np.abs(A**2 - B**2)))
    result = nm.compare(
        run,
        alone,
        tolerance=evaluations * rtol * growth,
        because="both integrators' rtol for each evaluation, grown by e^{asinh(2s/|λ|)} at most",
    )
    scope = "modes of the integrated flow against M3"
    return of_comparison("simulation", result, scope, seed=SEED)


def training(quick: bool) -> Verdict:
    """A torch network, mode by mode, against the modes' equation."""
    posed, rate, steps = problem(), 0.1, 150
    begin = start(posed)
    coarse = nm.train(posed, begin, rate=rate, steps=steps)
    fine = nm.train(posed, begin, rate=rate / 2, steps=2 * steps, every=2)
    result = step_size_band(
        coarse,
        modes(posed, coarse.times, 1e-11),
        nm.integrate(posed, begin, coarse.times, rate=rate),
        fine,
        nm.integrate(posed, begin, fine.times, rate=rate / 2),
    )
    return of_band("training", result, "modes of a torch network against M3", seed=SEED)


claim = Claim(
    id="M3",
    title="c = ab, λ = a² − b² constant: c' = (s − c) √(λ² + 4c²)",
    source="Saxe, McClelland, Ganguli 2014, section 1.2",
    statements=from_text(STATEMENTS),
    simulation=(Experiment(simulation, name="the modes' equation against the integrated flow"),),
    training=(Experiment(training, name="torch network against the modes' equation"),),
)

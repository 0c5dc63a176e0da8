"""M7. a = b = 0 is a saddle, a = −b flows into it, and any imbalance escapes.

In p = a + b and q = a − b the flow of a mode (M1) is

    p' = (s − c) p,    q' = −(s − c) q,    c = ab = (p² − q²)/4.

At 0 it is p' = s p, q' = −s q: a saddle, for s > 0. On p = 0 (a = −b) p stays 0, c = −q²/4 <= 0,
and a² falls at least as fast as e^{−2st}. p q = a² − b² = λ is constant (M3).

Lemma. If λ ≠ 0 the orbit stays away from p = 0 and from 0. Then x = b/a or a/b of M5 moves
monotonically to its root inside (−1, 1), where c = s.

Source: the stability of 0 is in Baldi and Hornik 1989; the hyperbolae in Saxe, McClelland, Ganguli
2014.
"""

import numpy as np

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.verdict import Verdict, judge

STATEMENTS = """
[scalars]
a = {}
b = {}
s = {}

[flow.velocity]
a = "(s - a * b) * b"
b = "(s - a * b) * a"

[[claim]]
id = "outwards"
says = "d(a + b) == (s - a * b) * (a + b)"

[[claim]]
id = "inwards"
says = "d(a - b) == -(s - a * b) * (a - b)"

[[claim]]
id = "product-stays"
says = "d((a + b) * (a - b)) == 0"

[[claim]]
id = "stays-on-the-line"
says = "d(a + b) == 0"
assume = ["b == -a"]

[[claim]]
id = "descends"
says = "d(a ** 2) == -2 * (s + a ** 2) * a ** 2"
assume = ["b == -a"]

[[claim]]
id = "every-line-stays"
says = "d(a + b) == 0"
"""

S = np.array([1.0, 0.6])
POSED = nm.BilinearProblem(np.diag(S))
RTOL = 1e-11


def ends(p: float, q: float, time: float) -> tuple[np.ndarray, nm.Trajectory]:
    """Modes at the end, integrated from a = (p + q)/2, b = (p − q)/2, and the run."""
    start = nm.aligned(POSED, (p + q) / 2, (p - q) / 2)
    run = nm.integrate(POSED, start, np.array([0.0, time]), rtol=RTOL, atol=1e-14)
    return run.modes()[-1], run


def saddle(quick: bool) -> Verdict:
    """From a = −b modes go to 0, to within what rounding off the line makes of it."""
    time = 8.0
    measured, run = ends(0.0, 1.0, time)
    # Off the line an error grows like e^{st} in p; c holds it squared, and as p q/2 once.
    noise = float(run.stats["evaluations"]) * RTOL * float(np.exp(S[0] * time))
    law = -0.25 / (1 + (1 + 0.25 / S) * (np.exp(2 * S * time) - 1))
    return judge(
        "simulation",
        measured=measured,
        predicted=law,
        tolerance=noise,
        because="the integrator's rtol for each evaluation, off the line, grown like e^{s₁t}",
        scope="modes from a = −b = 1/2 at t = 8, against the descending branch of M4",
        nulls={"frozen": np.full(2, -0.25), "from a = b": S},
    )


def escape(quick: bool) -> Verdict:
    """However small λ: the mode ends at s."""
    time = 80.0
    measured, _ = ends(1e-9, 1.0, time)
    left = np.exp(-2 * S * time) * 1e18 + 1e-8  # what M5 leaves, from p₀ = 1e-9; and the solver
    return judge(
        "simulation",
        measured=measured,
        predicted=S,
        tolerance=left,
        because="M5: s − c falls like e^{−2st} from p₀ = 1e-9 on; 1e-8 for the integrator",
        scope="modes from p = 1e-9, q = 1 at t = 80",
        nulls={"p = 0": np.zeros(2)},
    )


claim = Claim(
    id="M7",
    title="0 is a saddle; a = −b flows into it; any λ ≠ 0 escapes",
    source="Baldi, Hornik 1989; Saxe, McClelland, Ganguli 2014",
    statements=from_text(STATEMENTS, {"every-line-stays": "refuted"}),
    lemma="for λ ≠ 0 the Riccati equation of M5 moves x monotonically to its root in (−1, 1)",
    simulation=(
        Experiment(saddle, name="a = −b goes to 0"),
        Experiment(escape, name="λ ≠ 0 escapes to s"),
    ),
)

"""M6. When a mode is learned; and whether larger modes always come first.

From M4, c = s / (1 + (s/c₀ − 1) e^{−2st}) is s/2 where e^{2st} = s/c₀ − 1, so at

    t½ = ln(s/c₀ − 1) / (2s).

"Larger modes are always learned first" is false: starts differ. From equal starts it is true as
long as t½ falls with s. With u = s/c₀ its slope is (u/(u − 1) − ln(u − 1)) / (2s²).

Lemma. ln(u − 1) − u/(u − 1) grows with u (its slope is 1/(u − 1) + 1/(u − 1)² > 0), so it has one
zero, u = 4.5911..., and t½ falls with s beyond it. For equal c₀ < s/4.5911..., s the smaller one,
the larger mode is first: that is sufficient, not necessary.

In the claim below, s itself runs with velocity 1, so that d is the slope in s, and l is the
logarithm: l' = u'/(u − 1).

Source: Saxe, McClelland, Ganguli 2014, eq. 8 (the time t ~ 1/s); the exception is ours.
"""

import numpy as np
from scipy.optimize import brentq

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.problem import Factors
from nonmixing.verdict import Verdict, judge

STATEMENTS = """
[scalars]
s = {}
c0 = {}
l = {}

[define]
u = "s / c0"
half_time = "l / (2 * s)"

[flow.velocity]
s = "1"
l = "1 / (c0 * (u - 1))"

[[claim]]
id = "half"
says = "s / (1 + (s / c0 - 1) * (1 / (s / c0 - 1))) == s / 2"

[[claim]]
id = "slope"
says = "d(half_time) == (u / (u - 1) - l) / (2 * s ** 2)"

[[claim]]
id = "not-like-1/s"
says = "d(half_time) == -half_time / s"
"""

S = np.array([1.0, 0.7])
THRESHOLD = float(brentq(lambda u: np.log(u - 1) - u / (u - 1), 2.5, 10))
"""4.5911..., where the slope changes its sign."""
GRID = 4001


def half_times(c0: np.ndarray, s: np.ndarray = S) -> np.ndarray:
    """Times at which integrated modes are half learned, from a cubic through a fine grid."""
    problem = nm.BilinearProblem(np.diag(s))
    start: Factors = nm.aligned(problem, np.sqrt(c0))
    times = np.linspace(0, 40, GRID)
    modes = nm.integrate(problem, start, times, rtol=1e-11, atol=1e-14).modes() - s / 2
    first = np.argmax(modes > 0, axis=0)
    before, behind = (modes[first - k, range(len(s))] for k in (1, 0))
    return times[first - 1] + (times[1] - times[0]) * before / (before - behind)


def predicted(c0: np.ndarray, s: np.ndarray = S) -> np.ndarray:
    """The formula."""
    return np.log(s / c0 - 1) / (2 * s)


def formula(quick: bool) -> Verdict:
    """Half times of integrated modes against the formula."""
    c0 = np.array([1e-3, 2e-3])
    step = 40 / (GRID - 1)
    return judge(
        "simulation",
        measured=half_times(c0),
        predicted=predicted(c0),
        # c'' at s/2 is 0, so a chord's error is of third order: |c'''| h³/12 over c' = s²/2.
        tolerance=step**3 * 4,
        because="a chord through the grid, third order in its step, with |c'''|/c' <= 8 s² there",
        scope="t½ of integrated modes against ln(s/c₀ − 1)/(2s)",
        nulls={"ln(s/c₀)/(2s)": np.log(S / c0) / (2 * S), "1/s": 1 / S},
    )


def lead(c0: np.ndarray, s: np.ndarray = S) -> float:
    """By how much the larger mode is earlier."""
    first, second = half_times(c0, s)
    return float(second - first)


def always(quick: bool) -> Verdict:
    """The larger mode from the smaller start: it comes second."""
    return judge(
        "simulation",
        measured=lead(np.array([1e-6, 0.05])),
        predicted=20.0,
        tolerance=20.0,
        because="the claim: the larger mode is first, by anything up to the whole run of 40",
        scope="by how much the larger mode is earlier, from c₀ = 1e-6 and 0.05",
    )


def equal_starts(quick: bool) -> Verdict:
    """Equal starts below the threshold: the larger mode is first at every ratio tried."""
    pairs = [(1.0, 0.95), (1.0, 0.5), (1.0, 0.2)]
    leads = [lead(np.full(2, 0.99 * low / THRESHOLD), np.array([high, low])) for high, low in pairs]
    above = lead(np.full(2, 0.95 / 2.2), np.array([1.0, 0.95]))
    return judge(
        "simulation",
        measured=leads,
        predicted=20.0,
        tolerance=20.0,
        because="the claim: the larger mode is first, by anything up to the whole run of 40",
        scope="by how much the larger mode is earlier, from equal c₀ = 0.99 s/4.5911",
        nulls={"equal c₀ = s/2.2, above the threshold": above},
    )


claim = Claim(
    id="M6",
    title="half time ln(s/c₀ − 1)/(2s); larger modes first: false, true from equal small starts",
    source="Saxe, McClelland, Ganguli 2014, eq. 8",
    statements=from_text(STATEMENTS, {"not-like-1/s": "refuted"}),
    lemma="ln(u − 1) − u/(u − 1) grows with u, so it has one zero, u = 4.5911...",
    simulation=(
        Experiment(formula, name="half times"),
        Experiment(always, "unsupported", name="the larger mode is first from any start"),
        Experiment(equal_starts, name="the larger mode is first from equal small starts"),
    ),
)

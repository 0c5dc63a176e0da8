"""M14. N balanced aligned layers: c' = N c^{2 − 2/N} (s − c).

In an aligned state of N layers a mode has one number a_i in each, c = a₁ ⋯ a_N, and the loss of
the mode is ½(c − s)². So a_i' = (s − c) Π_{j≠i} a_j, and a_i² − a_j² is constant: equal numbers
stay equal. With all of them a, c = a^N, a' = (s − a^N) a^{N−1} and

    c' = N a^{N−1} a' = N a^{2N−2} (s − a^N) = N c^{2 − 2/N} (s − c).

The prover decides it as a polynomial through c = a^N, for N = 2, ..., 8. Trained gates with O = I
are three factors of a mode, w, α, v: N = 3.

Lemma. For general N: d(a^N) = N a^{N−1} a' (the power rule, by induction); c^{2 − 2/N} is a^{2N−2}
for c = a^N >= 0. Aligned states of N layers stay aligned as those of two do (M1), layer by layer
(F7).

Source: Saxe, McClelland, Ganguli 2014, eq. 15; Arora, Cohen, Hazan 2018, Theorem 1.
"""

import numpy as np
from scipy.integrate import solve_ivp

import nonmixing as nm
from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.dynamics.mode_laws import depth_modes
from nonmixing.parameterisation import layers, trained_gates
from nonmixing.verdict import Verdict, judge


def power_law(count: int) -> str:
    """The law for one number of layers, as a polynomial through c = a^N."""
    return f"""
[scalars]
a = {{}}
s = {{}}

[flow.velocity]
a = "(s - a ** {count}) * a ** {count - 1}"

[[claim]]
id = "law-{count}"
says = "d(a ** {count}) == {count} * a ** {2 * count - 2} * (s - a ** {count})"
"""


THREE = """
[scalars]
w = {}
alpha = {}
v = {}
s = {}

[flow]
loss = "(w * alpha * v - s) ** 2 / 2"
variables = ["w", "alpha", "v"]

[[claim]]
id = "velocity"
says = "d(w) == (s - w * alpha * v) * alpha * v"

[[claim]]
id = "equal-stay-equal"
says = "d(w ** 2 - alpha ** 2) == 0"

[[claim]]
id = "three"
says = "d(w * alpha * v) == 3 * w ** 4 * (s - w ** 3)"
assume = ["alpha == w", "v == w"]

[[claim]]
id = "not-two"
says = "d(w * alpha * v) == 2 * w ** 3 * (s - w ** 3)"
assume = ["alpha == w", "v == w"]
"""

SEED = 24
S = np.array([1.0, 0.6, 0.3])
START = np.array([0.02, 0.03, 0.05])
RTOL = 1e-11


def depth(count: int) -> Verdict:
    """Modes of N integrated layers against the law, its time given implicitly."""
    posed = nm.BilinearProblem(np.diag(S), parameterisation=layers(count))
    names = list(posed.parameterisation.variables)
    root = np.diag(START ** (1 / count))
    times = np.linspace(0, 15, 31)
    run = nm.integrate(posed, dict.fromkeys(names, root), times, rtol=RTOL, atol=1e-14)
    law = depth_modes(S, START, count, times)
    return _judged("simulation", run.modes(), law, times, float(run.stats["evaluations"]))


def gates(quick: bool) -> Verdict:
    """Modes of trained gates, all three factors equal, against the law for three."""
    posed = nm.BilinearProblem(np.diag(S), parameterisation=trained_gates())
    shapes = posed.parameterisation.variables
    root = np.cbrt(START)
    state = {
        name: root[:, None] if "1" in shape else np.diag(root) for name, shape in shapes.items()
    }
    times = np.linspace(0, 15, 31)
    run = nm.integrate(posed, state, times, rtol=RTOL, atol=1e-14)
    law = depth_modes(S, START, 3, times)
    return _judged("simulation", run.modes(), law, times, float(run.stats["evaluations"]))


def _judged(evidence, modes, law, times, evaluations) -> Verdict:
    slow, fast = (_resampled(law, times, clock) for clock in (0.8, 1.25))
    return judge(
        evidence,
        measured=np.abs(modes - law).max(axis=0),
        predicted=0.0,
        tolerance=evaluations * RTOL * float((S[0] / START.min()) ** 2),
        because="the integrator's rtol for each evaluation, grown as modes rise, (s₁/c₀)²",
        scope="largest distance of a mode from the law",
        nulls={
            "frozen": np.abs(law - law[0]).max(axis=0),
            "slowed": np.abs(slow - law).max(axis=0),
            "hurried": np.abs(fast - law).max(axis=0),
        },
        seed=SEED,
    )


def _resampled(law, times, clock):
    return np.stack([np.interp(clock * times, times, column) for column in law.T], axis=1)


def network(count: int) -> Verdict:
    """A torch network of N layers, mode by mode, by steps of descent on the law's own numbers.

    Descent on equal numbers is a⁺ = a + η (s − a^N) a^{N−1}, exactly; autograd knows nothing of it.
    """
    import torch

    rate, steps = 0.05, 300
    weights = [
        torch.diag(torch.tensor(START ** (1 / count))).requires_grad_() for _ in range(count)
    ]
    target = torch.diag(torch.tensor(S))
    descent = torch.optim.SGD(weights, lr=rate)
    numbers, found = START ** (1 / count), []
    expected = []
    for _ in range(steps):
        descent.zero_grad()
        loss = 0.5 * (torch.linalg.multi_dot(weights) - target).square().sum()
        loss.backward()
        descent.step()
        numbers = numbers + rate * (S - numbers**count) * numbers ** (count - 1)
        found.append(
            torch.linalg.multi_dot([w.detach() for w in weights]).diagonal().numpy().copy()
        )
        expected.append(numbers**count)
    gap = np.abs(np.array(found) - np.array(expected)).max(axis=0)
    flow = solve_ivp(
        lambda _, a: (S - a**count) * a ** (count - 1),
        (0, rate * steps),
        START ** (1 / count),
        t_eval=rate * np.arange(1, steps + 1),
        rtol=1e-10,
        atol=1e-12,
    ).y.T
    return judge(
        "training",
        measured=gap,
        predicted=0.0,
        tolerance=steps * 40 * float(np.finfo(np.float64).eps * S[0] / START.min()),
        because="rounding, 40 units a step, grown as the smallest mode could grow, s₁/c₀",
        scope=f"modes of {count} torch layers against a⁺ = a + η (s − a^N) a^(N−1)",
        nulls={
            "the flow in place of steps": np.abs(flow**count - np.array(expected)).max(axis=0),
            "frozen": np.abs(np.array(expected) - START).max(axis=0),
        },
    )


claim = Claim(
    id="M14",
    title="N aligned balanced layers: c' = N c^{2 − 2/N} (s − c); trained gates are the case N = 3",
    source="Saxe, McClelland, Ganguli 2014, eq. 15; Arora, Cohen, Hazan 2018, Theorem 1",
    statements=(
        *(item for count in range(2, 9) for item in from_text(power_law(count))),
        *from_text(THREE, {"not-two": "refuted"}),
    ),
    lemma="the power rule for every N, and aligned layers stay aligned (M1, F7)",
    simulation=(
        *(Experiment(lambda quick, n=n: depth(n), name=f"{n} layers") for n in (2, 3, 4)),
        Experiment(gates, name="trained gates"),
    ),
    training=tuple(Experiment(lambda quick, n=n: network(n), name=f"{n} layers") for n in (3, 4)),
)

"""Relative error of the closed forms on random problems, by family.

    python benchmarks/accuracy.py [--problems 1000] [--seed 0] [--json FILE]

prints the table and writes JSON. Each problem has one time, from 1e-3 to 1e6, singular values over
six decades, some zero, some repeated, a start of scale 1e-8 to 10, and m, n ≤ 6, r ≤ 8. Families
are taken in turn. The reference of a problem is

- `digits`: the formula of the ledger in mpmath, with at least 60 + 1.74 t √(s₁² + λ²/4) digits, as
  long as that is under 1,000. In those digits nothing cancels. For M8 and M9 it is the Riccati
  solution from mpmath's eigenvectors of F, which does not go by the target's singular vectors;
- `semigroup`, beyond: the state that mpmath finds at an earlier time, 900 digits away, is rounded
  and solved on from. Each of these is also held to `limit`, the best operator of the width, at
  t = ∞, unless equal singular values leave it open.

A balanced start with m = n ≤ r keeps the sign of det Q. It is drawn with the target's: with the
other its flow ends on a saddle, and rounding alone decides when that is left again.

The error is ‖Q − Q_ref‖_F / ‖Q_ref‖_F; below 1e-290 an operator counts as 0. The target is given as
an array and as factors by turns. For M14 there is no operator, and the error is that of the mode.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
from machine import machine
from numpy.typing import NDArray

from nonmixing.dynamics.exact import solve
from nonmixing.dynamics.mode_laws import depth_modes
from nonmixing.problem import Array, BilinearProblem, Factors, orthonormal

FAMILIES = ("M4", "M5", "D9", "M8", "M8 with decay", "M9", "M14")
MOST_DIGITS = 1000
VANISHED = 1e-290
REQUIRED = 1e-10
"""The relative error that issue and documentation promise."""


@dataclass(frozen=True)
class Measured:
    """One problem, and how far the closed form is from its reference."""

    family: str
    reference: str
    error: float
    limit_error: float | None
    source: str
    parameters: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Drawn:
    """A random problem of a family."""

    family: str
    P: Array
    s: Array
    R: Array
    target: Array  # (m, n), rounded; unused where the factors are given
    factored: bool
    start: Factors
    a: Array  # mode strengths of an aligned start
    b: Array
    imbalance: float
    decay: float
    time: float
    seed: tuple[int, int]

    @property
    def problem(self) -> BilinearProblem:
        """The problem, as the package takes it."""
        given = (self.P, self.s, self.R) if self.factored else self.target
        return BilinearProblem(given, decay=self.decay)

    @property
    def fastest(self) -> float:
        """The largest rate, √(s₁² + λ²/4) and the decay."""
        return float(np.hypot(self.s.max(), self.imbalance / 2)) + self.decay

    @property
    def parameters(self) -> dict[str, Any]:
        """What to print and to write of it."""
        return {
            "shape": [len(self.P), len(self.R)],
            "width": self.start.width,
            "s": self.s.tolist(),
            "scale": float(np.abs(self.start.U).max()),
            "lambda": self.imbalance,
            "decay": self.decay,
            "t": self.time,
            "factored": self.factored,
            "seed": list(self.seed),
        }


def drawn(family: str, seed: tuple[int, int]) -> Drawn:
    """A random problem; M14 is drawn apart."""
    generator = np.random.default_rng(seed)
    m, n, r = (int(generator.integers(1, 7)) for _ in range(3))
    r = r + 2 if generator.random() < 0.2 else r
    k = min(m, n)
    s = 10 ** generator.uniform(-3, 3, k)
    if generator.random() < 0.25:
        s[generator.integers(k)] = s[0]
    s[generator.random(k) < 0.15] = 0.0
    P, R = orthonormal(m, k, generator), orthonormal(n, k, generator)
    scale, moment = 10 ** generator.uniform(-8, 1), 10 ** generator.uniform(-3, 6)
    decay = 10 ** generator.uniform(-3, 2) if family in ("D9", "M8 with decay") else 0.0
    a = b = np.zeros(k)
    lam = 0.0
    if family in ("M4", "M5", "D9"):
        kept = generator.permutation(k)[:r]
        a = np.zeros(k)
        a[kept] = (
            scale * generator.uniform(0.3, 1, len(kept)) * generator.choice([-1, 1], len(kept))
        )
        b = a * (1 if generator.random() < 0.8 else -1)
        if family == "M5":
            b = a * 10 ** generator.uniform(-6, 1, k) * generator.choice([-1, 1], k, p=[0.2, 0.8])
        frame = np.zeros((k, r))
        frame[kept] = orthonormal(r, len(kept), generator).T
    else:
        if family == "M9":
            lam = scale**2 * 10 ** generator.uniform(-3, 3) * float(generator.choice([-1, 1]))
            r = min(r, m if lam > 0 else n)
        start = balanced_start(m, n, r, scale, lam, generator)
        if lam == 0 and m == n <= r and np.linalg.det(start.operator) * np.linalg.det(P @ R.T) < 0:
            start = Factors(start.U * np.where(np.arange(m) == 0, -1.0, 1.0)[:, None], start.V)
        frame = np.zeros((k, r))
    factored, target = bool(generator.random() < 0.5), (P * s) @ R.T
    if family in ("M4", "M5", "D9"):
        # Aligned is to be so with the singular vectors that the target has after it was rounded.
        svd = BilinearProblem((P, s, R) if factored else target).svd
        P, R, s = svd.P, svd.R, np.where(np.sort(s)[::-1] == 0, 0.0, svd.s)
        start = Factors((P * a) @ frame, (R * b) @ frame)
    return Drawn(family, P, s, R, target, factored, start, a, b, lam, decay, moment, seed)


def balanced_start(
    m: int, n: int, r: int, scale: float, lam: float, generator: np.random.Generator
) -> Factors:
    """A random start with UᵀU − VᵀV = λI; balanced for λ = 0."""
    if lam < 0:
        other = balanced_start(n, m, r, scale, -lam, generator)
        return Factors(other.V, other.U)
    rank = min(n, r) if lam > 0 else min(m, n, r)
    left, right = orthonormal(m, min(m, r), generator), orthonormal(n, rank, generator)
    frame = orthonormal(r, r, generator)
    d = np.zeros(r)
    d[:rank] = (scale * generator.uniform(0.3, 1, rank)) ** 2
    U = (left * np.sqrt(d[: left.shape[1]] + lam)) @ frame[:, : left.shape[1]].T
    return Factors(U, (right * np.sqrt(d[:rank])) @ frame[:, :rank].T)


def digits(problem: Drawn, moment: float) -> int:
    """How many digits the formula needs so that nothing of it cancels."""
    return int(60 + 1.74 * moment * problem.fastest)


def mode(s: Any, a: Any, b: Any, decay: Any, t: Any) -> Any:
    """CLAIMS M4, M5 and D9, literally (D9 is M4 with s − d, or −s − d where c₀ < 0)."""
    c, lam = a * b, abs(a**2 - b**2)
    if lam == 0:
        if c == 0:
            return mp.mpf(0)
        w, size = mp.sign(c) * s - decay, abs(c)
        size_t = (
            size / (1 + 2 * size * t) if w == 0 else w / (1 + (w / size - 1) * mp.exp(-2 * w * t))
        )
        return mp.sign(c) * size_t
    x = b / a if abs(a) > abs(b) else a / b
    if s == 0:
        x_t = x * mp.exp(-lam * t)
    else:
        k = mp.sqrt(4 * s**2 + lam**2)
        upper, lower = (-lam + k) / (2 * s), (-lam - k) / (2 * s)
        share = (x - upper) / (x - lower) * mp.exp(-k * t)
        x_t = (upper - share * lower) / (1 - share)
    return lam * x_t / (1 - x_t**2)


def riccati(problem: Drawn, moment: float) -> Any:
    """X(t) of CLAIMS M8 and M9, with the eigenvectors of F by mpmath."""
    m, n = len(problem.P), len(problem.R)
    P, s, R = (mp.matrix(part.tolist()) for part in (problem.P, problem.s, problem.R))
    target = P * mp.diag(list(s)) * R.T if problem.factored else mp.matrix(problem.target.tolist())
    f, half = mp.zeros(m + n), mp.mpf(problem.imbalance) / 2
    for i in range(m + n):
        f[i, i] = (half if i < m else -half) - mp.mpf(problem.decay)
    for i in range(m):
        for j in range(n):
            f[i, m + j] = f[m + j, i] = target[i, j]
    values, vectors = mp.eigsy(f)
    z = vectors.T * mp.matrix(np.vstack([problem.start.U, problem.start.V]).tolist())
    t = mp.mpf(moment)
    inner = mp.eye(problem.start.width)
    for i, value in enumerate(values):
        weight = t if value == 0 else mp.expm1(2 * value * t) / (2 * value)
        inner += z[i, :].T * (z[i, :] * weight)
    grown = mp.diag([mp.exp(value * t) for value in values]) * z
    return vectors * (grown * inner**-1 * grown.T) * vectors.T


def reference(problem: Drawn, moment: float) -> tuple[Array, Factors | None]:
    """Q(t), and factors of it to go on from (none for aligned starts)."""
    with mp.workdps(min(digits(problem, moment), MOST_DIGITS)):
        if problem.family in ("M4", "M5", "D9"):
            modes = [
                float(mode(*(mp.mpf(float(x)) for x in row), mp.mpf(problem.decay), mp.mpf(moment)))
                for row in zip(problem.s, problem.a, problem.b, strict=True)
            ]
            return (problem.P * modes) @ problem.R.T, None
        x, m = riccati(problem, moment), len(problem.P)
        operator = as_floats(x[:m, m:])
        return operator, factors_of(x, m, problem.start.width)


def factors_of(x: Any, m: int, r: int) -> Factors:
    """Z of r columns with Z Zᵀ = X, by pivoted Cholesky in the digits of X."""
    size = x.rows
    columns = mp.zeros(size, r)
    for j in range(r):
        pivot = max(range(size), key=lambda i: x[i, i])
        if x[pivot, pivot] <= mp.mpf(10) ** (-mp.mp.dps // 2):
            break
        column = x[:, pivot] / mp.sqrt(x[pivot, pivot])
        columns[:, j] = column
        x = x - column * column.T
    z = as_floats(columns)
    return Factors(z[:m], z[m:])


def as_floats(matrix: Any) -> Array:
    """An mpmath matrix as an array."""
    return np.array([[float(matrix[i, j]) for j in range(matrix.cols)] for i in range(matrix.rows)])


def relative(got: NDArray[Any], expected: NDArray[Any]) -> float:
    """The relative error in the Frobenius norm."""
    sizes = float(np.linalg.norm(got)), float(np.linalg.norm(expected))
    if sizes[1] <= VANISHED:
        return 0.0 if sizes[0] <= VANISHED else 1.0
    return float(np.linalg.norm(got - expected)) / sizes[1]


def limit(problem: Drawn) -> Array | None:
    """The best operator of the width, with decay of s − d; none where a tie leaves it open."""
    s, width = np.maximum(problem.s - problem.decay, 0), problem.start.width
    order = np.argsort(-s, kind="stable")
    kept = order[:width]
    rest = order[width:]
    if len(rest) and s[rest[0]] > 0 and s[rest[0]] == s[kept[-1]]:
        return None
    return (problem.P[:, kept] * s[kept]) @ problem.R[:, kept].T


def measured(family: str, seed: tuple[int, int]) -> Measured:
    """Draw a problem of the family and hold the closed form to its reference."""
    if family == "M14":
        return measured_depth(seed)
    problem = drawn(family, seed)
    found = solve(problem.problem, problem.start, [problem.time])
    got, far = found.operator(0), None
    # In the formulas of aligned modes no large exponentials cancel: MOST_DIGITS are plenty.
    if family in ("M4", "M5", "D9") or digits(problem, problem.time) < MOST_DIGITS:
        name, expected = "digits", reference(problem, problem.time)[0]
    else:
        name, expected = "semigroup", continued(problem)
        best = limit(problem)
        if best is not None:
            far = relative(solve(problem.problem, problem.start, [np.inf]).operator(0), best)
    return Measured(family, name, relative(got, expected), far, found.source, problem.parameters)


def continued(problem: Drawn) -> Array:
    """Q(t) by the semigroup law, from mpmath's state 900 digits before."""
    early = (900 - 60) / (1.74 * problem.fastest)
    _, state = reference(problem, early)
    assert state is not None
    return solve(problem.problem, state, [problem.time - early]).operator(0)


def measured_depth(seed: tuple[int, int]) -> Measured:
    """One mode of N factors against mpmath's inversion of its implicit time, with 60 digits."""
    generator = np.random.default_rng(seed)
    n, s = int(generator.integers(2, 9)), 10 ** generator.uniform(-3, 3)
    c = 10 ** generator.uniform(-8, 1)
    s = 0.0 if generator.random() < 0.1 else s
    moment = 10 ** generator.uniform(-3, 6)
    got = float(depth_modes([s], [c], n, [moment])[0, 0])
    with mp.workdps(60):
        expected = float(depth_reference(mp.mpf(s), mp.mpf(c), n, mp.mpf(moment)))
    return Measured(
        "M14",
        "digits",
        relative(np.array([got]), np.array([expected])),
        None,
        "depth_modes",
        {"s": s, "c0": c, "depth": n, "t": moment, "seed": list(seed)},
    )


def depth_reference(s: Any, c: Any, n: int, t: Any) -> Any:
    """c(t) of CLAIMS M14: its implicit time, by partial fractions over roots of unity, bisected."""
    if s == 0:
        power = 2 - mp.mpf(2) / n
        return c * (1 + n * power * c**power * t) ** (-1 / power)
    y0, clock = mp.root(c / s, n), s ** (2 - mp.mpf(2) / n) * t

    def implicit(y: Any) -> Any:
        lead = y ** (2 - n) / (2 - n) if n > 2 else mp.log(y)
        turns = [mp.expjpi(mp.mpf(2 * k) / n) for k in range(n)]
        logs = [mp.log(abs(1 - y)), *(mp.log(1 - y / turn) for turn in turns[1:])]
        return lead - sum(mp.re(w**2 * x) for w, x in zip(turns, logs, strict=True)) / n

    edge = 1 - mp.mpf(10) ** -40 if c < s else 1 + mp.mpf(10) ** -40
    begin = implicit(y0)
    if implicit(edge) - begin <= clock:
        return s
    near, far = y0, edge
    for _ in range(140):
        middle = mp.sqrt(near * far)
        early = implicit(middle) - begin <= clock
        near, far = (middle, far) if early else (near, middle)
    return s * near**n


def run(problems: int, seed: int = 0) -> Iterator[Measured]:
    """The measurements, families in turn."""
    for index in range(problems):
        yield measured(FAMILIES[index % len(FAMILIES)], (seed, index))


def table(results: Sequence[Measured]) -> str:
    """The results by family and reference."""
    lines = [
        f"{'family':14} {'reference':10} {'count':>5} {'worst':>9} {'median':>9} {'limit':>9}"
        "  worst case"
    ]
    for family in FAMILIES:
        for name in ("digits", "semigroup"):
            rows = [x for x in results if (x.family, x.reference) == (family, name)]
            if not rows:
                continue
            worst = max(rows, key=lambda x: x.error)
            far = [x.limit_error for x in rows if x.limit_error is not None]
            shown = f"{max(far):9.1e}" if far else f"{'':9}"
            median = float(np.median([x.error for x in rows]))
            case = ", ".join(f"{key} {brief(x)}" for key, x in worst.parameters.items())
            lines.append(
                f"{family:14} {name:10} {len(rows):5} {worst.error:9.1e} {median:9.1e} {shown}"
                f"  {case}"
            )
    return "\n".join(lines)


def brief(value: object) -> str:
    """A parameter in the table."""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        return "[" + ", ".join(brief(x) for x in value) + "]"
    return str(value)


def main() -> int:
    """Print the table, write the JSON; 1 if an error is larger than what is promised."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=Path("out/benchmarks/accuracy.json"))
    options = parser.parse_args()
    began = time.perf_counter()
    results = list(run(options.problems, options.seed))
    worst = max(max(x.error, x.limit_error or 0.0) for x in results)
    print(table(results))
    print(
        f"\nworst {worst:.1e} of {len(results)} problems (promised {REQUIRED:.0e}), "
        f"{time.perf_counter() - began:.0f} s, {machine()}"
    )
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(
        json.dumps(
            {
                "machine": machine(),
                "seed": options.seed,
                "worst": worst,
                "promised": REQUIRED,
                "results": [asdict(x) for x in results],
            },
            indent=1,
        )
    )
    return 0 if worst <= REQUIRED else 1


if __name__ == "__main__":
    sys.exit(main())

"""D6. Which optimisers keep modes apart, and which mix them.

Start aligned, U = P diag(a) Oᵀ and V = R diag(b) Oᵀ, with empty buffers. The gradient of U has the
same form, G = E V = P diag(g) Oᵀ with g = (ab − s) b, and that of V likewise with R. An optimiser
keeps modes apart if what it makes of matrices of this form has this form again:

- sums and multiples do, so gradient descent, heavy ball, Nesterov and weight decay; and clipping by
  norm, which multiplies by one number;
- odd polynomials do, so the Newton-Schulz steps of Muon; and the polar factor that they approach;
- Shampoo's product L^(−1/4) G R^(−1/4) does, for L and R have P's and O's columns as eigenvectors.

Adam, RMSProp, sign descent and clipping by value apply an odd function φ to each entry, and entries
know nothing of singular vectors. With P = [[3, 4], [4, −3]]/5, O = I and g = 5x in the first mode,
what leaks from it into the second is

    (4 φ(3x) − 3 φ(4x)) / 5.

In their first steps Adam, RMSProp and sign descent have φ(z) = z / (ρ|z| + ε), ρ > 0, ε ≥ 0, and
for them this is 0 at no x > 0; under clipping it is not once 3x reaches the bound. They do not mix
where P, R and O are signed permutations, which only move entries about and change their signs.

Lemma. Induction over the steps. The polar factor of G is the W with G = W H, H = (GᵀG)^(1/2), that
is isometric where H is not 0. A power of a symmetric matrix has the same eigenvectors.

Source: Polyak 1964, Nesterov 1983; Kingma and Ba 2015 (Adam), Gupta, Koren and Singer 2018
(Shampoo), Jordan et al. 2024 (Muon).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script
from nonmixing.verdict import Verdict, judge

one_thread = load_script(folder("proofs") / "_threads.py").one_thread

Array = np.ndarray
Frame = list[np.ndarray]  # P, R, O

FAMILY = """
[matrices]
P = ["m", "k"]
R = ["n", "k"]
O = ["r", "k"]
s = ["k", 1]
a = ["k", 1]
b = ["k", 1]
u = ["k", 1]
v = ["k", 1]
f = ["k", 1]
l = ["k", 1]
x = ["k", 1]
y = ["k", 1]
X = ["m", "m"]
Y = ["r", "r"]

[kinds]
P = "orthonormal"
R = "orthonormal"
O = "orthonormal"

[scalars]
eta = {}
beta = {}
decay = {}
clip = {}
c1 = {}
c3 = {}
c5 = {}
eps = {}

[define]
U = "P @ diag(a) @ O.T"
V = "R @ diag(b) @ O.T"
E = "U @ V.T - P @ diag(s) @ R.T"
g = "(a * b - s) * b"
h = "(a * b - s) * a"
G = "P @ diag(g) @ O.T"
K = "G.T @ G"
buffer = "P @ diag(u) @ O.T"
ahead_U = "U + beta * buffer"
ahead_V = "V + beta * R @ diag(v) @ O.T"
ahead_E = "ahead_U @ ahead_V.T - P @ diag(s) @ R.T"
ahead = "(a + beta * u) * (b + beta * v) - s"
W = "P @ diag(f) @ O.T"
H = "O @ diag(f * g) @ O.T"
Left = "eps * eye(m) + P @ diag(l) @ P.T"

[step.update]
u = "beta * u - eta * (clip * g + decay * a)"
a = "a + beta * u - eta * (clip * g + decay * a)"

[[claim]]
id = "gradient-U"
says = "E @ V == G"

[[claim]]
id = "gradient-V"
says = "E.T @ U == R @ diag(h) @ O.T"

[[claim]]
id = "norm-of-the-gradient"
says = "norm2(E @ V) + norm2(E.T @ U) == sum(g * g) + sum(h * h)"

[[claim]]
id = "heavy-ball-decay-clip-norm"
says = "after(U) == U + beta * buffer - eta * (clip * E @ V + decay * U)"

[[claim]]
id = "their-buffer"
says = "after(buffer) == beta * buffer - eta * (clip * E @ V + decay * U)"

[[claim]]
id = "nesterov"
says = "ahead_E @ ahead_V == P @ diag(ahead * (b + beta * v)) @ O.T"

[[claim]]
id = "newton-schulz"
says = "c1 * G + c3 * G @ K + c5 * G @ K @ K == P @ diag(c1 * g + c3 * g**3 + c5 * g**5) @ O.T"

[[claim]]
id = "polar-product"
says = "W @ H == G"
assume = ["f * f * g == g"]

[[claim]]
id = "polar-isometry"
says = "W.T @ W @ H == H"
assume = ["f * f * g == g"]

[[claim]]
id = "shampoo-accumulates"
says = "Left + G @ G.T == eps * eye(m) + P @ diag(l + g * g) @ P.T"

[[claim]]
id = "shampoo-eigenvectors"
says = "Left @ P == P @ diag(eps * ones(k, 1) + l)"

[[claim]]
id = "shampoo-step"
says = "X @ G @ Y == P @ diag(x * g * y) @ O.T"
assume = ["X @ P == P @ diag(x)", "O.T @ Y == diag(y) @ O.T"]
"""

ELEMENTWISE = """
[matrices]
P = ["n", "n"]
R = ["n", "n"]
O = ["n", "n"]
s = ["n", 1]
a = ["n", 1]
b = ["n", 1]
g = ["n", 1]
p = ["n", "n"]
q = ["n", "n"]

[kinds]
P = "orthogonal"
R = "orthogonal"
O = "orthogonal"
p = ["diagonal", "orthogonal"]
q = ["diagonal", "orthogonal"]

[functions]
phi = {}

[scalars]
eta = {}
x = {}
y = {}
rho = {}
eps = {}

# An odd function is z phi(z²).
[define]
U = "P @ diag(a) @ O.T"
V = "R @ diag(b) @ O.T"
E = "U @ V.T - P @ diag(s) @ R.T"
odd_U = "E @ V * phi(E @ V * (E @ V))"
odd_V = "E.T @ U * phi(E.T @ U * (E.T @ U))"
C = "P.T @ (U - eta * odd_U) @ (V - eta * odd_V).T @ R"
G = "P @ diag(g) @ O.T"
xy = "vstack(x, y)"
turn = "hstack(vstack(3, 4), vstack(4, -3))"
leak = "hstack(0, 1) @ turn @ phi(turn @ diag(xy)) @ vstack(1, 0)"
three = "3 * rho * x + eps"
four = "4 * rho * x + eps"
cycle = "hstack(vstack(0, 1), vstack(-1, 0))"
quarter = "cycle @ diag(xy)"
signed = "p @ q @ g"

[[claim]]
id = "elementwise-steps-keep-modes-apart"
says = "C == diagpart(C)"

[[claim]]
id = "cubes-of-entries-do"
says = "P.T @ (G * G * G) @ O == diagpart(P.T @ (G * G * G) @ O)"

[[claim]]
id = "what-leaks"
says = "leak == 4 * phi(3 * x) - 3 * phi(4 * x)"

[[claim]]
id = "adam-rmsprop-sign-leak"
says = "4 * (3 * x / three) - 3 * (4 * x / four) == 12 * rho * x ** 2 / (three * four)"

[[claim]]
id = "signs"
says = "signed * phi(signed * signed) == p @ q @ (g * phi(g * g))"

[[claim]]
id = "a-quarter-turn"
says = "quarter * phi(quarter * quarter) == cycle @ diag(xy * phi(xy * xy))"
"""

SEED, RATE, STEPS = 36, 0.05, 30
S, A, B = np.array([[1.0, 0.6, 0.3], [0.3, 0.4, 0.2], [0.4, 0.2, 0.5]])
EPSILON = float(np.finfo(np.float64).eps)
DRAWN = np.random.default_rng(SEED).normal(size=(3, 3, 3))
ROTATIONS = [np.linalg.qr(each)[0] for each in DRAWN]  # P, R, O that know nothing of the axes
CYCLE = np.eye(3)[[2, 0, 1]] * np.array([1.0, -1.0, 1.0])
PERMUTATIONS = [CYCLE, CYCLE.T, -CYCLE @ CYCLE]
APART = ("gradient-descent", "heavy-ball", "nesterov", "weight-decay", "clip-norm")
ENTRIES = ("adam", "rmsprop", "clip-value")
BOUND = 0.05  # of clipping


def direction(name: str, G: Array, kept: dict[str, Array]) -> Array:
    """What an optimiser that torch does not have subtracts; `kept` are its buffers."""

    def root(key: str, square: Array) -> Array:
        kept[key] = kept.get(key, 1e-3 * np.eye(3)) + square
        values, vectors = np.linalg.eigh(kept[key])
        return vectors * values**-0.25 @ vectors.T

    if name == "shampoo":
        return root("L", G @ G.T) @ G @ root("R", G.T @ G)
    if name == "sign":
        return np.sign(G)
    move = G / np.linalg.norm(G)  # muon, with its quintic Newton-Schulz steps
    for _ in range(5):
        square = move.T @ move
        move = 3.4445 * move - 4.775 * move @ square + 2.0315 * move @ square @ square
    return move


def in_numpy(name: str, frame: Frame) -> list[tuple[Array, Array]]:
    """The factors after each step from an aligned start, gradients typed by hand."""
    P, R, turn = frame
    states, kept = [(P * A @ turn.T, R * B @ turn.T)], ({}, {})
    for _ in range(STEPS):
        U, V = states[-1]
        E = U @ V.T - P * S @ R.T
        down, across = direction(name, E @ V, kept[0]), direction(name, E.T @ U, kept[1])
        states.append((U - RATE * down, V - RATE * across))
    return states


def in_torch(name: str, frame: Frame) -> list[tuple[Array, Array]]:
    """The same by autograd and the optimisers of torch."""
    import torch

    P, R, turn = frame
    k = len(P)
    starts = (P * A[:k] @ turn.T, R * B[:k] @ turn.T)
    factors = [torch.tensor(start, requires_grad=True) for start in starts]
    target = torch.tensor(P * S[:k] @ R.T)
    options: dict[str, Any] = {
        "heavy-ball": {"momentum": 0.9},
        "nesterov": {"momentum": 0.9, "nesterov": True},
        "weight-decay": {"weight_decay": 0.1},
    }
    kind = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}.get(name, torch.optim.SGD)
    optimiser = kind(factors, lr=RATE, **options.get(name, {}))
    states = []
    with one_thread():
        for _ in range(STEPS + 1):
            states.append(tuple(x.detach().numpy().copy() for x in factors))
            optimiser.zero_grad()
            ((factors[0] @ factors[1].T - target).square().sum() / 2).backward()
            if name == "clip-norm":
                torch.nn.utils.clip_grad_norm_(factors, BOUND)
            if name == "clip-value":
                torch.nn.utils.clip_grad_value_(factors, BOUND)
            optimiser.step()
    return states


def mixing(names: Sequence[str], frame: Frame, null: str, numpy: bool = False) -> Verdict:
    """The largest entry off the diagonal of Pᵀ Q R on the way, for each optimiser."""

    def worst(name: str, frame: Frame) -> float:
        run = in_numpy(name, frame) if numpy else in_torch(name, frame)
        products = [frame[0].T @ U @ V.T @ frame[1] for U, V in run]
        return max(float(np.abs(C - np.diag(np.diag(C))).max()) for C in products)

    growth = float(S[0] / np.min(A * B)) ** 2
    return judge(
        "simulation" if numpy else "training",
        measured=[worst(name, frame) for name in names],
        predicted=0.0,
        tolerance=STEPS * 40 * EPSILON * 3.4445**5 * growth,
        because="rounding, 40 units a step, magnified by 3.4445⁵ in Muon (less in the others), "
        "grown as modes rise, (s₁/c₀)²",
        scope=f"largest off-diagonal entry of Pᵀ Q R in {STEPS} steps of {', '.join(names)}",
        nulls={f"{null}, P, R, O rotations": [worst(null, ROTATIONS)] * len(names)},
        seed=SEED,
    )


def leak(quick: bool) -> Verdict:
    """What one step of torch leaks into the second mode, against (4φ(3x) − 3φ(4x))/5."""
    P, x = np.array([[3.0, 4.0], [4.0, -3.0]]) / 5, float((A * B - S)[0] * B[0]) / 5
    entrywise = {
        "adam": lambda z: z / (abs(z) + 1e-8),
        "rmsprop": lambda z: z / (np.sqrt(0.01) * abs(z) + 1e-8),
        "clip-value": lambda z: np.clip(z, -BOUND, BOUND),
    }
    moved = {name: in_torch(name, [P, np.eye(2), np.eye(2)])[1][0] for name in entrywise}
    return judge(
        "training",
        measured=[-float((P.T @ U)[1, 0]) / RATE for U in moved.values()],
        predicted=[float(4 * phi(3 * x) - 3 * phi(4 * x)) / 5 for phi in entrywise.values()],
        tolerance=100 * EPSILON / RATE,
        because="rounding of U, 100 units, over the learning rate",
        scope=f"second entry of Pᵀ U in the first mode, over −η, one step of {', '.join(moved)}",
        nulls={"no mixing": [0.0] * len(moved)},
    )


claim = Claim(
    id="D6",
    title="non-mixing: descent, momentum, decay, clip-norm, Muon, Shampoo; not Adam, RMSProp, sign",
    source="Kingma, Ba 2015; Gupta, Koren, Singer 2018; Jordan et al. 2024",
    statements=(
        *from_text(FAMILY),
        *from_text(
            ELEMENTWISE,
            {
                "elementwise-steps-keep-modes-apart": "refuted",
                "cubes-of-entries-do": "refuted",
            },
        ),
    ),
    lemma="induction over the steps; uniqueness of the polar factor; powers keep eigenvectors",
    simulation=(
        Experiment(
            lambda quick: mixing(("muon", "shampoo"), ROTATIONS, "sign", numpy=True),
            name="Muon, Shampoo",
        ),
        Experiment(
            lambda quick: mixing(("sign",), ROTATIONS, "sign", numpy=True),
            "unsupported",
            name="sign",
        ),
        Experiment(
            lambda quick: mixing(("sign",), PERMUTATIONS, "sign", numpy=True),
            name="sign, signed permutations",
        ),
    ),
    training=(
        Experiment(lambda quick: mixing(APART, ROTATIONS, "adam"), name="linear and by norm"),
        Experiment(
            lambda quick: mixing(ENTRIES, ROTATIONS, "adam"), "unsupported", name="elementwise"
        ),
        Experiment(leak, name="what leaks in one step"),
        Experiment(
            lambda quick: mixing(ENTRIES, PERMUTATIONS, "adam"),
            name="elementwise, signed permutations",
        ),
    ),
)

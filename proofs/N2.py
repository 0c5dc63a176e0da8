"""N2. A bilinear layer is a quadratic form for each output, and a third-order tensor in all.

The layer D((W x) ∘ (V x)) multiplies two linear maps of one input entry by entry. Its output o is

    Σ_k d_ok (w_k · x)(v_k · x) = xᵀ Q_o x,        Q_o = Σ_k d_ok w_k v_kᵀ = Wᵀ diag(d_o) V,

with w_k, v_k the rows of W and V, and d_o the row o of D. Side by side the Q_o are one third-order
tensor, B[o, i, j] = Σ_k D[o, k] W[k, i] V[k, j], and the layer contracts it with x twice. The
nonlinear layer is a linear map of x ⊗ x.

Biases fold in. Give the input one more coordinate, 1: then (W x + b) ∘ (V x + c) is the layer with
[W b] and [V c], its linear terms and constants being entries of the larger Q_o. A bias on the
output is one more hidden unit, which reads that coordinate twice.

Source: Pearce et al. 2024; Sharkey 2023, who folds biases in like this. (In the statements D is
called O, for D is a function of their language.)
"""

import numpy as np

from nonmixing.claim import Claim, Experiment, from_text
from nonmixing.ledger import folder, load_script
from nonmixing.verdict import Verdict, judge

one_thread = load_script(folder("proofs") / "_threads.py").one_thread

STATEMENTS = """
[matrices]
O = ["q", "k"]
W = ["k", "n"]
V = ["k", "n"]
b = ["k", 1]
c = ["k", 1]
e = ["q", 1]
x = ["n", 1]
y = ["q", 1]  # any combination of outputs; the unit vectors give the outputs themselves

[define]
layer = "O @ ((W @ x) * (V @ x))"
Q_y = "W.T @ diag(O.T @ y) @ V"
B = "tensor(O, W, V)"
biased = "O @ ((W @ x + b) * (V @ x + c))"
one = "vstack(x, 1)"
Wb = "hstack(W, b)"
Vc = "hstack(V, c)"
reads_one = "hstack(zeros(1, n), 1)"
whole = "tensor(hstack(O, e), vstack(Wb, reads_one), vstack(Vc, reads_one))"

[[claim]]
id = "quadratic-forms"
says = "y.T @ layer == x.T @ Q_y @ x"

[[claim]]
id = "third-order-tensor"
says = "layer == contract(B, x, x)"

[[claim]]
id = "linear-in-x-times-x"
says = "layer == B @ kron(x, x)"

[[claim]]
id = "slices-of-the-tensor"
says = "B.T @ y == vec(Q_y.T)"

[[claim]]
id = "biases-fold-in"
says = "biased == contract(tensor(O, Wb, Vc), one, one)"

[[claim]]
id = "output-bias-is-a-unit"
says = "biased + e == contract(whole, one, one)"

[[claim]]
id = "without-biases"
says = "biased == contract(B, x, x)"
"""

SEED, INPUTS, HIDDEN, OUTPUTS = 42, 5, 7, 3
EPSILON = float(np.finfo(np.float64).eps)
Array = np.ndarray


def operators(D: Array, W: Array, V: Array, b: Array, c: Array, e: Array) -> Array:
    """Every Q_o, biases folded in, shape (OUTPUTS, INPUTS + 1, INPUTS + 1), typed by hand."""
    one = np.eye(INPUTS + 1)[-1:]
    first, second = np.vstack([np.c_[W, b], one]), np.vstack([np.c_[V, c], one])
    return np.einsum("ok,ki,kj->oij", np.c_[D, e], first, second)


def draw() -> list[Array]:
    """D, W, V, b, c, e at random."""
    shapes = ((OUTPUTS, HIDDEN), (HIDDEN, INPUTS), (HIDDEN, INPUTS), HIDDEN, HIDDEN, OUTPUTS)
    generator = np.random.default_rng(SEED)
    return [generator.normal(size=shape) for shape in shapes]


def gap(seen: Array, formula: Array) -> float:
    """A relative distance."""
    return float(np.linalg.norm(seen - formula) / np.linalg.norm(seen))


def simulation(quick: bool) -> Verdict:
    """What a layer shows from outside: its second differences, which are exact for quadratics.

    f(e_i + e_j) − f(e_i) − f(e_j) + f(0) is Q_ij + Q_ji, whatever linear terms there are.
    """
    D, W, V, b, c, e = weights = draw()

    def layer(x: Array) -> Array:
        return D @ ((W @ x + b) * (V @ x + c)) + e

    rows = np.eye(INPUTS)
    seen = np.array(
        [[layer(x + y) - layer(x) - layer(y) + layer(0 * x) for y in rows] for x in rows]
    )

    def formula(*weights: Array) -> Array:
        Q = operators(*weights)[:, :-1, :-1].transpose(1, 2, 0)
        return Q + Q.transpose(1, 0, 2)

    # No value is larger than this one, at a sum of two unit vectors and with all signs alike.
    two = 2 * np.ones(INPUTS)
    most = abs(D) @ ((abs(W) @ two + abs(b)) * (abs(V) @ two + abs(c))) + abs(e)
    return judge(
        "simulation",
        measured=gap(seen, formula(*weights)),
        predicted=0.0,
        tolerance=100 * EPSILON * float(most.max()) * seen.size**0.5 / float(np.linalg.norm(seen)),
        because="rounding: four values of fewer than 25 operations, in units of the largest value",
        scope="relative gap between second differences of a layer and Q_o + Q_oᵀ",
        nulls={
            "frozen": 1.0,
            "slowed": 0.2,
            "V's units in another order": gap(seen, formula(D, W, np.roll(V, 1, 0), b, c, e)),
        },
        seed=SEED,
    )


def training(quick: bool) -> Verdict:
    """A torch network with biases, after 50 steps of training, on new inputs, against its Q_o."""
    import torch

    start = draw()
    weights = [torch.tensor(each / 2, requires_grad=True) for each in start]
    generator = np.random.default_rng(SEED + 1)
    x, wanted, new = (generator.normal(size=(40, k)) for k in (INPUTS, OUTPUTS, INPUTS))

    def network(inputs: Array):
        D, W, V, b, c, e = weights
        inner = [
            torch.nn.functional.linear(torch.tensor(inputs), *each) for each in ((W, b), (V, c))
        ]
        return torch.nn.functional.linear(inner[0] * inner[1], D, e)

    optimiser = torch.optim.SGD(weights, lr=0.01)
    with one_thread():
        for _ in range(50):
            optimiser.zero_grad()
            (network(x) - torch.tensor(wanted)).square().mean().backward()
            optimiser.step()
    seen = network(new).detach().numpy()
    one = np.c_[new, np.ones(len(new))]

    def formula(weights: list[Array]) -> Array:
        return np.einsum("oij,ni,nj->no", operators(*weights), one, one)

    trained = [each.detach().numpy() for each in weights]
    most = np.einsum("oij,ni,nj->no", operators(*map(abs, trained)), abs(one), abs(one))
    return judge(
        "training",
        measured=gap(seen, formula(trained)),
        predicted=0.0,
        tolerance=100 * EPSILON * float(np.linalg.norm(most) / np.linalg.norm(seen)),
        because="rounding: fewer than 100 operations in a row, of values with all signs alike",
        scope="relative gap between a trained layer's outputs and xᵀ Q_o x with x = (x, 1)",
        nulls={
            "frozen": gap(seen, formula([each / 2 for each in start])),
            "biases left out": gap(seen, formula([*trained[:3], *(0 * x for x in trained[3:])])),
        },
        seed=SEED,
    )


claim = Claim(
    id="N2",
    title="a bilinear layer is xᵀ Q_o x, Q_o = Σ_k d_ok w_k v_kᵀ: a third-order tensor, biases too",
    source="Pearce et al. 2024; Sharkey 2023",
    statements=from_text(STATEMENTS, {"without-biases": "refuted"}),
    simulation=(Experiment(simulation, name="second differences of a layer"),),
    training=(Experiment(training, name="trained layer on new inputs"),),
)

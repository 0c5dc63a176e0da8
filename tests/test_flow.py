"""Gradient flows derived from a loss: velocities, induced flows, invariants, descriptions."""

from __future__ import annotations

import random
import re
import textwrap
from typing import Any

import numpy as np
import pytest
import sympy as sp
from algebra.declare import SHAPES, toml
from algebra.oracle import World, separates
from sympy import MatrixSymbol, Trace

from nonmixing.algebra import decide, load_claims
from nonmixing.algebra.printing import to_text
from nonmixing.algebra.setting import Setting
from nonmixing.algebra.sympy_door import norm2
from nonmixing.algebra.text import Scope, parse
from nonmixing.errors import InputError, NonmixingError, ShapeError
from nonmixing.flow import GradientFlow, describe, problem_flow, quadratic_invariants

m, n, r = sp.symbols("m n r")
U, V, T = MatrixSymbol("U", m, r), MatrixSymbol("V", n, r), MatrixSymbol("T", m, n)
E = U * V.T - T


def text_flow(loss: str, variables: list[str], **kinds: str) -> GradientFlow:
    shapes: Any = {k: v for k, v in SHAPES.items() if re.search(rf"\b{k}\b", loss)}
    setting = Setting(shapes, {k: frozenset({v}) for k, v in kinds.items()}, frozenset("ab"))
    return GradientFlow(parse(loss, Scope(setting, {}), "loss"), variables, setting=setting)


LOSSES = [
    ("norm2(U @ V.T - A) / 2", ["U", "V"]),
    ("norm2(U @ V.T - A) / 2 + a / 2 * norm2(U) + a / 2 * norm2(V)", ["U", "V"]),
    ("norm2(A @ X @ X - B) / 2", ["A", "X"]),
    ("tr(X @ X @ X) + x.T @ X @ x", ["X", "x"]),
    ("sum((U * U) @ V.T * A)", ["U", "V"]),
    ("norm2(diag(x) @ X - Y) / 2", ["x", "X"]),
    ("a ** 2 * tr(X) + a * b", ["a", "X"]),
    ("norm2(grad(norm2(U @ V.T - A) / 2, U))", ["U", "V"]),
]


@pytest.mark.parametrize(("loss", "variables"), LOSSES)
def test_velocity_is_minus_the_gradient(loss: str, variables: list[str]) -> None:
    """Against the oracle's derivative of the loss, entry by entry, at random exact matrices."""
    flow = text_flow(loss, variables)
    world = World(toml(f"{loss} == {loss}"))
    rng = random.Random(0)
    dims = {"m": 3, "n": 2, "r": 2}
    values = world.draw(dims, rng)
    for name in variables:
        derived = to_text(flow.velocity[name])
        expected = -1 * world.at(f"grad({loss}, {name})", dims, values)
        assert (world.at(derived, dims, values) == expected).all(), derived


@pytest.mark.parametrize(("loss", "variables"), LOSSES)
def test_velocity_agrees_with_torch(loss: str, variables: list[str]) -> None:
    """Against torch's autograd of the loss, where the loss has no derivative of its own."""
    torch = pytest.importorskip("torch")
    if "grad" in loss:
        pytest.skip("torch gets the losses without derivatives")
    flow = text_flow(loss, variables)
    sizes = {"m": 4, "n": 3, "r": 2}
    generator = torch.Generator().manual_seed(0)
    at: dict[str, Any] = {}
    for name in [*flow.setting.matrices, "a", "b"]:
        shape = (
            [sizes.get(str(d), d) for d in SHAPES[name]]
            if name in flow.setting.matrices
            else [1, 1]
        )
        at[name] = torch.randn(*shape, generator=generator, dtype=torch.float64)
        at[name].requires_grad_(name in variables)
    language = {
        "norm2": lambda x: (x * x).sum().reshape(1, 1),
        "tr": lambda x: torch.trace(x).reshape(1, 1),
        "sum": lambda x: x.sum().reshape(1, 1),
        "diag": lambda x: torch.diag(x[:, 0]),
        "diagpart": lambda x: torch.diag(torch.diag(x)),
        "eye": lambda k: torch.eye(k, dtype=torch.float64),
        "ones": lambda p, q: torch.ones(p, q, dtype=torch.float64),
        **sizes,
    }
    eval(loss, dict(language), at).sum().backward()  # the test's own text, in torch
    for name in variables:
        derived = eval(to_text(flow.velocity[name]), dict(language), at)
        expected = -at[name].grad
        assert torch.allclose(derived.expand_as(expected), expected, rtol=1e-12, atol=1e-12)


# --- SymPy ----------------------------------------------------------------------------------------


def test_velocities_of_the_bilinear_problem() -> None:
    flow = GradientFlow(norm2(E) / 2, [U, V])
    assert (flow.velocity[U] - (T * V - U * V.T * V)).doit().is_ZeroMatrix
    assert (flow.velocity[V] - (T.T * U - V * U.T * U)).doit().is_ZeroMatrix
    assert set(flow.velocity) == {U, V}
    induced = flow.derivative(U * V.T)
    assert (induced - (-E * V * V.T - U * U.T * E).expand().doit()).expand().doit().is_ZeroMatrix


def test_conservation_is_proved_and_the_wrong_one_refuted() -> None:
    flow = GradientFlow(norm2(E) / 2, [U, V])
    assert flow.conserves(U.T * U - V.T * V)
    wrong = flow.conserves(U.T * U + V.T * V)
    assert wrong.verdict == "refuted"
    assert not wrong
    assert not flow.conserves(U.T * U - 2 * V.T * V)
    assert not flow.conserves(U * V.T)
    assert flow.conserves(T)
    claim = (
        '[matrices]\nU = ["m", "r"]\nV = ["n", "r"]\nT = ["m", "n"]\n[flow]\n'
        'loss = "norm2(U @ V.T - T) / 2"\nvariables = ["U", "V"]\n'
        '[[claim]]\nid = "c"\nsays = "d(U.T @ U + V.T @ V) == zeros(r, r)"\n'
    )
    assert separates(claim, wrong.counterexample)


def test_conservation_by_text_and_by_expression() -> None:
    flow = text_flow("norm2(U @ V.T - A) / 2", ["U", "V"])
    assert flow.conserves("U.T @ U - V.T @ V")
    assert flow.conserves("tr(U.T @ U) - tr(V.T @ V)")
    assert not flow.conserves("U @ V.T")
    assert flow.conserves("0 * U")
    with pytest.raises(InputError, match="'Q'"):
        flow.conserves("Q")
    assert to_text(flow.derivative("U")) in ("A @ V - U @ V.T @ V", "-U @ V.T @ V + A @ V")


def test_weight_decay_shrinks_the_imbalance() -> None:
    decay = sp.Symbol("lambda_")
    flow = GradientFlow(norm2(E) / 2 + decay / 2 * (norm2(U) + norm2(V)), [U, V])
    balance = U.T * U - V.T * V
    gap = flow.derivative(balance) + 2 * decay * balance
    assert gap.expand().doit().is_ZeroMatrix
    assert not flow.conserves(balance)


def test_a_symmetric_variable_moves_by_the_symmetric_part() -> None:
    loss = "norm2(S - X) / 2 + tr(S @ Y)"
    flow = text_flow(loss, ["S"], S="symmetric")
    assert flow.conserves("S - S.T")
    velocity = to_text(flow.velocity["S"])
    claim = toml(f"{velocity} == sym(X) - S - sym(Y)")
    (statement,) = load_claims(claim, "test")
    assert decide(statement)


def trace_of_x() -> Any:
    return parse("tr(X)", Scope(Setting({"X": ("n", "n")}), {}), "loss")


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: GradientFlow(E, [U]), "m x n"),
        (lambda: GradientFlow(norm2(E), [U * V.T]), "U*V.T"),
        (lambda: GradientFlow(norm2(E), [MatrixSymbol("W", m, m)]), "W"),
        (lambda: GradientFlow(norm2(E), ["W"]), "W"),
        (lambda: GradientFlow(norm2(E), []), "variables"),
        (lambda: GradientFlow(sp.sin(Trace(U * U.T)), [U]), "sin"),
        (lambda: GradientFlow(trace_of_x(), ["X"]), "setting"),
        (lambda: GradientFlow(norm2(E), [U]).derivative(MatrixSymbol("U", n, n)), "U"),
        (lambda: GradientFlow(norm2(E), [U]).derivative("U +"), "U +"),
    ],
)
def test_bad_flows_are_refused_by_name(make: Any, named: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_loss_of_another_shape_is_a_shape_error() -> None:
    with pytest.raises(ShapeError):
        GradientFlow(E, [U])


def test_orthogonal_variables_do_not_move() -> None:
    with pytest.raises(InputError, match="orthogonal"):
        text_flow("tr(X @ O)", ["O"], O="orthogonal")


# --- the problem's own flow -----------------------------------------------------------------------


def test_problem_flow() -> None:
    flow = problem_flow()
    assert flow.variables == ("U", "V")
    assert flow.conserves("U.T @ U - V.T @ V")
    assert not flow.conserves("U.T @ U + V.T @ V")
    assert flow is problem_flow()


def test_problem_flow_of_descent() -> None:
    """The modified loss of Barrett and Dherin: L + (eta / 4) |grad L|^2, checked in numbers."""
    flow = problem_flow(rate_symbol=True)
    assert "eta" in flow.setting.scalars
    rng = np.random.default_rng(0)
    at: dict[str, Any] = {
        "U": rng.normal(size=(4, 2)),
        "V": rng.normal(size=(3, 2)),
        "T": rng.normal(size=(4, 3)),
    }
    at["eta"] = 0.3

    def loss(u: Any, v: Any) -> Any:
        gap = u @ v.T - at["T"]
        squares = np.sum((gap @ v) ** 2) + np.sum((gap.T @ u) ** 2)
        return np.sum(gap**2) / 2 + at["eta"] / 4 * squares

    def numbers(text: str) -> Any:
        return eval(text, {"tr": np.trace, "norm2": lambda x: np.sum(x * x)}, at)

    for name in ("U", "V"):
        expected = np.zeros_like(at[name])
        for ij in np.ndindex(expected.shape):
            moved = {k: at[k].astype(complex) for k in "UV"}
            moved[name][ij] += 1e-30j
            expected[ij] = -np.imag(loss(moved["U"], moved["V"])) / 1e-30
        found = numbers(to_text(flow.velocity[name]))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    # Unlike the plain flow: it follows descent, which does not keep the imbalance.
    assert not flow.conserves("U.T @ U - V.T @ V")


# --- invariants -----------------------------------------------------------------------------------


def invariants(loss: str, variables: list[str], **kinds: str) -> list[str]:
    flow = text_flow(loss, variables, **kinds)
    found = quadratic_invariants(flow.setting)
    for invariant in found:
        assert flow.conserves(invariant), to_text(invariant)
    return [to_text(invariant) for invariant in found]


def test_invariants_of_two_factors() -> None:
    assert invariants("norm2(U @ V.T - A) / 2", ["U", "V"]) == ["U.T @ U - V.T @ V"]


def test_invariants_of_other_couplings() -> None:
    twice = "norm2(2 * U @ V.T - A) / 2"
    assert invariants(twice, ["U", "V"]) == ["U.T @ U - V.T @ V"]
    masked = "sum((U * U) @ V.T * A)"
    found = invariants(masked, ["U", "V"])
    assert len(found) == 1
    assert "diagpart" in found[0]


def test_three_factors_have_two_invariants() -> None:
    setting = Setting({"W1": ("h", "n"), "W2": ("k", "h"), "W3": ("m", "k"), "T": ("m", "n")})
    loss = parse("norm2(W3 @ W2 @ W1 - T) / 2", Scope(setting, {}), "loss")
    flow = GradientFlow(loss, ["W1", "W2", "W3"], setting=setting)
    found = quadratic_invariants(flow.setting)
    assert len(found) == 2
    assert all(flow.conserves(invariant) for invariant in found)


def test_no_invariants() -> None:
    assert invariants("norm2(X - Y) / 2", ["X"]) == []


# --- descriptions ---------------------------------------------------------------------------------

FILE = """
[matrices]
U = ["m", "r"]
V = ["n", "r"]
T = ["m", "n"]
[define]
Q = "U @ V.T"
E = "Q - T"
[flow]
loss = "norm2(E) / 2"
variables = ["U", "V"]
"""


def test_description() -> None:
    lines = describe(FILE, "file").splitlines()
    assert "  d(U) = -E @ V" in lines
    assert "  d(V) = -E.T @ U" in lines
    assert "  d(Q) = -E @ V @ V.T - U @ U.T @ E" in lines
    assert "  U.T @ U - V.T @ V" in lines


def test_description_is_true() -> None:
    """Each line of it is a claim, and proved."""
    says = [line.strip().replace(" = ", " == ") for line in describe(FILE, "file").splitlines()]
    claims = [line for line in says if line.startswith("d(")]
    assert len(claims) == 4
    text = FILE + "".join(f"[[claim]]\nid = '{i}'\nsays = '{c}'\n" for i, c in enumerate(claims))
    for statement in load_claims(text, "file"):
        assert decide(statement), statement.says


@pytest.mark.parametrize(
    "body", ["U @ V.T - T", "T + T", "T - T", "2 * T", "norm2(T)", "U.T @ U", "a * T", "T / a"]
)
def test_descriptions_with_any_abbreviation(body: str) -> None:
    text = FILE.replace('E = "Q - T"', f'E = "Q - T"\nF = "{body}"') + "\n[scalars]\na = {}\n"
    assert "d(U)" in describe(text, "file")


@pytest.mark.parametrize("kind", ["diagonal", "symmetric", "skew", "invertible", "orthogonal"])
def test_descriptions_with_a_target_of_any_kind(kind: str) -> None:
    text = textwrap.dedent(f"""
        [matrices]
        X = ["n", "n"]
        T = ["n", "n"]
        [kinds]
        T = "{kind}"
        [define]
        E = "X @ X - T"
        [flow]
        loss = "norm2(E) / 2"
        variables = ["X"]
        """)
    assert "d(X)" in describe(text, "file")


def test_description_in_latex() -> None:
    text = describe(FILE, "file", latex=True)
    assert r"\frac{d U}{dt}" in text
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize(
    "text", ["", "[matrices]\nX = ['n', 'n']\n", "[flow]\nloss = 'x'\n", "nonsense"]
)
def test_nothing_to_describe_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(NonmixingError) as caught:
        describe(text, "some.toml")
    assert str(caught.value).startswith("some.toml: ")
    assert "\n" not in str(caught.value)

"""Every parameterisation with a random problem and state, and its loss typed by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from nonmixing import parameterisation as models
from nonmixing.parameterisation import Parameterisation
from nonmixing.problem import Array, BilinearProblem, Factors, State

Values = Mapping[str, Array]


@dataclass(frozen=True)
class Model:
    """A parameterisation to test.

    Attributes:
        name: For the test's name.
        make: From a generator and (m, n, r) to the parameterisation.
        shapes: From (m, n, r) to the variables' shapes.
        operator: Of the variables and the constants, by hand.
        loss: Of E and the constants, by hand.
        square: The target is square.
        symmetric: The target is symmetric.
        flip: The state that has the transposed operator, of the transposed problem.
    """

    name: str
    make: Callable[[np.random.Generator, int, int, int], Parameterisation]
    shapes: Callable[[int, int, int], dict[str, tuple[int, ...]]]
    operator: Callable[[Values, Values], Array]
    loss: Callable[[Array, Values], float]
    flip: Callable[[Values], dict[str, Array]]
    square: bool = False
    symmetric: bool = False

    def problem(
        self,
        rng: np.random.Generator,
        m: int,
        n: int,
        r: int,
        *,
        rank: int | None = None,
        decay: float = 0.0,
        factored: bool = False,
    ) -> BilinearProblem:
        """A random problem, singular values in [0.3, 1]; of full rank if none is given."""
        if self.square:
            m = n
        k = min(m, n) if rank is None else rank
        P = np.linalg.qr(rng.standard_normal((m, k)))[0]
        signs = np.where(rng.random(k) < 0.5, -1.0, 1.0)
        R = P * signs if self.symmetric else np.linalg.qr(rng.standard_normal((n, k)))[0]
        s = np.sort(rng.uniform(0.3, 1, k))[::-1]
        target = (P * s) @ R.T
        if self.symmetric:
            target = (target + target.T) / 2
        model = self.make(rng, m, n, r)
        return BilinearProblem(
            (P, s, R) if factored else target, decay=decay, parameterisation=model
        )

    def state(self, rng: np.random.Generator, problem: BilinearProblem, r: int) -> State:
        """A random state with entries of size 0.5."""
        shapes = self.shapes(*problem.shape, r)
        found = {name: 0.5 * rng.standard_normal(shape) for name, shape in shapes.items()}
        return Factors(found["U"], found["V"]) if set(found) == {"U", "V"} else found

    def transposed(self, problem: BilinearProblem) -> BilinearProblem:
        """The problem whose target is the transposed one."""
        made = problem.parameterisation
        values = {
            {"Sx": "Sy", "Sy": "Sx"}.get(name, name): value.T if name == "base" else value
            for name, value in made.values.items()
        }
        return BilinearProblem(
            problem.target.T,
            decay=problem.decay,
            parameterisation=replace(made, values=values),
        )

    def hand_loss(self, problem: BilinearProblem, variables: Values) -> float:
        """The loss from the formula typed below."""
        values = problem.parameterisation.values
        error = self.operator(variables, values) - problem.target
        weights = sum(np.sum(x * x) for x in variables.values())
        return self.loss(error, values) + problem.decay / 2 * weights


def squared(error: Array, _: Values) -> float:
    return np.sum(error * error) / 2


def two(m: int, n: int, r: int) -> dict[str, tuple[int, ...]]:
    return {"U": (m, r), "V": (n, r)}


def product(x: Values, _: Values) -> Array:
    return x["U"] @ x["V"].T


def swapped(x: Values) -> dict[str, Array]:
    """U and V in each other's place."""
    return {"U": x["V"], "V": x["U"]}


def swapped_gates(x: Values) -> dict[str, Array]:
    return {**x, "W": x["V"], "V": x["W"]}


def _covariance(rng: np.random.Generator, size: int) -> Array:
    root = rng.standard_normal((size, size))
    return root @ root.T / size + 0.2 * np.eye(size)


ABSORBED = Model("absorbed", lambda *_: models.absorbed(), two, product, squared, swapped)

MODELS = (
    ABSORBED,
    Model(
        "fixed gates",
        lambda rng, m, n, r: models.fixed_gates(rng.uniform(0.5, 1.5, r)),
        lambda m, n, r: {"W": (m, r), "V": (n, r)},
        lambda x, c: (x["W"] * c["gates"][:, 0]) @ x["V"].T,
        squared,
        swapped_gates,
    ),
    Model(
        "trained gates",
        lambda *_: models.trained_gates(),
        lambda m, n, r: {"W": (m, r), "V": (n, r), "a": (r,)},
        lambda x, c: np.einsum("ik,jk,k->ij", x["W"], x["V"], np.ravel(x["a"])),
        squared,
        swapped_gates,
    ),
    Model(
        "second moments",
        lambda rng, m, n, r: models.second_moments(_covariance(rng, m), _covariance(rng, n)),
        two,
        product,
        lambda E, c: np.sum(E * (c["Sx"] @ E @ c["Sy"])) / 2,
        swapped,
    ),
    Model(
        "scaled moments",
        lambda rng, m, n, r: models.second_moments(2.0 * np.eye(m), 0.5 * np.eye(n)),
        two,
        product,
        squared,
        swapped,
    ),
    Model(
        "one Gaussian input",
        lambda *_: models.one_input(),
        two,
        product,
        lambda E, _: (np.trace(E) ** 2 + np.sum(E * E.T) + np.sum(E * E)) / 2,
        swapped,
        square=True,
    ),
    Model(
        "tied",
        lambda *_: models.tied(),
        lambda m, n, r: {"U": (n, r)},
        lambda x, _: x["U"] @ x["U"].T,
        squared,
        dict,
        square=True,
        symmetric=True,
    ),
    Model(
        "3 layers",
        lambda *_: models.layers(3),
        lambda m, n, r: {"W1": (r, n), "W2": (r + 1, r), "W3": (m, r + 1)},
        lambda x, _: x["W3"] @ x["W2"] @ x["W1"],
        squared,
        lambda x: {"W1": x["W3"].T, "W2": x["W2"].T, "W3": x["W1"].T},
    ),
    Model(
        "adapter",
        lambda rng, m, n, r: models.adapter(rng.standard_normal((m, 1)) * np.ones(n) / 3),
        lambda m, n, r: {"B": (m, r), "A": (r, n)},
        lambda x, c: c["base"] + x["B"] @ x["A"],
        squared,
        lambda x: {"B": x["A"].T, "A": x["B"].T},
    ),
)

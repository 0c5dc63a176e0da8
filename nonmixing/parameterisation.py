"""How an operator is made of what moves, and which loss moves it.

A parameterisation is data: the variables with their shapes, the two factors of the operator
Q = left rightᵀ, and a loss of E = Q − T, written in the language of the prover. Every flow of this
package is derived from that text; no right-hand side is written anywhere.

`m` and `n` stand for the rows and columns of the target T. Whatever has an axis of that name turns
with the target's space, which is what the reduction to the space of the flow needs to know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from nonmixing.arrays import Array, real_array, whole_number
from nonmixing.errors import InputError, ShapeError

Shape: TypeAlias = tuple[str, str]

SQUARED_ERROR: Final = "norm2(E) / 2"


@dataclass(frozen=True, eq=False, kw_only=True)
class Parameterisation:
    """The variables of a model, the operator Q = left rightᵀ that they make, and their loss.

    Attributes:
        name: What it is called.
        entry: The entry of the ledger in which its flow is settled.
        variables: Name to shape, in order; a dimension is a symbol, or "1" for a column.
        left: The left factor of Q, (m, r), in the language of the prover.
        right: The right factor, (n, r).
        loss: In Q, E = Q − T, the variables and the constants; weight decay comes on top.
        square: The target is square, and both of its sides are the same space `n`.
        symmetric: The names of the constants that are symmetric; "T" is the target.
        constants: Name to shape of what is in the loss and does not move.
        values: The constants' values.
        offset: The constant that Q contains beside the product of its factors; "" for none.
        invariants: What the flow conserves, in the language of the prover; `rate_X` is the learning
            rate of X.
    """

    name: str
    entry: str
    variables: Mapping[str, Shape]
    left: str
    right: str
    loss: str = SQUARED_ERROR
    square: bool = False
    symmetric: tuple[str, ...] = ()
    constants: Mapping[str, Shape] = field(default_factory=dict[str, Shape])
    values: Mapping[str, Array] = field(default_factory=dict[str, Array])
    offset: str = ""
    invariants: tuple[str, ...] = ()

    @property
    def target_shape(self) -> Shape:
        """The symbols of the target's dimensions."""
        return ("n", "n") if self.square else ("m", "n")

    @property
    def operator(self) -> str:
        """Q in the language of the prover."""
        product = f"({self.left}) @ ({self.right}).T"
        return f"{self.offset} + {product}" if self.offset else product

    @property
    def two_factors(self) -> bool:
        """Whether a state is U and V with Q = U Vᵀ."""
        return tuple(self.variables) == ("U", "V")

    @property
    def factor_names(self) -> tuple[str, str] | None:
        """The two variables that are the factors, where they are: the right one, or its transpose.

        `("B", "A")` of an adapter, Q₀ + B A; none where there are gates, or one variable, or three.
        """
        names = self.left, self.right.removesuffix(".T")
        return names if len(self.variables) == 2 and set(names) == set(self.variables) else None

    def document(self) -> dict[str, object]:
        """The declarations as a claim file's document, with Q, E and the loss L defined."""
        shapes = {**self.variables, **self.constants, "T": self.target_shape}
        kinds = {
            name: ["constant", "symmetric"] if name in self.symmetric else ["constant"]
            for name in (*self.constants, "T")
        }
        return {
            "matrices": {
                name: [1 if dim == "1" else dim for dim in shape] for name, shape in shapes.items()
            },
            "kinds": kinds,
            "scalars": {
                name: {} for name in ("decay", "eta", *(f"rate_{X}" for X in self.variables))
            },
            "define": {"Q": self.operator, "E": "Q - T", "L": self.loss},
        }

    def check_target(self, shape: tuple[int, int]) -> None:
        """Refuse a target whose shape does not fit.

        Raises:
            ShapeError: Not square where it must be, or not of the constants' dimensions.
        """
        if self.square and shape[0] != shape[1]:
            raise ShapeError(
                f"target: got shape {shape}; a square one is expected for {self.name}, whose "
                "factors read one space"
            )
        sizes = dict(zip(self.target_shape, shape, strict=True))
        for name, symbols in self.constants.items():
            wanted = tuple(
                sizes.get(symbol, size)
                for symbol, size in zip(symbols, self.values[name].shape, strict=True)
            )
            if self.values[name].shape != wanted:
                raise ShapeError(
                    f"{name}: got shape {self.values[name].shape}; {wanted} is expected for a "
                    f"target of shape {shape}"
                )

    def check_shapes(self, shapes: Mapping[str, tuple[int, ...]], shape: tuple[int, int]) -> None:
        """Refuse variables whose shapes do not fit each other, the constants, or the target.

        Args:
            shapes: The variables' shapes, each of two axes.
            shape: The target's.

        Raises:
            ShapeError: They do not fit.
        """
        sizes = {"1": 1, **dict(zip(self.target_shape, shape, strict=True))}
        known = {name: self.values[name].shape for name in self.constants}
        for name, found in {**known, **shapes}.items():
            symbols = {**self.constants, **self.variables}[name]
            for symbol, size in zip(symbols, found, strict=True):
                if sizes.setdefault(symbol, size) != size:
                    wanted = tuple(
                        sizes.get(symbol, size) for symbol, size in zip(symbols, found, strict=True)
                    )
                    raise ShapeError(
                        f"start: {name} has shape {found}; {wanted} is expected beside the others, "
                        f"for {self.name} on a target of shape {shape}"
                    )


def absorbed() -> Parameterisation:
    """Q = U Vᵀ, the gate absorbed into a factor (F1).

    The variables are U (m, r) and V (n, r); a state is `Factors(U, V)`.
    """
    return Parameterisation(
        name="absorbed",
        entry="F1",
        variables={"U": ("m", "r"), "V": ("n", "r")},
        left="U",
        right="V",
        invariants=("U.T @ U / rate_U - V.T @ V / rate_V",),
    )


def fixed_gates(gates: ArrayLike) -> Parameterisation:
    """Q = W diag(g) Vᵀ with gates g (r,) that do not move (F2, F10).

    The variables are W (m, r) and V (n, r); a state is a mapping from these names to arrays.

    Args:
        gates: g, shape (r,).

    Raises:
        InputError: Gates that are not finite real numbers.
        ShapeError: Not one axis.
    """
    return Parameterisation(
        name="fixed gates",
        entry="F2",
        variables={"W": ("m", "r"), "V": ("n", "r")},
        left="W @ diag(gates)",
        right="V",
        constants={"gates": ("r", "1")},
        values={"gates": real_array("gates", gates, 1)[:, None]},
        invariants=("diagpart(W.T @ W) / rate_W - diagpart(V.T @ V) / rate_V",),
    )


def trained_gates() -> Parameterisation:
    """Q = W diag(a) Vᵀ with gates a (r,) that move too (F3, F10).

    The variables are W (m, r), V (n, r) and a (r,); a state is a mapping from these names to
    arrays.
    """
    return Parameterisation(
        name="trained gates",
        entry="F3",
        variables={"W": ("m", "r"), "V": ("n", "r"), "a": ("r", "1")},
        left="W @ diag(a)",
        right="V",
        invariants=(
            "diagpart(W.T @ W) / rate_W - diagpart(V.T @ V) / rate_V",
            "diag(a * a) / rate_a - diagpart(W.T @ W) / rate_W",
        ),
    )


def second_moments(left: ArrayLike, right: ArrayLike) -> Parameterisation:
    """Q = U Vᵀ under ½ E(xᵀ E y)², with independent x and y of second moments Σx and Σy (F4).

    The variables are U (m, r) and V (n, r); a state is `Factors(U, V)`.

    Args:
        left: Σx, shape (m, m), symmetric and positive semidefinite.
        right: Σy, shape (n, n), likewise.

    Raises:
        InputError: Not a second moment.
        ShapeError: Not square.
    """
    return Parameterisation(
        name="second moments",
        entry="F4",
        variables={"U": ("m", "r"), "V": ("n", "r")},
        left="U",
        right="V",
        loss="inner(E, Sx @ E @ Sy) / 2",
        constants={"Sx": ("m", "m"), "Sy": ("n", "n")},
        values={"Sx": _moment("Sx", left), "Sy": _moment("Sy", right)},
        symmetric=("Sx", "Sy"),
        invariants=("U.T @ U / rate_U - V.T @ V / rate_V",),
    )


def one_input() -> Parameterisation:
    """Q = U Vᵀ under ½ E(xᵀ E x)², both factors reading one standard Gaussian input (F5).

    The variables are U (n, r) and V (n, r), the target is square; a state is `Factors(U, V)`.
    """
    return Parameterisation(
        name="one Gaussian input",
        entry="F5",
        variables={"U": ("n", "r"), "V": ("n", "r")},
        left="U",
        right="V",
        loss="(tr(E) ** 2 + tr(E @ E) + norm2(E)) / 2",
        square=True,
        invariants=("U.T @ U / rate_U - V.T @ V / rate_V",),
    )


def tied() -> Parameterisation:
    """Q = U Uᵀ, symmetric target (F6).

    The variable is U (n, r); a state is a mapping, {"U": array}.
    """
    return Parameterisation(
        name="tied",
        entry="F6",
        variables={"U": ("n", "r")},
        left="U",
        right="U",
        square=True,
        symmetric=("T",),
    )


def layers(count: int) -> Parameterisation:
    """Q = W_N ... W_2 W_1, a linear network of N layers (F7); the widths are those of the start.

    The variables are W1 (h1, n), W2 (h2, h1), ..., WN (m, h of N − 1), the first being the one that
    reads the input; a state is a mapping from these names to arrays.

    Args:
        count: N, at least 2.

    Raises:
        InputError: Fewer than two layers, or not a whole number.
    """
    count = whole_number("count", count, 2)
    widths = ["n", *(f"h{i}" for i in range(1, count)), "m"]
    names = [f"W{i}" for i in range(1, count + 1)]
    return Parameterisation(
        name=f"{count} layers",
        entry="F7",
        variables={name: (widths[i + 1], widths[i]) for i, name in enumerate(names)},
        left=" @ ".join(reversed(names[1:])),
        right="W1.T",
        invariants=tuple(
            f"{above}.T @ {above} / rate_{above} - {below} @ {below}.T / rate_{below}"
            for below, above in pairwise(names)
        ),
    )


def adapter(base: ArrayLike) -> Parameterisation:
    """Q = Q₀ + B A, a low-rank adapter of a frozen Q₀ (LoRA; F12).

    The variables are B (m, r) and A (r, n); a state is a mapping from these names to arrays.

    Args:
        base: Q₀, shape (m, n).

    Raises:
        InputError: Not finite real numbers.
        ShapeError: Not two axes.
    """
    return Parameterisation(
        name="adapter",
        entry="F12",
        variables={"B": ("m", "r"), "A": ("r", "n")},
        left="B",
        right="A.T",
        constants={"base": ("m", "n")},
        values={"base": real_array("base", base, 2)},
        offset="base",
        invariants=("B.T @ B / rate_B - A @ A.T / rate_A",),
    )


def _moment(name: str, value: ArrayLike) -> Array:
    """The second moment, if it is symmetric and positive semidefinite to rounding."""
    moment = real_array(name, value, 2)
    if moment.shape[0] != moment.shape[1]:
        raise ShapeError(f"{name}: got shape {moment.shape}; a square second moment is expected")
    rounding = len(moment) * float(np.finfo(np.float64).eps) * float(np.abs(moment).max())
    skew = float(np.abs(moment - moment.T).max())
    if skew > rounding:
        raise InputError(
            f"{name}: not symmetric, an entry differs from its mirror image by {skew:.3g}; a "
            "second moment E(x xᵀ) is expected"
        )
    least = float(np.linalg.eigvalsh(moment)[0])
    if least < -rounding * len(moment):
        raise InputError(
            f"{name}: has the eigenvalue {least:.3g}; a second moment E(x xᵀ) has none below 0"
        )
    return moment

"""The problem, ½‖U Vᵀ − target‖²_F, its singular modes, and ways to start on it.

A bilinear model with the gate absorbed has the operator Q = U Vᵀ, with U of m rows, V of n rows,
and r columns each (the width). On whitened inputs its squared loss is ½‖Q − target‖²_F up to a
constant, where the target is the cross-moment of outputs and inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from numbers import Real
from types import FunctionType
from typing import Any, Final, TypeAlias, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from nonmixing.arrays import Array as Array
from nonmixing.arrays import real_array as real_array
from nonmixing.arrays import whole_number
from nonmixing.errors import InputError, ShapeError
from nonmixing.parameterisation import Parameterisation, absorbed
from nonmixing.target import Target, TargetSVD, leading_signs, read_target, singular_factors

WHITENED_TOLERANCE: Final = 1e-8
"""What still counts as whitened, and the relative size below which a direction of the inputs counts
as absent: the square root of float64's resolution. In a second moment, which is a square, anything
smaller is lost in rounding."""

Kind = TypeVar("Kind")

SYMMETRIC_TOLERANCE: Final = 1e-12
"""How far a tied model's target may be from its transpose, relative to its largest entry: rounding
of a product that makes it."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Paired samples: `inputs` (N, n) and `outputs` (N, m), one sample a row."""

    inputs: Array
    outputs: Array

    def __post_init__(self) -> None:
        """Check the arrays and keep read-only copies."""
        object.__setattr__(self, "inputs", real_array("inputs", self.inputs, 2))
        object.__setattr__(self, "outputs", real_array("outputs", self.outputs, 2))
        if len(self.inputs) != len(self.outputs):
            raise ShapeError(
                f"inputs and outputs: got {len(self.inputs)} and {len(self.outputs)} rows; "
                "one row a sample is expected in both"
            )

    def __len__(self) -> int:
        """The number of samples N."""
        return len(self.inputs)


class _TargetField:
    """The field `target`: what was given goes in, the matrix (m, n) comes out.

    A target in factors is multiplied out when it is first asked for, and never before.
    """

    def __get__(self, problem: BilinearProblem | None, owner: object = None) -> Array:
        if problem is None:
            raise AttributeError(
                "target has no default"
            )  # what tells a dataclass that it must come
        known = vars(problem)
        if "_dense" not in known:
            known["_dense"] = known["_held"].operator
            known["_dense"].setflags(write=False)
        return known["_dense"]

    def __set__(self, problem: BilinearProblem, value: Target) -> None:
        vars(problem)["_held"] = value


@dataclass(frozen=True, eq=False)
class BilinearProblem:
    """The loss ½‖Q − target‖²_F of an operator Q = U Vᵀ, or another parameterisation and its loss.

    Attributes:
        target: Shape (m, n). It may come as an array; as factors (P (m, k), s (k,), R (n, k)), a
            tuple, the target being P diag(s) Rᵀ, so that of `P, s, vh = numpy.linalg.svd(target,
            full_matrices=False)` it is (P, s, vh.T); or, with `rank`, as a SciPy `LinearOperator`.
            Other than an array, it is multiplied out only if this attribute is read.
        samples: The data behind the target, where there are any: what a network is trained on.
        rank: The rank of a target that is a `LinearOperator`.
        decay: The weight decay λ, at least 0: the loss has (λ/2)‖X‖²_F more for each variable X.
        rates: The learning rates of the variables, in order, positive: X' = −η_X ∂L/∂X.
        parameterisation: What the variables are, and the loss; `absorbed()` by default.

    Raises:
        InputError: A target that is not finite real numbers, a decay that is not a number of at
            least 0, rates that are not one positive number for each variable, a parameterisation or
            samples that are none.
        ShapeError: Shapes that do not fit each other.
    """

    target: _TargetField = _TargetField()
    samples: Samples | None = None
    rank: InitVar[int | None] = field(default=None, kw_only=True)
    decay: float = field(default=0.0, kw_only=True)
    rates: tuple[float, ...] = field(default=(), kw_only=True)
    parameterisation: Parameterisation = field(default_factory=absorbed, kw_only=True)

    def __post_init__(self, rank: int | None) -> None:
        """Check the arrays and keep read-only copies."""
        held = read_target(vars(self)["_held"], rank)
        vars(self)["_held"] = held
        if isinstance(held, np.ndarray):
            vars(self)["_dense"] = held
        decay = real_number("decay", self.decay, "a real number of at least 0", lambda x: x >= 0)
        object.__setattr__(self, "decay", decay)
        _expect("parameterisation", self.parameterisation, Parameterisation, _PARAMETERISATIONS)
        object.__setattr__(self, "rates", _rates(self.rates, self.parameterisation))
        self.parameterisation.check_target(self.shape)
        if "T" in self.parameterisation.symmetric:
            _check_symmetric(held)
        if self.samples is not None:
            _expect("samples", self.samples, Samples, "Samples(inputs, outputs) is expected")
            expected = (self.samples.outputs.shape[1], self.samples.inputs.shape[1])
            if self.shape != expected:
                raise ShapeError(
                    f"target: got shape {self.shape}; {expected} is expected for samples "
                    f"with {expected[0]} outputs and {expected[1]} inputs"
                )

    @classmethod
    def from_samples(
        cls, inputs: ArrayLike, outputs: ArrayLike, *, tolerance: float = WHITENED_TOLERANCE
    ) -> BilinearProblem:
        """The problem that whitened data pose: the target is YᵀX/N.

        The mean squared loss ½ mean‖y − U Vᵀx‖² is then ½‖U Vᵀ − YᵀX/N‖²_F plus a constant.

        Args:
            inputs: X, shape (N, n), with XᵀX/N = I; `whiten` makes it so.
            outputs: Y, shape (N, m).
            tolerance: The largest entry of |XᵀX/N − I| that is taken as whitened.

        Raises:
            InputError: The inputs are not whitened, or the tolerance is not a number of at least 0.
            ShapeError: Inputs and outputs do not pair up.
        """
        largest = real_number(
            "tolerance", tolerance, "a finite number of at least 0", lambda x: x >= 0
        )
        samples = Samples(real_array("inputs", inputs, 2), real_array("outputs", outputs, 2))
        second_moment = samples.inputs.T @ samples.inputs / len(samples)
        deviation = float(np.abs(second_moment - np.eye(len(second_moment))).max())
        if deviation > largest:
            raise InputError(
                "inputs: not whitened, an entry of XᵀX/N differs from the identity by "
                f"{deviation:.3g} (at most {largest:.3g} is expected); pass whiten(inputs).data"
            )
        return cls(samples.outputs.T @ samples.inputs / len(samples), samples)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        held: Array | TargetSVD = vars(self)["_held"]
        return held.shape[0], held.shape[1]

    @property
    def factored(self) -> bool:
        """Whether the target is held as factors, and not as an array."""
        return isinstance(vars(self)["_held"], TargetSVD)

    @cached_property
    def svd(self) -> TargetSVD:
        """The target's thin singular value decomposition, the same on every call.

        In each pair the first entry of p_i that is as large as any in it (to 1e-8) is positive.
        Inside a group of equal singular values the basis is one choice of many. For an array there
        are min(m, n) modes; for a target in factors as many as there are factors.
        """
        held: Array | TargetSVD = vars(self)["_held"]
        return held if isinstance(held, TargetSVD) else singular_factors(held)

    def variables(self, state: State) -> dict[str, Array]:
        """A state as the parameterisation's variables, in order, each of two axes, checked.

        Args:
            state: `Factors`, where there are two variables with Q = U Vᵀ up to a gate; a mapping
                from the variables' names to arrays in any case. A column may have one axis.

        Raises:
            InputError: No state, not finite real numbers, a name that is missing or unknown.
            ShapeError: Shapes that do not fit each other or the target.
        """
        model, state = self.parameterisation, checked_state(self, state)
        if isinstance(state, Factors):
            state.check(self)
            found = dict(zip(model.variables, (state.U, state.V), strict=True))
        else:
            if set(state) != set(model.variables):
                raise InputError(
                    f"start: got {', '.join(map(str, state)) or 'no variables'}; "
                    f"{', '.join(model.variables)} are expected for {model.name}"
                )
            found = {
                name: _two_axes(name, state[name], shape) for name, shape in model.variables.items()
            }
        model.check_shapes({name: array.shape for name, array in found.items()}, self.shape)
        return found

    def state(self, variables: Mapping[str, Array]) -> State:
        """The state that these variables (of two axes each) are; the inverse of `variables`."""
        if self.parameterisation.two_factors:
            return Factors(variables["U"], variables["V"])
        return {
            name: variables[name][:, 0] if shape[1] == "1" else variables[name]
            for name, shape in self.parameterisation.variables.items()
        }


@dataclass(frozen=True, eq=False)
class Factors:
    """A state: `U` (m, r) and `V` (n, r)."""

    U: Array
    V: Array

    def __post_init__(self) -> None:
        """Check the arrays and keep read-only copies."""
        object.__setattr__(self, "U", real_array("U", self.U, 2))
        object.__setattr__(self, "V", real_array("V", self.V, 2))
        if self.U.shape[1] != self.V.shape[1]:
            raise ShapeError(
                f"U and V: got shapes {self.U.shape} and {self.V.shape}; "
                "the same number of columns is expected, since the operator is U Vᵀ"
            )

    @property
    def width(self) -> int:
        """The number of columns r."""
        return self.U.shape[1]

    @property
    def operator(self) -> Array:
        """Q = U Vᵀ, shape (m, n)."""
        return self.U @ self.V.T

    @property
    def imbalance(self) -> Array:
        """UᵀU − VᵀV, shape (r, r); the gradient flow conserves it [Du, Hu, Lee 2018]."""
        return self.U.T @ self.U - self.V.T @ self.V

    def check(self, problem: BilinearProblem) -> None:
        """Refuse factors whose rows do not fit the problem's target.

        Raises:
            ShapeError: U must have the target's m rows, V its n.
            InputError: The problem's variables are not two such factors.
        """
        model = checked_problem(problem).parameterisation
        if [shape[1] for shape in model.variables.values()] != ["r", "r"]:
            raise InputError(
                f"start: got Factors; a mapping with {', '.join(model.variables)} is expected for "
                f"{model.name}"
            )
        rows = (len(self.U), len(self.V))
        if rows != problem.shape:
            raise ShapeError(
                f"start: U and V have {rows[0]} and {rows[1]} rows; {problem.shape[0]} and "
                f"{problem.shape[1]} are expected for a target of shape {problem.shape}"
            )


State: TypeAlias = Factors | Mapping[str, Array]
"""What moves: `Factors`, or the variables of a parameterisation by name."""

Start: TypeAlias = Factors | Any
"""A state made for a problem: `Factors` where its variables are U and V, else a mapping. Which of
the two the types cannot tell; `problem.variables(start)` gives the arrays by name in any case."""


def is_state(value: object) -> bool:
    """Whether it is a state, whatever of: `Factors` or a mapping."""
    return isinstance(value, Factors | Mapping)


def checked_state(problem: BilinearProblem, value: object) -> State:
    """The value, if it is a state; its arrays are not looked at.

    Raises:
        InputError: Neither `Factors` nor a mapping, two bare arrays for one.
    """
    if is_state(value):
        return cast("State", value)
    model = problem.parameterisation
    wanted = (
        "nm.Factors(U, V)"
        if model.two_factors
        else f"a mapping with {', '.join(model.variables)}, as {model.name} needs"
    )
    raise InputError(f"start: got {described(value)}; pass {wanted}")


def checked_problem(value: object) -> BilinearProblem:
    """The value, if it is a problem.

    Raises:
        InputError: It is not, a bare target for one.
    """
    return _expect(
        "problem", value, BilinearProblem, "a problem is expected, pass nm.BilinearProblem(target)"
    )


@dataclass(frozen=True, eq=False)
class Whitening:
    """Whitened inputs and the map that whitens.

    Attributes:
        data: Shape (N, k), with dataᵀ data / N = I.
        transform: Shape (n, k); data = inputs @ transform.
        dimension: k, the dimension of the inputs' support.
    """

    data: Array
    transform: Array
    dimension: int


def whiten(inputs: ArrayLike, tolerance: float = WHITENED_TOLERANCE) -> Whitening:
    """Whiten inputs on their support, by principal components.

    The second moments become the identity; nothing is centred, so centre first if you want to.

    Args:
        inputs: Shape (N, n), one sample a row.
        tolerance: Directions whose singular value is below this fraction of the largest are outside
            the support.

    Raises:
        InputError: The inputs are all zero, or the tolerance is not in (0, 1).
    """
    matrix = real_array("inputs", inputs, 2)
    least = real_number("tolerance", tolerance, "a fraction between 0 and 1", lambda x: 0 < x < 1)
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    support = values > least * values[0]
    if not support.any():
        raise InputError("inputs: all entries are zero; there is no direction to whiten")
    basis = right[support].T
    signs = leading_signs(basis)
    root = np.sqrt(len(matrix))
    return Whitening(
        data=root * left[:, support] * signs,
        transform=root * basis * signs / values[support],
        dimension=int(support.sum()),
    )


def aligned(
    problem: BilinearProblem,
    a: ArrayLike,
    b: ArrayLike | None = None,
    *,
    width: int | None = None,
    seed: int | None = None,
) -> Start:
    """An aligned start: U = P diag(a) Oᵀ, V = R diag(b) Oᵀ, with the target's singular vectors.

    Each mode is on a direction of its own, and its strength is c_i = a_i b_i [Saxe et al. 2014].
    Of an adapter, B = U and A = Vᵀ, they are the singular vectors of target − Q₀; of two layers,
    W2 = U and W1 = Vᵀ.

    Args:
        problem: The problem, with k = min(m, n) modes.
        a: Shape (k,), or one number for all modes (for the first `width`, where that is below k).
        b: As `a`; equal to it by default, which makes the start balanced where the two learning
            rates are equal.
        width: r, the number of columns; k by default. Below k at most r modes can be nonzero.
        seed: For a random O (r, ·) with orthonormal columns; those of the identity by default.

    Returns:
        `Factors`; a mapping where the variables are not U and V.

    Raises:
        InputError: Numbers that are not, or variables that are not two factors.
        ShapeError: a or b of another length, or more modes than columns.
    """
    names = _factor_names(problem, "aligned")
    offset = problem.parameterisation.offset
    base = problem.parameterisation.values.get(offset)
    svd = problem.svd if base is None else singular_factors(problem.target - base)
    k = len(svd.s)
    r = checked_width(k if width is None else width)
    left = _strengths("a", a, k, r)
    right = left if b is None else _strengths("b", b, k, r)
    active = np.arange(k) if r >= k else np.flatnonzero((left != 0) | (right != 0))
    if len(active) > r:
        raise ShapeError(
            f"a and b: {len(active)} modes are nonzero; with width {r} at most {r} can be"
        )
    columns = np.eye(r) if seed is None else orthonormal(r, r, random_stream(seed))
    frame = columns[:, : len(active)].T
    return _named(
        problem,
        names,
        (svd.P[:, active] * left[active]) @ frame,
        (svd.R[:, active] * right[active]) @ frame,
    )


@overload
def gaussian(problem: BilinearProblem, *, scale: float, width: int, seed: int) -> Start: ...


@overload
def gaussian(
    problem: BilinearProblem, *, scale: float, width: Sequence[int], seed: int
) -> Mapping[str, Array]: ...


def gaussian(
    problem: BilinearProblem, *, scale: float, width: int | Sequence[int], seed: int
) -> Start:
    """A start of any parameterisation with independent Gaussian entries.

    Args:
        problem: The problem, target (m, n).
        scale: The standard deviation of every entry, of gates too.
        width: r, the number of columns of U and V; of layers the size of every inner space, or a
            sequence of N − 1 sizes for N layers, in order from the input on.
        seed: For the entries, which are drawn in the order of the variables.

    Returns:
        `Factors`; a mapping from the variables' names to arrays where they are not U and V.

    Raises:
        InputError: A scale that is not positive and finite, or a width below 1.
        ShapeError: Another number of widths, or another width than that of fixed gates.
    """
    model = checked_problem(problem).parameterisation
    sizes = _sizes(problem, width)
    deviation = real_number("scale", scale, "a positive finite number", lambda x: x > 0)
    generator = random_stream(seed)
    return problem.state(
        {
            name: deviation * generator.standard_normal((sizes[rows], sizes[columns]))
            for name, (rows, columns) in model.variables.items()
        }
    )


def balanced(problem: BilinearProblem, *, scale: float, width: int, seed: int) -> Start:
    """A random start with UᵀU/η_U = VᵀV/η_V to rounding, aligned with nothing.

    Where the learning rates η of the two are equal that is UᵀU = VᵀV. Its product U Vᵀ is the one
    of `gaussian` with the same arguments; the two factors share it, U = A diag(√d) Oᵀ and
    V = B diag(√d) Oᵀ at equal rates, where A diag(d) Bᵀ is that product's singular value
    decomposition and O a random matrix with orthonormal columns. Of an adapter U and V are B and
    Aᵀ, of two layers W2 and W1ᵀ.

    Returns:
        `Factors`; a mapping where the variables are not U and V.

    Raises:
        InputError: A scale that is not positive and finite, a width below 1, or variables that are
            not two factors.
    """
    names = _factor_names(problem, "balanced")
    drawn = problem.variables(gaussian(problem, scale=scale, width=checked_width(width), seed=seed))
    transposed = problem.parameterisation.right.endswith(".T")
    U, V = drawn[names[0]], drawn[names[1]].T if transposed else drawn[names[1]]
    rank = min(*problem.shape, U.shape[1])
    # The operator (m, n) is never formed: its singular vectors lie in the factors' columns.
    left, core = np.linalg.qr(U)
    right, other = np.linalg.qr(V)
    inner, values, outer = np.linalg.svd(core @ other.T)
    bases = left @ inner[:, :rank], right @ outer[:rank].T
    signs = leading_signs(bases[0])
    # A stream of its own: the columns must not depend on the entries drawn above.
    frame = orthonormal(U.shape[1], rank, random_stream(seed, 1))
    half = np.sqrt(values[:rank]) * signs
    rates = dict(zip(problem.parameterisation.variables, problem.rates, strict=True))
    share = (rates[names[0]] / rates[names[1]]) ** 0.25
    return _named(
        problem,
        names,
        (bases[0] * (half * share)) @ frame.T,
        (bases[1] * (half / share)) @ frame.T,
    )


def _factor_names(problem: BilinearProblem, kind: str) -> tuple[str, str]:
    """The variables that are the two factors, left and right."""
    model = checked_problem(problem).parameterisation
    names = model.factor_names
    if names is None:
        raise InputError(
            f"problem: {kind} starts are those of two factors, and {model.name} has the variables "
            f"{', '.join(model.variables)}; pass gaussian(problem, ...) or a mapping of your own"
        )
    return names


def _named(problem: BilinearProblem, names: tuple[str, str], U: Array, V: Array) -> Start:
    """Two factors under the problem's names for them."""
    model = problem.parameterisation
    if model.two_factors:
        return Factors(U, V)
    arrays = {names[0]: U, names[1]: V.T if model.right.endswith(".T") else V}
    return problem.state(arrays)


def _sizes(problem: BilinearProblem, width: int | Sequence[int]) -> dict[str, int]:
    """The dimension of each symbol in the variables' shapes."""
    model = problem.parameterisation
    outer = {"1": 1, **dict(zip(model.target_shape, problem.shape, strict=True))}
    symbols = dict.fromkeys(symbol for shape in model.variables.values() for symbol in shape)
    inner = [symbol for symbol in symbols if symbol not in outer]
    if isinstance(width, Sequence):
        widths = [checked_width(size) for size in width]
        if model.two_factors or len(widths) != len(inner):
            more = f", or one for each of {', '.join(inner)}," if len(inner) > 1 else ""
            raise ShapeError(
                f"width: got {described(width)}; one whole number{more} is expected for "
                f"{model.name}"
            )
    else:
        widths = [checked_width(width)] * len(inner)
    found = dict(zip(inner, widths, strict=True))
    for name, shape in model.constants.items():
        for symbol, size in zip(shape, model.values[name].shape, strict=True):
            if found.get(symbol, size) != size:
                raise ShapeError(f"width: got {found[symbol]}; {size} is expected beside {name}")
    return {**outer, **found}


def orthonormal(rows: int, columns: int, generator: np.random.Generator) -> Array:
    """A random (rows, columns) matrix with orthonormal columns, uniformly distributed."""
    q, r = np.linalg.qr(generator.standard_normal((rows, columns)))
    return q * np.where(np.diag(r) < 0, -1.0, 1.0)


def random_stream(seed: int, *path: int) -> np.random.Generator:
    """The generator of a seed, or one of its independent branches.

    Raises:
        InputError: The seed is not a whole number of at least 0.
    """
    return np.random.default_rng([whole_number("seed", seed, 0), *path])


def checked_width(width: int) -> int:
    """The width, if it is a whole number of at least 1.

    Raises:
        InputError: It is not.
    """
    return whole_number("width", width, 1)


def described(value: object) -> str:
    """What came, in a few words on one line, for the message that refuses it."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {np.shape(cast('Array', value))}"
    if isinstance(value, tuple | list):
        items = list(cast("Sequence[object]", value))
        kinds = {"array" if isinstance(x, np.ndarray) else type(x).__name__ for x in items}
        noun = kinds.pop() if len(kinds) == 1 else "item"
        count = {1: "one", 2: "two", 3: "three"}.get(len(items), str(len(items)))
        kind = "tuple" if isinstance(value, tuple) else "list"
        return f"a {kind} of {count} {noun}{'' if len(items) == 1 else 's'}"
    if value is None or isinstance(value, bool | complex | Real):
        return str(value)
    if isinstance(value, str):
        return repr(value) if len(value) < 60 else f"text of {len(value)} characters"
    if isinstance(value, type | FunctionType):
        return f"the {'class' if isinstance(value, type) else 'function'} {value.__name__}"
    return f"a value of type {type(value).__name__}"


def real_number(
    name: str, value: object, expected: str, fits: Callable[[float], bool] | None = None
) -> float:
    """The value as a float, if it is one finite real number.

    Args:
        name: What the caller calls it; the error message begins with it.
        value: Anything; text, a bool and an array with axes are no numbers.
        expected: What must come, for the message.
        fits: Whether a finite number will do; any does by default.

    Raises:
        InputError: It is not, or does not fit.
    """
    scalar = cast("Array", value)[()] if isinstance(value, np.ndarray) else value
    if isinstance(scalar, Real) and not isinstance(value, bool):
        try:
            number = float(scalar)
        except OverflowError:
            number = np.inf
        if np.isfinite(number) and (fits is None or fits(number)):
            return number
    raise InputError(f"{name}: got {described(cast('object', value))}; {expected} is expected")


_PARAMETERISATIONS: Final = (
    "one made by a function of nonmixing.parameterisation is expected, trained_gates() or layers(3)"
)


def _expect(name: str, value: object, kind: type[Kind], expected: str) -> Kind:
    """The value, if it is of this kind."""
    if isinstance(value, kind):
        return value
    raise InputError(f"{name}: got {described(value)}; {expected}")


def _rates(rates: object, parameterisation: Parameterisation) -> tuple[float, ...]:
    """The learning rates, one a variable, if they are positive and finite; 1 by default."""
    names = tuple(parameterisation.variables)
    row = isinstance(rates, tuple | list) or (isinstance(rates, np.ndarray) and rates.ndim == 1)
    values = tuple(cast("Sequence[object]", rates)) if row else ()
    if row and not values:
        return (1.0,) * len(names)
    if len(values) != len(names):
        raise InputError(
            f"rates: got {described(cast('object', rates))}; positive numbers are expected, one "
            f"for each of {', '.join(names)}"
        )
    return tuple(
        real_number(f"rates[{k}]", value, "a positive finite number", lambda x: x > 0)
        for k, value in enumerate(values)
    )


def _two_axes(name: str, value: ArrayLike, shape: tuple[str, str]) -> Array:
    """A variable's value with two axes; a column may come with one."""
    axes = 1 if shape[1] == "1" and np.ndim(value) == 1 else 2
    array = real_array(name, value, axes)
    return array[:, None] if axes == 1 else array


def _check_symmetric(target: Array | TargetSVD) -> None:
    """Refuse a target that is not symmetric to rounding, without multiplying it out."""
    if isinstance(target, TargetSVD):
        # On the joint span of P and R, where all of it is.
        basis = np.linalg.qr(np.hstack([target.P, target.R]))[0]
        target = ((basis.T @ target.P) * target.s) @ (basis.T @ target.R).T
    off = float(np.abs(target - target.T).max())
    largest = float(np.abs(target).max())
    if off > SYMMETRIC_TOLERANCE * largest:
        raise InputError(
            f"target: not symmetric, an entry differs from its mirror image by {off:.3g}, where "
            f"U Uᵀ always is symmetric; pass (target + target.T) / 2"
        )


def _strengths(name: str, value: ArrayLike, k: int, r: int) -> Array:
    """The k mode strengths; a single number fills as many modes as there are columns for."""
    if np.ndim(value) == 0:
        single = real_number(name, value, f"a finite number, or one for each of the {k} modes,")
        return np.where(np.arange(k) < r, single, 0.0)
    strengths = real_array(name, value, 1)
    if len(strengths) != k:
        raise ShapeError(
            f"{name}: got {len(strengths)} entries; one for each of the {k} modes is expected"
        )
    return strengths

"""What an expression's names mean, and the statement made of them.

Names have shapes and kinds, or are scalars; they may have velocities and updates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nonmixing.algebra import expr as ex
from nonmixing.algebra.dims import Dim, symbols
from nonmixing.algebra.dims import integers as integers_in
from nonmixing.algebra.node import Expr
from nonmixing.errors import InputError, ShapeError

KINDS = ("diagonal", "symmetric", "skew", "orthonormal", "orthogonal", "invertible", "constant")
LINEAR_KINDS = frozenset({"diagonal", "symmetric", "skew"})
SQUARE_KINDS = frozenset({"diagonal", "symmetric", "skew", "orthogonal", "invertible"})

NO_KINDS: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Setting:
    """The declared names.

    Attributes:
        matrices: name to (rows, columns).
        kinds: name to its declared kinds (see `KINDS`).
        scalars: names of scalars.
        velocity: name to its time derivative, for `d`.
        update: name to its value after one simultaneous step, for `after`.
        abbreviations: the claim file's defined names, kept so that differences can be shown in
            the user's terms.
        functions: name in text to an opaque elementwise function and the order of its derivative.
    """

    matrices: Mapping[str, tuple[Dim, Dim]] = field(default_factory=dict[str, tuple[Dim, Dim]])
    kinds: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    scalars: frozenset[str] = frozenset()
    velocity: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    update: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    abbreviations: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    functions: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])

    def __post_init__(self) -> None:
        for name, kinds in self.kinds.items():
            _check_kinds(name, kinds, self.matrices.get(name))
        square = {
            name: kinds | {"orthogonal"}
            for name, kinds in self.kinds.items()
            if "orthonormal" in kinds and self.matrices[name][0] == self.matrices[name][1]
        }
        if square:  # a square matrix with orthonormal columns is orthogonal
            object.__setattr__(self, "kinds", {**self.kinds, **square})
        for name in self.velocity:
            _check_moving(name, self.kinds_of(name))

    def kinds_of(self, name: str) -> frozenset[str]:
        """The declared kinds of a matrix; none if nothing was declared."""
        return self.kinds.get(name, NO_KINDS)

    def symbol(self, name: str) -> Expr:
        """The matrix or scalar of that name."""
        if name in self.scalars:
            return ex.scalar(name)
        rows, cols = self.matrices[name]
        return ex.symbol(name, rows, cols)


def _check_kinds(name: str, kinds: frozenset[str], shape: tuple[Dim, Dim] | None) -> None:
    if shape is None:
        raise InputError(f"kinds: {name!r} is not a declared matrix; declare it under [matrices]")
    for kind in sorted(kinds):
        if kind not in KINDS:
            raise InputError(
                f"kinds: {name} is declared {kind!r}; the kinds are {', '.join(KINDS)}"
            )
        if kind in SQUARE_KINDS and shape[0] != shape[1]:
            raise ShapeError(
                f"kinds: {name} is declared {kind} but is {shape[0]} x {shape[1]}, not square"
            )
    if "skew" in kinds and kinds & {"symmetric", "diagonal"}:
        other = ", ".join(sorted(kinds & {"symmetric", "diagonal"}))
        raise InputError(
            f"kinds: {name} is declared skew and {other}; only the zero matrix is both, "
            "so write zeros(n, n) in its place"
        )
    rows, cols = shape
    if "skew" in kinds and kinds & {"invertible", "orthogonal"}:
        if isinstance(rows, int) and rows % 2:
            raise ShapeError(
                f"kinds: {name} is {rows} x {rows}; a skew matrix of odd size is singular"
            )
    if "orthonormal" in kinds and isinstance(rows, int) and isinstance(cols, int) and rows < cols:
        raise ShapeError(
            f"kinds: {name} is {rows} x {cols}; "
            "columns can be orthonormal only where rows >= columns"
        )


def _check_moving(name: str, kinds: frozenset[str]) -> None:
    stuck = sorted(kinds - LINEAR_KINDS - {"invertible"})
    if stuck:
        raise InputError(
            f"flow: {name} is declared {', '.join(stuck)} and cannot move freely; "
            "only diagonal, symmetric and skew variables move "
            "(by their projected gradient). Drop the kind, or the variable"
        )


def project(velocity: Expr, kinds: frozenset[str]) -> Expr:
    """Project a free velocity on the linear kinds of its variable."""
    if "diagonal" in kinds:
        velocity = ex.diagpart(velocity)
    if "symmetric" in kinds:
        velocity = ex.sym(velocity)
    if "skew" in kinds:
        velocity = ex.skew(velocity)
    return velocity


def gradient_velocity(setting: Setting, loss: Expr, variables: tuple[str, ...]) -> dict[str, Expr]:
    """Velocities of gradient flow: minus the gradient, projected on linear kinds."""
    return {
        name: project(ex.negative(ex.grad(loss, setting.symbol(name))), setting.kinds_of(name))
        for name in variables
    }


def common_shape(left: Expr, right: Expr) -> tuple[Dim, Dim]:
    """Shape of two sides of an equation; a literal 0 has the other's."""
    return right.shape if ex.is_zero_literal(left) else left.shape


@dataclass(frozen=True)
class Equation:
    """A hypothesis left == right that holds at the instant."""

    left: Expr
    right: Expr
    says: str

    @property
    def shape(self) -> tuple[Dim, Dim]:
        """Shape of both sides; a literal 0 has the other's."""
        return common_shape(self.left, self.right)

    def defines(self, setting: Setting) -> tuple[str, Expr] | None:
        """The matrix that the equation defines, and its value.

        It stands alone on one side and not on the other, and is of no kind.
        """
        for side, other in ((self.left, self.right), (self.right, self.left)):
            name = str(side.data)
            if side.op == "symbol" and not setting.kinds_of(name) and name not in other.names:
                return name, other
        return None


@dataclass(frozen=True)
class Statement:
    """One claim to decide: `left == right` in a setting, perhaps under equations."""

    id: str
    left: Expr
    right: Expr
    setting: Setting
    left_text: str
    right_text: str
    assume: tuple[Equation, ...] = ()
    title: str = ""
    source: str = ""
    expect: str | None = None

    @property
    def shape(self) -> tuple[Dim, Dim]:
        """Shape of both sides; a literal 0 has the other's."""
        return common_shape(self.left, self.right)

    @property
    def says(self) -> str:
        """The claim as one line."""
        return f"{self.left_text} == {self.right_text}"


def walk(setting: Setting, *roots: Expr) -> Iterator[Expr]:
    """Every node that bears on a value, those of velocities and updates included, each once."""
    # By identity: equal nodes are mostly one object, and hashing each would cost more.
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        stack += node.args
        if node.op == "d":
            stack += setting.velocity.values()
        elif node.op == "after":
            stack += setting.update.values()


@dataclass(frozen=True)
class Names:
    """The names a statement really uses.

    Attributes:
        matrices: names of matrices, in the order in which they are declared.
        scalars: names of scalars.
        dims: symbolic dimensions.
        integers: dimensions that are integers above 1.
        functions: opaque functions.
        operations: what is done with them (see `node`).
        divisors: what is divided by.
    """

    matrices: tuple[str, ...]
    scalars: tuple[str, ...]
    dims: tuple[str, ...]
    integers: tuple[int, ...]
    functions: tuple[str, ...] = ()
    operations: frozenset[str] = frozenset()
    divisors: tuple[Expr, ...] = ()


def names_of(statement: Statement) -> Names:
    """Collect what a statement uses."""
    setting = statement.setting
    used: set[str] = set()
    scalars: set[str] = set()
    functions: set[str] = set()
    shapes: set[Dim] = set()
    operations: set[str] = set()
    divisors: list[Expr] = []
    sides = [statement.left, statement.right]
    for equation in statement.assume:
        sides += [equation.left, equation.right]
    for node in walk(setting, *sides):
        shapes.add(node.rows)
        shapes.add(node.cols)
        operations.add(node.op)
        if node.op == "symbol":
            used.add(str(node.data))
        elif node.op == "scalar":
            scalars.add(str(node.data))
        elif node.op == "dim":
            shapes.add(str(node.data))
        elif node.op == "reciprocal":
            divisors.append(node.args[0])
        elif isinstance(node.data, tuple):
            functions.add(node.data[0])
    order = {name: i for i, name in enumerate(setting.matrices)}
    return Names(
        tuple(sorted(used, key=lambda name: (order.get(name, len(order)), name))),
        tuple(sorted(scalars)),
        tuple(sorted({symbol for dim in shapes for symbol in symbols(dim)})),
        tuple(sorted({number for dim in shapes for number in integers_in(dim)})),
        tuple(sorted(functions)),
        frozenset(operations),
        tuple(divisors),
    )

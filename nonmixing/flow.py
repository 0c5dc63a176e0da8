"""From a loss to its gradient flow: velocities, induced flows, invariants.

All derived, nothing typed twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from nonmixing.algebra import expr as ex
from nonmixing.algebra.abbreviate import shortest
from nonmixing.algebra.claimfile import document_of, load_scope
from nonmixing.algebra.decide import Decision, decide
from nonmixing.algebra.dims import NeedsExpansion
from nonmixing.algebra.expand import Expander
from nonmixing.algebra.kinds import Kinds
from nonmixing.algebra.node import Expr
from nonmixing.algebra.printing import to_latex, to_text
from nonmixing.algebra.readback import COL, ROW, NoMatrixNotation, Reader
from nonmixing.algebra.setting import Setting, Statement, gradient_velocity
from nonmixing.algebra.terms import Poly, Table
from nonmixing.algebra.text import Scope, parse
from nonmixing.errors import InputError, ShapeError

# SymPy's matrix expressions carry no usable types; `Any` stands for one of them below.


class GradientFlow:
    """Gradient flow of a loss: dX/dt = -grad(loss, X) for each variable X.

    Args:
        loss: a scalar, as a SymPy expression (`nm.norm2(U * V.T - T) / 2`) or an expression of
            the prover.
        variables: the matrices (or scalars) that move: SymPy symbols, or names with `setting`.
        setting: the declared names, for expressions of the prover; read off the loss for SymPy.

    Raises:
        ShapeError: the loss is not a scalar.
        InputError: a variable that does not occur in the loss, or an expression outside the
            language of the prover.

    Example:
        >>> from sympy import MatrixSymbol, symbols
        >>> m, n, r = symbols("m n r")
        >>> U, V, T = MatrixSymbol("U", m, r), MatrixSymbol("V", n, r), MatrixSymbol("T", m, n)
        >>> flow = GradientFlow(norm2(U * V.T - T) / 2, [U, V])
        >>> flow.velocity[U]
        T*V - U*V.T*V
    """

    def __init__(
        self, loss: Any, variables: Sequence[Any], *, setting: Setting | None = None
    ) -> None:
        self._sympy = not isinstance(loss, Expr)
        if isinstance(variables, str) or hasattr(variables, "shape"):
            variables = [variables]  # a bare symbol: SymPy's can be iterated over, and is empty
        if not variables:
            raise InputError("GradientFlow: no variables; name at least one matrix that moves")
        if isinstance(loss, str):
            raise InputError(
                f"GradientFlow: the loss {loss!r} is text; give a SymPy expression, or put the "
                "text in a claim file's [flow]"
            )
        if self._sympy:
            from nonmixing.algebra import sympy_door

            read = sympy_door.read([loss, *variables])
            loss, setting = read.exprs[0], read.setting
        if setting is None:
            raise InputError(
                "GradientFlow: an expression of the prover needs setting=, the declared names"
            )
        if not loss.is_scalar:
            raise ShapeError(
                f"GradientFlow: a loss is a scalar; this one is {loss.rows} x {loss.cols}"
            )
        names = tuple(_name(variable, setting) for variable in variables)
        for name in names:
            if name not in loss.names:
                raise InputError(
                    f"GradientFlow: the variable {name} does not occur in the loss, so that it "
                    "would never move; leave it out of the variables"
                )
        self._objects = dict(zip(names, variables, strict=True))
        self.loss: Expr = loss
        self.variables: tuple[str, ...] = names
        velocity = gradient_velocity(setting, loss, names)
        self.setting = dataclasses.replace(setting, velocity=velocity)

    @property
    def velocity(self) -> Mapping[Any, Any]:
        """Each variable's velocity, derivatives taken.

        SymPy objects for a SymPy loss, expressions by name otherwise.
        """
        return {
            self._objects[name]: self.derivative(self._objects[name]) for name in self.variables
        }

    def derivative(self, expr: Any) -> Any:
        """Time derivative along the flow, as an explicit matrix expression of the same kind.

        Args:
            expr: a SymPy expression; or text, a name or an expression of the prover.

        Raises:
            InputError: the derivative has no matrix notation; state a claim with d(...) in a
                claim file instead.
        """
        inner, setting, is_sympy = self._read(expr)
        result = differentiate(ex.d(inner), setting)
        if not is_sympy:
            return result
        from nonmixing.algebra import sympy_door

        return sympy_door.write(result)

    def conserves(self, expr: Any) -> Decision:
        """Whether an expression is constant along the flow, for every dimension.

        Returns:
            The decision (true in a condition exactly when proved).
        """
        inner, setting, _ = self._read(expr)
        text = to_text(inner)
        zero = ex.zeros(inner.rows, inner.cols)
        return decide(
            Statement("conserved", ex.d(inner), zero, setting, f"d({text})", to_text(zero))
        )

    def _read(self, expr: Any) -> tuple[Expr, Setting, bool]:
        if isinstance(expr, Expr):
            return expr, self.setting, False
        if isinstance(expr, str):
            scope = Scope(self.setting, self.setting.abbreviations, moving=True)
            return parse(expr, scope, "expression"), self.setting, False
        from nonmixing.algebra import sympy_door

        read = sympy_door.read([expr])
        for name, shape in read.setting.matrices.items():
            if self.setting.matrices.get(name, shape) != shape:
                raise ShapeError(
                    f"the matrix {name} is {self.setting.matrices[name]} in the loss "
                    f"and {shape} here"
                )
        mine = self.setting
        setting = dataclasses.replace(
            mine,
            matrices={**read.setting.matrices, **mine.matrices},
            kinds={**read.setting.kinds, **mine.kinds},
            scalars=mine.scalars | read.setting.scalars,
            functions={**read.setting.functions, **mine.functions},
        )
        return read.exprs[0], setting, True

    def _repr_latex_(self) -> str:
        lines: list[str] = []
        for name in self.variables:
            symbol = self.setting.symbol(name)
            velocity = differentiate(ex.d(symbol), self.setting)
            lines.append(f"\\dot{{{to_latex(symbol)}}} &= {to_latex(velocity)}")
        return "$$\\begin{aligned}" + " \\\\ ".join(lines) + "\\end{aligned}$$"


def _name(variable: Any, setting: Setting) -> str:
    name = (
        variable
        if isinstance(variable, str)
        else str(getattr(variable, "data", None) or getattr(variable, "name", variable))
    )
    if name not in setting.matrices and name not in setting.scalars:
        raise InputError(
            f"GradientFlow: the variable {name} is not a matrix symbol or scalar of this problem"
        )
    return name


def gradient(loss: Any, variable: Any) -> Any:
    """Frobenius gradient of a SymPy scalar in a SymPy matrix symbol.

    It has the shape of the variable, and every entry is free.
    Right where SymPy's own `diff` is silently wrong (sums of traces) or raises (degree four).
    """
    from nonmixing.algebra import sympy_door

    read = sympy_door.read([loss, variable])
    return sympy_door.write(differentiate(ex.grad(*read.exprs), read.setting))


def differentiate(expr: Expr, setting: Setting) -> Expr:
    """An expression with its derivatives taken, as explicit sums of products."""
    table = Table()
    try:
        poly = _form(expr, setting, table)
        return Reader(setting, table, expr.rows, expr.cols).expression(poly)
    except (NoMatrixNotation, NeedsExpansion):
        raise InputError(
            f"{ex.spell(expr)} has no matrix notation; "
            "state a claim about it in a claim file instead"
        ) from None


def resolved(expr: Expr, setting: Setting) -> Expr:
    """An expression with the derivatives, steps and means in it written out, and the rest kept.

    Raises:
        InputError: one of them has no matrix notation.
    """
    if expr.op in ("grad", "D", "d", "after", "expect"):
        return differentiate(expr, setting)
    return ex.rebuilt(expr, tuple(resolved(arg, setting) for arg in expr.args))


def _form(expr: Expr, setting: Setting, table: Table) -> Poly:
    rows = 0 if expr.rows == 1 else ROW
    cols = 0 if expr.cols == 1 else COL
    poly = Expander(setting, table).entry(expr, rows, cols)
    return table.settle(Kinds(setting, table).impose(poly))


_PROBLEM = """
[matrices]
U = ["m", "r"]
V = ["n", "r"]
T = ["m", "n"]
[kinds]
T = "constant"
[scalars]
eta = {}
[define]
Q = "U @ V.T"
E = "Q - T"
"""


@cache
def problem_flow(rate_symbol: bool = False) -> GradientFlow:
    """The flow of ½‖U Vᵀ − T‖²_F in U (m x r) and V (n x r).

    Args:
        rate_symbol: add (eta/4) ‖gradient‖², so that the flow follows gradient descent with
            learning rate eta to second order (Barrett and Dherin 2021, eq. 5, whose h is the
            learning rate).
    """
    scope = load_scope(document_of(_PROBLEM, "problem"), "problem")
    loss = "norm2(E) / 2"
    if rate_symbol:
        loss += " + eta / 4 * (norm2(grad(norm2(E) / 2, U)) + norm2(grad(norm2(E) / 2, V)))"
    return GradientFlow(parse(loss, scope, "problem loss"), ["U", "V"], setting=scope.setting)


# --- invariants -----------------------------------------------------------------------------------


def quadratic_invariants(setting: Setting) -> tuple[Expr, ...]:
    """Conserved combinations of the Gram matrices of the moving matrices, and of their diagonals.

    The Gram matrices are XᵀX and XXᵀ. For each shape, the rational combinations with derivative 0
    are the null space of an exact linear system.
    """
    grams: dict[object, list[Expr]] = {}
    for name in setting.velocity:
        symbol = setting.symbol(name)
        for gram in (
            ex.matmul(ex.transpose(symbol), symbol),
            ex.matmul(symbol, ex.transpose(symbol)),
        ):
            if symbol.rows != symbol.cols or gram not in grams.get(gram.rows, []):
                grams.setdefault(gram.rows, []).append(gram)
    found: list[Expr] = []
    for group in grams.values():
        whole = _conserved(group, setting)
        found += whole
        if not whole and group[0].rows != 1:
            found += _conserved([ex.diagpart(gram) for gram in group], setting)
    return tuple(found)


def _conserved(group: Sequence[Expr], setting: Setting) -> list[Expr]:
    table = Table()
    columns = [_form(ex.d(member), setting, table) for member in group]
    monomials = sorted({mono for column in columns for mono in column})
    matrix = [[Fraction(column.get(mono, 0)) for column in columns] for mono in monomials]
    result: list[Expr] = []
    for vector in _null_space(matrix, len(group)):
        terms = [
            ex.multiply(ex.number(x), member) if x != 1 else member
            for x, member in zip(vector, group, strict=True)
            if x
        ]
        signed = [
            ex.negative(term.args[1])
            if term.op == "scale" and term.args[0] == ex.number(-1)
            else term
            for term in terms
        ]
        result.append(ex.add(*signed))
    return result


def _null_space(matrix: list[list[Fraction]], width: int) -> list[list[Fraction]]:
    rows = [row[:] for row in matrix]
    pivots: list[int] = []
    for column in range(width):
        pivot = next((i for i in range(len(pivots), len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        here = len(pivots)
        rows[here], rows[pivot] = rows[pivot], rows[here]
        rows[here] = [x / rows[here][column] for x in rows[here]]
        for i, row in enumerate(rows):
            if i != here and row[column]:
                rows[i] = [x - row[column] * y for x, y in zip(row, rows[here], strict=True)]
        pivots.append(column)
    basis: list[list[Fraction]] = []
    for free in (column for column in range(width) if column not in pivots):
        vector = [Fraction(0)] * width
        vector[free] = Fraction(1)
        for i, column in enumerate(pivots):
            vector[column] = -rows[i][free]
        lead = next(x for x in vector if x)
        basis.append([x / lead for x in vector])
    return basis


def describe(text: str, where: str, *, latex: bool = False) -> str:
    """The flow of a claim file in words.

    Velocities, induced flows of the abbreviations, quadratic invariants.

    Raises:
        InputError: the file has no [flow], or cannot be read.
    """
    setting = load_scope(document_of(text, where), where).setting
    if not setting.velocity:
        raise InputError(
            f"{where}: nothing to derive: the file has no [flow] "
            "(loss and variables, or [flow.velocity])"
        )
    show = to_latex if latex else to_text
    lines: list[str] = []

    def put(name: Expr, value: str) -> None:
        shown = show(name)
        lines.append(f"\\frac{{d {shown}}}{{dt}} = {value}" if latex else f"  d({shown}) = {value}")

    def section(title: str) -> None:
        lines.append(f"% {title}" if latex else title)

    section("flow")
    for name in setting.velocity:
        symbol = setting.symbol(name)
        put(symbol, _shown(ex.d(symbol), setting, show))
    moving = {
        name: body
        for name, body in setting.abbreviations.items()
        if _form(ex.d(body), setting, Table())
    }
    if moving:
        section("induced flow")
    for name, body in moving.items():
        put(ex.symbol(name, body.rows, body.cols), _shown(ex.d(body), setting, show))
    section("quadratic invariants")
    invariants = quadratic_invariants(setting)
    lines += [("" if latex else "  ") + show(invariant) for invariant in invariants] or [
        "  none" if not latex else "% none"
    ]
    return "\n".join(lines)


def _shown(expr: Expr, setting: Setting, show: Any) -> str:
    table = Table()
    poly, declared = shortest(_form(expr, setting, table), setting, table)
    reader = Reader(declared, table, expr.rows, expr.cols)
    try:
        return str(show(reader.expression(poly)))
    except NoMatrixNotation:
        return reader.text(poly)

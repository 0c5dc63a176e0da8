"""Claim files: TOML in, statements out. Every mistake is one line that names the place."""

from __future__ import annotations

import keyword
import tomllib
from collections.abc import Mapping, Sequence
from typing import cast
from unicodedata import normalize

from nonmixing.algebra.dims import Dim
from nonmixing.algebra.expand import Expander
from nonmixing.algebra.expr import is_zero_literal, subtract, zeros
from nonmixing.algebra.kinds import Kinds
from nonmixing.algebra.node import Expr
from nonmixing.algebra.setting import (
    LINEAR_KINDS,
    Equation,
    Setting,
    Statement,
    gradient_velocity,
    project,
)
from nonmixing.algebra.terms import Table
from nonmixing.algebra.text import (
    FUNCTIONS,
    Scope,
    dims_named,
    equation,
    parse,
    same_shape,
    split_equation,
)
from nonmixing.errors import ClaimFileError, ShapeError

_SECTIONS = ("matrices", "kinds", "scalars", "functions", "define", "flow", "step", "claim")
_VERDICTS = ("proved", "refuted", "undecided")

MOST_DERIVATIVES = 4
"""Derivatives of an opaque function that have a name."""

TomlTable = Mapping[str, object]


def load_claims(text: str, where: str) -> tuple[Statement, ...]:
    """Read the claims of a claim file.

    Args:
        text: the file's contents (TOML).
        where: the file's name, for messages.

    Returns:
        The statements, in the file's order.

    Raises:
        ClaimFileError: no TOML, no claims, an unknown section or key, a claim without ==.
        InputError: an expression outside the language, an unknown name.
        ShapeError: shapes that do not fit; the message names the operands and the dimensions.
    """
    document = document_of(text, where)
    scope = load_scope(document, where)
    claims = document.get("claim")
    if not isinstance(claims, list) or not claims:
        raise ClaimFileError(
            f'{where}: no claims; add at least one [[claim]] with id = "..." '
            'and says = "left == right"'
        )
    statements = [
        _statement(entry, number, scope, where)
        for number, entry in enumerate(cast("list[object]", claims), 1)
    ]
    seen: set[str] = set()
    for statement in statements:
        if statement.id in seen:
            raise ClaimFileError(
                f"{where}: two claims have the id {statement.id!r}; give each its own"
            )
        seen.add(statement.id)
    return tuple(statements)


def load_scope(document: TomlTable, where: str) -> Scope:
    """Names, definitions and flow of a claim file's document."""
    matrices = _matrices(_table(document, "matrices", where), where)
    scalars = _scalars(_table(document, "scalars", where), where)
    for name in sorted(scalars & set(matrices)):
        raise ClaimFileError(
            f"{where}: {name!r} is declared both as a matrix and as a scalar; keep one"
        )
    dims = {dim for shape in matrices.values() for dim in shape if isinstance(dim, str)}
    for name in sorted(dims & {*matrices, *scalars}):
        raise ClaimFileError(
            f"{where}: {name!r} is a dimension and cannot be a matrix or a scalar as well; "
            "rename one"
        )
    functions = _functions(_table(document, "functions", where), where)
    for name in sorted(set(functions) & {*matrices, *scalars, *dims}):
        raise ClaimFileError(f"{where}: [functions] {name!r} is already declared; rename one")
    kinds = _kinds(_table(document, "kinds", where), where)
    setting = Setting(matrices, kinds, scalars, functions=functions)
    moving, stepping = bool(document.get("flow")), bool(document.get("step"))
    texts = [body for body in _table(document, "define", where).values() if isinstance(body, str)]
    named = dims_named("; ".join(texts))
    defined: dict[str, Expr] = {}
    for name, body in _table(document, "define", where).items():
        _name(name, where, "define")
        if name in {*matrices, *scalars, *dims, *functions}:
            raise ClaimFileError(
                f"{where}: [define] {name!r} is already declared; choose another name"
            )
        defined[name] = parse(
            _text(body, f"{where}: [define] {name}"),
            Scope(setting, dict(defined), moving, stepping, named),
            f"{where}: [define] {name}",
        )
    scope = Scope(setting, defined, moving, stepping, named)
    velocity = _flow(document, scope, where)
    update = _expressions(
        _table(_table(document, "step", where), "update", where), scope, f"{where}: [step.update]"
    )
    for key in _table(document, "step", where):
        if key != "update":
            raise ClaimFileError(f"{where}: [step] has no {key!r}; it takes [step.update]")
    if stepping and not update:
        raise ClaimFileError(f"{where}: [step] needs [step.update] with each variable's new value")
    return Scope(
        Setting(matrices, kinds, scalars, velocity, update, defined, functions),
        defined,
        moving,
        stepping,
        named,
    )


def document_of(text: str, where: str) -> TomlTable:
    """The file's TOML, with its sections checked."""
    if not text.strip():
        raise ClaimFileError(
            f"{where}: the file is empty; a claim file has [matrices] and at least one [[claim]]"
        )
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClaimFileError(f"{where}: not valid TOML: {error}") from None
    except RecursionError:
        raise ClaimFileError(f"{where}: not valid TOML: nested too deeply") from None
    for section in document:
        if section not in _SECTIONS:
            raise ClaimFileError(
                f"{where}: unknown section [{section}]; sections: {', '.join(_SECTIONS)}"
            )
    return document


def _table(document: TomlTable, name: str, where: str) -> TomlTable:
    value = document.get(name, {})
    if not isinstance(value, dict):
        example = {"scalars": "eta = {}", "functions": "phi = {}"}.get(name, "")
        shown = f", with lines such as {example}" if example else ""
        raise ClaimFileError(
            f"{where}: [{name}] must be a table{shown}; got {type(value).__name__}"
        )
    return cast(TomlTable, value)


def _text(value: object, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ClaimFileError(
            f'{where}: expected an expression in quotes, as in "U @ V.T", got {value!r}'
        )
    return str(value)


def _name(name: str, where: str, section: str) -> str:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ClaimFileError(
            f"{where}: [{section}] {name!r} is not a name; "
            "use letters, digits and _, no Python keyword"
        )
    if normalize("NFKC", name) != name:
        raise ClaimFileError(
            f"{where}: [{section}] {name!r} has a character that Python takes for another one; "
            f"write {normalize('NFKC', name)!r}"
        )
    if name in FUNCTIONS:
        raise ClaimFileError(
            f"{where}: [{section}] {name!r} is the name of a function of the language; rename it"
        )
    return name


def _matrices(table: TomlTable, where: str) -> dict[str, tuple[Dim, Dim]]:
    shapes: dict[str, tuple[Dim, Dim]] = {}
    for name, shape in table.items():
        _name(name, where, "matrices")
        if not isinstance(shape, list) or len(cast("list[object]", shape)) != 2:
            raise ClaimFileError(
                f'{where}: [matrices] {name} needs [rows, columns], as in ["m", "r"], got {shape!r}'
            )
        rows, cols = (_dim(value, name, where) for value in cast("list[object]", shape))
        shapes[name] = (rows, cols)
    return shapes


def _dim(value: object, name: str, where: str) -> Dim:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    if isinstance(value, str) and value.isidentifier() and not keyword.iskeyword(value):
        return value
    raise ClaimFileError(
        f"{where}: [matrices] {name}: a dimension is a symbol or a positive integer, got {value!r}"
    )


def _kinds(table: TomlTable, where: str) -> dict[str, frozenset[str]]:
    kinds: dict[str, frozenset[str]] = {}
    for name, value in table.items():
        many = [value] if isinstance(value, str) else value
        if not isinstance(many, list) or not all(
            isinstance(kind, str) for kind in cast("list[object]", many)
        ):
            raise ClaimFileError(
                f"{where}: [kinds] {name}: expected a kind or a list of kinds, got {value!r}"
            )
        kinds[name] = frozenset(cast("list[str]", many))
    return kinds


def _scalars(table: TomlTable, where: str) -> frozenset[str]:
    for name, value in table.items():
        _name(name, where, "scalars")
        if value != {}:
            raise ClaimFileError(
                f"{where}: [scalars] {name}: expected {{}}, got {value!r}; a scalar has no value "
                "(a claim about one value has it in its formula)"
            )
    return frozenset(table)


def _functions(table: TomlTable, where: str) -> dict[str, tuple[str, int]]:
    """Opaque elementwise functions; phi brings its derivatives dphi, ddphi, ... along."""
    functions: dict[str, tuple[str, int]] = {}
    for name, value in table.items():
        if value != {}:
            raise ClaimFileError(
                f"{where}: [functions] {name}: expected {{}}, got {value!r}; its derivatives are "
                f"called d{name}, dd{name}"
            )
        for order in range(MOST_DERIVATIVES + 1):
            each = _name("d" * order + name, where, "functions")
            if each in functions:
                raise ClaimFileError(f"{where}: [functions] {each!r} is declared twice; rename one")
            functions[each] = (name, order)
    return functions


def _flow(document: TomlTable, scope: Scope, where: str) -> dict[str, Expr]:
    flow = _table(document, "flow", where)
    if not flow:
        return {}
    for key in flow:
        if key not in ("loss", "variables", "velocity"):
            raise ClaimFileError(
                f"{where}: [flow] has no {key!r}; it takes loss and variables, or [flow.velocity]"
            )
    if "velocity" in flow:
        if "loss" in flow:
            raise ClaimFileError(
                f"{where}: [flow] takes loss and variables, or [flow.velocity], not both"
            )
        return _expressions(_table(flow, "velocity", where), scope, f"{where}: [flow.velocity]")
    if "loss" not in flow or "variables" not in flow:
        raise ClaimFileError(f"{where}: [flow] needs both loss and variables (or [flow.velocity])")
    place = f"{where}: [flow] loss"
    loss = parse(_text(flow["loss"], place), scope, place)
    if not loss.is_scalar:
        raise ShapeError(f"{place}: a loss is a scalar; this one is {loss.rows} x {loss.cols}")
    names = flow["variables"]
    if not isinstance(names, list) or not names:
        raise ClaimFileError(
            f'{where}: [flow] variables must be a list of names, as in ["U", "V"], got {names!r}'
        )
    variables = tuple(
        _variable(name, scope, f"{where}: [flow] variables") for name in cast("list[object]", names)
    )
    return gradient_velocity(scope.setting, loss, variables)


def _variable(name: object, scope: Scope, where: str) -> str:
    if not isinstance(name, str) or (
        name not in scope.setting.matrices and name not in scope.setting.scalars
    ):
        raise ClaimFileError(f"{where}: {name!r} is not a declared matrix or scalar")
    return name


def _expressions(table: TomlTable, scope: Scope, where: str) -> dict[str, Expr]:
    result: dict[str, Expr] = {}
    for name, body in table.items():
        _variable(name, scope, where)
        place = f"{where} {name}"
        value = parse(_text(body, place), scope, place)
        symbol = scope.setting.symbol(name)
        same_shape(symbol, value, place)
        if is_zero_literal(value):
            value = zeros(symbol.rows, symbol.cols)
        _stays_of_kind(name, value, scope.setting, place)
        result[name] = value
    if "velocity" in where and not result:
        raise ClaimFileError(f"{where}: it is empty; give each moving matrix its velocity")
    return result


def _stays_of_kind(name: str, value: Expr, setting: Setting, where: str) -> None:
    """Refuse a velocity or an update that leaves the linear kinds of its matrix."""
    linear = setting.kinds_of(name) & LINEAR_KINDS
    if not linear:
        return
    table = Table()
    rows, cols = value.shape
    difference = subtract(value, project(value, linear))
    labels = (0 if rows == 1 else -1), (0 if cols == 1 else -2)
    gap = Expander(setting, table).entry(difference, *labels)
    if table.settle(Kinds(setting, table).impose(gap)):
        kind = " and ".join(sorted(linear))
        raise ClaimFileError(
            f"{where}: it is not {kind}, and {name} is; write its {kind} part, as in sym(...), "
            "skew(...) or diagpart(...)"
        )


def _statement(entry: object, number: int, scope: Scope, where: str) -> Statement:
    place = f"{where}: claim {number}"
    if not isinstance(entry, dict):
        raise ClaimFileError(f"{place}: expected a [[claim]] table")
    table = cast(TomlTable, entry)
    for key in table:
        if key not in ("id", "says", "title", "assume", "expect", "source"):
            raise ClaimFileError(
                f"{place}: unknown key {key!r}; "
                "a claim takes id, says, assume, title, source, expect"
            )
    name = table.get("id", f"claim-{number}")
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ClaimFileError(f"{place}: id must be a line of printable text, got {name!r}")
    place = f"{where}: claim {name!r}"
    says = table.get("says")
    if not isinstance(says, str):
        raise ClaimFileError(f'{place}: needs says = "left == right"')
    expect = table.get("expect")
    if expect is not None and expect not in _VERDICTS:
        raise ClaimFileError(
            f"{place}: expect = {expect!r}; it must be one of {', '.join(_VERDICTS)}"
        )
    left_text, right_text = split_equation(says, place)
    left, right = equation(says, scope, place)
    return Statement(
        id=name,
        left=left,
        right=right,
        setting=scope.setting,
        left_text=left_text,
        right_text=right_text,
        assume=_assumptions(table.get("assume", []), scope, place),
        title=_line(table, "title", place),
        source=_line(table, "source", place),
        expect=cast("str | None", expect),
    )


def _line(table: TomlTable, key: str, where: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise ClaimFileError(f"{where}: {key} must be text in quotes, got {value!r}")
    return value


def _assumptions(value: object, scope: Scope, where: str) -> tuple[Equation, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, Sequence) or not all(
        isinstance(line, str) for line in cast("Sequence[object]", value)
    ):
        raise ClaimFileError(
            f"{where}: assume must be a list of equations, "
            f'as in ["U.T @ U == V.T @ V"], got {value!r}'
        )
    lines = cast("Sequence[str]", value)
    return tuple(Equation(*equation(line, scope, f"{where}: assume"), line) for line in lines)

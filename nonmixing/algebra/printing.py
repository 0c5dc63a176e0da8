"""Expressions as text (the language of claim files) and as LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from nonmixing.algebra.node import Expr, node

_SUM, _PRODUCT, _POWER, _ATOM = 0, 1, 2, 3

GREEK = (
    "alpha beta gamma delta epsilon eta theta kappa lambda mu nu xi rho sigma tau phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega"
).split()


def to_text(expr: Expr) -> str:
    """The expression in NumPy's notation."""
    return _text(expr)[0]


def _wrap(expr: Expr, level: int, render: Callable[[Expr], tuple[str, int]]) -> str:
    text, strength = render(expr)
    return text if strength >= level else f"({text})"


def _signed(term: Expr) -> tuple[int, Expr]:
    """A summand's sign, taken out of a leading numerical factor."""
    if term.op == "scale" and term.args[0].op == "number":
        value = term.args[0].data
        assert isinstance(value, Fraction)
        if value < 0:
            if value == -1:
                return -1, term.args[1]
            positive = node("number", data=-value)
            return -1, node("scale", (positive, term.args[1]), rows=term.rows, cols=term.cols)
    if term.op == "number" and isinstance(term.data, Fraction) and term.data < 0:
        return -1, node("number", data=-term.data)
    return 1, term


def _join(expr: Expr, render: Callable[[Expr], tuple[str, int]]) -> str:
    text = ""
    for term in expr.args:
        sign, body = _signed(term)
        shown = _wrap(body, _PRODUCT, render)
        if not text:
            text = f"-{shown}" if sign < 0 else shown
        else:
            text += f" - {shown}" if sign < 0 else f" + {shown}"
    return text


def _text(expr: Expr) -> tuple[str, int]:
    args, data = expr.args, expr.data
    match expr.op:
        case "number":
            text = str(data)
            return text, _ATOM if "/" not in text and not text.startswith("-") else _PRODUCT
        case "symbol" | "scalar" | "dim":
            return str(data), _ATOM
        case "add":
            return _join(expr, _text), _SUM
        case "scale":
            sign, body = _signed(expr)
            if sign < 0:
                return f"-{_wrap(body, _PRODUCT, _text)}", _SUM
            if args[0].op == "reciprocal":
                return (
                    f"{_wrap(args[1], _PRODUCT, _text)} / {_wrap(args[0].args[0], _POWER, _text)}",
                    _PRODUCT,
                )
            right = _wrap(args[1], _PRODUCT if args[1].op == "matmul" else _POWER, _text)
            return f"{_wrap(args[0], _PRODUCT, _text)} * {right}", _PRODUCT
        case "times":
            return f"{_wrap(args[0], _PRODUCT, _text)} * {_wrap(args[1], _POWER, _text)}", _PRODUCT
        case "matmul":
            return f"{_wrap(args[0], _PRODUCT, _text)} @ {_wrap(args[1], _POWER, _text)}", _PRODUCT
        case "power":
            return f"{_wrap(args[0], _ATOM, _text)} ** {data}", _POWER
        case "reciprocal":
            return f"1 / {_wrap(args[0], _POWER, _text)}", _PRODUCT
        case "T":
            return f"{_wrap(args[0], _ATOM, _text)}.T", _ATOM
        case "total":
            if args[0].op == "power" and args[0].data == 2:
                return f"norm2({_text(args[0].args[0])[0]})", _ATOM
            return f"sum({_text(args[0])[0]})", _ATOM
        case "eye":
            return f"eye({expr.rows})", _ATOM
        case "ones" | "zeros":
            return f"{expr.op}({expr.rows}, {expr.cols})", _ATOM
        case "grad":
            return f"grad({_text(args[0])[0]}, {data})", _ATOM
        case "D":
            return f"D({_text(args[0])[0]}, {data}, {_text(args[1])[0]})", _ATOM
        case "apply":
            assert isinstance(data, tuple)
            return f"{'d' * data[1]}{data[0]}({_text(args[0])[0]})", _ATOM
        case op:
            op = "face_splitting" if op == "face" else op
            return f"{op}({', '.join(_text(arg)[0] for arg in args)})", _ATOM


def to_latex(expr: Expr) -> str:
    """The expression in LaTeX."""
    return _latex(expr)[0]


def _latex_name(name: str) -> str:
    stem = name.rstrip("0123456789")
    index = name[len(stem) :]
    stem, _, rest = stem.partition("_")
    shown = f"\\{stem}" if stem in GREEK else stem if len(stem) == 1 else f"\\mathrm{{{stem}}}"
    subscript = rest + index
    return f"{shown}_{{{subscript}}}" if subscript else shown


def _latex(expr: Expr) -> tuple[str, int]:
    args, data = expr.args, expr.data
    match expr.op:
        case "number":
            assert isinstance(data, Fraction)
            if data.denominator == 1:
                return str(data), _ATOM if data >= 0 else _PRODUCT
            sign = "-" if data < 0 else ""
            return f"{sign}\\tfrac{{{abs(data.numerator)}}}{{{data.denominator}}}", _PRODUCT
        case "symbol" | "scalar" | "dim":
            return _latex_name(str(data)), _ATOM
        case "add":
            return _join(expr, _latex), _SUM
        case "scale":
            sign, body = _signed(expr)
            if sign < 0:
                return f"-{_wrap(body, _PRODUCT, _latex)}", _SUM
            return (
                f"{_wrap(args[0], _PRODUCT, _latex)}\\,{_wrap(args[1], _PRODUCT, _latex)}",
                _PRODUCT,
            )
        case "times":
            return (
                f"{_wrap(args[0], _POWER, _latex)} \\odot {_wrap(args[1], _POWER, _latex)}",
                _PRODUCT,
            )
        case "matmul":
            return (
                f"{_wrap(args[0], _PRODUCT, _latex)} {_wrap(args[1], _PRODUCT, _latex)}",
                _PRODUCT,
            )
        case "power":
            return f"{_wrap(args[0], _ATOM, _latex)}^{{{data}}}", _POWER
        case "reciprocal":
            return f"\\frac{{1}}{{{_latex(args[0])[0]}}}", _ATOM
        case "eye":
            return f"I_{{{expr.rows}}}", _ATOM
        case "ones":
            return f"\\mathbf 1_{{{expr.rows} \\times {expr.cols}}}", _ATOM
        case "zeros":
            return f"0_{{{expr.rows} \\times {expr.cols}}}", _ATOM
        case _:
            return _latex_function(expr)


def _latex_function(expr: Expr) -> tuple[str, int]:
    """The operations that are functions of a matrix or of an expression, derivatives included."""
    args, data = expr.args, expr.data
    match expr.op:
        case "T":
            return f"{_wrap(args[0], _ATOM, _latex)}^{{\\top}}", _POWER
        case "total":
            if args[0].op == "power" and args[0].data == 2:
                return f"\\lVert {_latex(args[0].args[0])[0]} \\rVert_F^2", _ATOM
            return f"\\mathbf 1^{{\\top}} {_wrap(args[0], _PRODUCT, _latex)} \\mathbf 1", _PRODUCT
        case "tr":
            return f"\\operatorname{{tr}}({_latex(args[0])[0]})", _ATOM
        case "inv":
            return f"{_wrap(args[0], _ATOM, _latex)}^{{-1}}", _POWER
        case "d":
            return f"\\frac{{d}}{{dt}} {_wrap(args[0], _ATOM, _latex)}", _PRODUCT
        case "grad":
            return f"\\nabla_{{{_latex_name(str(data))}}} {_wrap(args[0], _ATOM, _latex)}", _PRODUCT
        case "D":
            inside, direction = _wrap(args[0], _ATOM, _latex), _latex(args[1])[0]
            return f"D_{{{_latex_name(str(data))}}} {inside}[{direction}]", _PRODUCT
        case "kron":
            left, right = (_wrap(arg, _ATOM, _latex) for arg in args)
            return f"{left} \\otimes {right}", _PRODUCT
        case "apply":
            assert isinstance(data, tuple)
            primes = "'" * data[1]
            return f"{_latex_name(data[0])}{primes}({_latex(args[0])[0]})", _ATOM
        case "expect":
            name = _latex_name(str(data))
            return f"\\mathbb E_{{{name}}}\\left[{_latex(args[0])[0]}\\right]", _ATOM
        case op:
            return f"\\operatorname{{{op}}}({', '.join(_latex(arg)[0] for arg in args)})", _ATOM

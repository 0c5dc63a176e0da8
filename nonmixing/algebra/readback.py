"""Index form back to matrix notation.

A product of factors is a graph: labels are its nodes, two-slot factors its edges, one-slot factors
vectors at a node. Three reductions shrink it: a node with two edges is a matrix product (with diag
of the vectors there in between), a node with one edge a matrix times a vector, and two edges side
by side an elementwise product. What they do not reduce (networks that are not series-parallel) has
no matrix notation in this language and is written with indices instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from nonmixing.algebra import expr as ex
from nonmixing.algebra.canonical import Factor, Head
from nonmixing.algebra.dims import Dim
from nonmixing.algebra.node import INVERSE, Expr
from nonmixing.algebra.printing import to_text
from nonmixing.algebra.setting import Setting
from nonmixing.algebra.terms import (
    Applied,
    Coefficient,
    Component,
    Delta,
    Dimension,
    Entry,
    Monomial,
    Poly,
    Reciprocal,
    Scalar,
    Table,
)

ROW, COL = -1, -2


class NoMatrixNotation(ValueError):
    """The sum has no matrix notation; the message says why."""


@dataclass(frozen=True)
class _Edge:
    """A matrix whose rows run over one label and whose columns over another."""

    matrix: Expr
    row: int
    col: int

    def other(self, label: int) -> int:
        return self.row if self.col == label else self.col


LONG = 24
"""Matrices in a product that is read along its path."""


class Reader:
    """Reads polynomials of one table back.

    Args:
        setting: gives symbols their shapes.
        table: the atoms' table.
        rows: dimension of label -1.
        cols: dimension of label -2.
    """

    def __init__(self, setting: Setting, table: Table, rows: Dim, cols: Dim) -> None:
        self.setting, self.table, self.rows, self.cols = setting, table, rows, cols

    def expression(self, poly: Poly) -> Expr:
        """The matrix expression; raises `NoMatrixNotation` where there is none."""
        if not poly:
            return (
                ex.number(0)
                if self.rows == 1 and self.cols == 1
                else ex.zeros(self.rows, self.cols)
            )
        terms = [self._term(mono, value) for mono, value in poly.items()]
        # Shorter terms first, so that what is printed does not depend on how it was computed.
        terms.sort(key=lambda term: (len(to_text(term)), to_text(term).lstrip("-")))
        return ex.add(*terms)

    def text(self, poly: Poly) -> str:
        """Matrix notation where there is one, index notation elsewhere."""
        try:
            return to_text(self.expression(poly))
        except NoMatrixNotation:
            return self._index_notation(poly)

    def turned(self, expr: Expr) -> Expr:
        """The transpose, pushed inwards to the symbols."""
        match expr.op:
            case "T":
                return expr.args[0]
            case "matmul":
                return chain(self.turned(expr.args[1]), self.turned(expr.args[0]))
            case "times":
                return ex.times(self.turned(expr.args[0]), self.turned(expr.args[1]))
            case "diag" | "diagpart" | "eye":
                return expr
            case "symbol" if self.setting.kinds_of(str(expr.data)) & {"symmetric", "diagonal"}:
                return expr
            case _:
                return ex.transpose(expr)

    def _towards(self, edge: _Edge, label: int) -> Expr:
        """An edge's matrix with its columns at the label."""
        return edge.matrix if edge.col == label else self.turned(edge.matrix)

    # --- one term ---------------------------------------------------------------------------------

    def _term(self, mono: Monomial, value: Coefficient) -> Expr:
        scalars: list[Expr] = []
        at: dict[frozenset[int], list[Expr]] = {}
        joined = False
        for number, exponent in mono:
            atom = self.table.atom(number)
            if isinstance(atom, Delta):
                joined = True
                continue
            free = self.table.free(number)
            read = self._component(atom.key) if isinstance(atom, Component) else self._plain(atom)
            if free:
                at.setdefault(free, []).extend([read] * exponent)
            else:
                scalars.append(read if exponent == 1 else ex.power(read, exponent))
        body = self._diagonal(at) if joined else self._matrix(at)
        return _scaled(value, scalars, body)

    def _plain(self, atom: Scalar | Dimension | Entry | Reciprocal | Delta) -> Expr:
        match atom:
            case Scalar(name):
                return ex.scalar(name)
            case Dimension(dim):
                return ex.dimension(dim)
            case Entry(name, row, col):
                if (row, col) == (0, 0) and self.setting.matrices.get(name) == (1, 1):
                    return ex.symbol(name, 1, 1)
                return ex.scalar(f"{name}[{row}, {col}]")
            case Reciprocal(items):
                inside = Reader(self.setting, self.table, 1, 1).expression(dict(items))
                return ex.reciprocal(inside)
            case _:
                raise NoMatrixNotation(str(atom))

    def _matrix(self, at: dict[frozenset[int], list[Expr]]) -> Expr | None:
        both = _elementwise(at.get(frozenset({ROW, COL}), []))
        left = _elementwise(at.get(frozenset({ROW}), []))
        right = _elementwise(at.get(frozenset({COL}), []))
        if both is not None:
            if left is not None:
                both = chain(ex.diag(left), both)
            return chain(both, ex.diag(right)) if right is not None else both
        if left is None and right is None:
            return None if self.rows == 1 and self.cols == 1 else ex.ones(self.rows, self.cols)
        if left is None:
            left = None if self.rows == 1 else ex.ones(self.rows, 1)
        if right is None:
            right = None if self.cols == 1 else ex.ones(self.cols, 1)
        if left is None:
            assert right is not None
            return self.turned(right)
        return left if right is None else chain(left, self.turned(right))

    def _diagonal(self, at: dict[frozenset[int], list[Expr]]) -> Expr:
        """A term with delta(row, col): a diagonal matrix."""
        parts = at.get(frozenset({ROW}), [])
        if not parts:
            return ex.eye(self.rows)
        squares = [part.args[0].args[0] for part in parts if _is_diagonal_of(part)]
        vectors = [part for part in parts if not _is_diagonal_of(part)]
        result = _elementwise([ex.diagpart(square) for square in squares])
        vector = _elementwise(vectors)
        if vector is None:
            assert result is not None
            return result
        return ex.diag(vector) if result is None else chain(ex.diag(vector), result)

    # --- one component ----------------------------------------------------------------------------

    def _component(self, key: Sequence[Factor]) -> Expr:
        if len(key) == 1 and not key[0][1]:
            return self._head(key[0][0])
        edges: list[_Edge] = []
        vectors: dict[int, list[Expr]] = {}
        dims: dict[int, Dim] = {}
        for head, slots in key:
            for label, dim in zip(slots, head.dims, strict=True):
                dims[label] = int(dim) if dim.isdigit() else dim
            matrix = self._head(head)
            if len(slots) == 1:
                vectors.setdefault(slots[0], []).append(matrix)
            else:
                edges.append(_Edge(matrix, slots[0], slots[1]))
        word = self._word(edges) if not vectors else self._ended_word(edges, vectors)
        return self._reduce(edges, vectors, dims) if word is None else word

    def _head(self, head: Head) -> Expr:
        """The matrix (two slots) or column (one slot) that a head stands for."""
        applied = self.table.function(head)
        if applied is not None:
            return self._function(head, applied)
        base = head.name.removesuffix(INVERSE)
        rows, cols = self.setting.matrices[base]
        matrix = ex.symbol(base, rows, cols)
        if base != head.name:
            matrix = ex.inv(matrix)
        if len(head.dims) == 2:
            return matrix
        if len(head.fixed) == 1:  # a diagonal matrix as the vector of its diagonal
            return chain(matrix, ex.ones(rows, 1))
        if head.fixed[1] == 0 and cols == 1:
            return matrix
        if head.fixed[0] == 0 and rows == 1:
            return self.turned(matrix)
        raise NoMatrixNotation(f"{head.name} at a fixed index")

    def _function(self, head: Head, applied: Applied) -> Expr:
        """An opaque function of its argument, in matrix notation."""
        places = (ROW, COL)[: len(head.dims)]
        over = [int(dim) if dim.isdigit() else dim for dim in (*head.dims, "1", "1")][:2]
        reader = Reader(self.setting, self.table, over[0], over[1])
        inside = reader.expression(self.table.settle(applied.at(self.table, places)))
        return ex.apply(applied.name, applied.order, inside)

    def _word(self, edges: list[_Edge]) -> Expr | None:
        """X Y ... from row to column, or tr(X Y ...), where the component is that and no more."""
        at: dict[int, list[_Edge]] = {}
        for edge in edges:
            for label in (edge.row, edge.col):
                at.setdefault(label, []).append(edge)
        if any(len(there) != (2 if label >= 0 else 1) for label, there in at.items()):
            return None
        if {label for label in at if label < 0} not in (set(), {ROW, COL}):
            return None
        edge = at[ROW][0] if ROW in at else edges[0]
        here = edge.other(ROW) if ROW in at else edge.col
        word = self._towards(edge, here)
        for _ in edges[1:]:
            one, other = at[here]
            edge = other if one is edge else one
            here = edge.other(here)
            word = chain(word, self._towards(edge, here))
        return word if ROW in at else self._trace(word)

    def _ended_word(self, edges: list[_Edge], vectors: dict[int, list[Expr]]) -> Expr | None:
        """X Y ... y from a free label, or x^T X Y ... y, where the component is that and is long.

        Short ones are read by `_reduce`, which has more to choose from.
        """
        at: dict[int, list[_Edge]] = {}
        for edge in edges:
            for label in (edge.row, edge.col):
                at.setdefault(label, []).append(edge)
        free = [label for label in at if label < 0]
        ends = [label for label, columns in vectors.items() if columns]
        if len(edges) < LONG or len(free) + len(ends) != 2 or not ends:
            return None
        if any(len(vectors[label]) > 1 for label in ends) or any(
            len(there) != (1 if label in (*free, *ends) else 2) for label, there in at.items()
        ):
            return None
        here = free[0] if free else ends[0]
        (edge,) = at[here]
        word = self.turned(vectors[here][0]) if not free else None
        for _ in edges:
            here = edge.other(here)
            step = self._towards(edge, here)
            word = step if word is None else chain(word, step)
            edge = next((other for other in at[here] if other is not edge), edge)
        return chain(word, vectors[here][0]) if word is not None else None

    def _trace(self, word: Expr) -> Expr:
        """tr(X^T X) is the squared norm."""
        if word.op == "matmul" and self.turned(word.args[0]) == word.args[1]:
            return ex.norm2(word.args[1])
        return ex.tr(word)

    def _reduce(
        self, edges: list[_Edge], vectors: dict[int, list[Expr]], dims: dict[int, Dim]
    ) -> Expr:
        while True:
            self.table.tick()
            if (
                self._parallel(edges)
                or self._loops(edges, vectors)
                or self._inner_label(edges, vectors, dims)
            ):
                continue
            break
        if not edges:
            return self._only_vectors(vectors)
        if len(edges) == 1:
            edge = edges[0]
            ends = {edge.row, edge.col}
            if ends == {ROW, COL} and not any(vectors.values()):
                return self._towards(edge, COL)
        raise NoMatrixNotation("not series-parallel")

    def _parallel(self, edges: list[_Edge]) -> bool:
        for i, one in enumerate(edges):
            for other in edges[i + 1 :]:
                if {one.row, one.col} == {other.row, other.col} and one.row != one.col:
                    edges.remove(one)
                    edges.remove(other)
                    edges.append(
                        _Edge(
                            ex.times(self._towards(one, one.col), self._towards(other, one.col)),
                            one.row,
                            one.col,
                        )
                    )
                    return True
        return False

    def _loops(self, edges: list[_Edge], vectors: dict[int, list[Expr]]) -> bool:
        """X[i, i] is the vector of a diagonal: diagpart(X) @ ones."""
        for edge in edges:
            if edge.row == edge.col:
                edges.remove(edge)
                column = chain(ex.diagpart(edge.matrix), ex.ones(edge.matrix.rows, 1))
                vectors.setdefault(edge.row, []).append(column)
                return True
        return False

    def _inner_label(
        self, edges: list[_Edge], vectors: dict[int, list[Expr]], dims: dict[int, Dim]
    ) -> bool:
        """Remove a summed label that has one edge or two."""
        for label in sorted(
            {label for edge in edges for label in (edge.row, edge.col) if label >= 0}
        ):
            here = [edge for edge in edges if label in (edge.row, edge.col)]
            vector = _elementwise(vectors.get(label, []))
            if len(here) == 1:
                edge = here[0]
                edges.remove(edge)
                vectors.pop(label, None)
                column = chain(
                    self._towards(edge, label),
                    vector if vector is not None else ex.ones(dims[label], 1),
                )
                vectors.setdefault(edge.other(label), []).append(column)
                return True
            if len(here) == 2:
                one, other = here
                left, right = self._towards(one, label), self.turned(self._towards(other, label))
                if vector is not None:
                    left = chain(left, ex.diag(vector))
                edges.remove(one)
                edges.remove(other)
                vectors.pop(label, None)
                edges.append(_Edge(chain(left, right), one.other(label), other.other(label)))
                return True
        return False

    def _only_vectors(self, vectors: dict[int, list[Expr]]) -> Expr:
        left = [(label, parts) for label, parts in vectors.items() if parts]
        if len(left) != 1:
            raise NoMatrixNotation("several vectors")
        label, parts = left[0]
        if label < 0:
            column = _elementwise(parts)
            assert column is not None
            return column
        if len(parts) == 2:
            return chain(self.turned(parts[0]), parts[1])
        column = _elementwise(parts)
        assert column is not None
        return ex.total(column)

    # --- fallback ---------------------------------------------------------------------------------

    def _index_notation(self, poly: Poly) -> str:
        parts: list[str] = []
        for mono, value in poly.items():
            factors = [self._written(number, exponent) for number, exponent in mono]
            sign = "-" if value < 0 else "+"
            magnitude = [] if abs(value) == 1 and factors else [str(abs(value))]
            parts.append(f"{sign} {' '.join(magnitude + factors)}")
        text = " ".join(parts)
        return text[2:] if text.startswith("+ ") else "-" + text[2:]

    def _written(self, number: int, exponent: int) -> str:
        atom = self.table.atom(number)
        names = {ROW: "r", COL: "c"}
        if isinstance(atom, Component):
            shown = " ".join(
                f"{head.name}[{', '.join(names.get(s, f'i{s}') for s in slots)}]"
                for head, slots in atom.key
            )
            summed = sorted({s for _, slots in atom.key for s in slots if s >= 0})
            if summed:
                shown = f"(sum over {', '.join(f'i{s}' for s in summed)} of {shown})"
        elif isinstance(atom, Delta):
            shown = "delta[r, c]"
        else:
            shown = to_text(self._plain(atom))
        return shown if exponent == 1 else f"{shown}**{exponent}"


def chain(left: Expr, right: Expr) -> Expr:
    """The product left @ right, bracketed from the left as one reads it."""
    if right.op == "matmul":
        return ex.matmul(chain(left, right.args[0]), right.args[1])
    if right.op == "eye":
        return left
    return right if left.op == "eye" else ex.matmul(left, right)


def _elementwise(parts: Sequence[Expr]) -> Expr | None:
    result: Expr | None = None
    for part in parts:
        result = part if result is None else ex.times(result, part)
    return result


def _is_diagonal_of(part: Expr) -> bool:
    """Whether a column was written diagpart(X) @ ones."""
    return part.op == "matmul" and part.args[0].op == "diagpart" and part.args[1].op == "ones"


def _scaled(value: Coefficient, scalars: Sequence[Expr], body: Expr | None) -> Expr:
    factor = Fraction(value)
    sign = -1 if factor < 0 else 1
    parts = list(scalars)
    if body is not None:
        parts.append(body)
    if abs(factor) != 1 or not parts:
        parts.insert(0, ex.number(abs(factor)))
    term = parts[0]
    for part in parts[1:]:
        term = ex.multiply(term, part)
    return ex.negative(term) if sign < 0 else term

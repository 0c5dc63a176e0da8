"""Matrix words: the fast route to the index form, for what is built of products and traces.

Sums, products, transposes, traces and inverses of matrices, and their derivatives, need no indices:
a term is a coefficient, a commuting product of scalars (declared ones, dimensions, traces, and
x^T A y), and a word of letters, each a matrix or its transpose. A product puts words together, a
transpose reads them backwards, a derivative puts its motion in the place of one letter after the
other. A trace is named by the least of its rotations and their transposes, so that a word is
labelled once, when it is closed, and not at every product on the way.

`Words.poly` turns a form into the canonical index form that `Expander.entry` gives. Whatever is
outside (elementwise products, blocks, opaque functions, ...) is `Unsuited`, or a letter of its own
as long as nothing differentiates it: what is then left over says nothing, but nothing left over
still proves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise

from nonmixing.algebra.canonical import Factor, Head
from nonmixing.algebra.dims import Dim, Index
from nonmixing.algebra.node import EVERYTHING, INVERSE, Expr, node
from nonmixing.algebra.setting import Setting, walk
from nonmixing.algebra.terms import (
    MAX_TERMS,
    Coefficient,
    Dimension,
    Entry,
    Poly,
    Scalar,
    Table,
    TooLarge,
    exact,
)

Word = tuple[int, ...]
"""Letters from left to right; a letter is twice its matrix's number, plus 1 for the transpose."""
Scalars = tuple[int, ...]
"""Sorted numbers of scalar atoms, with repetitions."""
Form = dict[tuple[Scalars, Word], Coefficient]
"""What a matrix is in words; the empty word is an identity, or 1 where the value is 1 x 1."""

ONE: Form = {((), ()): 1}

_Image = Callable[[], Form]


class Unsuited(Exception):
    """Not made of words: the index form must be taken."""


class Words:
    """Forms of the expressions of one setting.

    Args:
        setting: gives velocities, updates and kinds their meaning.
        tick: called often; raises when time is up.
    """

    def __init__(self, setting: Setting, tick: Callable[[], None] | None = None) -> None:
        self.setting = setting
        self._tick = tick
        # What a letter or a scalar atom stands for: a symbol (or the inverse of one, by name), or
        # another expression; a closed word for a trace ("tr") or for x^T A y ("path").
        self._matrices: list[Expr] = []
        self._letters: dict[Expr, int] = {}
        self._thin: list[tuple[bool, bool]] = []  # of each letter: is it one row, one column?
        self._scalars: list[Expr | tuple[str, Word]] = []
        self._numbers: dict[Expr | tuple[str, Word], int] = {}
        self._closed: dict[Word, int] = {}
        self._known: dict[Expr, Form] = {}
        self._has_thin = False
        self._changes: dict[tuple[object, int], Form] = {}

    # --- forms ------------------------------------------------------------------------------------

    def form(self, expr: Expr) -> Form:
        """The form of an expression, with every matrix taken as a general one.

        Raises:
            Unsuited: a derivative or a step reaches something that is not made of words.
            TooLarge: too many terms.
        """
        known = self._known.get(expr)
        if known is None:
            known = self._known[expr] = self._form(expr)
        return known

    def _form(self, expr: Expr) -> Form:
        args = expr.args
        match expr.op:
            case "number":
                return _constant(expr)
            case "symbol":
                return self._single((2 * self._letter(expr),), expr)
            case "add":
                if any(arg.rows != expr.rows or arg.cols != expr.cols for arg in args):
                    raise Unsuited
                result = dict(self.form(args[0]))
                for arg in args[1:]:
                    _add(result, self.form(arg), 1)
                return result
            case "scale":
                return self._times(self.form(args[0]), self.form(args[1]), False)
            case "matmul":
                left, right = args
                if left.cols != right.rows:
                    raise Unsuited
                thin = 1 in (left.rows, left.cols, right.cols)
                return self._times(self.form(left), self.form(right), thin)
            case "T":
                return self._transposed(self.form(args[0]))
            case "tr":
                if args[0].rows != args[0].cols:
                    raise Unsuited
                return self._trace(self.form(args[0]), args[0].rows)
            case "scalar" | "dim":
                return {((self._scalar(expr),), ()): 1}
            case "eye":
                return ONE
            case "zeros":
                return {}
            case _:
                return self._further(expr)

    def _further(self, expr: Expr) -> Form:
        """What is not met in every claim."""
        args = expr.args
        match expr.op:
            case "total":
                return self._total(args[0], expr)
            case "power" | "times" if expr.is_scalar:
                count = expr.data if isinstance(expr.data, int) else 1
                result = ONE
                for arg in args * count:
                    result = self._times(result, self.form(arg), False)
                return result
            case "reciprocal":
                return self._reciprocal(args[0], expr)
            case "inv":
                return self._inverse(args[0])
            case "grad":
                return self._gradient(self.form(args[0]), args[1])
            case "D":
                name, way = str(expr.data), self.form(args[1])
                return self._along(self.form(args[0]), {name: lambda: way}, expr.args[1:])
            case "d":
                return self._along(self.form(args[0]), self._flow(), "d")
            case "after":
                return self._substituted(self.form(args[0]))
            case _:
                return self._alone(expr)

    def _alone(self, expr: Expr) -> Form:
        """An expression that is not made of words, as a letter or a scalar of its own."""
        if EVERYTHING in expr.names or any(
            inside.op in ("inv", "reciprocal") for inside in walk(self.setting, expr)
        ):
            raise Unsuited  # these are refused where they have no meaning
        if expr.is_scalar:
            return {((self._scalar(expr),), ()): 1}
        return {((), (2 * self._letter(expr),)): 1}

    def _letter(self, expr: Expr) -> int:
        known = self._letters.get(expr)
        if known is None:
            if not isinstance(expr.rows, int | str) or not isinstance(expr.cols, int | str):
                raise Unsuited
            known = self._letters[expr] = len(self._matrices)
            self._matrices.append(expr)
            self._thin += [
                (expr.rows == 1, expr.cols == 1),
                (expr.cols == 1, expr.rows == 1),
            ]
            self._has_thin = self._has_thin or expr.rows == 1 or expr.cols == 1
        return known

    def _scalar(self, atom: Expr | tuple[str, Word]) -> int:
        known = self._numbers.get(atom)
        if known is None:
            known = self._numbers[atom] = len(self._scalars)
            self._scalars.append(atom)
        return known

    # --- arithmetic -------------------------------------------------------------------------------

    def _times(self, left: Form, right: Form, thin: bool) -> Form:
        """Matrix product; also that of a scalar and a matrix.

        Args:
            left: left factor.
            right: right factor.
            thin: whether a dimension of the product or between the factors is 1.
        """
        if len(left) * len(right) > MAX_TERMS:
            raise TooLarge(
                f"the expanded form has over {MAX_TERMS} terms; split the claim into smaller ones"
            )
        if self._tick is not None:
            self._tick()
        thin = thin and self._has_thin
        result: Form = {}
        for (scalars, word), value in left.items():
            for (more, other), factor in right.items():
                both = tuple(sorted(scalars + more)) if scalars and more else scalars or more
                key = self._split(both, word + other) if thin else (both, word + other)
                new = result.get(key, 0) + value * factor
                if new:
                    result[key] = exact(new)
                else:
                    del result[key]
        return result

    def _single(self, word: Word, expr: Expr) -> Form:
        """One word, as the value of an expression."""
        if expr.rows == 1 or expr.cols == 1:
            return {self._split((), word): 1}
        return {((), word): 1}

    def _split(self, scalars: Scalars, word: Word) -> tuple[Scalars, Word]:
        """Take what stands between dimensions 1 out of a word: x (y^T z) w^T = (y^T z) x w^T."""
        thin = self._thin
        joints = [i for i, letter in enumerate(word) if thin[letter][0]]
        if word and thin[word[-1]][1]:
            joints.append(len(word))
        if len(joints) < 2:
            return scalars, word
        pieces = [self._path(word[i:j]) for i, j in pairwise(joints) if j > i]
        return tuple(sorted((*scalars, *pieces))), word[: joints[0]] + word[joints[-1] :]

    def _path(self, word: Word) -> int:
        """The scalar x^T A y, which is y^T A^T x."""
        return self._scalar(("path", min(word, _backwards(word))))

    def _trace(self, form: Form, dim: Dim) -> Form:
        result: Form = {}
        for (scalars, word), value in form.items():
            if word:
                more, factor = self._close(word), value
            elif isinstance(dim, str):
                more, factor = (self._scalar(node("dim", data=dim)),), value
            elif isinstance(dim, int):
                more, factor = (), value * dim
            else:
                raise Unsuited
            key = (tuple(sorted(scalars + more)), ())
            new = result.get(key, 0) + factor
            if new:
                result[key] = exact(new)
            else:
                del result[key]
        return result

    def _close(self, word: Word) -> Scalars:
        """The trace of a word, as scalars."""
        known = self._closed.get(word)
        if known is not None:
            return (known,)
        for i, letter in enumerate(word):
            if self._thin[letter][0]:
                scalars, rest = self._split((), word[i:] + word[:i])
                assert not rest
                return scalars
        known = self._closed[word] = self._scalar(("tr", _least_cycle(word)))
        return (known,)

    def _transposed(self, form: Form) -> Form:
        return {(scalars, _backwards(word)): value for (scalars, word), value in form.items()}

    def _total(self, inside: Expr, expr: Expr) -> Form:
        """The sum of all entries, where it is an inner product."""
        if inside.op == "power" and inside.data == 2:
            left = right = inside.args[0]
        elif inside.op == "times":
            left, right = inside.args
        elif inside.op == "scale":
            whole = self.form(node("total", (inside.args[1],)))
            return self._times(self.form(inside.args[0]), whole, False)
        elif inside.is_scalar:
            return self.form(inside)
        else:
            return self._alone(expr)
        if left.shape != right.shape:
            raise Unsuited
        thin = 1 in left.shape
        turned = self._transposed(self.form(left))
        return self._trace(self._times(turned, self.form(right), thin), left.cols)

    def _reciprocal(self, inside: Expr, expr: Expr) -> Form:
        form = self.form(inside)
        nested = (
            isinstance(atom, Expr) and atom.op == "reciprocal"
            for scalars, _ in form
            for atom in (self._scalars[number] for number in scalars)
        )
        if not form or any(nested):
            raise Unsuited  # the index form knows what is 0 here, and refuses to divide by it
        if list(form) == [((), ())]:
            return {((), ()): exact(1 / Fraction(form[(), ()]))}
        return {((self._scalar(expr),), ()): 1}

    def _inverse(self, inside: Expr) -> Form:
        args = inside.args
        match inside.op:
            case "symbol":
                if not self.setting.kinds_of(str(inside.data)) & {"invertible", "orthogonal"}:
                    raise Unsuited
                name = f"{inside.data}{INVERSE}"
                inverse = node("symbol", (), name, inside.rows, inside.cols)
                return self._single((2 * self._letter(inverse),), inside)
            case "eye":
                return ONE
            case "inv":
                return self.form(args[0])
            case "T":
                return self._transposed(self._inverse(args[0]))
            case "matmul" if args[0].shape == args[1].shape == inside.shape:
                return self._times(self._inverse(args[1]), self._inverse(args[0]), False)
            case _:
                raise Unsuited

    # --- calculus ---------------------------------------------------------------------------------

    def _flow(self) -> Mapping[str, _Image]:
        velocity = self.setting.velocity
        return {name: lambda way=way: self.form(way) for name, way in velocity.items()}

    def _along(self, form: Form, motion: Mapping[str, _Image], tag: object) -> Form:
        """Directional derivative: each moving letter in turn gives way to its motion."""
        result: Form = {}
        for (scalars, word), value in form.items():
            for number in dict.fromkeys(scalars):
                change = self._scalar_change(number, motion, tag)
                if change:
                    rest = list(scalars)
                    rest.remove(number)
                    whole = {(tuple(rest), word): value * scalars.count(number)}
                    _add(result, self._times(change, whole, False), 1)
            _add(result, self._word_change(word, motion), value, scalars)
        return result

    def _word_change(self, word: Word, motion: Mapping[str, _Image]) -> Form:
        result: Form = {}
        for place, letter in enumerate(word):
            moved = self._letter_motion(letter, motion)
            if moved:
                left: Form = {((), word[:place]): 1}
                right: Form = {((), word[place + 1 :]): 1}
                _add(result, self._times(self._times(left, moved, True), right, True), 1)
        return result

    def _letter_motion(self, letter: int, motion: Mapping[str, _Image]) -> Form | None:
        """What a letter moves by; None if it stands still."""
        matrix = self._matrices[letter >> 1]
        if matrix.op != "symbol":
            if not matrix.names.isdisjoint(motion):
                raise Unsuited
            return None
        name = str(matrix.data)
        if name in motion:
            moved = motion[name]()
        elif name.endswith(INVERSE) and name.removesuffix(INVERSE) in motion:
            own: Form = {((), (letter & ~1,)): 1}  # d(X^-1) = -X^-1 dX X^-1
            inner = self._times(own, motion[name.removesuffix(INVERSE)](), True)
            moved = {key: -value for key, value in self._times(inner, own, True).items()}
        else:
            return None
        return self._transposed(moved) if letter & 1 else moved

    def _scalar_change(self, number: int, motion: Mapping[str, _Image], tag: object) -> Form:
        known = self._changes.get((tag, number))
        if known is None:
            known = self._changes[tag, number] = self._new_scalar_change(number, motion, tag)
        return known

    def _new_scalar_change(self, number: int, motion: Mapping[str, _Image], tag: object) -> Form:
        atom = self._scalars[number]
        if isinstance(atom, Expr):
            if atom.op == "scalar":
                return motion[str(atom.data)]() if atom.data in motion else {}
            if atom.op == "dim" or atom.names.isdisjoint(motion):
                return {}
            if atom.op == "reciprocal":  # d(1/p) = -dp / p^2
                inside = self._along(self.form(atom.args[0]), motion, tag)
                return self._times(inside, {((number, number), ()): -1}, False)
            raise Unsuited
        kind, word = atom
        if kind == "path":
            return self._word_change(word, motion)
        result: Form = {}
        for place, letter in enumerate(word):
            moved = self._letter_motion(letter, motion)
            if moved:
                rest: Form = {((), word[place + 1 :] + word[:place]): 1}
                matrix = self._matrices[letter >> 1]
                dim = matrix.cols if letter & 1 else matrix.rows
                _add(result, self._trace(self._times(moved, rest, True), dim), 1)
        return result

    def _gradient(self, form: Form, variable: Expr) -> Form:
        """Frobenius gradient of a scalar form."""
        name = str(variable.data)
        if variable.op == "scalar":
            return self._along(form, {name: lambda: ONE}, ("grad", name))
        result: Form = {}
        slopes: dict[int, Form] = {}
        for (scalars, _), value in form.items():
            for number in dict.fromkeys(scalars):
                if number not in slopes:
                    slopes[number] = self._slope(number, variable)
                if slopes[number]:
                    rest = list(scalars)
                    rest.remove(number)
                    factor = value * scalars.count(number)
                    _add(result, slopes[number], factor, tuple(rest))
        return result

    def _slope(self, number: int, variable: Expr) -> Form:
        """Gradient of a scalar atom: what remains of its word when the variable is taken out."""
        atom, name = self._scalars[number], str(variable.data)
        if isinstance(atom, Expr):
            if name in atom.names:
                raise Unsuited
            return {}
        kind, word = atom
        result: Form = {}
        for place, letter in enumerate(word):
            matrix = self._matrices[letter >> 1]
            if matrix.op != "symbol":
                if name in matrix.names:
                    raise Unsuited
                continue
            before, behind = word[:place], word[place + 1 :]
            # With the word turned so that the variable comes first, f = tr(X rest).
            around = behind + before
            sign = 1
            if (
                matrix.data == f"{name}{INVERSE}"
            ):  # tr(X^-1 R) = -tr(dX X^-1 R X^-1), to first order
                around, sign = (letter, *around, letter), -1
            elif matrix.data != name:
                continue
            if not letter & 1:
                around = _backwards(around)
            if kind == "path" or self._thin[letter] != (False, False):
                key = self._split((), around)
            else:
                key = (), around
            _add(result, {key: sign}, 1)
        return result

    def _substituted(self, form: Form) -> Form:
        """The value after one simultaneous step."""
        result: Form = {}
        for (scalars, word), value in form.items():
            term: Form = {((), ()): value}
            for number in scalars:
                term = self._times(term, self._updated_scalar(number), False)
            whole = self._updated_word(word)
            _add(result, self._times(term, whole, False), 1)
        return result

    def _updated_word(self, word: Word) -> Form:
        result = ONE
        for letter in word:
            matrix = self._matrices[letter >> 1]
            if matrix.op != "symbol" and not matrix.names.isdisjoint(self.setting.update):
                raise Unsuited
            name = str(matrix.data)
            if name.removesuffix(INVERSE) != name and name.removesuffix(INVERSE) in (
                self.setting.update
            ):
                raise Unsuited
            image: Form = {((), (letter,)): 1}
            if matrix.op == "symbol" and name in self.setting.update:
                moved = self.form(self.setting.update[name])
                image = self._transposed(moved) if letter & 1 else moved
            result = self._times(result, image, True)
        return result

    def _itself(self, number: int) -> Form:
        return {((number,), ()): 1}

    def _updated_scalar(self, number: int) -> Form:
        atom = self._scalars[number]
        known = self._changes.get(("after", number))
        if known is not None:
            return known
        if isinstance(atom, Expr):
            name = str(atom.data)
            if atom.op == "scalar" and name in self.setting.update:
                known = self.form(self.setting.update[name])
            elif atom.op == "dim" or atom.names.isdisjoint(self.setting.update):
                known = self._itself(number)
            else:
                raise Unsuited
        else:
            kind, word = atom
            known = self._updated_word(word)
            if kind == "tr":
                first = self._matrices[word[0] >> 1]
                known = self._trace(known, first.cols if word[0] & 1 else first.rows)
        self._changes["after", number] = known
        return known

    # --- kinds ------------------------------------------------------------------------------------

    def imposed(self, form: Form) -> Form:
        """The form under the linear kinds: S^T = S, K^T = -K, and O^-1 = O^T for orthogonal O."""
        swap: dict[int, tuple[int, int]] = {}
        for number, matrix in enumerate(tuple(self._matrices)):
            if matrix.op != "symbol":
                continue
            name = str(matrix.data)
            base = name.removesuffix(INVERSE)
            kinds = self.setting.kinds_of(base)
            if name != base and "orthogonal" in kinds:
                letter = 2 * self._letter(node("symbol", (), base, matrix.rows, matrix.cols))
                swap[2 * number] = (letter + 1, 1)
                swap[2 * number + 1] = (letter, 1)
            elif kinds & {"symmetric", "diagonal"}:
                swap[2 * number + 1] = (2 * number, 1)
            elif "skew" in kinds:
                swap[2 * number + 1] = (2 * number, -1)
        if not swap:
            return form
        result: Form = {}
        for (scalars, word), value in form.items():
            spelled, sign = _respelled(word, swap)
            term: Form = {((), spelled): value * sign}
            for number in scalars:
                term = self._times(term, self._kind_scalar(number, swap), False)
            _add(result, term, 1)
        return result

    def _kind_scalar(self, number: int, swap: Mapping[int, tuple[int, int]]) -> Form:
        atom = self._scalars[number]
        if isinstance(atom, Expr):
            return {((number,), ()): 1}
        kind, word = atom
        spelled, sign = _respelled(word, swap)
        turned, other = _respelled(_backwards(spelled), swap)
        if kind == "path":
            best = min(spelled, turned)
            if spelled == turned and other < 0:
                return {}
            return {((self._scalar((kind, best)),), ()): sign * (other if best != spelled else 1)}
        one, two = _least_rotation(spelled), _least_rotation(turned)
        if one == two and other < 0:
            return {}
        if one <= two:
            return {((self._scalar((kind, one)),), ()): sign}
        return {((self._scalar((kind, two)),), ()): sign * other}

    # --- to the index form ------------------------------------------------------------------------

    def gap(self, left: Expr, right: Expr, r: Index, c: Index, table: Table) -> Poly:
        """Entry (r, c) of left - right in canonical index form; 0 where the words prove it.

        Raises:
            Unsuited: something is left over that is not made of words alone.
            TooLarge: too many terms.
        """
        form = dict(self.form(left))
        _add(form, self.form(right), -1)
        return self.entry(form, r, c, table)

    def entry(self, form: Form, r: Index, c: Index, table: Table) -> Poly:
        """Entry (r, c) of a form in canonical index form, the linear kinds imposed on the words.

        Raises:
            Unsuited: it is not made of words alone.
        """
        return self.poly(self.imposed(form), r, c, table) if form else {}

    def poly(self, form: Form, r: Index, c: Index, table: Table) -> Poly:
        """Entry (r, c) of a form in canonical index form.

        Args:
            form: the form.
            r: row index: a label (< 0), or 0 where there is one row.
            c: column index.
            table: of the index form.

        Raises:
            Unsuited: a letter is not a symbol.
        """
        if not isinstance(r, int) or not isinstance(c, int):
            raise Unsuited
        result: Poly = {}
        for (scalars, word), value in form.items():
            term = {(): value}
            for number in scalars:
                term = table.multiply(term, self._scalar_poly(number, table))
            if word:
                term = table.multiply(term, self._word_poly(word, r, c, table))
            elif r < 0 and c < 0:
                term = table.multiply(term, table.delta(r, c))
            table.add_to(result, term)
        return result

    def _scalar_poly(self, number: int, table: Table) -> Poly:
        atom = self._scalars[number]
        if isinstance(atom, Expr):
            match atom.op:
                case "scalar":
                    return table.of(Scalar(str(atom.data)))
                case "dim":
                    return table.of(Dimension(str(atom.data)))
                case "reciprocal":
                    return table.reciprocal(self.poly(self.form(atom.args[0]), 0, 0, table))
                case _:
                    raise Unsuited
        kind, word = atom
        if kind == "path":
            return self._word_poly(word, 0, 0, table)
        count = len(word)
        factors = [self._factor(letter, i, (i + 1) % count) for i, letter in enumerate(word)]
        return _product(table, factors)

    def _word_poly(self, word: Word, r: int, c: int, table: Table) -> Poly:
        if len(word) == 1:
            matrix = self._matrices[word[0] >> 1]
            if matrix.rows == 1 and matrix.cols == 1:
                return table.of(Entry(str(matrix.data), 0, 0))
        last = len(word) - 1
        factors: list[Factor] = []
        for i, letter in enumerate(word):
            factors.append(self._factor(letter, r if i == 0 else i - 1, c if i == last else i))
        return _product(table, factors)

    def _factor(self, letter: int, i: int, j: int) -> Factor:
        matrix = self._matrices[letter >> 1]
        if matrix.op != "symbol":
            raise Unsuited
        if letter & 1:
            i, j = j, i
        ends = ((matrix.rows, i), (matrix.cols, j))
        fixed = tuple(0 if dim == 1 else -1 for dim, _ in ends)
        over = tuple(str(dim) for dim, _ in ends if dim != 1)
        return Head(str(matrix.data), fixed, over), tuple(at for dim, at in ends if dim != 1)


def _product(table: Table, factors: list[Factor]) -> Poly:
    sign, mono = table.product(factors)
    return {mono: sign} if sign else {}


def _constant(expr: Expr) -> Form:
    assert isinstance(expr.data, Fraction)
    return {((), ()): exact(expr.data)} if expr.data else {}


def _add(target: Form, source: Form, factor: Coefficient, scalars: Scalars = ()) -> None:
    """In place, target += factor * scalars * source."""
    for key, value in source.items():
        if scalars:
            key = tuple(sorted(key[0] + scalars)), key[1]
        new = target.get(key, 0) + factor * value
        if new:
            target[key] = exact(new)
        else:
            target.pop(key, None)


def _backwards(word: Word) -> Word:
    """The transpose of a word."""
    return tuple([letter ^ 1 for letter in reversed(word)])


def _respelled(word: Word, swap: Mapping[int, tuple[int, int]]) -> tuple[Word, int]:
    sign = 1
    letters: list[int] = []
    for letter in word:
        new, factor = swap.get(letter, (letter, 1))
        letters.append(new)
        sign *= factor
    return tuple(letters), sign


def _least_rotation(word: Word) -> Word:
    least = min(word)
    return min(word[i:] + word[:i] for i, letter in enumerate(word) if letter == least)


def _least_cycle(word: Word) -> Word:
    """The name of a trace: tr(A B) = tr(B A) = tr(B^T A^T)."""
    return min(_least_rotation(word), _least_rotation(_backwards(word)))

"""Single modes in closed form: two aligned factors (M4, M5, D9) and N balanced ones (M14).

Everything here is one number a mode, and accurate at every time, infinity included.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from nonmixing.errors import InputError, NoClosedForm, ShapeError
from nonmixing.problem import Array, real_array

TERMS: Final = 56
"""Terms of a power series at 1/2 at most, so that the rest is below 2⁻⁵³."""

MOST_STEPS: Final = 200
"""Steps of a root search; halving the logarithm of the bracket alone takes about 70."""

STILL: Final = 4 * float(np.finfo(np.float64).eps)
"""The relative step at which a root search ends."""


def mode_factors(
    s: ArrayLike, a: ArrayLike, b: ArrayLike, times: ArrayLike, *, decay: float = 0.0
) -> tuple[Array, Array]:
    """The factors of aligned modes: a' = (s − ab) b − d a, b' = (s − ab) a − d b.

    With c = ab, λ = a² − b² and decay d = 0, where λ is constant, this is at once

    - M4, λ = 0: c = s / (1 + (s/c₀ − 1) e^{−2st}) for c₀ > 0 and s > 0; the same with e^{+2st} for
      c₀ < 0; c = c₀ / (1 + 2|c₀|t) for s = 0 [the sigmoid of Saxe et al. 2014, who call the mode u
      and keep a time constant τ, which is 1 here];
    - M5, λ ≠ 0: c = |λ| x / (1 − x²) with x' = s − |λ| x − s x², a Möbius function of e^{−Kt},
      K = √(4s² + λ²) [Saxe et al. 2014, their hyperbola, with x = tanh(θ/2); Tarmoun et al. 2021],
      where x is b/a or a/b, whichever is below 1 in size.

    Those expressions lose digits where λ is small or x near 1. In p = (a + b)/√2, q = (a − b)/√2,
    of which p q = λ/2 stays constant, the same solution is a quotient of sums of positive terms:

        p(t) = p₀ √(D/N),   q(t) = q₀ √(N/D),
        N = e^{−Kt} + p₀² h + g²,   D = 1 + q₀² h + g² e^{−Kt},
        h = (1 − e^{−Kt})/σ,   g = |p₀ q₀|/σ,   σ = K/2 + s,

    so it is accurate to rounding in p and q (q/p is a Möbius function of e^{−Kt}), hence in the
    larger of a and b. The smaller is the larger times x; see `_ratio`.

    With decay, λ is not constant, and there is a closed form where p or q is 0 (ledger D9): p alone
    has p' = (s − d − p²/2) p, q alone q' = (−s − d − q²/2) q.

    Args:
        s: Singular values, shape (k,), not negative.
        a: Shape (k,), at time 0.
        b: Shape (k,), at time 0.
        times: Shape (K,), not negative; infinity gives the limit.
        decay: The weight decay d, not negative.

    Returns:
        a(t) and b(t), each of shape (K, k).

    Raises:
        NoClosedForm: Decay, and a mode with a² ≠ b².
    """
    value, t = np.asarray(s, np.float64), np.asarray(times, np.float64)[:, None]
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    p, q = (first + second) / np.sqrt(2), (first - second) / np.sqrt(2)
    if decay > 0:
        if np.any((p != 0) & (q != 0)):
            raise NoClosedForm(
                f"a and b: with decay {decay:.3g} a mode has a closed form where |a| = |b|; a² − b²"
                f" is up to {np.abs(2 * p * q).max():.3g} here; call integrate"
            )
        p_t, q_t = _single(p, value - decay, t), _single(q, -value - decay, t)
        return (p_t + q_t) / np.sqrt(2), (p_t - q_t) / np.sqrt(2)
    p_t, q_t = _hyperbola(value, p, q, t)
    swapped = np.abs(second) > np.abs(first)
    sign = np.where(swapped, -1.0, 1.0)
    longer: Array = (p_t + sign * q_t) / np.sqrt(2)
    difference: Array = (p_t - sign * q_t) / np.sqrt(2)
    less, more = np.where(swapped, first, second), np.where(swapped, second, first)
    x, known = _ratio(value, 2 * np.abs(p * q), less, more, t)
    shorter: Array = np.where(known, longer * x, difference)
    return np.where(swapped, shorter, longer), np.where(swapped, longer, shorter)


def _single(p: Array, rate: Array, t: Array) -> Array:
    """The solution of p' = (w − p²/2) p: p₀ / √(e^{−2wt} + p₀² ∫₀ᵗ e^{−2wu} du), w of any sign."""
    size = np.abs(rate)
    total = np.where(size > 0, size, 0.0) * np.where(size > 0, t, 0.0)
    fall, mean = np.exp(-total), _held(p * np.sqrt(integrated_decay(2 * size, t)), p)
    growing = rate > 0
    return np.where(growing, p, p * fall) / _positive(
        np.where(growing, np.hypot(fall, mean), np.hypot(1.0, mean))
    )


def _hyperbola(s: Array, p: Array, q: Array, t: Array) -> tuple[Array, Array]:
    """p(t) and q(t) without decay, by the quotients of `mode_factors`; shapes (K, k)."""
    half_rate = np.hypot(s, p * q)
    sigma = half_rate + s
    moving = sigma > 0
    g = np.where(moving, np.abs(p * q) / np.where(moving, sigma, 1.0), 0.0)
    # (1 − e^{−Kt})/σ; at rest, where s = p q = 0, this is t.
    factor = np.where(moving, 2 * half_rate / np.where(moving, sigma, 1.0), 1.0)
    h = factor * integrated_decay(2 * half_rate, t)
    decay = np.exp(-half_rate * np.where(moving, t, 0.0))
    root = np.sqrt(h)
    numerator = np.hypot(np.hypot(decay, _held(p * root, p)), g)
    denominator = np.hypot(np.hypot(1.0, _held(q * root, q)), g * decay)
    # At t = ∞ one of them may be infinite, and the other is finite then: with p q = 0 = s.
    # Where e^{−Kt} underflows and p = 0 the numerator is 0, and p stays 0.
    p_t = np.where(p == 0, 0.0, p * (denominator / _positive(numerator)))
    q_t = np.where(q == 0, 0.0, q * (numerator / denominator))
    return p_t, q_t


def _ratio(s: Array, lam: Array, shorter: Array, longer: Array, t: Array) -> tuple[Array, Array]:
    """x(t) = shorter/longer of two aligned factors, and where it is to be used; shapes (K, k).

    With κ = K/2 and e = e^{−2κt}, the columns of e^{−κt} exp(t [[|λ|/2, s], [s, −|λ|/2]]) give

        x(t) = (s (1 − e) + ((κ − |λ|/2) + (κ + |λ|/2) e) x₀)
             / ((κ + |λ|/2) + (κ − |λ|/2) e + s (1 − e) x₀),

    where κ − |λ|/2 = s²/(κ + |λ|/2): for x₀ ≥ 0 a quotient of sums of positive terms. It is not to
    be used for λ = 0, nor where x₀ near −1 makes the denominator cancel; (p − q)/(p + q) is as
    good there, since x is not small but where it passes through zero.
    """
    half = np.hypot(s, lam / 2)
    used = (lam > 0) & (longer != 0)
    upper = np.where(used, half + lam / 2, 1.0)
    lower = s**2 / upper
    total = 2 * half * np.where(half > 0, t, 0.0)
    fall, rise = np.exp(-total), -np.expm1(-total)
    x = shorter / np.where(used, longer, 1.0)
    below = upper + lower * fall + s * rise * x
    used = used & (below > (upper + lower * fall) / 4)
    above = s * rise + (lower + upper * fall) * x
    return above / np.where(used, below, 1.0), used


def integrated_decay(rate: Array, t: Array | float) -> Array:
    """∫₀ᵗ e^{−wu} du = (1 − e^{−wt})/w for rates w ≥ 0 and t from 0 to ∞; t where w = 0."""
    at_rest = rate <= 0
    safe = np.where(at_rest, 1.0, rate)
    return np.where(at_rest, t, -np.expm1(-safe * t) / safe)


def _held(product: Array, factor: Array) -> Array:
    """The product, and 0 where the factor is 0 (0 · ∞ too)."""
    return np.where(factor == 0, 0.0, product)


def _positive(denominator: Array) -> Array:
    """The denominator, and 1 where it is 0."""
    return np.where(denominator > 0, denominator, 1.0)


def depth_modes(s: ArrayLike, c0: ArrayLike, depth: int, times: ArrayLike) -> Array:
    """The modes of N aligned balanced factors: c' = N c^{2 − 2/N} (s − c), c ≥ 0 (ledger M14).

    Source: Saxe, McClelland, Ganguli 2014, section 2; Arora et al. 2018, theorem 1, diagonal case.
    N counts the factors (their number of layers, or that less one); every time constant is 1.

    For N = 2 this is M4. Else, with y = (c/s)^{1/N} and τ = s^{2 − 2/N} t, time is known as a
    function of the mode,

        τ = H(y) − H(y₀),  H(y) = −y^{2−N}/(N − 2) + (y²/2) F(2/N, y^N)       for y < 1,
        τ = G(v) − G(v₀),  v = 1/y,  G(v) = v^{2N−2}/(2N − 2) F(2 − 2/N, v^N)  for y > 1,

    F(b, x) = ₂F₁(1, b; b + 1; x), and is inverted mode by mode by a bracketed Newton search. The
    mode follows to rounding times its sensitivity to the clock, which is large where a plateau much
    longer than the rise ends: d log c/d log t = N τ y^{N−2} (1 − y^N).

    Args:
        s: Singular values, shape (k,), not negative.
        c0: Modes at time 0, shape (k,), not negative.
        depth: The number of factors N, at least 2.
        times: Shape (K,), not negative; infinity gives the limit.

    Returns:
        c(t), shape (K, k).

    Raises:
        InputError: A depth below 2, or negative values, modes or times.
        ShapeError: s and c0 of different lengths.
    """
    value, start, grid, n = _depth_input(s, c0, depth, times)
    found = np.empty((len(grid), len(value)))
    for k, (one, c) in enumerate(zip(value, start, strict=True)):
        if one == 0 or c == 0 or c == one or n == 2:
            found[:, k] = _algebraic_mode(float(one), float(c), n, grid)
        elif c < one:
            found[:, k] = _rising_mode(float(one), float(c), n, grid)
        else:
            found[:, k] = _falling_mode(float(one), float(c), n, grid)
    return found


def _depth_input(
    s: ArrayLike, c0: ArrayLike, depth: int, times: ArrayLike
) -> tuple[Array, Array, Array, int]:
    """The arguments of `depth_modes`, checked."""
    value, start = real_array("s", s, 1), real_array("c0", c0, 1)
    grid = np.asarray(times, np.float64)
    if value.shape != start.shape:
        raise ShapeError(f"c0: got {len(start)} modes; {len(value)} are expected, one for each s")
    for name, array in (("s", value), ("c0", start)):
        if (array < 0).any():
            raise InputError(f"{name}: got {array.min():.6g}; values of at least 0 are expected")
    if grid.ndim != 1 or np.isnan(grid).any() or (grid < 0).any():
        raise InputError("times: one axis of numbers from 0 on is expected")
    try:
        n = operator.index(depth)
    except TypeError:
        n = 0
    if n < 2:
        raise InputError(f"depth: got {depth!r}; a whole number of at least 2 is expected")
    return value, start, grid, n


def _algebraic_mode(s: float, c: float, n: int, t: Array) -> Array:
    """The modes of depth N that have a formula: at rest, without a target, or N = 2."""
    if c in (0.0, s):
        return np.full(t.shape, c)
    if s == 0:
        power = 2 - 2 / n
        return c * (1 + n * power * c**power * t) ** (-1 / power)
    fall = np.exp(-2 * s * t)
    return s / (-np.expm1(-2 * s * t) + (s / c) * fall)


def _rising_mode(s: float, c: float, n: int, t: Array) -> Array:
    """0 < c₀ < s and N ≥ 3: y is searched for, from y₀ up to 1."""

    def time(y: Array) -> Array:
        return y ** (2 - n) / (2 - n) + y**2 / 2 * hypergeometric(2 / n, y, n)

    y = _searched(time, s ** (2 - 2 / n) * t, (c / s) ** (1 / n), n, 2 - n)
    return np.where(t == 0, c, s * y**n)


def _falling_mode(s: float, c: float, n: int, t: Array) -> Array:
    """c₀ > s > 0 and N ≥ 3: v = 1/y is searched for, from v₀ up to 1."""

    def time(v: Array) -> Array:
        return v ** (2 * n - 2) / (2 * n - 2) * hypergeometric(2 - 2 / n, v, n)

    v = _searched(time, s ** (2 - 2 / n) * t, (s / c) ** (1 / n), n, 2 * n - 2)
    return np.where(t == 0, c, s * v**-n)


def _searched(
    time: Callable[[Array], Array], clock: Array, first: float, n: int, power: int
) -> Array:
    """Where between `first` and 1 the increasing `time` is `clock` later than at `first`.

    Its derivative is z^{power − 1}/(1 − z^N). So it is nearly linear in z^power early and in
    log(1 − z^N) late, and Newton's steps are taken in these; one that leaves the bracket is
    replaced by the geometric mean.
    """
    last = 1 - float(np.finfo(np.float64).eps)
    low, high = np.full(clock.shape, first), np.full(clock.shape, last)
    if first >= last:
        return low
    ends = time(np.array([first, last]))
    z, settled = np.full(clock.shape, first), clock >= ends[1] - ends[0]
    for _ in range(MOST_STEPS):
        residual = time(z) - ends[0] - clock
        low, high = np.where(residual <= 0, z, low), np.where(residual >= 0, z, high)
        nearer = _newton(z, residual, n, power)
        inside = (nearer >= low) & (nearer <= high)
        nearer = np.where(inside, nearer, np.sqrt(low * high))
        moved, z = np.abs(nearer - z), nearer
        if (settled | (moved <= STILL * z)).all():
            break
    return np.where(settled, 1.0, z)


def _newton(z: Array, residual: Array, n: int, power: int) -> Array:
    """Newton's step in z^power or log(1 − z^N); not a number where that leaves the domain."""
    gap = -np.expm1(n * np.log(z))
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        # (1 − z^N)/z^{power − 1} times the derivative of the variable, divided by the variable.
        early = z * (1 - residual * gap * power / z**power) ** (1 / power)
        late = np.exp(np.log1p(-gap * np.exp(residual * n * z ** (n - power))) / n)
    return np.where(gap > 0.5, early, late)


def hypergeometric(b: float, z: Array, n: int) -> Array:
    """F(b, x) = ₂F₁(1, b; b + 1; x) at x = zⁿ in (0, 1), b > 0, to rounding.

    By its power series up to 1/2, and beyond by the one in 1 − x [Abramowitz and Stegun 15.3.10].
    SciPy's `hyp2f1` has no correct digit for many of these near x = 1.
    """
    x, gap = z**n, -np.expm1(n * np.log(z))
    near, far = np.minimum(gap, 0.5), np.minimum(x, 0.5)
    count = np.arange(TERMS)
    series = np.polynomial.polynomial.polyval(far, b / (b + count))
    rising = np.cumprod(np.concatenate([[1.0], (b + count[:-1]) / (count[:-1] + 1)]))
    jumps = digamma(count + 1.0) - digamma(b + count)
    logarithmic = b * (
        np.polynomial.polynomial.polyval(near, rising * jumps)
        - np.log(near) * np.polynomial.polynomial.polyval(near, rising)
    )
    return np.where(x <= 0.5, series, logarithmic)

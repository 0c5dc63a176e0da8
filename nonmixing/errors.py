"""The exceptions of the package.

Each message is one line that names the argument, what came, what was expected and what to do. All
are `ValueError`s, so that callers who know nothing of this package can still catch them; the
command line prints the line and exits with 2.
"""


class NonmixingError(ValueError):
    """Base of everything that this package raises on purpose."""


class InputError(NonmixingError):
    """An argument, a file or an expression that cannot be used as it is."""


class ShapeError(InputError):
    """Operands whose dimensions do not fit each other."""


class ClaimFileError(InputError):
    """A claim file that cannot be read as one."""


class NoClosedForm(NonmixingError):
    """No exact solution holds for this start; the message says why and what to call instead."""


class Disagreement(RuntimeError):
    """Two independent routes of the prover disagree: a bug of this package, never of the claim."""


class MissingExtra(NonmixingError):
    """A feature whose optional dependency is missing; the message says which extra to install."""

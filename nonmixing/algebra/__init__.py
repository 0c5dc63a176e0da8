"""The prover: decides polynomial identities between matrix expressions for all dimensions at once.

Knows nothing about learning. Importing it loads neither NumPy nor SymPy.
"""

from nonmixing.algebra.claimfile import load_claims
from nonmixing.algebra.decide import DEFAULT_TIMEOUT, Decision, decide
from nonmixing.algebra.refute import Counterexample
from nonmixing.algebra.setting import Equation, Setting, Statement
from nonmixing.errors import Disagreement

__all__ = [
    "DEFAULT_TIMEOUT",
    "Counterexample",
    "Decision",
    "Disagreement",
    "Equation",
    "Setting",
    "Statement",
    "decide",
    "load_claims",
]

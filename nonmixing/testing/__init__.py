"""What a theorist puts in their own tests: assertions, and strategies for hypothesis.

The strategies are in `nonmixing.testing.strategies` and need hypothesis. Each name below is loaded
when it is first used; none of them imports torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nonmixing.testing.agreement import assert_agree as assert_agree
    from nonmixing.testing.assertions import assert_conserved as assert_conserved
    from nonmixing.testing.assertions import assert_gradient as assert_gradient
    from nonmixing.testing.assertions import assert_proved as assert_proved
    from nonmixing.testing.assertions import assert_refuted as assert_refuted
    from nonmixing.testing.calls import InputChanged as InputChanged
    from nonmixing.testing.calls import NotDeterministic as NotDeterministic
    from nonmixing.testing.calls import NotFinite as NotFinite
    from nonmixing.testing.calls import WrongResult as WrongResult
    from nonmixing.testing.calls import WrongShape as WrongShape
    from nonmixing.testing.implements import Implementation as Implementation
    from nonmixing.testing.implements import assert_implements as assert_implements

_HOME = {
    "Implementation": "implements",
    "InputChanged": "calls",
    "NotDeterministic": "calls",
    "NotFinite": "calls",
    "WrongResult": "calls",
    "WrongShape": "calls",
    "assert_agree": "agreement",
    "assert_conserved": "assertions",
    "assert_gradient": "assertions",
    "assert_implements": "implements",
    "assert_proved": "assertions",
    "assert_refuted": "assertions",
}

__all__ = [
    "Implementation",
    "InputChanged",
    "NotDeterministic",
    "NotFinite",
    "WrongResult",
    "WrongShape",
    "assert_agree",
    "assert_conserved",
    "assert_gradient",
    "assert_implements",
    "assert_proved",
    "assert_refuted",
]


def __getattr__(name: str) -> object:
    """Load a name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

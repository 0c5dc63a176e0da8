"""Settle claims about how factored models learn: by proof, by simulation, by training.

The names below are all that most users need. Each is loaded when it is first used, so that proving
needs no SciPy, and plotting or training costs nothing until it is asked for.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nonmixing import plot as plot
    from nonmixing.algebra.sympy_door import norm2 as norm2
    from nonmixing.claim import Claim as Claim
    from nonmixing.claim import prove as prove
    from nonmixing.compare import compare as compare
    from nonmixing.dynamics.exact import solve as solve
    from nonmixing.dynamics.integrate import integrate as integrate
    from nonmixing.dynamics.trajectory import Trajectory as Trajectory
    from nonmixing.flow import GradientFlow as GradientFlow
    from nonmixing.flow import gradient as gradient
    from nonmixing.independence import independence as independence
    from nonmixing.networks.train import train as train
    from nonmixing.problem import BilinearProblem as BilinearProblem
    from nonmixing.problem import Factors as Factors
    from nonmixing.problem import aligned as aligned
    from nonmixing.problem import balanced as balanced
    from nonmixing.problem import gaussian as gaussian
    from nonmixing.sweep import sweep as sweep
    from nonmixing.verdict import Verdict as Verdict

__version__ = "0.1.0"

_HOME = {
    "BilinearProblem": "problem",
    "Claim": "claim",
    "Factors": "problem",
    "GradientFlow": "flow",
    "Trajectory": "dynamics.trajectory",
    "Verdict": "verdict",
    "aligned": "problem",
    "balanced": "problem",
    "compare": "compare",
    "gaussian": "problem",
    "gradient": "flow",
    "independence": "independence",
    "integrate": "dynamics.integrate",
    "norm2": "algebra.sympy_door",
    "plot": "plot",
    "prove": "claim",
    "solve": "dynamics.exact",
    "sweep": "sweep",
    "train": "networks.train",
}

__all__ = [
    "BilinearProblem",
    "Claim",
    "Factors",
    "GradientFlow",
    "Trajectory",
    "Verdict",
    "aligned",
    "balanced",
    "compare",
    "gaussian",
    "gradient",
    "independence",
    "integrate",
    "norm2",
    "plot",
    "prove",
    "solve",
    "sweep",
    "train",
]


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOME[name]}")
    if name == _HOME[name] and not hasattr(module, name):
        return module
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


class _Package(ModuleType):
    """The package's own type: importing a module leaves the function of the same name.

    Importing a submodule binds it as an attribute of the package, which would put the module in the
    place of the function, depending on what was imported first.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("compare", "independence", "sweep") and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[object, ...]:
        """By name, as any module: functions of a user's script that mention it go to processes."""
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package

"""Which mechanisms the commands offer, and which options each of them needs and may have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from tempriv.errors import require

if TYPE_CHECKING:
    from tempriv.mechanisms.protocol import Mechanism
    from tempriv.units import Unit

Noise = Literal["laplace", "gaussian", "either"]

ANY = ("event", "window", "series")
UNITS = {
    "event": "--unit event",
    "window": "--unit window --window W",
    "series": "--unit series --length N",
}
COUNTED = {"series": "person"}  # what whole series are called where people are counted


@dataclass(frozen=True)
class Recipe:
    """How options become a mechanism.

    ``kind`` is its class and ``budget`` the field that the budget goes to, where that is not rho.
    Gaussian noise is bought by rho, or by epsilon with delta.
    """

    kind: str
    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()
    units: tuple[str, ...] = ANY
    noise: Noise = "laplace"
    budget: str = "epsilon"
    counts: bool = True  # whether counts of people can go through it


def _stream(kind: str) -> Recipe:
    return Recipe(kind, ("bounds",), ("resolution",), ("event", "window"))


RECIPES: dict[str, Recipe] = {
    "laplace": Recipe("Laplace", ("bounds",), ("resolution", "per_column")),
    "gaussian": Recipe("Gaussian", ("bounds",), ("resolution", "per_column"), noise="gaussian"),
    "randomized-response": Recipe(
        "RandomizedResponse", ("categories",), ("per_column",), counts=False
    ),
    "memoized-response": Recipe(
        "MemoizedResponse",
        ("categories",),
        ("epsilon_instant",),
        budget="epsilon_forever",
        counts=False,
    ),
    "planar-laplace": Recipe(
        "PlanarLaplace", ("origin", "metres"), ("resolution",), ("event",), counts=False
    ),
    "sparse-vector": Recipe(
        "SparseVector", ("bounds", "threshold", "alerts"), ("resolution",), ("series",)
    ),
    "running-count": Recipe(
        "RunningCount", ("bounds",), ("horizon", "method", "resolution"), noise="either"
    ),
    "uniform-budget": _stream("UniformBudget"),
    "sample-once": _stream("SampleOnce"),
    "budget-distribution": _stream("BudgetDistribution"),
    "budget-absorption": _stream("BudgetAbsorption"),
    "fast": Recipe("Fast", ("bounds", "samples", "wander"), ("resolution",), ("series",)),
    "fourier": Recipe(
        "FourierPerturbation",
        ("bounds", "coefficients"),
        ("horizon", "resolution"),
        noise="either",
    ),
}
FIELDS = {"alerts": "most", "resolution": "grid"}
"""The fields that options fill, where they have another name."""

OPTIONS = sorted({name for one in RECIPES.values() for name in (*one.needs, *one.takes)})


def option(name: str) -> str:
    return "--" + name.replace("_", "-")


def require_fits(name: str, given: dict[str, Any]) -> Recipe:
    """The recipe of a mechanism, if it goes with these options."""
    require(name in RECIPES, f"--mechanism {name}: must be one of {', '.join(RECIPES)}")
    recipe = RECIPES[name]
    for one in OPTIONS:
        there = given.get(one) not in (None, False)
        require(there or one not in recipe.needs, f"--mechanism {name} needs {option(one)}")
        known = one in (*recipe.needs, *recipe.takes)
        require(known or not there, f"{option(one)}: not for --mechanism {name}")
    return recipe


def require_unit(name: str, unit: str | None) -> None:
    """Refuse a unit that is not for this mechanism; if none is named, it has to have its own."""
    allowed = RECIPES[name].units
    unit = "event" if unit is None and not _has_own_unit(RECIPES[name]) else unit
    require(unit is None or unit in UNITS, f"--unit {unit}: must be event, window or series")
    require(
        unit is None or unit in allowed,
        f"--mechanism {name} needs {' or '.join(UNITS[one] for one in allowed)}",
    )


def _has_own_unit(recipe: Recipe) -> bool:
    from tempriv import mechanisms

    own = [one for one in fields(getattr(mechanisms, recipe.kind)) if one.name == "unit"]
    return own[0].default_factory is not MISSING


def require_counts(name: str, unit: str) -> None:
    """Refuse mechanisms that counts of people cannot go through, or not for this unit."""
    require(name in RECIPES, f"--mechanism {name}: must be one of {', '.join(counting())}")
    recipe = RECIPES[name]
    require(recipe.counts, f"--mechanism {name}: not for counts; take {', '.join(counting())}")
    allowed = [COUNTED.get(one, one) for one in recipe.units]
    require(
        unit in allowed,
        f"--mechanism {name} needs --unit {' or --unit '.join(allowed)}",
    )


def counting() -> list[str]:
    return [name for name, recipe in RECIPES.items() if recipe.counts]


def require_budget(
    name: str,
    recipe: Recipe,
    epsilon: float | None,
    rho: float | None,
    delta: float | None,
    target_error: float | None,
) -> float | None:
    """The budget that was given; None if it is to be found for an error."""
    gaussian = recipe.noise != "laplace"
    given = [one for one in (epsilon, rho, target_error) if one is not None]
    require(
        len(given) == 1, "give one of --epsilon, --target-error" + (" or --rho" if gaussian else "")
    )
    for one, value in (("--rho", rho), ("--delta", delta)):
        others = [name for name, recipe in RECIPES.items() if recipe.noise != "laplace"]
        require(value is None or gaussian, f"{one}: for --mechanism {' or '.join(others)} only")
    require(rho is None or delta is None, "--delta goes with --epsilon, not with --rho")
    require(
        recipe.noise != "gaussian" or epsilon is None or delta is not None,
        f"--mechanism {name} with --epsilon needs --delta, such as 1e-6; or give the budget as "
        "--rho",
    )
    return None if target_error is not None else given[0]


def maker(
    recipe: Recipe,
    settings: dict[str, Any],
    unit: Unit | None,
    rho: bool,
    delta: float | None,
) -> Callable[[float], Mechanism]:
    """A function from a budget (epsilon, or rho) to the mechanism."""
    from tempriv import mechanisms
    from tempriv.guarantees import rho_for
    from tempriv.units import Event

    kind = getattr(mechanisms, recipe.kind)
    filled = {FIELDS.get(name, name): value for name, value in settings.items()}
    if unit is not None or not _has_own_unit(recipe):
        filled["unit"] = unit or Event()
    by_rho = recipe.noise == "gaussian" or (recipe.noise == "either" and (rho or delta is not None))

    def make(budget: float) -> Mechanism:
        if not by_rho:
            made: Mechanism = kind(**{recipe.budget: budget}, **filled)
            return made
        made = kind(rho=budget if delta is None else rho_for(budget, delta), **filled)
        return made

    return make

"""Which mechanisms the commands offer, and which options each of them needs and may have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from tempriv.errors import require

if TYPE_CHECKING:
    from tempriv.mechanisms.base import Mechanism
    from tempriv.privacy.units import Unit

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
    Gaussian noise is bought by rho, or by epsilon with delta. Of what works on times ``moves`` says
    what it does to them; its own parameters say what is protected.
    """

    kind: str
    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()
    units: tuple[str, ...] = ANY
    noise: Noise = "laplace"
    budget: str = "epsilon"
    counts: bool = True  # whether counts of people can go through it
    moves: str = ""
    over: bool = False  # whether it shares the budget of a mechanism for single values


def _moves(
    kind: str,
    needs: tuple[str, ...],
    takes: tuple[str, ...] = (),
    how: str = "moves readings in time and keeps their values as they are",
) -> Recipe:
    return Recipe(kind, needs, takes, (), counts=False, moves=how)


def _stream(kind: str) -> Recipe:
    return Recipe(kind, ("bounds",), ("resolution",), ("event", "window"))


def _landmarks(kind: str, *takes: str) -> Recipe:
    """Over numbers, categories or places, by which of their options are given."""
    own = ("landmarks_from_values", *takes)
    return Recipe(kind, ("landmarks",), (*OVER, *own), (), counts=False, over=True)


OVER = ("bounds", "categories", "origin", "meters", "resolution", "per_column")

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
        "PlanarLaplace", ("origin", "meters"), ("resolution",), ("event",), counts=False
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
    "pegasus": Recipe(
        "PeGaSus",
        ("bounds",),
        ("smoothing", "theta", "grouping_share", "longest_group", "resolution"),
        ("event", "window"),
    ),
    "pattern-sampling": _stream("PatternSampling"),
    "pattern-ldp": Recipe(
        "PatternLDP",
        ("bounds", "window"),
        ("tolerance", "spread", "resolution"),
        (),
        counts=False,
    ),
    "fourier": Recipe(
        "FourierPerturbation",
        ("bounds", "coefficients"),
        ("horizon", "resolution"),
        noise="either",
    ),
    "backward": _moves("Backward", ("window",)),
    "forward": _moves("Forward", ("window",)),
    "threshold": _moves("Threshold", ("window",), ("free_slots",)),
    "dual-threshold": _moves("DualThreshold", ("window",), ("free_slots",)),
    "block-shuffle": _moves("BlockShuffle", ("block",), ("offset",)),
    "noisy-order": _moves("NoisyOrder", ("window",), ("latency", "order_noise")),
    "sampling-period": _moves(
        "SamplingPeriod",
        ("window", "tau"),
        ("period", "pace", "shift", "late", "interpolation", "clamp", "resolution"),
        "reads values again at a noisy pace",
    ),
    "noisy-curve": Recipe("NoisyCurve", ("bounds", "span"), ("waves", "resolution"), counts=False),
    "noisy-times": _moves(
        "NoisyTimes", ("tau",), ("window", "resolution"), "adds noise to a column of times"
    ),
    "uniform-landmarks": _landmarks("UniformLandmarks", "count"),
    "skip-landmarks": _landmarks("SkipLandmarks"),
    "adaptive-landmarks": _landmarks(
        "AdaptiveLandmarks", "count", "kappa", "increase", "decrease", "least"
    ),
    "split-landmarks": _landmarks("SplitLandmarks", "count", "length"),
    "count-bound-landmarks": _landmarks("CountBoundLandmarks", "count", "count_epsilon", "miss"),
}
FIELDS = {
    "alerts": "most",
    "resolution": "grid",
    "free_slots": "threshold",
    "order_noise": "noise",
    "span": "window",
    "grouping_share": "share",
    "longest_group": "longest",
    "landmarks_from_values": "chosen_from_values",
}
"""The fields that options fill, where they have another name."""

OPTIONS = sorted({name for one in RECIPES.values() for name in (*one.needs, *one.takes)})


def option(name: str) -> str:
    return "--" + name.replace("_", "-")


def require_fits(name: str, given: dict[str, Any]) -> Recipe:
    """The recipe of a mechanism, if it goes with these options."""
    require(name in RECIPES, f"--mechanism {name}: must be one of {', '.join(RECIPES)}")
    recipe = RECIPES[name]
    for one in OPTIONS:
        there = is_given(given.get(one))
        require(there or one not in recipe.needs, f"--mechanism {name} needs {option(one)}")
        # a window is also the unit of some
        # and a length; what it goes with is said there
        known = one in (*recipe.needs, *recipe.takes, "length") or (
            one == "window" and not recipe.moves
        )
        require(
            known or not there, f"{option(one)}: not for --mechanism {name}{_why_not(one, recipe)}"
        )
    return recipe


def is_given(value: Any) -> bool:
    """Whether an option was given; zero is a value like others."""
    return value is not None and value is not False


def _why_not(one: str, recipe: Recipe) -> str:
    """What else to do, where an option looks as if it fitted."""
    in_time = {name for each in RECIPES.values() if each.moves for name in each.needs + each.takes}
    if not recipe.moves or one in in_time:
        return ""
    if one == "threshold" and "free_slots" in recipe.takes:
        return ": it is a value to alert at; the number of slots to choose from is --free-slots"
    return f", which {recipe.moves}"


def require_unit(name: str, unit: str | None) -> None:
    """Refuse a unit that is not for this mechanism; if none is named, it has to have its own."""
    allowed = RECIPES[name].units
    require(
        unit is None or bool(allowed),
        f"--unit {unit}: not for --mechanism {name}, whose own options say what is protected",
    )
    unit = "event" if unit is None and not _has_own_unit(RECIPES[name]) else unit
    require(unit is None or unit in UNITS, f"--unit {unit}: must be event, window or series")
    require(
        unit is None or unit in allowed,
        f"--mechanism {name} needs {' or '.join(UNITS[one] for one in allowed)}",
    )


def _has_own_unit(recipe: Recipe) -> bool:
    from tempriv import mechanisms

    own = [one for one in fields(getattr(mechanisms, recipe.kind)) if one.name == "unit"]
    return not own or own[0].default_factory is not MISSING


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
        # delta also pays for what a stream of noisy times cannot wait for
        late = one == "--delta" and "latency" in recipe.takes
        others = [
            name
            for name, each in RECIPES.items()
            if each.noise != "laplace" or (one == "--delta" and "latency" in each.takes)
        ]
        known = gaussian or late
        require(value is None or known, f"{one}: for --mechanism {' or '.join(others)} only")
    require(
        target_error is None or not recipe.moves,
        f"--target-error: not for --mechanism {name}, which {recipe.moves}; give --epsilon",
    )
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
    from tempriv.privacy.guarantees import rho_for
    from tempriv.privacy.units import Event

    kind = getattr(mechanisms, recipe.kind)
    filled = {FIELDS.get(name, name): value for name, value in settings.items()}
    if recipe.over:
        return _sharing(kind, filled, unit)
    if unit is not None or not _has_own_unit(recipe):
        filled["unit"] = unit or Event()
    if "latency" in recipe.takes and delta is not None:
        require("latency" in filled, f"--delta {delta:g}: goes with --latency, which needs one")
        filled["delta"] = delta
    by_rho = recipe.noise == "gaussian" or (recipe.noise == "either" and (rho or delta is not None))

    def make(budget: float) -> Mechanism:
        if not by_rho:
            made: Mechanism = kind(**{recipe.budget: budget}, **filled)
            return made
        made = kind(rho=budget if delta is None else rho_for(budget, delta), **filled)
        return made

    return make


def _sharing(kind: Any, filled: dict[str, Any], unit: Unit | None) -> Callable[[float], Mechanism]:
    """A scheme over the mechanism for single values whose options were given."""
    from tempriv.mechanisms.value.laplace import Laplace
    from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
    from tempriv.mechanisms.value.randomized_response import RandomizedResponse

    of_values = [name for name in ("bounds", "categories", "origin") if name in filled]
    require(
        len(of_values) == 1,
        "give one of --bounds, for numbers, --categories, or --origin with --meters, for places",
    )
    over: Any = {"bounds": Laplace, "categories": RandomizedResponse, "origin": PlanarLaplace}
    over = over[of_values[0]]
    require(
        (over is PlanarLaplace) == (unit is not None),
        "--origin and --meters go together, for places",
    )
    known = {field.name for field in fields(over)}
    for name in ("grid", "per_column"):
        require(
            name not in filled or name in known,
            f"{option('resolution' if name == 'grid' else name)}: not with {option(of_values[0])}",
        )
    single = {name: filled[name] for name in known if name in filled}
    single |= {} if unit is None else {"unit": unit}
    own = {name: value for name, value in filled.items() if name not in known}
    return lambda budget: kind(over=over(epsilon=budget, **single), **own)

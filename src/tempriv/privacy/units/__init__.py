"""What is protected: executable definitions of who or what may differ between two inputs."""

from tempriv.privacy.units.answers import Answers
from tempriv.privacy.units.base import Example, Pair, Unit, all_units, conversion_factor
from tempriv.privacy.units.contribution import Contribution
from tempriv.privacy.units.distance import WithinDistance
from tempriv.privacy.units.landmarks import Landmarks, Readings
from tempriv.privacy.units.order import BlockSwap, SlotOrigin, Swap
from tempriv.privacy.units.replacement import Event, Person, Replacement, WholeSeries, Window
from tempriv.privacy.units.time import Pace, Timestamps

__all__ = [
    "Answers",
    "BlockSwap",
    "Contribution",
    "Event",
    "Example",
    "Landmarks",
    "Pace",
    "Pair",
    "Person",
    "Readings",
    "Replacement",
    "SlotOrigin",
    "Swap",
    "Timestamps",
    "Unit",
    "WholeSeries",
    "Window",
    "WithinDistance",
    "all_units",
    "conversion_factor",
]

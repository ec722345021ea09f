# written by make generate; do not edit
from tempriv.privacy.units.answers import Answers as Answers
from tempriv.privacy.units.base import Example as Example, Pair as Pair, Unit as Unit, all_units as all_units, conversion_factor as conversion_factor, unit_entries as unit_entries, units_named as units_named
from tempriv.privacy.units.contribution import Contribution as Contribution
from tempriv.privacy.units.distance import WithinDistance as WithinDistance
from tempriv.privacy.units.landmarks import Landmarks as Landmarks, MarkedMoment as MarkedMoment, Readings as Readings
from tempriv.privacy.units.order import BlockSwap as BlockSwap, SlotOrigin as SlotOrigin, Swap as Swap
from tempriv.privacy.units.presence import Presence as Presence
from tempriv.privacy.units.replacement import Event as Event, Person as Person, WholeSeries as WholeSeries, Window as Window
from tempriv.privacy.units.time import Pace as Pace, Timestamps as Timestamps

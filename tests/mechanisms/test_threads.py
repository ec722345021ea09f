"""Threads that release a part of the series each give the bits of one release of all."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute
import pytest

from tempriv import Key, release
from tempriv.mechanisms import registry
from tempriv.privacy.units import Contribution
from tests.support.engines import FIRST, in_order, same, table_of

SERIES = 6


@pytest.mark.parametrize("kind", registry.classes(), ids=lambda kind: kind.__name__)
def test_series_released_by_threads_get_the_bits_of_one_release(kind):
    case = FIRST[kind]
    if isinstance(case.unit, Contribution):
        pytest.skip("counts of groups are columns of one series: there is nothing to divide")
    table, layout = table_of(case, SERIES, 40)
    expected = release(table, case.mechanism, key=Key.from_seed(5), **layout)
    names = sorted(set(table.column("home").to_pylist()))

    def part(mine):
        own = table.filter(pa.compute.is_in(table.column("home"), pa.array(mine)))
        return release(own, case.mechanism, key=Key.from_seed(5), **layout).table

    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(part, [names[i::3] for i in range(3)]))
    same(in_order(pa.concat_tables(found), layout), in_order(expected.table, layout))

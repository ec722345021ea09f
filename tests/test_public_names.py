"""The public names: all there, each once, and loaded only when used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import tempriv
from tempriv.mechanisms import registry
from tempriv.privacy import units
from tests.support.paths import ROOT


def fresh(code: str):
    """What a new interpreter prints as JSON."""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


@pytest.mark.parametrize("name", tempriv.__all__)
def test_every_public_name_resolves(name):
    value = getattr(tempriv, name)
    assert value is not None
    if name != "__version__":
        assert value.__name__ == name
        assert value.__doc__, f"{name} has no docstring"


def test_a_name_has_one_module():
    listed = [name for names in tempriv._PUBLIC.values() for name in names]
    found = [entry.kind for entry in (*registry.entries(), *units.unit_entries())]
    assert set(tempriv._MODULES) == {*listed, *found}
    assert len(tempriv._MODULES) == len(listed) + len(found)


def test_the_generated_files_are_current():
    ran = subprocess.run(
        [sys.executable, ROOT / "tools" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_dir_shows_every_name_once_used():
    for name in tempriv.__all__:
        getattr(tempriv, name)
    assert set(tempriv.__all__) <= set(dir(tempriv))


def test_dir_shows_every_name_before_it_is_used():
    assert set(tempriv.__all__) <= set(
        fresh("import json, tempriv; print(json.dumps(dir(tempriv)))")
    )


def test_a_name_that_is_none_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Laplac'"):
        tempriv.Laplac  # noqa: B018


def test_names_stay_what_they_are_when_modules_are_loaded():
    """A module of the same name as a function would take its place once imported."""
    code = (
        "import importlib, json, pkgutil, tempriv\n"
        "before = {n: repr(getattr(tempriv, n)) for n in tempriv.__all__}\n"
        "for m in pkgutil.walk_packages(tempriv.__path__, 'tempriv.'):\n"
        "    '__main__' in m.name or importlib.import_module(m.name)\n"
        "after = {n: repr(getattr(tempriv, n)) for n in tempriv.__all__}\n"
        "print(json.dumps([n for n in before if before[n] != after[n]]))"
    )
    assert fresh(code) == []


HEAVY = ("numba", "duckdb", "pyarrow", "numpy", "pandas", "polars", "matplotlib", "cryptography")


def test_importing_the_package_loads_nothing_heavy():
    code = "import json, sys, tempriv; print(json.dumps(sorted(sys.modules)))"
    loaded = {name.partition(".")[0] for name in fresh(code)}
    assert not loaded & set(HEAVY)


def test_a_unit_is_loaded_when_it_is_used():
    code = (
        "import json, sys\n"
        "from tempriv.privacy import guarantees\n"
        "guarantees.decode({'is': 'Swap', 'window': 3})\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    package = "tempriv.privacy.units"
    assert [name for name in fresh(code) if name.startswith(package)] == [
        package,
        f"{package}.base",
        f"{package}.order",
    ]


def test_a_unit_that_is_none_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Evnt'"):
        units.Evnt  # noqa: B018


def test_units_and_guarantees_need_no_arrays():
    code = (
        "import json, sys, tempriv\n"
        "tempriv.Guarantee(tempriv.Pure(1.0), tempriv.Window(3)).sentence\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    assert not {name.partition(".")[0] for name in fresh(code)} & set(HEAVY)


def test_star_import_gives_the_public_names():
    code = (
        "import json\nbefore = set(globals())\nfrom tempriv import *\n"
        "print(json.dumps(sorted(set(globals()) - before - {'before'})))"
    )
    assert set(fresh(code)) == set(tempriv.__all__)

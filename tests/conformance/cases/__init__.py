"""Mechanisms with example parameters and what their definitions say, for ``conformance.checks``."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from tests.conformance.case_checks import Case

# every module of this folder: a new mechanism adds one and no line here
_MODULES = [import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)]
CASES: tuple[Case, ...] = tuple(case for module in _MODULES for case in module.CASES)
NAMED = {case.name: case for case in CASES}

"""What an error tells people and programs: its sentence in Python and on the command line."""

from __future__ import annotations

import pickle

import pytest

from tempriv import errors
from tempriv.cli._options import typed_option
from tempriv.errors import BudgetError, TemprivError, UsageError, require


@pytest.mark.parametrize(
    ("message", "python", "command_line"),
    [
        ("give [[step]]", "give step", "give --step"),
        ("by [[grid=index]]", "by grid='index'", "by --grid index"),
        ("with [[force=True]]", "with force=True", "with --force"),
        ("with [[budgets=FILE]]", "with budgets", "with --budgets FILE"),
        ("raise [[max_per_step]]", "raise max_per_step", "raise --max-per-step"),
        ("[[url|store]]: no file", "url: no file", "--store: no file"),
        ("[[x=True|costs=paper]]", "x=True", "--costs paper"),
        ("the list [[1, 2]] stays", "the list [[1, 2]] stays", "the list [[1, 2]] stays"),
        ("epsilon=-1.0: must be > 0", "epsilon=-1.0: must be > 0", "--epsilon -1: must be > 0"),
        ("grid=0.3: must", "grid=0.3: must", "--resolution 0.30: must"),
        ("bounds=5 1: must", "bounds=5 1: must", "--bounds 5 1: must"),
        ("gaps='maybe': must", "gaps='maybe': must", "--gaps maybe: must"),
        ("window=7: derived", "window=7: derived", "window=7: derived"),
        ("unit=Event(): must", "unit=Event(): must", "unit=Event(): must"),
    ],
)
def test_python_shows_arguments_and_the_command_line_options(message, python, command_line):
    typed = ["--epsilon", "-1", "--resolution", "0.30", "--bounds=5,1"]
    typed += ["--gaps", "maybe", "--window", "8"]
    error = TemprivError(message)
    assert str(error) == python
    assert error.for_command_line(typed_option(typed)) == command_line


def test_every_kind_of_error_has_a_code_of_its_own():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    kinds = [kind for kind in kinds if issubclass(kind, TemprivError)]
    assert len({kind.default_code for kind in kinds}) == len(kinds) == 7


def test_a_program_reads_the_code_and_the_values():
    with pytest.raises(UsageError) as caught:
        require(False, "window=0: must be >= 1")
    assert (caught.value.code, caught.value.parameters) == ("usage", {"window": "0"})
    error = BudgetError("too much; see [[dataset]]", code="spent", left=0.5)
    same = pickle.loads(pickle.dumps(error))
    assert (same.code, same.parameters, str(same)) == ("spent", {"left": 0.5}, str(error))
    assert same.message == error.message

"""Fixtures that several test files use."""

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tempriv.cli.app import app, main
from tempriv.ledger.ledger import Ledger

NOT_RUN = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[NOT_RUN] = Counter()


# with one conformance check of each mechanism: what is run after every change
QUICK = {
    *("test_architecture.py", "test_public_names.py", "test_errors.py", "test_guarantees.py"),
    *("test_spec.py", "test_cli.py", "test_python_api.py", "test_keys.py", "test_sparse.py"),
    "test_documented.py",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name in QUICK:
            item.add_marker(pytest.mark.quick)


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("services"):
            item.config.stash[NOT_RUN][item.path.name] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:  # one of several processes: the first one tells
        output["services"] = dict(session.config.stash[NOT_RUN])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    # every process leaves out the same ones
    node.config.stash[NOT_RUN] |= Counter(getattr(node, "workeroutput", {}).get("services", {}))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    left = config.stash[NOT_RUN]
    if left:
        told = ", ".join(f"{count} of {name}" for name, count in sorted(left.items()))
        terminalreporter.write_line(f"service tests not run (make test-services runs them): {told}")


@pytest.fixture(scope="session", autouse=True)
def the_commands_are_read_once() -> Iterator[None]:
    """Typer reads all commands anew at every call, a tenth of a second each time; here once."""
    real, read = typer.main.get_command, {}

    def get_command(asked: typer.Typer) -> Any:
        if asked is not app:
            return real(asked)
        groups = [app, *(group.typer_instance for group in app.registered_groups)]
        callbacks = [command.callback for group in groups for command in group.registered_commands]
        # the options of a mechanism are in the signature of the commands that take one
        names = tuple((each, str(inspect.signature(each))) for each in callbacks)
        if names not in read:
            read[names] = real(asked)
        return read[names]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", get_command)
        yield


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.create(tmp_path / "ledger.sqlite") as opened:
        yield opened


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[Any, str, str]]:
    """Run a command in an empty home; gives (status, standard output, standard error)."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def call(*words: Any) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["tempriv", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return ended.value.code or 0, out, err

    return call


@pytest.fixture(params=["coarse", pytest.param("as they are", marks=pytest.mark.long)])
def pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every picture of a study is drawn; each time without fitting its parts and in few dots."""
    from matplotlib.figure import Figure

    real = Figure.savefig

    def savefig(self: Figure, file: Any, *, format: str, dpi: int) -> None:
        self.set_layout_engine("none")
        real(self, file, format=format, dpi=dpi // 6)

    if request.param == "coarse":
        monkeypatch.setattr(Figure, "savefig", savefig)

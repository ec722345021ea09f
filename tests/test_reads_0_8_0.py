"""Files that 0.8.0 wrote are read: ledgers, releases, streams, stores and devices' homes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tempriv.mechanisms import registry
from tests.support import behavior, kept
from tests.support.behavior import Clock, Service, done, facts, internal, run, serving, told
from tests.support.write_fixtures import FINISHED, RUNNING, standing

SAID = kept.expected()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of whoever runs the tests is touched."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("TEMPRIV_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ledger(tmp_path: Path) -> tuple[str, Path]:
    return "--ledger", kept.unpack("ledger", tmp_path) / "ledger.sqlite"


# ledgers


@pytest.mark.parametrize("command", ["show", "log"])
def test_a_ledger_says_what_it_said(ledger: tuple[str, Path], command: str) -> None:
    found = json.loads(done("budget", command, *ledger, "--json"))
    assert facts(found) == facts(SAID[f"budget {command}"])


def test_a_ledger_goes_on_adding_up(ledger: tuple[str, Path], tmp_path: Path) -> None:
    """Epsilon 2 of the limit of 5 on single readings was spent, and two more fit."""
    behavior.write_inputs(tmp_path)
    words = behavior.words_of("laplace", ("2", *behavior.KWH, *behavior.BOUNDS))
    again = ("release", "one.csv", "out.csv", *words, "--dataset", "events", *ledger, "--force")
    statuses = [run(*again)[0] for _ in range(3)]
    assert statuses == [0, 3, 3]
    (events,) = (one for one in told("budget", "show", *ledger) if one["dataset"] == "events")
    assert events["totals"][0]["spent"] == 4.0


# releases


@pytest.mark.parametrize("name", SAID["verify"])
def test_a_release_is_verified_with_its_receipt(
    name: str, ledger: tuple[str, Path], tmp_path: Path
) -> None:
    path = kept.unpack("releases", tmp_path) / name
    listed = json.loads(done("verify", path, *ledger, "--json"))
    assert facts(behavior.checks_of_0_8_0(listed)) == SAID["verify"][name]


@pytest.mark.parametrize("name", SAID["verify"])
def test_a_release_is_read_and_reported(name: str, tmp_path: Path) -> None:
    path = kept.unpack("releases", tmp_path) / name
    about = json.loads(path.with_name(f"{name}.release.json").read_text())
    read = behavior.public("read")(path)
    assert read.about["mechanism"] == about["mechanism"]
    spec = internal("encode")(registry.decode(about["mechanism"]))
    assert json.dumps(spec) == json.dumps(about["mechanism"]), "fields keep their order"
    assert len(read.table) == about["rows"]
    done("report", path, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 1000


def test_shapes_are_written_in_the_form_of_before(tmp_path: Path) -> None:
    """Programs read them by these names; nothing here does."""
    before = kept.unpack("releases", tmp_path)
    behavior.write_inputs(tmp_path)
    words = ("--epsilon", "6", "--shapes", "2", "--segment", "6", "--longest", "6", "--no-ledger")
    for end in ("csv", "json"):
        done("shapes", "people.csv", *words, "--output", f"shapes.{end}")
    old, new = (json.loads((one / "shapes.json").read_text()) for one in (before, tmp_path))
    assert sorted(old) == sorted(new)
    assert [sorted(one) for one in old["shapes"]] == [sorted(one) for one in new["shapes"]]
    heads = [(one / "shapes.csv").read_text().splitlines()[0] for one in (before, tmp_path)]
    assert heads[0] == heads[1]


def test_a_release_can_be_worked_on(tmp_path: Path) -> None:
    before = kept.unpack("releases", tmp_path) / "paid.csv"
    done("after", before, tmp_path / "calm.csv", "--smooth", "3", "--round", "0.5")
    assert (tmp_path / "calm.csv").read_text() == before.with_name("calm.csv").read_text()


def test_the_leakage_of_landmarks_is_found_from_the_owners_file(tmp_path: Path) -> None:
    path = kept.unpack("releases", tmp_path) / "landmarks.csv"
    (tmp_path / "chain.json").write_text("[[0.8, 0.2], [0.3, 0.7]]")
    found = told("leakage", path, "--chain", "chain.json")
    assert found["readings"] == 60


# streams


@pytest.mark.parametrize("name", SAID["streams"])
def test_a_stream_goes_on_with_exactly_what_was_to_come(name: str, tmp_path: Path) -> None:
    folder, said = kept.unpack("streams", tmp_path) / name, SAID["streams"][name]
    state = folder / "state"
    kept.adopt_state(state)
    assert told("stream", "status", state) == said["before"]
    with (folder / "in.csv").open("a") as file:
        file.write((folder / "rest.csv").read_text())
    files = ("--input", folder / "in.csv", "--output", folder / "out.csv", "--state", state)
    done("stream", *said["words"], *files, "--no-ledger")
    assert (folder / "out.csv").read_text() == (folder / "expected.csv").read_text()
    assert told("stream", "status", state) == said["after"]


def test_a_copy_of_a_stream_is_refused_with_the_way_on(tmp_path: Path) -> None:
    folder = kept.unpack("streams", tmp_path) / "laplace"
    words, state = SAID["streams"]["laplace"]["words"], folder / "state"
    files = ("--input", folder / "in.csv", "--output", folder / "out.csv", "--state", state)
    status, _, sentence = run("stream", *words, *files, "--no-ledger")
    assert status != 0 and "tempriv stream restore" in sentence
    done("stream", "restore", state, folder / "new.state")


# stores of the service


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    clock = Clock(datetime.fromisoformat(SAID["collect"]["now"]))
    with serving(kept.unpack("collect", tmp_path), clock) as found:
        yield found


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def test_campaigns_stand_where_they_stood(service: Service) -> None:
    assert plain(standing(service)) == SAID["collect"]["standing"]
    for token in SAID["collect"]["staff"].values():
        assert len(service.get("/v1/campaigns", token)["campaigns"]) == 8


@pytest.mark.parametrize("kind", FINISHED)
def test_results_of_finished_campaigns_are_the_same(service: Service, kind: str) -> None:
    found = service.results(SAID["collect"]["campaigns"][kind])
    assert plain(found) == SAID["collect"]["finished"][kind]


@pytest.mark.parametrize("kind", FINISHED)
def test_the_release_of_a_campaign_is_verified(service: Service, kind: str, home: Path) -> None:
    """From the texts that 0.8.0 handed out."""
    name = SAID["collect"]["campaigns"][kind]
    packed = service.call("GET", f"/v1/campaigns/{name}/release").content
    with zipfile.ZipFile(io.BytesIO(packed)) as files:
        files.extractall(home)
    (table,) = home.glob("campaign-*.csv")
    done("verify", table)


def test_running_campaigns_come_to_their_end(service: Service) -> None:
    """With the answers of the devices that had not answered; the others are told so."""
    fleet = internal("Fleet").from_seed(7)
    for first, count in SAID["collect"]["ranges"]:
        fleet.add(first, count)
    traffic = service.traffic(fleet)
    for kind in RUNNING:
        traffic.run(SAID["collect"]["campaigns"][kind])
        found = service.results(SAID["collect"]["campaigns"][kind])
        assert plain(found) == SAID["collect"]["later"][kind]


def test_a_device_enrolls_with_a_token_of_before(service: Service, tmp_path: Path) -> None:
    with behavior.device(service, tmp_path / "new", SAID["collect"]["enrolments"][1]) as client:
        assert client.run_once().reached


# devices


@pytest.fixture
def at_home(tmp_path: Path) -> Iterator[Service]:
    folder, clock = kept.unpack("device", tmp_path), Clock()
    clock.now = datetime.fromisoformat(SAID["device"]["now"])
    kept.adopt_home(folder / "home")
    with serving(folder, clock) as found:
        yield found


def test_a_device_sends_what_waited_and_goes_on(at_home: Service) -> None:
    said, names = SAID["device"], SAID["device"]["campaigns"]
    assert plain(standing(at_home)) == said["standing"]
    with behavior.device(at_home, at_home.home / "home") as client:
        assert client.spent() == said["spent"]
        visit = client.run_once()
        assert (visit.taken, visit.waiting) == (said["waiting"], 0)
        assert client.spent() == said["spent"]
        at_home.tick(60.0)
        assert client.run_once().taken == 1  # the next step of the stream
    found = at_home.get(f"/v1/campaigns/{names['stream/LBU']}/result")
    assert len(found["steps"]) >= 2


def test_a_copy_of_a_device_is_refused(tmp_path: Path) -> None:
    folder, clock = kept.unpack("device", tmp_path), Clock()
    with (
        serving(folder, clock) as service,
        pytest.raises(behavior.public("Refusal"), match="enrol"),
        behavior.device(service, folder / "home"),
    ):
        pass

"""How the files in ``tests/golden/v0.8.0`` were made; it was run once, with 0.8.0.

    python -m tests.support.write_fixtures FOLDER

They are not made again: their point is that another version reads what 0.8.0 wrote. Keys and ids
are fresh from the operating system, as in use, so a second run would give other files.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.support import behavior, kept
from tests.support.behavior import (
    COUNTS,
    RELEASES,
    WEEK,
    Clock,
    Service,
    device,
    done,
    facts,
    internal,
    serving,
    told,
    words_of,
)

STREAMS = {
    "laplace": ("laplace", "event"),
    "threshold": ("threshold", "rows"),
    "split-landmarks": ("split-landmarks", "numbers"),
    "running-count": ("running-count", "event"),
}
DEVICES, SEED = 150, 7
FINISHED = ("frequency/oue", "shapes/nearest", "stream/LPU", "upload/laplace/event")
RUNNING = ("frequency/grr", "shapes/published", "stream/LBU", "upload/laplace/series")


def write_ledger(out: Path, said: dict[str, Any]) -> None:
    """Limits of several units, charges against them, and a dataset without a limit."""
    limits = {
        "events": "--epsilon 5",
        "windows": "--epsilon 400 --delta 1e-5 --unit window --window 24",
        "wholes": "--epsilon 99 --delta 1e-5 --unit series --length 60",
        "swaps": "--epsilon 3 --unit swap --window 6",
        "visits": "--epsilon 5 --unit person --length 48 --per-step 1 --total 5",
    }
    for name, words in limits.items():
        done("budget", "create", name, *words.split())
    write_releases(out / "releases")
    ledger = Path("data", "tempriv", "ledger.sqlite")
    for command in ("show", "log"):
        said[f"budget {command}"] = json.loads(done("budget", command, "--json"))
    (out / "ledger").mkdir()
    shutil.copy(ledger, out / "ledger")
    said["verify"] = {
        path.name: facts(json.loads(done("verify", path, "--json")))
        for path in sorted((out / "releases").iterdir())
        if path.with_name(f"{path.name}.release.json").exists()
    }


def write_releases(out: Path) -> None:
    out.mkdir()
    made = {
        "open.csv": ("laplace", "event", None),
        "paid.csv": ("laplace", "columns", "events"),
        "answers.csv": ("randomized-response", "event", "events"),
        "table.parquet": ("gaussian", "event", "windows"),
        "wholes.csv": ("gaussian", "series", "wholes"),
        "moved.csv": ("noisy-order", "rows", "swaps"),
        "landmarks.csv": ("split-landmarks", "numbers", "windows"),
        "places.csv": ("planar-laplace", "near", None),
        "sums.csv": ("running-count", "event", None),
    }
    for name, (mechanism, variant, dataset) in made.items():
        named = ("--dataset", dataset) if dataset else ()
        words = words_of(mechanism, RELEASES[mechanism][variant])
        done("release", "one.csv", out / name, *words, *named)
    words = words_of("laplace", RELEASES["laplace"]["event"])
    done("release", "one.csv", out / "uncharged.csv", *words, "--no-ledger")
    counted = (*WEEK, *COUNTS["laplace/person"], "--dataset", "visits")
    done("count", "events.csv", out / "counts.csv", *counted)
    found = ("--epsilon", "6", "--shapes", "2", "--segment", "6", "--longest", "6")
    done("shapes", "people.csv", *found, "--output", out / "shapes.csv")
    done("shapes", "people.csv", *found, "--output", out / "shapes.json", "--no-ledger")
    done("after", out / "paid.csv", out / "calm.csv", "--smooth", "3", "--round", "0.5")


def write_streams(out: Path, said: dict[str, Any]) -> None:
    """Each stopped in the middle of its input; what came out when it went on is kept as well."""
    for name, (mechanism, variant) in STREAMS.items():
        folder = out / "streams" / name
        folder.mkdir(parents=True)
        words = words_of(mechanism, RELEASES[mechanism][variant])
        begin, rest = Path("first.csv").read_text(), Path("rest.csv").read_text()
        (folder / "in.csv").write_text(begin)
        (folder / "rest.csv").write_text(rest.partition("\n")[2])
        files = (*("--input", folder / "in.csv", "--output", folder / "out.csv"), "--no-ledger")
        run = ("stream", *words, *files, "--state", folder / "state", "--dataset", "kept")
        done(*run)
        before = told("stream", "status", folder / "state")
        copied = out / "copies" / name
        shutil.copytree(folder, copied)
        with (folder / "in.csv").open("a") as file:
            file.write((folder / "rest.csv").read_text())
        done(*run)
        (copied / "expected.csv").write_text((folder / "out.csv").read_text())
        after = told("stream", "status", folder / "state")
        said.setdefault("streams", {})[name] = {"words": words, "before": before, "after": after}
    kept.pack(out / "copies", out / "streams.zip")
    shutil.rmtree(out / "copies")
    shutil.rmtree(out / "streams")


def standing(service: Service) -> dict[str, Any]:
    """How every campaign stands, by its id."""
    told = service.get("/v1/campaigns")["campaigns"]
    return {one["id"]: facts(service.get(f"/v1/campaigns/{one['id']}")) for one in told}


def write_store(out: Path, said: dict[str, Any]) -> None:
    """A service with campaigns of every kind, finished ones and ones in the middle."""
    home, clock = out / "collect", Clock()
    with serving(home, clock) as service:
        traffic = service.traffic(internal("Fleet").from_seed(SEED))
        traffic.enrol(DEVICES)
        whole = traffic.fleet
        names: dict[str, str] = {}
        for kind in FINISHED:
            names[kind] = service.post("/v1/campaigns", **behavior.CAMPAIGNS[kind](DEVICES))["id"]
            service.tick()
            traffic.run(names[kind])
        traffic.fleet = whole.first(60)
        for kind in RUNNING:
            names[kind] = service.post("/v1/campaigns", **behavior.CAMPAIGNS[kind](DEVICES))["id"]
            service.tick()
            traffic.run(names[kind], once=True)
        staff = {
            role: service.post("/v1/staff", role=role, name="kept")["token"]
            for role in ("analyst", "admin")
        }
        enrolments = service.post("/v1/enrolments", count=2)["tokens"]
        said["collect"] = {
            "now": clock.now.isoformat(), "campaigns": names, "standing": standing(service),
            "finished": {kind: service.results(names[kind]) for kind in FINISHED},
            "ranges": whole.ranges, "staff": staff, "enrolments": enrolments,
        }  # fmt: skip
    copied = out / "copy"
    shutil.copytree(home, copied)
    with serving(home, Clock(clock.now)) as service:  # what comes out of those in the middle
        traffic = service.traffic(whole)
        for kind in RUNNING:
            traffic.run(names[kind])
        said["collect"]["later"] = {kind: service.results(names[kind]) for kind in RUNNING}
    kept.pack(copied, out / "collect.zip")
    shutil.rmtree(copied)
    shutil.rmtree(home)


def write_device(out: Path, said: dict[str, Any]) -> None:
    """A device that has answered some campaigns; one answer waits, for the server was away."""
    folder, clock = out / "device", Clock()
    with serving(folder, clock) as service:
        enrolment = service.post("/v1/enrolments", count=2)["tokens"][0]
        kinds = {"frequency/grr": 2, "stream/LBU": 1, "upload/laplace/event": 2}
        names = {}
        with device(service, folder / "home", enrolment) as client:
            client.run_once()  # it enrolls
            for kind, people in kinds.items():
                given = behavior.CAMPAIGNS[kind](people)
                names[kind] = service.post("/v1/campaigns", **given)["id"]
            service.tick()
            answered = [client.run_once().taken]
            service.tick(60.0)

            def away(request: Any) -> None:
                if request.url.path.endswith("/answers"):
                    raise behavior.network_fault()

            service.http.event_hooks["request"] = [away]
            visit = client.run_once()
            service.http.event_hooks["request"] = []
            said["device"] = {
                "now": clock.now.isoformat(), "campaigns": names, "answered": answered,
                "waiting": visit.waiting, "spent": client.spent(), "standing": standing(service),
            }  # fmt: skip
    kept.pack(folder, out / "device.zip")
    shutil.rmtree(folder)


def main() -> None:
    target = Path(sys.argv[1]).resolve()
    said: dict[str, Any] = {}
    with behavior.workplace():
        out = Path("kept")  # files tell of each other by relative names then
        out.mkdir()
        os.environ["XDG_DATA_HOME"] = str(Path("data").resolve())
        write_ledger(out, said)
        write_streams(out, said)
        write_store(out, said)
        write_device(out, said)
        kept.pack(out / "ledger", out / "ledger.zip")
        shutil.rmtree(out / "ledger")
        (out / "expected.json").write_text(json.dumps(said, sort_keys=True) + "\n")
        shutil.copytree(out, target, dirs_exist_ok=True)


if __name__ == "__main__":
    main()

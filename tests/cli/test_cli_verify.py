"""``tempriv verify`` and ``tempriv keys``: what a forger can and cannot get past them."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from tempriv.data.files import checksum
from tempriv.datasets import METERS
from tempriv.releases.description import sidecar_path

LAPLACE = ["--mechanism", "laplace", "--epsilon", "1", "--bounds", "0", "5"]
METER = ["--time", "time", "--value", "energy_kWh", "--series", "home"]

CHECKSUM = "the file has the checksum of its description"
UNCHANGED = "the description is as it was signed"
SIGNER = "the signature is by the key at hand"
AGREE = "columns that follow from each other agree"


@pytest.fixture
def release(run):
    """A release of the bundled table; more words of the command are taken."""

    def made(name: str, *more: str) -> Path:
        words = [*LAPLACE, *METER, "--no-ledger", *more]
        assert run("release", METERS, name, *words)[0] == 0
        return Path(name)

    return made


@pytest.fixture
def verified(run):
    """The state of each check by its statement, and the status of the command."""

    def found(path: Path | str, *more: str) -> tuple[int, dict[str, str]]:
        status, out, _ = run("verify", path, *more, "--json")
        listed = json.loads(out)
        assert [one["good"] for one in listed] == [
            {"ok": True, "wrong": False, "not checked": None}[one["state"]] for one in listed
        ]
        return status, {one["what"]: one["state"] for one in listed}

    return found


def wrong(checks: dict[str, str]) -> list[str]:
    return [what for what, state in checks.items() if state == "wrong"]


def edit(path: Path, change) -> None:
    """Change the description of a file, as a forger would."""
    beside = sidecar_path(path)
    about = json.loads(beside.read_text())
    change(about)
    beside.write_text(json.dumps(about))


def recompute(path: Path) -> None:
    """Make the checksum and the size fit again."""
    new = {"blake2b": checksum(path), "bytes": path.stat().st_size}
    edit(path, lambda about: about["output"].update(new))


def forge_a_value(path: Path, value: str) -> None:
    """Another value in the last row, with a checksum that fits."""
    lines = path.read_text().splitlines()
    lines[-1] = ",".join([*lines[-1].split(",")[:-1], value])
    path.write_text("\n".join(lines) + "\n")
    recompute(path)


def public_key(run, *more: str) -> str:
    status, out, _ = run("keys", "create", *more)
    assert status == 0
    return out.splitlines()[0]


# keys


def test_a_key_is_private_and_is_never_replaced(run, tmp_path):
    public = public_key(run)
    (secret,) = Path(os.environ["XDG_DATA_HOME"]).rglob("signing.key")
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert [one.name for one in secret.parent.iterdir()] == ["signing.key"]
    before = secret.read_bytes()
    status, out, err = run("keys", "create")
    assert status == 2 and "exists already" in err and not out
    assert secret.read_bytes() == before
    assert run("keys", "show")[1].strip() == public
    assert run("keys", "show", "--export", "public.pem")[0] == 0
    pem = Path("public.pem").read_text()
    assert pem.startswith("-----BEGIN PUBLIC KEY-----")
    assert run("keys", "show", "--export", "public.pem")[0] != 0


def test_a_key_that_others_can_read_signs_nothing(run, release):
    public_key(run, "--file", "shared.key")
    Path("shared.key").chmod(0o640)
    words = [*LAPLACE, *METER, "--no-ledger", "--sign", "shared.key"]
    status, _, err = run("release", METERS, "out.csv", *words)
    assert status == 1 and "others can read this key" in err
    assert not Path("out.csv").exists()


def test_releases_are_signed_where_there_is_a_key(run, release, verified):
    assert "signature" not in json.loads(sidecar_path(release("before.csv")).read_text())
    public = public_key(run)
    path = release("signed.csv")
    Path("public.txt").write_text(public + "\n")
    assert run("keys", "show", "--export", "public.pem")[0] == 0
    for key in (public, "public.pem", "public.txt"):
        status, checks = verified(path, "--key", key)
        assert (status, checks[UNCHANGED], checks[SIGNER]) == (0, "ok", "ok")
    unsigned = release("unsigned.csv", "--sign", "none")
    assert "signature" not in json.loads(sidecar_path(unsigned).read_text())
    run("after", path, "calm.csv", "--smooth", "3")
    status, checks = verified("calm.csv", "--key", public)
    assert (status, checks[UNCHANGED], checks[SIGNER]) == (0, "ok", "ok")
    status, _, err = run("verify", path, "--key", Path(os.environ["XDG_DATA_HOME"], "x"))
    assert status == 2 and "must be a public key" in err
    (secret,) = Path(os.environ["XDG_DATA_HOME"]).rglob("signing.key")
    status, _, err = run("verify", path, "--key", secret)
    assert status == 2 and "is the secret key" in err


# what verify finds


def test_a_forged_checksum_is_found(release, verified):
    path = release("out.csv")
    edit(path, lambda about: about["output"].update(blake2b="0" * 64))
    status, checks = verified(path)
    assert (status, wrong(checks)) == (1, [CHECKSUM])


def test_a_swapped_description_is_found_and_named(run, release, verified):
    one, other = release("one.csv"), release("other.csv")
    kept = sidecar_path(one).read_bytes()
    shutil.copy(sidecar_path(other), sidecar_path(one))
    sidecar_path(other).write_bytes(kept)
    status, out, _ = run("verify", one)
    assert status == 1
    (line,) = [line for line in out.splitlines() if line.startswith("WRONG")]
    assert CHECKSUM in line
    assert "of another file, 'other.csv'" in line
    assert "that of this one is other.csv.release.json: they were swapped" in line


def test_a_swapped_description_with_its_checksum_is_found_by_the_signature(run, release, verified):
    """Both are of the same form, so nothing else could tell."""
    public = public_key(run)
    one, other = release("one.csv"), release("other.csv")
    shutil.copy(sidecar_path(other), sidecar_path(one))
    edit(one, lambda about: about["output"].update(file="one.csv"))
    recompute(one)
    status, checks = verified(one)
    assert (status, wrong(checks)) == (1, [UNCHANGED])
    status, checks = verified(one, "--key", public)
    assert wrong(checks) == [UNCHANGED] and checks[SIGNER] == "not checked"


def test_a_foreign_signature_is_found(run, release, verified):
    public = public_key(run)
    foreign = public_key(run, "--file", "foreign.key")
    path = release("out.csv", "--sign", "foreign.key")
    status, checks = verified(path)
    assert (status, checks[UNCHANGED], checks[SIGNER]) == (0, "ok", "not checked")
    status, out, err = run("verify", path, "--key", public)
    assert status == 1 and SIGNER in err
    assert f"WRONG       {SIGNER}: a foreign signature, by {foreign}" in out
    # a forger who writes the key at hand beside a signature of his own
    edit(path, lambda about: about["signature"].update(public_key=public))
    assert wrong(verified(path, "--key", public)[1]) == [UNCHANGED]
    edit(path, lambda about: about.pop("signature"))
    status, checks = verified(path, "--key", public)
    assert (status, wrong(checks)) == (1, [SIGNER])


@pytest.mark.parametrize(
    "signature", [{}, 7, {"algorithm": "none"}, {"public_key": "ed25519:AAAA"}, {"value": "%"}]
)
def test_a_damaged_signature_is_wrong_and_never_an_error(run, release, verified, signature):
    public_key(run)
    path = release("out.csv")
    damaged = signature

    def change(about):
        about["signature"] = (
            {**about["signature"], **damaged} if isinstance(damaged, dict) and damaged else damaged
        )

    edit(path, change)
    status, checks = verified(path)
    assert (status, wrong(checks)) == (1, [UNCHANGED])


def test_any_change_of_a_signed_description_is_found(run, release, verified):
    """Also of what nothing else is compared with: who released it, and when."""
    public_key(run)
    path = release("out.csv")
    before = sidecar_path(path).read_text()
    for change in (
        lambda about: about.update(created="2020-01-01T00:00:00+00:00"),
        lambda about: about.update(release="0" * 32),
        lambda about: about["times"].update(first=0),
        lambda about: about.update(more="something"),
    ):
        edit(path, change)
        assert UNCHANGED in wrong(verified(path)[1])
        sidecar_path(path).write_text(before)
    again = json.dumps(json.loads(before), indent=7, sort_keys=True, ensure_ascii=True)
    sidecar_path(path).write_text(again)
    assert verified(path)[0] == 0, "the same description in another layout"
    sidecar_path(path).write_text(before.replace('"rows"', '"rows": 1, "rows"', 1))
    assert run("verify", path)[0] == 1, "a name that stands twice"


def test_a_forged_value_is_found_where_noise_does_not_reach(release, verified):
    path = release("out.csv")
    forge_a_value(path, "100000.0")
    assert verified(path)[1]["no value lies beyond what noise reaches"] == "wrong"
    forge_a_value(path, "inf")
    assert {"every value lies on the public grid", "no value lies beyond what noise reaches"} == {
        *wrong(verified(path)[1])
    }


def test_a_forged_value_that_could_be_is_found_by_the_signature_alone(run, release, verified):
    """And without one verify does not call anything good that it did not see."""
    path = release("out.csv")
    forge_a_value(path, "3.0")
    status, checks = verified(path)
    assert (status, checks[CHECKSUM]) == (0, "ok")
    for what in (UNCHANGED, SIGNER, AGREE, "the ledger knows of it"):
        assert checks[what] == "not checked", what
    _, out, _ = run("verify", path)
    assert "can compute its checksum again" in out
    counted = out.splitlines()[-1]
    assert counted.endswith("not checked") and " 0 wrong" in counted
    public_key(run)
    signed = release("signed.csv")
    forge_a_value(signed, "3.0")
    assert wrong(verified(signed)[1]) == [UNCHANGED]


def test_a_forged_total_is_found_by_its_parts(run, verified):
    """Where the file before is not at hand, so that the steps cannot be repeated."""
    Path("rooms.csv").write_text(
        "t,hall,lab,all\n" + "".join(f"{i},{i % 3},{i % 2},{i % 3 + i % 2}\n" for i in range(30))
    )
    columns = [word for name in ("hall", "lab", "all") for word in ("--value", name)]
    bounds = ["--bounds", "0", "4"] * 3
    words = ["--mechanism", "laplace", "--epsilon", "3", *bounds, "--time", "t", *columns]
    assert run("release", "rooms.csv", "noisy.csv", *words, "--no-ledger")[0] == 0
    total = ["--total", "all", "--part", "hall", "--part", "lab"]
    assert run("after", "noisy.csv", "out.csv", *total)[0] == 0
    Path("noisy.csv").unlink()
    status, checks = verified("out.csv")
    assert (status, checks[AGREE]) == (0, "ok")
    assert checks["doing it again gives the same values"] == "not checked"
    forge_a_value(Path("out.csv"), "9761")
    status, checks = verified("out.csv")
    assert (status, wrong(checks)) == (1, [AGREE])


def test_the_published_claim_is_said_to_be_compared_with_the_class_alone(run, release):
    _, out, _ = run("verify", release("out.csv"))
    (line,) = [line for line in out.splitlines() if "published claim" in line]
    assert "as this version of tempriv has it" in line
    assert "the paper itself was not looked up" in line


def test_a_charge_is_checked_only_with_the_ledger(run, verified):
    assert run("release", METERS, "paid.csv", *LAPLACE, *METER)[0] == 0
    what = "the ledger knows of it"
    assert verified("paid.csv")[1][what] == "not checked"
    (ledger,) = Path(os.environ["XDG_DATA_HOME"]).rglob("ledger.sqlite")
    assert verified("paid.csv", "--ledger", str(ledger))[1][what] == "ok"
    other = Path("other.sqlite")
    assert run("budget", "create", "x", "--epsilon", "1", "--ledger", other)[0] == 0
    status, checks = verified("paid.csv", "--ledger", str(other))
    assert (status, wrong(checks)) == (1, [what])


def test_an_interrupted_release_is_signed_when_it_is_finished(run, monkeypatch, verified):
    from tempriv.releases.to_file import ReleaseWriter

    public = public_key(run)

    def full(*given):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(ReleaseWriter, "publish", full)
        assert run("release", METERS, "out.csv", *LAPLACE, *METER)[0] == 1
    status, out, _ = run("release", METERS, "out.csv", *LAPLACE, *METER)
    assert status == 0 and "interrupted" in out
    status, checks = verified("out.csv", "--key", public)
    assert (status, checks[SIGNER]) == (0, "ok")


# what is stated


def test_statements_come_from_a_file_or_from_the_ledger(run, verified):
    status, template, _ = run("budget", "about", "--template")
    assert status == 0 and '# contact = ""' in template
    Path("all.toml").write_text('contact = "data@example.org"\nlicense = "CC BY 4.0"\n')
    words = ["create", METERS.name, "--epsilon", "9", "--about", "all.toml"]
    assert run("budget", *words)[0] == 0
    Path("one.toml").write_text('license = "ask us"\nrationale = "for a trial"\n')
    released = [METERS, "out.csv", *LAPLACE, *METER, "--about", "one.toml"]
    assert run("release", *released)[0] == 0
    evidence = json.loads(Path("out.csv.release.json").read_text())["evidence"]
    assert evidence["stated"] == {
        "contact": "data@example.org",
        "license": "ask us",
        "rationale": "for a trial",
    }
    detail = evidence["registry"]["tier_3"]
    assert detail["license"] == {"answer": "ask us", "source": "curator"}
    assert evidence["registry"]["tier_1"]["curator"]["source"] == "not stated"
    assert verified("out.csv")[0] == 0
    assert "data@example.org" in run("budget", "about", METERS.name)[1]
    assert run("budget", "about", METERS.name, "one.toml")[0] == 0
    assert json.loads(run("budget", "about", METERS.name, "--json")[1]) == {
        "license": "ask us",
        "rationale": "for a trial",
    }
    edit(Path("out.csv"), lambda about: about["evidence"]["gdpr"]["inference"][0].update(cap=0.5))
    status, checks = verified("out.csv")
    assert (status, wrong(checks)) == (1, ["the evidence follows from the description"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('phone = "7"', "phone: not a statement about a release; must be one of curator, contact"),
        ("contact = 7", "contact: must be a text"),
        ('contact = ""', "contact: must be a text"),
        ("contact = ", "not TOML"),
    ],
)
def test_a_file_of_statements_is_refused_before_anything_is_paid(run, text, said):
    Path("about.toml").write_text(text + "\n")
    status, _, err = run("release", METERS, "out.csv", *LAPLACE, *METER, "--about", "about.toml")
    assert status == 2 and said in err
    assert not Path("out.csv").exists()
    assert run("budget", "log", "--json")[1] in ("", "[]\n")


# shapes


def test_a_forged_count_of_a_shape_is_found(run, verified):
    """All facts stand in the JSON, so the other columns are computed from the count."""
    heights = {"x": (0, 0, 9, 9), "y": (9, 0, 9, 0)}
    lines = ["group," + ",".join(f"t{i}" for i in range(24))]
    for i in range(400):
        group = "xy"[i % 4 == 0]
        lines.append(f"{group}," + ",".join(str(heights[group][t // 6] + i % 3) for t in range(24)))
    Path("people.csv").write_text("\n".join(lines) + "\n")
    public = public_key(run)
    words = ["--epsilon", "6", "--shapes", "2", "--segment", "6", "--longest", "4", "--no-ledger"]
    methods = ("one-shot", "nearest")
    for method in methods:
        out = f"{method}.json"
        assert run("shapes", "people.csv", *words, "--method", method, "--output", out)[0] == 0
        status, checks = verified(out, "--key", public)
        assert (status, checks[AGREE], checks[SIGNER]) == (0, "ok", "ok")
    path = Path(f"{methods[0]}.json")
    right = json.loads(path.read_text())

    def forged(**changes):
        about = json.loads(json.dumps(right))
        about["shapes"][0] |= changes
        path.write_text(json.dumps(about))
        return wrong(verified(path)[1])

    reports = "every count comes from a whole number of reports"
    count = right["shapes"][0]["count"]
    assert set(forged(count=count + 70.5)) == {UNCHANGED, AGREE, reports}
    assert set(forged(share=0.999)) == {UNCHANGED, AGREE}
    assert forged(count=count) == []
    about = right | {"guarantee": right["guarantee"] | {"loss": {"is": "Pure", "epsilon": 0.1}}}
    about.pop("signature")
    path.write_text(json.dumps(about))
    assert wrong(verified(path)[1]) == ["the guarantee follows from the settings"]
    path.write_text(json.dumps(about | {"rounds": [{}]}))
    assert wrong(verified(path)[1])

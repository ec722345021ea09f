"""Results of campaigns are signed by the server, and their columns are computed from each other."""

from __future__ import annotations

import csv
import io
import json
import stat
import zipfile

import pytest

from tempriv.collect.server.app import KEY_FILE
from tempriv.collect.verify import verify
from tempriv.data.files import checksum
from tempriv.releases.description import sidecar_path
from tempriv.releases.signature import SigningKey
from tests.support.behavior import CAMPAIGNS, internal, run
from tests.support.behavior import serving as simulated
from tests.support.collecting import about_value, categories, serving

AGREE = "columns that follow from each other agree"


def unpacked(data: bytes, folder):
    zipfile.ZipFile(io.BytesIO(data)).extractall(folder)
    (table,) = folder.glob("campaign-*.csv")
    return table


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def released(home):
    """The files of a campaign with 40 devices; those of them with an even number use gas."""
    with serving(home) as service:
        numbers = service.enroll(40)
        campaign = service.begin(categories(40, epsilon=3.0))["id"]
        question = service.question(campaign)
        answers = {one: about_value(question, one % 2) for one in numbers}
        assert set(service.batch(question["id"], answers)) == {"taken"}
        path = f"/v1/campaigns/{campaign}/release"
        return service.http.get(path, headers=service.admin).content


@pytest.fixture
def table(released, tmp_path):
    return unpacked(released, tmp_path)


def forge(table, change):
    """Another table, with a checksum that fits; what else there is stays as it was."""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    change(rows)
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    beside = sidecar_path(table)
    about = json.loads(beside.read_text())
    about["output"] |= {"blake2b": checksum(table), "bytes": table.stat().st_size}
    beside.write_text(json.dumps(about))


def wrong(table, key=None):
    return [check.what for check in verify(table, key) if check.wrong]


def test_a_result_is_signed_by_the_key_of_its_server(table, home, tmp_path):
    path = home / KEY_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    public = SigningKey.load(path).public
    assert json.loads(sidecar_path(table).read_text())["signature"]["public_key"] == public
    assert wrong(table, public) == []
    other = SigningKey.create(tmp_path / "other.key").public
    assert wrong(table, other) == ["the signature is by the key at hand"]
    status, out, _ = run("verify", table, "--key", public)
    assert (status, "WRONG" in out) == (0, False)
    assert "ok          the signature is by the key at hand" in out


def test_a_server_keeps_its_key(home):
    before = (home / KEY_FILE).read_bytes()
    with serving(home):
        pass
    assert (home / KEY_FILE).read_bytes() == before


def test_a_forged_count_is_found_by_the_columns_beside_it(table):
    """The finding: a count of 2,761 became 9,761, and the share column still said 28 %."""

    def more(rows):
        rows[0]["count"] = str(float(rows[0]["count"]) + 7)

    forge(table, more)
    status, out, err = run("verify", table)
    lines = [line for line in out.splitlines() if line.startswith("WRONG")]
    assert status == 1 and "failed" in err
    assert any(AGREE in line and "share in 1 of 3 rows" in line for line in lines)
    assert any("every count comes from a whole number of reports" in line for line in lines)
    # the checksum is the forger's own
    assert "ok          the file has the checksum" in out


def test_a_count_that_is_forged_with_its_share_is_found(table):
    """Errors and intervals do not fit, and reports are counted once for each device."""

    def more(rows):
        for name, by in (("count", 1.0), ("share", 1 / 40)):
            rows[0][name] = str(float(rows[0][name]) + by)

    forge(table, more)
    assert "every count comes from a whole number of reports" in wrong(table)


def test_a_whole_forged_row_is_found_where_reports_name_one_category(table):
    """Everything in the row follows from another number of reports; there are too many of them."""
    from tempriv.collect.protocol.campaign import Campaign
    from tempriv.collect.protocol.kinds.base import estimated_shares
    from tempriv.local.frequency.base import support_of

    document = json.loads(sidecar_path(table).read_text())["mechanism"]
    campaign = Campaign.from_dict({k: v for k, v in document.items() if k != "is"})
    oracle = campaign.definition.only_question(campaign)
    assert oracle.cells == 3
    made = campaign.definition._message(campaign).frequency

    def again(rows):
        counts = [float(row["count"]) for row in rows]
        supports = [support_of(one, made.keep, made.other, 40) for one in counts]
        assert sum(supports) == 40
        supports[0] += 3 if supports[0] <= 37 else -3
        for row, new in zip(
            rows, estimated_shares(["gas", "oil", "wood"], made, supports, 40), strict=True
        ):
            row.update({name: str(value) for name, value in new.items()})

    forge(table, again)
    checks = wrong(table)
    assert "every device reported one category" in checks
    assert AGREE not in checks and "the description is as it was signed" in checks


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.pop(),
        lambda rows: rows.reverse(),
        lambda rows: rows[0].update(count="many"),
        lambda rows: rows[0].update(count="nan"),
        lambda rows: rows[0].update(count="inf"),
        lambda rows: rows[0].update(standard_error=""),
        lambda rows: rows[0].update(low="0.9", high="0.1"),
        lambda rows: [row.pop("share") for row in rows],
    ],
)
def test_any_other_table_is_wrong_and_never_an_error(table, change):
    forge(table, change)
    beside = sidecar_path(table)
    about = json.loads(beside.read_text())
    about.pop("signature")
    about["rows"] = len(table.read_text().splitlines()) - 1
    beside.write_text(json.dumps(about))
    assert wrong(table)


@pytest.mark.parametrize("name", sorted(CAMPAIGNS))
def test_the_columns_of_every_kind_and_method_agree(name, tmp_path):
    """And one share that is moved into another place does not."""
    (tmp_path / "server").mkdir()
    with simulated(tmp_path / "server") as service:
        fleet = internal("Fleet").from_seed(7)
        traffic = service.traffic(fleet)
        traffic.enroll(150)
        made = service.post("/v1/campaigns", **CAMPAIGNS[name](150))
        service.tick()
        traffic.run(made["id"])
        packed = service.call("GET", f"/v1/campaigns/{made['id']}/release").content
    table = unpacked(packed, tmp_path)
    assert wrong(table) == []
    with table.open(newline="") as file:
        columns = next(csv.reader(file))
    column = "value" if "value" in columns else "share"

    def forged(rows):
        inside = float(rows[0][column]) < 0.5 if column == "share" else False
        rows[0][column] = "0.98765" if inside else "0.01234"

    forge(table, forged)
    assert [what for what in wrong(table) if "signed" not in what]


def test_what_the_curator_states_stands_in_results(tmp_path):
    with serving(tmp_path) as service:
        service.http.app.state.statements = {"contact": "data@example.org"}
        (number,) = service.enroll(1)
        campaign = service.begin(categories(1))["id"]
        question = service.question(campaign)
        service.batch(question["id"], {number: about_value(question, 0)})
        path = f"/v1/campaigns/{campaign}/release"
        table = unpacked(service.http.get(path, headers=service.admin).content, tmp_path)
    evidence = json.loads(sidecar_path(table).read_text())["evidence"]
    contact = evidence["registry"]["tier_3"]["contact"]
    assert contact == {"answer": "data@example.org", "source": "curator"}
    assert "Nobody is trusted" in evidence["nist_sp_800_226"]["trust_model"]["answer"]
    assert wrong(table) == []

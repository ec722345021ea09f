"""A kind of campaign is one file: forms, texts and results are asked of it, and of nothing else."""

import re

import pytest

from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds import campaign_kinds
from tests.support.collecting import BEGUN, serving
from tests.support.paths import ROOT

SOURCE = ROOT / "src" / "tempriv"
KINDS = tuple(campaign_kinds())


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("kinds")) as service:
        service.enroll(40)
        yield service


def description_of(service, kind):
    kinds = service.get("/v1/campaign-kinds")["kinds"]
    return next(description for description in kinds if description["name"] == kind)


def defaults_of(description):
    fields = [field for group in description["form"] for field in group["fields"]]
    return {field["name"]: field.get("value") for field in fields} | {"title": "A title"}


def draft_of(service, kind, values):
    path = f"/v1/campaign-kinds/{kind}/draft"
    return service.http.post(path, json={"values": values}, headers=service.admin)


def test_no_other_file_names_a_kind():
    named = re.compile("|".join(f"\\b(kind|KINDS?)\\b.*[\"'](?:{kind})[\"']" for kind in KINDS))
    files = [*(SOURCE / "collect").rglob("*.py"), *(SOURCE / "collect" / "page").glob("*.js")]
    files += [SOURCE / "cli" / "serve.py", SOURCE / "cli" / "simulate.py"]
    for path in files:
        if path.parent.name != "kinds":
            assert not named.search(path.read_text()), path


def test_descriptions_tell_of_every_kind(service):
    kinds = service.get("/v1/campaign-kinds")["kinds"]
    assert [kind["name"] for kind in kinds] == list(KINDS)
    for kind in kinds:
        about = {field["name"]: field for field in kind["form"][0]["fields"]}
        assert about["people"]["value"] == 40 and "40 are" in about["people"]["hint"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_as_it_is_first_shown_makes_a_campaign(service, kind):
    draft = draft_of(service, kind, defaults_of(description_of(service, kind))).json()
    assert draft["problems"] == {}
    seen = service.http.post(
        "/v1/campaigns/preview", json=draft["campaign"], headers=service.admin
    ).json()
    campaign = Campaign.from_dict(seen["spec"])
    assert campaign.kind == kind and campaign.people == 40 and campaign.opens_at == BEGUN
    assert seen["sentences"] == campaign.sentences
    assert campaign.definition.questions.keys() >= {campaign.start().question.kind}


@pytest.mark.parametrize(
    ("kind", "values", "field"),
    [
        ("frequency", {"title": ""}, "title"),
        ("frequency", {"epsilon": 0}, "epsilon"),
        ("frequency", {"epsilon": True}, "epsilon"),
        ("frequency", {"people": 1.5}, "people"),
        ("frequency", {"people": 2**33}, "people"),
        ("frequency", {"categories": ["a", "a"]}, "categories"),
        ("frequency", {"categories": ["a"]}, "categories"),
        ("frequency", {"categories": "ab"}, "categories"),
        ("frequency", {"oracle": "delphi"}, "oracle"),
        ("frequency", {"oracle": []}, "oracle"),
        ("frequency", {"opens": "yesterday"}, "opens"),
        ("frequency", {"opens": "9999-12-31T23:59:59Z"}, "opens"),
        ("shapes", {"longest": 40}, "longest"),
        ("shapes", {"low": 16}, "low"),
        ("shapes", {"shares": [50, 50, 0, 0]}, "shares"),
        ("shapes", {"values": [1, 0, 2]}, "values"),
        ("shapes", {"values": [1, 2]}, "values"),
        ("shapes", {"compressed": "yes"}, "compressed"),
        ("stream", {"steps": 1000}, "lasts"),
        ("stream", {"method": "LBA", "patience": 31}, "patience"),
        ("upload", {"low": 7}, "high"),
        ("upload", {"mechanism": "other"}, "pasted"),
    ],
)
def test_what_is_wrong_is_told_by_the_name_of_its_field(service, kind, values, field):
    draft = draft_of(service, kind, defaults_of(description_of(service, kind)) | values).json()
    assert draft["campaign"] is None and list(draft["problems"]) == [field], draft


def test_fields_that_are_not_shown_are_not_asked_for(service):
    values = defaults_of(description_of(service, "upload"))
    pasted = {"is": "Laplace", "epsilon": 0.5, "bounds": [[0, 1]], "unit": {"is": "Event"}}
    pasted |= {"per_column": False, "grid": None}
    for name in ("epsilon", "low", "high", "unit"):
        del values[name]
    values |= {"mechanism": "other", "pasted": pasted}
    draft = draft_of(service, "upload", values).json()
    assert draft["problems"] == {} and draft["campaign"]["epsilon"] == 0.5
    assert draft["campaign"]["plan"]["mechanism"] == pasted


@pytest.mark.parametrize("values", [{}, {"title": None}, {"lasts": "long", "opens": 5}])
@pytest.mark.parametrize("kind", KINDS)
def test_a_form_without_its_values_has_problems_and_no_fault(service, kind, values):
    draft = draft_of(service, kind, values)
    assert draft.status_code == 200 and draft.json()["problems"]
    assert draft_of(service, "poll", values).status_code == 422

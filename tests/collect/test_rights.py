"""Nobody reads or writes without a right to: every route, every role, every kind of token."""

import re
import sqlite3

import pytest

from tempriv.collect.server.rate_limits import RateLimits
from tempriv.collect.server.tokens import Token, digest_of, parse
from tests.support.collecting import BEGUN, Clock, bearer, categories, serving

PUBLIC, DEVICE, ANYONE, STAFF, ADMIN = "public", "device", "anyone", "staff", "admin"
RIGHTS = {
    ("get", "/health"): PUBLIC,
    ("post", "/v1/devices"): PUBLIC,  # one-time tokens in the body
    ("post", "/v1/answers"): PUBLIC,  # the secret of its device with each answer
    ("get", "/metrics"): STAFF,
    ("get", "/v1/me"): ANYONE,
    ("get", "/v1/staff"): ADMIN,
    ("post", "/v1/staff"): ADMIN,
    ("delete", "/v1/staff/{number}"): ADMIN,
    ("get", "/v1/fleet"): STAFF,
    ("post", "/v1/enrolments"): ADMIN,
    ("delete", "/v1/devices/{number}"): ANYONE,  # of itself, or by an admin
    ("post", "/v1/campaigns/{name}/answers"): DEVICE,
    ("get", "/v1/campaign-kinds"): STAFF,
    ("post", "/v1/campaign-kinds/{kind}/draft"): STAFF,
    ("post", "/v1/campaigns/preview"): STAFF,
    ("post", "/v1/campaigns"): STAFF,
    ("get", "/v1/campaigns"): ANYONE,
    ("get", "/v1/campaigns/{name}"): ANYONE,
    ("get", "/v1/campaigns/{name}/question"): ANYONE,
    ("post", "/v1/campaigns/{name}/close-question"): STAFF,
    ("post", "/v1/campaigns/{name}/cancel"): STAFF,
    ("get", "/v1/campaigns/{name}/result"): STAFF,
    ("get", "/v1/campaigns/{name}/release"): STAFF,
    ("get", "/v1/campaigns/{name}/events"): STAFF,
}
ALLOWED = {
    PUBLIC: {"nobody", "device", "analyst", "admin"},
    DEVICE: {"device"},
    ANYONE: {"device", "analyst", "admin"},
    STAFF: {"analyst", "admin"},
    ADMIN: {"admin"},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("rights")) as found:
        found.enroll(2)
        found.callers = {
            "nobody": {},
            "device": found.device(1),
            "analyst": found.staff("analyst"),
            "admin": found.admin,
        }
        yield found


def routes(service):
    paths = service.http.get("/openapi.json").json()["paths"]
    return {(method, path) for path, methods in paths.items() for method in methods}


def test_every_route_has_its_rights_listed_here(service):
    assert routes(service) == set(RIGHTS)


@pytest.mark.parametrize("role", ["nobody", "device", "analyst", "admin"])
@pytest.mark.parametrize(("method", "path"), sorted(RIGHTS))
def test_only_those_with_a_right_get_through(service, method, path, role):
    campaign = "0" * 32  # there is none: whoever gets through is told so
    path_here = path.replace("{name}", campaign).replace("{number}", "999")
    body = {} if method == "get" else {"json": {}}
    if method == "delete":
        body = {}
    found = getattr(service.http, method)(path_here, headers=service.callers[role], **body)
    allowed = role in ALLOWED[RIGHTS[method, path]]
    if allowed and not (method == "delete" and role in ("device", "analyst")):
        assert found.status_code not in (401, 403), found.text
    elif role == "nobody":
        assert found.status_code == 401
        assert found.headers["www-authenticate"] == "Bearer"
    else:
        assert found.status_code == 403
    assert found.status_code < 500


def test_a_device_withdraws_itself_and_no_other(tmp_path):
    with serving(tmp_path) as service:
        service.enroll(2)
        one = service.device(1)
        assert service.http.delete("/v1/devices/2", headers=one).status_code == 403
        assert service.http.delete("/v1/devices/1", headers=one).status_code == 200
        assert service.http.get("/v1/me", headers=one).status_code == 401
        assert service.get("/v1/fleet") == {"enrolled": 1, "waiting": 0}


def test_the_page_and_its_files_are_public_and_nothing_else_is_served(service):
    for path in ("/page/../app.py", "/page/%2e%2e/app.py", "/ui/../_version.py", "/collect.db"):
        assert service.http.get(path).status_code == 404
    found = service.http.get("/")
    assert found.status_code == 200
    assert "script-src 'self'" in found.headers["content-security-policy"]


# tokens


@pytest.mark.parametrize(
    "token",
    [
        "",
        "admin-1",
        "admin-1.",
        "admin-1." + "A" * 43,
        "root-1." + "A" * 43,
        "enrol-1." + "A" * 43,
        "admin-0001." + "A" * 43,
        "admin-1." + "A" * 42 + "B",  # another spelling of the same bytes
        "admin-" + "9" * 30 + "." + "A" * 43,
        "admin-\u0661." + "A" * 43,
        "admin--1." + "A" * 43,
    ],
)
def test_what_is_no_token_of_ours_is_refused(service, token):
    headers = {"authorization": f"Bearer {token}".encode()}
    assert service.http.get("/v1/me", headers=headers).status_code == 401


def test_a_secret_is_of_its_own_number_and_role(service):
    given = parse(service.admin["authorization"].removeprefix("Bearer "))
    for other in (
        Token("analyst", given.number, given.secret),
        Token("admin", 999, given.secret),
        Token("device", given.number, given.secret),
    ):
        assert service.http.get("/v1/me", headers=bearer(other.text)).status_code == 401


def test_a_revoked_token_is_of_no_use(tmp_path):
    with serving(tmp_path) as service:
        other = service.staff("analyst")
        number = service.get("/v1/me", other)["number"]
        assert service.http.delete(f"/v1/staff/{number}", headers=service.admin).status_code == 200
        assert service.http.get("/v1/me", headers=other).status_code == 401
        again = service.http.delete(f"/v1/staff/{number}", headers=service.admin)
        assert again.status_code == 404


def test_nobody_locks_themselves_out(service):
    own = service.get("/v1/me")["number"]
    found = service.http.delete(f"/v1/staff/{own}", headers=service.admin)
    assert found.status_code == 409 and "your own" in found.json()["reason"]


def test_the_store_holds_no_secret(tmp_path):
    with serving(tmp_path) as service:
        service.enroll(3)
        made = service.http.post("/v1/enrolments", json={"count": 2}, headers=service.admin).json()
        secrets = [parse(text).secret for text in made["tokens"]] + list(service.secrets.values())
        secrets.append(parse((tmp_path / "admin.token").read_text().strip()).secret)
    files = [path.read_bytes() for path in tmp_path.iterdir() if path.name != "admin.token"]
    for secret in secrets:
        assert not any(secret in data or secret.hex().encode() in data for data in files)
        assert any(digest_of(secret) in data for data in files)


def test_the_files_of_a_server_are_its_own(tmp_path):
    with serving(tmp_path) as service:
        service.enroll(1)
        for path in tmp_path.iterdir():
            assert path.stat().st_mode & 0o077 == 0, path.name


def test_a_one_time_token_enrols_one_device(tmp_path):
    with serving(tmp_path) as service:
        made = service.http.post("/v1/enrolments", json={"count": 1}, headers=service.admin).json()
        (token,) = made["tokens"]

        def enroll(secret):
            given = {"devices": [{"token": token, "secret_hash": digest_of(secret).hex()}]}
            return service.http.post("/v1/devices", json=given).json()["devices"][0]

        assert enroll(b"a" * 32) == {"number": 1, "outcome": "enrolled"}
        assert enroll(b"a" * 32) == {"number": 1, "outcome": "there already"}
        assert enroll(b"b" * 32) == {"number": None, "outcome": "refused"}
        service.secrets[1] = b"b" * 32
        assert service.http.get("/v1/me", headers=service.device(1)).status_code == 401


def test_wrong_one_time_tokens_are_refused_one_by_one(tmp_path):
    with serving(tmp_path) as service:
        made = service.http.post("/v1/enrolments", json={"count": 2}, headers=service.admin).json()
        first, _ = made["tokens"]
        wrong = Token("enrol", 2, bytes(32)).text
        admin = service.admin["authorization"].removeprefix("Bearer ")
        hashed = digest_of(b"a" * 32).hex()
        given = [{"token": one, "secret_hash": hashed} for one in (first, wrong, admin, "x")]
        told = service.http.post("/v1/devices", json={"devices": given}).json()["devices"]
        assert [one["outcome"] for one in told] == ["enrolled"] + ["refused"] * 3


def test_after_many_wrong_tokens_an_address_has_to_wait(tmp_path):
    with serving(tmp_path, limits=RateLimits(failures=5)) as service:
        wrong = bearer(Token("admin", 1, bytes(32)).text)
        found = [service.http.get("/v1/me", headers=wrong).status_code for _ in range(8)]
        assert found == [401] * 5 + [429] * 3
        assert service.http.get("/v1/me", headers=service.admin).status_code == 200


def test_an_address_that_asks_too_often_without_a_token_has_to_wait(tmp_path):
    with serving(tmp_path, limits=RateLimits(address_rate=0.5, burst=4.0)) as service:
        found = [service.http.get("/v1/me").status_code for _ in range(4)]
        assert found == [401, 401, 429, 429]


def test_a_caller_who_asks_too_often_has_to_wait(tmp_path):
    with serving(tmp_path, limits=RateLimits(device_rate=0.5, burst=4.0)) as service:
        service.enroll(1)
        found = [service.http.get("/v1/me", headers=service.device(1)) for _ in range(4)]
        assert [one.status_code for one in found] == [200, 200, 429, 429]
        assert found[-1].headers["retry-after"]


# sizes


def test_requests_that_are_too_large_are_refused(tmp_path):
    with serving(tmp_path, limits=RateLimits(body=2000, batch_body=4000)) as service:
        headers = {**service.admin, "content-type": "application/json"}
        for path, most in (("/v1/campaigns", 2000), ("/v1/answers", 4000)):
            large = service.http.post(path, content=b"x" * (most + 1), headers=headers)
            assert large.status_code == 413 and f"{most:,}" in large.json()["reason"]
            pieces = (b"x" * 1000 for _ in range(10))  # without a length
            assert service.http.post(path, content=pieces, headers=headers).status_code == 413
            small = service.http.post(path, content=b"x" * 100, headers=headers)
            assert small.status_code == 422


def test_refusals_do_not_repeat_what_was_sent(service):
    secret = "sunday-the-seventh"
    for path, given in (
        ("/v1/campaigns", {"kind": secret}),
        ("/v1/campaigns", categories(5) | {"people": secret}),
        ("/v1/enrolments", {"count": secret}),
        ("/v1/devices", {"devices": [{"token": secret, "secret_hash": secret}]}),
    ):
        found = service.http.post(path, json=given, headers=service.admin)
        assert found.status_code == 422
        assert secret not in found.text and re.search(r"\w+: ", found.json()["reason"])


# logs


def test_logs_hold_no_secret_and_nothing_that_was_sent(tmp_path, caplog):
    with caplog.at_level("INFO", "tempriv.collect"), serving(tmp_path) as service:
        service.enroll(1)
        service.http.get("/v1/me?note=private-word", headers=service.device(1))
        service.begin(categories(5, title="secret-title"))
        tokens = [service.admin["authorization"], service.device(1)["authorization"]]
    written = "\n".join(
        one.getMessage() for one in caplog.records if one.name.startswith("tempriv")
    )
    assert '"route": "/v1/me"' in written and '"role": "device"' in written
    for private in (*(one.partition(".")[2] for one in tokens), "private-word", "secret-title"):
        assert private not in written


# one server a store


def test_a_second_server_is_refused(tmp_path):
    from tempriv.collect.server.database import Database
    from tempriv.errors import TemprivError

    with serving(tmp_path), pytest.raises(TemprivError, match="another server"):
        Database(f"sqlite:///{tmp_path}/collect.db").open()


def test_tables_of_another_program_are_left_alone(tmp_path):
    from tempriv.collect.server.database import Database
    from tempriv.errors import TemprivError

    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE precious (x)")
    with pytest.raises(TemprivError, match="another program"):
        Database(f"sqlite:///{tmp_path}/other.db").open()


def test_time_is_that_of_the_clock(tmp_path):
    clock = Clock()
    with serving(tmp_path, clock=clock) as service:
        assert service.begin(categories(5))["spec"]["opens"] == BEGUN.strftime("%Y-%m-%dT%H:%M:%SZ")

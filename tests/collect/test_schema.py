"""The server against whatever its own description allows, and what it does not."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.collect_processes import served
from tests.support.collecting import bearer, categories, shapes, stream, upload

pytestmark = pytest.mark.services
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,negative_data_rejection"
)


@pytest.mark.parametrize("role", ["admin", "device", "nobody"])
@pytest.mark.parametrize("made", [categories, shapes, stream, upload])
def test_nothing_that_is_sent_makes_it_fail(tmp_path, made, role):
    pytest.importorskip("schemathesis", reason="needs the extra 'services'")
    program = Path(sys.executable).with_name("schemathesis")
    with served(tmp_path, f"sqlite:///{tmp_path}/collect.db") as server:
        with httpx.Client(base_url=server.url, headers=bearer(server.admin)) as http:
            server.enroll(http, 40)
            campaign = http.post("/v1/campaigns", json=made(40)).json()["id"]
        token = {"admin": server.admin, "device": server.device(1), "nobody": "admin-9.wrong"}
        settings = tmp_path / "schemathesis.toml"
        settings.write_text(f'[parameters]\n"path.name" = "{campaign}"\n')
        words = [
            str(program),
            "--config-file",
            str(settings),
            "run",
            f"{server.url}/openapi.json",
            "-H",
            f"Authorization: Bearer {token[role]}",
            "--checks",
            CHECKS,
            "--max-examples",
            "25",
            "--seed",
            "1",
            "--exclude-path-regex",
            "events$",
        ]
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "Test cases:" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout[-6000:]

"""The page in a real browser: a person runs a campaign with it, from the tokens to the release.

Tests that open a browser need Chromium (apt-get install chromium) and the package playwright. The
fixture ``page_server`` gives a ``PageServer``: a server of its own that a test may change at will.
"""

import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tempriv.collect.protocol.kinds import campaign_kinds
from tempriv.collect.simulation.fleet import Fleet
from tempriv.collect.simulation.traffic import Traffic
from tempriv.local.streams.messages import StreamAnswer, StreamQuestion
from tempriv.sampling.keys import fresh_series_key
from tempriv.sampling.keystream import Keystream, StepRange
from tests.support.paths import ROOT

services = pytest.mark.services
SOURCE = ROOT / "src" / "tempriv"
PAGE, UI = SOURCE / "collect" / "page", SOURCE / "ui"
OURS = sorted(
    path for path in (*PAGE.glob("*"), *UI.glob("*")) if path.suffix in (".js", ".css", ".html")
)
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)
WIDTHS = {"desk": 1280, "phone": 360}
CATEGORIES = ("gas", "heat pump", "oil")
CHANGES = {"stream": {"A step every": "1", "Steps": "3"}}


# the files, without a browser


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_a_file_of_the_page_is_small_and_makes_no_markup_from_text(path):
    text = path.read_text()
    assert text.count("\n") < 400
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in text


def test_the_page_has_no_script_or_style_within_it():
    text = (PAGE / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))
    assert not re.search(r"(src|href)=\"(https?:)?//", text)


def test_every_module_that_is_imported_is_there():
    for path in OURS:
        folders = {"./": path.parent, "../ui/": UI}
        for where, name in re.findall(
            r"(?:from|import)\s+\"(\.+/(?:ui/)?)([^\"]+)\"", path.read_text()
        ):
            assert (folders[where] / name).is_file(), f"{path.name} imports {name}"


def test_every_file_that_a_style_or_the_page_names_is_there():
    """An address in a style is relative to the style, and not to the page."""
    named = [
        path.parent / address
        for path in OURS
        for address in re.findall(r'url\("([^"#]+)"\)', path.read_text())
    ]
    index = (PAGE / "index.html").read_text()
    named += [SOURCE / part for part in re.findall(r'(?:href|src)="(ui/[^"]+)"', index)]
    named += [PAGE / part for part in re.findall(r'(?:href|src)="page/([^"]+)"', index)]
    assert UI / "icon.svg" in named and PAGE / "app.js" in named
    assert [path for path in named if not path.is_file()] == []


def test_what_pages_share_knows_no_page():
    for path in UI.glob("*.js"):
        assert "../" not in path.read_text(), path.name


# a server with devices, and a browser


@dataclass
class PageServer:
    """A running server, its first admin, and devices that can answer a campaign of a category."""

    url: str
    admin_token: str
    secrets: dict[int, bytes] = field(default_factory=dict)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        head = {
            "Authorization": f"Bearer {self.admin_token}",
            "Content-Type": "application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.url + path, data, head, method=method)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.load(answer)

    def enroll(self, tokens: list[str]) -> None:
        """Devices make their secrets, and enroll with one-time tokens."""
        for token in tokens:
            number = int(token.removeprefix("enrol-").split(".")[0])
            self.secrets[number] = os.urandom(32)
            digest = sha256(self.secrets[number]).hexdigest()
            given = {"devices": [{"token": token, "secret_hash": digest}]}
            told = self.call("POST", "/v1/devices", given)
            assert told["devices"][0]["outcome"] == "enrolled"

    def answer(self, campaign: str, numbers: list[int]) -> None:
        """These devices say which category they have, through noise of their own."""
        asked = self.call("GET", f"/v1/campaigns/{campaign}/question")["question"]
        question = StreamQuestion.from_json(json.dumps(asked["body"]))
        reports = [
            question.frequency.report(
                number % question.size,
                Keystream([StepRange(fresh_series_key(), 0, 1)], "stream report"),
            )
            for number in numbers
        ]
        answers = [
            StreamAnswer(
                campaign=question.campaign,
                step=question.step,
                part=question.part,
                token=os.urandom(16),
                report=report,
            ).to_bytes()
            for report in reports
        ]
        parts = {
            "devices": b"".join(number.to_bytes(8, "big") for number in numbers),
            "secrets": b"".join(self.secrets[number] for number in numbers),
            "answers": b"".join(answers),
        }
        packed = {name: base64.b64encode(part).decode() for name, part in parts.items()}
        told = self.call("POST", "/v1/answers", {"question": asked["id"], **packed})
        assert base64.b64decode(told["outcomes"]) == bytes(len(numbers)), told["reasons"]


@pytest.fixture
def page_server(tmp_path: Path) -> Iterator[PageServer]:
    """``tempriv serve`` over an empty store."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [
        sys.executable,
        "-m",
        "tempriv",
        "serve",
        "--port",
        str(port),
        "--quiet",
        "--store",
        f"sqlite:///{tmp_path}/collect.db",
        "--home",
        str(tmp_path),
    ]
    log = tmp_path / "serve.log"
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            _wait_for(url + "/health", process, log)
            yield PageServer(url, (tmp_path / "admin.token").read_text().strip())
        finally:
            process.terminate()
            process.wait(20)


def _wait_for(url: str, process: Any, log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"the server does not answer: {log.read_text()}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    assert program, "no chromium: apt-get install chromium"
    with sync_playwright() as running:
        opened = running.chromium.launch(executable_path=program, args=list(QUIET))
        yield opened
        opened.close()


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """A page at a desk; what its console complains of, refused requests aside, fails the test."""
    context = browser.new_context(viewport={"width": WIDTHS["desk"], "height": 900})
    page, complaints = context.new_page(), []
    page.on("pageerror", lambda problem: complaints.append(str(problem)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    yield page
    context.close()
    assert [one for one in complaints if "Failed to load resource" not in one] == []


def sign_in(page: Any, server: PageServer, token: str | None = None) -> None:
    page.goto(server.url + "/")
    page.get_by_label("Token").fill(token or server.admin_token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Campaigns", level=1).wait_for()


def start_campaign(page: Any, title: str) -> str:
    """Fill in a campaign about a category and start it; gives its id."""
    page.get_by_role("link", name="New campaign").first.click()
    page.get_by_role("radio", name="Frequency of a category").check()
    page.get_by_label("Title").fill(title)
    page.get_by_label("Categories").fill("\n".join(CATEGORIES))
    page.get_by_label("Epsilon", exact=True).fill("2.5")
    # the preview follows by itself, a moment after the last change
    preview = page.get_by_role("complementary", name="What this means")
    preview.get_by_text(re.compile(r"epsilon = 2\.5\b")).first.wait_for()
    preview.get_by_role("heading", name="What a device reveals").wait_for()
    page.get_by_role("button", name="Start the campaign").click()
    page.get_by_role("heading", name=title, level=1).wait_for()
    return page.url.rpartition("/")[2]


# what a person does


@services
def test_a_person_runs_a_campaign_from_the_tokens_to_the_release(tab, page_server, tmp_path):
    sign_in(tab, page_server)
    tab.get_by_role("heading", name="No campaign yet").wait_for()
    tab.get_by_text(f"tempriv simulate --url {page_server.url} --devices 10000").wait_for()

    tab.get_by_role("link", name="Fleet", exact=True).first.click()
    tab.get_by_label("How many").fill("40")
    tab.get_by_role("button", name="Make tokens").click()
    with tab.expect_download() as coming:
        tab.get_by_role("button", name="Download as a text file").click()
    tokens = Path(coming.value.path()).read_text().split()
    assert len(tokens) == 40 and all(token.startswith("enrol-") for token in tokens)
    tab.get_by_role("dialog").get_by_role("button", name="Close").click()
    page_server.enroll(tokens)
    numbers = sorted(page_server.secrets)

    campaign = start_campaign(tab, "How homes are heated")
    tab.get_by_text("0 of 40 answers (0.0 %)").wait_for()
    page_server.answer(campaign, numbers[:25])
    tab.get_by_text("25 of 40 answers (62.5 %)").wait_for()  # by events: nothing is reloaded
    page_server.answer(campaign, numbers[25:])
    tab.locator(".pill", has_text="Finished").wait_for()

    table = tab.get_by_role("table", name="Share of each category")
    table.wait_for()
    assert sorted(table.locator("tbody th").all_inner_texts()) == sorted(CATEGORIES)
    assert re.fullmatch(r"\d+\.\d\s%", table.locator("tbody td").first.inner_text())
    assert tab.locator(".plot canvas").bounding_box()["width"] > 300

    for form in ("csv", "json"):
        with tab.expect_download() as coming:
            tab.get_by_role("button", name=form.upper(), exact=True).click()
        text = Path(coming.value.path()).read_text()
        if form == "csv":
            assert all(name in text for name in CATEGORIES)
        else:
            assert json.loads(text)["release"] == campaign


@services
def test_what_protects_practically_nothing_is_started_only_if_that_is_meant(tab, page_server):
    sign_in(tab, page_server)
    tab.get_by_role("link", name="New campaign").first.click()
    tab.get_by_role("radio", name="Frequency of a category").check()
    tab.get_by_label("Title").fill("Nothing hidden")
    tab.get_by_label("Categories").fill("\n".join(CATEGORIES))
    tab.get_by_label("Epsilon", exact=True).fill("11")
    accept = tab.get_by_label("Start it although it protects practically nothing")
    accept.wait_for()
    tab.get_by_role("button", name="Start the campaign").click()
    tab.get_by_role("alert").filter(has_text="epsilon=11: protects practically nothing").wait_for()
    accept.check()
    tab.get_by_role("button", name="Start the campaign").click()
    tab.get_by_role("heading", name="Nothing hidden", level=1).wait_for()


@services
def test_a_wrong_token_gets_one_clear_sentence_and_is_not_kept(tab, page_server):
    tab.goto(page_server.url + "/")
    for token, sentence in (
        ("admin-1." + "A" * 43, "The server does not know this token."),
        ("let me in", "This does not look like a token."),
    ):
        tab.get_by_label("Token").fill(token)
        tab.get_by_role("button", name="Sign in").click()
        tab.get_by_role("alert").filter(has_text=sentence).wait_for()
        assert tab.evaluate("sessionStorage.length + localStorage.length") == 0
    sign_in(tab, page_server)
    assert tab.evaluate("localStorage.length") == 0
    tab.get_by_role("button", name="Sign out").click()
    tab.get_by_role("heading", name="Sign in").wait_for()
    assert tab.evaluate("sessionStorage.length") == 0


@services
def test_a_colleague_gets_a_token_and_loses_it(tab, page_server):
    sign_in(tab, page_server)
    tab.get_by_role("link", name="Fleet", exact=True).first.click()
    tab.get_by_label("Name").fill("Grace")
    tab.get_by_role("button", name="Make token", exact=True).click()
    token = tab.get_by_role("dialog").locator("pre").inner_text().strip()
    assert token.startswith("analyst-")
    close = tab.get_by_role("dialog").get_by_role("button", name="Close")
    close.click()
    tab.get_by_text("Not downloaded yet").wait_for()  # it is shown once: closing takes two tries
    close.click()

    tab.get_by_role("button", name="Sign out").click()
    sign_in(tab, page_server, token)
    tab.get_by_role("link", name="Fleet", exact=True).first.click()
    tab.get_by_text("are made by an admin").wait_for()
    assert tab.get_by_role("button", name="Make tokens").count() == 0

    tab.get_by_role("button", name="Sign out").click()
    sign_in(tab, page_server)
    tab.get_by_role("link", name="Fleet", exact=True).first.click()
    tab.get_by_role("button", name="Revoke the token of Grace").click()
    tab.get_by_role("button", name="Revoke the token", exact=True).click()
    tab.get_by_role("cell", name="revoked").wait_for()


@services
def test_cancelling_asks_first(tab, page_server):
    sign_in(tab, page_server)
    campaign = start_campaign(tab, "Never mind")
    tab.get_by_role("button", name="Cancel the campaign").click()
    tab.get_by_role("button", name="Let it run").click()
    assert page_server.call("GET", f"/v1/campaigns/{campaign}")["state"] != "cancelled"
    tab.get_by_role("button", name="Cancel the campaign").click()
    tab.get_by_role("dialog").get_by_role("button", name="Cancel the campaign").click()
    tab.locator(".pill", has_text="Canceled").wait_for()
    assert page_server.call("GET", f"/v1/campaigns/{campaign}")["state"] == "cancelled"


@services
def test_a_number_that_is_wrong_is_told_beside_its_field(tab, page_server):
    sign_in(tab, page_server)
    tab.get_by_role("link", name="New campaign").first.click()
    for given, sentence in (("0,5", "write a decimal point"), ("-1", "must be above 0")):
        tab.get_by_label("Epsilon", exact=True).fill(given)
        tab.get_by_text(sentence).wait_for()
        assert tab.get_by_label("Epsilon", exact=True).get_attribute("aria-invalid") == "true"


@services
@pytest.mark.parametrize("kind", campaign_kinds())
def test_the_form_the_preview_and_the_result_of_each_kind_come_from_the_server(
    tab, page_server, kind
):
    sign_in(tab, page_server)
    with Traffic(Fleet.from_seed(5), page_server.url, page_server.admin_token) as traffic:
        traffic.enroll(200)
        tab.get_by_role("link", name="New campaign").first.click()
        title = campaign_kinds()[kind].title
        tab.get_by_role("radio", name=title, exact=True).check()
        tab.get_by_label("Title").fill("As it comes")
        for field, value in CHANGES.get(kind, {}).items():
            tab.get_by_label(field, exact=True).fill(value)
        preview = tab.get_by_role("complementary", name="What this means")
        preview.get_by_role("heading", name="The guarantee").wait_for()
        tab.get_by_role("button", name="Start the campaign").click()
        tab.get_by_role("heading", name="As it comes", level=1).wait_for()
        campaign = tab.url.rpartition("/")[2]
        traffic.run(campaign, close_questions=True)
    tab.locator(".pill", has_text="Finished").wait_for()
    tab.get_by_role("heading", name="Result", exact=True).wait_for()
    view = campaign_kinds()[kind].result_view
    if view.view == "text":
        tab.get_by_text("200 protected series were sent").wait_for()
        return
    table = tab.get_by_role("table", name=view.caption)
    table.wait_for()
    heads = table.locator("thead th").all_inner_texts()
    always = [column.head for column in view.columns if not column.optional]
    assert [head for head in heads if head in always] == always
    drawn = {"bars": ".plot canvas", "lines": ".plot canvas", "sequences": ".shape-card svg.shape"}
    assert tab.locator(drawn[view.view]).first.bounding_box()["width"] > 100


@services
def test_what_is_wrong_between_fields_is_told_beside_one_of_them(tab, page_server):
    sign_in(tab, page_server)
    tab.get_by_role("link", name="New campaign").first.click()
    tab.get_by_label("Longest sequence").fill("40")
    tab.get_by_text("With 4 letters, at most 31 fit.").wait_for()
    assert tab.get_by_label("Longest sequence").get_attribute("aria-invalid") == "true"
    tab.get_by_role("radio", name="Upload of protected series").check()
    assert tab.get_by_label("Lowest reading").is_visible()
    tab.get_by_label("How readings are protected", exact=True).select_option("other")
    assert tab.get_by_label("Mechanism as JSON").is_visible()
    assert not tab.get_by_label("Lowest reading").is_visible()


@services
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_view_is_wider_than_the_screen_and_every_field_has_a_name(
    browser, page_server, width, scheme
):
    context = browser.new_context(
        viewport={"width": WIDTHS[width], "height": 800}, color_scheme=scheme
    )
    page = context.new_page()
    sign_in(page, page_server)
    start_campaign(page, "Narrow")
    here = page.url.rpartition("#")[2]
    for address in ("/", "/new", "/fleet", here):
        page.goto(f"{page_server.url}/#{address}")
        page.wait_for_timeout(600)
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) <= 0, address
        assert page.locator("h1").count() == 1
        nameless = page.evaluate(
            """[...document.querySelectorAll('input, select, textarea')].filter((field) =>
            !field.labels?.length && !field.getAttribute('aria-label')).length"""
        )
        assert nameless == 0, address
    context.close()

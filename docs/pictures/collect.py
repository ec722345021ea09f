"""Takes the pictures of the page on collecting: a campaign from sign-in to result, in a browser.

Run it with ``python docs/pictures/collect.py``; it needs Chromium and the extra ``services``. It
does what the page says: a server, ten thousand made-up devices, and a person who clicks.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

STATIC = Path(__file__).parents[1] / "_static"
TEMPRIV = Path(sys.executable).with_name("tempriv")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
WIDE = {"width": 1120, "height": 820}


def taken(page: Page, name: str) -> None:
    page.wait_for_timeout(400)
    page.screenshot(path=STATIC / f"collect-{name}.png")
    print(f"collect-{name}.png")


def walk(page: Page, url: str, token: str, home: Path) -> None:
    page.goto(url)
    page.get_by_label("Token").fill(token[:9] + "…")
    taken(page, "1-sign-in")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Fleet").first.click()
    page.get_by_text("10,000").first.wait_for()
    taken(page, "2-fleet")
    page.get_by_role("link", name="New campaign").first.click()
    page.get_by_label("Title").fill("Weekday mornings")
    page.get_by_label("What is asked").fill("What does a weekday morning look like at your home?")
    page.get_by_label("Longest sequence").fill("8")
    page.get_by_label("Method").select_option("nearest")
    page.get_by_text("The guarantee").wait_for()
    page.wait_for_timeout(1500)
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    taken(page, "3-new")
    # answers come in as soon as it starts: a picture of its progress needs a bad network
    slow = subprocess.Popen(
        [
            TEMPRIV,
            "simulate",
            "--url",
            url,
            "--devices",
            "10000",
            "--follow",
            "--seed",
            "7",
            "--batch",
            "5",
            "--loss",
            "0.2",
        ],
        cwd=home,
    )
    page.get_by_role("button", name="Start the campaign").click()
    page.get_by_text("Questions so far").wait_for(timeout=60_000)
    page.wait_for_timeout(2500)
    taken(page, "4-progress")
    page.get_by_text("Finished").first.wait_for(timeout=300_000)
    page.get_by_text("Download the release").wait_for()
    page.get_by_role("heading", name="Result", exact=True).evaluate("it => it.scrollIntoView()")
    taken(page, "5-result")
    slow.terminate()
    slow.wait()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        server = subprocess.Popen(
            [TEMPRIV, "serve", "--port", "0", "--quiet"],
            cwd=home,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found
            url, token = found.group(), (home / "admin.token").read_text().strip()
            enrolling = [TEMPRIV, "simulate", "--url", url, "--devices", "10000", "--seed", "7"]
            subprocess.run(enrolling, cwd=home, check=True, stdout=subprocess.DEVNULL)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path="/usr/bin/chromium", args=QUIET
                )
                page = browser.new_page(viewport=WIDE, device_scale_factor=1.5)
                walk(page, url, token, home)
                browser.close()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()

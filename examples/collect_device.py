"""A device that takes part in a campaign, and the server that asks; both on this machine.

Run it with ``python examples/collect_device.py``; it needs ``pip install 'tempriv[collect]'``, and
what it writes is in a folder that is gone at the end.
"""

import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from tempriv.collect import Client

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
URL = f"http://127.0.0.1:{port}"


def device(home: Path, enrollment: str) -> None:
    """All of a device: it keeps its own account, in a folder that only its owner can read."""
    with Client(URL, home, enrollment=enrollment, most_epsilon=1.0, limit=4.0) as client:
        client.hold(category="gas")

        for offer in client.offers():
            print(f"{offer.campaign.title}: {offer.campaign.asks}")
            for sentence in offer.sentences:
                print(f"  - {sentence}")
            print(f"  = {offer.refusal or 'within the limits of this device'}")

        visit = client.run_once()  # an app calls client.run(), which goes on
        print(f"answers taken: {visit.taken}; epsilon spent so far: {client.spent():g}")
        visit = client.run_once()
        print(f"a second look, answers taken: {visit.taken}")


def organisation(folder: Path, path: str, **given: Any) -> dict[str, Any]:
    """What whoever runs the server does, with the token that it wrote."""
    token = (folder / "admin.token").read_text().strip()
    headers = {"authorization": f"Bearer {token}"}
    found = httpx.post(URL + path, headers=headers, json=given)
    found.raise_for_status()
    return dict(found.json())


def is_up() -> bool:
    try:
        return httpx.get(f"{URL}/health").status_code == 200
    except httpx.HTTPError:
        return False


with tempfile.TemporaryDirectory() as name:
    here = Path(name)
    serve = [sys.executable, "-m", "tempriv", "serve", "--port", str(port), "--quiet"]
    server = subprocess.Popen(serve, cwd=here, stdout=subprocess.DEVNULL)
    try:
        while not is_up() and server.poll() is None:
            time.sleep(0.1)
        organisation(
            here,
            "/v1/campaigns",
            kind="frequency",
            title="Heating",
            epsilon=1.0,
            people=1,
            asks="How is the home heated?",
            plan={"categories": ["gas", "oil", "wood"], "oracle": "automatic"},
        )
        device(here / "device", organisation(here, "/v1/enrollments", count=1)["tokens"][0])
    finally:
        server.terminate()
        server.wait()

"""Files that 0.8.0 wrote, unpacked where a test may change them.

Streams and devices refuse to go on from a copy of their files: they know the file by its number.
A checkout is a copy too, so ``adopt_state`` and ``adopt_home`` write the number of the copy where
that of the original stands. They do so by the format of 0.8.0, without the code that is tested.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.behavior import internal

KEPT = Path(__file__).parents[1] / "golden" / "v0.8.0"


def expected() -> dict[str, Any]:
    """What 0.8.0 said of these files."""
    return dict(json.loads((KEPT / "expected.json").read_text()))


def unpack(name: str, folder: Path) -> Path:
    """A packed fixture, or a folder of them; only its owner can read it, as it was written."""
    packed = KEPT / f"{name}.zip"
    out = folder / name
    if packed.exists():
        with zipfile.ZipFile(packed) as files:
            files.extractall(out)
    else:
        shutil.copytree(KEPT / name, out)
    make_private(out)
    return out


def make_private(folder: Path) -> None:
    """Git keeps no such permissions."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)


def pack(folder: Path, to: Path) -> None:
    """With a fixed date, and folders that are empty."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as files:
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder)) + ("/" if path.is_dir() else "")
            info = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            files.writestr(info, b"" if path.is_dir() else path.read_bytes())


def adopt_state(state: Path) -> None:
    """Let a copy of a stream's state be the state."""
    with closing(sqlite3.connect(state)) as db, db:
        own = json.dumps(internal("file_of")(state))
        db.execute("UPDATE about SET value = ? WHERE name = 'file'", (own,))
        rows = db.execute("SELECT name, value FROM about").fetchall()
        about = json.dumps({name: json.loads(value) for name, value in rows}, sort_keys=True)
        told, pending, aside = db.execute("SELECT told, pending, aside FROM standing").fetchone()
        name = hashlib.blake2b(about.encode(), digest_size=16).hexdigest()
        text = json.dumps(json.loads(told) | {"about": name})
        total = hashlib.blake2b(digest_size=16)
        for part in (text.encode(), pending, aside):
            total.update(len(part).to_bytes(8, "big") + part)
        db.execute("UPDATE standing SET told = ?, digest = ?", (text, total.digest()))


def adopt_home(home: Path) -> None:
    """Let a copy of a device's home be the device."""
    identity = home / "identity.json"
    told = json.loads(identity.read_text()) | {"place": internal("file_of")(home / "lock")}
    identity.write_text(json.dumps(told, sort_keys=True))

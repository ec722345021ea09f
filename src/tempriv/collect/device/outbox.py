"""Answers that wait to be sent: on disk before they leave, and the same bytes every time."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tempriv.data.files import sync_directory, write_durably
from tempriv.errors import StateError, require
from tempriv.local.wire import (
    DAMAGE_ERRORS,
    decode_campaign,
    from_base64,
    members,
    require_state,
    strict_json,
    whole_number,
)

SUFFIX = ".letter"
FIELDS = ("campaign", "question", "answer", "deadline", "link")


@dataclass(frozen=True)
class PendingAnswer:
    """One answer as it goes over the wire, protected already.

    ``link`` is the link of the device's key chain that its noise came from, and ``deadline`` when
    its campaign is over and nobody wants it any more.
    """

    campaign: str
    question: str
    answer: bytes = field(repr=False)
    deadline: str
    link: int

    @property
    def closes_at(self) -> datetime:
        return datetime.fromisoformat(self.deadline)

    def to_bytes(self) -> bytes:
        answer = base64.b64encode(self.answer).decode()
        document = {name: getattr(self, name) for name in FIELDS} | {"answer": answer}
        return json.dumps(document, sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> PendingAnswer:
        """Read the answer in ``data``."""
        document = members(strict_json(data), FIELDS)
        require_state(
            all(isinstance(document[name], str) for name in ("question", "answer", "deadline"))
        )
        decode_campaign(document["campaign"])
        require_state(datetime.fromisoformat(document["deadline"]).tzinfo is not None)
        return cls(
            document["campaign"],
            document["question"],
            from_base64("answer", document["answer"]),
            document["deadline"],
            whole_number(document["link"]),
        )


class Outbox:
    """Answers that wait to be sent, in a folder of their own, one file each.

    Guarantees:
        - an answer is there as a whole or not at all, after a kill at any moment;
        - there is never a second answer to the same question.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> outbox = Outbox(Path(folder.name) / "outbox")
    >>> outbox.put(PendingAnswer("0" * 32, "0/0", b"noise", "2026-01-01T00:00:00Z", 0))
    >>> [pending.answer for pending in Outbox(outbox.folder)]
    [b'noise']
    """

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        for partial in folder.glob(".*.partial"):  # by a kill: it was never sent
            partial.unlink(missing_ok=True)

    def _place(self, question: str) -> Path:
        name = hashlib.blake2b(question.encode(), digest_size=16).hexdigest()
        return self.folder / f"{name}{SUFFIX}"

    def put(self, pending: PendingAnswer) -> None:
        """Keep ``pending`` on disk; it may be sent once this returns."""
        path = self._place(pending.question)
        require(not path.exists(), "an answer to this question waits already", StateError)
        write_durably(path, pending.to_bytes())

    def remove(self, pending: PendingAnswer) -> None:
        """Delete ``pending``: the server has it, or nobody wants it."""
        self._place(pending.question).unlink(missing_ok=True)
        sync_directory(self.folder)

    def clear(self) -> None:
        for path in self.folder.glob(f"*{SUFFIX}"):
            path.unlink(missing_ok=True)
        sync_directory(self.folder)

    def __iter__(self) -> Iterator[PendingAnswer]:
        """Those that can be read now."""
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            try:
                yield PendingAnswer.from_bytes(path.read_bytes())
            except OSError:
                continue  # not now; it stays where it is
            except DAMAGE_ERRORS:
                path.unlink(missing_ok=True)  # what a disk has spoilt is lost, and costs no privacy

    def __len__(self) -> int:
        return sum(1 for _ in self.folder.glob(f"*{SUFFIX}"))

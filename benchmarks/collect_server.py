"""The server that ``benchmarks.collect`` measures, with a route beside it that only inserts."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec
import numpy as np
import uvicorn
from fastapi import Request, Response
from sqlalchemy import Connection

from tempriv.collect.server.app import make_app
from tempriv.collect.server.database import Database
from tempriv.collect.server.rate_limits import RateLimits
from tempriv.collect.server.routes.answers import AnswerBatch, AnswerOutcomes

BARE = """CREATE TABLE IF NOT EXISTS bare (
    question TEXT, device BIGINT, answer BLOB, PRIMARY KEY (question, device)
) WITHOUT ROWID"""


def main(url: str, port: int) -> None:
    store = Database(url)
    store.open()
    store.do(lambda db: db.exec_driver_sql(BARE)).result()
    app = make_app(store, home=Path(store.path or "x").parent, limits=RateLimits(address_rate=1e9))
    decoder = msgspec.msgpack.Decoder(AnswerBatch)

    @app.post("/bare")
    async def bare(request: Request) -> Response:
        """Validate and insert: nobody is recognized, nothing is counted."""
        batch = decoder.decode(await request.body())
        devices = np.frombuffer(batch.devices, dtype=">u8").astype(np.int64).tolist()
        size = len(batch.answers) // len(devices)
        answers = [batch.answers[i : i + size] for i in range(0, len(batch.answers), size)]
        rows = [(batch.question, *one) for one in zip(devices, answers, strict=True)]

        def insert(db: Connection) -> None:
            db.exec_driver_sql("INSERT INTO bare VALUES (?, ?, ?)", rows)

        await asyncio.wrap_future(store.do(insert))
        return Response(msgspec.msgpack.encode(AnswerOutcomes(bytes(len(devices)))))

    uvicorn.run(app, port=port, log_level="critical", access_log=False)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

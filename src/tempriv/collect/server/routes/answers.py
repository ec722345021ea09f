"""Routes for answers: one of a device, or a batch of many, each with its own secret."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from typing import Annotated, Any

import msgspec
import numpy as np
from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from tempriv.collect.server.auth import (
    REFUSALS,
    ClientAddress,
    DeviceCaller,
    HttpProblem,
    Service,
    count_failure,
    done,
)
from tempriv.collect.server.rate_limits import RateLimits
from tempriv.collect.server.service import MALFORMED, NO_QUESTION, REASONS, THERE, UNKNOWN
from tempriv.collect.server.tokens import SECRET_BYTES

routes = APIRouter(responses=REFUSALS)
MSGPACK, JSON = "application/msgpack", "application/json"
MAX_ID_CHARACTERS = 80
NUMBER_BYTES = 8


ID_PATTERN = re.compile(r"[0-9a-f]{32}(/[0-9a-z]{1,20}){1,2}")


class OneAnswer(BaseModel):
    question: Annotated[str, Field(max_length=MAX_ID_CHARACTERS, pattern=f"^{ID_PATTERN.pattern}$")]
    answer: Annotated[str, Field(max_length=1 << 20)]


class AnswerBatch(msgspec.Struct, forbid_unknown_fields=True):
    """Answers of many devices to one question, in columns."""

    question: str
    devices: bytes  # 8 bytes each, the highest first
    secrets: bytes  # 32 bytes each
    answers: bytes  # all of one length


class AnswerOutcomes(msgspec.Struct):
    """A code for each answer; ``reasons`` says what codes mean."""

    outcomes: bytes
    reasons: tuple[str, ...] = REASONS


_DECODERS: dict[str, Any] = {
    MSGPACK: msgspec.msgpack.Decoder(AnswerBatch),
    JSON: msgspec.json.Decoder(AnswerBatch),
}
_ENCODERS: dict[str, Any] = {MSGPACK: msgspec.msgpack.encode, JSON: msgspec.json.encode}


def _schema(struct: Any) -> dict[str, Any]:
    schema: dict[str, Any] = msgspec.json.schema(struct)
    (body,) = [
        definition for name, definition in schema["$defs"].items() if name == struct.__name__
    ]
    return dict(body)


@routes.post("/v1/campaigns/{name}/answers")
def answer(
    name: Annotated[str, Path(pattern="^[0-9a-f]{32}$")],
    body: OneAnswer,
    caller: DeviceCaller,
    service: Service,
) -> dict[str, str]:
    """The answer of a device; one that was there already is there still.
    \f
    Parameters:
        name: of the campaign.
        body: the question and the answer.
        caller: the device.
        service: of the server.
    """
    try:
        data = base64.b64decode(body.answer, validate=True)
    except (ValueError, binascii.Error):
        raise HttpProblem(422, "answer: must be base64") from None
    if body.question.partition("/")[0] != name:
        raise HttpProblem(409, "the question belongs to another campaign")
    devices = np.array([caller.number], dtype=np.int64)
    codes = done(
        service.store.submit(lambda db: service.take(db, body.question, devices, None, data))
    )
    code = int(codes[0])
    if code == NO_QUESTION:
        raise HttpProblem(404, REASONS[code])
    if code > THERE:
        raise HttpProblem(422 if code == MALFORMED else 409, REASONS[code])
    return {"outcome": REASONS[code]}


@routes.post(
    "/v1/answers",
    response_model=None,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                JSON: {"schema": _schema(AnswerBatch)},
                MSGPACK: {"schema": {"type": "string", "format": "binary"}},
            },
        }
    },
    responses={
        200: {
            "content": {
                JSON: {"schema": _schema(AnswerOutcomes)},
                MSGPACK: {"schema": {"type": "string", "format": "binary"}},
            }
        }
    },
)
async def answers(request: Request, address: ClientAddress, service: Service) -> Response:
    """Answers of many devices, each with its own secret; what became of each.
    \f
    Parameters:
        request: with the batch.
        address: of the client.
        service: of the server.
    """
    limits: RateLimits = request.app.state.limits
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _DECODERS:
        raise HttpProblem(422, f"content-type: must be {MSGPACK} or {JSON}")
    try:
        batch = _DECODERS[kind].decode(await request.body())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise HttpProblem(422, "not a batch of answers") from None
    count = len(batch.devices) // NUMBER_BYTES
    if not (
        0 < count <= limits.batch
        and ID_PATTERN.fullmatch(batch.question) is not None
        and len(batch.devices) == NUMBER_BYTES * count
        and len(batch.secrets) == SECRET_BYTES * count
        and len(batch.answers) % count == 0
    ):
        raise HttpProblem(
            422,
            f"a batch: must have the id of a question, 1 to {limits.batch} devices, and a secret "
            "and an answer of each",
        )
    devices = np.frombuffer(batch.devices, dtype=">u8").astype(np.int64)
    future = service.store.submit(
        lambda db: service.take(db, batch.question, devices, batch.secrets, batch.answers)
    )
    codes = await asyncio.wrap_future(future)
    if (codes == UNKNOWN).any():
        count_failure(request, address)
    return Response(_ENCODERS[kind](AnswerOutcomes(codes.tobytes())), media_type=kind)

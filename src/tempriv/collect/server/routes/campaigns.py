"""Routes for campaigns: before, while and after devices are asked."""

from __future__ import annotations

import asyncio
import io
import json
import tempfile
import zipfile
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi import Path as NamePath
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from tempriv.collect.protocol.amplification import amplified, amplified_facts
from tempriv.collect.protocol.campaign import DEFAULT_DAYS, VERSION, Campaign
from tempriv.collect.protocol.forms import CampaignDraft, KindDescription
from tempriv.collect.protocol.kinds import campaign_kinds
from tempriv.collect.protocol.kinds.base import YEAR_SECONDS, utc_text
from tempriv.collect.server import results, views
from tempriv.collect.server.auth import ANYONE, REFUSALS, SERVICE, STAFF, Problem, done
from tempriv.collect.server.service import CollectionService
from tempriv.collect.server.tokens import Caller
from tempriv.releases.description import sidecar_path
from tempriv.sampling.keys import new_id

routes = APIRouter(prefix="/v1/campaigns", responses=REFUSALS)
kind_routes = APIRouter(prefix="/v1/campaign-kinds", responses=REFUSALS)
LOOK = 0.25  # seconds between looks at what changed
HEARTBEAT = 15.0
Name = Annotated[str, NamePath(pattern="^[0-9a-f]{32}$")]
if TYPE_CHECKING:
    KindName = str
else:
    KindName = Literal[tuple(campaign_kinds())]


class NewCampaign(BaseModel):
    """A campaign before it begins; what is not given is filled in."""

    model_config = ConfigDict(extra="forbid")

    kind: KindName
    title: Annotated[str, Field(min_length=1, max_length=200)]
    asks: Annotated[str, Field(min_length=1, max_length=2000)]
    epsilon: Annotated[float, Field(gt=0, le=100)]
    people: Annotated[int, Field(ge=1, le=10**9)]
    plan: dict[str, Any]
    opens: str | None = None
    deadline: str | None = None
    patience: Annotated[float, Field(gt=0, le=YEAR_SECONDS)] = 3600.0
    nonce: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = None
    tempriv: Literal["campaign"] = "campaign"
    version: Literal[1] = 1

    def made(self, desk: CollectionService) -> Campaign:
        now = desk.clock().replace(microsecond=0)
        given = self.model_dump()
        given["version"] = VERSION
        given["opens"] = self.opens or utc_text(now)
        given["deadline"] = self.deadline or utc_text(now + timedelta(days=DEFAULT_DAYS))
        given["nonce"] = self.nonce or new_id()
        made = Campaign.from_dict(given)
        return Campaign.from_json(made.to_json())  # what is kept can be read again


class KindList(BaseModel):
    """The kinds of campaigns, each with its form and how its result is drawn."""

    kinds: list[KindDescription]


class FormValues(BaseModel):
    """What was filled in, by the name of a field."""

    values: dict[str, Any]


@kind_routes.get("", response_model_exclude_none=True)
def kinds(
    caller: Annotated[Caller, STAFF], desk: Annotated[CollectionService, SERVICE]
) -> KindList:
    """The kinds of campaigns: what each finds out, its form, and how its result is drawn."""
    with desk.store.reading() as db:
        enrolled = views.fleet_of(db)["enrolled"]
    return KindList(kinds=[kind.describe(enrolled) for kind in campaign_kinds().values()])


@kind_routes.post("/{kind}/draft")
def draft(
    kind: KindName,
    given: FormValues,
    caller: Annotated[Caller, STAFF],
    desk: Annotated[CollectionService, SERVICE],
) -> CampaignDraft:
    """The campaign that a form makes, ready to preview or begin; or what is wrong with it."""
    return campaign_kinds()[kind].draft(given.values, desk.clock())


def _row(db: Any, name: str) -> Any:
    row = views.campaign_row(db, name)
    if row is None:
        raise Problem(404, "no such campaign")
    return row


@routes.post("/preview")
def preview(
    given: NewCampaign,
    caller: Annotated[Caller, STAFF],
    desk: Annotated[CollectionService, SERVICE],
) -> dict[str, Any]:
    """What a campaign would mean for a device, without beginning it."""
    campaign = given.made(desk)
    with desk.store.reading() as db:
        enrolled = views.fleet_of(db)["enrolled"]
    return {
        "spec": campaign.to_dict(),
        "sentences": campaign.sentences,
        "promise": campaign.guarantee.sentence,
        "published": campaign.published.sentence,
        "amplified": amplified_facts(amplified(campaign)),
        "warnings": campaign.warnings(enrolled),
    }


@routes.post("", status_code=201)
def begin(
    given: NewCampaign,
    caller: Annotated[Caller, STAFF],
    desk: Annotated[CollectionService, SERVICE],
) -> dict[str, Any]:
    """Publish a campaign; from now on nothing of it can be changed."""
    campaign = given.made(desk)
    name = done(desk.store.do(lambda db: desk.begin(db, campaign, caller.number)))
    return _document(desk, name)


@routes.get("")
def campaigns(
    caller: Annotated[Caller, ANYONE], desk: Annotated[CollectionService, SERVICE]
) -> dict[str, Any]:
    with desk.store.reading() as db:
        rows = views.campaign_rows(db, caller)
        return {"campaigns": [views.document_of(db, row) for row in rows]}


@routes.get("/{name}")
def campaign(
    name: Name, caller: Annotated[Caller, ANYONE], desk: Annotated[CollectionService, SERVICE]
) -> dict[str, Any]:
    return _document(desk, name)


def _document(desk: CollectionService, name: str) -> dict[str, Any]:
    with desk.store.reading() as db:
        return views.document_of(db, _row(db, name))


@routes.get("/{name}/question")
def question(
    name: Name, caller: Annotated[Caller, ANYONE], desk: Annotated[CollectionService, SERVICE]
) -> dict[str, Any]:
    """What is asked now; a device is also told whether it is asked."""
    with desk.store.reading() as db:
        return {"question": views.question_of(db, _row(db, name), caller)}


class QuestionReference(BaseModel):
    """Which question is meant: another may be open by now."""

    question: Annotated[str, Field(max_length=80)]


@routes.post("/{name}/close-question")
def close_question(
    name: Name,
    given: QuestionReference,
    caller: Annotated[Caller, STAFF],
    desk: Annotated[CollectionService, SERVICE],
) -> dict[str, Any]:
    """Go on with what was received to this question."""
    _document(desk, name)
    done(desk.store.do(lambda db: desk.close_question(db, name, given.question)))
    return _document(desk, name)


@routes.post("/{name}/cancel")
def cancel(
    name: Name, caller: Annotated[Caller, STAFF], desk: Annotated[CollectionService, SERVICE]
) -> dict[str, Any]:
    """Ask nobody any more; nothing comes out."""
    _document(desk, name)
    done(desk.store.do(lambda db: desk.cancel(db, name)))
    return _document(desk, name)


def _result(desk: CollectionService, name: str) -> dict[str, Any]:
    with desk.store.reading() as db:
        row = _row(db, name)
        if row.state == "cancelled":
            raise Problem(409, "the campaign was canceled: nothing came out")
        found = Campaign.from_json(row.spec)
        state = found.load_state(row.course)
        steps = [] if found.answers_once else views.steps_of(db, name)
    return results.result_of(found, state, steps, row.finished_at)


@routes.get("/{name}/result")
def result(
    name: Name, caller: Annotated[Caller, STAFF], desk: Annotated[CollectionService, SERVICE]
) -> dict[str, Any]:
    """What the campaign found; of a stream also while it runs."""
    return _result(desk, name)


@routes.get(
    "/{name}/release",
    response_model=None,
    responses={
        200: {
            "content": {
                kind: {"schema": {"type": "string", "format": "binary"}}
                for kind in ("application/json", "text/csv", "application/zip")
            }
        }
    },
)
def release(
    name: Name,
    caller: Annotated[Caller, STAFF],
    desk: Annotated[CollectionService, SERVICE],
    form: Annotated[Literal["json", "csv", "zip"], Query()] = "zip",
) -> Response:
    """The release as files: the table, its description for ``tempriv verify``, or both."""
    found = _result(desk, name)
    with desk.store.reading() as db:
        uploads = views.uploads_of(db, name)
    made = results.release_of(found, uploads)
    with tempfile.TemporaryDirectory() as folder:
        path = made.write(Path(folder) / f"campaign-{name[:8]}.csv")
        table, told = path.read_bytes(), sidecar_path(path).read_bytes()
    if form == "zip":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(path.name, table)
            archive.writestr(sidecar_path(path).name, told)
        return _download(packed.getvalue(), f"campaign-{name[:8]}.zip", "application/zip")
    if form == "csv":
        return _download(table, path.name, "text/csv")
    return _download(told, sidecar_path(path).name, "application/json")


def _download(data: bytes, name: str, kind: str) -> Response:
    return Response(
        data, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'}
    )


@routes.get(
    "/{name}/events",
    response_model=None,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def events(
    name: Name,
    request: Request,
    caller: Annotated[Caller, STAFF],
    desk: Annotated[CollectionService, SERVICE],
) -> StreamingResponse:
    """The campaign, again whenever something has changed."""
    await run_in_threadpool(_document, desk, name)
    return StreamingResponse(
        _events(request, desk, name),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _events(request: Request, desk: CollectionService, name: str) -> AsyncIterator[str]:
    told, seen, quiet = "", -1, 0.0
    while not (await request.is_disconnected() or request.app.state.stopping):
        if desk.changes != seen:
            seen = desk.changes
            found = await run_in_threadpool(_document, desk, name)
            text = json.dumps(found)
            if text != told:
                told, quiet = text, 0.0
                yield f"data: {text}\n\n"
            if found["state"] in ("finished", "cancelled"):
                return
        quiet += LOOK
        if quiet >= HEARTBEAT:
            quiet = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(LOOK)

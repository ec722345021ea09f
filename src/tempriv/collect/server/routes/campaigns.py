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
from tempriv.collect.server.auth import REFUSALS, AnyCaller, HttpProblem, Service, StaffCaller, done
from tempriv.collect.server.service import CollectionService
from tempriv.privacy.guarantees import require_strength
from tempriv.releases.description import sidecar_path
from tempriv.sampling.keys import new_id

routes = APIRouter(prefix="/v1/campaigns", responses=REFUSALS)
kind_routes = APIRouter(prefix="/v1/campaign-kinds", responses=REFUSALS)
POLL_SECONDS = 0.25  # seconds between looks at what changed
HEARTBEAT_SECONDS = 15.0
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
    accept_weak: bool = False

    def made(self, service: CollectionService) -> Campaign:
        """The campaign with this spec, with what is left out filled in by the ``service``."""
        now = service.clock().replace(microsecond=0)
        document = self.model_dump(exclude={"accept_weak"})
        document["version"] = VERSION
        document["opens"] = self.opens or utc_text(now)
        document["deadline"] = self.deadline or utc_text(now + timedelta(days=DEFAULT_DAYS))
        document["nonce"] = self.nonce or new_id()
        campaign = Campaign.from_dict(document)
        return Campaign.from_json(campaign.to_json())  # what is kept can be read again


class KindList(BaseModel):
    """The kinds of campaigns, each with its form and how its result is drawn."""

    kinds: list[KindDescription]


class FormValues(BaseModel):
    """What was filled in, by the name of a field."""

    values: dict[str, Any]


@kind_routes.get("", response_model_exclude_none=True)
def kinds(caller: StaffCaller, service: Service) -> KindList:
    """The kinds of campaigns: what each finds out, its form, and how its result is drawn.
    \f
    Parameters:
        caller: somebody of the staff.
        service: of the server.
    """
    with service.store.reading() as db:
        enrolled = views.fleet_of(db)["enrolled"]
    return KindList(kinds=[kind.describe(enrolled) for kind in campaign_kinds().values()])


@kind_routes.post("/{kind}/draft")
def draft(kind: KindName, body: FormValues, caller: StaffCaller, service: Service) -> CampaignDraft:
    """The campaign that a form makes, ready to preview or begin; or what is wrong with it.
    \f
    Parameters:
        kind: name of the kind.
        body: what was filled in.
        caller: somebody of the staff.
        service: of the server.
    """
    return campaign_kinds()[kind].draft(body.values, service.clock())


def _row(db: Any, name: str) -> Any:
    row = views.campaign_row(db, name)
    if row is None:
        raise HttpProblem(404, "no such campaign")
    return row


@routes.post("/preview")
def preview(body: NewCampaign, caller: StaffCaller, service: Service) -> dict[str, Any]:
    """What a campaign would mean for a device, without beginning it.
    \f
    Parameters:
        body: the campaign.
        caller: somebody of the staff.
        service: of the server.
    """
    campaign = body.made(service)
    with service.store.reading() as db:
        enrolled = views.fleet_of(db)["enrolled"]
    return {
        "spec": campaign.to_dict(),
        "sentences": campaign.sentences,
        "sentence": campaign.guarantee.sentence,
        "published": campaign.published.sentence,
        "amplified": amplified_facts(amplified(campaign)),
        "warnings": campaign.warnings(enrolled),
        "protects_little": campaign.guarantee.protects_little,
    }


@routes.post("", status_code=201)
def begin(body: NewCampaign, caller: StaffCaller, service: Service) -> dict[str, Any]:
    """Publish a campaign; from now on nothing of it can be changed. An epsilon above 10 protects
    practically nothing and is refused without ``accept_weak``.
    \f
    Parameters:
        body: the campaign.
        caller: somebody of the staff.
        service: of the server.
    """
    campaign = body.made(service)
    require_strength(campaign.guarantee, body.accept_weak)
    name = done(service.store.submit(lambda db: service.begin(db, campaign, caller.number)))
    return _document(service, name)


@routes.get("")
def campaigns(caller: AnyCaller, service: Service) -> dict[str, Any]:
    """All campaigns; a device sees those that are open.
    \f
    Parameters:
        caller: anybody with a token.
        service: of the server.
    """
    with service.store.reading() as db:
        rows = views.campaign_rows(db, caller)
        return {"campaigns": [views.document_of(db, row) for row in rows]}


@routes.get("/{name}")
def campaign(name: Name, caller: AnyCaller, service: Service) -> dict[str, Any]:
    """One campaign, and how far it is.
    \f
    Parameters:
        name: of the campaign.
        caller: anybody with a token.
        service: of the server.
    """
    return _document(service, name)


def _document(service: CollectionService, name: str) -> dict[str, Any]:
    with service.store.reading() as db:
        return views.document_of(db, _row(db, name))


@routes.get("/{name}/question")
def question(name: Name, caller: AnyCaller, service: Service) -> dict[str, Any]:
    """What is asked now; a device is also told whether it is asked.
    \f
    Parameters:
        name: of the campaign.
        caller: anybody with a token.
        service: of the server.
    """
    with service.store.reading() as db:
        return {"question": views.question_of(db, _row(db, name), caller)}


class QuestionReference(BaseModel):
    """Which question is meant: another may be open by now."""

    question: Annotated[str, Field(max_length=80)]


@routes.post("/{name}/close-question")
def close_question(
    name: Name, body: QuestionReference, caller: StaffCaller, service: Service
) -> dict[str, Any]:
    """Go on with what was received to this question.
    \f
    Parameters:
        name: of the campaign.
        body: the question that is meant.
        caller: somebody of the staff.
        service: of the server.
    """
    _document(service, name)
    done(service.store.submit(lambda db: service.close_question(db, name, body.question)))
    return _document(service, name)


@routes.post("/{name}/cancel")
def cancel(name: Name, caller: StaffCaller, service: Service) -> dict[str, Any]:
    """Ask nobody any more; nothing comes out.
    \f
    Parameters:
        name: of the campaign.
        caller: somebody of the staff.
        service: of the server.
    """
    _document(service, name)
    done(service.store.submit(lambda db: service.cancel(db, name)))
    return _document(service, name)


def _result(service: CollectionService, name: str) -> dict[str, Any]:
    with service.store.reading() as db:
        row = _row(db, name)
        if row.state == "cancelled":
            raise HttpProblem(409, "the campaign was canceled: nothing came out")
        if row.state == "failed":
            raise HttpProblem(
                409,
                "the campaign failed: its answers could not be evaluated. They are kept, and a "
                "server that starts tries again; see its log",
            )
        spec = Campaign.from_json(row.spec)
        state = spec.load_state(row.course)
        steps = [] if spec.answers_once else views.steps_of(db, name)
    return results.result_of(spec, state, steps, row.finished_at)


@routes.get("/{name}/result")
def result(name: Name, caller: StaffCaller, service: Service) -> dict[str, Any]:
    """What the campaign found; of a stream also while it runs.
    \f
    Parameters:
        name: of the campaign.
        caller: somebody of the staff.
        service: of the server.
    """
    return _result(service, name)


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
    request: Request,
    caller: StaffCaller,
    service: Service,
    form: Annotated[Literal["json", "csv", "zip"], Query()] = "zip",
) -> Response:
    """The release as files: the table, its description for ``tempriv verify``, or both.
    \f
    Parameters:
        name: of the campaign.
        request: of the caller.
        caller: somebody of the staff.
        service: of the server.
        form: ``json``, ``csv`` or ``zip``.
    """
    document = _result(service, name)
    with service.store.reading() as db:
        uploads = views.uploads_of(db, name)
    state = request.app.state
    release_table = results.release_of(document, uploads, state.statements)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"campaign-{name[:8]}.csv"
        release_table.write(path, signing_key=state.signing_key)
        table, description = path.read_bytes(), sidecar_path(path).read_bytes()
    if form == "zip":
        archive_bytes = io.BytesIO()
        with zipfile.ZipFile(archive_bytes, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(path.name, table)
            archive.writestr(sidecar_path(path).name, description)
        return _download(archive_bytes.getvalue(), f"campaign-{name[:8]}.zip", "application/zip")
    if form == "csv":
        return _download(table, path.name, "text/csv")
    return _download(description, sidecar_path(path).name, "application/json")


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
    name: Name, request: Request, caller: StaffCaller, service: Service
) -> StreamingResponse:
    """The campaign, again whenever something has changed.
    \f
    Parameters:
        name: of the campaign.
        request: stays open.
        caller: somebody of the staff.
        service: of the server.
    """
    await run_in_threadpool(_document, service, name)
    return StreamingResponse(
        _events(request, service, name),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _events(request: Request, service: CollectionService, name: str) -> AsyncIterator[str]:
    sent, seen_changes, quiet_seconds = "", -1, 0.0
    while not (await request.is_disconnected() or request.app.state.stopping):
        if service.changes != seen_changes:
            seen_changes = service.changes
            document = await run_in_threadpool(_document, service, name)
            text = json.dumps(document)
            if text != sent:
                sent, quiet_seconds = text, 0.0
                yield f"data: {text}\n\n"
            if document["state"] in ("finished", "cancelled", "failed"):
                return
        quiet_seconds += POLL_SECONDS
        if quiet_seconds >= HEARTBEAT_SECONDS:
            quiet_seconds = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(POLL_SECONDS)

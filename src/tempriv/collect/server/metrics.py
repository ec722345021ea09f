"""Counts for Prometheus, and nothing about anyone."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from tempriv.collect.server import views
from tempriv.collect.server.auth import REFUSALS, SERVICE, STAFF
from tempriv.collect.server.service import CollectionService
from tempriv.collect.server.tokens import Caller

routes = APIRouter(responses=REFUSALS)


@routes.get(
    "/metrics",
    response_model=None,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(
    caller: Annotated[Caller, STAFF], desk: Annotated[CollectionService, SERVICE]
) -> PlainTextResponse:
    with desk.store.reading() as db:
        fleet = views.fleet_of(db)
        rows = views.campaign_rows(db, caller)
    found = [
        ("tempriv_answers_taken_total", "counter", "Answers counted since the start", desk.taken),
        ("tempriv_answers_refused_total", "counter", "Answers refused", desk.refused),
        ("tempriv_devices_enrolled", "gauge", "Devices enrolled", fleet["enrolled"]),
        ("tempriv_jobs_waiting", "gauge", "Jobs that wait for the store", desk.store.waiting),
        (
            "tempriv_campaigns_running",
            "gauge",
            "Campaigns that run",
            sum(row.state == "running" for row in rows),
        ),
    ]
    lines = []
    for name, kind, told, value in found:
        lines += [f"# HELP {name} {told}.", f"# TYPE {name} {kind}", f"{name} {value}"]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

"""Counts for Prometheus, and nothing about anyone."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from tempriv.collect.server import views
from tempriv.collect.server.auth import REFUSALS, Service, StaffCaller

routes = APIRouter(responses=REFUSALS)


@routes.get(
    "/metrics",
    response_model=None,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(caller: StaffCaller, service: Service) -> PlainTextResponse:
    """Counts in Prometheus' text format.
    \f
    Parameters:
        caller: somebody of the staff.
        service: of the server.
    """
    with service.store.reading() as db:
        fleet = views.fleet_of(db)
        rows = views.campaign_rows(db, caller)
    samples = [
        (
            "tempriv_answers_taken_total",
            "counter",
            "Answers counted since the start",
            service.taken,
        ),
        ("tempriv_answers_refused_total", "counter", "Answers refused", service.refused),
        ("tempriv_devices_enrolled", "gauge", "Devices enrolled", fleet["enrolled"]),
        ("tempriv_jobs_waiting", "gauge", "Jobs that wait for the store", service.store.waiting),
        (
            "tempriv_campaigns_running",
            "gauge",
            "Campaigns that run",
            sum(row.state == "running" for row in rows),
        ),
    ]
    lines = []
    for name, kind, help_text, value in samples:
        lines += [f"# HELP {name} {help_text}.", f"# TYPE {name} {kind}", f"{name} {value}"]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

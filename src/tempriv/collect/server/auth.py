"""Who asks, whether they may, and how a refusal is told: what all routes have in common."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel
from sqlalchemy import select

from tempriv.collect.server import schema
from tempriv.collect.server.rate_limits import RateLimits, Rates
from tempriv.collect.server.service import CollectionService
from tempriv.collect.server.tokens import Caller, Token, matches, parse

Result = TypeVar("Result")
BEARER = "bearer "


class HttpProblem(Exception):
    """What is answered instead, with a sentence."""

    def __init__(self, status: int, reason: str):
        super().__init__(reason)
        self.status, self.reason = status, reason


class Reason(BaseModel):
    """Why a request was refused."""

    reason: str


_DESCRIPTIONS: dict[int, str] = {
    400: "Cannot be read",
    401: "No token, or a wrong one",
    403: "Not for this role",
    404: "Not there",
    409: "Refused as things stand",
    411: "Its length is not told",
    413: "Too large",
    422: "Not of the form that is asked for",
    429: "Too many requests",
    503: "The store cannot be written now",
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Reason, "description": description}
    for status, description in _DESCRIPTIONS.items()
}


def done(future: Future[Result]) -> Result:
    """Return what the job of ``future`` gave, once it is on disk; for routes in threads."""
    return future.result()


def served(request: Request) -> CollectionService:
    """Return the service that a ``request`` is for."""
    service: CollectionService = request.app.state.service
    return service


def address_of(request: Request) -> str:
    """Where a request without a token of its own comes from, if it may."""
    limits: RateLimits = request.app.state.limits
    rates: Rates = request.app.state.rates
    address = "?" if request.client is None else request.client.host
    _allow(rates, "address", address, limits.address_rate, limits)
    return address


def _allow(rates: Rates, kind: str, who: str, rate: float, limits: RateLimits) -> None:
    if not rates.allows(kind, who, rate, max(1.0, rate * limits.burst)):
        raise HttpProblem(429, "too many requests; wait a moment")


def caller_of(request: Request) -> Caller:
    """Return whose token a ``request`` carries; 401 if nobody's."""
    limits: RateLimits = request.app.state.limits
    rates: Rates = request.app.state.rates
    address = "?" if request.client is None else request.client.host
    header = request.headers.get("authorization", "")
    token = parse(header[len(BEARER) :].strip()) if header.lower().startswith(BEARER) else None
    caller = None if token is None or token.role == "enrol" else _known(request, token)
    if caller is None:
        _allow(rates, "address", address, limits.address_rate, limits)
        if header:
            count_failure(request, address)
        raise HttpProblem(401, "a valid token is needed: Authorization: Bearer TOKEN")
    rate = limits.device_rate if caller.role == "device" else limits.staff_rate
    _allow(rates, caller.role, str(caller.number), rate, limits)
    request.state.role = caller.role
    return caller


def count_failure(request: Request, address: str) -> None:
    """Count a wrong token or secret in ``request``; an ``address`` that tries many has to wait."""
    limits: RateLimits = request.app.state.limits
    if not request.app.state.rates.allows("wrong", address, limits.failures / 60, limits.failures):
        raise HttpProblem(429, f"{limits.failures} wrong tokens in a minute: wait before you go on")


def _known(request: Request, token: Token) -> Caller | None:
    service = served(request)
    with service.store.reading() as db:
        if token.role == "device":
            devices = schema.devices
            row = db.execute(select(devices).where(devices.c.number == token.number)).first()
            is_gone = row is None or row.withdrawn_at is not None
            digest, name = None if row is None or is_gone else row.secret, ""
        else:
            staff = schema.staff
            row = db.execute(select(staff).where(staff.c.number == token.number)).first()
            is_gone = row is None or row.revoked_at is not None or row.role != token.role
            digest, name = (None, "") if row is None or is_gone else (row.digest, row.name)
    matching = matches(token.secret, None if digest is None else bytes(digest))
    return Caller(token.role, token.number, name) if matching and not is_gone else None


def _staff(caller: Annotated[Caller, Depends(caller_of)]) -> Caller:
    if not caller.is_staff:
        raise HttpProblem(403, "this is for analysts and admins")
    return caller


def _admin(caller: Annotated[Caller, Depends(caller_of)]) -> Caller:
    if not caller.is_admin:
        raise HttpProblem(403, "this is for admins")
    return caller


def _device(caller: Annotated[Caller, Depends(caller_of)]) -> Caller:
    if caller.role != "device":
        raise HttpProblem(403, "this is for devices")
    return caller


Service = Annotated[CollectionService, Depends(served)]
ClientAddress = Annotated[str, Depends(address_of)]
AnyCaller = Annotated[Caller, Depends(caller_of)]
StaffCaller = Annotated[Caller, Depends(_staff)]
AdminCaller = Annotated[Caller, Depends(_admin)]
DeviceCaller = Annotated[Caller, Depends(_device)]

"""Routes for staff and devices: who they are, and how they come to be."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field
from sqlalchemy import select

from tempriv.collect.server import schema, views
from tempriv.collect.server.auth import (
    REFUSALS,
    AdminCaller,
    AnyCaller,
    ClientAddress,
    HttpProblem,
    Service,
    StaffCaller,
    done,
)
from tempriv.collect.server.tokens import parse

routes = APIRouter(responses=REFUSALS)
Number = Annotated[int, Path(ge=1, le=(1 << 63) - 1)]


class NewStaff(BaseModel):
    role: Literal["admin", "analyst"]
    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]


class NewTokens(BaseModel):
    count: Annotated[int, Field(ge=1, le=10_000)]


class NewDevice(BaseModel):
    token: Annotated[str, Field(max_length=100)]
    secret_hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class NewDevices(BaseModel):
    devices: Annotated[list[NewDevice], Field(min_length=1, max_length=1000)]


@routes.get("/v1/me")
def me(caller: AnyCaller) -> dict[str, Any]:
    """Who the token belongs to.
    \f
    Parameters:
        caller: the owner of the token.
    """
    return {"role": caller.role, "number": caller.number, "name": caller.name}


@routes.get("/v1/staff")
def list_staff(caller: AdminCaller, service: Service) -> dict[str, Any]:
    """The tokens of the staff, without their secrets.
    \f
    Parameters:
        caller: an admin.
        service: of the server.
    """
    with service.store.reading() as db:
        rows = db.execute(select(schema.staff).order_by(schema.staff.c.number)).all()
    return {
        "staff": [
            {
                "number": row.number,
                "role": row.role,
                "name": row.name,
                "made_at": row.made_at,
                "revoked_at": row.revoked_at,
            }
            for row in rows
        ]
    }


@routes.post("/v1/staff", status_code=201)
def make_staff(body: NewStaff, caller: AdminCaller, service: Service) -> dict[str, Any]:
    """A token for a colleague; it is shown this once.
    \f
    Parameters:
        body: role and name.
        caller: an admin.
        service: of the server.
    """
    token = done(service.store.submit(lambda db: service.make_staff(db, body.role, body.name)))
    return {"number": token.number, "role": token.role, "name": body.name, "token": token.text}


@routes.delete("/v1/staff/{number}")
def revoke(number: Number, caller: AdminCaller, service: Service) -> dict[str, Any]:
    """Revoke the token of a colleague.
    \f
    Parameters:
        number: of the token.
        caller: an admin.
        service: of the server.
    """
    if not done(service.store.submit(lambda db: service.revoke(db, number, caller.number))):
        raise HttpProblem(404, "no such token, or it was revoked before")
    return {"number": number, "revoked": True}


@routes.get("/v1/fleet")
def fleet(caller: StaffCaller, service: Service) -> dict[str, int]:
    """How many devices are enrolled, and how many one-time tokens wait.
    \f
    Parameters:
        caller: somebody of the staff.
        service: of the server.
    """
    with service.store.reading() as db:
        return views.fleet_of(db)


@routes.post("/v1/enrolments", status_code=201)
def make_tokens(body: NewTokens, caller: AdminCaller, service: Service) -> dict[str, Any]:
    """One-time tokens, one for each device that is to come; they are shown this once.
    \f
    Parameters:
        body: how many.
        caller: somebody of the staff.
        service: of the server.
    """
    texts = done(service.store.submit(lambda db: service.make_tokens(db, body.count)))
    first = parse(texts[0])
    assert first is not None
    return {"first": first.number, "tokens": texts}


@routes.post("/v1/devices")
def enroll(body: NewDevices, address: ClientAddress, service: Service) -> dict[str, Any]:
    """Enroll devices: each with its one-time token and the SHA-256 of its own secret.
    \f
    Parameters:
        body: tokens and digests.
        address: of the client.
        service: of the server.
    """
    parsed = []
    for device in body.devices:
        token = parse(device.token)
        is_one_time = token is not None and token.role == "enrol"
        parsed.append((token if is_one_time else None, bytes.fromhex(device.secret_hash)))
    outcomes = done(service.store.submit(lambda db: service.enroll(db, parsed)))
    return {
        "devices": [
            {
                "number": None if token is None or outcome == "refused" else token.number,
                "outcome": outcome,
            }
            for (token, _), outcome in zip(parsed, outcomes, strict=True)
        ]
    }


@routes.delete("/v1/devices/{number}")
def withdraw(number: Number, caller: AnyCaller, service: Service) -> dict[str, Any]:
    """A device that takes part no more: by itself, or by an admin.
    \f
    Parameters:
        number: of the device.
        caller: the device or an admin.
        service: of the server.
    """
    by_itself = caller.role == "device" and caller.number == number
    if not (by_itself or caller.is_admin):
        raise HttpProblem(403, "only an admin or the device itself can do that")
    if not done(service.store.submit(lambda db: service.withdraw(db, number))):
        raise HttpProblem(404, "no such device, or it was withdrawn before")
    return {"number": number, "withdrawn": True}

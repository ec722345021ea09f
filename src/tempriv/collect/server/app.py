"""The server as an application: routes, limits, logs without contents, and a clock that ticks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tempriv import ui
from tempriv._version import VERSION
from tempriv.collect.server.auth import HttpProblem
from tempriv.collect.server.database import Database, StoreError
from tempriv.collect.server.logging import log, log_line, log_problem
from tempriv.collect.server.metrics import routes as metrics_routes
from tempriv.collect.server.rate_limits import RateLimits, Rates
from tempriv.collect.server.routes import answers, campaigns, enrollment
from tempriv.collect.server.service import Clock, CollectionService, now_in_utc
from tempriv.data.files import write_durably
from tempriv.errors import TemprivError, UsageError
from tempriv.releases.signature import SigningKey

TICK_SECONDS = 0.2  # seconds
PAGE = Path(__file__).parents[1] / "page"
ADMIN_FILE = "admin.token"
KEY_FILE = "signing.key"
BATCHES = "/v1/answers"
HEADERS = {
    "content-security-policy": "default-src 'self'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


def make_app(
    store: str | Database,
    *,
    home: Path | None = None,
    clock: Clock = now_in_utc,
    limits: RateLimits | None = None,
    ticking: bool = True,
    statements: Mapping[str, str] | None = None,
) -> FastAPI:
    """Return a server over a store.

    Parameters:
        store: a database, or its address.
        home: folder for the server's key for signatures, which is made if there is none, and for
            the first admin token of a new store; nothing is signed without one.
        clock: what time it is.
        limits: what one caller may ask for.
        statements: what the curator says of all releases, as ``read_statements`` gave it.
        ticking: whether time passes by itself; else only when ``app.state.service.tick`` is called.
    """
    database = Database(store) if isinstance(store, str) else store

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        """Run the service of an ``app`` as long as the application."""
        database.open()
        service = app.state.service = CollectionService(database, clock)
        try:
            await asyncio.wrap_future(database.submit(lambda db: _first_admin(db, service, home)))
            await asyncio.wrap_future(database.submit(service.start))
            ticker = asyncio.create_task(_tick(database, service)) if ticking else None
            yield
        finally:
            app.state.stopping = True
            if ticking and ticker is not None:
                ticker.cancel()
                await asyncio.gather(ticker, return_exceptions=True)
            await asyncio.to_thread(database.close)

    app = FastAPI(
        title="tempriv collect",
        version=VERSION,
        lifespan=lifespan,
        description="Collects answers that devices have protected themselves.",
        telemetry={"auto_configure": False},  # whatever the environment says
        docs_url=None,  # it would load scripts from elsewhere, where staff sign in
        redoc_url=None,
    )
    app.state.limits, app.state.rates, app.state.stopping = limits or RateLimits(), Rates(), False
    app.state.statements = statements
    app.state.signing_key = None if home is None else server_key(home)
    app.include_router(enrollment.routes)
    app.include_router(answers.routes)
    app.include_router(campaigns.routes)
    app.include_router(campaigns.kind_routes)
    app.include_router(metrics_routes)
    _add_page(app)
    _add_problems(app)
    app.add_middleware(RequestSizeLimit, limits=app.state.limits)
    app.add_middleware(RequestLog)
    return app


def server_key(home: Path) -> SigningKey:
    """Return the key that results are signed with; it is made if there is none.

    Parameters:
        home: folder that it is in.
    """
    path = home / KEY_FILE
    if not path.exists():
        with contextlib.suppress(UsageError):  # another server of this folder was faster
            return SigningKey.create(path)
    return SigningKey.load(path)


def _first_admin(db: Any, service: CollectionService, home: Path | None) -> None:
    if home is None:
        return
    token = service.first_admin(db)
    if token is not None:
        # on disk before the commit: a crash leaves a token that nothing knows, and the next start
        # writes another one
        write_durably(home / ADMIN_FILE, token.text.encode() + b"\n")


async def _tick(store: Database, service: CollectionService) -> None:
    while True:
        await asyncio.sleep(TICK_SECONDS)
        try:
            await asyncio.wrap_future(store.submit(service.tick))
        except Exception as problem:  # the next one may go through
            log_problem("tick", problem)


def _add_page(app: FastAPI) -> None:
    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok", "version": VERSION}

    @app.get("/", include_in_schema=False)
    def index() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers=HEADERS)

    app.mount("/page", _Page(directory=PAGE, check_dir=False), name="page")
    app.mount("/ui", _Page(directory=ui.FILES, check_dir=False), name="ui")


class _Page(StaticFiles):
    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        response.headers.update(HEADERS)
        response.headers["cache-control"] = "no-cache"
        return response


def _add_problems(app: FastAPI) -> None:
    @app.exception_handler(HttpProblem)
    async def problem(request: Request, error: HttpProblem) -> JSONResponse:
        """Answer a ``request`` with the problem in ``error``."""
        headers = {401: {"www-authenticate": "Bearer"}, 429: {"retry-after": "1"}}.get(error.status)
        return JSONResponse({"reason": error.reason}, error.status, headers)

    @app.exception_handler(TemprivError)
    async def refusal(request: Request, error: TemprivError) -> JSONResponse:
        """Answer a ``request`` that the package refuses with ``error``."""
        status = 503 if isinstance(error, StoreError) else 409
        if error.exit_status == 2:
            status = 422
        return JSONResponse({"reason": str(error)}, status)

    @app.exception_handler(RequestValidationError)
    async def unfit(request: Request, error: RequestValidationError) -> JSONResponse:
        """Answer a ``request`` whose parts do not fit the schema, as ``error`` says."""
        # where and why, never what was sent
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
        return JSONResponse({"reason": f"{where}: {first['msg']}"[:300]}, 422)

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> JSONResponse:
        """Answer a ``request`` that failed by a fault of the server, ``error``."""
        log_problem("fault", error)
        return JSONResponse({"reason": "a fault of the server; its log says which"}, 500)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> JSONResponse:
        """Answer a ``request`` that is for no route, by ``error``."""
        return JSONResponse({"reason": str(error.detail)}, error.status_code, error.headers)


class RequestSizeLimit:
    """Refuses a request that is larger than its route takes, before all of it has come."""

    def __init__(self, app: ASGIApp, limits: RateLimits):
        self.app, self.limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        max_bytes = self.limits.batch_body if scope["path"] == BATCHES else self.limits.body
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length) > max_bytes:
            await JSONResponse({"reason": _too_large(max_bytes)}, 413)(scope, receive, send)
            return
        received_bytes = 0

        async def counted() -> Message:
            nonlocal received_bytes
            message = await receive()
            received_bytes += len(message.get("body", b""))
            if received_bytes > max_bytes:
                raise HTTPException(413, _too_large(max_bytes))
            return message

        await self.app(scope, counted, send)


def _too_large(max_bytes: int) -> str:
    return f"too large: at most {max_bytes:,} bytes"


class RequestLog:
    """One line of JSON for a request: what kind, how it ended, how long; nothing that was in it."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not log.isEnabledFor(logging.INFO):
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            """Note a ``message`` on its way out."""
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            route = scope.get("route")
            log_line(
                event="request",
                method=scope["method"],
                route=getattr(route, "path", "unknown"),
                status=status,
                role=scope.get("state", {}).get("role"),
                ms=round(1000 * (time.perf_counter() - start), 1),
            )

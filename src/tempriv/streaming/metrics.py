"""Counts of a running stream for Prometheus, on the loopback address only."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tempriv.errors import UsageError, require

if TYPE_CHECKING:
    from tempriv.streaming.pipeline import StreamPipeline

HELP = {
    "released": "Readings that were released.",
    "again": "Readings sent again after a restart, and passed over.",
    "late": "Readings put aside: not later than all of their series.",
    "repeated": "Readings put aside: at a time that their series already had.",
    "beyond": "Readings put aside: past the length that is guaranteed.",
    "unpromised": "Landmarks put aside: past the number that was given.",
    "unreadable": "Lines put aside: no readings.",
    "waiting": "Readings that are held back and come out as more come in.",
}
GAUGES = {"waiting"}  # may fall as well


def prometheus_text(pipeline: StreamPipeline) -> str:
    """Counts of a ``pipeline`` in Prometheus' text format; nothing in it depends on a value."""
    lines = []
    for name, count in asdict(pipeline.counts.and_before(pipeline.earlier_counts)).items():
        full = f"tempriv_readings_{name}" + ("" if name in GAUGES else "_total")
        kind = "gauge" if name in GAUGES else "counter"
        lines += [f"# HELP {full} {HELP[name]}", f"# TYPE {full} {kind}", f"{full} {count}"]
    for name, help_, value in (
        ("tempriv_series", "Series that have had a reading.", len(pipeline.series)),
        ("tempriv_last_commit_seconds", "When the state was last saved.", pipeline.committed_at),
    ):
        lines += [f"# HELP {name} {help_}", f"# TYPE {name} gauge", f"{name} {value}"]
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def serve_metrics(pipeline: StreamPipeline, port: int | None) -> Iterator[int | None]:
    """Serve the counts of a ``pipeline`` at /metrics while it runs; gives the ``port``, a free one
    for 0.
    """
    if port is None:
        yield None
        return
    require(0 <= port < 1 << 16, f"port={port}: must be a port", UsageError)

    class MetricsHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.path.split("?")[0] == "/metrics"
            body = prometheus_text(pipeline).encode() if is_known else b"see /metrics\n"
            self.send_response(200 if is_known else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing of any ``format``."""
            pass

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), MetricsHandler)
    except OSError as problem:
        raise UsageError(f"port={port}: {problem.strerror}; name another port") from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()

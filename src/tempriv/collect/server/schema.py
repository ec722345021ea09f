"""The tables of a server and how older ones become these; DATA_MODEL in the docs walks them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def _required(**types: Any) -> list[Column[Any]]:
    """Columns without NULL, in this order."""
    return [Column(name, type_, nullable=False) for name, type_ in types.items()]


def _counter() -> Column[Any]:
    """The row's own number, which counts up."""
    return Column("number", NUMBER, primary_key=True, autoincrement=True)


def _keys(**types: Any) -> list[Column[Any]]:
    """Columns that make the primary key together."""
    return [
        Column(name, type_, primary_key=True, autoincrement=False) for name, type_ in types.items()
    ]


about = Table("about", METADATA, Column("name", String, primary_key=True), Column("value", Text))
staff = Table(
    "staff",
    METADATA,
    _counter(),
    *_required(role=String, name=String, digest=LargeBinary, made_at=String),
    Column("revoked_at", String),
)
devices = Table(
    "devices",
    METADATA,
    *_keys(number=NUMBER),
    *_required(token=LargeBinary),  # digest of the one-time token
    Column("secret", LargeBinary),  # digest of the device's own secret, once it is enrolled
    *_required(made_at=String),
    Column("enrolled_at", String),
    Column("withdrawn_at", String),
)
campaigns = Table(
    "campaigns",
    METADATA,
    _counter(),
    Column("id", String, nullable=False, unique=True),
    *_required(spec=Text, state=String, made_by=BigInteger, made_at=String),
    Column("finished_at", String),
    *_required(course=Text),
    Column("participants", LargeBinary),
    *_required(received=BigInteger),
)
questions = Table(
    "questions",
    METADATA,
    _counter(),
    Column("campaign", String, nullable=False, index=True),
    Column("id", String, nullable=False, unique=True),
    *_required(scope=BigInteger, kind=String, opened_at=String, closes_at=String),
    Column("closed_at", String),
    *_required(received=BigInteger, expected=BigInteger, support=LargeBinary),
)
answered = Table(
    "answered", METADATA, *_keys(scope=BigInteger, device=BigInteger), sqlite_with_rowid=False
)
pending = Table(
    "pending", METADATA, _counter(), *_required(question=BigInteger, reports=LargeBinary)
)
uploads = Table(
    "uploads",
    METADATA,
    *_keys(scope=BigInteger, device=BigInteger),
    *_required(readings=LargeBinary),
    sqlite_with_rowid=False,
)
steps = Table("steps", METADATA, *_keys(campaign=String, step=BigInteger), *_required(told=Text))


def _first(db: Connection) -> None:
    METADATA.create_all(
        db, [about, staff, devices, campaigns, questions, answered, pending], checkfirst=False
    )


def _second(db: Connection) -> None:
    """Streams and uploads: results of each step, and series that are kept."""
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

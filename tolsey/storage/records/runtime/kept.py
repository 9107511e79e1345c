"""Tables by which processes share actors, and what they leave behind."""

from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

from tolsey.storage.owners import Belongs, RowOwner
from tolsey.storage.tables import Age, Integer, Jsonb, Personal, bare

WORK: Final = "Work that was done or given up; what came of it is exported."

ACTORS: Final = bare(
    "actors",
    {"kind": str, "key": str, "slot": Annotated[int, Integer], "version": int},
    key=("kind", "key"),
    nobodys="Versions of actors, without what they hold.",
)
JOURNAL: Final = bare(
    "actor_journal",
    {
        "kind": str,
        "key": str,
        "version": int,
        "message_id": str,
        "message": str,
        "epoch": int,
        "committed_at": datetime,
        "reply": Annotated[str | None, Personal.FREE_TEXT],
        # Without what says something of anyone (`runtime.masking.unkept_fields`).
        "way_back": bytes | None,
    },
    key=("kind", "key", "version"),
    # Its index is of ranges of pages and knows no order.
    retention=Age(column="committed_at", interval="7 days", ordered=False),
    swept="journal",
    belongs=(
        Belongs(to=RowOwner.STORE, by="kind = 'store' AND key = $1"),
        Belongs(to=RowOwner.ORGANIZATION, by="kind = 'organization' AND key = $1"),
    ),
    unexported="Turns of the last week; what they changed is exported.",
)
DEAD_LETTERS: Final = bare(
    "dead_letters",
    {
        "id": str,
        "key": str,
        "slot": Annotated[int, Integer],
        "kind": str,
        "actor_key": str,
        "name": str,
        "payload": Annotated[str, Jsonb, Personal.FREE_TEXT],
        "attempts": Annotated[int, Integer],
        "error": str,
        "request_id": str | None,
        "status": str,
        "created_at": datetime,
        "died_at": datetime,
        "settled_at": datetime | None,
        "lane": str | None,
        "sender": str | None,
        "about": Annotated[str, Personal.PSEUDONYM],
    },
    key=("id",),
    retention=Age(column="settled_at", interval="90 days"),
    swept="deadLetters",
    belongs=(
        Belongs(to=RowOwner.STORE, by="kind = 'store' AND actor_key = $1"),
        Belongs(to=RowOwner.ORGANIZATION, by="kind = 'organization' AND actor_key = $1"),
    ),
    unexported=WORK,
)
FINISHED_CALLS: Final = bare(
    "finished_calls",
    {
        "key": str,
        "kind": str,
        "actor_key": str,
        "name": str,
        "lane": str,
        "attempts": Annotated[int, Integer],
        "last_error": str | None,
        "request_id": str | None,
        "created_at": datetime,
        "finished_at": datetime,
    },
    # What was done is shown for a day (rules/calls#calls).
    retention=Age(column="finished_at", interval="1 day"),
    swept="finishedCalls",
    belongs=(
        Belongs(to=RowOwner.STORE, by="kind = 'store' AND actor_key = $1"),
        Belongs(to=RowOwner.ORGANIZATION, by="kind = 'organization' AND actor_key = $1"),
    ),
    unexported=WORK,
)
SLOTS: Final = bare(
    "slot_epochs",
    {
        "slot": Annotated[int, Integer],
        "epoch": int,
        "owner": str | None,
        "claimed_at": datetime | None,
        "pinned_to": str | None,
    },
    key=("slot",),
    nobodys="Which process has which part of the actors.",
)
BEATS: Final = bare(
    "process_beats",
    {"process": str, "beat": int, "beaten_at": datetime},
    key=("process",),
    nobodys="Processes that live.",
)
DEPLOYMENT: Final = bare(
    "deployment",
    {"id": UUID, "one": bool},
    key=("one",),
    nobodys="Which deployment this is.",
)
KEYS: Final = bare(
    "encryption_keys",
    {"key_id": str, "fingerprint": bytes | None, "known_since": datetime},
    key=("key_id",),
    nobodys="Keys that the service was started with, without the keys.",
)
MIGRATIONS: Final = bare(
    "schema_migrations",
    {
        "number": Annotated[int, Integer],
        "name": str,
        "applied_at": datetime,
        "compatible_from": Annotated[int | None, Integer],
    },
    key=("number",),
    nobodys="Migrations that were applied.",
)
PROGRESS: Final = bare(
    "schema_migration_progress",
    {
        "number": Annotated[int, Integer],
        "statements": Annotated[int, Integer],
        "last_key": str,
    },
    key=("number",),
    nobodys="How far a migration is.",
)

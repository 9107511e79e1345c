"""Tables by which processes share actors, and what they leave behind."""

from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

from tolsey.storage.tables import Age, Integer, Jsonb, Personal, bare

ACTORS: Final = bare(
    "actors",
    {"kind": str, "key": str, "slot": Annotated[int, Integer], "version": int},
    key=("kind", "key"),
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
    },
    key=("kind", "key", "version"),
    # Its index is of ranges of pages and knows no order.
    retention=Age(column="committed_at", interval="7 days", ordered=False),
    swept="journal",
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
    },
    key=("id",),
    retention=Age(column="settled_at", interval="90 days"),
    swept="deadLetters",
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
)
BEATS: Final = bare(
    "process_beats", {"process": str, "beat": int, "beaten_at": datetime}, key=("process",)
)
DEPLOYMENT: Final = bare("deployment", {"id": UUID, "one": bool}, key=("one",))
KEYS: Final = bare(
    "encryption_keys",
    {"key_id": str, "fingerprint": bytes | None, "known_since": datetime},
    key=("key_id",),
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
)
PROGRESS: Final = bare(
    "schema_migration_progress",
    {
        "number": Annotated[int, Integer],
        "statements": Annotated[int, Integer],
        "last_key": str,
    },
    key=("number",),
)

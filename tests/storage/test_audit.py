"""Audit rows say how long they stay."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tolsey
from tolsey.storage.database import Database
from tolsey.storage.lifecycle.retention import AUDIT_LOG
from tolsey.storage.records.journal import KEPT, AuditRecord, retention_of

WRITERS = {"audit_record", "AuditRecord", "write", "note", "_audited"}
WRITTEN = re.compile(rf"\b(?:{'|'.join(sorted(WRITERS))})\(")


def events() -> Iterator[str]:
    """Read from the source which events are put on record, as far as their names are written out."""
    for file in Path(tolsey.__file__).parent.rglob("*.py"):
        text = file.read_text()
        for call in ast.walk(ast.parse(text)) if WRITTEN.search(text) else ():
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            named = [one.value for one in call.keywords if one.arg == "event"]
            for given in (*call.args[:2], *named) if name in WRITERS else ():
                said = given.values[0] if isinstance(given, ast.JoinedStr) else given
                if isinstance(said, ast.Constant) and "." in str(said.value):
                    yield str(said.value).rstrip(".")


def test_every_event_that_is_put_on_record_is_one_that_somebody_thought_of() -> None:
    found = set(events())
    assert len(found) >= 20
    families = {one.split(".")[0] for one in found}
    assert families <= {one.split(".")[0] for one in KEPT}


@pytest.mark.parametrize(
    ("event", "stays"),
    [
        ("user.signed_in", "180_days"),
        ("admin.actor.pause", "180_days"),
        ("admin.payment_event.retry", "7_years"),
        ("refund.requested", "7_years"),
        ("plan.change_requested", "7_years"),
        ("payout_account.opened", "7_years"),
        ("payout.failed", "7_years"),
        ("commerce.connected", "180_days"),
        ("commerce.webhook.orders.create", "until_erased"),
    ],
)
def test_a_row_says_how_long_it_stays(event: str, stays: str) -> None:
    assert AuditRecord(event=event, subject="s").retention == retention_of(event) == stays


async def test_what_the_tables_themselves_put_on_record_says_how_long_it_stays(
    database: Database,
) -> None:
    async with database.transaction() as tx:
        await tx.execute("INSERT INTO users VALUES ('u', 'ann@example.com', 'hash')")
        await tx.execute("INSERT INTO organizations (id, name) VALUES ('o', 'Org')")
        await tx.execute("INSERT INTO members VALUES ('o', 'u', 'owner')")
        await tx.execute(
            "INSERT INTO invitations (id, token_hash, organization_id, email, role, invited_by,"
            " created_at, expires_at)"
            " VALUES ('i', sha256(''), 'o', 'bob@example.com', 'member', 'u', now(), now())"
        )
        await tx.execute(
            "INSERT INTO api_keys (id, key_hash, prefix, organization_id, user_id, name, scopes,"
            " created_at, expires_at)"
            " VALUES ('k', sha256(''), 'bei_', 'o', 'u', 'key', '{read}', now(), now())"
        )
        await tx.execute("UPDATE users SET banned = true")
    rows = await database.fetch("SELECT event, retention FROM audit_log ORDER BY event")
    assert [(row["event"], row["retention"]) for row in rows] == [
        ("api_key.ended", "180_days"),
        ("organization.invitation_ended", "180_days"),
    ]


async def test_what_is_due_is_found_by_an_index(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.execute("SET LOCAL enable_seqscan = off")
        for sql, index in zip(AUDIT_LOG, ("180_days", "7_years"), strict=True):
            plan = await tx.fetch(f"EXPLAIN {sql.replace('$1', '10')}")
            assert f"audit_log_{index}" in "".join(row[0] for row in plan)


def test_what_nobody_thought_of_stays_as_long_as_money() -> None:
    assert retention_of("unheard.of") == "7_years"

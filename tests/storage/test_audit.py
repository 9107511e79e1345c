"""Audit rows say how long they stay."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tolsey
from tolsey.storage.database import Database
from tolsey.storage.records.journal import KEPT, AuditRecord, retention_of

WRITERS = {"audit_record", "AuditRecord", "write", "note", "_audited"}


def events() -> Iterator[str]:
    """Read from the source which events are put on record, as far as their names are written out."""
    for file in Path(tolsey.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            named = [one.value for one in call.keywords if one.arg == "event"]
            for given in (*call.args[:2], *named) if name in WRITERS else ():
                text = given.values[0] if isinstance(given, ast.JoinedStr) else given
                if isinstance(text, ast.Constant) and "." in str(text.value):
                    yield str(text.value).rstrip(".")


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
async def test_a_row_stays_as_long_as_it_says_and_one_of_before_by_its_name(
    database: Database, event: str, stays: str
) -> None:
    assert AuditRecord(event=event, subject="s").retention == retention_of(event) == stays
    row = await database.fetchrow("SELECT audit_retention($1, NULL) AS stays", event)
    assert row is not None
    assert row["stays"] == stays


def test_what_nobody_thought_of_stays_as_long_as_money() -> None:
    assert retention_of("unheard.of") == "7_years"

"""What a restored database is told of erasures that it does not know."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.http.people import NOON, settings_of
from tolsey.commands import restoring
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import erasure_list
from tolsey.storage.lifecycle.erasure_list import ErasureCause

ROWS = """
INSERT INTO organizations (id, name, created_at, deleted_at) VALUES ('org_1', 'A', $1, $1);
INSERT INTO users (id, email, password_hash, created_at, deletion_requested_at)
VALUES ('usr_1', 'a@example.com', 'hash', $1, $1);
INSERT INTO stores (id, organization_id, name, sealed_salt, created_at, deleted_at)
VALUES ('store_1', 'org_1', 'A', 'salt', $1, $1);
INSERT INTO compliance_requests (id, topic, shop_domain, delivery_id, body_digest, stores, shop_keys,
    received_at, pending_steps, completed_at, handled_at, handled_by)
VALUES ('req_1', 'customers/redact', 'a.example', 'd1', 'b1', '{store_1,store_2}', '{store_1,store_2@a}', $1,
    '{}', $1, $1, 'usr_2'),
  ('req_2', 'shop/redact', 'a.example', 'd2', 'b2', '{store_1}', '{store_1}', $1, '{store-record}', $1, NULL, NULL),
  ('req_3', 'customers/data_request', 'a.example', 'd3', 'b3', '{store_1}', '{store_1}', $1, '{}', $1, $1, 'usr_2');
INSERT INTO customer_redactions (request_id, store_id, subject_key, email_hash, redacted_at)
VALUES ('req_1', 'store_1', 'a:s1:x', 's1:x', $1);
INSERT INTO compliance_receipts (request_id, store_id, leg, rows_before, rows_after, at)
VALUES ('req_2', 'store_1', 'commerce-history', 1, 0, $1), ('req_2', 'store_1', 'vectors', 1, 0, $1)
"""
CAUSES = {
    ErasureCause.ORGANIZATION: "org_1",
    ErasureCause.USER: "usr_1",
    ErasureCause.STORE: "store_1",
}
EMPTIED = """
UPDATE organizations SET name = '', deleted_at = NULL;
UPDATE users SET password_hash = '', deletion_requested_at = NULL;
UPDATE stores SET name = '', sealed_salt = '', deleted_at = NULL
"""
REQUESTS = """
SELECT id, stores, shop_keys, pending_steps, asked_steps, completed_at, handled_at FROM compliance_requests
ORDER BY id
"""


@pytest.fixture
async def database(database: Database) -> Database:
    at = f"'{NOON.isoformat()}'"
    for sql in ROWS.split(";"):
        await database.execute(sql.replace("$1", at))
    return database


async def listed(database: Database, cause: ErasureCause, id: str) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(await erasure_list.entry_of(database, cause, id))
    return entry


async def put_back(database: Database, entry: dict[str, Any]) -> None:
    async with database.transaction() as tx:
        await erasure_list.put_back(tx, entry)


async def test_what_is_there_again_has_its_cause_put_back_and_what_is_gone_is_left(
    database: Database,
) -> None:
    entries = [await listed(database, cause, id) for cause, id in CAUSES.items()]
    for sql in EMPTIED.split(";"):
        await database.execute(sql)
    assert [await erasure_list.is_newer(database, one) for one in entries] == [False] * 3

    await database.execute("UPDATE organizations SET name = 'A'")
    await database.execute("UPDATE users SET password_hash = 'hash'")
    await database.execute("UPDATE stores SET name = 'A'")
    assert [await erasure_list.is_newer(database, one) for one in entries] == [True] * 3
    for entry in entries:
        await put_back(database, entry)
    causes = await database.fetch(
        "SELECT deleted_at AS at FROM organizations UNION ALL SELECT deletion_requested_at FROM users"
        " UNION ALL SELECT deleted_at FROM stores"
    )
    assert [row["at"] for row in causes] == [NOON] * 3


async def test_a_request_that_is_gone_is_there_again_with_all_of_its_work_before_it(
    database: Database,
) -> None:
    ids = ("req_1", "req_2", "req_3")
    entries = [await listed(database, ErasureCause.REQUEST, id) for id in ids]
    assert [await erasure_list.is_newer(database, one) for one in entries] == [False] * 3
    for table in ("compliance_receipts", "customer_redactions", "compliance_requests"):
        await database.execute(f"DELETE FROM {table}")  # noqa: S608 - of this list
    assert [await erasure_list.is_newer(database, one) for one in entries] == [True] * 3

    for entry in entries:
        entry["request"]["a_column_of_a_later_release"] = 1
        await put_back(database, entry)
    rows = {row["id"]: tuple(row.values())[1:] for row in await database.fetch(REQUESTS)}
    # A store that the database does not have had nothing yet to forget.
    assert rows["req_1"] == (["store_1"], ["store_1"], [], [], None, None)
    steps = ["store-record", "commerce-history"]
    assert rows["req_2"] == (["store_1"], ["store_1"], steps, ["commerce-history"], None, None)
    # What a customer was answered is not answered again.
    assert rows["req_3"] == (["store_1"], ["store_1"], [], [], NOON, NOON)
    (subject,) = await database.fetch("SELECT email_hash, redacted_at FROM customer_redactions")
    assert tuple(subject.values()) == ("s1:x", None)

    await database.execute("UPDATE compliance_requests SET completed_at = $1", NOON)
    async with database.transaction() as tx:
        for entry in entries:
            await erasure_list.close_again(tx, entry)
    closed = await database.fetch("SELECT id FROM compliance_requests WHERE handled_by = 'usr_2'")
    assert sorted(row["id"] for row in closed) == ["req_1", "req_3"]


async def test_a_step_that_was_carried_out_later_is_asked_for_again(database: Database) -> None:
    entry = await listed(database, ErasureCause.REQUEST, "req_2")
    await database.execute(
        "UPDATE compliance_requests SET pending_steps = '{commerce-history,store-record}' WHERE id = 'req_2'"
    )
    assert await erasure_list.is_newer(database, entry)
    await put_back(database, entry)
    row = await database.fetchrow("SELECT asked_steps FROM compliance_requests WHERE id = 'req_2'")
    assert row is not None
    assert row["asked_steps"] == ["commerce-history"]


async def test_of_two_entries_the_one_that_is_further_counts(database: Database) -> None:
    done = await listed(database, ErasureCause.REQUEST, "req_2")
    begun = {**done, "request": {**done["request"], "completed_at": None}}
    waiting = {
        **done,
        "request": {**done["request"], "pending_steps": ["commerce-history", "store-record"]},
    }
    closed = {**done, "request": {**done["request"], "handled_at": NOON.isoformat()}}
    for earlier, later in ((begun, waiting), (begun, done), (waiting, done), (done, closed)):
        assert erasure_list.further(earlier, later) is later
        assert erasure_list.further(later, earlier) is later


async def test_a_copy_of_the_list_from_another_disk_is_read_and_kept(
    database: Database, tmp_path: Path
) -> None:
    settings = settings_of(data_dir=tmp_path / "data")
    copy = tmp_path / "copy"
    listed_at = copy / "erasures" / "store"
    listed_at.mkdir(parents=True)
    (listed_at / "store_1.json").write_bytes(
        await erasure_list.entry_of(database, ErasureCause.STORE, "store_1")
    )
    kept = settings.data_dir / "objects" / "erasures" / "store" / "store_1.json"

    without = await restoring.check(database, settings, None, dry_run=True)
    counted = await restoring.check(database, settings, copy, dry_run=True)
    assert (without.listed, counted.listed, counted.newer, counted.left) == (0, 1, 1, 1)
    assert not kept.exists()
    await database.execute("UPDATE stores SET name = '', sealed_salt = ''")
    done = await restoring.check(database, settings, copy, dry_run=False)
    assert (done.listed, done.newer, done.left) == (1, 0, 0)
    assert kept.exists()

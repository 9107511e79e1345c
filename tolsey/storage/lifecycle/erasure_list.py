"""Erasures as they are listed outside the database, so that a restored one is told of those it does not know.

An entry says why something goes (a store or an organization that was deleted, a person who asked to go, a request of
the platform) in ids and pseudonyms. Put back into an older database, it has the job do the work again.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import orjson

from tolsey.storage.database import Reader, Transaction
from tolsey.storage.records.commerce.compliance import (
    ComplianceRequest,
    ComplianceTopic,
    CustomerRedaction,
    PendingStep,
)
from tolsey.storage.tables import Table, table_of

Entry = Mapping[str, Any]


class ErasureCause(StrEnum):
    """Why something is erased."""

    REQUEST = "request"
    STORE = "store"
    USER = "user"
    ORGANIZATION = "organization"


TOLD: Final = {
    ErasureCause.REQUEST: """
        SELECT jsonb_build_object('request', to_jsonb(q), 'subjects',
            (SELECT coalesce(jsonb_agg(to_jsonb(s)), '[]') FROM customer_redactions s WHERE s.request_id = q.id),
            'legs', (SELECT coalesce(jsonb_agg(DISTINCT r.leg), '[]') FROM compliance_receipts r
                WHERE r.request_id = q.id)) AS told
        FROM compliance_requests q WHERE q.id = $1
    """,
    ErasureCause.STORE: "SELECT jsonb_build_object('at', deleted_at) AS told FROM stores WHERE id = $1",
    ErasureCause.USER: (
        "SELECT jsonb_build_object('at', deletion_requested_at) AS told FROM users WHERE id = $1"
    ),
    ErasureCause.ORGANIZATION: (
        "SELECT jsonb_build_object('at', deleted_at) AS told FROM organizations WHERE id = $1"
    ),
}
THERE: Final = {
    ErasureCause.STORE: "stores WHERE id = $1 AND name <> ''",
    ErasureCause.USER: "users WHERE id = $1 AND password_hash <> ''",
    ErasureCause.ORGANIZATION: "organizations WHERE id = $1 AND name <> ''",
}
"""What of each is there until it is erased; another is not in the database, or is erased in it."""
PUT_BACK: Final = {
    ErasureCause.STORE: "UPDATE stores SET deleted_at = $2 WHERE id = $1",
    ErasureCause.USER: "UPDATE users SET deletion_requested_at = $2 WHERE id = $1",
    ErasureCause.ORGANIZATION: "UPDATE organizations SET deleted_at = $2 WHERE id = $1",
}


async def entry_of(database: Reader, cause: ErasureCause, id: str) -> bytes:
    """Write the entry of what is about to be erased."""
    row = await database.fetchrow(f"SELECT told::text FROM ({TOLD[cause]}) AS entry", id)  # noqa: S608 - constants of this module
    told = orjson.loads(row["told"]) if row else {}
    return orjson.dumps({"cause": cause, "id": id, **told})


def further(one: Entry, other: Entry) -> Entry:
    """Choose of two entries of one erasure the one that was written later: more of it is done."""
    return max(other, one, key=_done)


def _done(entry: Entry) -> tuple[bool, int, bool]:
    told = entry.get("request")
    if told is None:
        return (True, 0, True)
    completed, handled = told["completed_at"] is not None, told["handled_at"] is not None
    return (completed, -len(told["pending_steps"]), handled)


async def is_newer(database: Reader, entry: Entry) -> bool:
    """Tell whether the database is from before an erasure: something of it is there."""
    cause = ErasureCause(entry["cause"])
    if cause in THERE:
        found = await database.fetchrow(f"SELECT FROM {THERE[cause]}", entry["id"])
        return found is not None
    row = await _request(database, entry["id"])
    completed = entry["request"]["completed_at"] is not None
    return (
        row is None or (completed and not row["completed"]) or bool(_undone(entry, row["pending"]))
    )


async def put_back(tx: Transaction, entry: Entry) -> None:
    """Write the cause of an erasure into a database of before it, for the job to carry it out."""
    cause = ErasureCause(entry["cause"])
    if cause in PUT_BACK:
        await tx.execute(PUT_BACK[cause], entry["id"], datetime.fromisoformat(entry["at"]))
        return
    row = await _request(tx, entry["id"])
    if row is None:
        await _insert_request(tx, entry)
    else:
        await tx.execute(
            "UPDATE compliance_requests SET asked_steps = $2 WHERE id = $1",
            entry["id"],
            _undone(entry, row["pending"]),
        )


async def close_again(tx: Transaction, entry: Entry) -> None:
    """Write down of a request that is carried out again who had closed it."""
    closed = entry.get("request", {})
    if closed.get("handled_at"):
        await tx.execute(
            "UPDATE compliance_requests SET handled_at = $2, handled_by = $3 WHERE id = $1"
            " AND handled_at IS NULL AND completed_at IS NOT NULL AND pending_steps = '{}'",
            entry["id"],
            datetime.fromisoformat(closed["handled_at"]),
            closed["handled_by"],
        )


async def _request(database: Reader, id: str) -> Any:
    return await database.fetchrow(
        "SELECT completed_at IS NOT NULL AS completed, pending_steps AS pending"
        " FROM compliance_requests WHERE id = $1",
        id,
    )


def _undone(entry: Entry, pending: list[str]) -> list[str]:
    """Name the steps that wait in the database, and were carried out when the entry was written."""
    return [step for step in pending if step not in entry["request"]["pending_steps"]]


async def _insert_request(tx: Transaction, entry: Entry) -> None:
    """Write a request that the database never had, for the stores that it has, with nothing of it done."""
    told = entry["request"]
    rows = await tx.fetch("SELECT id FROM stores WHERE id = ANY($1::text[])", told["stores"])
    there = {row["id"] for row in rows}
    whose = [
        pair for pair in zip(told["stores"], told["shop_keys"], strict=True) if pair[0] in there
    ]
    request = {
        **told,
        "stores": [store_id for store_id, _ in whose],
        "shop_keys": [shop_key for _, shop_key in whose],
    }
    if told["topic"] != ComplianceTopic.DATA_REQUEST:  # an answer that was given is not given again
        done = [step for step in PendingStep if step in entry["legs"]]
        asked = [step for step in done if step not in told["pending_steps"]]
        request |= {
            "pending_steps": [*told["pending_steps"], *asked],
            "asked_steps": asked,
            "completed_at": None,
            "handled_at": None,
            "handled_by": None,
        }
    await _insert(tx, table_of(ComplianceRequest), request)
    for subject in entry["subjects"]:
        await _insert(tx, table_of(CustomerRedaction), {**subject, "redacted_at": None})


async def _insert(tx: Transaction, table: Table[Any], row: Mapping[str, Any]) -> None:
    """Write a row as an entry has it: a column of a later release gets what stands there by itself."""
    columns = ", ".join(name for name in table.columns if name in row)
    await tx.execute(
        f"INSERT INTO {table.name} ({columns}) SELECT {columns}"  # noqa: S608 - names of our own tables
        f" FROM jsonb_populate_record(NULL::{table.name}, $1::jsonb) ON CONFLICT DO NOTHING",
        orjson.dumps(row).decode(),
    )

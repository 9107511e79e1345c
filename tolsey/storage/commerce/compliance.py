"""SQL for compliance requests: taken, worked on leg by leg, and closed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Reader, Row, Transaction
from tolsey.storage.lookups import records
from tolsey.storage.records.commerce.compliance import (
    ComplianceRequest,
    ComplianceTopic,
    CustomerRedaction,
    PendingStep,
    Receipt,
)
from tolsey.storage.tables import table_of

REQUESTS: Final = table_of(ComplianceRequest)
RECEIPTS: Final = table_of(Receipt)
REDACTIONS: Final = table_of(CustomerRedaction)

OVERDUE_AFTER: Final = timedelta(days=30)
"""When an operator has to have closed a request (rules/shops#erasure)."""
ANSWER_KEPT_FOR: Final = OVERDUE_AFTER
"""So long a merchant can fetch the answer to a customer (rules/shops#answers)."""
STORES_OF: Final = """
SELECT s.id, coalesce(k.shop_key, s.id) AS shop_key
FROM shops_of_stores k JOIN stores s ON s.id = k.store_id
WHERE k.shop_domain = $1 ORDER BY s.id
"""
"""Every store that was ever connected to a shop: requests come 48 hours after none is any more."""


UNINSTALLED: Final = """
SELECT h.store_id, h.shop_domain, h.ended_at AS uninstalled_at, s.organization_id, s.name AS store_name,
    coalesce(k.shop_key, s.id) AS shop_key
FROM connection_history h JOIN stores s ON s.id = h.store_id AND s.deleted_at IS NULL
LEFT JOIN shops_of_stores k ON k.store_id = h.store_id AND k.shop_domain = h.shop_domain
WHERE h.ending = 'uninstalled' AND h.ended_at <= $1
  AND NOT EXISTS (SELECT FROM connection_history later WHERE later.store_id = h.store_id
    AND later.shop_domain = h.shop_domain AND later.connected_at > h.connected_at)
  AND NOT EXISTS (SELECT FROM compliance_requests r WHERE r.stores @> ARRAY[h.store_id]
    AND r.shop_domain = h.shop_domain AND r.topic = 'shop/redact' AND r.received_at >= h.ended_at)
ORDER BY h.ended_at
"""
"""Shops that were not connected again by the store that they left, and are not being forgotten yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstalledShop:
    """A shop that left a store, and what the store keeps its rows under."""

    store_id: str
    store_name: str
    organization_id: str
    shop_domain: str
    shop_key: str
    uninstalled_at: datetime


async def uninstalled(database: Reader, before: datetime) -> list[UninstalledShop]:
    """List shops whose app was removed before a moment, which nobody took back since."""
    return [UninstalledShop(**row) for row in await database.fetch(UNINSTALLED, before)]


async def withdraw(tx: Transaction, request: ComplianceRequest) -> bool:
    """Take a request back of which nothing was done; False where something was."""
    status: str = await tx.execute(
        "DELETE FROM compliance_requests WHERE id = $1 AND NOT EXISTS"
        " (SELECT FROM compliance_receipts WHERE request_id = $1)",
        request.id,
    )
    return status == "DELETE 1"


async def stores_of(database: Reader, shop_domain: str) -> dict[str, str]:
    """Tell the stores that are or were connected to a shop, with the key that each keeps its rows under."""
    rows = await database.fetch(STORES_OF, shop_domain)
    return {row["id"]: row["shop_key"] for row in rows}


async def shops_of(database: Reader, store_id: str) -> list[str]:
    """List the shops that a store is or was connected to."""
    rows = await database.fetch(
        "SELECT shop_domain FROM shops_of_stores WHERE store_id = $1 ORDER BY first_connected_at",
        store_id,
    )
    return [row["shop_domain"] for row in rows]


async def record(
    tx: Transaction, request: ComplianceRequest, subjects: Sequence[CustomerRedaction]
) -> bool:
    """Keep a request and whom it is about; False when it is kept already, or its body is being worked on."""
    kept = await tx.execute(
        f"{REQUESTS.insert} ON CONFLICT DO NOTHING", *REQUESTS.values_of(request)
    )
    if kept != "INSERT 0 1":
        return False
    for one in subjects:
        await tx.execute(REDACTIONS.insert, *REDACTIONS.values_of(one))
    return True


async def kept_as(reader: Reader, request: ComplianceRequest) -> ComplianceRequest:
    """Read the request that keeps another from being recorded."""
    where = (
        "shop_domain = $1 AND topic = $2 AND (delivery_id = $3 OR body_digest = $4)"
        " ORDER BY received_at DESC LIMIT 1"
    )
    (kept,) = await records(
        reader,
        REQUESTS,
        where,
        request.shop_domain,
        request.topic,
        request.delivery_id,
        request.body_digest,
    )
    return kept


async def unfinished(database: Database) -> list[ComplianceRequest]:
    """List the requests that the machine has work with, the oldest first."""
    rows = await database.fetch(
        f"SELECT {REQUESTS.selected} FROM compliance_requests"  # noqa: S608 - names of our own table
        " WHERE handled_at IS NULL AND (completed_at IS NULL OR asked_steps <> '{}'"
        f" OR '{PendingStep.IDENTITY_HASHES}' = ANY(pending_steps))"
        " ORDER BY received_at"
    )
    return [REQUESTS.read(row) for row in rows]


async def find(database: Reader, request_id: str) -> ComplianceRequest | None:
    """Read one request."""
    row = await database.fetchrow(
        f"SELECT {REQUESTS.selected} FROM compliance_requests WHERE id = $1",  # noqa: S608 - names of our own table
        request_id,
    )
    return REQUESTS.read(row) if row else None


async def page(
    database: Reader,
    after: str | None,
    limit: int,
    *,
    overdue_at: datetime | None = None,
    store_id: str | None = None,
    is_open: bool = False,
) -> list[ComplianceRequest]:
    """List requests, newest first: all, those overdue at a moment, those of a store, or those that nobody closed."""
    wanted = Conditions(limit)
    wanted.add("id < {}", after)
    # Found by the index of stores, whatever PostgreSQL thinks of how many there are.
    wanted.add(
        "id = ANY(ARRAY(SELECT id FROM compliance_requests WHERE stores @> ARRAY[{}::text]))",
        store_id,
    )
    if is_open:
        wanted.add("id = ANY(ARRAY(SELECT id FROM compliance_requests WHERE handled_at IS NULL))")
    wanted.add("handled_at IS NULL AND received_at < {}", overdue_at and overdue_at - OVERDUE_AFTER)
    rows = await database.fetch(
        f"SELECT {REQUESTS.selected} FROM compliance_requests WHERE {wanted} ORDER BY id DESC LIMIT $1",  # noqa: S608 - conditions of this function
        *wanted.args,
    )
    return [REQUESTS.read(row) for row in rows]


async def owed_to_customers(database: Reader, store_ids: Sequence[str]) -> list[ComplianceRequest]:
    """Read the requests of customers for their data about any of these stores that nobody closed, the oldest first."""
    rows = await database.fetch(
        f"SELECT {REQUESTS.selected} FROM compliance_requests"  # noqa: S608 - names of our own table
        " WHERE id = ANY(ARRAY(SELECT id FROM compliance_requests WHERE stores && $1::text[]))"
        " AND handled_at IS NULL AND topic = $2 ORDER BY received_at",
        list(store_ids),
        ComplianceTopic.DATA_REQUEST,
    )
    return [REQUESTS.read(row) for row in rows]


async def receipts(database: Reader, request_ids: Sequence[str]) -> list[Receipt]:
    """List what was done about requests, in that order."""
    rows = await database.fetch(
        f"SELECT {RECEIPTS.selected} FROM compliance_receipts"  # noqa: S608 - names of our own table
        " WHERE request_id = ANY($1::text[]) ORDER BY at, store_id, leg",
        list(request_ids),
    )
    return [RECEIPTS.read(row) for row in rows]


async def keep_receipt(database: Database, receipt: Receipt) -> None:
    """Write down that a leg is done; the first receipt stays."""
    await database.execute(
        f"{RECEIPTS.insert} ON CONFLICT DO NOTHING", *RECEIPTS.values_of(receipt)
    )


async def subjects(database: Reader, request_id: str) -> list[CustomerRedaction]:
    """List whom a request is about, as each shop of a store knows them."""
    rows = await database.fetch(
        f"SELECT {REDACTIONS.selected} FROM customer_redactions WHERE request_id = $1 ORDER BY 2, 3",  # noqa: S608 - names of our own table
        request_id,
    )
    return [REDACTIONS.read(row) for row in rows]


async def redacted(database: Database, request_id: str, shop_key: str, at: datetime) -> None:
    """Write down that the customers of a request are forgotten at one shop."""
    await database.execute(
        "UPDATE customer_redactions SET redacted_at = $3"
        " WHERE request_id = $1 AND store_id = $2 AND redacted_at IS NULL",
        request_id,
        shop_key,
        at,
    )


async def lately_redacted(database: Reader, since: datetime) -> list[Row]:
    """List whom stores have forgotten since a moment, with the shop: store_id, shop_domain, email_hash."""
    return await database.fetch(
        """
        SELECT split_part(r.store_id, '@', 1) AS store_id, q.shop_domain, r.email_hash
        FROM customer_redactions r JOIN compliance_requests q ON q.id = r.request_id
        WHERE r.redacted_at > $1
        """,
        since,
    )


async def lately_handled(database: Reader, since: datetime) -> list[str]:
    """List the requests that operators have closed since a moment."""
    rows = await database.fetch("SELECT id FROM compliance_requests WHERE handled_at > $1", since)
    return [row["id"] for row in rows]


async def complete(database: Database, request_id: str, at: datetime) -> None:
    """Write down that the machine has done its part."""
    await database.execute(
        "UPDATE compliance_requests SET completed_at = $2 WHERE id = $1 AND completed_at IS NULL",
        request_id,
        at,
    )


async def ask_for(tx: Transaction, request_id: str, step: PendingStep) -> bool:
    """Have a pending step carried out; False where it is pending no more."""
    status: str = await tx.execute(
        "UPDATE compliance_requests SET asked_steps = array_append(array_remove(asked_steps, $2), $2)"
        " WHERE id = $1 AND $2 = ANY(pending_steps)",
        request_id,
        step,
    )
    return status == "UPDATE 1"


async def step_done(database: Database, request_id: str, step: str) -> None:
    """Take a step that is carried out off what is pending."""
    await database.execute(
        "UPDATE compliance_requests SET pending_steps = array_remove(pending_steps, $2),"
        " asked_steps = array_remove(asked_steps, $2) WHERE id = $1",
        request_id,
        step,
    )


async def close(tx: Transaction, request_id: str, user_id: str, at: datetime) -> bool:
    """Close a request whose work is done; False where something of it is open, or it was closed."""
    status: str = await tx.execute(
        "UPDATE compliance_requests SET handled_at = $3, handled_by = $2 WHERE id = $1"
        " AND handled_at IS NULL AND completed_at IS NOT NULL AND pending_steps = '{}'",
        request_id,
        user_id,
        at,
    )
    return status == "UPDATE 1"


async def open_obligations(database: Reader, at: datetime) -> tuple[int, list[Row]]:
    """Tell how many requests wait for an operator alone, and which are overdue."""
    row = await database.fetchrow(
        "SELECT count(*) AS n FROM compliance_requests WHERE handled_at IS NULL AND completed_at IS NOT NULL"
    )
    overdue = await database.fetch(
        "SELECT id, topic, received_at FROM compliance_requests"
        " WHERE handled_at IS NULL AND received_at < $1 ORDER BY received_at",
        at - OVERDUE_AFTER,
    )
    return int(row["n"]) if row else 0, overdue

"""SQL for deals: their threads, offers and ledgers."""

from collections.abc import Sequence
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Reader
from tolsey.storage.lookups import record, records
from tolsey.storage.records.selling.deals import (
    BINDING,
    DealEvent,
    DealFile,
    DealMetrics,
    DealOffer,
    DealThread,
    DealViewing,
    LegalSignature,
    OfferDraft,
    Side,
    SignatureEvent,
)
from tolsey.storage.tables import table_of

THREAD: Final = table_of(DealThread)
OFFER: Final = table_of(DealOffer)
DRAFT: Final = table_of(OfferDraft)
EVENT: Final = table_of(DealEvent)
SIGNATURE: Final = table_of(LegalSignature)
METRICS: Final = table_of(DealMetrics)
FILE: Final = table_of(DealFile)
VIEWING: Final = table_of(DealViewing)
SIGNATURE_EVENT: Final = table_of(SignatureEvent)

BOUND: Final = ", ".join(f"'{stage}'" for stage in BINDING)
OPEN: Final = f"""(
    d.stage IN ({BOUND}, 'REFUND_REQUESTED')
    OR d.stage = 'CLOSED' AND d.closed_at > now() - interval '7 days'
)"""
"""Which deals keep their parties: from an accepted offer until the money cannot be asked back any more
(rules/accounts#people-who-leave)."""

OVER: Final = ("REFUNDED", "DECLINED", "WITHDRAWN", "EXPIRED", "CANCELLED", "CLOSED_LOST")

Head = tuple[DealThread, DealOffer | None, LegalSignature | None]


async def load(database: Database, listing_ids: Sequence[str]) -> dict[str, list[Head]]:
    """Read the threads of listings, each with its last offer and document."""
    rows = await database.fetch(
        """
        SELECT t AS thread, (
            SELECT o FROM deal_offers o WHERE o.deal_id = t.id ORDER BY o.made_at DESC, o.id DESC LIMIT 1
        ) AS offer, (
            SELECT s FROM legal_signatures s WHERE s.deal_id = t.id ORDER BY s.requested_at DESC, s.id DESC LIMIT 1
        ) AS signature
        FROM deal_threads t WHERE t.listing_id = ANY($1::text[])
        """,
        list(listing_ids),
    )
    found: dict[str, list[Head]] = {id: [] for id in listing_ids}
    for row in rows:
        deal = THREAD.read(row["thread"])
        offer = OFFER.read(row["offer"]) if row["offer"] is not None else None
        asked = SIGNATURE.read(row["signature"]) if row["signature"] is not None else None
        found[deal.listing_id].append((deal, offer, asked))
    return found


async def find(database: Reader, deal_id: str) -> DealThread | None:
    """Read one thread."""
    row = await database.fetchrow("SELECT * FROM deal_threads WHERE id = $1", deal_id)
    return THREAD.read(row) if row else None


async def without_nda(database: Reader, after: str, limit: int) -> list[DealThread]:
    """List the threads at NDA_PENDING for which no NDA was drawn up, by their ids."""
    where = """
        stage = 'NDA_PENDING' AND id > $1
        AND NOT EXISTS (SELECT FROM legal_signatures s WHERE s.deal_id = deal_threads.id)
        ORDER BY id LIMIT $2
    """
    return await records(database, THREAD, where, after, limit)


async def version(database: Reader, deal_id: str, sides: Sequence[Side]) -> str:
    """Name how a deal stands to those of these sides: another text once anything of it moved that they see."""
    row = await database.fetchrow(
        f"""
        SELECT md5(concat_ws(' ', t.hash,
            (SELECT concat_ws(' ', o.id, o.stage) FROM deal_threads o
                WHERE o.listing_id = t.listing_id AND o.id <> t.id AND o.stage IN ({BOUND})),
            (SELECT string_agg(concat_ws(' ', s.id, s.status, s.audit_hash), ',' ORDER BY s.id)
                FROM legal_signatures s WHERE s.deal_id = t.id),
            (SELECT max(f.id) FROM deal_files f WHERE f.deal_id = t.id),
            (SELECT max(v.id) FROM deal_views v WHERE v.deal_id = t.id),
            (SELECT string_agg(concat_ws(' ', a.offer_id, a.drafted_at, a.discarded_at), ',' ORDER BY a.offer_id, a.side)
                FROM deal_offers o JOIN offer_drafts a ON a.offer_id = o.id
                WHERE o.deal_id = t.id AND a.side = ANY($2::text[]))
        )) AS version FROM deal_threads t WHERE t.id = $1
        """,  # noqa: S608 - put together from constants
        deal_id,
        list(sides),
    )
    return str(row["version"]) if row else ""


async def deal_of_offer(database: Reader, offer_id: str) -> tuple[DealThread, DealOffer] | None:
    """Read an offer and its thread."""
    row = await database.fetchrow(
        "SELECT o AS offer, t AS thread FROM deal_offers o JOIN deal_threads t ON t.id = o.deal_id"
        " WHERE o.id = $1",
        offer_id,
    )
    return (THREAD.read(row["thread"]), OFFER.read(row["offer"])) if row else None


async def page_of_user(
    database: Reader, user_id: str, organization_id: str | None, after: str | None, limit: int
) -> list[tuple[DealThread, Side]]:
    """List the threads that organizations of a user are party to, with their side, newest first."""
    wanted = Conditions(user_id, limit)
    wanted.add("m.organization_id = {}", organization_id)
    wanted.add("t.id < {}", after)
    rows = await database.fetch(
        f"""
        SELECT DISTINCT ON (id) * FROM (
            SELECT found.*, 'seller' AS side FROM members m CROSS JOIN LATERAL (
                SELECT t.* FROM deal_threads t WHERE t.seller_id = m.organization_id AND {wanted}
                ORDER BY t.id DESC LIMIT $2) AS found
            WHERE m.user_id = $1
            UNION ALL
            SELECT found.*, 'buyer' AS side FROM members m CROSS JOIN LATERAL (
                SELECT t.* FROM deal_threads t WHERE t.buyer_id = m.organization_id AND {wanted}
                ORDER BY t.id DESC LIMIT $2) AS found
            WHERE m.user_id = $1
        ) AS mine ORDER BY id DESC, side LIMIT $2
        """,  # noqa: S608 - put together from constants
        *wanted.args,
    )
    return [(THREAD.read(row), Side(row["side"])) for row in rows]


async def open_of_buyer(database: Reader, user_id: str, listing_id: str) -> str | None:
    """Find the thread about a listing, not over yet, that an organization of a user asked for as a buyer."""
    row = await database.fetchrow(
        """
        SELECT t.id FROM deal_threads t JOIN members m ON m.organization_id = t.buyer_id AND m.user_id = $1
        WHERE t.listing_id = $2 AND NOT t.stage = ANY($3) ORDER BY t.id DESC LIMIT 1
        """,
        user_id,
        listing_id,
        list(OVER),
    )
    return row["id"] if row else None


async def about(
    database: Reader, listing_id: str, after: str | None, limit: int
) -> list[DealThread]:
    """List the threads about a listing, newest first."""
    wanted = Conditions(listing_id, limit)
    wanted.add("id < {}", after)
    where = f"listing_id = $1 AND {wanted} ORDER BY id DESC LIMIT $2"
    return await records(database, THREAD, where, *wanted.args)


async def signatures_of(database: Reader, deal_id: str) -> list[LegalSignature]:
    """List the documents that were put before the parties of a deal, oldest first."""
    where = "deal_id = $1 ORDER BY requested_at, id"
    return await records(database, SIGNATURE, where, deal_id)


async def offers(database: Reader, deal_id: str, after: str | None, limit: int) -> list[DealOffer]:
    """List the offers of a thread, newest first."""
    wanted = Conditions(deal_id, limit)
    wanted.add("id < {}", after)
    rows = await database.fetch(
        f"SELECT * FROM deal_offers WHERE deal_id = $1 AND {wanted} ORDER BY id DESC LIMIT $2",  # noqa: S608
        *wanted.args,
    )
    return [OFFER.read(row) for row in rows]


async def draft_of(database: Reader, offer_id: str, side: Side) -> OfferDraft | None:
    """Read what an agent prepared as a party's answer to an offer, unless somebody discarded it."""
    where = "offer_id = $1 AND side = $2 AND discarded_at IS NULL"
    return await record(database, DRAFT, where, offer_id, side)


async def events(database: Reader, deal_id: str, after: int, limit: int) -> list[DealEvent]:
    """Read a part of a deal's ledger, in order."""
    rows = await database.fetch(
        "SELECT * FROM deal_events WHERE deal_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
        deal_id,
        after,
        limit,
    )
    return [EVENT.read(row) for row in rows]


async def is_store_selling(database: Reader, store_id: str) -> bool:
    """Tell whether somebody is buying a store."""
    row = await database.fetchrow(
        f"""
        SELECT EXISTS (SELECT FROM deal_threads d WHERE d.listing_id = ANY(ARRAY(
            SELECT id FROM listings WHERE store_id = $1 AND deleted_at IS NULL)) AND {OPEN}) AS selling
        """,  # noqa: S608 - put together from constants
        store_id,
    )
    return bool(row and row["selling"])


async def handing_over(database: Reader, store_id: str) -> DealThread | None:
    """Find the deal at which a store is being handed over to its buyer."""
    where = """stage = 'TRANSFERRING' AND listing_id = ANY(ARRAY(
        SELECT id FROM listings WHERE store_id = $1 AND deleted_at IS NULL)) ORDER BY id LIMIT 1"""
    return await record(database, THREAD, where, store_id)


async def of_escrow(database: Reader, escrow_id: str) -> list[DealThread]:
    """List the threads whose seller named an escrow, of which there should be one."""
    return await records(database, THREAD, "escrow_id = $1 ORDER BY id LIMIT 10", escrow_id)


async def deal_of_signature(
    database: Reader, signature_id: str
) -> tuple[DealThread, LegalSignature] | None:
    """Read a document's signature and its thread."""
    row = await database.fetchrow(
        "SELECT s AS signature, t AS thread FROM legal_signatures s"
        " JOIN deal_threads t ON t.id = s.deal_id WHERE s.id = $1",
        signature_id,
    )
    return (THREAD.read(row["thread"]), SIGNATURE.read(row["signature"])) if row else None


async def signature_events(database: Reader, signature_id: str) -> list[SignatureEvent]:
    """Read the chain of a signature: a line for each who asked, saw, signed or ended it."""
    rows = await database.fetch(
        "SELECT * FROM signature_events WHERE signature_id = $1 ORDER BY seq", signature_id
    )
    return [SIGNATURE_EVENT.read(row) for row in rows]


async def metrics_of(database: Reader, signature_id: str) -> DealMetrics | None:
    """Read the verified figures that a document names."""
    return await record(database, METRICS, "signature_id = $1", signature_id)


async def agreed_metrics(database: Reader, deal_id: str) -> DealMetrics | None:
    """Read the verified figures of the letter of intent that both parties signed last."""
    where = """deal_id = $1 AND document_type = 'LOI' AND signature_id IN (
        SELECT id FROM legal_signatures WHERE deal_id = $1 AND status = 'SIGNED')
        ORDER BY at DESC LIMIT 1"""
    return await record(database, METRICS, where, deal_id)


async def files_of(database: Reader, deal_id: str, after: str | None, limit: int) -> list[DealFile]:
    """List the files of a deal's data room, newest first."""
    wanted = Conditions(deal_id, limit)
    wanted.add("id < {}", after)
    where = f"deal_id = $1 AND {wanted} ORDER BY id DESC LIMIT $2"
    return await records(database, FILE, where, *wanted.args)


async def file_of(database: Reader, deal_id: str, file_id: str) -> DealFile | None:
    """Read what is known of a file of a deal's data room."""
    return await record(database, FILE, "id = $2 AND deal_id = $1", deal_id, file_id)


async def kinds_of_files(database: Reader, deal_id: str) -> tuple[str, ...]:
    """Say what the seller's files in a deal's data room are about."""
    rows = await database.fetch(
        "SELECT DISTINCT kind FROM deal_files WHERE deal_id = $1 AND side = 'seller'", deal_id
    )
    return tuple(row["kind"] for row in rows)


async def note_viewing(database: Database, viewing: DealViewing) -> None:
    """Write down who looked at what, before they do."""
    await database.execute(VIEWING.insert, *VIEWING.values_of(viewing))


async def viewings(
    database: Reader, deal_id: str, after: str | None, limit: int
) -> list[DealViewing]:
    """List who looked at what of a deal, newest first."""
    wanted = Conditions(deal_id, limit)
    wanted.add("id < {}", after)
    where = f"deal_id = $1 AND {wanted} ORDER BY id DESC LIMIT $2"
    return await records(database, VIEWING, where, *wanted.args)


async def document(database: Reader, sha256: str) -> str | None:
    """Read the exact text of a document."""
    row = await database.fetchrow("SELECT content FROM legal_documents WHERE sha256 = $1", sha256)
    return row["content"] if row else None


async def ledger_until(database: Reader, signature: LegalSignature) -> list[DealEvent]:
    """Read a deal's ledger as far as the line that names the head of a signature's chain; none where none does."""
    return await records(
        database,
        EVENT,
        """deal_id = $1 AND seq <= (
            SELECT min(seq) FROM deal_events WHERE deal_id = $1 AND position($2 IN body) > 0) ORDER BY seq""",
        signature.deal_id,
        f'"auditHash":"{signature.audit_hash}"',
    )


async def documents_like(database: Reader, deal_id: str, sha256: str) -> list[LegalSignature]:
    """List the signatures of a deal whose page, or whose PDF, has a hash."""
    return await records(
        database,
        SIGNATURE,
        """deal_id = $1 AND (document_sha256 = $2 OR id IN (
            SELECT signature_id FROM sealed_documents WHERE sha256 = $2)) ORDER BY id""",
        deal_id,
        sha256,
    )

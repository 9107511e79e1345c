"""SQL for daily roots over signatures, and the links that let a stranger check one."""

import secrets
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final, NamedTuple

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Reader, Transaction
from tolsey.storage.lookups import record, records
from tolsey.storage.records.selling.deals import LegalSignature
from tolsey.storage.records.selling.roots import EsignLeaf, EsignRoot, SignatureShare
from tolsey.storage.sealing.sealed import fingerprint
from tolsey.storage.tables import table_of

ROOT: Final = table_of(EsignRoot)
LEAF: Final = table_of(EsignLeaf)
SHARE: Final = table_of(SignatureShare)
TOKEN_BYTES: Final = 32


class UnrootedHead(NamedTuple):
    """The last hash of a signature's chain, which is under no root yet."""

    signature_id: str
    seq: int
    deal_id: str
    head: str


async def hold(tx: Transaction) -> None:
    """Let nobody else sign a root until the transaction ends."""
    await tx.execute("SELECT pg_advisory_xact_lock(hashtextextended('esign-roots', 0))")


async def last(reader: Reader) -> EsignRoot | None:
    """Read the newest root."""
    return await record(reader, ROOT, "true ORDER BY day DESC LIMIT 1")


async def page(reader: Reader, before: date | None, limit: int) -> list[EsignRoot]:
    """List roots, newest first."""
    wanted = Conditions(limit)
    wanted.add("day < {}", before)
    return await records(reader, ROOT, f"{wanted} ORDER BY day DESC LIMIT $1", *wanted.args)


async def unrooted(reader: Reader) -> list[UnrootedHead]:
    """List the heads that are under no root yet, in the order of their signatures."""
    rows = await reader.fetch(
        """
        SELECT s.id, s.seq, s.deal_id, s.audit_hash FROM legal_signatures s
        WHERE NOT EXISTS (SELECT FROM esign_leaves l WHERE l.signature_id = s.id AND l.seq = s.seq)
        ORDER BY s.id
        """
    )
    return [UnrootedHead(*row.values()) for row in rows]


async def keep(tx: Transaction, root: EsignRoot, leaves: Sequence[EsignLeaf]) -> None:
    """Keep a root with all that is under it."""
    await tx.execute(ROOT.insert, *ROOT.values_of(root))
    await tx.execute(
        """
        INSERT INTO esign_leaves (signature_id, seq, deal_id, head, day, way)
        SELECT signature_id, seq, deal_id, head, $5, way::jsonb
        FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $6::text[])
            AS leaf(signature_id, seq, deal_id, head, way)
        """,
        [one.signature_id for one in leaves],
        [one.seq for one in leaves],
        [one.deal_id for one in leaves],
        [one.head for one in leaves],
        root.day,
        [one.way for one in leaves],
    )


async def of_signature(
    reader: Reader, signature_id: str
) -> list[tuple[EsignLeaf, EsignRoot | None]]:
    """Read under which roots the heads of a signature are, the first first; None for one that is gone."""
    rows = await reader.fetch(
        "SELECT l AS leaf, r AS root FROM esign_leaves l LEFT JOIN esign_roots r USING (day)"
        " WHERE l.signature_id = $1 ORDER BY l.seq",
        signature_id,
    )
    return [
        (LEAF.read(row["leaf"]), ROOT.read(row["root"]) if row["root"] is not None else None)
        for row in rows
    ]


async def share(
    database: Database, signature: LegalSignature, *, by: str, at: datetime, until: datetime
) -> str:
    """Make a token by which whoever has it may check a signature; only its hash is kept."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    made = SignatureShare(
        token_hash=fingerprint(token),
        signature_id=signature.id,
        deal_id=signature.deal_id,
        created_by=by,
        created_at=at,
        expires_at=until,
    )
    await database.execute(SHARE.insert, *SHARE.values_of(made))
    return token


async def is_shared(reader: Reader, signature_id: str, token: str, at: datetime) -> bool:
    """Tell whether a token lets its bearer check a signature."""
    found = await record(
        reader,
        SHARE,
        "token_hash = $1 AND signature_id = $2 AND expires_at > $3",
        fingerprint(token),
        signature_id,
        at,
    )
    return found is not None

"""SQL for what wants somebody, where it is told by a page that follows it."""

from collections.abc import Sequence
from typing import Final

from tolsey.storage.database import Reader

MOST_DEALS: Final = 20
MOST_LISTINGS: Final = 50
"""How many of the newest of all organizations together are looked at, as by the page that tells of them."""


async def version(database: Reader, organization_ids: Sequence[str]) -> str:
    """Name how the newest deals and listings and the invoices of organizations stand: another text once any moved."""
    count = max(len(organization_ids), 1)
    (row,) = await database.fetch(
        """
        SELECT md5(concat(string_agg(concat_ws(' ', o.id,
            (SELECT string_agg(concat_ws(' ', d.id, d.seq, d.stage), ',') FROM (
                SELECT t.id, t.seq, t.stage FROM deal_threads t WHERE t.seller_id = o.id ORDER BY t.id DESC LIMIT $2) d),
            (SELECT string_agg(concat_ws(' ', d.id, d.seq, d.stage), ',') FROM (
                SELECT t.id, t.seq, t.stage FROM deal_threads t WHERE t.buyer_id = o.id ORDER BY t.id DESC LIMIT $2) d),
            (SELECT string_agg(concat_ws(' ', l.id, l.title, l.status, v.state, v.last_error, v.last_ok_at), ','
                ORDER BY l.id, v.provider) FROM (
                SELECT n.id, n.title, n.status FROM listings n WHERE n.organization_id = o.id ORDER BY n.id DESC LIMIT $3) l
                LEFT JOIN listing_verifications v ON v.listing_id = l.id),
            (SELECT s.dunning_since FROM subscriptions s WHERE s.organization_id = o.id)
        ), ',' ORDER BY o.id))) AS version
        FROM unnest($1::text[]) AS o(id)
        """,
        list(organization_ids),
        -(-MOST_DEALS // count),
        -(-MOST_LISTINGS // count),
    )
    return str(row["version"])

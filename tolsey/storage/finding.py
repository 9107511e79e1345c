"""From what somebody tells an operator (an address, an id, a name) to what it is."""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tolsey.storage.database import Reader

Kind: TypeAlias = Literal["user", "organization", "store", "listing"]

MOST_FOUND: Final = 20
"""Of each way to be found; whoever means another one types more of it."""

PATTERN_SIGNS: Final = re.compile(r"([\\%_])")
WEB_ADDRESS: Final = re.compile(r"https?://([^/\s]+).*", re.IGNORECASE)

BY_MAIL: Final = """
(SELECT 'user' AS kind, id, 'mail' AS matched FROM users WHERE email = $1)
UNION ALL
(SELECT 'organization', m.organization_id, 'mail' FROM users u JOIN members m ON m.user_id = u.id
WHERE u.email = $1 LIMIT $2)
UNION ALL
(SELECT 'store', s.id, 'mail' FROM users u JOIN members m ON m.user_id = u.id
JOIN stores s ON s.organization_id = m.organization_id AND s.deleted_at IS NULL
WHERE u.email = $1 LIMIT $2)
"""
BY_ID_OR_NAME: Final = """
(SELECT 'user' AS kind, id, 'id' AS matched FROM users WHERE id = $1)
UNION ALL (SELECT 'organization', id, 'id' FROM organizations WHERE id = $1)
UNION ALL (SELECT 'store', id, 'id' FROM stores WHERE id = $1)
UNION ALL (SELECT 'listing', id, 'id' FROM listings WHERE id = $1)
UNION ALL (SELECT 'listing', id, 'address' FROM listings WHERE slug = $1)
UNION ALL (SELECT 'store', store_id, 'listing' FROM listings WHERE id = $1 AND store_id IS NOT NULL)
UNION ALL
(SELECT 'store', id, 'organization' FROM stores
WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY id LIMIT $2)
UNION ALL (SELECT 'organization', organization_id, 'operation' FROM operations WHERE id = $1)
UNION ALL (SELECT 'organization', organization_id, 'payment' FROM payment_links WHERE reference = $1)
UNION ALL
(SELECT 'organization', organization_id, 'payment' FROM subscriptions WHERE subscription_id = $1 LIMIT $2)
UNION ALL
(SELECT 'store', store_id, 'shop' FROM integration_connections
WHERE shop_domain LIKE lower($3) || '%' ORDER BY shop_domain USING ~<~ LIMIT $2)
UNION ALL
(SELECT 'store', store_id, 'shop' FROM store_shops
WHERE folded(name) LIKE folded($3) || '%' ORDER BY folded(name) USING ~<~ LIMIT $2)
UNION ALL
(SELECT 'store', id, 'name' FROM stores
WHERE folded(name) LIKE folded($3) || '%' ORDER BY folded(name) USING ~<~ LIMIT $2)
UNION ALL
(SELECT 'listing', listing_id, 'shop' FROM revenue_sources
WHERE shop_domain LIKE lower($3) || '%' ORDER BY shop_domain USING ~<~ LIMIT $2)
UNION ALL
(SELECT 'organization', id, 'name' FROM organizations
WHERE folded(name) LIKE folded($3) || '%' ORDER BY folded(name) USING ~<~ LIMIT $2)
"""
DESCRIBED: Final = """
WITH hits AS MATERIALIZED ({hits})
SELECT h.kind, h.id, h.matched, described.* FROM hits h CROSS JOIN LATERAL (
    (SELECT NULL AS name, NULL AS organization_id, NULL AS shop_domain,
        deletion_requested_at IS NOT NULL AS is_deleted
    FROM users WHERE h.kind = 'user' AND id = h.id)
    UNION ALL
    (SELECT name, id, NULL, false FROM organizations WHERE h.kind = 'organization' AND id = h.id)
    UNION ALL
    (SELECT s.name, s.organization_id, (SELECT shop_domain FROM integration_connections c
        WHERE c.store_id = s.id AND c.provider = 'commerce'), s.deleted_at IS NOT NULL
    FROM stores s WHERE h.kind = 'store' AND s.id = h.id)
    UNION ALL
    (SELECT l.title, l.organization_id, (SELECT shop_domain FROM revenue_sources r
        WHERE r.listing_id = l.id AND r.provider = 'commerce'), l.deleted_at IS NOT NULL
    FROM listings l WHERE h.kind = 'listing' AND l.id = h.id)
) described
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A user, an organization, a store or a listing, by what it `matched`."""

    kind: Kind
    id: str
    matched: str
    name: str | None
    organization_id: str | None
    shop_domain: str | None
    is_deleted: bool


async def find(reader: Reader, typed: str) -> list[Found]:
    """Find what has this mail address, this id, or a shop's, store's or organization's name that begins so."""
    wanted = WEB_ADDRESS.sub(r"\1", typed.strip())
    if "@" in wanted:
        sql, args = BY_MAIL, [wanted.lower(), MOST_FOUND]
    else:
        sql, args = BY_ID_OR_NAME, [wanted, MOST_FOUND, PATTERN_SIGNS.sub(r"\\\1", wanted)]
    rows = await reader.fetch(DESCRIBED.format(hits=sql), *args)
    found: dict[tuple[str, str], Found] = {}
    for row in rows:
        found.setdefault((row["kind"], row["id"]), Found(**row))
    return list(found.values())

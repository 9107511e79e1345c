"""What an agent can be allowed, in words for people (rules/agents#scopes)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from tolsey.http.layout.catalogue import marked

READ: Final = ":read"
WRITE: Final = ":write"

SCOPES: Final[Mapping[str, str]] = {
    "store:read": marked("See the store: its name, its connection and its verified revenue"),
    "orders:read": marked("See orders and sales"),
    "orders:write": marked("Add notes and tags to orders"),
    "catalog:read": marked("See products"),
    "catalog:write": marked("Change products, and draft collections and pages"),
    "inventory:read": marked("See stock"),
    "inventory:write": marked("Change stock"),
    "fulfillments:write": marked("Mark orders as sent and say how parcels are tracked"),
    "refunds:write": marked("Prepare refunds, which a person confirms"),
    "discounts:write": marked("Draft discount codes"),
    "customers:read": marked("See customers without their names and addresses"),
    "memory:read": marked("See what the store remembers"),
    "memory:write": marked("Remember things for the store, and forget what agents told"),
    "launch:read": marked("See the launch plan"),
    "launch:write": marked("Work on the launch plan"),
    "billing:read": marked("See the plan, the credits and what was spent"),
    "intelligence:read": marked("See competitors"),
    "intelligence:write": marked("Ask for scans of competitors"),
    "deals:read": marked(
        "See the organization's deals and offers; no agent signs, accepts or moves one"
    ),
    "offers:write": marked(
        "Prepare answers to offers, which a person sends; no agent signs, accepts or moves a deal"
    ),
    "compliance:read": marked("See privacy requests and what is still to do"),
    "audit:read": marked("See who did what"),
}
"""There is none for credentials, payouts or contracts, and never will be."""
ON_REQUEST: Final = frozenset({"deals:read", "offers:write"})
"""What is let out to no client that did not ask for it by its name."""
DEFAULT: Final = tuple(name for name in SCOPES if name.endswith(READ) and name not in ON_REQUEST)
"""What a client asks for that names nothing: many clients never ask again (rules/agents#scopes)."""
NOT_OF_MEMBERS: Final = frozenset({"audit:read", "compliance:read"})
"""What owners and admins may see, and let an agent see (rules/agents#scopes)."""


def in_order(scopes: Collection[str]) -> tuple[str, ...]:
    """Return the scopes of the catalogue in its order, each once. Others are left out.

    Clients also request scopes such as `openid` or `offline_access`. RFC 6749, 3.3, lets the server
    ignore them, and the token answer states the scopes that were granted.
    """
    return tuple(name for name in SCOPES if name in scopes)


def implied(scopes: Iterable[str]) -> frozenset[str]:
    """Add what scopes bring along: who may write may read."""
    held = frozenset(scopes)
    return held | {f"{name.removesuffix(WRITE)}{READ}" for name in held if name.endswith(WRITE)}


def opened(scopes: Iterable[str]) -> tuple[str, ...]:
    """List all that a token of these scopes opens, in the catalogue's order."""
    return in_order(implied(scopes))


def allowed(scopes: Iterable[str], role: str) -> tuple[str, ...]:
    """Keep what a role can allow: a member looks at most things, an admin or owner also changes."""
    return tuple(
        name
        for name in scopes
        if role != "member" or not (name.endswith(WRITE) or name in NOT_OF_MEMBERS)
    )


def written(scopes: Sequence[str]) -> str:
    """Write scopes as OAuth does (RFC 6749, 3.3)."""
    return " ".join(scopes)

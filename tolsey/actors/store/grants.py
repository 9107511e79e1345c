"""What every decision about a grant shares: how it is handed out, refused and put on record."""

import math
from datetime import datetime
from typing import Final

from tolsey.actors.mail import MailEvent, TellPeople
from tolsey.actors.ports import (
    PlatformDenied,
    PlatformThrottled,
    PlatformUnreachable,
    QueryTooCostly,
)
from tolsey.actors.refusals import Forbidden, Refusal, Unavailable, Unprocessable
from tolsey.actors.store.connection.messages import Token
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Perform
from tolsey.storage.records.commerce.connection import Connection, ConnectionStatus
from tolsey.storage.records.journal import AuditRecord, audit_record

WAITING: Final = "token"
"""What those are parked under who wait for a renewal."""

LEAVING: Final = "leaving"
"""What those are parked under who wait for the end of a connection."""

RETRY_SECONDS: Final = 5
"""When to try again where the platform does not say."""

RECONNECT: Final = "Shopify rejected this store's app. Connect the store again."
DISCONNECTED_BY_HAND: Final = (
    "This store was disconnected from its shop. An owner or admin must connect it again."
)
CONNECT: Final = "This store isn't connected to a shop. An owner or admin must connect it first."


def token_unavailable() -> Unavailable:
    """Say that only the merchant can help."""
    return Unavailable(RECONNECT, code="token_unavailable")


def disconnected() -> Unavailable:
    """Say that its own people took the store from its shop, which refuses nothing."""
    return Unavailable(DISCONNECTED_BY_HAND, code="disconnected")


def never_connected() -> Unavailable:
    """Say that there is no shop yet that could be called."""
    return Unavailable(CONNECT, code="never_connected")


def is_lasting(refusal: Refusal) -> bool:
    """Whether there is no token until the merchant does something, so that waiting is of no use."""
    return refusal.code in {"token_unavailable", "disconnected", "never_connected"}


def commerce_unreachable() -> Unavailable:
    """Say that the platform does not answer for now."""
    return Unavailable(
        "Shopify is unreachable. Try again in a minute.",
        code="commerce_unreachable",
        retryAfter=RETRY_SECONDS,
    )


def to_platform_refusal(error: PlatformDenied | PlatformUnreachable) -> Refusal:
    """State why a call of the platform brought no answer, and when to try again."""
    match error:
        case PlatformDenied():
            return denied(error)
        case QueryTooCostly():
            return Unprocessable(
                error.message,
                code="query_too_costly",
                cost=None if error.cost is None else round(error.cost),
                maxCost=round(error.limit),
            )
        case PlatformUnreachable():
            is_throttled = isinstance(error, PlatformThrottled)
            code = "commerce_throttled" if is_throttled else "commerce_unreachable"
            return Unavailable(
                error.message,
                code=code,
                retryAfter=math.ceil(error.retry_after or RETRY_SECONDS),
            )


def denied(error: PlatformDenied) -> Refusal:
    """Pass on what the platform refuses: its status and its own words."""
    return Refusal(
        error.words,
        status=error.status,
        code="platform_denied",
        platformStatus=error.status,
        scope=error.missing_scope,
    )


def lacking(scope: str) -> Forbidden:
    """Say which permission the merchant's app is known not to have, and who can mend it."""
    return Forbidden(
        f"The merchant's app lacks the scope {scope}. Ask the shop's owner to add it to the app and approve it.",
        code="missing_scope",
        scope=scope,
    )


def tell_keepers(state: StoreState, connection: Connection, why: str) -> Perform:
    """Tell those who look after a store that nothing is read from its shop any more."""
    call = TellPeople(
        event=MailEvent.CONNECTION_BROKEN,
        organization_id=state.organization_id,
        about=f"{state.store_id}:{connection.connected_at.isoformat()}",
        facts={"store": state.store_id, "shop": connection.shop_domain, "why": why},
    )
    return Perform(call, key=f"tell:{call.event}:{call.about}")


def handed(connection: Connection, access_token: str, expires_at: datetime) -> Token:
    """Make the answer of a connection with a token."""
    return Token(
        store_id=connection.store_id,
        shop_domain=connection.shop_domain,
        access_token=access_token,
        expires_at=expires_at,
        scopes=connection.scopes,
    )


def is_same_grant(state: StoreState, connected_at: datetime) -> bool:
    """Tell whether a result that comes back is about the grant the store still has."""
    return (
        state.connection is not None
        and state.connection.connected_at == connected_at
        and state.connection.status == ConnectionStatus.ACTIVE
    )


def is_listening(state: StoreState, shop_domain: str) -> bool:
    """Tell whether the store is still connected to the shop that a delivery is about."""
    connection = state.connection
    return (
        connection is not None
        and connection.shop_domain == shop_domain
        and connection.status == ConnectionStatus.ACTIVE
    )


def connection_audit(state: StoreState, event: str, who: str, shop_domain: str) -> AuditRecord:
    """Write down who changed the connection of which shop."""
    return audit_record(event, state.store_id, state.organization_id, who, shopDomain=shop_domain)

"""Decisions about the token of a store's grant: used while fresh, renewed once for all who ask.

The token lives 24 hours and is renewed when less than ten minutes are left (rules/shops#tokens).
A renewal happens outside the mailbox; who asks meanwhile waits for the same result.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from tolsey.actors.store.connection.connecting import rescope
from tolsey.actors.store.connection.messages import (
    RenewalRefused,
    RenewalSucceeded,
    RenewalUnreachable,
    RenewToken,
    Token,
    UseToken,
)
from tolsey.actors.store.grants import (
    WAITING,
    commerce_unreachable,
    connection_audit,
    disconnected,
    handed,
    is_same_grant,
    never_connected,
    tell_keepers,
    token_unavailable,
)
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Parked, Perform
from tolsey.storage.records.commerce.connection import DISCONNECTED, ConnectionStatus

MARGIN: Final = timedelta(minutes=10)
RENEWAL_LIMIT: Final = timedelta(seconds=60)
"""How long one renewal may hold the others back, should its result never come."""


def use(state: StoreState, message: UseToken) -> Decision[StoreState, Token]:
    """Hand out the token while it is fresh, else wait for a new one.

    A store whose renewal was refused stays unavailable until its merchant reconnects
    (rules/shops#tokens), even while the old token might still be taken. A token
    that was found dead has ended, unless a newer one took its place meanwhile.
    """
    connection = state.connection
    if connection is None:
        raise never_connected()
    if connection.status == DISCONNECTED:
        raise disconnected()
    if connection.status != ConnectionStatus.ACTIVE or connection.refused_at is not None:
        raise token_unavailable()
    expires_at = connection.token_expires_at
    if message.dead is not None and message.dead == connection.access_token:
        expires_at = min(expires_at or message.at, message.at)
        connection = replace(connection, token_expires_at=expires_at)
        state = replace(state, connection=connection)
    if (
        connection.access_token is not None
        and expires_at is not None
        and expires_at - message.at > MARGIN
    ):
        return Decision(state, reply=handed(connection, connection.access_token, expires_at))
    if state.renewing_since is not None and message.at - state.renewing_since < RENEWAL_LIMIT:
        return Decision(state, reply=Parked(WAITING))
    # The key keeps a renewal that still waits in the outbox the only one, restarts included.
    renewal = Perform(
        RenewToken(state.store_id, connection.connected_at), key=f"renew-token:{state.store_id}"
    )
    after = replace(state, renewing_since=message.at)
    return Decision(after, reply=Parked(WAITING), effects=(renewal,))


def renewed(state: StoreState, message: RenewalSucceeded) -> Decision[StoreState, None]:
    """Keep the new token and its scopes, and give it to everyone who waits.

    Scopes are rewritten at every renewal; an empty list means that they are unknown.
    """
    connection = state.connection
    if connection is None or not is_same_grant(state, message.connected_at):
        return outdated(state)
    kept = replace(
        connection,
        access_token=message.access_token,
        token_expires_at=message.expires_at,
        refused_at=None,
    )
    after, effects = rescope(
        replace(state, connection=kept, renewing_since=None), message.scopes, message.at
    )
    told_scopes = replace(kept, scopes=message.scopes)
    token = handed(told_scopes, message.access_token, message.expires_at)
    return Decision(after, reply=None, effects=effects, resolve={WAITING: token})


def refused(state: StoreState, message: RenewalRefused) -> Decision[StoreState, None]:
    """Remember since when the platform refuses; the stored grant and the status stay untouched."""
    connection = state.connection
    if connection is None or not is_same_grant(state, message.connected_at):
        return outdated(state)
    resolve = {WAITING: token_unavailable()}
    if connection.refused_at is not None:
        return Decision(replace(state, renewing_since=None), reply=None, resolve=resolve)
    kept = replace(connection, refused_at=message.at)
    after = replace(state, connection=kept, renewing_since=None)
    audit = connection_audit(state, "commerce.refresh_rejected", "platform", connection.shop_domain)
    tell = tell_keepers(state, connection, "refused")
    return Decision(after, reply=None, records=(audit,), effects=(tell,), resolve=resolve)


def unreachable(state: StoreState, message: RenewalUnreachable) -> Decision[StoreState, None]:
    """Let everyone who waits try again; the grant is as good as it was."""
    if not is_same_grant(state, message.connected_at):
        return outdated(state)
    after = replace(state, renewing_since=None)
    return Decision(after, reply=None, resolve={WAITING: commerce_unreachable()})


def outdated(state: StoreState) -> Decision[StoreState, None]:
    """Drop a result about a grant that is no more; who still waits is told to ask again."""
    return Decision(state, reply=None, resolve={WAITING: commerce_unreachable()})

"""Decisions about a store's grant on its commerce platform."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tolsey.actors.refusals import NotFound
from tolsey.actors.store.connection import shops
from tolsey.actors.store.connection.messages import (
    CheckGrant,
    Connect,
    ConnectionView,
    Disconnect,
    EndSubscriptions,
    ForgetShops,
    LeaveShop,
    ReadConnection,
    ReconcileSubscriptions,
    RevokeGrant,
    RevokeListingSources,
    SubscriptionsEnded,
    SubscriptionsReconciled,
    TokenState,
)
from tolsey.actors.store.editing import operations
from tolsey.actors.store.grants import (
    LEAVING,
    WAITING,
    connection_audit,
    disconnected,
    handed,
    is_same_grant,
    tell_keepers,
    token_unavailable,
)
from tolsey.actors.store.imports import importing
from tolsey.actors.store.messages import Outcome
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Parked, Perform
from tolsey.storage.records.commerce.connection import (
    DISCONNECTED,
    Connection,
    ConnectionStatus,
    ShopProfile,
)
from tolsey.storage.records.commerce.shops import ConnectionEnding

CLOCKS: Final = timedelta(minutes=5)
"""How far the platform's clock and ours may differ."""


def connect(state: StoreState, message: Connect) -> Decision[StoreState, ConnectionView]:
    """Take the new grant in place of whatever there was, and subscribe to the catalogue."""
    former, client_id = state.connection, message.client_id or None
    same_app = (
        former is not None
        and former.shop_domain == message.shop.shop_domain
        and former.client_id == client_id
    )
    connection = Connection(
        store_id=state.store_id,
        shop_domain=message.shop.shop_domain,
        status=ConnectionStatus.ACTIVE,
        connected_at=message.at,
        client_id=client_id,
        access_token=message.access_token,
        token_expires_at=message.expires_at,
        client_secret=message.client_secret,
        former_secret=former.client_secret if former is not None and same_app else None,
        scopes=message.scopes,
        scopes_at=message.at,
    )
    after = replace(
        state,
        connection=connection,
        shop=known(state.shop, message.shop),
        shops=shops.connected(state, connection.shop_domain, message.sealed_salt, message.at),
        renewing_since=None,
    )
    after, imports = importing.after_connecting(after, message.at)
    domains = {connection.shop_domain} | ({former.shop_domain} if former else set())
    effects = (
        Perform(
            ReconcileSubscriptions(state.store_id, message.at, state.organization_id),
            key=f"reconcile-subscriptions:{state.store_id}:{message.at.isoformat()}",
        ),
        Perform(ForgetShops(tuple(sorted(domains)))),
        *imports,
    )
    audit = connection_audit(state, "commerce.connected", message.user_id, connection.shop_domain)
    # Whoever waits for the old grant's renewal is served by the new one.
    token = handed(connection, message.access_token, message.expires_at)
    behind = Decision(after, reply=None)
    if former is not None and former.shop_domain != connection.shop_domain:
        behind = operations.left_behind(after, message.at)
    periods = (*shops.ended(former, message.at, ConnectionEnding.REPLACED), shops.begun(connection))
    return Decision(
        behind.state,
        reply=view(after),
        records=(audit, *behind.records, *periods),
        effects=(*effects, *behind.effects),
        resolve={WAITING: token, **(behind.resolve or {})},
    )


def known(before: ShopProfile | None, told_now: ShopProfile) -> ShopProfile:
    """Keep what is known of the same shop beside what the platform tells now."""
    if before is None or before.shop_domain != told_now.shop_domain:
        return told_now
    return replace(
        told_now,
        plan_name=told_now.plan_name or before.plan_name,
        theme_id=before.theme_id,
        theme_name=before.theme_name,
        theme_at=before.theme_at,
        custom_domains=before.custom_domains,
        subscriptions=before.subscriptions,
        subscribed_at=before.subscribed_at,
        bulk_operation=before.bulk_operation,
        bulk_at=before.bulk_at,
    )


def disconnect(state: StoreState, message: Disconnect) -> Decision[StoreState, ConnectionView]:
    """Erase the credentials on the merchant's word; taking away twice changes nothing more."""
    connection = state.connection
    if connection is None:
        raise NotFound("This store isn't connected to a shop. Connect it in the store's settings.")
    if connection.status == DISCONNECTED:
        return Decision(state, reply=view(state))
    erased = replace(forgotten(connection), status=DISCONNECTED, client_id=None)
    after = replace(state, connection=erased, renewing_since=None)
    audit = connection_audit(
        state, "commerce.disconnected", message.user_id, connection.shop_domain
    )
    forget = Perform(ForgetShops((connection.shop_domain,)))
    return Decision(
        after,
        reply=view(after),
        records=(audit, *shops.ended(connection, message.at, ConnectionEnding.DISCONNECTED)),
        effects=(forget,),
        resolve={WAITING: disconnected(), LEAVING: view(after)},
    )


def leave(state: StoreState, message: LeaveShop) -> Decision[StoreState, ConnectionView]:
    """End the subscriptions while the credentials are there, and then the connection.

    A store that has no live grant is disconnected at once: nobody would listen to it.
    """
    connection = state.connection
    if connection is None or connection.status != ConnectionStatus.ACTIVE:
        return disconnect(state, Disconnect(message.at, message.user_id))
    call = EndSubscriptions(state.store_id, connection.connected_at, message.user_id)
    key = f"end-subscriptions:{state.store_id}:{connection.connected_at.isoformat()}"
    return Decision(state, reply=Parked(LEAVING), effects=(Perform(call, key=key),))


def left(state: StoreState, message: SubscriptionsEnded) -> Decision[StoreState, None]:
    """Disconnect a store whose subscriptions have ended, as far as the platform let them."""
    if not is_same_grant(state, message.connected_at):
        resolve = {LEAVING: view(state)} if state.connection is not None else {}
        return Decision(state, reply=None, resolve=resolve)
    ended = disconnect(state, Disconnect(message.at, message.user_id))
    return Decision(
        ended.state, None, records=ended.records, effects=ended.effects, resolve=ended.resolve
    )


def uninstall(state: StoreState, message: RevokeGrant) -> Decision[StoreState, Outcome]:
    """Revoke the grant, unless it is another shop's or was made after the app was removed.

    A store that was repointed keeps its live connection (rules/shops#uninstalling), and so does
    one that reconnected before a late delivery arrived. Clocks differ: what happened a little
    before the connection counts as after it, and of what happened longer before the platform is
    asked whether the grant still lives.
    """
    connection = state.connection
    if (
        connection is None
        or connection.shop_domain != message.shop_domain
        or connection.status in {ConnectionStatus.REVOKED, DISCONNECTED}
        or message.connected_at not in {None, connection.connected_at}
    ):
        return Decision(state, reply=Outcome.IGNORED)
    if message.happened_at < connection.connected_at - CLOCKS:
        return Decision(state, reply=Outcome.IGNORED, effects=(check(state, connection),))
    revoked = replace(
        forgotten(connection), status=ConnectionStatus.REVOKED, uninstalled_at=message.at
    )
    after = replace(state, connection=revoked, renewing_since=None)
    effects = [
        Perform(ForgetShops((connection.shop_domain,))),
        tell_keepers(state, connection, "uninstalled"),
    ]
    if state.organization_id is not None:
        call = RevokeListingSources(state.organization_id, connection.shop_domain, message.at)
        effects.append(Perform(call))
    return Decision(
        after,
        reply=Outcome.APPLIED,
        records=shops.ended(connection, message.at, ConnectionEnding.UNINSTALLED),
        effects=effects,
        resolve={WAITING: token_unavailable()},
    )


def check(state: StoreState, connection: Connection) -> Perform:
    """Have the platform asked whether a grant still lives, once at a time."""
    call = CheckGrant(state.store_id, connection.connected_at)
    return Perform(call, key=f"check-grant:{state.store_id}:{connection.connected_at.isoformat()}")


def forgotten(connection: Connection) -> Connection:
    """Forget all key material; the row stays as the memory of a grant."""
    return replace(
        connection,
        access_token=None,
        token_expires_at=None,
        client_secret=None,
        former_secret=None,
        refused_at=None,
    )


def rescope(
    state: StoreState, scopes: tuple[str, ...], changed_at: datetime
) -> tuple[StoreState, tuple[Perform, ...]]:
    """Keep what the grant allows now; topics that were refused for a missing scope are retried.

    Orders that could not be read before are imported.
    """
    connection = state.connection
    if connection is None:
        return state, ()
    if connection.scopes_at is not None and changed_at < connection.scopes_at:
        return state, ()
    kept = replace(connection, scopes=scopes, scopes_at=changed_at)
    after = replace(state, connection=kept)
    if set(scopes) <= set(connection.scopes):
        return after, ()
    call = ReconcileSubscriptions(state.store_id, connection.connected_at, state.organization_id)
    key = f"reconcile-subscriptions:{state.store_id}:{changed_at.isoformat()}"
    imports: tuple[Perform, ...] = ()
    if importing.may_read_more(connection.scopes, scopes):
        after, imports = importing.after_connecting(after, changed_at)
    return after, (Perform(call, key=key), *imports)


def subscribed(state: StoreState, message: SubscriptionsReconciled) -> Decision[StoreState, None]:
    """Keep what became of each topic's subscription, for operators to read."""
    shop = state.shop
    if not is_same_grant(state, message.connected_at) or shop is None:
        return Decision(state, reply=None)
    report = json.dumps(dict(message.results))
    after = replace(state, shop=replace(shop, subscriptions=report, subscribed_at=message.at))
    return Decision(after, reply=None)


def read(state: StoreState, message: ReadConnection) -> Decision[StoreState, ConnectionView | None]:
    """Show the connection as its merchant may see it."""
    del message
    return Decision(state, reply=None if state.connection is None else view(state))


def view(state: StoreState) -> ConnectionView:
    """Show a connection that there is."""
    connection = state.connection
    if connection is None:
        raise NotFound("This store isn't connected to a shop. Connect it in the store's settings.")
    if connection.status == ConnectionStatus.ACTIVE and connection.refused_at is None:
        token_state = TokenState.OK
    else:
        token_state = TokenState.UNAVAILABLE
    subscriptions = json.loads(state.shop.subscriptions) if state.shop is not None else {}
    return ConnectionView(
        shop_domain=connection.shop_domain,
        status=connection.status,
        scopes=connection.scopes,
        token_state=token_state,
        connected_at=connection.connected_at,
        uninstalled_at=connection.uninstalled_at,
        subscriptions=tuple(sorted(subscriptions.items())),
        token_kind=connection.token_kind,
    )

"""How a store is: its connection, what the platform delivers, and what wants doing."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import orjson

from tolsey.actors.store.deliveries.topics import TOPICS
from tolsey.http.layout.catalogue import _, counted
from tolsey.http.layout.standings import ShownState, Want
from tolsey.storage.commerce.connections import StoreParts
from tolsey.storage.commerce.order_imports import KnownOrders
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.records.commerce.connection import Connection, ConnectionStatus
from tolsey.storage.records.commerce.imports import ImportState

DELIVERED: Final = frozenset({"ok", "created"})
LONGEST_SETUP: Final = timedelta(minutes=15)
"""After so long nobody waits before the page for the platform."""


def address_of(store: StoreRow, tail: str = "") -> str:
    """Give the address of a store's page."""
    return f"/stores/{store.id}{tail}"


def connection_of(parts: StoreParts) -> ShownState:
    """Say whether the shop can be read."""
    connection = parts.connection
    if connection is None:
        return ShownState("you", _("Not connected"))
    if connection.status == ConnectionStatus.REVOKED:
        return ShownState("bad", _("App removed"))
    if connection.status != ConnectionStatus.ACTIVE:
        return ShownState("you", _("Disconnected"))
    if connection.refused_at is not None:
        return ShownState("bad", _("Token refused"))
    return ShownState("good", _("Works"))


def webhooks_of(parts: StoreParts) -> ShownState:
    """Say whether the platform tells what happens in the shop."""
    if not _is_usable(parts.connection) or parts.shop is None:
        return ShownState("idle", _("Nothing is delivered"))
    subscribed = orjson.loads(parts.shop.subscriptions)
    if not subscribed:
        return ShownState("wait", _("Being set up"))
    missing = undelivered(parts)
    if missing:
        said = counted("%(num)s topic is missing", "%(num)s topics are missing", len(missing))
        return ShownState("warn", said % {"num": len(missing)})
    said = counted("%(num)s topic", "All %(num)s topics", len(subscribed))
    return ShownState("good", said % {"num": len(subscribed)})


def is_being_set_up(parts: StoreParts, at: datetime) -> bool:
    """Whether the platform is being asked to tell what happens in a shop that was just connected."""
    connection, shop = parts.connection, parts.shop
    if connection is None or shop is None or not _is_usable(connection):
        return False
    told_at = shop.subscribed_at
    # A shop that is connected again keeps what it was told before; what takes longer is no progress.
    return (told_at is None or told_at < connection.connected_at) and (
        at - connection.connected_at < LONGEST_SETUP
    )


def orders_of(known: KnownOrders) -> ShownState:
    """Say from when on orders are known, or how far the import of those from before is."""
    last = known.order_import
    if last is not None and last.state is ImportState.RUNNING:
        if last.bulk_export is None or last.expected is None:
            return ShownState("wait", _("Earlier ones are asked for"))
        read = {"read": f"{last.orders:,}", "all": f"{last.expected:,}"}
        return ShownState("wait", _("%(read)s of %(all)s imported") % read)
    if last is not None and last.state is ImportState.STOPPED:
        said = {"read": f"{last.orders:,}"}
        return ShownState("you", _("Import stopped at %(read)s") % said)
    if last is not None and last.state is ImportState.FAILED:
        return ShownState("warn", _("Import stands"))
    return ShownState("good", _("All are known") if known.knows_all else _("Known in part"))


def undelivered(parts: StoreParts) -> list[str]:
    """List the topics to which the platform took no subscription."""
    subscribed: dict[str, str] = orjson.loads(parts.shop.subscriptions) if parts.shop else {}
    return sorted(topic for topic, became in subscribed.items() if became not in DELIVERED)


def wanted_by_store(store: StoreRow, parts: StoreParts) -> Iterator[Want]:
    """Say what a store's connection wants, and how it is mended."""
    connect, again = address_of(store, "/connect"), _("Connect again")
    connection = parts.connection
    if connection is None:
        yield Want(
            tone="you",
            title=_("Connect %(store)s to its shop") % {"store": store.name},
            advice=_("Until then nothing of the shop is known here, and no agent can work in it."),
            subject=store.name,
            act=_("Connect the shop"),
            address=connect,
        )
        return
    shop = {"shop": connection.shop_domain}
    if connection.status == ConnectionStatus.REVOKED:
        title = _("The app was removed from %(shop)s") % shop
        advice = _("Install it again in the shop's admin, then connect again. What was read stays.")
        yield _broken(store, title, advice)
    elif connection.status != ConnectionStatus.ACTIVE:
        yield Want(
            tone="you",
            title=_("%(shop)s is disconnected") % shop,
            advice=_("Its keys are erased here. Connect again when it shall be read."),
            subject=store.name,
            act=again,
            address=connect,
        )
    elif connection.refused_at is not None:
        title = _("%(shop)s refuses a new access token") % shop
        advice = _(
            "The app's secret was changed, or the app is no longer installed."
            " Copy the present secret from the app and connect again."
        )
        yield _broken(store, title, advice)
    elif missing := undelivered(parts):
        scopes = sorted({TOPICS[one].scope or "" for one in missing if one in TOPICS} - {""})
        advice = _(
            "Release a version of the app with these permissions, install it, and connect again:"
            " %(scopes)s."
        ) % {"scopes": ", ".join(scopes)}
        yield Want(
            tone="warn",
            title=_("%(shop)s does not tell everything: %(topics)s")
            % {**shop, "topics": ", ".join(missing)},
            advice=advice if scopes else _("Connect again; if it goes on, ask for help."),
            subject=store.name,
            act=again,
            address=connect,
        )


def _broken(store: StoreRow, title: str, advice: str) -> Want:
    return Want(
        tone="bad",
        title=title,
        advice=advice,
        subject=store.name,
        act=_("Connect again"),
        address=address_of(store, "/connect"),
    )


def _is_usable(connection: Connection | None) -> bool:
    return (
        connection is not None
        and connection.status == ConnectionStatus.ACTIVE
        and connection.refused_at is None
    )

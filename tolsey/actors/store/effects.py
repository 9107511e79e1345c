"""A store's reach into the world: tokens, subscriptions, orders read anew, listings told."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import orjson
import structlog

from tolsey.actors.bodies import Unreadable
from tolsey.actors.listing.messages import SourceRevoked, listing
from tolsey.actors.ports import (
    UNAUTHORIZED,
    CommerceEditor,
    CommercePlatform,
    EditRefused,
    GrantRefused,
    PlatformDenied,
    PlatformError,
    PlatformUnreachable,
    Shop,
)
from tolsey.actors.reach import Ask
from tolsey.actors.refusals import Refusal
from tolsey.actors.store import edits
from tolsey.actors.store.edits import Edit, EditVerdict, Planned, Rejected
from tolsey.actors.store.grants import denied, is_lasting
from tolsey.actors.store.identity import PURPOSE
from tolsey.actors.store.messages import (
    CheckGrant,
    Delivery,
    EndSubscriptions,
    ForgetShops,
    OrderRead,
    ReadOrder,
    ReconcileSubscriptions,
    RenewalRefused,
    RenewalSucceeded,
    RenewalUnreachable,
    RenewToken,
    RevokeGrant,
    RevokeListingSources,
    SubscriptionsEnded,
    SubscriptionsReconciled,
    Token,
    store,
)
from tolsey.actors.store.operation_messages import (
    CarryOut,
    OperationApplied,
    OperationNotSent,
    OperationRejected,
    OperationSending,
    OperationUnanswered,
)
from tolsey.actors.store.payloads import order_row
from tolsey.actors.store.reach import Shops
from tolsey.actors.store.reading import Reading
from tolsey.actors.store.topics import REASONS, TOPICS
from tolsey.runtime.decision import Tell
from tolsey.runtime.messages import Message
from tolsey.storage.commerce import agent_operations, connections, stores
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.agent_operation import AgentOperation, OperationState
from tolsey.storage.sealing.sealed import SealBroken, Vault
from tolsey.storage.selling import listings

log = structlog.get_logger()

LEAVE_SECONDS: Final = 10.0
"""Who deletes a store waits for this."""
MISSING_SCOPE: Final = "missing_scope"
TRIES: Final = 5
"""How often a change is planned anew because the shop moved on meanwhile."""
KEY_HONOURED: Final = timedelta(hours=1)
"""How long after an operation began its key is relied on; the platform forgets keys at some time."""


def shops(ask: Ask, vault: Vault, clock: Callable[[], datetime]) -> Shops:
    """Find the way to stores' shops with tokens that this vault opens."""
    return Shops(ask, partial(_opened, vault), clock)


def _opened(vault: Vault, token: Token) -> Shop:
    """Open a token; one that cannot be opened is as dead as one that nobody knows."""
    try:
        plain = connections.open_token(vault, token.store_id, token.access_token)
    except SealBroken as error:
        raise PlatformDenied(UNAUTHORIZED, "The stored token cannot be opened.") from error
    return Shop(token.shop_domain, plain, token.scopes)


class StoreEffects:
    """Calls that follow a store's decisions.

    `events_url` is where the platform delivers; `invalidate` makes the webhook receiver read a
    shop's secrets afresh.
    """

    def __init__(
        self,
        *,
        ask: Ask,
        platform: CommercePlatform,
        database: Database,
        vault: Vault,
        clock: Callable[[], datetime],
        events_url: str,
        invalidate: Callable[[str], Awaitable[None]],
    ) -> None:
        self._shops = shops(ask, vault, clock)
        self._platform = platform
        self._database = database
        self._vault = vault
        self._clock = clock
        self._events_url = events_url
        self._invalidate = invalidate

    def handlers(
        self,
    ) -> dict[type[Any], Callable[[Any], Awaitable[Message[Any] | Sequence[Tell] | None]]]:
        """Say which method answers which call."""
        return {
            RenewToken: self.renew_token,
            ReconcileSubscriptions: self.reconcile_subscriptions,
            EndSubscriptions: self.end_subscriptions,
            CheckGrant: self.check_grant,
            ReadOrder: self.read_order,
            RevokeListingSources: self.revoke_listing_sources,
            ForgetShops: self.forget_shops,
        }

    async def renew_token(self, call: RenewToken) -> Message[None]:
        """Mint a token with the stored credentials."""
        kept = await connections.credentials_of(self._database, call.store_id, call.connected_at)
        if kept is None:
            return RenewalRefused(call.connected_at, "no_credentials", self._clock())
        # A static token is never renewed (rules/shops#tokens): the platform does not know it any more.
        if kept.client_id is None:
            return RenewalRefused(call.connected_at, "static_token", self._clock())
        try:
            secret = connections.open_secret(self._vault, call.store_id, kept.client_secret)
            grant = await self._platform.exchange(kept.shop_domain, kept.client_id, secret)
        except SealBroken:
            return RenewalRefused(call.connected_at, "secret_unreadable", self._clock())
        except GrantRefused as refusal:
            return RenewalRefused(call.connected_at, refusal.code, self._clock())
        except PlatformUnreachable as error:
            # Not raised to be tried again: who waits wants to know now, and the next one asks anew.
            log.warning("commerce.renewal_unreachable", store_id=call.store_id, why=error.message)
            return RenewalUnreachable(call.connected_at, self._clock())
        at = self._clock()
        return RenewalSucceeded(
            call.connected_at,
            connections.seal_token(self._vault, call.store_id, grant.access_token),
            grant.scopes,
            at + timedelta(seconds=grant.expires_in),
            at,
        )

    async def reconcile_subscriptions(self, call: ReconcileSubscriptions) -> Message[None] | None:
        """Subscribe the shop to the catalogue and report on every topic.

        Nothing for a grant the store no longer has: the one it has brings a call of its own.
        """
        kept = await connections.credentials_of(self._database, call.store_id, call.connected_at)
        if kept is None:
            return None

        async def reconciled(shop: Shop) -> dict[str, str]:
            report = await self._platform.reconcile_subscriptions(shop, self._events_url, REASONS)
            return {topic: self._said(topic, text, shop) for topic, text in report.topics.items()}

        try:
            results = await self._shops.call(call.store_id, reconciled)
        except Refusal as refusal:
            if not is_lasting(refusal):
                raise
            results = dict.fromkeys(TOPICS, refusal.code)
        except PlatformDenied as error:
            results = dict.fromkeys(TOPICS, f"refused: {error.message}")
        return SubscriptionsReconciled(
            call.connected_at, tuple(sorted(results.items())), self._clock()
        )

    @staticmethod
    def _said(topic: str, text: str, shop: Shop) -> str:
        """Name the scope a topic needs where the platform only says that one is missing."""
        known = TOPICS.get(topic)
        if text != MISSING_SCOPE or known is None or known.scope is None:
            return text
        return text if known.scope in shop.scopes else f"{text}: {known.scope}"

    async def end_subscriptions(self, call: EndSubscriptions) -> Message[None]:
        """Take away what the platform delivers to us, unless another store listens through the same app.

        Whatever the platform says, the store leaves: deliveries that nobody takes end by themselves.
        """

        async def ended(shop: Shop) -> None:
            await self._platform.reconcile_subscriptions(shop, self._events_url, {})

        try:
            if not await connections.is_shared(self._database, call.store_id):
                async with asyncio.timeout(LEAVE_SECONDS):
                    await self._shops.call(call.store_id, ended)
        except (Refusal, PlatformError, TimeoutError) as error:
            log.warning("commerce.subscriptions_left", store_id=call.store_id, why=str(error))
        return SubscriptionsEnded(call.connected_at, call.user_id, self._clock())

    async def check_grant(self, call: CheckGrant) -> Message[Any] | None:
        """Try the credentials of a grant; revoke what the platform does not honour any more."""
        kept = await connections.credentials_of(self._database, call.store_id, call.connected_at)
        if kept is None:
            return None
        try:
            if kept.client_id is None:
                await self._shops.call(call.store_id, self._platform.connect_probe)
            else:
                secret = connections.open_secret(self._vault, call.store_id, kept.client_secret)
                await self._platform.exchange(kept.shop_domain, kept.client_id, secret)
        except (SealBroken, PlatformDenied):
            return None
        except Refusal as refusal:
            if not is_lasting(refusal):
                raise
        except GrantRefused:
            pass
        else:
            return None
        at = self._clock()
        return RevokeGrant(kept.shop_domain, at, at, call.connected_at)

    async def read_order(self, call: ReadOrder) -> Message[None] | None:
        """Ask the platform what an order is now; a shop that does not let us read it is left be."""

        async def looked(shop: Shop) -> tuple[str, dict[str, Any] | None]:
            return shop.shop_domain, await self._platform.order(shop, call.order_id)

        try:
            shop_domain, body = await self._shops.call(call.store_id, looked)
        except Refusal as refusal:
            if not is_lasting(refusal):
                raise
            return None
        except PlatformDenied as error:
            log.warning("commerce.order_denied", store_id=call.store_id, status=error.status)
            return None
        if body is None:
            return None
        salt = await stores.salt_of(self._database, self._vault, call.store_id, shop_domain)
        identity = None if salt is None else self._vault.subkey(salt, PURPOSE)
        delivery = Delivery(f"read:{call.order_id}", "orders/edited", shop_domain, self._clock())
        try:
            order = order_row(Reading(call.store_id, identity, delivery), body)
        except Unreadable as error:
            log.warning("commerce.order_unreadable", store_id=call.store_id, field=error.field)
            return None
        return OrderRead(shop_domain, order)

    async def revoke_listing_sources(self, call: RevokeListingSources) -> Sequence[Tell]:
        """Tell every listing of the organization whose revenue is read from the shop."""
        found = await listings.listings_of_shop(
            self._database, call.organization_id, call.shop_domain
        )
        return [
            Tell(
                listing(listing_id),
                SourceRevoked(call.at, "app_uninstalled"),
                key=f"source-revoked:{listing_id}:{call.at.isoformat()}",
            )
            for listing_id in found
        ]

    async def forget_shops(self, call: ForgetShops) -> None:
        """Let the receiver read these shops' secrets afresh."""
        for shop_domain in call.shop_domains:
            await self._invalidate(shop_domain)


class StillSending(Exception):  # noqa: N818 - what the other one does
    """Another process is sending this operation; look at it again later."""


class OperationEffects:
    """Makes the changes that agents ask for: one call to the platform, or a look at what it did."""

    def __init__(
        self,
        *,
        ask: Ask,
        editor: CommerceEditor,
        database: Database,
        vault: Vault,
        clock: Callable[[], datetime],
    ) -> None:
        self._ask = ask
        self._shops = shops(ask, vault, clock)
        self._editor = editor
        self._database = database
        self._vault = vault
        self._clock = clock

    def handlers(
        self,
    ) -> dict[type[Any], Callable[[Any], Awaitable[Message[Any] | Sequence[Tell] | None]]]:
        """Say which method answers which call."""
        return {CarryOut: self.carry_out}

    async def carry_out(self, call: CarryOut) -> Message[Any] | None:
        """Make the change of an operation, or find out whether it was made."""
        kept = await agent_operations.find(self._database, call.store_id, call.operation_id)
        if kept is None or kept.is_over or kept.intent is None:
            return None
        try:
            intent = agent_operations.open_intent(
                self._vault, kept.store_id, kept.operation_id, kept.intent
            )
        except SealBroken:
            if kept.state != OperationState.RUNNING:
                return OperationUnanswered(kept.operation_id, is_unchanged=False, at=self._clock())
            return self._rejected(kept, "unreadable", "What was asked can no longer be read.")
        edit = Edit.read(intent)
        if kept.state != OperationState.RUNNING:
            before = orjson.loads(kept.before or "{}")
            return await self._find_out(kept, edit, before, kept.sends - 1)
        return await self._make(kept, edit)

    async def _make(self, kept: AgentOperation, edit: Edit) -> Message[Any]:
        """Make the change, or say why it is surely not made."""
        try:
            return await self._send(kept, edit)
        except Refusal as refusal:
            return self._not_sent(kept, refusal)
        except PlatformUnreachable as error:
            return self._not_sent(kept, unreachable(error))
        except PlatformDenied as error:
            return self._not_sent(kept, denied(error))

    async def _send(self, kept: AgentOperation, edit: Edit) -> Message[Any]:
        """Look, plan and send; do so again where the platform says that the shop moved on."""
        for sends in range(kept.sends, kept.sends + TRIES):
            facts = await self._look(kept, edit)
            planned = edits.plan(edit, facts)
            if facts is None or isinstance(planned, Rejected):
                return self._unfit(kept, edit, facts, planned)
            before = edits.shown(edit, facts)
            if planned.change is None:
                return self._applied(kept, edit, before, planned.after)
            told = orjson.dumps(before).decode()
            asked = OperationSending(kept.operation_id, sends, told, self._clock())
            if not await self._ask(store(kept.store_id), asked):
                raise StillSending
            try:
                after = await self._change(kept, edit, planned.change, sends)
            except EditRefused as refused:
                if refused.stale:
                    continue
                return self._rejected(kept, "commerce_rejected", refused.message)
            except PlatformUnreachable as error:
                if not error.maybe_done:
                    raise
                return await self._find_out(kept, edit, before, sends)
            return self._applied(kept, edit, before, after)
        return self._rejected(kept, "contended", "Others change this all the time; look again.")

    async def _find_out(
        self, kept: AgentOperation, edit: Edit, before: Mapping[str, Any], sends: int
    ) -> Message[Any]:
        """Find out what became of a change whose answer was lost, by its key or from the shop.

        Stock is adjusted under a key that the platform honours (rules/shops#writing-to-the-platform): sent
        again it is made once, and nobody waits for the item. Other changes carry none.
        """
        if edit.kind == edits.STOCK and self._clock() - kept.created_at < KEY_HONOURED:
            try:
                return await self._send_again(kept, edit, before, sends)
            except (Refusal, PlatformError) as error:
                log.warning("agent.operation_unanswered", store_id=kept.store_id, why=str(error))
        found, verdict = None, EditVerdict.UNCLEAR
        try:
            found = await self._look(kept, edit)
            verdict = edits.verdict(edit, before, found)
        except (Refusal, PlatformError) as error:
            log.warning("agent.operation_unseen", store_id=kept.store_id, why=str(error))
        if found is not None and verdict is EditVerdict.APPLIED:
            return self._applied(kept, edit, before, found)
        return OperationUnanswered(
            kept.operation_id, is_unchanged=verdict is EditVerdict.UNCHANGED, at=self._clock()
        )

    async def _send_again(
        self, kept: AgentOperation, edit: Edit, before: Mapping[str, Any], sends: int
    ) -> Message[Any]:
        """Send the very same change under the very same key; what is stale by now was never made."""
        change = edits.adjustment(edit, before)
        try:
            after = await self._change(kept, edit, change, sends)
        except EditRefused as refused:
            if refused.stale:
                return await self._send(replace(kept, sends=sends + 1), edit)
            return self._rejected(kept, "commerce_rejected", refused.message)
        return self._applied(kept, edit, before, after)

    async def _look(self, kept: AgentOperation, edit: Edit) -> Mapping[str, Any] | None:
        """Read the thing as it is now."""
        return await self._shops.call(
            kept.store_id, lambda shop: self._editor.look(shop, edit.kind, edit.ids)
        )

    async def _change(
        self, kept: AgentOperation, edit: Edit, change: Mapping[str, Any], sends: int
    ) -> Mapping[str, Any]:
        """Make one change, under the same key whichever token it is sent with."""
        key = f"{kept.operation_id}:{sends}"
        return await self._shops.call(
            kept.store_id, lambda shop: self._editor.change(shop, edit.kind, edit.ids, change, key)
        )

    def _applied(
        self,
        kept: AgentOperation,
        edit: Edit,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
    ) -> Message[Any]:
        return OperationApplied(
            kept.operation_id,
            orjson.dumps(dict(before)).decode(),
            orjson.dumps(edits.shown(edit, after)).decode(),
            edits.version_of(edit, after),
            self._clock(),
        )

    def _unfit(
        self,
        kept: AgentOperation,
        edit: Edit,
        facts: Mapping[str, Any] | None,
        planned: Planned | Rejected,
    ) -> Message[Any]:
        """Say why the shop as it is now does not allow the change, and what it is."""
        why = planned if isinstance(planned, Rejected) else edits.MISSING
        if facts is None:
            return self._rejected(kept, why.code, why.detail)
        told = orjson.dumps(edits.shown(edit, facts)).decode()
        return self._rejected(kept, why.code, why.detail, told, edits.version_of(edit, facts))

    def _rejected(
        self,
        kept: AgentOperation,
        code: str,
        detail: str,
        before: str | None = None,
        version: str | None = None,
    ) -> Message[Any]:
        return OperationRejected(kept.operation_id, code, detail, before, version, self._clock())

    def _not_sent(self, kept: AgentOperation, refusal: Refusal) -> Message[Any]:
        return OperationNotSent(
            kept.operation_id,
            refusal.status,
            refusal.code,
            refusal.detail,
            refusal.fields.get("retryAfter"),
            self._clock(),
            refusal.fields.get("platformStatus"),
            refusal.fields.get("scope"),
        )


def unreachable(error: PlatformUnreachable) -> Refusal:
    """Say that the platform does not answer for now."""
    wait = None if error.retry_after is None else max(1, round(error.retry_after))
    return Refusal(error.message, status=503, code="commerce_unreachable", retryAfter=wait)

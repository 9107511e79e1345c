"""Decisions about a shop of the pool: handed to a store, and made its merchant's own."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from tolsey.actors.listing.deals.messages import LookForOwner
from tolsey.actors.mail import MailEvent, TellPeople
from tolsey.actors.refusals import Conflict, NotFound
from tolsey.actors.store.connection import connecting
from tolsey.actors.store.connection.messages import RenewToken
from tolsey.actors.store.provisioning.messages import (
    ClaimDevStore,
    DevStoreView,
    FollowTransfer,
    PlanSeen,
    RequestTransfer,
    WatchTransfer,
)
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Effect, Perform
from tolsey.storage.records.commerce.connection import Connection, ConnectionStatus, TokenKind
from tolsey.storage.records.commerce.devstores import (
    DevStoreClaim,
    DevStoreHolding,
    DevStoreState,
    DevStoreTransfer,
)
from tolsey.storage.records.journal import audit_record

INVITED_FOR: Final = timedelta(days=7)
"""How long a merchant has to accept the transfer (rules/launch#dev-stores)."""
TEST_PLANS: Final = frozenset({"partner_test", "affiliate"})
"""What the platform calls the plan of a shop that was not handed over yet."""

Answer = Decision[StoreState, DevStoreView]
Silence = Decision[StoreState, None]


def claim(state: StoreState, message: ClaimDevStore) -> Answer:
    """Hand a shop to a store: the claim and a live connection are one commit."""
    if state.dev_store is not None:
        return Decision(state, reply=view(state.dev_store))
    if state.organization_id is None:
        raise NotFound(
            "This store doesn't exist, or you don't have access to it. Check the link or the id."
        )
    connection = state.connection
    # A shop of the merchant's own is never exchanged for one of ours.
    if connection is not None and connection.status == ConnectionStatus.ACTIVE:
        raise Conflict(
            f"This store is already connected to {connection.shop_domain}. Disconnect it first.",
            code="already_connected",
        )
    made = DevStoreClaim(
        shop_domain=message.connect.shop.shop_domain,
        store_id=state.store_id,
        organization_id=state.organization_id,
        claimed_by=message.connect.user_id,
        claimed_at=message.connect.at,
    )
    connected = connecting.connect(state, message.connect)
    holding = DevStoreHolding(claim=made, transfer=None)
    return Decision(
        replace(connected.state, dev_store=holding),
        reply=view(holding),
        records=(*connected.records, made),
        effects=connected.effects,
        resolve=connected.resolve,
    )


def request(state: StoreState, message: RequestTransfer) -> Answer:
    """Ask operators to invite the merchant; the same address again answers the same."""
    holding = _held(state)
    before = holding.transfer
    if holding.state == DevStoreState.TRANSFERRED:
        raise Conflict(
            "This shop was already transferred to you. No further action is needed.",
            code="already_transferred",
        )
    # The platform takes no transfer back: one invitation at a time (rules/launch#dev-stores).
    if before is not None and holding.state == DevStoreState.TRANSFER_REQUESTED:
        if before.email != message.email:
            raise Conflict(
                f"{before.email} was already invited, and the invitation is valid until {before.expires_at:%Y-%m-%d}. Wait until then to invite another address.",
                code="transfer_requested",
            )
        return Decision(state, reply=view(holding))
    made = DevStoreTransfer(
        store_id=state.store_id,
        shop_domain=holding.claim.shop_domain,
        organization_id=holding.claim.organization_id,
        state=DevStoreState.TRANSFER_REQUESTED,
        email=message.email,
        requested_by=message.user_id,
        requested_at=message.at,
        expires_at=message.at + INVITED_FOR,
        changed_at=message.at,
    )
    after = replace(holding, transfer=made)
    about = f"transfer:{state.store_id}:{message.at.isoformat()}"
    alert = TellPeople(
        event=MailEvent.TRANSFER_REQUESTED,
        organization_id=None,
        about=about,
        facts={"shop": made.shop_domain, "email": made.email, "store": state.store_id},
    )
    audited = audit_record(
        "launch.transfer_requested", state.store_id, state.organization_id, message.user_id
    )
    return Decision(
        replace(state, dev_store=after),
        reply=view(after),
        records=(audited,),
        effects=(Perform(alert, key=about),),
    )


def follow(state: StoreState, message: FollowTransfer) -> Silence:
    """Look whose the shop is, while somebody is invited to take it over."""
    holding = state.dev_store
    if holding is None or holding.state != DevStoreState.TRANSFER_REQUESTED:
        return Decision(state, reply=None)
    call = WatchTransfer(
        store_id=state.store_id,
        shop_domain=holding.claim.shop_domain,
        organization_id=holding.claim.organization_id,
    )
    key = f"watch-transfer:{state.store_id}:{message.at.isoformat()}"
    return Decision(state, reply=None, effects=(Perform(call, key=key),))


def seen(state: StoreState, message: PlanSeen) -> Silence:
    """Call the shop transferred once its plan is no test's, or take the invitation back after a week."""
    holding = state.dev_store
    if holding is None or holding.state != DevStoreState.TRANSFER_REQUESTED:
        return Decision(state, reply=None)
    before = holding.transfer
    assert before is not None  # noqa: S101 - its state says so
    if message.plan_name is not None and message.plan_name not in TEST_PLANS:
        after = replace(
            before,
            state=DevStoreState.TRANSFERRED,
            transferred_at=message.at,
            changed_at=message.at,
        )
        return _moved(state, holding, after, _transferred(state, after))
    if message.at >= before.expires_at:
        lapsed = replace(before, state=DevStoreState.CLAIMED, changed_at=message.at)
        return _moved(state, holding, lapsed, ())
    return Decision(state, reply=None)


def _moved(
    state: StoreState,
    holding: DevStoreHolding,
    after: DevStoreTransfer,
    effects: tuple[Effect, ...],
) -> Silence:
    event = {
        DevStoreState.TRANSFERRED: "launch.transferred",
        DevStoreState.CLAIMED: "launch.transfer_lapsed",
    }[after.state]
    audited = audit_record(event, state.store_id, state.organization_id, "system")
    return Decision(
        replace(state, dev_store=replace(holding, transfer=after)),
        reply=None,
        records=(audited,),
        effects=effects,
    )


def _transferred(state: StoreState, after: DevStoreTransfer) -> tuple[Effect, ...]:
    """Tell the merchant and the deal about it, and find out whether our app still opens the shop that is theirs now."""
    about = f"transferred:{state.store_id}:{after.requested_at.isoformat()}"
    mail = TellPeople(
        event=MailEvent.DEV_STORE_TRANSFERRED,
        organization_id=after.organization_id,
        about=about,
        facts={"shop": after.shop_domain, "store": state.store_id},
    )
    sold = LookForOwner(store_id=state.store_id, organization_id=after.organization_id)
    told = (Perform(mail, key=about), Perform(sold, key=f"owner:{about}"))
    if not _is_of_the_pool(state.connection, after):
        return told
    assert state.connection is not None  # noqa: S101 - it is of the pool
    # A grant works only within one organization of the platform's: where it ended the store says so, and
    # the merchant connects an app of their own (rules/launch#dev-stores).
    renew = RenewToken(state.store_id, state.connection.connected_at)
    return (*told, Perform(renew, key=f"renew-{about}"))


def _is_of_the_pool(connection: Connection | None, after: DevStoreTransfer) -> bool:
    return (
        connection is not None
        and connection.shop_domain == after.shop_domain
        and connection.token_kind == TokenKind.GRANT
    )


def view(holding: DevStoreHolding) -> DevStoreView:
    """Show what a store has."""
    asked = holding.transfer if holding.state == DevStoreState.TRANSFER_REQUESTED else None
    return DevStoreView(
        shop_domain=holding.claim.shop_domain,
        state=holding.state,
        email=None if asked is None else asked.email,
        expires_at=None if asked is None else asked.expires_at,
    )


def _held(state: StoreState) -> DevStoreHolding:
    if state.dev_store is None:
        raise Conflict(
            "This store's shop wasn't provided by us, so we can't transfer it. Transfer it in"
            " the Shopify admin.",
            code="not_provisioned",
        )
    return state.dev_store

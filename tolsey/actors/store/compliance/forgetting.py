"""Decisions by which a store forgets a shop (rules/shops#erasure)."""

from dataclasses import replace

from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.workflows.messages import ReleaseWorkflow
from tolsey.actors.refusals import Conflict
from tolsey.actors.store.compliance.messages import (
    DestroySalt,
    ForgetCheckpointNote,
    ForgetLaunch,
    ForgetShopProfile,
    RedactShop,
)
from tolsey.actors.store.connection import shops
from tolsey.actors.store.connection.connecting import forgotten
from tolsey.actors.store.connection.messages import ForgetShops
from tolsey.actors.store.editing import operations
from tolsey.actors.store.grants import WAITING, token_unavailable
from tolsey.actors.store.launch import dispatching, keeping
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Perform, Tell
from tolsey.storage.records.commerce.connection import ConnectionStatus, ShopProfile
from tolsey.storage.records.commerce.shops import ConnectionEnding


def redact(state: StoreState, message: RedactShop) -> Decision[StoreState, int]:
    """Revoke the grant of a shop, so that nothing of it is written again; another shop's stays.

    What agents wanted done there ends, and so does the memory of what they had done.
    """
    connection = state.connection
    if connection is None or connection.shop_domain != message.shop_domain:
        return Decision(state, reply=0)
    # Connecting a shop again stops what its uninstall began (rules/shops#who-asks).
    if message.spares_live and connection.status == ConnectionStatus.ACTIVE:
        raise Conflict(
            "The shop was connected again, so its data isn't deleted. Disconnect it first if"
            " you want that."
        )
    erased = replace(
        forgotten(connection),
        status=ConnectionStatus.REVOKED,
        uninstalled_at=connection.uninstalled_at or message.at,
    )
    behind = operations.left_behind(
        replace(state, connection=erased, renewing_since=None), message.at
    )
    ended = shops.ended(connection, message.at, ConnectionEnding.UNINSTALLED)
    return Decision(
        replace(behind.state, ended=()),
        reply=int(connection.client_secret is not None or connection.access_token is not None),
        records=(*behind.records, *ended),
        effects=(Perform(ForgetShops((message.shop_domain,))), *behind.effects),
        resolve={WAITING: token_unavailable(), **(behind.resolve or {})},
    )


def destroy_salt(state: StoreState, message: DestroySalt) -> Decision[StoreState, bool]:
    """Let go of the salt of a shop's pseudonyms: whatever still bears one can be linked by nobody."""
    known = next((one for one in state.shops if one.shop_domain == message.shop_domain), None)
    key = state.store_id if known is None else known.shop_key
    # A shop that came back as a new one has a salt of its own, which nobody asked to destroy (rules/shops#erasure).
    if message.shop_key not in {"", key}:
        return Decision(state, reply=False)
    connection = state.connection
    # Nor does a shop lose the salt that it is connected with: the step waits until it leaves (rules/shops#erasure).
    if (
        connection is not None
        and connection.shop_domain == message.shop_domain
        and connection.status == ConnectionStatus.ACTIVE
    ):
        raise Conflict(
            "The shop was connected again with its previous data, so that data isn't deleted."
            " Disconnect it first if you want that."
        )
    if known is None or known.sealed_salt == shops.DESTROYED:
        return Decision(state, reply=False)
    bare = replace(known, sealed_salt=shops.DESTROYED)
    kept = tuple(bare if one is known else one for one in state.shops)
    return Decision(
        replace(state, shops=kept),
        reply=True,
        effects=(Perform(ForgetShops((message.shop_domain,))),),
    )


def forget_profile(state: StoreState, message: ForgetShopProfile) -> Decision[StoreState, bool]:
    """Keep of what the platform said of a shop nothing but its domain."""
    blank = ShopProfile(
        store_id=state.store_id, shop_domain=message.shop_domain, facts_at=message.at
    )
    if (
        state.shop is None
        or state.shop.shop_domain != message.shop_domain
        or replace(state.shop, facts_at=message.at) == blank
    ):
        return Decision(state, reply=False)
    return Decision(replace(state, shop=blank), reply=True)


def forget_launch(state: StoreState, message: ForgetLaunch) -> Decision[StoreState, bool]:
    """Let go of a shop's launch: no step that ends late writes anything back, and another can be begun."""
    launch = state.launch
    if launch is None:
        return Decision(state, reply=False)
    head, connection = launch.head, state.connection
    is_connected = connection is not None and connection.status == ConnectionStatus.ACTIVE
    # A launch is of the shop that it worked in; one that met none yet is of the shop where the store is now (rules/shops#erasure).
    if head.shop_domain != message.shop_domain and (head.shop_domain or is_connected):
        return Decision(state, reply=False)
    release = ReleaseWorkflow(head.launch_id, message.at)
    key = f"launch-release:{head.launch_id}:{message.at.isoformat()}"
    return Decision(
        replace(state, launch=None),
        reply=True,
        effects=(Tell(organization(head.organization_id), release, key=key),),
        resolve={dispatching.waiter(id): keeping.not_begun() for id in launch.milestones},
    )


def forget_note(state: StoreState, message: ForgetCheckpointNote) -> Decision[StoreState, bool]:
    """Keep of what a person decided about a milestone who and when, and not what they wrote."""
    launch = state.launch
    one = None if launch is None else launch.milestones.get(message.milestone)
    if launch is None or one is None or one.note is None:
        return Decision(state, reply=False)
    bare = replace(one, note=None, changed_at=message.at)
    return Decision(replace(state, launch=launch.with_milestone(bare)), reply=True)

"""Stores of the platform that are made beforehand and handed out: the pool, who has which, and its transfer."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from tolsey.storage.owners import ID_ALONE, OF_ORGANIZATION, OF_STORE, Belongs, RowOwner
from tolsey.storage.tables import Personal, stored

HANDED_OUT = "A shop that was handed out once is never handed out again."


class DevStoreState(StrEnum):
    """How far a store of the pool is (rules/launch#dev-stores)."""

    AVAILABLE = "AVAILABLE"
    CLAIMED = "CLAIMED"
    TRANSFER_REQUESTED = "TRANSFER_REQUESTED"
    TRANSFERRED = "TRANSFERRED"


@stored(
    "devstore_pool",
    key=("shop_domain",),
    belongs=Belongs(to=RowOwner.USER, by="registered_by", stays=ID_ALONE),
    unexported="It is ours until it is claimed, and then the claim is in the export of its store.",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DevStore:
    """A row of devstore_pool: a shop of ours with the app that opens it; keys are sealed text.

    `access_token` is a static one, for want of a `client_id`. `refused` says why the platform let nobody
    in when it was to be handed out.
    """

    shop_domain: str
    client_id: str | None
    client_secret: str = field(metadata={"secret": True}, repr=False)
    access_token: str | None = field(metadata={"secret": True}, repr=False)
    plan_name: str | None
    registered_by: Annotated[str, Personal.USER]
    registered_at: datetime
    refused: str | None = None


@stored(
    "devstore_claims",
    key=("shop_domain",),
    claim=True,
    belongs=(
        Belongs(to=RowOwner.STORE, stays=HANDED_OUT),
        Belongs(to=RowOwner.ORGANIZATION, stays=HANDED_OUT),
        Belongs(to=RowOwner.USER, by="claimed_by", stays=ID_ALONE),
    ),
    export="devStores",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DevStoreClaim:
    """A row of devstore_claims: a shop of the pool was handed out to a store."""

    shop_domain: str
    store_id: str
    organization_id: str
    claimed_by: Annotated[str, Personal.USER]
    claimed_at: datetime


@stored(
    "devstore_transfers",
    key=("store_id",),
    newest=("changed_at",),
    belongs=(
        OF_STORE,
        OF_ORGANIZATION,
        Belongs(to=RowOwner.USER, by="requested_by", stays=ID_ALONE),
    ),
    export="devStoreTransfers",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DevStoreTransfer:
    """A row of devstore_transfers: a merchant wants the shop that they were handed to be their own."""

    store_id: str
    shop_domain: str
    organization_id: str
    state: DevStoreState
    email: Annotated[str, Personal.EMAIL]
    requested_by: Annotated[str, Personal.USER]
    requested_at: datetime
    expires_at: datetime
    changed_at: datetime
    transferred_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DevStoreHolding:
    """Which shop of the pool a store has, and how far its transfer is."""

    claim: DevStoreClaim
    transfer: DevStoreTransfer | None

    @property
    def state(self) -> DevStoreState:
        """How far the shop is: what nobody wants transferred is only claimed."""
        return DevStoreState.CLAIMED if self.transfer is None else self.transfer.state

"""What the service says of shops of the pool."""

from typing import Self

from tolsey.actors.store.provisioning.messages import DevStoreView
from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.storage.commerce.devstores import PooledStore
from tolsey.storage.records.commerce.connection import TokenKind
from tolsey.storage.records.commerce.devstores import DevStoreState


class DevStoreAnswer(ApiAnswer):
    """The shop that a store was handed; with `expiresAt` somebody is invited to take it over until then."""

    shop_domain: str
    state: DevStoreState
    email: str | None
    expires_at: Timestamp | None

    @classmethod
    def of(cls, view: DevStoreView) -> Self:
        """Show what a store has."""
        return cls.read(view)


class PooledStoreAnswer(DevStoreAnswer):
    """A shop of the pool; `refused` says why the platform let nobody in when it was to be handed out."""

    token_kind: TokenKind
    plan_name: str | None
    refused: str | None
    registered_at: Timestamp
    store_id: str | None
    organization_id: str | None
    claimed_at: Timestamp | None
    requested_at: Timestamp | None
    transferred_at: Timestamp | None

    @classmethod
    def pooled(cls, one: PooledStore) -> Self:
        """Show a shop to operators."""
        return cls.read(one, token_kind=TokenKind.STATIC if one.is_static else TokenKind.GRANT)

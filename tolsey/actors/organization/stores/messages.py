"""What an organization can be asked about its stores."""

from dataclasses import dataclass, field
from datetime import datetime

from tolsey.runtime.messages import Message


@dataclass(frozen=True, slots=True)
class StoreOpened:
    """A store as it was opened."""

    store_id: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStore(Message[StoreOpened]):
    """A member wants another store. The same `store_id` again answers the store it made.

    `sealed_salt` is the store's secret salt, sealed for its row before it came here.
    """

    store_id: str
    name: str
    user_id: str
    at: datetime
    sealed_salt: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class CloseStore(Message[bool]):
    """A store's memory is purged and the store shall go. The reply is False when it had gone."""

    store_id: str
    user_id: str
    at: datetime

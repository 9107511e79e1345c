"""What a store can be asked to forget of a shop."""

from dataclasses import dataclass
from datetime import datetime

from tolsey.runtime.messages import Message


@dataclass(frozen=True, slots=True)
class RedactShop(Message[int]):
    """A shop is to be forgotten: its credentials go, and nothing of it is taken any more.

    The reply says how many connections had credentials of it. With `spares_live` a shop that is connected
    is not forgotten: 409.
    """

    shop_domain: str
    at: datetime
    spares_live: bool = False


@dataclass(frozen=True, slots=True)
class DestroySalt(Message[bool]):
    """Nobody is to be linked to what is left of a shop's buyers. The reply is False where it was done.

    The salt is that of the rows under `shop_key`: the shop may have come back with one of another key. 409
    while the shop is connected with this very salt.
    """

    shop_domain: str
    shop_key: str = ""
    """Any, for who asks as the release before did."""


@dataclass(frozen=True, slots=True)
class ForgetShopProfile(Message[bool]):
    """What the platform said of a shop is to be forgotten. The reply is False where nothing is known of it."""

    shop_domain: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ForgetLaunch(Message[bool]):
    """What was told, found and made for the launch of a shop is to be forgotten. The reply is False where the store holds none."""

    shop_domain: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ForgetCheckpointNote(Message[bool]):
    """What a person wrote beside a milestone is to be forgotten. The reply is False where there is nothing."""

    milestone: str
    at: datetime

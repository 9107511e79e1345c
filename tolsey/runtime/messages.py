"""What actors are asked, and who is asked."""

from datetime import datetime
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

Reply_co = TypeVar("Reply_co", covariant=True)

LaneName = Literal["short", "processor", "platform", "model", "scan", "mail", "job"]
"""Sorts of outside work that wait apart from each other (architecture, "One way to act")."""

REGISTERED: dict[str, type[Any]] = {}
"""Every message and effect by its class name: what is written to the outbox is read back by it."""


class NameTaken(Exception):  # noqa: N818 - what the name is
    """Two classes of messages or calls have one name: a row of it could be read as either."""


def _register(found: type[Any]) -> None:
    known = REGISTERED.setdefault(found.__name__, found)
    # A dataclass with slots is made twice, under one address.
    if (known.__module__, known.__qualname__) != (found.__module__, found.__qualname__):
        raise NameTaken(
            f"Two messages are named {found.__name__}: one in {known.__module__} and one in"
            f" {found.__module__}. Rename one of them."
        )
    REGISTERED[found.__name__] = found


class Message(Generic[Reply_co]):
    """A request to an actor. Its type parameter is the type of the reply.

    A subclass is a frozen dataclass of plain values (text, integers, datetimes, other
    dataclasses, tuples), so that it can wait in the outbox as JSON. It carries no secret.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        _register(cls)


class Call:
    """Work outside the service that follows a commit: a platform call, a mail, a purge.

    A subclass is a frozen dataclass of plain values and says in which `lane` it waits. It runs at
    least once, after the commit that holds it, outside every mailbox; its result comes back to its
    actor as a message.
    """

    __slots__ = ()

    lane: ClassVar[LaneName]

    def __init_subclass__(cls) -> None:
        _register(cls)

    @property
    def tenant(self) -> str:
        """Name whose turn it takes in its lane: its organization; empty when its actor stands alone."""
        return getattr(self, "organization_id", None) or ""

    def given_up(self, why: str, at: datetime) -> "Message[Any] | None":
        """Say what its actor is told when it is moved to the dead letters; nothing by default."""
        del why, at
        return None


class ActorId(NamedTuple):
    """Who is asked: the kind of actor and the key of the entity it stands for."""

    kind: str
    key: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}"

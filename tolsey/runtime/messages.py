"""What actors are asked, and who is asked."""

from typing import Any, Generic, NamedTuple, TypeVar

Reply_co = TypeVar("Reply_co", covariant=True)

REGISTERED: dict[str, type[Any]] = {}
"""Every message and effect by its class name: what is written to the outbox is read back by it."""


class Message(Generic[Reply_co]):
    """A request to an actor. Its type parameter is the type of the reply.

    A subclass is a frozen dataclass of plain values (text, integers, datetimes, other
    dataclasses, tuples), so that it can wait in the outbox as JSON. It carries no secret.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        REGISTERED[cls.__name__] = cls


class Call:
    """Work outside the service that follows a commit: a platform call, a mail, a purge.

    A subclass is a frozen dataclass of plain values. It runs at least once, after the commit
    that holds it, outside every mailbox; its result comes back to its actor as a message.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        REGISTERED[cls.__name__] = cls


class ActorId(NamedTuple):
    """Who is asked: the kind of actor and the key of the entity it stands for."""

    kind: str
    key: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}"

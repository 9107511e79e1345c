"""What actors are asked, and who is asked."""

import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

Reply_co = TypeVar("Reply_co", covariant=True)
Result_co = TypeVar("Result_co", covariant=True)

LaneName = Literal["short", "processor", "platform", "model", "scan", "mail", "job"]
"""Sorts of outside work that wait apart from each other (rules/calls#lanes)."""

REGISTERED: dict[str, type[Any]] = {}
"""Every message and call by its `kind.Name`: what is written to the outbox is read back by it."""

NAMES: dict[type[Any], str] = {}
"""Their names, by class."""


class UnusableName(Exception):  # noqa: N818 - what the name is
    """A class of messages or calls has the name of another, or nothing says whose kind it is."""


def _register(found: type[Any]) -> None:
    name = NAMES[found] = _name_of(found)
    known = REGISTERED.setdefault(name, found)
    # A dataclass with slots is made twice, under one address.
    if (known.__module__, known.__qualname__) != (found.__module__, found.__qualname__):
        raise UnusableName(
            f"Two messages are named {name}: one in {known.__module__} and one in"
            f" {found.__module__}. Rename one of them."
        )
    REGISTERED[name] = found


def _name_of(found: type[Any]) -> str:
    """Name a class by the `KIND` of its module, or of the nearest package around it, and itself."""
    place = found.__module__
    while place:
        kind = getattr(sys.modules.get(place), "KIND", None)
        if kind is not None:
            return f"{kind}.{found.__name__}"
        place = place.rpartition(".")[0]
    raise UnusableName(
        f"{found.__module__}.{found.__name__} belongs to no kind of actor: give its package a KIND."
    )


def class_named(name: str, kind: str) -> type[Any]:
    """Find the class of a row or an ask for an actor of this kind. Raises LookupError.

    The form before wrote the class alone: it is the kind's own, or the only one of that name.
    """
    if "." in name:
        return REGISTERED[name]
    own = REGISTERED.get(f"{kind}.{name}")
    if own is not None:
        return own
    others = [found for found in REGISTERED.values() if found.__name__ == name]
    if len(others) != 1:
        raise LookupError(name)
    return others[0]


def names_read() -> Iterator[str]:
    """List every name that a row may have to be read here, in either form."""
    for name, found in REGISTERED.items():
        yield name
        yield found.__name__


class Message(Generic[Reply_co]):
    """A request to an actor. Its type parameter is the type of the reply.

    A subclass is a frozen dataclass of plain values (text, integers, datetimes, other
    dataclasses, tuples), so that it can wait in the outbox as JSON. It carries no secret.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        _register(cls)

    @property
    def about(self) -> str:
        """Name the thing of which its sender tells in order, such as `order:7`; empty where it does not matter.

        While one keeps failing, what the same sender says of the same thing waits behind it (rules/operators#quarantine).
        """
        return ""

    def given_up(self, why: str, at: datetime) -> "Message[Any] | None":
        """Say what its actor is told when it is moved to the dead letters; nothing by default."""
        del why, at
        return None


@dataclass(frozen=True, slots=True)
class Patience:
    """Which tries of a call that failed are made again, when, and how often."""

    waits: tuple[float, ...]
    """Seconds before the second try, the third and so on; the last is waited again until `tries`."""
    tries: int
    """After so many that failed it is moved to the dead letters, and its actor is told."""
    retried: tuple[type[Exception], ...] = (Exception,)
    """What may be better the next time; anything else that is raised is the last word."""

    def wait_after(self, failures: int, error: BaseException) -> float | None:
        """Say in how many seconds it is tried again after so many failures; None: never."""
        if failures >= self.tries or not isinstance(error, self.retried):
            return None
        return self.waits[min(failures, len(self.waits)) - 1]


class Call(Generic[Result_co]):
    """Work outside the service that follows a commit: a platform call, a mail, a purge.

    A subclass is a frozen dataclass of plain values. It runs at least once, after the commit that
    holds it, outside every mailbox. Its type parameter is the message that its result comes back as,
    to its actor, once: the commit of that turn is what ends the call. rules/calls#calls.
    """

    __slots__ = ()

    lane: ClassVar[LaneName]
    deadline_seconds: ClassVar[float] = 300.0
    """How long one try may take."""
    patience: ClassVar[Patience | None] = None
    """None: as long as the runtime has with a message."""
    repeatable: ClassVar[bool] = True
    """Whether it may be sent again blindly, since the other side does it once however often it is asked.

    Otherwise it is looked up first whenever it may have been sent (`LookFirst`).
    """

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


@dataclass(frozen=True, slots=True)
class LookFirst:
    """How a call is made that is not `repeatable`.

    `look` says what became of it when it may have been sent: its result, or None if it surely was not
    done and is to be sent.
    """

    send: Callable[[Any], Awaitable[Any]]
    look: Callable[[Any], Awaitable[Message[Any] | None]]


class ActorId(NamedTuple):
    """Who is asked: the kind of actor and the key of the entity it stands for."""

    kind: str
    key: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}"

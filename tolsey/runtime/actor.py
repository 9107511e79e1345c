"""A kind of actor: which messages it takes, how it wakes, what it writes down.

One object stands for the whole kind; the state of each actor is handed to its turns. A turn
returns a Decision and the runtime commits it, so a turn that fails changes nothing.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from tolsey.runtime.decision import Decision
from tolsey.runtime.messages import Message

State = TypeVar("State")
Asked = TypeVar("Asked", bound=Message[Any])
Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Turn(Generic[State]):
    """How a kind answers one type of message."""

    message: type[Message[Any]]
    method: Callable[[State, Any], Any]
    gathers: bool = False
    """True when the method awaits before it decides; such a turn runs in a task of the runtime."""
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.message.__name__)


def on(message: type[Asked], decide: Callable[[State, Asked], Decision[State, Any]]) -> Turn[State]:
    """Have a function answer one type of message, when it needs nothing but the state."""
    return Turn(message, decide)


def handles(message: type[Message[Any]]) -> Callable[[Method], Method]:
    """Mark the method `(self, state, message) -> Decision` that answers one type of message.

    An `async` one may first gather what the decision needs by reading; it never waits for another actor
    of its own rank or below, and calls no platform. What gathers nothing stands in `decides`.
    """

    def mark(method: Method) -> Method:
        method.__dict__["handles"] = message
        return method

    return mark


class Actor(ABC, Generic[State]):
    """One kind of actor."""

    kind: ClassVar[str]
    decides: ClassVar[Sequence[Turn[Any]]] = ()
    """The turns that need nothing but the state."""
    rank: ClassVar[int] = 1
    """A turn may ask only kinds of a higher rank; so no two actors ever wait for each other."""
    mailbox: ClassVar[int] = 256
    """How many messages may wait in front of one actor."""
    turn_seconds: ClassVar[float] = 10.0
    """How long a turn that gathers may take."""

    def __init__(self) -> None:
        marked = (
            Turn(method.handles, method, inspect.iscoroutinefunction(method))
            for _, method in inspect.getmembers(self, callable)
            if hasattr(method, "handles")
        )
        self.turns: dict[type[Message[Any]], Turn[State]] = {}
        for turn in (*self.decides, *marked):
            if turn.message in self.turns:
                raise TypeError(f"{self.kind} answers {turn.name} twice")
            self.turns[turn.message] = turn

    @abstractmethod
    async def load(self, keys: Sequence[str]) -> Mapping[str, State]:
        """Read many actors of this kind at once; a key without rows gets its blank state."""

    @abstractmethod
    def changes(self, old: State, new: State) -> Iterable[Any]:
        """List the records that say what changed between two states."""

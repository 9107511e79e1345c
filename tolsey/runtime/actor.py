"""A kind of actor: which messages it takes, how it wakes, what it writes down.

One object stands for the whole kind; the state of each actor is handed to its turns. A turn
returns a Decision and the runtime commits it, so a turn that fails changes nothing. A kind of many
subjects is made of parts (`KindOfParts`), each with its own turns and rows.
"""

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from itertools import chain
from typing import Any, ClassVar, Generic, TypeVar

from tolsey.runtime.decision import Decision
from tolsey.runtime.messages import Message

State = TypeVar("State")
Asked = TypeVar("Asked", bound=Message[Any])
Found = TypeVar("Found")
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


def gathers(
    message: type[Asked],
    gather: Callable[[State, Asked], Awaitable[Found]],
    decide: Callable[[State, Asked, Found], Decision[State, Any]],
) -> Turn[State]:
    """Have a function answer one type of message, when it needs something that is read first.

    What is awaited only reads: it never waits for another actor of the kind's rank or below, and calls no
    platform.
    """

    @wraps(decide)
    async def gathered(state: State, message: Asked) -> Decision[State, Any]:
        return decide(state, message, await gather(state, message))

    return Turn(message, gathered, gathers=True)


def handles(message: type[Message[Any]]) -> Callable[[Method], Method]:
    """Mark the method `(self, state, message) -> Decision` that answers one type of message.

    For turns that are no single function: `decides` has all others. An `async` one may gather as `gathers` says.
    """

    def mark(method: Method) -> Method:
        method.__dict__["handles"] = message
        return method

    return mark


class Turns(Generic[State]):
    """Whatever answers messages: by a table of functions, and by methods that gather first."""

    decides: Sequence[Turn[Any]] = ()
    """The turns that need no method."""

    def all_turns(self) -> Iterable[Turn[Any]]:
        """List the turns of the table, then those of marked methods."""
        yield from self.decides
        for _, method in inspect.getmembers(self, callable):
            if hasattr(method, "handles"):
                yield Turn(method.handles, method, inspect.iscoroutinefunction(method))


class Actor(ABC, Turns[State]):
    """One kind of actor."""

    kind: ClassVar[str]
    rank: ClassVar[int] = 1
    """A turn may ask only kinds of a higher rank; so no two actors ever wait for each other."""
    mailbox: ClassVar[int] = 256
    """How many messages may wait in front of one actor."""
    turn_seconds: ClassVar[float] = 10.0
    """How long a turn that gathers may take."""

    def __init__(self, *parts: Turns[State]) -> None:
        self.turns: dict[type[Message[Any]], Turn[State]] = {}
        for turn in chain.from_iterable(one.all_turns() for one in (self, *parts)):
            if turn.message in self.turns:
                raise TypeError(f"{self.kind} answers {turn.name} twice")
            self.turns[turn.message] = turn

    @abstractmethod
    async def load(self, keys: Sequence[str]) -> Mapping[str, State]:
        """Read many actors of this kind at once; a key without rows gets its blank state."""

    @abstractmethod
    def changes(self, old: State, new: State) -> Iterable[Any]:
        """List the records that say what changed between two states."""


class KindPart(Turns[State]):
    """One subject of a kind: some fields of the state, the turns about them, and their rows.

    A state is one value, so that a turn of one part may move what others own, in the same commit; what
    is on disk of a field is read and written by its owner alone.
    """

    owns: ClassVar[tuple[str, ...]] = ()
    """The fields of the state that are this part's."""

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read its fields of many actors at once; what is not there keeps its default."""
        del keys
        return {}

    def changes(self, old: State, new: State) -> Iterable[Any]:
        """List the records that say what changed of its fields; none where turns write them."""
        del old, new
        return ()


class KindOfParts(Actor[State]):
    """A kind that is made of parts: `state` is a dataclass of the key and of what its parts own."""

    state: ClassVar[type[Any]]

    def __init__(self, *parts: KindPart[State]) -> None:
        super().__init__(*parts)
        self._key, *names = (one.name for one in fields(self.state))
        for name in names:
            owners = sum(name in part.owns for part in parts)
            if owners != 1:
                raise TypeError(
                    f"{name} of {self.state.__name__} is owned by {owners} parts of {self.kind}"
                )
        self._parts = parts
        self._written = tuple(
            part.changes for part in parts if type(part).changes is not KindPart.changes
        )

    async def load(self, keys: Sequence[str]) -> Mapping[str, State]:
        """Have each part read what it owns."""
        found = await asyncio.gather(*(part.load(keys) for part in self._parts))
        made = {key: {self._key: key} for key in keys}
        for part in found:
            for key, owned in part.items():
                made[key].update(owned)
        return {key: self.state(**values) for key, values in made.items()}

    def changes(self, old: State, new: State) -> Iterable[Any]:
        """List what each part has to write."""
        for changes in self._written:
            yield from changes(old, new)

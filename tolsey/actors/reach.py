"""The ways out of an effect: to an actor, and to the platform with a token that may have died."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from tolsey.actors.ports import PlatformDenied
from tolsey.runtime.messages import ActorId, Message

Token = TypeVar("Token")
Found = TypeVar("Found")
Reply = TypeVar("Reply")


class Ask(Protocol):
    """How an effect asks an actor; `Runtime.ask` is the real one."""

    def __call__(self, to: ActorId, message: Message[Reply]) -> Awaitable[Reply]:
        """Post a message and wait for its reply."""
        ...


async def with_token(
    take: Callable[[Token | None], Awaitable[Token]],
    call: Callable[[Token], Awaitable[Found]],
) -> Found:
    """Call with a token, and once more with another where the platform says that the first is dead.

    `take` is told which one that is. Nothing was done with it, so a change may be sent again.
    """
    token = await take(None)
    try:
        return await call(token)
    except PlatformDenied as denied:
        if not denied.is_dead_token:
            raise
    return await call(await take(token))

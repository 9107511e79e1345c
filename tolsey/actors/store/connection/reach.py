"""The way to a store's shop, for whoever calls the commerce platform with the store's token."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

from tolsey.actors.ports import PlatformDenied, Shop
from tolsey.actors.reach import Ask, with_token
from tolsey.actors.store.connection.messages import Token, UseToken
from tolsey.actors.store.grants import token_unavailable
from tolsey.actors.store.messages import store

Reply = TypeVar("Reply")
Found = TypeVar("Found")


class Shops:
    """Calls stores' shops with the stores' tokens; `opened` opens a token that is sealed."""

    def __init__(
        self, ask: Ask, opened: Callable[[Token], Shop], clock: Callable[[], datetime]
    ) -> None:
        self._ask = ask
        self._opened = opened
        self._clock = clock

    async def call(self, store_id: str, call: Callable[[Shop], Awaitable[Found]]) -> Found:
        """Call a store's shop, and once more with a new token where its token is dead.

        Refused as `token_unavailable` when the new one is dead as well.
        """

        async def take(dead: Token | None) -> Token:
            used = UseToken(self._clock(), None if dead is None else dead.access_token)
            return await self._ask(store(store_id), used)

        async def called(token: Token) -> Found:
            return await call(self._opened(token))

        try:
            return await with_token(take, called)
        except PlatformDenied as error:
            if not error.is_dead_token:
                raise
            raise token_unavailable() from error

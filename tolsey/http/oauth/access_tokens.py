"""The cache of access tokens: which grant each belongs to.

It is two seconds old at most, and emptied in every process as soon as a grant ends, a member or a store
leaves, or a user is banned: the next call after that is refused.
"""

import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.oauth import grants
from tolsey.storage.oauth.grants import Admitted

SECONDS: Final = 2.0
MOST: Final = 20_000


class AccessTokens:
    """Reads whom tokens let in."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        tell_others: Callable[[], Awaitable[None]],
        *,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._clock = clock
        self._tell_others = tell_others
        self._steady = steady
        self._known: dict[str, tuple[Admitted, float]] = {}
        self._forgotten = 0

    async def find(self, token: str) -> Admitted | None:
        """Say whom a token lets in; None when nobody, or nobody any more."""
        known = self._known.get(token)
        if known is not None and known[1] > self._steady():
            return known[0] if known[0].expires_at > self._clock() else None
        until, times = self._steady() + SECONDS, self._forgotten
        found = await grants.admitted(self._database, token, self._clock())
        if found is None:
            self._known.pop(token, None)
        elif times == self._forgotten:  # else what was read may be what was to be forgotten
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[token] = found, until
        return found

    def forget_here(self) -> None:
        """Forget whom this process let in."""
        self._forgotten += 1
        self._known.clear()

    async def forget(self) -> None:
        """Forget whom any process let in."""
        self.forget_here()
        await self._tell_others()

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.http.mail.post import Post
from tests.http.people import Clock, settings_of
from tolsey.service import Running, running
from tolsey.settings import Settings


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    """Stand in for the mail server of the operator."""
    async with Post().serve() as opened:
        yield opened


@pytest.fixture
def settings(database_url: str, redis_url: str, post: Post) -> Settings:
    return settings_of(
        database_url=database_url,
        redis_url=redis_url,
        mail_url=post.url,
        mail_from="Tölsey <no-reply@tolsey.example>",
    )


@pytest.fixture
async def live(settings: Settings, clock: Clock) -> AsyncIterator[Running]:
    async with running(settings, clock=clock, timers=False, poll_seconds=0.1) as started:
        yield started


@pytest.fixture
async def edge(live: Running) -> Any:
    return live.app

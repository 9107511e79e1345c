"""A world that canaries are planted in."""

import io
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog

from tests.journeys.canary.planting import OTHER, OTHER_SECRET, World, world
from tests.journeys.conftest import SECRET, SHOP
from tolsey import logs


@pytest.fixture
def seed() -> int:
    return 1


@pytest.fixture
async def planted(
    database_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    log = io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", log)
        logs.configure("debug")
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(log))
    shops = {SHOP: SECRET, OTHER: OTHER_SECRET}
    async with world(database_url, redis_url, tmp_path / "data", log, shops) as made:
        yield made
    structlog.reset_defaults()
    root = logging.getLogger()
    root.handlers = [one for one in root.handlers if not isinstance(one, logs.Libraries)]

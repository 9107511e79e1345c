import pytest

from tests.runtime.counter import SCHEMA
from tolsey.storage.database import Database


@pytest.fixture
async def counters(database: Database) -> Database:
    """A migrated database with the tables of the counters."""
    await database.execute(SCHEMA)
    return database

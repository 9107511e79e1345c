import pytest

from tolsey.storage.database import Database


@pytest.fixture
async def counters(database: Database) -> Database:
    """A migrated database with the tables of the counters."""
    return database

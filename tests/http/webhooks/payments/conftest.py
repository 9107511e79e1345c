import pytest

from tests.http.webhooks.payments.sender import Processor, receiver
from tolsey.storage.database import Database


@pytest.fixture
async def sender(database: Database) -> Processor:
    for id in ("org_1", "org_2"):
        await database.execute("INSERT INTO organizations (id, name) VALUES ($1, 'o')", id)
    return Processor(receiver(database), database)

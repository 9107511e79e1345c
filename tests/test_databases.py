"""What tests share of PostgreSQL: connections that stay open, and nothing that the test before said over them."""

import pytest

from tolsey.storage.database import Database
from tolsey.storage.runtime.journal import Journal

pytestmark = pytest.mark.anyio


async def test_a_session_that_is_used_again_is_as_a_new_one(database_url: str) -> None:
    backends = []
    for _ in range(2):
        opened = Database(database_url, session={"work_mem": "7MB"})
        await opened.open()
        told = await opened.fetchrow(
            "SELECT current_setting('work_mem') AS memory, pg_backend_pid() AS backend,"
            " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS locks"
        )
        assert told is not None
        assert (told["memory"], told["locks"]) == ("7MB", 0)
        backends.append(told["backend"])
        await opened.execute("SET work_mem = '9MB'")
        await opened.fetch("SELECT pg_advisory_lock(1)")
        await opened.close()
    assert backends[0] == backends[1]


async def test_a_journal_that_ends_its_former_self_does_not_use_its_connection_again(
    database: Database,
) -> None:
    one, two = Journal(database), Journal(database)
    backend = (await one.open()).get_server_pid()
    await one.close()
    assert (await two.open()).get_server_pid() == backend
    two._lost.append(backend)
    await two.close()
    assert (await two.open()).get_server_pid() != backend
    await two.close()

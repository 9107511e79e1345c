"""What tests share of PostgreSQL: connections that stay open, and nothing that the test before said over them."""

import asyncpg
import pytest

from tests.databases import Databases
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


ALTERED = (
    "ALTER TABLE mail_refusals ALTER COLUMN topic SET STATISTICS 7",
    "ALTER TABLE mail_refusals ALTER COLUMN topic SET DEFAULT ''",
    "CREATE FUNCTION more() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "ALTER TABLE mail_refusals DROP CONSTRAINT mail_refusals_pkey",
    "ANALYZE mail_refusals",
    "GRANT SELECT ON mail_refusals TO PUBLIC",
)


@pytest.mark.parametrize("altered", ["SELECT 1", *ALTERED])
async def test_the_next_test_finds_no_rows_and_nothing_altered(
    databases: Databases, altered: str
) -> None:
    for turn in range(3):
        url = await databases.take()
        given = await asyncpg.connect(url)
        assert await given.fetchval("SELECT count(*) FROM mail_refusals") == 0
        assert not await given.fetchval("SELECT is_called FROM audit_log_id_seq")
        if turn == 0:
            name = url
            await given.execute("INSERT INTO mail_refusals VALUES ('a', 'b', now())")
            await given.execute("SELECT nextval('audit_log_id_seq')")
            await given.execute(altered)
        elif turn == 1:
            assert (url == name) is (altered == "SELECT 1")
        await given.close()
        await databases.give_back(may_change_schema=turn == 0)


async def test_a_change_of_the_schema_has_to_be_marked(databases: Databases) -> None:
    given = await asyncpg.connect(await databases.take())
    await given.execute(ALTERED[0])
    await given.close()
    with pytest.raises(AssertionError, match="changes_schema"):
        await databases.give_back(may_change_schema=False)

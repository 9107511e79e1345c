"""A service on its embedded database, whose routes somebody found a way into."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.http.people import settings_of
from tests.journeys.conftest import sign_up
from tolsey.service import Running, running
from tolsey.storage.errors import StorageError


@asynccontextmanager
async def at_home(folder: Path) -> AsyncIterator[tuple[Running, httpx.AsyncClient]]:
    settings = settings_of(data_dir=folder / "data")
    async with running(settings, timers=False) as live:
        transport = httpx.ASGITransport(live.app)
        async with httpx.AsyncClient(
            transport=transport, base_url=settings.base_url, headers={"Origin": settings.base_url}
        ) as client:
            yield live, client


async def test_the_service_has_no_rights_of_a_superuser_and_does_its_work(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # pytest's own folders are closed to the user that the servers run as
    for number in range(2):  # the role is there the second time
        async with at_home(tmp_path) as (live, client):
            database = live.service.database
            seller = await sign_up(client, f"seller{number}@example.com")
            assert (await client.get(f"/api/stores/{seller.store_id}")).status_code == 200
            assert (await client.get("/api/health")).json()["ok"]
            row = await database.fetchrow(
                "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls AS mighty"
                " FROM pg_roles WHERE rolname = current_user"
            )
            assert row is not None
            assert not row["mighty"]
            for forbidden in (
                "COPY (SELECT 1) TO PROGRAM 'true'",
                "SELECT pg_read_file('postgresql.conf')",
                "CREATE TABLE mine (id int)",
                "DROP TABLE audit_log",
                "SET ROLE postgres",
            ):
                with pytest.raises(StorageError, match=r"InsufficientPrivilege|permission denied"):
                    await database.execute(forbidden)

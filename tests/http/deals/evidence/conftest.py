"""A service that seals what was signed and signs a root a day over it, and the evidence that it gives."""

import zipfile
from datetime import timedelta
from io import BytesIO

import anyio.to_thread
import pytest

from tests.http.deals.sealing.conftest import Seals, calls, sealing, seals  # noqa: F401 - fixtures
from tests.http.deals.table import MARKET, Table, signed
from tests.http.people import KEYRING, Clock
from tolsey.http.deals.evidence.rooting import EsignRoots
from tolsey.storage.database import Database
from tolsey.storage.sealing.sealed import Vault


class Rooting:
    """Lets days pass, each of which ends with a root."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._job = EsignRoots(database, Vault.from_keys(KEYRING), clock)
        self._clock = clock

    async def next_day(self) -> int:
        """Let a day pass; answers how many signatures its root is over."""
        self._clock.advance(timedelta(days=1))
        return await self.again()

    async def again(self) -> int:
        """Run the job of the day."""
        return (await self._job.sign(self._clock.now, lambda _: None))["signatures"]


@pytest.fixture
def rooting(database: Database, clock: Clock) -> Rooting:
    return Rooting(database, clock)


async def unpacked(table: Table, signature_id: str) -> dict[str, bytes]:
    """Download a bundle as a party does."""
    found = await table.ben.browser.get(f"{MARKET}/signatures/{signature_id}/evidence")
    assert (found.status_code, found.headers["Content-Type"]) == (200, "application/zip")

    def read() -> dict[str, bytes]:
        with zipfile.ZipFile(BytesIO(found.content)) as archive:
            assert archive.testzip() is None
            return {name: archive.read(name) for name in archive.namelist()}

    return await anyio.to_thread.run_sync(read)


@pytest.fixture
async def files(table: Table, seals: Seals, rooting: Rooting) -> dict[str, bytes]:  # noqa: F811
    """The evidence of an NDA with its PDF, under a root that another NDA is under too."""
    deal = await signed(table, table.ben)
    await signed(table, table.cleo)
    await seals.pdf_of(table, deal["signatureId"])
    assert await rooting.next_day() == 2
    return await unpacked(table, deal["signatureId"])

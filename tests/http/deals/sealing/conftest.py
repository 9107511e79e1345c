"""A service that seals what was signed."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from tests.http.deals.table import MARKET, Table
from tests.http.people import KEYRING, Clock
from tolsey.actors.listing.deals.messages import SealDocument
from tolsey.actors.mail import TellPeople
from tolsey.http.deals.sealing.effects import DocumentSealing
from tolsey.runtime.messages import Call
from tolsey.storage.database import Database
from tolsey.storage.sealing.sealed import Vault


@dataclass
class Seals:
    """When which PDF was made."""

    made: defaultdict[str, anyio.Event] = field(default_factory=lambda: defaultdict(anyio.Event))

    async def pdf_of(self, table: Table, signature_id: str) -> bytes:
        """Read a PDF once it is there."""
        with anyio.fail_after(60):
            await self.made[signature_id].wait()
        found = await table.ben.browser.get(f"{MARKET}/signatures/{signature_id}/pdf")
        assert (found.status_code, found.headers["Content-Type"]) == (200, "application/pdf")
        return found.content


@pytest.fixture
def sealing(database: Database, clock: Clock) -> DocumentSealing:
    return DocumentSealing(database, Vault.from_keys(KEYRING), "https://tolsey.test", clock)


@pytest.fixture
def seals() -> Seals:
    return Seals()


@pytest.fixture
def calls(
    sealing: DocumentSealing, seals: Seals, told: list[TellPeople]
) -> dict[type[Call[Any]], Any]:
    """Who performs what follows a move: PDFs are made, and their makers told of."""

    async def tell_people(call: TellPeople) -> None:
        told.append(call)

    async def seal(call: SealDocument) -> None:
        await sealing.seal(call)
        seals.made[call.signature_id].set()

    return {TellPeople: tell_people, SealDocument: seal}

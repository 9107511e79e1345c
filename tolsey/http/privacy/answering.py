"""The answer to a customer who wants to know what is kept of them: one file for each store of the shop.

It is assembled by the pseudonyms that the request's address was turned into; the address itself is not there any more.
"""

import hashlib
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from tolsey.actors.ports import AnswerKept, CustomerMention
from tolsey.actors.store.deliveries.identity import PURPOSE, pseudonym
from tolsey.http.answers.people.privacy import CustomerAnswer, KeptUntil
from tolsey.http.files.documents import head_of, in_chunks, section
from tolsey.http.files.keeping import FileKeeper
from tolsey.storage import audit, files
from tolsey.storage.commerce import compliance, stores
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import exports
from tolsey.storage.owners import Belongs, RowOwner
from tolsey.storage.records.commerce.compliance import ComplianceRequest
from tolsey.storage.records.files import FileRecord
from tolsey.storage.records.memory import VECTORS
from tolsey.storage.reports.pool import Reports
from tolsey.storage.sealing.sealed import Vault
from tolsey.storage.tables import Personal, Table

ANSWER_PURPOSE: Final = "data_request"
MOST_BYTES: Final = 1024**3
MAIL_ADDRESS: Final = re.compile(r"""[^\s"'<>()\[\]{},;:\\|]+@[^\s"'<>()\[\]{},;:\\|@]+""")
NAMED_BY: Final = {"facts": "name"}
"""By what a row is asked for, where that is not the last column of its key."""
ENDS_A_SENTENCE: Final = ".!?"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredFor:
    """Whom an answer is about: a customer as one shop of one store knows them."""

    request: ComplianceRequest
    store: StoreRow
    shop_key: str
    pseudonyms: frozenset[str]


class CustomerAnswers:
    """Assembles answers and keeps them as files."""

    def __init__(
        self,
        keeper: FileKeeper,
        database: Database,
        reports: Reports,
        vault: Vault,
        clock: Callable[[], datetime],
    ) -> None:
        self._keeper = keeper
        self._database = database
        self._reports = reports
        self._vault = vault
        self._clock = clock

    async def answer(
        self, request: ComplianceRequest, store_id: str, shop_key: str
    ) -> AnswerKept | None:
        """Keep what a store has of a request's customer, in the place of what an earlier try kept.

        None of a deleted store: what it had is being erased.
        """
        whose = await self._whose(request, store_id, shop_key)
        if whose is None:
            return None
        file_id = file_id_of(request, store_id)
        earlier = await files.find(self._database, file_id)
        if earlier is not None:
            await self._keeper.remove(earlier)
        rows = await self._write(whose, file_id)
        async with self._database.transaction() as tx:
            await audit.write(
                tx,
                "compliance.answered",
                store_id,
                actor="system",
                organization_id=whose.store.organization_id,
                request=request.id,
                file=file_id,
                rows=rows,
            )
        return AnswerKept(
            organization_id=whose.store.organization_id, store_name=whose.store.name, rows=rows
        )

    async def mentions(
        self, request: ComplianceRequest, store_id: str, shop_key: str
    ) -> Sequence[CustomerMention]:
        """List where the shop's people wrote an address of a request's customer; nothing of a deleted store."""
        whose = await self._whose(request, store_id, shop_key)
        if whose is None:
            return ()
        return [
            CustomerMention(table=table.name, key=row[NAMED_BY.get(table.name) or table.key[-1]])
            for table, belongs in written_by_people()
            async for row in self._naming(whose, table, belongs)
        ]

    async def _whose(
        self, request: ComplianceRequest, store_id: str, shop_key: str
    ) -> AnsweredFor | None:
        store = await stores.find(self._database, store_id)
        if store is None:
            return None
        subjects = await compliance.subjects(self._database, request.id)
        return AnsweredFor(
            request=request,
            store=store,
            shop_key=shop_key,
            pseudonyms=frozenset(one.email_hash for one in subjects if one.store_id == shop_key),
        )

    async def _write(self, whose: AnsweredFor, file_id: str) -> int:
        at, rows = self._clock(), 0

        async def counted(items: AsyncIterator[Any]) -> AsyncIterator[Any]:
            nonlocal rows
            async for item in items:
                rows += 1
                yield item

        async def parts() -> AsyncIterator[bytes]:
            yield head_of(_head(whose, at))
            for name, items in self._sections(whose):
                async for part in section(name, counted(items)):
                    yield part
            yield b"}"

        def record(sha256: str, size: int) -> FileRecord:
            return FileRecord(
                id=file_id,
                organization_id=whose.store.organization_id,
                store_id=whose.store.id,
                purpose=ANSWER_PURPOSE,
                name=f"{whose.request.id}.json",
                content_type="application/json",
                sha256=sha256,
                size=size,
                created_by=whose.request.asked_by or "system",
                created_at=at,
                expires_at=at + compliance.ANSWER_KEPT_FOR,
            )

        await self._keeper.keep(in_chunks(parts()), MOST_BYTES, record)
        return rows

    def _sections(self, whose: AnsweredFor) -> Iterator[tuple[str, AsyncIterator[Any]]]:
        """Name what an answer has: the customer's rows of each table, and where else they are named."""
        for table, belongs in exports.sections(RowOwner.BUYER):
            yield table.export, self._rows_of(whose, table, belongs)
        for table, belongs in written_by_people():
            name = f"mentions_in_{table.export}"
            yield name, self._naming(whose, table, belongs)

    async def _rows_of(
        self, whose: AnsweredFor, table: Table[Any], belongs: Belongs
    ) -> AsyncIterator[Any]:
        reader = self._reports.of(whose.store.organization_id)
        for one in sorted(whose.pseudonyms):
            async for row in exports.rows(reader, table, belongs, one, whose.shop_key):
                yield row

    async def _naming(
        self, whose: AnsweredFor, table: Table[Any], belongs: Belongs
    ) -> AsyncIterator[Any]:
        """Find rows of people's words in which an address of the customer's stands."""
        salt = await stores.salt_of(
            self._database, self._vault, whose.store.id, whose.request.shop_domain
        )
        if salt is None:  # nobody is known by it any more
            return
        identity = self._vault.subkey(salt, PURPOSE)
        reader = self._reports.of(whose.store.organization_id)
        key = whose.shop_key if belongs.to == RowOwner.SHOP else whose.store.id
        async for row in exports.rows(reader, table, belongs, key):
            texts = (row[column] for column in free_text_of(table))
            named = {pseudonym(identity, one, None) for one in addresses_in(list(texts))}
            is_theirs = any(str(value) in whose.pseudonyms for value in row.values())
            if named & whose.pseudonyms and not is_theirs:
                yield row


def free_text_of(table: Table[Any]) -> list[str]:
    """List the columns of a table that people's words stand in, for all to read."""
    columns = (*table.shape, *table.besides)
    return [one.name for one in columns if one.personal == Personal.FREE_TEXT and not one.sealed]


def written_by_people() -> Iterator[tuple[Table[Any], Belongs]]:
    """List a store's tables with people's words, narrowed to the rows in which an address may stand."""
    for owner in (RowOwner.STORE, RowOwner.SHOP):
        for table, belongs in exports.sections(owner):
            columns = free_text_of(table)
            if columns and table is not VECTORS:  # whose texts are copies of what is remembered
                has_one = " OR ".join(f"strpos({one}::text, '@') > 0" for one in columns)
                yield table, replace(belongs, by=f"{belongs.condition} AND ({has_one})")


def addresses_in(told: Any) -> Iterator[str]:
    """Find mail addresses in people's words."""
    if isinstance(told, str):
        yield from (one.rstrip(ENDS_A_SENTENCE) for one in MAIL_ADDRESS.findall(told))
    elif isinstance(told, dict):
        yield from addresses_in(list(told.values()))
    elif isinstance(told, list):
        for one in told:
            yield from addresses_in(one)


def _head(whose: AnsweredFor, at: datetime) -> CustomerAnswer:
    tables = [table for table, _ in exports.sections(RowOwner.BUYER)]
    return CustomerAnswer(
        request_id=whose.request.id,
        store_id=whose.store.id,
        shop_domain=whose.request.shop_domain,
        received_at=whose.request.received_at,
        assembled_at=at,
        expires_at=at + compliance.ANSWER_KEPT_FOR,
        known_as=sorted(whose.pseudonyms),
        kept_until=[KeptUntil.of(one) for one in tables],
    )


def file_id_of(request: ComplianceRequest, store_id: str) -> str:
    """Name the file of one store: the same at each try, and as old as its request (RFC 9562, section 5.7)."""
    began = request.id.removeprefix("req_")[:13]
    rest = hashlib.sha256(f"{request.id}/{store_id}".encode()).hexdigest()
    return f"file_{began}{rest[:3]}8{rest[3:18]}"

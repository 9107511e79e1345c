"""What the marketplace costs: moves of deals a second, a signature with its PDF, and a page of the public search.

A move is a party's proposal of another date: a guard, the deal's row, a line of its hash-chained ledger, and a
letter to the other party, in one commit. The peer does the same in one transaction that locks the deal's row. 2,000
threads of one listing, of which one moves, show what a listing pays for its others. A signature is the last of two,
from the ask to the sealed PDF in the database; its peer signs such a PDF with `openssl cms`, detached, and keeps
nothing (what each part takes: `signature.py`). The search goes through the service's own application, without a
network; its peer is the very SQL that it runs, asked on a bare connection.
"""

import asyncio
import hashlib
import itertools
import subprocess
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

import asyncpg
import orjson
import structlog
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bench import measure
from bench.market_search import search
from bench.owner import opened, owning
from bench.signature import DOCUMENT, RING, signed
from tolsey.actors.listing.actor import ListingActor
from tolsey.actors.listing.deals import ledger
from tolsey.actors.listing.deals.messages import (
    AdvanceDeal,
    DealFields,
    ReadDeals,
    RequestSignature,
    SealDocument,
    SignDocument,
    SignerFacts,
)
from tolsey.actors.listing.deals.signatures import chain
from tolsey.actors.listing.messages import listing
from tolsey.actors.mail import TellPeople
from tolsey.http.deals import papers
from tolsey.http.deals.sealing import rendition, seal
from tolsey.http.deals.sealing.effects import DocumentSealing
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.migrate import migrate
from tolsey.storage.records.selling.deals import DealStage, DealThread
from tolsey.storage.records.selling.listing import ListingRecord, ListingStatus
from tolsey.storage.selling import deals
from tolsey.storage.tables import table_of

POOL: Final = 10
DEALS: Final = (1, 200)
CALLERS: Final = (1, 50)
THREADS: Final = 2_000
AT: Final = datetime.now(UTC).replace(microsecond=0)
"""What a deal waits for is not due yet."""
PEER: Final = """
CREATE TABLE peer_deals (id text PRIMARY KEY, stage text NOT NULL, seq bigint NOT NULL, hash text NOT NULL,
    proposed_by text, proposed_until timestamptz);
CREATE TABLE peer_lines (deal text, seq bigint, body text NOT NULL, hash text NOT NULL, PRIMARY KEY (deal, seq));
CREATE TABLE peer_letters (key text PRIMARY KEY, body jsonb NOT NULL);
"""
Move = Callable[[int], Awaitable[None]]


def thread(n: int, listing_id: str, stage: DealStage) -> DealThread:
    """Make a deal with an empty ledger; one that binds has the exclusivity."""
    id = f"deal_{n}"
    leads = [[AT.isoformat(), None]] if stage is DealStage.LOI_SIGNED else []
    return DealThread(
        id=id,
        listing_id=listing_id,
        seller_id="org_seller",
        buyer_id=f"org_{n}",
        requested_by="usr_1",
        stage=stage,
        entered_at=AT,
        created_at=AT,
        moved_at=AT,
        hash=ledger.first_of(id),
        price=2_000_000,
        currency="USD",
        leads=orjson.dumps(leads).decode(),
        exclusivity_until=AT + timedelta(days=30) if leads else None,
    )


def on_market(id: str) -> ListingRecord:
    """Make a listing that somebody is buying."""
    return ListingRecord(
        id=id,
        organization_id="org_seller",
        slug=id,
        title=f"The shop {id}",
        status=ListingStatus.UNDER_OFFER,
        asking_price=2_000_000,
        currency="USD",
        created_by="usr_1",
        created_at=AT,
        seller_active_at=AT,
    )


class Ours:
    """Deals of the service: one that binds for each listing."""

    def __init__(self, runtime: Runtime, database: Database) -> None:
        self.runtime = runtime
        self.database = database

    async def open(self) -> None:
        """Put listings on the market with a deal each, and one with many that wait."""
        for n in range(max(DEALS)):
            await self._keep(on_market(f"lst_{n}"), thread(n, f"lst_{n}", DealStage.LOI_SIGNED))
        crowd = f"lst_{max(DEALS)}"
        first = max(DEALS)
        await self._keep(on_market(crowd), thread(first, crowd, DealStage.LOI_SIGNED))
        for n in range(first + 1, first + THREADS):
            await self._keep(thread(n, crowd, DealStage.NDA_SIGNED))

    async def _keep(self, *records: Any) -> None:
        for one in records:
            table = table_of(type(one))
            await self.database.execute(table.insert, *table.values_of(one))

    async def move(self, n: int) -> None:
        """Propose another date."""
        id = f"deal_{n}"
        wish = AdvanceDeal(
            deal_id=id,
            event="exclusivity.propose",
            expected_stage="LOI_SIGNED",
            actor="S",
            by="usr_1",
            at=AT,
            fields=DealFields(until=AT + timedelta(days=45)),
        )
        await self.runtime.ask(listing(f"lst_{min(n, max(DEALS))}"), wish)

    async def check(self, moved: int) -> None:
        """Read every ledger again: each chain holds, and all moves are there."""
        counted = 0
        for n in range(max(DEALS) + 1):
            deal = await deals.find(self.database, f"deal_{n}")
            assert deal is not None
            lines = await deals.events(self.database, deal.id, 0, deal.seq or 1)
            assert ledger.broken_at(deal.id, lines, deal.hash) is None
            counted += deal.seq
        assert counted == moved, (counted, moved)


class Peer:
    """The same deals as rows, each moved in one transaction that locks its row."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self.pool = pool

    async def open(self) -> None:
        """Make the tables."""
        await self.pool.execute(PEER)
        names = [f"deal_{n}" for n in range(max(DEALS))]
        await self.pool.execute(
            "INSERT INTO peer_deals SELECT name, 'LOI_SIGNED', 0, '' FROM unnest($1::text[]) name",
            names,
        )

    async def move(self, n: int) -> None:
        """Propose another date."""
        id, until = f"deal_{n}", AT + timedelta(days=45)
        async with self.pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow("SELECT * FROM peer_deals WHERE id = $1 FOR UPDATE", id)
            assert row is not None
            assert row["stage"] == "LOI_SIGNED"
            seq = row["seq"] + 1
            said = {"dealId": id, "seq": seq, "prevHash": row["hash"], "until": until.isoformat()}
            body = orjson.dumps(said, option=orjson.OPT_SORT_KEYS)
            chained = hashlib.sha256(body).hexdigest()
            await connection.execute(
                "INSERT INTO peer_lines VALUES ($1, $2, $3, $4)", id, seq, body.decode(), chained
            )
            await connection.execute(
                "INSERT INTO peer_letters VALUES ($1, $2)", f"{id}/{seq}", body.decode()
            )
            await connection.execute(
                "UPDATE peer_deals SET seq = $2, hash = $3, proposed_by = 'seller', proposed_until = $4"
                " WHERE id = $1",
                *(id, seq, chained, until),
            )

    async def check(self, moved: int) -> None:
        """Count the lines against the deals."""
        row = await self.pool.fetchrow(
            "SELECT (SELECT sum(seq) FROM peer_deals) AS moves, (SELECT count(*) FROM peer_lines) AS lines"
        )
        assert row is not None
        assert row["moves"] == row["lines"] == moved


async def speed(move: Move, places: range, callers: int, each: int) -> tuple[float, float]:
    """Let all callers move deals one after the other; answer moves per second, and the p99 in ms."""
    taken: list[float] = []

    async def one(caller: int) -> None:
        for n in range(each):
            started = perf_counter()
            await move(places[(caller * each + n) % len(places)])
            taken.append(perf_counter() - started)

    started = perf_counter()
    await asyncio.gather(*map(one, range(callers)))
    return callers * each / (perf_counter() - started), quantiles(taken, n=100)[98] * 1000


async def compared(ours: Ours, peer: Peer, load: tuple[int, int, int], rounds: int) -> list[object]:
    """Take one line of the table: so many deals, callers, and moves of each."""
    count, callers, each = load
    ways: dict[str, Move] = {"tolsey": ours.move, "row lock": peer.move}
    waits: dict[str, list[float]] = {name: [] for name in ways}

    async def once(name: str) -> float:
        rate, p99 = await speed(ways[name], range(count), callers, each)
        waits[name].append(p99)
        return rate

    measure.say(f"{count} deals, {callers} callers (moves/s)")
    found = await measure.alternate({name: partial(once, name) for name in ways}, rounds)
    line: list[object] = [f"{count}", f"{callers}"]
    line += itertools.chain(*((found[one], f"{median(waits[one]):.1f}") for one in ways))
    return [*line, f"{found['tolsey'] / found['row lock']:.1f}"]


async def moves(url: str, *, quick: bool) -> None:
    """Compare moves of few and of many deals."""
    async with AsyncExitStack() as stack:
        await migrate(url)
        database, journal = await opened(stack, url)

        actors = [ListingActor(database, partial(papers.nda_writer, database, "http://127.0.0.1"))]
        handlers = {TellPeople: tell_nobody}
        runtime = await stack.enter_async_context(
            await owning(actors, database, journal, handlers=handlers)
        )
        pool = await stack.enter_async_context(
            asyncpg.create_pool(url, min_size=POOL, max_size=POOL)
        )
        ours, peer = Ours(runtime, database), Peer(pool)
        await ours.open()
        await peer.open()
        total, rounds = (200, 1) if quick else (4_000, 3)
        rows: list[list[object]] = []
        asked = 0
        for count, callers in itertools.product(DEALS, CALLERS):
            each = max(2, (total if callers > 1 else total // 4) // callers)
            rows.append(await compared(ours, peer, (count, callers, each), rounds))
            asked += rounds * callers * each
        await peer.check(asked)
        crowd, moved = await crowded(ours, total)
        await ours.check(asked + moved)
        measure.say("all moves are there, every chain holds")
    measure.table(
        f"Moves per second and p99 in ms (medians; the peer has {POOL} connections)",
        ["deals", "callers", "tolsey", "p99", "row lock", "p99", "times"],
        rows,
    )
    measure.table(
        f"One listing with {THREADS:,} threads, of which one moves",
        ["first answer, ms", "more MiB", "callers", "moves/s", "p99", "read 50, ms"],
        crowd,
    )


async def crowded(ours: Ours, total: int) -> tuple[list[list[object]], int]:
    """Wake a listing with many threads, and move one of them."""
    first, to = max(DEALS), listing(f"lst_{max(DEALS)}")
    before, began = measure.rss_bytes(), perf_counter()
    await ours.runtime.ask(to, ReadDeals((f"deal_{first}",), AT))
    woken, grown = 1_000 * (perf_counter() - began), (measure.rss_bytes() - before) / 2**20
    began = perf_counter()
    page = tuple(f"deal_{first + n}" for n in range(50))
    assert len(await ours.runtime.ask(to, ReadDeals(page, AT))) == len(page)
    reads = 1_000 * (perf_counter() - began)
    rows: list[list[object]] = []
    moved = 0
    for callers in CALLERS:
        each = max(2, total // 4 // callers)
        rate, p99 = await speed(ours.move, range(first, first + 1), callers, each)
        moved += callers * each
        rows.append(
            [f"{woken:.0f}", f"{grown:.1f}", f"{callers}", rate, f"{p99:.1f}", f"{reads:.1f}"]
        )
    return rows, moved


async def tell_nobody(call: TellPeople) -> None:
    """Write no letters."""
    del call


class Signing:
    """Deals of which both parties sign one document, and waits for its PDF."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._sealing = DocumentSealing(database, RING, "https://bench.test", lambda: AT)
        self._sealed: dict[str, asyncio.Event] = {}

    async def seal(self, call: SealDocument) -> None:
        """Make a PDF, and let who waits for it know."""
        await self._sealing.seal(call)
        self._sealed[call.signature_id].set()

    async def sign(self, runtime: Runtime, n: int) -> tuple[float, float]:
        """Put a document before both parties; answers what the last signature took, and what it took with the PDF."""
        id, to = f"sig_{n}", listing(f"lst_{n}")
        deal = thread(n, f"lst_{n}", DealStage.NDA_PENDING)
        for record in (replace(on_market(f"lst_{n}"), status=ListingStatus.ACTIVE), deal):
            table = table_of(type(record))
            await self.database.execute(table.insert, *table.values_of(record))
        made = await runtime.ask(
            to,
            RequestSignature(
                deal_id=deal.id,
                signature_id=id,
                document_type="NDA",
                provider="PLATFORM",
                hosted_url=None,
                template_version="bench",
                document=f"<!-- {id} -->{DOCUMENT}",
                basis=deal.hash,
                actor="S",
                by="usr_1",
                at=AT,
            ),
        )
        self._sealed[id] = asyncio.Event()
        began = perf_counter()
        for side in ("seller", "buyer"):
            began = perf_counter()
            signer = SignerFacts(
                user_id=f"usr_{side}",
                side=side,
                email_sha256="e",
                session_sha256="s",
                ip="203.0.113.7",
                user_agent="bench",
            )
            await runtime.ask(
                to,
                SignDocument(
                    deal_id=deal.id,
                    signature_id=id,
                    typed_name="Ada",
                    consent_version=chain.CONSENT_VERSION,
                    document_sha256=made.signature.document_sha256,
                    signer=signer,
                    at=AT,
                ),
            )
        answered = perf_counter() - began
        await self._sealed[id].wait()
        return answered, perf_counter() - began


async def signing(url: str, *, quick: bool) -> None:
    """Sign documents one after the other."""
    times = 3 if quick else 50
    async with AsyncExitStack() as stack:
        await migrate(url)
        database, journal = await opened(stack, url)
        ours = Signing(database)
        handlers = {TellPeople: tell_nobody, SealDocument: ours.seal}
        runtime = await stack.enter_async_context(
            await owning(
                [ListingActor(database, partial(papers.nda_writer, database, "http://127.0.0.1"))],
                database,
                journal,
                handlers=handlers,
            )
        )
        before = measure.rss_bytes()
        _, first_whole = await ours.sign(runtime, 0)
        grown = (measure.rss_bytes() - before) / 2**20
        taken = [await ours.sign(runtime, n) for n in range(1, times + 1)]
        more = (measure.rss_bytes() - before) / 2**20
        found = await database.fetchrow("SELECT count(*) AS sealed FROM sealed_documents")
        assert found is not None
        assert found["sealed"] == times + 1
    peers = by_hand(times)
    measure.table(
        f"The last of two signatures, and with its PDF, in ms (the first: {1_000 * first_whole:,.0f} ms"
        f" and {grown:.0f} MiB; {more:.0f} MiB after {times} more)",
        ["", "p50", "worst"],
        [
            [
                "answered: signature, stage and stamp in one commit",
                *spread(one for one, _ in taken),
            ],
            ["until its sealed PDF is kept", *spread(whole for _, whole in taken)],
            ["peer: openssl cms -sign of such a PDF, detached", *spread(peers)],
        ],
    )


def by_hand(times: int) -> list[float]:
    """Sign a PDF of the same page as a user does without us; answers seconds."""
    certificate = seal.certificate_of(RING, "k1", "bench.test", datetime.now(UTC))
    key = RING.seal_key("k1").private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    taken = []
    with TemporaryDirectory(prefix="tolsey-bench-") as place:
        folder = Path(place)
        (folder / "key.pem").write_bytes(key)
        (folder / "certificate.pem").write_text(certificate)
        (folder / "document.pdf").write_bytes(rendition.pdf_of(DOCUMENT, signed()[0], AT))
        given = "-binary -sign -in document.pdf -signer certificate.pem -inkey key.pem"
        command = ["openssl", "cms", *given.split(), "-outform", "DER", "-out", "document.p7s"]
        for _ in range(times):
            began = perf_counter()
            subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603 - our own line
            taken.append(perf_counter() - began)
    return taken


def spread(seconds: Iterable[float]) -> list[object]:
    """Say the median and the worst, in milliseconds."""
    found = [1_000 * one for one in seconds]
    return [f"{median(found):.1f}", f"{max(found):.1f}"]


def main() -> None:
    """Print all tables."""
    given = measure.arguments(__doc__ or "").parse_args()
    measure.machine(given.loop)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with measure.servers() as (server_url, redis_url):
        with measure.database(server_url) as url:
            measure.run(partial(moves, url, quick=given.quick), given.loop)
        with measure.database(server_url) as url:
            measure.run(partial(signing, url, quick=given.quick), given.loop)
        with measure.database(server_url) as url:
            measure.run(partial(search, url, redis_url, quick=given.quick), given.loop)


if __name__ == "__main__":
    main()

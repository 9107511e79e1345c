"""Spends a second and their p99, on one hot organization and on 200, against two usual ways.

A spend takes credits out of the lot that expires first, under a key that is unique, and is written
down: an entry that is hashed onto the one before, its posting, the lot, where the ledger stands. The
peers do the same job in PostgreSQL: `function` calls one SQL function for each spend, `row lock` is
a transaction that locks the organization's row and goes back and forth. Every spend is on disk
before its caller goes on to the next. All books are held against what was spent in the end.
"""

import asyncio
import hashlib
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median, quantiles
from time import perf_counter

import asyncpg

from bench import measure
from bench.asking import collect_seldom
from bench.costs import COLUMNS, Spending
from bench.owner import opened, owning
from tolsey.actors import chain
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.ledger.messages import GrantCredits, ReadCredits, SpendCredits
from tolsey.actors.organization.messages import organization
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.migrate import migrate
from tolsey.storage.money import credits

CALLERS = (1, 32, 256)
ORGANIZATIONS = (1, 200)
POOL = 32
LOTS = 3
LOT = 10**12
COST = 250
WAYS = ("tolsey", "function", "row lock")
NUMBERS = itertools.count()

Spend = Callable[[int, str], Awaitable[object]]

PEER = """
CREATE TABLE peer_accounts (
    organization text PRIMARY KEY, seq bigint NOT NULL, hash text NOT NULL, free bigint NOT NULL);
CREATE TABLE peer_lots (
    organization text, id int, remaining bigint NOT NULL CHECK (remaining >= 0),
    PRIMARY KEY (organization, id));
CREATE TABLE peer_entries (
    organization text, seq bigint, key text NOT NULL, at timestamptz NOT NULL, hash text NOT NULL,
    PRIMARY KEY (organization, seq), UNIQUE (organization, key));
CREATE TABLE peer_postings (
    organization text, seq bigint, n int, debit text, credit text, amount bigint NOT NULL,
    PRIMARY KEY (organization, seq, n));
CREATE FUNCTION peer_spend(whose text, business_key text, cost bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    account peer_accounts;
    lot peer_lots;
    chained text;
BEGIN
    SELECT * INTO account FROM peer_accounts WHERE organization = whose FOR UPDATE;
    IF account.free < cost THEN RAISE EXCEPTION 'insufficient credits'; END IF;
    SELECT * INTO lot FROM peer_lots
    WHERE organization = whose AND remaining >= cost ORDER BY id LIMIT 1;
    chained := encode(sha256(convert_to(account.hash || business_key || cost, 'UTF8')), 'hex');
    UPDATE peer_lots SET remaining = remaining - cost WHERE organization = whose AND id = lot.id;
    INSERT INTO peer_entries VALUES (whose, account.seq + 1, business_key, now(), chained);
    INSERT INTO peer_postings VALUES (whose, account.seq + 1, 0, 'usage', 'lot:' || lot.id, cost);
    UPDATE peer_accounts SET seq = account.seq + 1, hash = chained, free = free - cost
    WHERE organization = whose;
    RETURN account.free - cost;
END $$;
"""


class Peer:
    """The same books in PostgreSQL, by a function or by a transaction under a row lock."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self.pool = pool

    async def open(self) -> None:
        """Make the tables, and grant every organization the same lots."""
        await self.pool.execute(PEER)
        names = [f"peer_{n}" for n in range(max(ORGANIZATIONS))]
        await self.pool.execute(
            "INSERT INTO peer_accounts SELECT unnest($1::text[]), 0, '', $2", names, LOT * LOTS
        )
        await self.pool.execute(
            "INSERT INTO peer_lots SELECT name, id, $2 FROM unnest($1::text[]) name,"
            " generate_series(1, $3::int) id",
            *(names, LOT, LOTS),
        )

    async def function(self, n: int, key: str) -> None:
        """Spend in one round trip."""
        await self.pool.fetchval("SELECT peer_spend($1, $2, $3)", f"peer_{n}", key, COST)

    async def row_lock(self, n: int, key: str) -> None:
        """Spend in a transaction."""
        name = f"peer_{n}"
        async with self.pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(
                "SELECT seq, hash, free FROM peer_accounts WHERE organization = $1 FOR UPDATE", name
            )
            assert row is not None
            assert row["free"] >= COST
            lot = await connection.fetchval(
                "SELECT id FROM peer_lots WHERE organization = $1 AND remaining >= $2"
                " ORDER BY id LIMIT 1",
                *(name, COST),
            )
            chained = hashlib.sha256(f"{row['hash']}{key}{COST}".encode()).hexdigest()
            seq = row["seq"] + 1
            await connection.execute(
                "UPDATE peer_lots SET remaining = remaining - $3 WHERE organization = $1 AND id = $2",
                *(name, lot, COST),
            )
            await connection.execute(
                "INSERT INTO peer_entries VALUES ($1, $2, $3, now(), $4)", name, seq, key, chained
            )
            await connection.execute(
                "INSERT INTO peer_postings VALUES ($1, $2, 0, 'usage', $3, $4)",
                *(name, seq, f"lot:{lot}", COST),
            )
            await connection.execute(
                "UPDATE peer_accounts SET seq = $2, hash = $3, free = free - $4"
                " WHERE organization = $1",
                *(name, seq, chained, COST),
            )

    async def check(self) -> int:
        """Hold the books against each other; answer how many spends they tell of."""
        rows = await self.pool.fetch(
            """
            SELECT a.seq, a.free, (SELECT count(*) FROM peer_entries e
                WHERE e.organization = a.organization) AS entries,
              (SELECT sum(remaining) FROM peer_lots l WHERE l.organization = a.organization) AS left
            FROM peer_accounts a
            """
        )
        for row in rows:
            assert row["seq"] == row["entries"]
            assert row["free"] == row["left"] == LOT * LOTS - COST * row["seq"]
        return sum(row["seq"] for row in rows)


class Ours:
    """Organizations of the service."""

    def __init__(self, runtime: Runtime, database: Database) -> None:
        self.runtime = runtime
        self.database = database
        self.at = datetime.now(UTC)

    async def open(self) -> None:
        """Make the organizations, and grant every one the same lots."""
        names = [f"org_{n}" for n in range(max(ORGANIZATIONS))]
        await self.database.execute(
            "INSERT INTO organizations (id, name) SELECT name, name FROM unnest($1::text[]) name",
            names,
        )
        for name, n in itertools.product(names, range(LOTS)):
            ends = self.at + timedelta(days=30 + n)
            grant = GrantCredits(
                key=f"lot:{n}", kind="bonus", amount=LOT, at=self.at, expires_at=ends
            )
            await self.runtime.ask(organization(name), grant)

    def spend(self, n: int, key: str) -> Awaitable[None]:
        """Ask for a spend."""
        return self.spend_of(f"org_{n}", key)

    async def spend_of(self, organization_id: str, key: str) -> None:
        """Ask for a spend of any organization."""
        message = SpendCredits(key=key, amount=COST, reason="bench", at=self.at)
        await self.runtime.ask(organization(organization_id), message)

    async def check(self) -> int:
        """Replay every ledger to what it says; answer how many spends they tell of."""
        spends = 0
        for n in range(max(ORGANIZATIONS)):
            name = f"org_{n}"
            view = await self.runtime.ask(organization(name), ReadCredits(self.at))
            seq = view.standing.seq
            pairs = await credits.history(self.database, name, limit=seq)
            assert chain.broken_at(pairs) is None
            accounts = chain.replayed(one for _, postings in pairs for one in postings)
            assert accounts.get("usage", 0) == COST * (seq - LOTS)
            assert view.standing.balance == LOT * LOTS - COST * (seq - LOTS)
            spends += seq - LOTS
        return spends


async def speed(spend: Spend, callers: int, organizations: int, each: int) -> tuple[float, float]:
    """Let all callers spend one after the other; answer spends per second, and the p99 in ms."""
    taken: list[float] = []
    run = next(NUMBERS)

    async def one(caller: int) -> None:
        for n in range(each):
            key = f"spend:{run}:{caller}:{n}"
            started = perf_counter()
            await spend((caller * each + n) % organizations, key)
            taken.append(perf_counter() - started)

    started = perf_counter()
    await asyncio.gather(*map(one, range(callers)))
    seconds = perf_counter() - started
    return callers * each / seconds, quantiles(taken, n=100)[98] * 1000


async def measured(
    ours: Ours, peer: Peer, organizations: int, callers: int, spending: Spending, *, quick: bool
) -> tuple[list[object], int, int]:
    """Take one line of the table; answers it with how much ours and the peers spent."""
    ways: dict[str, Spend] = {
        "tolsey": ours.spend,
        "function": peer.function,
        "row lock": peer.row_lock,
    }
    scale, rounds = (10, 1) if quick else (1, 3)
    total = {"tolsey": 20_000, "function": 4_000, "row lock": 2_000}
    if callers == 1:
        total = dict.fromkeys(ways, 1_000)
    each = {name: max(2, total[name] // scale // callers) for name in ways}
    waits: dict[str, list[float]] = defaultdict(list)

    async def timed(name: str) -> float:
        rate, p99 = await speed(ways[name], callers, organizations, each[name])
        waits[name].append(p99)
        return rate

    async def once(name: str) -> float:
        return await spending.of(name, callers * each[name], timed(name))

    measure.say(f"{organizations:,} organizations, {callers:,} callers (spends/s)")
    rates = await measure.alternate({name: partial(once, name) for name in ways}, rounds)
    line: list[object] = [f"{organizations:,}", f"{callers:,}"]
    line += itertools.chain(*((rates[name], f"{median(waits[name]):.1f}") for name in ways))
    line += [f"{rates['tolsey'] / rates[name]:.1f}" for name in ("function", "row lock")]
    asked = {name: rounds * callers * each[name] for name in ways}
    return line, asked["tolsey"], asked["function"] + asked["row lock"]


@asynccontextmanager
async def running(url: str) -> AsyncIterator[tuple[Runtime, Database]]:
    """Let organizations live in a database, with all slots of it."""
    async with AsyncExitStack() as stack:
        await migrate(url)
        database, journal = await opened(stack, url)
        runtime = await stack.enter_async_context(
            await owning([OrganizationActor(database)], database, journal)
        )
        yield runtime, database


async def compare(url: str, *, quick: bool) -> None:
    collect_seldom()
    async with AsyncExitStack() as stack:
        runtime, database = await stack.enter_async_context(running(url))
        pool = await stack.enter_async_context(
            asyncpg.create_pool(url, min_size=POOL, max_size=POOL)
        )
        ours, peer = Ours(runtime, database), Peer(pool)
        await ours.open()
        await peer.open()
        rows, costs, spent, spent_by_peers = [], [], 0, 0
        for organizations, callers in itertools.product(ORGANIZATIONS, CALLERS):
            spending = Spending(url)
            line, mine, others = await measured(
                ours, peer, organizations, callers, spending, quick=quick
            )
            rows.append(line)
            costs += spending.lines(f"{organizations:,} / {callers:,}", WAYS)
            spent, spent_by_peers = spent + mine, spent_by_peers + others
        assert await ours.check() == spent
        assert await peer.check() == spent_by_peers
        measure.say("all books balance, every chain holds")
    measure.table(
        f"Spends per second and p99 in ms (medians; the peers have {POOL} connections)",
        [
            *("organizations", "callers", "tolsey", "p99", "function", "p99", "row lock", "p99"),
            *("to function", "to row lock"),
        ],
        rows,
    )
    measure.table(
        "Processor time of a spend, in ms (medians)", ["organizations / callers", *COLUMNS], costs
    )


if __name__ == "__main__":
    measure.on_a_database(__doc__, compare)

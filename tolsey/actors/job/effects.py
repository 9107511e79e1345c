"""The work of jobs, outside every mailbox; its counters come back as the run's outcome."""

import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any, Final

import anyio
import structlog

from tolsey.actors.chain import Replay, own
from tolsey.actors.job.messages import JobEnded, RunJob
from tolsey.actors.listing.messages import LEFT_ALONE, ClockTick, SyncDue, listing
from tolsey.actors.organization.agreements.messages import PaidPeriod, StartMonth
from tolsey.actors.organization.ledger.messages import ExpireCredits, GrantDailyBonus
from tolsey.actors.organization.messages import organization
from tolsey.actors.reach import Ask
from tolsey.runtime.decision import Refused, Tell
from tolsey.runtime.errors import RuntimeFault, Stopping
from tolsey.runtime.messages import Call, Message
from tolsey.runtime.throttle import Throttle
from tolsey.storage.database import Database, Row
from tolsey.storage.lifecycle import retention
from tolsey.storage.money import credit_jobs, credits
from tolsey.storage.money.credit_jobs import LedgerCheck
from tolsey.storage.money.credits import Books
from tolsey.storage.reports import sums
from tolsey.storage.selling import listings

log = structlog.get_logger()

ASKED_AT_ONCE: Final = 4
"""Each is woken up, which whoever waits for an answer notices: sixteen made deliveries wait."""
TELL_EVERY: Final = timedelta(seconds=10)
"""How often a long run says in the log how far it is."""
LEDGER_PAGE: Final = 100
"""Entries that are replayed in one go: nothing else runs in the process meanwhile."""
WHOLE_EVERY: Final = timedelta(days=30)
"""How often a ledger is replayed from its first entry on, and not from where it was right last."""

Progress = Callable[[Mapping[str, int]], None]
"""Where a long job says how far it is: its counters, as they stand."""

Work = Callable[[datetime, Progress], Awaitable[Mapping[str, Any]]]
"""A job's work: takes its due time, answers its counters. It may run twice and must bear it."""


class JobEffects:
    """Runs jobs. Each is the work under its name."""

    def __init__(self, work: Mapping[str, Work], clock: Callable[[], datetime]) -> None:
        self._work = work
        self._clock = clock

    def handlers(self) -> dict[type[Call[Any]], Callable[[Any], Awaitable[Message[Any]]]]:
        """Say which calls this performs."""
        return {RunJob: self.run}

    async def run(self, call: RunJob) -> JobEnded:
        """Do a job's work; a failure is the run's, and waits for the next due time."""
        event = f"cron.{call.name}"  # rules/service#scheduled-jobs
        said = log.bind(execution_id=call.execution_id)
        said.info(event + ".started")
        told_at: datetime | None = None

        def progress(counters: Mapping[str, int]) -> None:
            nonlocal told_at
            now = self._clock()
            if told_at is None or now - told_at >= TELL_EVERY:
                said.info(event + ".progress", **counters)
                told_at = now

        try:
            outcome = await self._work[call.name](call.scheduled_at, progress)
        except Exception as error:
            if is_cut(error):
                raise Stopping from error
            said.exception(event + ".failed")
            return JobEnded(
                execution_id=call.execution_id,
                status="failed",
                outcome="{}",
                error=type(error).__name__,
                at=self._clock(),
            )
        said.info(event + ".completed", **outcome)
        return JobEnded(
            execution_id=call.execution_id,
            status="completed",
            outcome=json.dumps(dict(outcome)),
            error=None,
            at=self._clock(),
        )


def is_cut(error: Exception) -> bool:
    """Whether a run fails because its process stops: the one that follows makes it again."""
    if isinstance(error, ExceptionGroup):
        return error.subgroup(Stopping) is not None
    return isinstance(error, Stopping)


class Upkeep:
    """The work of the jobs that are built; a run that was cut off goes on with what is left."""

    def __init__(
        self,
        database: Database,
        post: Callable[[Sequence[Tell]], Awaitable[int]],
        throttle: Throttle,
        sweep_files: Callable[[int], Awaitable[int]],
    ) -> None:
        self._database = database
        self._post = post
        self._throttle = throttle
        self._sweep_files = sweep_files

    def work(self) -> Mapping[str, Work]:
        """List it by the jobs' names."""
        return {
            "sync-verified-revenue": self.sync_verified_revenue,
            "prune-webhook-deliveries": partial(self.prune, retention.WEBHOOK_DELIVERIES),
            "prune-audit-log": partial(self.prune, retention.AUDIT_LOG),
            "retention-sweep": self.sweep,
        }

    async def sync_verified_revenue(
        self, scheduled_at: datetime, progress: Progress
    ) -> Mapping[str, int]:
        """Tell every listing that wants it to sync, spread over the hour; the first due are told first."""
        due = await listings.due_for_sync(self._database)
        waits = {id: listings.jitter(id, redefined=redefined) for id, redefined in due.items()}
        tells = [
            Tell(
                listing(id),
                SyncDue(scheduled_at + wait),
                key=f"sync:{id}:{scheduled_at.isoformat()}",
                due_at=scheduled_at + wait,
            )
            for id, wait in sorted(waits.items(), key=itemgetter(1))
        ]
        posted = 0

        async def post(portion: Sequence[Tell]) -> None:
            nonlocal posted
            posted += await self._post(portion)

        async for _ in self._throttle.portions(tells, post):
            progress({"listings": len(due), "scheduled": posted})
        return {"listings": len(due), "scheduled": posted, "redefined": sum(due.values())}

    async def prune(
        self, statements: Sequence[str], _: datetime, progress: Progress
    ) -> Mapping[str, int]:
        """Delete what the statements find, a batch at a time."""
        deleted = 0
        async for count in self._throttle.batches(
            partial(retention.sweep, self._database, statements)
        ):
            deleted += count
            progress({"deleted": deleted})
        return {"deleted": deleted}

    async def sweep(self, scheduled_at: datetime, progress: Progress) -> Mapping[str, int]:
        """Delete what has served its time, check kept sums, and tell listings left alone too long."""
        swept: dict[str, int] = {}
        for name, statements in retention.SWEPT.items():
            async for count in self._throttle.batches(
                partial(retention.sweep, self._database, statements)
            ):
                swept[name] = swept.get(name, 0) + count
                progress(swept)
        async for count in self._throttle.batches(self._sweep_files):
            swept["files"] = swept.get("files", 0) + count
            progress(swept)
        swept |= await self._keep_sums(progress)
        tells = [
            Tell(listing(id), ClockTick(scheduled_at), key=f"tick:{id}:{scheduled_at.isoformat()}")
            for id in await listings.left_alone(self._database, scheduled_at - LEFT_ALONE)
        ]
        async for posted in self._throttle.portions(tells, self._post):
            progress({**swept, "listingsLeftAlone": posted})
        return {**swept, "listingsLeftAlone": len(tells)}

    async def _keep_sums(self, progress: Progress) -> Mapping[str, int]:
        """Hold each store's kept sums against its rows; what is not whole or not right is built."""
        counters = {"sumsChecked": 0, "sumsDiffering": 0, "sumsBuilt": 0}

        async def checks(kept: sums.Kept) -> AsyncGenerator[int]:
            async for store_id in sums.stores(self._database):
                wrong = 0
                async for count in sums.differences(self._database, kept, store_id):
                    wrong += count
                    yield count
                if wrong:
                    log.error("sums.differ", store_id=store_id, kind=kept.name, wrong=wrong)
                    counters["sumsDiffering"] += 1
                    await sums.forget(self._database, kept, store_id)
                counters["sumsChecked"] += 1

        for kept in sums.KINDS:
            async with aclosing(checks(kept)) as checking:
                async for _ in self._throttle.steps(checking):
                    progress(counters)
            for store_id in await sums.unbuilt(self._database, kept):
                async for _ in self._throttle.batches(
                    partial(sums.build, self._database, kept, store_id)
                ):
                    progress(counters)
                counters["sumsBuilt"] += 1
        return counters


class CreditKeeping:
    """The work of the jobs that look after credits (rules/credits#invariants)."""

    def __init__(
        self, database: Database, ask: Ask, *, clock: Callable[[], datetime], throttle: Throttle
    ) -> None:
        self._database = database
        self._ask = ask
        self._clock = clock
        self._throttle = throttle

    def work(self) -> Mapping[str, Work]:
        """List it by the jobs' names."""
        return {
            "monthly-credits-reset": self.start_months,
            "daily-bonus": self.grant_bonuses,
            "expire-credits": self.expire,
        }

    async def grant_bonuses(self, scheduled_at: datetime, progress: Progress) -> Mapping[str, int]:
        """Grant the day's bonus to everyone who pays and has not spent on it yet."""
        day, at = scheduled_at.astimezone(UTC).date(), self._clock()
        pages = credit_jobs.without_bonus(self._database, day)
        return await self._each(pages, lambda _: GrantDailyBonus(day, at), "granted", progress)

    async def start_months(self, _: datetime, progress: Progress) -> Mapping[str, int]:
        """Grant the month's allowance under contracts and of years that are paid."""
        at = self._clock()
        pages = credit_jobs.months_due(self._database, at)
        return await self._each(pages, lambda row: _month(row, at), "granted", progress)

    async def expire(self, _: datetime, progress: Progress) -> Mapping[str, int]:
        """Expire what is due, end holds that were left alone, then replay every changed ledger."""
        at = self._clock()
        pages = credit_jobs.lapsed(self._database, at)
        swept = await self._each(pages, lambda _: ExpireCredits(at), "expired", progress)
        return {**swept, **await self._check_ledgers(at, progress)}

    async def _each(
        self,
        pages: AsyncIterator[list[Row]],
        message_for: Callable[[Row], Message[Any]],
        counter: str,
        progress: Progress,
    ) -> dict[str, int]:
        """Ask every organization that is listed; one that cannot answer does not stop the others."""
        counters = {"organizations": 0, counter: 0, "failed": 0}

        async def ask(row: Row) -> None:
            try:
                done = await self._ask(organization(row["id"]), message_for(row))
            except Stopping:
                raise
            except (RuntimeFault, Refused) as error:
                counters["failed"] += 1
                log.warning("credits.not_kept", organization_id=row["id"], error=str(error))
            else:
                counters[counter] += bool(done)

        async def answers() -> AsyncGenerator[int]:
            async for page in pages:
                for start in range(0, len(page), ASKED_AT_ONCE):
                    asked = page[start : start + ASKED_AT_ONCE]
                    async with anyio.create_task_group() as tasks:
                        for row in asked:
                            tasks.start_soon(ask, row)
                    counters["organizations"] += len(asked)
                    yield len(asked)

        async with aclosing(answers()) as asking:
            async for _ in self._throttle.steps(asking):
                progress(counters)
        return counters

    async def _check_ledgers(self, at: datetime, progress: Progress) -> Mapping[str, int]:
        """Hold each ledger that was written to against its chain and what stands beside it."""
        counters = {"ledgersChecked": 0, "entriesReplayed": 0, "ledgersBroken": 0}

        async def checks() -> AsyncGenerator[int]:
            async for page in credit_jobs.changed(self._database):
                for row in page:
                    async for entries in self._check(row["id"], at, counters):
                        yield entries

        async with aclosing(checks()) as checking:
            async for _ in self._throttle.steps(checking):
                progress(counters)
        return counters

    async def _check(
        self, organization_id: str, at: datetime, counters: dict[str, int]
    ) -> AsyncIterator[int]:
        """Replay a ledger, giving how many entries each page of it has; what is wrong is counted and told."""
        last = await credit_jobs.last_check(self._database, organization_id)
        if last is None or at - last.whole_at >= WHOLE_EVERY:
            last = LedgerCheck(seq=0, hash=Replay().hash, accounts={}, whole_at=at)
        replay = Replay(last.seq, last.hash, dict(last.accounts))
        books = await credit_jobs.books(self._database, organization_id)
        written = books.account.seq if books.account else 0
        wrong: dict[str, Any] | None = None
        while wrong is None and replay.seq < written:
            page = min(LEDGER_PAGE, written - replay.seq)
            found = await credits.history(self._database, organization_id, replay.seq, page)
            if not found or not all(replay.follow(*pair) for pair in found):
                wrong = {"why": "chain", "seq": replay.seq + 1}
            yield len(found)
        wrong = wrong or _difference(replay, books)
        counters["ledgersChecked"] += 1
        counters["entriesReplayed"] += max(replay.seq - last.seq, 0)
        if wrong is None:
            accounts = {name: amount for name, amount in replay.accounts.items() if amount}
            right = LedgerCheck(
                seq=replay.seq, hash=replay.hash, accounts=accounts, whole_at=last.whole_at
            )
            await credit_jobs.keep_check(self._database, organization_id, right, at)
        else:
            counters["ledgersBroken"] += 1
            log.error("ledger.broken", organization_id=organization_id, **wrong)
        yield 0


def _difference(replay: Replay, books: Books) -> dict[str, Any] | None:
    """Say where a ledger that was replayed comes to something else than what stands beside it."""
    account = books.account
    if account is None:
        return {"why": "account_missing"}
    if (replay.seq, replay.hash) != (account.seq, account.hash):
        return {"why": "chain", "seq": account.seq}
    if own(replay.accounts) != _standing(books):
        return {"why": "accounts", "seq": account.seq}
    return None


def _month(row: Row, at: datetime) -> StartMonth:
    if row["subscription_id"] is None:
        return StartMonth(at)
    paid = PaidPeriod(
        subscription_id=row["subscription_id"],
        plan=row["paid_plan"],
        starts_at=row["paid_from"],
        ends_at=row["paid_until"],
        payment_ref=row["paid_invoice_id"],
    )
    return StartMonth(at, paid)


def _standing(books: Books) -> dict[str, int]:
    """Say what the ledger's own accounts come to by what is stored beside it."""
    stored = {f"lot:{lot.id}": lot.free for lot in books.lots}
    stored |= {f"held:{hold.id}": hold.amount for hold in books.holds}
    return own(stored | {"debt": -books.account.debt if books.account else 0})

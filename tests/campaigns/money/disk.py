"""The real thing: the webhook route, the inbox, the actors and PostgreSQL, with many lives at once.

Each round lets every life take a step, all of them at the same time, so that their turns share
commits; then the process may die between any two steps, or another takes its actors away from it.
"""

import asyncio
import json
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from tests.actors.organization.pure_organization import OFFERS
from tests.campaigns.money.bank import Bank
from tests.campaigns.money.histories import began, jump
from tests.campaigns.money.lives import Person
from tests.campaigns.money.process import (
    AFTER_THE_COMMIT,
    BEFORE_THE_COMMIT,
    Process,
    deliver,
    end,
    start,
)
from tests.campaigns.money.proofs import Happened
from tests.campaigns.money.rows import Rows, broken, unproven
from tests.campaigns.money.steps import Answer, Applied, Ask, Life, Send, Step, Wait, Wrong
from tests.http.webhooks.merchant import call
from tests.http.webhooks.payments.sender import inbox
from tolsey.actors.organization.ledger.messages import SpendCredits
from tolsey.actors.organization.messages import organization
from tolsey.actors.refusals import Refusal
from tolsey.http.webhooks.payments.receiver import PaymentEvents
from tolsey.http.webhooks.payments.signatures import sign
from tolsey.runtime.errors import Duplicate, RuntimeFault
from tolsey.storage.database import Database
from tolsey.storage.money import subscriptions
from tolsey.storage.records.money import credits as records
from tolsey.storage.records.money.subscription import SubscriptionRecord
from tolsey.storage.records.runtime.turns import OutboxRow

SECRET = b"whsec_campaign"
BETWEEN_EVENTS, SLOTS_TAKEN = "between two applied events", "with its slots taken"
FATES = (BEFORE_THE_COMMIT, AFTER_THE_COMMIT, BETWEEN_EVENTS, SLOTS_TAKEN, "between two rounds")


@dataclass
class Report:
    """What a campaign on disk went through."""

    found: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)


class Disk:
    """Some lives on one database; `crashes` is how often a round ends a process."""

    def __init__(
        self,
        seed: int,
        database: Database,
        *,
        lives: int,
        steps: int,
        crashes: float = 0.3,
        fates: Sequence[str] = FATES,
    ) -> None:
        self.report = Report()
        self._fates = fates
        self._luck = random.Random(f"disk {seed}")  # noqa: S311 - a campaign of its seed
        self._database = database
        self._now = began(seed)
        self._crashes = crashes
        self._names = [f"org_{seed * 1_000 + n}" for n in range(lives)]
        self._banks = {
            name: Bank(name, random.Random(f"bank {seed} {name}"), self._now)  # noqa: S311 - as above
            for name in self._names
        }
        self._written: dict[str, tuple[str, SubscriptionRecord | None]] = dict.fromkeys(
            self._names, ("free", None)
        )
        self._people = {
            name: Person(f"{seed} {n}", self._banks[name], self._clock, partial(self._look, name))
            for n, name in enumerate(self._names)
        }
        self._lives: dict[str, Life] = {
            name: person.live(steps) for name, person in self._people.items()
        }
        self._settled: set[str] = set()
        self._news: dict[str, tuple[Applied, ...]] = defaultdict(tuple)
        """What was settled of each organization, which its life has not been told yet."""
        self._process: Process | None = None
        self._starts = 0
        self._asked = 0
        self._told_at: dict[str, datetime] = {}
        """When each message was written, by its key: what it says is done as of then."""
        kept = inbox(database, offers=OFFERS, dispatch=self._written_down, clock=self._clock)
        self._receiver = PaymentEvents(
            kept, self._clock, webhook_secret=SECRET.decode(), secret_key="sk_test_campaign"
        )

    def _clock(self) -> datetime:
        return self._now

    def _written_down(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            self._told_at[row.key] = datetime.fromisoformat(json.loads(row.payload)["at"])

    def _look(self, name: str) -> tuple[str, SubscriptionRecord | None]:
        return self._written[name]

    async def live(self) -> Report:
        """Live all lives to their end, and look at every row that is left of them."""
        await self._database.execute(
            "INSERT INTO organizations (id, name, created_at)"
            " SELECT id, 'Corner', $2 FROM unnest($1::text[]) id",
            self._names,
            self._now - timedelta(days=90),
        )
        self._process = await self._started()
        try:
            await self._rounds()
            await self._judge()
        finally:
            await end(self._process)
        return self.report

    async def _rounds(self) -> None:
        steps = {name: step for name in self._names if (step := self._next(name, None))}
        while steps:
            if any(not isinstance(step, Wait) for step in steps.values()):
                waiting = {name: one for name, one in steps.items() if isinstance(one, Wait)}
                going = {name: one for name, one in steps.items() if name not in waiting}
                answers = await self._round(going)
            else:
                self._now += jump(self._luck)
                waiting = {}
                answers = {name: Answer(before=self._news.pop(name, ())) for name in steps}
            steps = dict(waiting)
            for name, answer in answers.items():
                if step := self._next(name, answer):
                    steps[name] = step
            self.report.seen["rounds"] += 1

    def _next(self, name: str, answer: Answer | None) -> Step | None:
        """Go on with a life; one that found something wrong goes no further."""
        life = self._lives[name]
        try:
            return next(life) if answer is None else life.send(answer)
        except StopIteration:
            return None
        except Wrong as error:
            self.report.found.append(f"{name}: {error}")
            return None

    async def _round(self, steps: Mapping[str, Step]) -> dict[str, Answer]:
        fate = self._luck.choice(self._fates) if self._luck.random() < self._crashes else None
        await self._apply()
        before = {name: self._news.pop(name, ()) for name in steps}
        await self._read_plans()
        had = {name: self._written[name][0] for name in steps}
        assert self._process is not None
        if fate in {BEFORE_THE_COMMIT, AFTER_THE_COMMIT}:
            self._process.journal.dies = fate
        steps = {name: self._arriving(one) for name, one in steps.items()}
        doing = {name: asyncio.create_task(self._do(name, one)) for name, one in steps.items()}
        await asyncio.wait(doing.values())
        if fate is not None:
            self.report.seen[f"died {fate}"] += 1
            if fate != BETWEEN_EVENTS:
                await self._replace(taken=fate == SLOTS_TAKEN)
        reported = {name: task.result() for name, task in doing.items()}
        again = {name: one for name, one in reported.items() if one[0] == "unknown"}
        for name, (_, _, id) in again.items():
            reported[name] = await self._ask_again(name, steps[name], id)
        dies = self._luck.randint(1, 3) if fate == BETWEEN_EVENTS else 0
        if dies or self._luck.random() < 0.8:
            await self._apply(dies)
        await self._read_plans()
        return {
            name: Answer(*reported[name][:2], before[name], self._news.pop(name, ()), had[name])
            for name in steps
        }

    async def _do(self, name: str, step: Step) -> tuple[str, Any, str]:
        if isinstance(step, Send):
            for event, old in step.events:
                await self._post(event, old)
            return "reply", None, ""
        assert isinstance(step, Ask)
        assert self._process is not None
        self._asked += 1
        id = f"campaign:{self._asked}"
        try:
            runtime = self._process.runtime
            reply = await runtime.ask(organization(name), step.message, id=id)
        except Duplicate:
            return "duplicate", None, id
        except Refusal as error:
            return "refused", error.code, id
        except RuntimeFault:
            return "unknown", None, id
        return "reply", reply, id

    async def _ask_again(self, name: str, step: Step, id: str) -> tuple[str, Any, str]:
        """Ask what a process that died left without an answer, unless it is on disk."""
        row = await self._database.fetchrow(
            "SELECT FROM actor_journal WHERE kind = 'organization' AND key = $1"
            " AND message_id = $2",
            *(name, id),
        )
        if row is not None:
            self.report.seen["done, not answered"] += 1
            return "lost", None, id
        return await self._do(name, step)

    def _arriving(self, step: Step) -> Step:
        """Lose posts on their way: they leave nothing, and are posted again."""
        if not isinstance(step, Send):
            return step
        kept = tuple(one for one in step.events if self._luck.random() > 0.1)
        self.report.seen["lost before its row"] += len(step.events) - len(kept)
        return Send(kept)

    async def _post(self, event: Happened, old: bool) -> None:
        body = json.dumps(event.sent(old=old)).encode()
        signed = sign(body, SECRET, int(self._now.timestamp()))
        answer = await call(self._receiver, body, [(b"stripe-signature", signed)])
        self.report.seen[f"answered {answer.json['status']}"] += 1

    async def _apply(self, dies: int = 0) -> None:
        """Let the process take what waits for it, or die before its so-manieth commit of that."""
        assert self._process is not None
        if not await deliver(self._database, self._process, dies=dies):
            await self._replace(taken=False)
        rows = await self._database.fetch(
            "SELECT event_id, organization_id, state, why FROM payment_events e"
            " WHERE settled_at IS NOT NULL AND organization_id = ANY($1) ORDER BY ("
            " SELECT max(version) FROM actor_journal j WHERE j.kind = 'organization'"
            " AND j.key = e.organization_id AND trim(trailing '+' from j.message_id)"
            " = 'payment_event:' || e.event_id)",
            self._names,
        )
        for row in rows:
            if row["event_id"] not in self._settled:
                self._settled.add(row["event_id"])
                at = self._told_at[f"payment_event:{row['event_id']}"]
                one = Applied(row["event_id"], at, row["state"], row["why"])
                self._news[row["organization_id"]] += (one,)

    async def _read_plans(self) -> None:
        known = await subscriptions.load(self._database, self._names)
        for row in await self._database.fetch(
            "SELECT id, plan FROM organizations WHERE id = ANY($1)", self._names
        ):
            self._written[row["id"]] = (row["plan"], known[row["id"]].subscription)

    async def _started(self) -> Process:
        self._starts += 1
        return await start(self._database, f"process {self._starts}", self._banks)

    async def _replace(self, *, taken: bool) -> None:
        """Let another process serve; one whose slots were taken still thinks that it does."""
        old = self._process
        assert old is not None
        if not taken:
            await end(old)
        self._process = await self._started()
        if taken:
            await self._haunt(old)
            await end(old)

    async def _haunt(self, old: Process) -> None:
        """Let a process that lost its slots spend: nothing of it may happen."""
        message = SpendCredits(key=f"haunt:{self._starts}", amount=1, reason="haunt", at=self._now)
        for name in self._names:
            try:
                await old.runtime.ask(organization(name), message)
            except Refusal:
                continue  # there was nothing to spend
            except RuntimeFault:
                self.report.seen["fenced"] += 1
                continue
            self.report.found.append(f"4 {name} was written by a process that lost it")

    async def _judge(self) -> None:
        rows = await read_rows(self._database, self._names)
        for name in self._names:
            bank, person = self._banks[name], self._people[name]
            self.report.seen += person.seen
            self.report.seen["entries"] += len(rows[name].entries)
            wrong = [*broken(rows[name])]
            if not any(one.startswith(f"{name}:") for one in self.report.found):
                wrong += [*unproven(rows[name], bank), *person.misplaced(rows[name].accounts())]
            self.report.found += [f"{name}: {one}" for one in wrong]


async def read_rows(database: Database, names: Sequence[str]) -> dict[str, Rows]:
    """Read every row of the books of organizations."""
    found: dict[str, Rows] = defaultdict(Rows)
    for part, kind, table in (
        ("account", records.CreditAccount, "credit_accounts"),
        ("entries", records.CreditEntry, "credit_entries"),
        ("postings", records.CreditPosting, "credit_postings"),
        ("lots", records.CreditLot, "credit_lots"),
        ("holds", records.CreditHold, "credit_holds"),
        ("payments", records.CreditedPayment, "payment_facts"),
        ("resets", records.MonthlyReset, "monthly_resets"),
        ("bonuses", records.DailyBonus, "daily_bonuses"),
    ):
        sql = f"SELECT * FROM {table} WHERE organization_id = ANY($1)"  # noqa: S608 - ours
        for row in await database.fetch(sql, names):
            rows, record = found[row["organization_id"]], _record(kind, row)
            if part == "account":
                rows.account = record
            else:
                getattr(rows, part).append(record)
    return found


def _record(kind: type[Any], row: Any) -> Any:
    return kind(**{one.name: row[one.name] for one in fields(kind)})

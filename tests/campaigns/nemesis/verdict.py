"""What a run against whole services is judged by: the rows, and who took which slots from whom."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.campaigns.cluster import linear
from tests.campaigns.cluster.ground import Ground, Rows
from tests.campaigns.cluster.linear import Finding, Line
from tests.campaigns.cluster.verdict import Claim, owned
from tests.campaigns.nemesis.clients import Model
from tests.campaigns.nemesis.services import Beats
from tests.campaigns.sums import wrong_sums
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.storage.database import Database

SILENCE, REMEMBERED = 0.7, 3.0
"""Whose beats lay closer together than this share of a lease, for so many, was not silent for one."""

SCHEMA = """
CREATE TABLE nemesis_grants (
    at bigint PRIMARY KEY DEFAULT nextval('campaign_order'), tx xid8 DEFAULT pg_current_xact_id(),
    key text NOT NULL, op text NOT NULL
);
CREATE FUNCTION nemesis_grant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO nemesis_grants (key, op) VALUES (NEW.organization_id, NEW.metadata->>'reason');
    RETURN NULL;
END $$;
CREATE TRIGGER nemesis_grant AFTER INSERT ON audit_log
FOR EACH ROW WHEN (NEW.event = 'manual.adjustment') EXECUTE FUNCTION nemesis_grant();

CREATE TABLE nemesis_commits (
    at bigint PRIMARY KEY DEFAULT nextval('campaign_order'), tx xid8 DEFAULT pg_current_xact_id(),
    kind text NOT NULL, key text NOT NULL, version bigint NOT NULL, epoch bigint NOT NULL
);
CREATE INDEX nemesis_commits_tx ON nemesis_commits (tx);
CREATE FUNCTION nemesis_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO nemesis_commits (kind, key, version, epoch)
    VALUES (NEW.kind, NEW.key, NEW.version, NEW.epoch);
    RETURN NULL;
END $$;
CREATE TRIGGER nemesis_commit AFTER INSERT ON actor_journal
FOR EACH ROW EXECUTE FUNCTION nemesis_commit();

ALTER TABLE campaign_owners
    ADD COLUMN clock double precision DEFAULT extract(epoch FROM clock_timestamp()),
    ADD COLUMN doer text DEFAULT session_user;
"""

GRANTS = """
SELECT g.at, g.key, g.op, coalesce(max(c.epoch), -1) AS epoch
FROM nemesis_grants g
LEFT JOIN nemesis_commits c ON c.tx = g.tx AND c.key = g.key AND c.kind = 'organization'
GROUP BY g.at ORDER BY g.at
"""
COMMITS = "SELECT at, kind, key, version, epoch FROM nemesis_commits ORDER BY at"
LEDGER = """
SELECT organization_id, count(*) AS n FROM credit_entries WHERE kind = 'adjustment' GROUP BY 1
"""
CLAIMS = "SELECT at, slot, epoch, owner, previous, clock, doer FROM campaign_owners ORDER BY at"
RECORDED = "SELECT delivery_id FROM commerce_webhook_events WHERE topic = 'orders/create'"
EFFECTS = """
SELECT metadata->>'deliveryId' AS delivery_id, count(*) AS n FROM audit_log
WHERE event = 'commerce.webhook.orders.create' GROUP BY 1
"""
ORDERS = "SELECT count(*) AS n FROM commerce_orders"
FOUNDED = "SELECT name, count(*) AS n FROM organizations WHERE name LIKE 'founded-%' GROUP BY name"


@dataclass
class Times:
    """What the judge of slots has to know beside their rows."""

    lease_seconds: float
    beats: Beats
    masters: list[tuple[float, float]]
    """When there were two Redis masters, by the time of day."""


async def judged(ground: Ground, model: Model, times: Times) -> list[Finding]:
    """Find every promise that was broken."""
    claims = await ground.fetch(CLAIMS)
    lines = await _lines(ground, claims)
    ledger = {row["organization_id"]: row["n"] for row in await ground.fetch(LEDGER)}
    founded = {row["name"]: row["n"] for row in await ground.fetch(FOUNDED)}
    return [
        *linear.check(model.calls, lines),
        *owned(await _commits(ground, claims), [Claim(*list(row)[:5]) for row in claims]),
        *_books(lines, ledger),
        *await _deliveries(ground, model),
        *_founded(founded, model),
        *_robbed(claims, times),
        *await _sums(ground),
    ]


async def recorded(ground: Ground) -> set[str]:
    """Read which deliveries were taken in."""
    return {row["delivery_id"] for row in await ground.fetch(RECORDED)}


async def _lines(ground: Ground, claims: Rows) -> list[Line]:
    """Read every grant as a change of an account."""
    owners, versions = _owners(claims), Counter[str]()
    lines = []
    for at, key, op, epoch in await ground.fetch(GRANTS):
        versions[key] += 1
        slot = slot_of(key)
        owner = owners.get((slot, epoch), "")
        lines.append(Line(key, slot, versions[key], op, 1, epoch, at, owner))
    return lines


async def _commits(ground: Ground, claims: Rows) -> list[Line]:
    """Read every commit of every actor."""
    owners = _owners(claims)
    return [
        Line(key, slot_of(key), version, kind, 0, epoch, at, owners.get((slot_of(key), epoch), ""))
        for at, kind, key, version, epoch in await ground.fetch(COMMITS)
    ]


def _owners(claims: Rows) -> dict[tuple[int, int], str]:
    """Tell who had a slot under an epoch; a commit does not say whose it is."""
    return {(row["slot"], row["epoch"]): row["owner"] or "" for row in claims}


def _books(lines: Sequence[Line], ledger: Mapping[str, int]) -> Iterator[Finding]:
    """Every grant is one entry of the ledger."""
    counted = Counter(line.key for line in lines)
    if counted != ledger:
        yield Finding("torn", f"granted {dict(counted)}, in the ledger {dict(ledger)}")


async def _deliveries(ground: Ground, model: Model) -> list[Finding]:
    """Every delivery that was acknowledged is there, and each that is there took effect once."""
    taken = await recorded(ground)
    effects = {row["delivery_id"]: row["n"] for row in await ground.fetch(EFFECTS)}
    orders = (await ground.fetch(ORDERS))[0]["n"]
    found = [
        *(Finding("lost_delivery", one) for one in sorted(model.delivered - taken)),
        *(Finding("phantom_delivery", one) for one in sorted(taken - model.sent)),
        *(Finding("lost_effect", one) for one in sorted(taken - effects.keys())),
        *(Finding("double_delivery", f"{one}: {n}") for one, n in effects.items() if n > 1),
    ]
    if orders != len(taken):
        found.append(Finding("torn", f"{orders} orders of {len(taken)} deliveries"))
    return found


async def _sums(ground: Ground) -> list[Finding]:
    """Every kept sum is what counting its rows gives."""
    database = Database(ground.database_url)
    await database.open()
    try:
        return [Finding("wrong_sum", one) for one in await wrong_sums(database)]
    finally:
        await database.close()


def _founded(there: Mapping[str, int], model: Model) -> Iterator[Finding]:
    """Every organization whose making was answered is there, once."""
    for name in sorted(model.made - there.keys()):
        yield Finding("lost_account", name)
    for name, n in there.items():
        if n > 1 or name not in model.asked_for:
            yield Finding("double_account" if n > 1 else "phantom_account", name)


def _robbed(claims: Rows, times: Times) -> Iterator[Finding]:
    """Nobody's slots are taken by another service while its beats reach the common Redis."""
    for row in claims:
        home = times.beats.homes.get(row["previous"] or "")
        if home is None or row["doer"] == home or row["owner"] == row["previous"]:
            continue
        if any(start < row["clock"] < end for start, end in times.masters):
            continue  # the one at the other master saw none of them
        since = row["clock"] - REMEMBERED * times.lease_seconds
        gap = times.beats.longest_silence(row["previous"], since, row["clock"])
        if gap is not None and gap < SILENCE * times.lease_seconds:
            yield Finding(
                "robbed",
                f"{row['doer']} gave {row['owner']} slot {row['slot']} of {row['previous']} ({home})"
                f" at {row['clock']:.2f},"
                f" which was never silent for more than {gap:.2f} s",
            )

"""Dead letters by their cause: grouped, sent again at a pace, edited, given up, each once."""

from datetime import timedelta

from tolsey.storage.database import Database
from tolsey.storage.runtime import dead_letters
from tolsey.storage.runtime.dead_letters import Edited, WhichLetters

BURIED = """
INSERT INTO dead_letters (id, key, slot, kind, actor_key, name, payload, attempts, error, created_at, lane)
SELECT 'dl_' || $1 || lpad(n::text, 6, '0'), $1 || n, 1, 'store', 'sto_' || n, $1, '{"n": 1}', 5,
    replace($2, '@', n::text), now(), $3
FROM generate_series(1, $4) n
"""


async def buried(
    database: Database, name: str, error: str, letters: int, lane: str | None = None
) -> None:
    await database.execute(BURIED, name, error, lane, letters)


async def test_letters_are_grouped_by_what_failed_and_why_whatever_ids_the_error_names(
    database: Database,
) -> None:
    await buried(database, "Renew", "sto_@: 503 after 2.@ s", 40)
    await buried(database, "Tick", "ValueError: no", 2)
    await buried(database, "Tock", "ValueError: no", 1)

    found = await dead_letters.groups(database, 10, "")

    assert sorted((row["name"], row["letters"]) for row in found) == [
        ("Renew", 40),
        ("Tick", 2),
        ("Tock", 1),
    ]
    marks = [row["fingerprint"] for row in found]
    assert marks == sorted(set(marks))
    after = await dead_letters.groups(database, 1, marks[0])
    assert [row["fingerprint"] for row in after] == marks[1:2]
    (ticks,) = [row["fingerprint"] for row in found if row["name"] == "Tick"]
    listed = await dead_letters.listed(database, 10, None, fingerprint=ticks)
    assert {row["name"] for row in listed} == {"Tick"}


async def test_a_group_is_sent_again_once_oldest_first_and_so_many_a_second(
    database: Database,
) -> None:
    await buried(database, "Renew", "sto_@: 503", 5)
    await buried(database, "Tick", "ValueError: no", 1)
    (row,) = [row for row in await dead_letters.groups(database, 10, "") if row["name"] == "Renew"]
    which = WhichLetters(fingerprint=row["fingerprint"])

    assert await dead_letters.replay(database, which, per_second=2) == 5
    assert await dead_letters.replay(database, which, per_second=2) == 0

    due = await database.fetch("SELECT key, due_at FROM outbox ORDER BY due_at")
    assert [one["key"] for one in due] == [f"Renew{n}" for n in range(1, 6)]
    assert due[4]["due_at"] - due[0]["due_at"] == timedelta(seconds=2)
    assert [one["name"] for one in await dead_letters.groups(database, 10, "")] == ["Tick"]


async def test_one_letter_is_sent_again_with_another_payload_and_the_rest_of_its_group_stays(
    database: Database,
) -> None:
    await buried(database, "Renew", "sto_@: 503", 2, lane="platform")

    one = WhichLetters(id="dl_Renew000001")
    assert (
        await dead_letters.replay(database, one, edited=Edited(payload='{"n": 2}', about="")) == 1
    )

    (row,) = await database.fetch("SELECT key, payload->>'n' AS n, state, lane FROM outbox")
    assert tuple(row) == ("Renew1", "2", "unknown", "platform")
    assert await dead_letters.discard(database, one) == 0
    assert await dead_letters.discard(database, WhichLetters(id="dl_Renew000002")) == 1
    statuses = await database.fetch("SELECT status FROM dead_letters ORDER BY id")
    assert [row["status"] for row in statuses] == ["replayed", "discarded"]

"""The page about growth names every table, so that none is forgotten when the database is divided."""

import re
from pathlib import Path

from tolsey.storage.database import Database

PAGE = Path(__file__).parents[2] / "docs/operate/scaling.md"


def named(text: str) -> list[str]:
    """Read the tables of the section on partitions, in the order of its rows."""
    section = text.split("### 5.2 ", 1)[1].split("### 5.3 ", 1)[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    assert all(len(row) == 7 and all(cell.strip() for cell in row[1:6]) for row in rows)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row[1])]


async def test_the_page_says_of_each_table_once_how_it_is_divided(database: Database) -> None:
    tables = await database.fetch(
        "SELECT relname AS name FROM pg_class"
        " WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace AND NOT relispartition"
        r" AND relname NOT LIKE 'test\_%'"  # tests/runtime/counter.py adds these
    )
    rows = named(PAGE.read_text())
    assert len(rows) == len(set(rows))
    assert {row["name"] for row in tables} <= set(rows), (
        "section 5.2 has a row for each table: what partitioning and a distributed PostgreSQL ask of it"
    )


async def test_unique_keys_that_the_page_calls_global_are_there(database: Database) -> None:
    section = PAGE.read_text().split("Global keys, ", 1)[1].split("Beside size", 1)[0]
    cells = [row.split("|")[2] for row in section.splitlines() if row.startswith("| ")][1:]
    known = {row["name"] for row in await database.fetch("SELECT relname AS name FROM pg_class")}
    names = {name for cell in cells for name in re.findall(r"`(\w+)`", cell) if name != "oauth_"}
    assert len(names) >= 10
    assert names <= known

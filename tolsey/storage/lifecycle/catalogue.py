"""The catalogue: every table with what it holds of people, whose its rows are, and when they go.

`python -m tolsey.storage.lifecycle.catalogue` writes it into the page for operators.
"""

import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from tolsey.storage import records
from tolsey.storage.owners import Belongs
from tolsey.storage.tables import BARE, TABLES, Table

PAGE: Final = Path(__file__).parents[3] / "docs" / "operate" / "personal-data.md"
WRITTEN: Final = re.compile(r"(?<=<!-- catalogue -->\n).*(?=<!-- end -->)", re.DOTALL)


@cache
def declared() -> tuple[Table[Any], ...]:
    """List every table that the service keeps, by name; two records of one table are one of it each."""
    for module in pkgutil.walk_packages(records.__path__, f"{records.__name__}."):
        importlib.import_module(module.name)
    ours = (one for one in TABLES.values() if one.record.__module__.startswith("tolsey."))
    return tuple(sorted((*ours, *BARE), key=lambda table: table.name))


def written() -> str:
    """Write the catalogue as the page has it: people's columns, then tables and their owners."""
    personal = sorted(
        f"| `{table.name}` | `{one.name}` | {one.personal.value} | {'; '.join(fates(table, one.name))} |"
        for table in declared()
        for one in (*table.shape, *table.besides)
        if one.personal
    )
    tables = (
        f"| `{table.name}` | {_owners(table)} | {_age(table)} | {_exported(table)} |"
        for table in declared()
    )
    return "\n".join(
        (
            "| table | column | says | what becomes of it when who it belongs to goes, and by its age |",
            "|---|---|---|---|",
            *personal,
            "",
            "| table | whose, and what becomes of a row when they go | when it goes anyway | exported as |",
            "|---|---|---|---|",
            *dict.fromkeys(tables),
            "",
        )
    )


def fates(table: Table[Any], column: str) -> tuple[str, ...]:
    """Say what becomes of one column: with each owner of its rows, and when these go anyway."""
    whose = [f"{one.to}: {_fate(one, column)}" for one in table.belongs]
    return (*whose, _age(table)) if table.retention else tuple(whose)


def _fate(belongs: Belongs, column: str) -> str:
    if belongs.stays or (belongs.emptied and column not in belongs.emptied):
        return "stays"
    return "emptied" if belongs.emptied else "deleted"


def _owners(table: Table[Any]) -> str:
    return "; ".join(map(_goes, table.belongs)) or f"nobody's: {table.nobodys}"


def _goes(belongs: Belongs) -> str:
    if belongs.stays:
        return f"{belongs.to}: stays. {belongs.stays}"
    if belongs.emptied:
        return f"{belongs.to}: {', '.join(f'`{one}`' for one in belongs.emptied)} emptied"
    return f"{belongs.to}: deleted"


def _age(table: Table[Any]) -> str:
    return "; ".join(
        f"{f'{one.interval} after ' if one.interval != '0' else ''}`{one.column}`"
        f"{f' (`{one.where}`)' if one.where else ''}"
        for one in table.retention
    )


def _exported(table: Table[Any]) -> str:
    return f"`{table.export}`" if table.export else table.unexported


if __name__ == "__main__":
    PAGE.write_text(WRITTEN.sub(lambda _: written(), PAGE.read_text()))

"""The golden files: what every class that waits on disk or crosses processes looks like as JSON.

`python -m tests.wire.golden` says what the release before could not read of the classes as they are
now. With `--write` it writes the files of new classes and fields, with `--accept` those of changes
that break, too: when no process of the former form is left, and no row.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter

import tolsey.service  # noqa: F401 - registers every message
from tests.wire.shapes import OPTIONAL, Shape, breaks, sample_of, shape_of
from tolsey.actors.organization.billing.payment_events.catalogue import TYPES
from tolsey.runtime.codec import error_kinds, reply_type
from tolsey.runtime.messages import REGISTERED, Message
from tolsey.storage.tables import TABLES

FILES = Path(__file__).parent / "files"
COMMAND = "python -m tests.wire.golden --write"

GONE = (
    "is gone or has another name, and rows and asks of the release before still carry this one. Keep"
    " the class beside the new one until no process writes it and no row has it; then:"
    f" {COMMAND} --accept"
)

SHORT = {"integer": "int", "boolean": "bool"}
"""PostgreSQL's other names of types."""

Golden = dict[str, Any]
"""Each part of a class (what it holds, what it is answered with): its fields, and an example."""


@cache
def classes() -> dict[str, Golden]:
    """Describe every class as it is now, by name."""
    found = {name: one for name, one in REGISTERED.items() if one.__module__.startswith("tolsey.")}
    described = {name: _message(one) for name, one in found.items()}
    for facts in {kind.facts for kind in TYPES.values()}:
        described[f"facts.{facts.__name__}"] = {"holds": _part(facts)}
    for record, table in TABLES.items():
        if record.__module__.startswith("tolsey."):
            described[f"records.{table.name}.{record.__name__}"] = {
                "holds": {"fields": _columns(table.columns)}
            }
    # What routes refuse with stays in their process.
    kinds = (
        name for name in error_kinds() if name.startswith(("tolsey.runtime.", "tolsey.actors."))
    )
    described["errors"] = {"holds": {"fields": dict.fromkeys(sorted(kinds), "error" + OPTIONAL)}}
    return described


def _columns(columns: Mapping[str, str]) -> Shape:
    """Describe a row; that the release before may write it without a new column is its migration's
    to say (`-- compatible-from:`, which `tests/storage/test_migrate.py` holds it to)."""
    return {name: SHORT.get(kind, kind) + OPTIONAL for name, kind in columns.items()}


def _message(found: type[Any]) -> Golden:
    golden = {"holds": _part(found)}
    if issubclass(found, Message):
        golden["is answered with"] = _part(reply_type(found))
    return golden


def _part(found: Any) -> dict[str, Any]:
    return {"fields": shape_of(found), "example": sample_of(found)}


def path_of(name: str) -> Path:
    """Say where the file of a class is."""
    return FILES.joinpath(*name.split(".")).with_suffix(".json")


def kept() -> dict[str, Golden]:
    """Read every file, by the name of its class."""
    return {
        ".".join(path.relative_to(FILES).with_suffix("").parts): orjson.loads(path.read_bytes())
        for path in sorted(FILES.rglob("*.json"))
    }


def faults(before: dict[str, Golden], now: dict[str, Golden]) -> Iterator[tuple[str, str]]:
    """Say, with the name of its class, what a process of the release before could not read."""
    for name, golden in before.items():
        if name not in now:
            yield name, GONE
            continue
        for part, was in golden.items():
            shape: Shape = now[name].get(part, {}).get("fields", {})
            for fault in breaks(was["fields"], shape):
                yield name, f"({part}) {fault}"


def behind(before: dict[str, Golden], now: dict[str, Golden]) -> list[str]:
    """List the classes whose files are not there, or say something else."""
    return [name for name, golden in now.items() if before.get(name) != golden]


def reads(found: Any, example: Any) -> bool:
    """Tell whether an example can be read, and is written again with all that it had."""
    adapter: TypeAdapter[Any] = TypeAdapter(found)
    written = adapter.dump_python(adapter.validate_json(orjson.dumps(example)), mode="json")
    return _holds(written, example)


def _holds(written: Any, example: Any) -> bool:
    if isinstance(example, dict):
        return all(name in written and _holds(written[name], example[name]) for name in example)
    if isinstance(example, list):
        return len(written) == len(example) and all(map(_holds, written, example))
    return bool(written == example)


def write(*, accept: bool) -> list[str]:
    """Write the files; answer what keeps some of them from being written."""
    before, now = kept(), classes()
    broken = list(faults(before, now))
    refused = set() if accept else {name for name, _ in broken}
    for name in behind(before, now):
        if name not in refused:
            path_of(name).parent.mkdir(parents=True, exist_ok=True)
            path_of(name).write_bytes(orjson.dumps(now[name], option=orjson.OPT_INDENT_2) + b"\n")
    for name in before.keys() - now.keys() - refused:
        path_of(name).unlink()
    return [] if accept else [f"{name} {fault}" for name, fault in broken]


def main() -> int:
    """Compare, or write."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--write", action="store_true", help="write what is new")
    given.add_argument("--accept", action="store_true", help="write what breaks, too")
    options = given.parse_args()
    if options.write:
        said = write(accept=options.accept)
    else:
        before, now = kept(), classes()
        said = [f"{name} {fault}" for name, fault in faults(before, now)]
        said += [
            f"{name} is not as its file has it. Run: {COMMAND}" for name in behind(before, now)
        ]
    print(*said, sep="\n", end="\n" if said else "")  # noqa: T201 - what the command is for
    return bool(said)


if __name__ == "__main__":
    sys.exit(main())

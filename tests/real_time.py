"""What reads the real time or waits for it, outside `Time` and `tests/timing.py`: a list that only shrinks.

`python -m tests.real_time` is part of `make check`. It holds the code against `tests/real_time.toml`, which has
each file's number of places and why they are there. A place too many fails, and so does one too few that the list
still has; `--write` takes those off it and adds none.
"""

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
LIST: Final = Path(__file__).with_suffix(".toml")
HOMES: Final = frozenset({"tolsey/runtime/clock.py", "tests/timing.py"})
WAITS: Final[Mapping[str, frozenset[str]]] = {
    "asyncio": frozenset({"sleep", "timeout", "timeout_at", "wait_for"}),
    "anyio": frozenset(
        {"sleep", "sleep_until", "move_on_after", "move_on_at", "fail_after", "fail_at"}
    ),
    "time": frozenset({"sleep"}),
}
CLOCKS: Final[Mapping[str, frozenset[str]]] = {
    "anyio": frozenset({"current_time"}),
    "time": frozenset(
        {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "clock_gettime"}
    ),
    "datetime.datetime": frozenset({"now", "utcnow", "today"}),
    "datetime.date": frozenset({"today"}),
}
METHODS: Final = frozenset({"call_later", "call_at"})


def places(source: str, *, clocks: bool) -> Iterator[tuple[int, str]]:
    """List where source waits for the real time or, with `clocks`, reads it: line and name."""
    tree = ast.parse(source)
    modules, names = _imported(tree)
    banned = {module: set(found) for module, found in WAITS.items()}
    for module, found in CLOCKS.items() if clocks else ():
        banned.setdefault(module, set()).update(found)
    yields = {
        id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_yield(node)
    }
    for node in ast.walk(tree):
        module = name = ""
        match node:
            case ast.Attribute():
                module, name = modules.get(ast.unparse(node.value), ""), node.attr
            case ast.Name(id=written) if written in names:
                module, name = names[written]
            case ast.Call(func=ast.Attribute(attr="wait"), keywords=keywords, lineno=line) if any(
                one.arg == "timeout" for one in keywords
            ):
                yield line, "wait(timeout=)"
            case _:
                pass
        if isinstance(node, ast.Attribute | ast.Name):
            if name in banned.get(module, ()) and id(node) not in yields:
                yield node.lineno, f"{module}.{name}"
            elif name in METHODS and clocks and not module:
                yield node.lineno, name


def _imported(tree: ast.Module) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """Return the modules and classes of a clock by how they are written here, and their functions."""
    modules: dict[str, str] = {}
    names: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                known = one.asname or one.name
                modules[known] = one.name
                for kind in ("datetime", "date"):
                    modules[f"{known}.{kind}"] = f"{one.name}.{kind}"
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                names[one.asname or one.name] = (node.module, one.name)
                modules[one.asname or one.name] = f"{node.module}.{one.name}"
    return modules, names


def _is_yield(node: ast.Call) -> bool:
    """Whether a call only lets others run: `sleep(0)` waits for no time."""
    match node.func, node.args:
        case ast.Attribute(attr="sleep"), [ast.Constant(value=0)]:
            return True
        case _:
            return False


def counted(root: Path = ROOT) -> dict[str, list[tuple[int, str]]]:
    """Find the places of each file."""
    found: dict[str, list[tuple[int, str]]] = {}
    for folder in ("tolsey", "tests"):
        for file in sorted((root / folder).rglob("*.py")):
            name = file.relative_to(root).as_posix()
            if name not in HOMES:
                there = list(places(file.read_text(), clocks=folder == "tolsey"))
                if there:
                    found[name] = there
    return found


def complaints(
    found: Mapping[str, list[tuple[int, str]]], listed: Mapping[str, int]
) -> Iterator[str]:
    """Say where code and list differ."""
    for name in sorted({*found, *listed}):
        there, most = found.get(name, []), listed.get(name, 0)
        if len(there) > most:
            way = "Time (tolsey/runtime/clock.py)" if name.startswith("tolsey/") else "tests.timing"
            at = ", ".join(f"{called} in line {line}" for line, called in there)
            yield f"{name}: {len(there)} used, {most} listed. Use {way}: {at}"
        elif len(there) < most:
            yield f"{name}: {len(there)} used, {most} listed. Run python -m tests.real_time --write"


def count_listed(text: str) -> dict[str, int]:
    """Read the list. Raises ValueError for a file that stands in it twice."""
    found: Counter[str] = Counter()
    for group in tomllib.loads(text)["reasons"]:
        twice = found.keys() & group["places"].keys()
        if twice:
            raise ValueError(f"listed twice: {', '.join(sorted(twice))}")
        found.update(group["places"])
    return dict(found)


def shrunk(text: str, found: Mapping[str, list[tuple[int, str]]]) -> str:
    """Return the list without what is left no more."""
    lines = []
    for line in text.splitlines():
        name, is_entry, most = line.strip().partition('" = ')
        if is_entry:
            left = min(int(most), len(found.get(name.strip('"'), ())))
            if not left:
                continue
            lines.append(f"{name}{is_entry}{left}")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    everywhere, kept = counted(), LIST.read_text()
    if "--write" in sys.argv:
        kept = shrunk(kept, everywhere)
        LIST.write_text(kept)
    sys.exit("\n".join(complaints(everywhere, count_listed(kept))) or 0)

"""Fields of messages, views and records are named where they are made, and nothing is packed into a call.

`python -m tests.plain_calls` is part of `make check`: two swapped texts pass every other check.
"""

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import tolsey

ROOT = Path(tolsey.__file__).parent
FOLDERS = ("actors", "storage")
MOST_UNNAMED = 3
KNOWN = {
    "Credits": "made in every turn of the ledger, in one place, where names cost time",
    "OrganizationState": "the same: `with_credits` makes it of its own values",
    "ActorPart": "made for every actor of a commit, in one place",
    "TurnPart": "made for every turn of a commit, in one place",
    "BatchOutcome": "made for every commit, in one place",
}


def of_decorators(node: ast.ClassDef) -> Iterator[Mapping[str | None, str]]:
    for found in node.decorator_list:
        call = found if isinstance(found, ast.Call) else ast.Call(found, [], [])
        if isinstance(call.func, ast.Name) and call.func.id == "dataclass":
            yield {one.arg: ast.unparse(one.value) for one in call.keywords}


def own_fields(node: ast.ClassDef) -> list[str]:
    return [
        ast.unparse(one.target)
        for one in node.body
        if isinstance(one, ast.AnnAssign)
        and "ClassVar" not in ast.unparse(one.annotation)
        and "init=False" not in (ast.unparse(one.value) if one.value else "")
    ]


def unnamed(root: Path = ROOT) -> Iterator[str]:
    """Name each class that takes more fields than three by position."""
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if not isinstance(node, ast.ClassDef) or node.name in KNOWN:
                    continue
                for options in of_decorators(node):
                    if options.get("kw_only") != "True" and len(own_fields(node)) > MOST_UNNAMED:
                        yield f"{file}:{node.lineno}: give {node.name} kw_only=True"


def packed(root: Path = ROOT) -> Iterator[str]:
    """Name each `*(a, b)` in a call or a display: what it holds can stand there itself."""
    for file in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            held: Sequence[ast.expr] = ()
            if isinstance(node, ast.Call):
                held = node.args
            elif isinstance(node, ast.Tuple | ast.List | ast.Set):
                held = node.elts
            for one in held:
                if isinstance(one, ast.Starred) and isinstance(one.value, ast.Tuple | ast.List):
                    yield f"{file}:{one.lineno}: take the values out of `*(...)`"


if __name__ == "__main__":
    sys.exit("\n".join([*unnamed(), *packed()]) or 0)

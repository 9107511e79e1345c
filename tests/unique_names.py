"""No public class of the service has the name of another: `python -m tests.unique_names`."""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import tolsey

ROOT = Path(tolsey.__file__).parent
SANDBOX = ROOT / "sandbox"
"""It stands in for other people's services, and calls what it has by their words."""


def classes(root: Path) -> Iterator[tuple[str, str]]:
    """Name each public class and its file."""
    for file in sorted(root.rglob("*.py")):
        if file.is_relative_to(SANDBOX):
            continue
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, file.relative_to(root.parent).as_posix()


def shared(root: Path = ROOT) -> Mapping[str, Sequence[str]]:
    """List the names that stand for more than one class, with where these are."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, file in classes(root):
        found[name].append(file)
    return {name: sorted(files) for name, files in found.items() if len(files) > 1}


if __name__ == "__main__":
    said = [
        f"{name} stands for a class each in {', '.join(files)}." for name, files in shared().items()
    ]
    sys.exit("\n".join([*said, "Give the newer ones other names."]) if said else 0)

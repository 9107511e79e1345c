"""Fails when `make mutants` left something alive that `survivors.toml` does not explain.

A mutant is known by the line that it changes: its number moves with every line above it.
"""

import ast
import json
import sys
import tomllib
from collections.abc import Iterator
from difflib import ndiff
from pathlib import Path
from typing import Final

MUTANTS: Final = Path("mutants")
EXPLAINED: Final = Path(__file__).with_name("survivors.toml")
SURVIVED, UNTESTED = {0}, {5, 33}
"""Exit codes by which mutmut tells that no test noticed a mutant, or that none ran it."""
NUMBER: Final = "__mutmut_"


def alive() -> Iterator[str]:
    """List what no test noticed, as `module.function: line -> line`; a mutant not tried is one."""
    for meta in sorted(MUTANTS.rglob("*.meta")):
        codes = json.loads(meta.read_text())["exit_code_by_key"]
        found = [key for key, code in codes.items() if code in SURVIVED | UNTESTED | {None}]
        sources = _functions(meta.with_suffix("")) if found else {}
        for key in found:
            name, _ = key.rsplit(".", 1)[1].split(NUMBER)
            changed = _changed(sources[f"{name}{NUMBER}orig"], sources[key.rsplit(".", 1)[1]])
            yield f"{meta.name.split('.')[0]}.{name.replace('x_', '', 1)}: {changed}"


def _functions(path: Path) -> dict[str, list[str]]:
    """Read each function's lines, but for the first: that is its name."""
    source = path.read_text()
    lines = source.splitlines()
    return {
        one.name: [line.strip() for line in lines[one.lineno : one.end_lineno]]
        for one in ast.walk(ast.parse(source))
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and NUMBER in one.name
    }


def _changed(before: list[str], after: list[str]) -> str:
    lines = list(ndiff(before, after))
    gone, come = ([line[2:] for line in lines if line.startswith(sign)] for sign in "-+")
    return f"{' '.join(gone)} -> {' '.join(come)}"


def main() -> int:
    """Print what is not explained, and what is explained and dead: both are to be mended."""
    reasons = tomllib.loads(EXPLAINED.read_text())["reasons"]
    explained = {one for group in reasons for one in group["mutants"]}
    found = set(alive())
    for one in sorted(found - explained):
        print(f"not explained: {one}")  # noqa: T201 - what it is for
    for one in sorted(explained - found):
        print(f"explained, and noticed by a test: {one}")  # noqa: T201 - as above
    print(f"{len(found)} mutants are alive, {len(found & explained)} of them explained")  # noqa: T201
    return int(found != explained)


if __name__ == "__main__":
    sys.exit(main())

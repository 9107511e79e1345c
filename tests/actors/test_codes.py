"""Every code that the source names is in the list of codes, under the statuses that it is answered with."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

import tolsey
from tolsey.actors import codes, refusals
from tolsey.actors.codes import CODES

ROOT: Final = Path(tolsey.__file__).parent
STAND_INS: Final = ("sandbox", "demo")
REFUSED_EARLY: Final = 3
"""Status, code and sentence begin what a refusal by position says."""
OUTCOMES: Final = ("Rejected", "_rejected", "ToolFailed", "replace")
OF_OTHERS: Final = ("Plan", "SyncGrantRefused", "failure")
"""Calls whose `code` is no error's."""
SAYS_A_CODE: Final = re.compile(
    r"\bcode\b|\bstatus = |problem\(|ejected\(|\b[45]\d\d, *[\"\n]|\b[45]\d\d,$", re.MULTILINE
)

Said = tuple[str, int | None]


@cache
def texts() -> dict[Path, str]:
    return {
        path: path.read_text()
        for path in sorted(ROOT.rglob("*.py"))
        if path.relative_to(ROOT).parts[0] not in STAND_INS
    }


def sources() -> Iterator[ast.Module]:
    """Parse every file that may name a code: the others are most, and parsing takes seconds."""
    for text in texts().values():
        if SAYS_A_CODE.search(text):
            yield ast.parse(text)


def constant(node: ast.expr | None) -> str | int | None:
    return (
        node.value if isinstance(node, ast.Constant) and isinstance(node.value, str | int) else None
    )


class Classes:
    """The refusals of the source, with the status and code that each inherits."""

    def __init__(self, trees: list[ast.Module]) -> None:
        self._own: dict[str, dict[str, str | int]] = {}
        self._bases: dict[str, list[str]] = {}
        for tree in trees:
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    self._bases[node.name] = [
                        one.id for one in node.bases if isinstance(one, ast.Name)
                    ]
                    self._own[node.name] = dict(self._attributes(node))

    def _attributes(self, node: ast.ClassDef) -> Iterator[tuple[str, str | int]]:
        for line in node.body:
            if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                value = constant(line.value)
                if value is not None:
                    yield line.targets[0].id, value

    def inherited(self, name: str, attribute: str) -> str | int | None:
        if attribute in self._own.get(name, {}):
            return self._own[name][attribute]
        found = (self.inherited(base, attribute) for base in self._bases.get(name, []))
        return next((one for one in found if one is not None), None)

    def are_refusals(self, name: str) -> bool:
        return name == "Refusal" or any(
            self.are_refusals(base) for base in self._bases.get(name, [])
        )

    def said(self) -> Iterator[Said]:
        for name in self._own:
            code, status = (self.inherited(name, one) for one in ("code", "status"))
            if self.are_refusals(name) and isinstance(code, str) and isinstance(status, int):
                yield code, status


def said_by(call: ast.Call, classes: Classes) -> Iterator[Said]:
    """Read the codes that a call names, with their status where the call or its class says one."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    given = {one.arg: one.value for one in call.keywords}
    code = constant(given.get("code"))
    if isinstance(code, str) and name not in OF_OTHERS:
        status = constant(given.get("status")) or classes.inherited(name, "status")
        yield code, status if isinstance(status, int) else None
    first, second = ([constant(one) for one in call.args[:2]] + [None, None])[:2]
    if name == "problem" and isinstance(first, int) and isinstance(second, str):
        yield second, first
    if name == "Rejected" and isinstance(first, str):
        yield first, None
    if name == "_rejected" and isinstance(second, str):
        yield second, None


def said_by_tuple(node: ast.Tuple) -> Iterator[Said]:
    """Read what refuses a request's head: `(status, code, sentence, …)`."""
    values = [constant(one) for one in node.elts]
    if len(values) > REFUSED_EARLY and isinstance(values[0], int) and isinstance(values[1], str):
        yield values[1], values[0]


@cache
def said() -> dict[str, set[int | None]]:
    trees = list(sources())
    classes = Classes(trees)
    found = defaultdict[str, set[int | None]](set)
    for code, status in classes.said():
        found[code].add(status)
    for tree in trees:
        for node in ast.walk(tree):
            pairs = said_by(node, classes) if isinstance(node, ast.Call) else iter(())
            if isinstance(node, ast.Tuple):
                pairs = said_by_tuple(node)
            for code, status in pairs:
                found[code].add(status)
    return found


def test_every_code_of_the_source_is_listed_with_its_statuses() -> None:
    for code, statuses in said().items():
        assert code in CODES, f"{code} is not in tolsey/actors/codes.py"
        listed = set(CODES[code].statuses)
        assert statuses - {None} <= listed, (
            f"{code} is answered with {statuses}, listed with {listed}"
        )


def test_every_listed_code_is_somewhere_in_the_source() -> None:
    named = [text for path, text in texts().items() if path.name != "codes.py"]
    of_the_framework = {status.name.lower() for status in HTTPStatus}
    for code in CODES.keys() - of_the_framework:
        assert any(f'"{code}' in text for text in named), f"nothing answers {code}"


def test_the_search_sees_codes_of_classes_calls_and_heads() -> None:
    found = said()
    assert {403, None} >= found["foreign_origin"] > set()
    assert found["ambiguous_length"] == {400}
    assert found["already_refunded"] == {refusals.Conflict.status}
    assert found["note_full"] == {None}


def test_the_page_of_codes_is_the_list() -> None:
    page = (ROOT.parent / "docs" / "codes.md").read_text()
    assert page == codes.as_page(), "python -m tolsey.actors.codes > docs/codes.md"


def test_meanings_are_sentences_and_groups_are_apart() -> None:
    assert sum(len(group) for group in codes.GROUPS.values()) == len(CODES)
    assert all(one.meaning[0].isupper() and one.meaning.endswith(".") for one in CODES.values())

"""The check that keeps fields named says what it is for, and lets the rest be."""

from pathlib import Path

import pytest

from tests.plain_calls import packed, unnamed

FOUR = "    a: str\n    b: str\n    c: str\n    d: str\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "actors").mkdir()
    return tmp_path


@pytest.mark.parametrize("decorator", ["@dataclass", "@dataclass(frozen=True)"])
def test_a_fourth_field_has_to_be_named(root: Path, decorator: str) -> None:
    file = root / "actors" / "messages.py"
    file.write_text(f"{decorator}\nclass Sent:\n{FOUR}")
    assert list(unnamed(root)) == [f"{file}:2: give Sent kw_only=True"]
    file.write_text(f"@dataclass(kw_only=True)\nclass Sent:\n{FOUR}")
    assert list(unnamed(root)) == []


def test_three_fields_may_stand_by_position_and_a_class_variable_is_none(root: Path) -> None:
    three = FOUR.replace("    d: str\n", "    d: ClassVar[str] = ''\n")
    (root / "actors" / "messages.py").write_text(f"@dataclass\nclass Sent:\n{three}")
    assert list(unnamed(root)) == []


@pytest.mark.parametrize("line", ["f(*(a, b), c=1)", "x = (*(a, b), c)", "x = {*[a, b]}"])
def test_nothing_is_packed(root: Path, line: str) -> None:
    file = root / "actors" / "turns.py"
    file.write_text(line)
    assert list(packed(root)) == [f"{file}:1: take the values out of `*(...)`"]
    file.write_text("f(*some, *(one for one in some))")
    assert list(packed(root)) == []

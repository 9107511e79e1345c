"""`docs/operate/settings.md`, made of what `Settings` says: `python -m tests.settings_page > docs/operate/settings.md`."""

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic.fields import FieldInfo

from tolsey.settings import Settings

INTRODUCTION: Final = """# Settings

They come from the environment, or from a file `.env` where the service starts; the environment wins. One that cannot be read stops the
start with a line that names it. A missing credential never does: the routes that need it answer 503 and name the variable, and
`tolsey doctor` lists them. `LOG_LEVEL` (debug, info, warning or error) is read from the environment alone.
This page is made of `tolsey/settings.py`: `python -m tests.settings_page > docs/operate/settings.md`.
"""


def meanings() -> Iterator[tuple[str, str]]:
    """Read the sentence under each setting."""
    (made,) = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(made, ast.ClassDef)
    for said, below in zip(made.body, made.body[1:], strict=False):
        if isinstance(said, ast.AnnAssign) and isinstance(said.target, ast.Name):
            is_told = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            yield said.target.id, str(below.value.value) if is_told else ""  # type: ignore[attr-defined] # as just asked


def default_of(field: FieldInfo) -> str:
    """Write what a setting is when nobody sets it."""
    found = field.get_default(call_default_factory=True)
    if found is None or found == "" or not isinstance(found, str | int | float | Path):
        return ""
    return f"`{str(found).lower() if isinstance(found, bool) else found}`"


def as_page() -> str:
    """Write the page: one row for each setting."""
    rows = [
        f"| `{name.upper()}` | {default_of(Settings.model_fields[name])} | {' '.join(meaning.split())} |"
        for name, meaning in meanings()
        if name in Settings.model_fields
    ]
    return (
        "\n".join([INTRODUCTION, "| variable | default | meaning |", "|---|---|---|", *rows]) + "\n"
    )


if __name__ == "__main__":
    sys.stdout.write(as_page())

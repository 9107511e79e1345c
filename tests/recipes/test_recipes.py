"""The recipes of `docs/contributing.md`: each is a patch here, touches few files, and still works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
MOST_FILES = {
    "route": 3,
    "tool": 2,
    "page": 3,
    "scope": 1,
    "webhook_header": 1,
    "error_code": 1,
    "setting": 2,
    "payment_event": 3,
    "actor_kind": 7,
    "ledger_entry": 3,
}


def touched(name: str) -> list[str]:
    return re.findall(r"^\+\+\+ b/(.+)$", (HERE / f"{name}.patch").read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", MOST_FILES)
def test_what_someone_new_adds_touches_few_files(name: str) -> None:
    assert 1 <= len(touched(name)) <= MOST_FILES[name]


def test_every_recipe_is_told_in_the_docs() -> None:
    answered = (PROJECT / "docs" / "contributing.md").read_text()
    assert {path.stem for path in HERE.glob("*.patch")} == set(MOST_FILES)
    for name in MOST_FILES:
        assert f"tests/recipes/{name}.patch" in answered, name
        for file in touched(name):
            folder = str(Path(file).parent) if "/" in file else file
            assert folder in answered, f"{name} touches {file}"


@pytest.mark.slow
def test_all_recipes_in_one_project_do_what_they_are_for(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for folder in ("tolsey", "tests"):
        shutil.copytree(
            PROJECT / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(PROJECT / "pyproject.toml", project)
    for name in MOST_FILES:
        applied = subprocess.run(
            ["git", "apply", "-C1", str(HERE / f"{name}.patch")],  # noqa: S607 - a developer has it
            cwd=project,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert applied.returncode == 0, f"{name} no longer fits: {applied.stderr}"
    checked = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/recipes/checks.py"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout[-8000:] + checked.stderr[-2000:]
    assert f"{len(MOST_FILES)} passed" in checked.stdout

"""`make nightly`: tonight's parts, each once for a commit, and a report."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.ci import nightly
from tests.ci.nightly import CAMPAIGNS, choose_parts, list_parts
from tests.ci.stages import ROOT, Stage

PARTS = list_parts(7, {"3.12": "/opt/python3.12"})


def names(night: int, only: str | None = None) -> list[str]:
    return [part.name for part in choose_parts(PARTS, night, only)]


def test_seven_nights_run_every_campaign() -> None:
    nights = [set(names(night)) & set(CAMPAIGNS) for night in range(9, 16)]
    assert all(len(tonight) == 1 for tonight in nights)
    assert set().union(*nights) == set(CAMPAIGNS)


def test_the_makefile_has_every_campaign() -> None:
    (line,) = re.findall(r"^CAMPAIGNS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert line.split() == list(CAMPAIGNS)


def test_every_night_fits_into_an_hour() -> None:
    for night in range(7):
        tonight = choose_parts(list_parts(night, {"3.12": "a", "3.13": "b"}), night, None)
        assert sum(part.limit_seconds for part in tonight) <= nightly.TOTAL_SECONDS


@pytest.mark.parametrize(
    ("only", "chosen"),
    [
        ("slow", ["slow"]),
        ("campaign", list(CAMPAIGNS)),
        ("campaign-cluster", ["campaign-cluster"]),
        ("python", ["python-3.12"]),
        ("seed", ["seed-7"]),
        ("conformance", ["conformance"]),
    ],
)
def test_one_part_runs_whole(only: str, chosen: list[str]) -> None:
    assert names(7, only) == chosen


def test_a_name_of_no_part_is_refused_with_the_names() -> None:
    with pytest.raises(ValueError, match="ONLY=slo names no part: slow, "):
        names(7, "slo")


def test_a_python_that_pyenv_keeps_off_the_path_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    other = next(version for version in nightly.VERSIONS if version != own)
    folder = tmp_path / "versions" / f"{other}.1" / "bin"
    folder.mkdir(parents=True)
    kept = folder / f"python{other}"
    kept.symlink_to(sys.executable)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    assert nightly.find_pythons() == {other: str(kept)}


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run small parts in place of the real ones; return the file that says which ran."""
    ran = tmp_path / "ran"

    def small(name: str, *, passes: bool, limit_seconds: int = 60) -> Stage:
        code = (
            f"import os; open({str(ran)!r}, 'a').write('{name} ')\n"
            f"""open(os.environ['TEST_RESULTS'], 'w').write('{{"passed": 1}}')\n"""
            f"raise SystemExit({int(not passes)})"
        )
        command = [sys.executable, "-c", code]
        return Stage(name=name, limit_seconds=limit_seconds, commands=[command])

    parts = [
        small("green", passes=True),
        small("red", passes=False),
        small("long", passes=True, limit_seconds=nightly.TOTAL_SECONDS + 1),
    ]
    monkeypatch.setattr(nightly, "HOME", tmp_path / "state")
    monkeypatch.setattr(nightly, "find_pythons", dict)
    monkeypatch.setattr(nightly, "list_parts", lambda *_: parts)
    monkeypatch.setattr(nightly, "read_commit", lambda: "abc")
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return ran


def test_what_passed_at_this_commit_is_not_run_again(ran: Path, tmp_path: Path) -> None:
    assert nightly.main(7, None) == 1
    assert ran.read_text().split() == ["green", "red"]
    assert nightly.main(7, None) == 1
    assert ran.read_text().split() == ["green", "red", "red"]
    assert nightly.main(7, "green") == 0
    assert ran.read_text().split()[-1] == "green"
    report = (tmp_path / "state" / "report.md").read_text()
    assert "# Nightly run 7 of abc" in report
    assert "1 passed, 0 failed" in report


def test_the_report_names_what_failed_and_what_was_not_started(ran: Path, tmp_path: Path) -> None:
    nightly.main(7, None)
    report = (tmp_path / "state" / "report.md").read_text()
    assert "RED red: " in report
    assert "Not started, because the hour was up: long." in report

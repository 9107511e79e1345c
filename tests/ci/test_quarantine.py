"""Which failed tests may pass CI, and what the list of them may hold."""

from pathlib import Path

import pytest

from tests.ci.quarantine import (
    LIST,
    MOST_LISTED,
    ROOT,
    UNCOUNTED_SECONDS,
    Entry,
    Failure,
    Quarantine,
    Verdict,
    judge,
    list_problems,
    read_quarantine,
    write_entry,
)

ID = "tests/runtime/test_shard.py::test_a[b]"
CHANCE = Failure(ID, has_server=True, is_exact=False, passed_alone=True)
OTHERS = tuple(Entry(f"tests/test_{n}.py::test", 3, "c") for n in range(MOST_LISTED))


@pytest.mark.parametrize(
    ("failure", "listed", "verdict"),
    [
        (CHANCE, (), Verdict({}, [ID], [Entry(ID, 4, "")])),
        (CHANCE, OTHERS[:9], Verdict({}, [ID], [Entry(ID, 4, "")])),
        (CHANCE, (*OTHERS[:9], Entry(ID, 3, "c")), Verdict({}, [ID], [])),
        (
            CHANCE,
            OTHERS,
            Verdict({ID: "passed when it ran alone, but 10 tests are listed"}, [], []),
        ),
        (
            Failure(ID, has_server=True, is_exact=False, passed_alone=False),
            (Entry(ID, 3, "c"),),
            Verdict({ID: "failed again when it ran alone"}, [], []),
        ),
        (
            Failure(ID, has_server=True, is_exact=True, passed_alone=True),
            (Entry(ID, 3, "c"),),
            Verdict({ID: "passed when it ran alone, but is marked exact"}, [], []),
        ),
        (
            Failure(ID, has_server=False, is_exact=False, passed_alone=True),
            (Entry(ID, 3, "c"),),
            Verdict({ID: "passed when it ran alone, but needs no server"}, [], []),
        ),
    ],
    ids=[
        *("a first time", "a tenth entry", "a listed test beside nine", "an eleventh entry"),
        *("red again", "exact", "without a server"),
    ],
)
def test_a_failure_passes_only_as_the_rule_says(
    failure: Failure, listed: tuple[Entry, ...], verdict: Verdict
) -> None:
    assert judge([failure], Quarantine(3, listed)) == verdict


def test_failures_of_one_run_share_the_places_that_are_left() -> None:
    failures = [
        Failure(f"tests/test_new.py::test_{n}", has_server=True, is_exact=False, passed_alone=True)
        for n in range(3)
    ]
    verdict = judge(failures, Quarantine(3, OTHERS[:8]))
    assert verdict.quarantined == [one.id for one in failures[:2]]
    assert list(verdict.red) == [failures[2].id]


@pytest.mark.parametrize(
    ("quarantine", "uncounted", "problem"),
    [
        (Quarantine(), UNCOUNTED_SECONDS + 1, None),
        (Quarantine(4, (Entry(ID, 4, "c"),)), UNCOUNTED_SECONDS, None),
        (Quarantine(8, (Entry(ID, 4, "c"),)), 0, None),
        (Quarantine(9, (Entry(ID, 4, "c"),)), 0, "was listed for 5 landings"),
        (Quarantine(4, (Entry(ID, 5, "c"),)), 0, "which has not been yet"),
        (Quarantine(4, (Entry(ID, 0, "c"),)), 0, "which has not been yet"),
        (Quarantine(4, (Entry(ID, 4, " "),)), 0, "has no cause"),
        (Quarantine(4, (Entry(ID, 4, "c"), Entry(ID, 3, "c"))), 0, "is listed 2 times"),
        (Quarantine(4, (*OTHERS, Entry(ID, 4, "c"))), 0, "11 tests are listed; 10 may be"),
        (Quarantine(4, (Entry(ID, 4, "c"),)), UNCOUNTED_SECONDS + 1, "raise `landing` by one"),
    ],
)
def test_the_list_is_held_to_its_rules(
    quarantine: Quarantine, uncounted: int, problem: str | None
) -> None:
    problems = list_problems(quarantine, uncounted)
    if problem is None:
        assert problems == []
    else:
        assert len(problems) == 1
        assert problem in problems[0]


def test_what_ci_prints_is_read_again(tmp_path: Path) -> None:
    entry = Entry('tests/test_a.py::test[a "b" \\n]', 3, "")
    file = tmp_path / "quarantine.toml"
    file.write_text(f"landing = 2\n{write_entry(entry)}")
    assert read_quarantine(file) == Quarantine(2, (entry,))


def test_a_field_that_is_not_known_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "quarantine.toml"
    file.write_text('landing = 2\n[[test]]\nid = "a"\nadded = 1\ncause = "c"\nuntil = 9\n')
    with pytest.raises(ValueError, match="until"):
        read_quarantine(file)


def test_the_example_in_the_list_is_an_entry(tmp_path: Path) -> None:
    text = (ROOT / LIST).read_text()
    start = text.index("# [[test]]")
    example = [line.removeprefix("# ") for line in text[start:].splitlines()[:4]]
    file = tmp_path / "quarantine.toml"
    file.write_text("\n".join(["landing = 1", *example]))
    (entry,) = read_quarantine(file).entries
    assert entry.added == 1

"""The check of real time finds every way to read it or to wait for it, and its list can only shrink."""

import pytest

from tests.real_time import complaints, count_listed, places, shrunk

FOUND = {"tolsey/a.py": [(3, "time.time")], "tests/b.py": [(1, "asyncio.sleep"), (2, "time.sleep")]}
LIST = """[[reasons]]
why = "They stay."
[reasons.places]
"tolsey/a.py" = 1
"tests/b.py" = 2
"""


@pytest.mark.parametrize(
    ("source", "called"),
    [
        ("import asyncio\nasync def f(): await asyncio.sleep(1)", "asyncio.sleep"),
        ("import asyncio as aio\nasync def f(): await aio.wait_for(g(), 1)", "asyncio.wait_for"),
        ("import anyio\nwith anyio.fail_after(3): ...", "anyio.fail_after"),
        ("from anyio import move_on_after as soon\nwith soon(3): ...", "anyio.move_on_after"),
        ("import time\nwait = time.sleep", "time.sleep"),
        ("import time\nnow = time.monotonic()", "time.monotonic"),
        ("from time import time\nnow = time()", "time.time"),
        ("from datetime import datetime, UTC\nnow = datetime.now(UTC)", "datetime.datetime.now"),
        ("import datetime\nnow = datetime.datetime.now()", "datetime.datetime.now"),
        ("import datetime as dt\ntoday = dt.date.today()", "datetime.date.today"),
        ("def f(loop): loop.call_later(1, g)", "call_later"),
        ("def f(loop): loop.call_at(1, g)", "call_at"),
        ("async def f(): await g.wait({task}, timeout=1)", "wait(timeout=)"),
    ],
)
def test_each_way_to_use_the_real_time_is_found(source: str, called: str) -> None:
    assert [name for _, name in places(source, clocks=True)] == [called]


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nasync def f(): await asyncio.sleep(0)",
        "async def f(time): await time.sleep(1); time.monotonic(); time.now()",
        "async def f(): await event.wait()",
        "from datetime import datetime\nat = datetime.fromisoformat('2026-01-01')",
    ],
)
def test_what_waits_for_no_time_or_is_handed_one_is_none(source: str) -> None:
    assert list(places(source, clocks=True)) == []


def test_a_test_may_read_a_clock_and_not_wait_for_it() -> None:
    source = "import time\nbegan = time.monotonic()\ntime.sleep(1)"
    assert list(places(source, clocks=False)) == [(3, "time.sleep")]


def test_the_list_holds_in_both_directions() -> None:
    listed = count_listed(LIST)
    assert list(complaints(FOUND, listed)) == []
    more = {**FOUND, "tolsey/c.py": [(9, "time.time")]}
    assert list(complaints(more, listed)) == [
        "tolsey/c.py: 1 used, 0 listed. Use Time (tolsey/runtime/clock.py): time.time in line 9"
    ]
    fewer = {**FOUND, "tests/b.py": [(1, "asyncio.sleep")]}
    assert [one.partition(":")[0] for one in complaints(fewer, listed)] == ["tests/b.py"]


def test_the_list_is_rewritten_only_shorter() -> None:
    fewer = {"tests/b.py": [(1, "asyncio.sleep")], "tolsey/c.py": [(9, "time.time")]}
    assert count_listed(shrunk(LIST, fewer)) == {"tests/b.py": 1}
    assert shrunk(LIST, FOUND) == LIST


def test_a_file_is_listed_once() -> None:
    with pytest.raises(ValueError, match=r"tolsey/a\.py"):
        count_listed(LIST + LIST)

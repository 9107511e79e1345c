import anyio
import pytest

from tolsey.http.chat import telling
from tolsey.http.chat.telling import BREATH, EVENTS_WAITING, Telling


async def test_what_is_told_is_read_in_order_and_then_ends() -> None:
    answered = Telling(keeps=True)
    assert await answered.tell("delta", text="é\n\n")
    assert await answered.tell("done", spent=1)
    answered.end()
    read = [said async for said in answered.body()]
    assert answered.kept == [
        'event: delta\ndata: {"text":"é\\n\\n"}\n\n'.encode(),
        b'event: done\ndata: {"spent":1}\n\n',
    ]
    assert b"".join(read) == b"".join(answered.kept)
    assert len(read) == 1  # one write for what was there at once
    answered.stop_reading()


async def test_a_long_silence_is_broken_by_a_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "QUIET_SECONDS", 0.01)
    answered = Telling(keeps=False)
    body = answered.body()
    assert await anext(body) == BREATH
    await answered.tell("done")
    answered.end()
    with anyio.fail_after(60):
        while (said := await anext(body)) == BREATH:
            pass
    assert said.startswith(b"event: done")
    assert await anext(body, None) is None
    answered.stop_reading()


async def test_who_reads_nothing_for_long_is_told_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "READING_SECONDS", 0.05)
    answered = Telling(keeps=False)
    heard = [await answered.tell("delta", text="x") for _ in range(EVENTS_WAITING + 1)]
    assert heard == [True] * EVENTS_WAITING + [False]
    answered.stop_reading()
    assert not await answered.tell("delta", text="x")
    assert [said async for said in answered.body()] == []
    answered.end()

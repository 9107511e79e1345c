"""No secret and no person's address reaches a log."""

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile

import pytest
import structlog

from tolsey import logs


@pytest.fixture(autouse=True)
def configured() -> Iterator[None]:
    logs.configure("info")
    yield
    root = logging.getLogger()
    root.handlers = [one for one in root.handlers if not isinstance(one, logs.Libraries)]
    structlog.reset_defaults()


@pytest.mark.parametrize(
    "secret",
    [
        "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",
        "shpss_0123456789abcdef0123456789abcdef",
        "sk_live_51Habcdefghijklmnop",
        "rk_live_51Habcdefghijklmnop",
        "whsec_abcdefghijklmnop",
        "bei_abcdefghijklmnop",
        "Bearer abcdefghijklmnop",
        "bob@biller.example",
        "s1:0123456789abcdef0123456789abcdef",
        "v1.k1.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "+15550142357",
        "4111 1111 1111 1111",
        "postgresql://tolsey:hunter2@db/tolsey",
    ],
)
def test_the_look_of_a_secret_is_enough(secret: str, capsys: pytest.CaptureFixture[str]) -> None:
    structlog.get_logger().info(
        "it.happened",
        detail=f"said {secret} twice",
        parts=[{"a": secret}, {secret: 1}, {secret}],
        raw=secret.encode(),
        error=ValueError(secret),
    )

    written = capsys.readouterr().err
    assert secret not in written
    assert json.loads(written)["event"] == "it.happened"


def test_the_name_of_a_secret_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    structlog.get_logger().warning(
        "it.happened", client_secret="hunter2", tokens=3, nested={"password": "x"}
    )

    written = json.loads(capsys.readouterr().err)
    assert written["client_secret"] == "[masked]"
    assert written["tokens"] == 3
    assert written["nested"] == {"password": "[masked]"}


def test_a_number_stays_unless_it_is_a_cards(capsys: pytest.CaptureFixture[str]) -> None:
    structlog.get_logger().info(
        "it.happened", order_id=5510283722912, rows=3, ok=True, part=0.5, card=4111111111111111
    )

    written = json.loads(capsys.readouterr().err)
    kept = {name: written[name] for name in ("order_id", "rows", "ok", "part", "card")}
    assert kept == {
        "order_id": 5510283722912,
        "rows": 3,
        "ok": True,
        "part": 0.5,
        "card": "[masked]",
    }


@pytest.mark.parametrize("library", ["asyncio", "hypercorn.error", "asyncpg", "aiocron"])
def test_what_a_library_logs_is_masked_as_our_own_lines_are(
    library: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()  # without pytest's own handlers
    ours = [one for one in root.handlers if isinstance(one, logs.Libraries)]
    monkeypatch.setattr(root, "handlers", ours)
    said = logging.getLogger(library)
    monkeypatch.setattr(said, "handlers", [])  # a server of another test may have left it one
    try:
        int("rk_live_51Habcdefghijklmnop")
    except ValueError:
        said.exception("Failed for %s", "bob@biller.example")
    said.warning("too few: %s %s", "bob@biller.example")
    said.info("not of interest")

    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["event"], first["logger"], first["level"]) == ("library", library, "error")
    assert first["said"] == "Failed for [masked]"
    assert "[masked]" in first["exception"]
    assert second["said"] == "too few: %s %s"


def test_the_last_words_of_a_process_and_of_a_thread_are_masked() -> None:
    program = """
import threading
from tolsey import logs
logs.configure()
logs.tell_last_words()
def fail():
    raise ValueError("bob@biller.example")
thread = threading.Thread(target=fail)
thread.start()
thread.join()
raise ValueError("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")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.count("ValueError: [masked]") == 2
    # Lines of the program are quoted, too.
    assert "biller" not in ended.stderr
    assert "f85632530" not in ended.stderr


def test_a_newline_cannot_forge_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    structlog.get_logger().info("it.happened", path='/x\n{"event":"forged"}')

    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_traceback_hides_what_it_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        int("rk_live_51Habcdefghijklmnop")
    except ValueError:
        structlog.get_logger().exception("it.failed")

    written = capsys.readouterr().err
    assert "rk_live" not in written
    assert "ValueError" in written


def test_on_a_terminal_a_line_is_for_people_and_elsewhere_it_is_json(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal, os.fdopen(ours, "rb") as seen:
        monkeypatch.setattr(sys, "stderr", terminal)
        logs.configure("info")
        structlog.get_logger().info("request", path="/x", status=200, client_secret="hunter2")
        line = seen.readline().decode()
    words = re.sub(r"\x1b\[[0-9;]*m", "", line)
    assert re.search(r"\[info +\] request +client_secret=\[masked\] path=/x status=200", words)


def test_a_traceback_on_a_terminal_hides_what_it_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal, os.fdopen(ours, "rb") as seen:
        monkeypatch.setattr(sys, "stderr", terminal)
        logs.configure("info")
        try:
            int("rk_live_51Habcdefghijklmnop")
        except ValueError:
            structlog.get_logger().exception("it.failed")
        structlog.get_logger().info("the.end")
        lines = iter(lambda: seen.readline().decode(), "")
        written = "".join(takewhile(lambda line: "the.end" not in line, lines))
    assert "ValueError: invalid literal" in written
    assert "rk_live" not in written

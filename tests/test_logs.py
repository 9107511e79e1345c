"""No secret and no person's address reaches a log."""

import json
import os
import re
import sys
from collections.abc import Iterator

import pytest
import structlog

from tolsey import logs


@pytest.fixture(autouse=True)
def configured() -> Iterator[None]:
    logs.configure("info")
    yield
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
    ],
)
def test_the_look_of_a_secret_is_enough(secret: str, capsys: pytest.CaptureFixture[str]) -> None:
    structlog.get_logger().info("it.happened", detail=f"said {secret} twice", parts=[{"a": secret}])

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

"""The rule of `Idempotency-Key` without a request: what runs, what is repeated, what is refused."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tolsey.actors.refusals import Refusal
from tolsey.http.web.repeats.replay import (
    Fate,
    fate_of,
    fingerprint_of,
    is_key,
    kept_refusal,
    refusal_in,
)
from tolsey.storage.idempotency import KeyRow

AT = datetime(2026, 7, 1, tzinfo=UTC)
OURS = fingerprint_of("POST", "/api/things?", b"{}")


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("a", True),
        ("~" * 255, True),
        ("~" * 256, False),
        ("", False),
        ("a\tb", False),
        ("clé", False),
    ],
)
def test_a_key_is_some_printable_ascii_characters(text: str, fits: bool) -> None:
    assert is_key(text) is fits


def test_a_request_is_another_with_another_verb_place_or_body() -> None:
    others = [
        fingerprint_of("PUT", "/api/things?", b"{}"),
        fingerprint_of("POST", "/api/things?a=1", b"{}"),
        fingerprint_of("POST", "/api/things?", b"[]"),
        fingerprint_of("POST", "/api/things?\n", b""),
    ]

    assert len({OURS, *others}) == 5
    # Rows from before an upgrade hold what was made then.
    assert OURS.hex() == "ab0e360794c675b030bd43b763408bc5793ebcab1c8fbfaf76a936ab912b0bf1"


@pytest.mark.parametrize(
    ("fingerprint", "answer", "held", "fate"),
    [
        (OURS, None, True, Fate.RUN),
        (OURS, None, False, Fate.IN_PROGRESS),
        (OURS, {}, True, Fate.REPLAY),
        (OURS, {}, False, Fate.REPLAY),
        (b"another", None, False, Fate.KEY_REUSED),
        (b"another", {}, True, Fate.KEY_REUSED),
    ],
)
def test_a_key_is_one_requests_and_runs_once(
    fingerprint: bytes, answer: dict[str, Any] | None, held: bool, fate: Fate
) -> None:
    assert (
        fate_of(
            KeyRow(fingerprint=fingerprint, seed="seed", created_at=AT, answer=answer, held=held),
            OURS,
        )
        is fate
    )


@pytest.mark.parametrize("status", [401, 403, 408, 425, 429, 500, 503])
def test_what_says_nothing_of_the_request_is_no_answer_to_keep(status: int) -> None:
    assert kept_refusal(Refusal("Try later.", status=status)) is None


@pytest.mark.parametrize("status", [400, 402, 404, 409, 422, 499])
def test_a_refusal_is_told_again_word_by_word(status: int) -> None:
    refusal = Refusal("Not so.", status=status, code="not_so", required=3)
    kept = kept_refusal(refusal)

    assert kept == {
        "status": status,
        "code": "not_so",
        "detail": "Not so.",
        "fields": {"required": 3},
    }
    again = refusal_in(kept)
    assert again is not None
    assert vars(again) == vars(refusal)


def test_what_was_carried_out_is_no_refusal() -> None:
    assert refusal_in({"status": 201, "body": "{}", "contentType": "application/json"}) is None

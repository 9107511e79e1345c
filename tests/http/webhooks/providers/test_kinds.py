"""How each kind of provider proves an event, by the vectors that they publish, and by what forgers try."""

import base64
import hmac

import pytest

from tolsey.actors.bodies import Unreadable
from tolsey.http.webhooks.providers.kinds import CODE_HOST, KINDS, MAIL, MESSAGING, ProviderKind
from tolsey.http.webhooks.signatures import Forged, Stale

Proof = tuple[ProviderKind, bytes, list[tuple[bytes, bytes]], bytes, float]

PUBLISHED: dict[str, Proof] = {
    "standard webhooks": (
        MAIL,
        b'{"test": 2432232314}',
        [
            (b"webhook-id", b"msg_p5jXN8AQM9LWM0D4loKWxJek"),
            (b"webhook-timestamp", b"1614265330"),
            (b"webhook-signature", b"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ],
        b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        1614265330,
    ),
    "github": (
        CODE_HOST,
        b"Hello, World!",
        [
            (
                b"x-hub-signature-256",
                b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
            )
        ],
        b"It's a Secret to Everybody",
        0,
    ),
    "slack": (
        MESSAGING,
        (
            b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
            b"&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
            b"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands"
            b"%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
            b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
        ),
        [
            (b"x-slack-request-timestamp", b"1531420618"),
            (
                b"x-slack-signature",
                b"v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
            ),
        ],
        b"8f742231b10e8888abcd99yyyzzz85a5",
        1531420618,
    ),
}


@pytest.mark.parametrize("published", sorted(PUBLISHED))
def test_what_a_provider_publishes_as_signed_is_proven_by_any_of_our_secrets(
    published: str,
) -> None:
    kind, body, headers, secret, at = PUBLISHED[published]
    kind.prove(body, headers, [b"another", secret], at)
    if kind is not CODE_HOST:  # which signs no time
        for off in (-301, 301):
            with pytest.raises(Stale):
                kind.prove(body, headers, [secret], at + off)
        kind.prove(body, headers, [secret], at + 299)


@pytest.mark.parametrize("published", sorted(PUBLISHED))
def test_what_was_not_signed_as_it_is_proves_nothing(published: str) -> None:
    kind, body, headers, secret, at = PUBLISHED[published]
    forgeries = [
        (body + b" ", headers, [secret]),
        (body, headers, [b"another"]),
        (body, headers, []),
        (body, [], [secret]),
        (body, [(name, b"") for name, _ in headers], [secret]),
        (body, [(name, value[:-2] + b"00") for name, value in headers], [secret]),
        (body, [*headers, headers[-1]], [secret]),  # two claims
        (body, [(name, value + b"\xff") for name, value in headers], [secret]),
    ]
    for forged in forgeries:
        with pytest.raises(Forged):
            kind.prove(*forged, at)


def test_a_mail_provider_may_name_its_headers_as_svix_does_and_sign_with_two_keys() -> None:
    _, body, headers, secret, at = PUBLISHED["standard webhooks"]
    renamed = [(name.replace(b"webhook", b"svix"), value) for name, value in headers]
    renamed[2] = (renamed[2][0], b"v1a,abc v1," + b"A" * 43 + b"= " + renamed[2][1])
    MAIL.prove(body, renamed, [secret], at)
    plain = b"not base64"
    signed = b"%b.%b.%b" % (headers[0][1], headers[1][1], body)
    digest = base64.b64encode(hmac.digest(plain, signed, "sha256"))
    MAIL.prove(body, [*headers[:2], (b"webhook-signature", b"v1," + digest)], [plain], at)


def test_an_event_is_named_by_what_was_signed() -> None:
    sent = [(b"webhook-id", b"msg_1"), (b"x-github-event", b"pull_request")]
    mail = MAIL.notice(b"", sent, {"type": "email.bounced"})
    assert (mail.event_id, mail.type) == ("msg_1", "email.bounced")
    code = CODE_HOST.notice(b"{}", [*sent, (b"x-github-delivery", b"1")], {"action": "opened"})
    again = CODE_HOST.notice(b"{}", [*sent, (b"x-github-delivery", b"2")], {"action": "opened"})
    assert code == again
    assert code.type == "pull_request.opened"
    said = MESSAGING.notice(b"", [], {"event_id": "Ev1", "event": {"type": "app_mention"}})
    assert (said.event_id, said.type) == ("Ev1", "app_mention")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("parsed", [{}, {"type": 7, "event_id": []}, {"type": "a b", "event": []}])
def test_an_event_without_a_name_is_unreadable(
    kind: ProviderKind, parsed: dict[str, object]
) -> None:
    with pytest.raises(Unreadable):
        kind.notice(b"", [], parsed)


def test_a_messaging_service_is_told_what_it_asks_and_nothing_longer() -> None:
    asked = {"type": "url_verification", "challenge": "x" * 2_000}
    assert MESSAGING.challenge(asked) == {"challenge": "x" * 1_000}
    assert MESSAGING.challenge({"type": "event_callback", "challenge": "x"}) is None
    assert MAIL.challenge(asked) is None

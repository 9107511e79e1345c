"""What gives power or leads to a person is masked wherever it stands in a text, and nothing else is."""

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tolsey.runtime.ids import new_id
from tolsey.scrubbing import MASK, is_card, scrub, scrub_anyway

WORDS = st.text(string.ascii_letters + string.digits + " ,;()[]{}\"'\n", max_size=30)
TOKENS = st.text(string.ascii_letters + string.digits, min_size=24, max_size=40)
OPENS = (*" \n\t,;([{<\"'=:", "")
PREFIXES = (
    *(
        "shpat_",
        "shpss_",
        "shpca_",
        "shppa_",
        "shpua_",
        "sk_live_",
        "rk_live_",
        "sk_test_",
        "whsec_",
    ),
    *("bei_", "reset_", "invite_", "sk-proj-", "apify_api_", "v1.k1.", "pi_3Q_secret_"),
)


def surrounded(text: str, before: str, after: str) -> str:
    return f"{before} {text} {after}"


@given(st.sampled_from(PREFIXES), TOKENS, WORDS, WORDS, st.sampled_from(OPENS))
def test_a_secret_is_known_by_its_prefix(
    prefix: str, token: str, before: str, after: str, opens: str
) -> None:
    assert prefix + token not in scrub(f"{before} {opens}{prefix}{token} {after}")


@given(st.binary(min_size=32, max_size=32), WORDS)
def test_what_has_no_prefix_is_known_by_its_name_or_its_scheme(raw: bytes, words: str) -> None:
    secret = "x" + raw.hex()
    for said in (
        *(f"Authorization: Bearer {secret}", f"authorization: Basic {secret}", f"bearer {secret}"),
        *(f'"client_secret": "{secret}"', f"password={secret}", f"https://x/?api_key={secret}&a=b"),
        *(f"Cookie: theme=dark; session={secret}", f"{{'token': '{secret}'}}"),
        *(f"postgresql://tolsey:{secret}@db.internal:5432/tolsey", f"redis://:p@{secret}@cache"),
        f"-----BEGIN RSA PRIVATE KEY-----\n{secret}\n-----END RSA PRIVATE KEY-----",
    ):
        assert secret not in scrub(f"{words} {said} {words}"), said


@given(st.emails(), WORDS, WORDS, st.sampled_from(OPENS))
@example("o'brien+tag@Example.org", "", "", "")
@example('"John Doe"@example.org', "", "", "")
@example("buyer@[198.51.100.7]", "", "", "")
@example("büyer@exämple.org", "", "", "")
def test_an_address_is_masked(email: str, before: str, after: str, opens: str) -> None:
    for spelled in (email, email.lower(), email.replace("@", "%40")):
        said = scrub(f"{before} {opens}{spelled} {after}")
        assert spelled not in said
        assert "@" not in said


PHONES = st.sampled_from(
    [
        *("+15550142357", "+1 555 014 2357", "+1 (555) 014-2357", "+49 (0)30 1234567"),
        *("+44 20 7946 0958", "0049 30 1234567", "%2B15550142357", "(555) 014-2357"),
        *("(555)014-2357", "555-014-2357", "555.014.2357", "1-555-014-2357", "020 7946 0958"),
        *("01 23 45 67 89", "0170/1234567", "030-1234567", "00491701234567"),
    ]
)


@given(PHONES, WORDS, WORDS)
def test_a_telephone_number_is_masked(phone: str, before: str, after: str) -> None:
    assert phone not in scrub(f"{before} call {phone} now {after}")


@given(st.from_regex(r"\+[1-9][0-9]{7,13}", fullmatch=True), WORDS)
def test_a_number_with_its_country_is_masked(phone: str, words: str) -> None:
    assert phone[1:] not in scrub(f"{words} {phone}")


def with_check_digit(digits: str) -> str:
    return next(f"{digits}{n}" for n in range(10) if is_card(f"{digits}{n}"))


CARDS = st.one_of(
    st.from_regex(r"4[0-9]{14}", fullmatch=True),
    st.from_regex(r"5[1-5][0-9]{13}", fullmatch=True),
    st.from_regex(r"3[47][0-9]{12}", fullmatch=True),
    st.from_regex(r"6011[0-9]{11}", fullmatch=True),
).map(with_check_digit)


@given(CARDS, st.sampled_from(("", " ", "-")), st.lists(st.integers(0, 10**6), max_size=3))
def test_a_card_is_masked_and_its_like_with_another_check_digit_is_not(
    card: str, between: str, numbers: list[int]
) -> None:
    spelled = between.join((card[:4], card[4:8], card[8:12], card[12:]))
    beside = " ".join(map(str, numbers))
    assert spelled not in scrub(f"{beside} {spelled} {beside}")
    other = card[:-1] + str((int(card[-1]) + 1) % 10)
    assert scrub(f"order_id {other}") == f"order_id {other}"


@pytest.mark.parametrize(
    "card",
    [
        *("4111111111111111", "4222222222222", "5555555555554444", "2223003122003222"),
        *("378282246310005", "6011111111111117", "30569309025904", "3566002020360505"),
    ],
)
def test_cards_that_issuers_give_for_tests_are_cards(card: str) -> None:
    assert is_card(card)
    assert scrub(card) == MASK


@pytest.mark.parametrize(
    "plain",
    [
        *("request", "commerce.webhook.orders.create", "/api/stores/{store_id}/export"),
        *("2026-11-23T05:45:00.123456Z", "2026-11-23 05:45:00+00:00", "198.51.100.237", "::1"),
        *("5510283722912", "1795412700123456", "corner.myshopify.com", "text/event-stream"),
        *("0.0123", "12 rows in 0.123 s", "10.5.2-rc1", "max_tokens=4096", "token unavailable"),
        *("a" * 43, "A_CONSTANT_NAME_OF_FORTY_THREE_CHARACTERS_1", "f" * 64),
        "0193d3a1-0123-7456-8901-012345678901",
        "https://demo.example/admin/api/2026-07/graphql.json",
    ],
)
def test_what_operators_read_stays(plain: str) -> None:
    assert scrub(plain) == plain


def test_ids_stay() -> None:
    for _ in range(2_000):
        ids = " ".join(map(new_id, ("store", "req", "usr", "org", "file")))
        assert scrub(f"/api/stores/{ids}") == f"/api/stores/{ids}"


RISKY = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *("@", "%40", "%2B", "+", "0", "00", "1", "(", ")", "-", ".", " ", ":", "=", "s1:"),
                *(
                    "555",
                    "014",
                    "2357",
                    "4111",
                    "1111",
                    "shpat_",
                    "sk_live_",
                    "whsec_",
                    "bei_",
                    "v1.",
                ),
                *(
                    "reset_",
                    "eyJ",
                    "AKIA",
                    "sk-",
                    "://",
                    "Bearer",
                    "token",
                    "cookie",
                    "cs_1_secret_",
                ),
                *(
                    "-----BEGIN PRIVATE KEY-----",
                    "[masked]",
                    "apify_api_",
                    "\n",
                    "é",
                    "3782",
                    "82246310005",
                ),
            ]
        ),
        st.text("abAB01_-.", min_size=1, max_size=24),
    ),
    max_size=14,
).map("".join)


@given(RISKY)
def test_the_short_look_passes_nothing_that_a_rule_masks(text: str) -> None:
    assert scrub(text) == scrub_anyway(text)


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", ["a_", "1 ", "secret", "%40", "(", '"', "v1."])
def test_a_long_text_takes_time_by_its_length(part: str) -> None:
    """One that grew with its square would take minutes."""
    assert len(scrub(part * 300_000)) > 0

import re
from pathlib import Path

import pytest
from rich.pretty import pretty_repr

import tolsey
from tests import settings_page
from tolsey.settings import Settings, SettingsError, read

EXAMPLE = Path(tolsey.__file__).parents[1] / "deploy" / "env.example"
TO_COME = {"CDN_ORIGINS"}
"""Settings of what is not built yet: nothing reads them."""
KEYRING = "k1:" + "A" * 43


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("BASE_URL", "DATABASE_URL", "REDIS_URL", "ENCRYPTION_KEYS", "CRON_SECRET"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BASE_URL", "ftp://example.com"),
        ("BASE_URL", "https://example.com/path"),
        ("DATABASE_URL", "mysql://secret@host/db"),
        ("REDIS_URL", "http://host"),
        ("ENCRYPTION_KEYS", "k1:c2hvcnQ"),
        ("ENCRYPTION_KEYS", "k1:" + "A" * 43 + ",k1:" + "B" * 43),
        ("CRON_SECRET", "too-short-secret"),
        ("COMMERCE_URL_TEMPLATE", "https://example.com"),
        ("COMMERCE_API_VERSION", "latest"),
        ("NEXT_PUBLIC_LIVE_SUBDOMAINS", "mcp,attic"),
        ("SPONSOR_PRICE_CENTS", "many"),
        ("LISTING_REVIEW", "never"),
        ("TRUSTED_PROXIES", "10.0.0.0/33"),
        ("CDN_ORIGIN_IMAGES", "nowhere"),
        ("PAYMENTS_PRICE_PRO_MONTHLY", "price_1,,price_2"),
        ("PAYMENTS_PRICE_PRO_MONTHLY", "price_1,"),
        ("PAYMENTS_PRICE_PRO_MONTHLY", " , "),
        ("PAYMENTS_PRICE_PRO_MONTHLY", "price_1 price_2"),
        ("PAYMENTS_PRICE_MAX20_YEARLY", "price_1, price_1"),
    ],
)
def test_an_unreadable_setting_is_named_in_one_line_without_its_value(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as caught:
        read()
    text = str(caught.value)
    assert text.startswith(f"{variable}: ")
    assert "\n" not in text
    assert value not in text


def test_a_public_address_needs_keys_that_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE_URL", "https://shop.example.com")
    with pytest.raises(SettingsError, match="ENCRYPTION_KEYS"):
        read()
    monkeypatch.setenv("ENCRYPTION_KEYS", KEYRING)
    assert read().is_https


def test_nothing_set_is_a_working_local_service() -> None:
    settings = read()
    assert settings.base_url == "http://127.0.0.1:8000"
    assert settings.is_local
    assert settings.cron_secret is None
    assert settings.sponsor_price_cents == 50_000


def test_lists_and_origins_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXT_PUBLIC_LIVE_SUBDOMAINS", "mcp, cdn")
    monkeypatch.setenv("TRUSTED_PROXIES", "10.0.0.0/8,::1")
    monkeypatch.setenv("CDN_ORIGIN_IMAGES", "https://objects.example.com/bucket")
    settings = read()
    assert settings.next_public_live_subdomains == {"mcp", "cdn"}
    assert len(settings.trusted_proxies) == 2
    assert settings.cdn_origins == {"images": "https://objects.example.com/bucket"}


def test_an_offer_has_several_prices_of_which_the_first_is_sold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PAYMENTS_PRICE_PRO_MONTHLY", "price_3, price_2 ,price_1")
    monkeypatch.setenv("PAYMENTS_PRICE_MAX5_YEARLY", "price_4")
    monkeypatch.setenv("PAYMENTS_PRICE_MAX20_YEARLY", "")
    settings = read()
    assert settings.payment_prices == {
        "PAYMENTS_PRICE_PRO_MONTHLY": ("price_3", "price_2", "price_1"),
        "PAYMENTS_PRICE_PRO_YEARLY": (),
        "PAYMENTS_PRICE_MAX5_MONTHLY": (),
        "PAYMENTS_PRICE_MAX5_YEARLY": ("price_4",),
        "PAYMENTS_PRICE_MAX20_MONTHLY": (),
        "PAYMENTS_PRICE_MAX20_YEARLY": (),
    }
    assert settings.sold_prices == {
        "PAYMENTS_PRICE_PRO_MONTHLY": "price_3",
        "PAYMENTS_PRICE_MAX5_YEARLY": "price_4",
    }


def test_a_price_of_two_offers_stops_the_start_and_both_settings_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PAYMENTS_PRICE_PRO_MONTHLY", "price_2,price_1")
    monkeypatch.setenv("PAYMENTS_PRICE_MAX5_MONTHLY", "price_3,price_1")
    with pytest.raises(SettingsError) as caught:
        read()
    assert str(caught.value) == (
        "PAYMENTS_PRICE_MAX5_MONTHLY: names a price that PAYMENTS_PRICE_PRO_MONTHLY names too"
    )


def test_the_file_is_read_and_the_environment_wins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = "s" * 32
    (tmp_path / ".env").write_text(f"CRON_SECRET={secret}\nSPONSOR_PRICE_CENTS=1\nUNRELATED=1\n")
    monkeypatch.setenv("SPONSOR_PRICE_CENTS", "2")
    settings = read()
    assert settings.cron_secret == secret
    assert settings.sponsor_price_cents == 2
    shown = repr(settings) + str(settings) + pretty_repr(settings)
    assert secret not in shown


def test_every_setting_that_is_read_is_in_the_example() -> None:
    named = set(re.findall(r"^([A-Z0-9_]+)=", EXAMPLE.read_text(), re.MULTILINE))
    known = {name.upper() for name in Settings.model_fields}
    assert named - known == {"SHARDS"}, "which the unit and the compose file read"
    assert known - named == TO_COME


def test_the_example_says_what_an_unset_setting_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENCRYPTION_KEYS", KEYRING)
    unset = read().model_dump()
    Path(".env").write_text(EXAMPLE.read_text())
    copied = read().model_dump()
    assert {name for name in copied if copied[name] != unset[name]} == {"base_url", "data_dir"}


def test_the_page_of_settings_says_what_each_is_for() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "operate" / "settings.md").read_text()

    assert [name for name, meaning in settings_page.meanings() if not meaning] == []
    assert {name for name, _ in settings_page.meanings()} == Settings.model_fields.keys()
    assert page == settings_page.as_page(), (
        "python -m tests.settings_page > docs/operate/settings.md"
    )

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolsey.actors.shops import is_shop_domain, normalise_shop_domain


@pytest.mark.parametrize(
    "pasted",
    [
        "demo-1.myshopify.com",
        "  Demo-1.MyShopify.com \n",
        "https://demo-1.myshopify.com",
        "http://demo-1.myshopify.com/admin?x=1",
        "https://admin.shopify.com/store/demo-1",
        "admin.shopify.com/store/demo-1/products?selectedView=all",
        "https://admin.shopify.com/store/demo-1#top",
    ],
)
def test_every_spelling_a_seller_pastes_becomes_the_shops_own_domain(pasted: str) -> None:
    assert normalise_shop_domain(pasted) == "demo-1.myshopify.com"


@pytest.mark.parametrize(
    "pasted",
    [
        "",
        "demo",
        "shop.example.com",
        "myshopify.com",
        ".myshopify.com",
        "-demo.myshopify.com",
        "demo.myshopify.com.",
        "demo.myshopify.com.evil.example",
        "demo.myshopify.com:8443",
        "demo.myshopify.com@evil.example",
        "https://user:secret@demo.myshopify.com",
        "https://evil.example/demo.myshopify.com",
        "https://evil.example#.myshopify.com",
        "a.b.myshopify.com",
        "demo_1.myshopify.com",
        "demo.myshopify.io",
        "demo\x00.myshopify.com",
        "demo\n.myshopify.com",
        "demo.myshopify.com/\nHost: evil.example",
        "ftp://demo.myshopify.com",
        "//demo.myshopify.com",
        "https://admin.shopify.com/store/",
        "https://admin.shopify.com/store/../demo",
        "https://admin.shopify.com.evil.example/store/demo",
        "demo\u212a.myshopify.com",
        "demo．myshopify．com",  # noqa: RUF001 - the full-width dot is the point
        "127.0.0.1",
        "[::1]",
        "a" * 64 + ".myshopify.com",
        "https://demo.myshopify.com/" + "a" * 400,
    ],
)
def test_what_does_not_name_a_shop_is_refused(pasted: str) -> None:
    with pytest.raises(ValueError, match="shop"):
        normalise_shop_domain(pasted)


def test_the_kept_spelling_is_lower_case_and_nothing_more() -> None:
    assert is_shop_domain("demo.myshopify.com")
    assert not is_shop_domain("Demo.myshopify.com")
    assert not is_shop_domain("demo.myshopify.com\n")


PASTED = st.text(string.ascii_letters + string.digits + "./:@#?-", max_size=40)


@given(st.text(max_size=60) | st.builds("{}.myshopify.com{}".format, PASTED, st.text(max_size=9)))
def test_whatever_is_pasted_the_answer_is_a_shop_domain_or_a_refusal(pasted: str) -> None:
    try:
        assert is_shop_domain(normalise_shop_domain(pasted))
    except ValueError:
        return

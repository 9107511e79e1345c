"""The tree over the heads of a day: every head leads to its root, and nothing else does."""

import pytest

from tolsey.actors.listing.evidence import sha256
from tolsey.http.deals.evidence.merkle import climbed, grown


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 100])
def test_every_head_leads_to_the_root_and_no_other_hash_does(count: int) -> None:
    heads = [sha256(b"%d" % n) for n in range(count)]
    root, ways = grown(heads)

    assert [climbed(head, way) for head, way in zip(heads, ways, strict=True)] == [root] * count
    assert {climbed(sha256(b"other"), way) == root for way in ways} == {False}
    assert max(map(len, ways)) <= (count - 1).bit_length()


def test_a_parent_is_the_hash_of_both_as_text_and_an_odd_head_goes_up_as_it_is() -> None:
    one, two, three = (sha256(text) for text in (b"1", b"2", b"3"))
    left = sha256(f"{one}:{two}".encode())

    root, ways = grown([one, two, three])

    assert root == sha256(f"{left}:{three}".encode())
    assert ways == [
        [("right", two), ("right", three)],
        [("left", one), ("right", three)],
        [("left", left)],
    ]

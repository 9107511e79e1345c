"""What an operator is shown of an actor's state."""

from tolsey.runtime.masking import MASK, MOST_SHOWN, masked


def test_a_collection_is_shown_in_part_and_says_how_much_more_there_is() -> None:
    many = range(MOST_SHOWN + 7)
    assert masked(tuple(many)) == [*many[:MOST_SHOWN], {"more": 7}]
    shown = masked({str(number): number for number in many})
    assert shown == {str(number): number for number in many[:MOST_SHOWN]} | {"more": 7}


def test_what_fits_is_shown_whole_without_its_secrets() -> None:
    assert masked({"b": "v1.k1.sealed", "n": [1, 2]}) == {"b": MASK, "n": [1, 2]}

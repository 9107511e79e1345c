from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tolsey.sandbox.commerce.query.search import compile_search
from tolsey.sandbox.commerce.shop.history import load_purchases, make_history
from tolsey.sandbox.commerce.shop.money import decimal, plain

END = datetime(2026, 8, 1, tzinfo=UTC)


def test_a_seed_fixes_the_history() -> None:
    assert make_history(seed=7, orders=50, ending=END) == make_history(
        seed=7, orders=50, ending=END
    )
    assert make_history(seed=8, orders=50, ending=END) != make_history(
        seed=7, orders=50, ending=END
    )


def test_a_history_fills_its_days_oldest_first_with_every_kind() -> None:
    history = make_history(orders=2000, days=30, ending=END)
    assert len(history) == 2000
    moments = [order.processed_at for order in history]
    assert moments == sorted(moments)
    assert END - timedelta(days=30) <= moments[0]
    assert moments[-1] < END
    assert len(Counter(order.tags[0] for order in history)) == 13
    assert len({order.id for order in history}) == 2000
    assert min(order.id for order in history) > 2**53


def test_every_paid_order_was_paid_in_full_and_returns_never_exceed_sales() -> None:
    for order in make_history(orders=2000, ending=END):
        if order.tags[0] != "pending":
            assert order.received == order.total
        assert order.refunded <= order.received
        assert all(0 <= line.current_quantity <= line.quantity for line in order.lines)
        assert order.current_total >= 0


def test_purchases_are_read_and_moved_to_the_present(tmp_path: Path) -> None:
    file = tmp_path / "purchases.txt"
    file.write_text(" 00004 0001 19970101  2   29.33\n 00004 0001 19970118  2   29.7\n")
    first, last = load_purchases(file, END)
    assert (first.total, last.total) == (2933, 2970)
    assert last.processed_at == END.replace(hour=12)
    assert last.processed_at - first.processed_at == timedelta(days=17)
    assert first.customer is last.customer
    assert first.financial_status == "PAID"


def test_the_real_purchase_history_is_read_whole(published: Path) -> None:
    file = published / "orders" / "CDNOW_sample.txt"
    rows = [row.split() for row in file.read_text().splitlines() if row.strip()]
    orders = load_purchases(file, END)
    assert len(orders) == len(rows)
    assert sum(order.total for order in orders) == sum(round(float(row[-1]) * 100) for row in rows)


def test_amounts_are_written_as_each_edge_wants_them() -> None:
    assert [plain(1250, "USD"), plain(1250, "JPY"), plain(-5, "USD"), plain(1250, "KWD")] == [
        "12.50",
        "1250",
        "-0.05",
        "1.250",
    ]
    assert [decimal(1250, "USD"), decimal(1200, "USD"), decimal(1250, "JPY")] == [
        "12.5",
        "12.0",
        "1250.0",
    ]


def test_a_date_without_a_time_means_the_whole_day() -> None:
    def found(query: str, hour: int) -> bool:
        moment = datetime(2026, 7, 10, hour, tzinfo=UTC)
        return compile_search(query, {"at": lambda item: item}).matches(moment)

    assert found("at:2026-07-10", 23)
    assert not found("at:>2026-07-10", 23)
    assert found("at:<=2026-07-10", 23)
    assert found("at:>=2026-07-10", 0)
    assert not found("at:<2026-07-10", 0)
    assert found("at:<2026-07-01 OR at:>'2026-07-09T00:00:00Z'", 1)

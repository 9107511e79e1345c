"""A short working day of a shop that causes every topic of the catalogue at least once."""

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.course.life import Item
from tolsey.sandbox.commerce.course.shops import Shops
from tolsey.sandbox.commerce.shop.products import Product, Variant


def tour(platform: Shops, domain: str) -> None:
    """Let a shop's day happen; everything but `app/uninstalled` is delivered where subscribed."""
    shop = platform.shop(domain)
    now = platform.now()
    platform.update_shop(domain)
    platform.set_scopes(domain, *shop.scopes)
    platform.add_domain(domain, f"www.{domain.split('.', 1)[0]}.example")
    platform.publish_theme(domain)
    product = Product(next(shop.ids), "Linen shirt", "linen-shirt", now, now, published_at=now)
    size = Variant(next(shop.ids), next(shop.ids), "M", "LS-M", 4900, available=25, product=product)
    product.variants.append(size)
    platform.save_product(domain, product)
    platform.save_product(domain, product)
    order = platform.place_order(
        domain, [Item(title=product.title, quantity=2, variant=size)], shipping=500
    )
    platform.fulfil_order(domain, order.id, quantity=1)
    platform.fulfil_order(domain, order.id)
    platform.track_parcel(domain, order.id)
    platform.refund_order(domain, order.id, returned={order.lines[0].id: 1})
    second = platform.place_order(domain, paid=False)
    platform.edit_order(domain, second.id, [Item(title="Gift wrap", unit_price=300)])
    platform.pay_order(domain, second.id)
    platform.cancel_order(domain, second.id)
    platform.delete_order(domain, second.id)
    platform.delete_product(domain, product.id)
    buyer = order.customer
    if buyer is not None:
        platform.update_customer(domain, buyer.id, email="moved@example.com")
        platform.delete_customer(domain, buyer.id)
    finished = {
        "admin_graphql_api_id": f"gid://shopify/BulkOperation/{next(shop.ids)}",
        "completed_at": instant(now),
        "created_at": instant(now),
        "error_code": None,
        "status": "completed",
        "type": "query",
    }
    platform.deliver(domain, "bulk_operations/finish", finished)

"""What helps a shop to be found and its buyers to come back: texts for search engines, consent, codes, segments."""

from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.http.clients.commerce.edits.things.thing import ThingWay, global_id, texts
from tolsey.http.clients.commerce.edits.way import Body, nodes, tail

SEO: Final = "id seo { title description }"
FIND_SEO: Final = f"query FindSeo($id: ID!) {{ product(id: $id) {{ {SEO} }} }}"
SET_SEO: Final = f"""
mutation SetSeo($product: ProductUpdateInput!) {{
  productUpdate(product: $product) {{ product {{ {SEO} }} userErrors {{ field message }} }}
}}
"""
FIELDS: Final = """
id
title: metafield(namespace: "global", key: "title_tag") { value }
description: metafield(namespace: "global", key: "description_tag") { value }
"""
FIND_FIELDS: Final = f"""
query FindFields($id: ID!) {{
  node(id: $id) {{ ... on Collection {{ {FIELDS} }} ... on Page {{ {FIELDS} }} }}
}}
"""
SET_FIELDS: Final = """
mutation SetFields($metafields: [MetafieldsSetInput!]!) {
  metafieldsSet(metafields: $metafields) {
    metafields { key value } userErrors { code field message }
  }
}
"""
FIND_PICTURE: Final = (
    "query FindPicture($id: ID!) { node(id: $id) { ... on MediaImage { id alt } } }"
)
SET_PICTURES: Final = """
mutation SetPictures($files: [FileUpdateInput!]!) {
  fileUpdate(files: $files) { files { id alt } userErrors { code field message } }
}
"""
REDIRECT: Final = "id path target"
FIND_REDIRECT: Final = f"""
query FindRedirect($query: String!) {{
  urlRedirects(first: 10, query: $query) {{ nodes {{ {REDIRECT} }} }}
}}
"""
NEW_REDIRECT: Final = f"""
mutation NewRedirect($redirect: UrlRedirectInput!) {{
  urlRedirectCreate(urlRedirect: $redirect) {{
    urlRedirect {{ {REDIRECT} }} userErrors {{ code field message }}
  }}
}}
"""
CONSENT: Final = "countryCode regionCode consentRequired dataSaleOptOutRequired"
FIND_CONSENT: Final = f"query FindConsent {{ consentPolicy {{ {CONSENT} }} }}"
SET_CONSENT: Final = f"""
mutation SetConsent($policies: [ConsentPolicyInput!]!) {{
  consentPolicyUpdate(consentPolicies: $policies) {{
    updatedPolicies {{ {CONSENT} }} userErrors {{ code field message }}
  }}
}}
"""
FIND_PIXEL: Final = "query FindPixel { webPixel { id settings } }"
NEW_PIXEL: Final = """
mutation NewPixel($pixel: WebPixelInput!) {
  webPixelCreate(webPixel: $pixel) { webPixel { id settings } userErrors { code field message } }
}
"""
CODE: Final = "id codeDiscount { ... on DiscountCodeBasic { title } }"
FIND_CODE: Final = f"""
query FindCode($code: String!) {{ codeDiscountNodeByCode(code: $code) {{ {CODE} }} }}
"""
NEW_CODE: Final = f"""
mutation NewCode($discount: DiscountCodeBasicInput!) {{
  discountCodeBasicCreate(basicCodeDiscount: $discount) {{
    codeDiscountNode {{ {CODE} }} userErrors {{ code field message }}
  }}
}}
"""
SEGMENT: Final = "id name query"
FIND_SEGMENTS: Final = f"query FindSegments {{ segments(first: 250) {{ nodes {{ {SEGMENT} }} }} }}"
NEW_SEGMENT: Final = f"""
mutation NewSegment($name: String!, $query: String!) {{
  segmentCreate(name: $name, query: $query) {{ segment {{ {SEGMENT} }} userErrors {{ field message }} }}
}}
"""
FIELD_TYPES: Final = {
    "title": ("title_tag", "single_line_text_field"),
    "description": ("description_tag", "multi_line_text_field"),
}


class ProductSeoWay(ThingWay):
    """The texts of a product for search engines."""

    looks, sets, at = FIND_SEO, SET_SEO, "product"
    fields = ()

    def asked(self, edit: Edit) -> Body:
        """Name the product."""
        return {"id": global_id("Product", edit.ids[0])}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take the product."""
        del edit
        return data.get("product")

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send the texts that are to be filled."""
        del key
        return {"product": {**self.asked(edit), "seo": texts(change, "title", "description")}}

    def read(self, node: Body) -> dict[str, Any]:
        """Read both; an empty one is none."""
        seo = node.get("seo") or {}
        told = {name: seo.get(name) or None for name in ("title", "description")}
        return {"id": node.get("id"), **told}


class SeoFieldsWay(ThingWay):
    """The fields of a page or collection that search engines show."""

    looks, sets, at = FIND_FIELDS, SET_FIELDS, "metafields"
    fields = ()

    def asked(self, edit: Edit) -> Body:
        """Name the thing."""
        return {"id": global_id(*edit.ids)}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take the thing."""
        del edit
        return data.get("node")

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send the texts that are to be filled."""
        del key
        return {
            "metafields": [
                {
                    "ownerId": global_id(*edit.ids),
                    "namespace": "global",
                    "key": field,
                    "type": kind,
                    "value": change[name],
                }
                for name, (field, kind) in FIELD_TYPES.items()
                if name in change
            ]
        }

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read the texts that were filled; the others are as they were."""
        written = {one["key"]: one for one in tail(payload.get(self.at), "metafields")}
        told = {name: written.get(field) for name, (field, _) in FIELD_TYPES.items()}
        return {"found": self.read({"id": global_id(*edit.ids), **told})}

    def read(self, node: Body) -> dict[str, Any]:
        """Read both; an empty one is none."""
        told = {name: (node.get(name) or {}).get("value") or None for name in FIELD_TYPES}
        return {"id": node.get("id"), **told}


class AltTextWay(ThingWay):
    """The words for a picture."""

    looks, sets, at = FIND_PICTURE, SET_PICTURES, "files"
    fields = ("alt",)

    def asked(self, edit: Edit) -> Body:
        """Name the picture."""
        return {"id": global_id("MediaImage", edit.ids[0])}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take the picture."""
        del edit
        return data.get("node")

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send the words."""
        del key
        return {"files": [{**self.asked(edit), "alt": change["alt"]}]}

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read the one picture."""
        del edit
        (one,) = tail(payload.get(self.at), "files")
        return {"found": self.read(one)}


class RedirectWay(ThingWay):
    """Where an address leads."""

    looks, makes, at = FIND_REDIRECT, NEW_REDIRECT, "urlRedirect"
    fields = ("path", "target")

    def asked(self, edit: Edit) -> Body:
        """Search for the address."""
        return {"query": f"path:'{edit.ids[0]}'"}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take that of this very address."""
        found = nodes(data.get("urlRedirects"), "redirects")
        return next((one for one in found if one.get("path") == edit.ids[0]), None)

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send where it leads."""
        del key
        return {"redirect": {"path": edit.ids[0], "target": change["target"]}}


class ConsentWay(ThingWay):
    """All rows of the shop about consent, by country and state."""

    looks, sets, at = FIND_CONSENT, SET_CONSENT, "updatedPolicies"
    fields = ()

    def asked(self, edit: Edit) -> Body:
        """Ask for all of them."""
        del edit
        return {}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take all rows as one thing."""
        del edit
        return {"rows": data.get("consentPolicy")}

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send the rows that are to change."""
        del edit, key
        return {"policies": [_policy(name, row) for name, row in change["rows"].items()]}

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read the rows that changed."""
        del edit
        return {"found": self.read({"rows": payload.get(self.at)})}

    def read(self, node: Body) -> dict[str, Any]:
        """Read each row under its country and state."""
        rows = tail(node.get("rows"), "rows about consent")
        return {
            "id": "consent",
            "rows": {
                "-".join(filter(None, (one.get("countryCode"), one.get("regionCode")))): {
                    "consentRequired": one.get("consentRequired"),
                    "dataSaleOptOutRequired": one.get("dataSaleOptOutRequired"),
                }
                for one in rows
            },
        }


def _policy(name: str, row: Body) -> dict[str, Any]:
    country, _, region = name.partition("-")
    return {"countryCode": country, **({"regionCode": region} if region else {}), **row}


class PixelWay(ThingWay):
    """The app's own listener in the shop."""

    looks, makes, at = FIND_PIXEL, NEW_PIXEL, "webPixel"
    fields = ("settings",)

    def asked(self, edit: Edit) -> Body:
        """Ask for the one there may be."""
        del edit
        return {}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take it."""
        del edit
        return data.get("webPixel")

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send whose events it tells."""
        del edit, key
        return {"pixel": {"settings": change["extra"]["settings"]}}


class WelcomeCodeWay(ThingWay):
    """What stands under a code."""

    looks, makes, at = FIND_CODE, NEW_CODE, "codeDiscountNode"
    fields = ()

    def asked(self, edit: Edit) -> Body:
        """Name the code."""
        return {"code": edit.ids[0]}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take what stands there."""
        del edit
        return data.get("codeDiscountNodeByCode")

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send the code, for everybody and everything, once for each customer."""
        del key
        extra = change["extra"]
        value = {"percentage": extra["percent"] / 100}
        asked = {
            "code": edit.ids[0],
            "title": change["title"],
            "startsAt": extra["starts_at"],
            "endsAt": extra["ends_at"],
            "appliesOncePerCustomer": True,
            "context": {"all": "ALL"},
            "customerGets": {"items": {"all": True}, "value": value},
        }
        return {"discount": asked}

    def read(self, node: Body) -> dict[str, Any]:
        """Read its title; of another kind nothing more is read."""
        return {"id": node.get("id"), "title": (node.get("codeDiscount") or {}).get("title")}


class SegmentWay(ThingWay):
    """A segment by its name."""

    looks, makes, at = FIND_SEGMENTS, NEW_SEGMENT, "segment"
    fields = ("name", "query")

    def asked(self, edit: Edit) -> Body:
        """Ask for all of them: none can be asked for by its name."""
        del edit
        return {}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take the one of this name."""
        found = nodes(data.get("segments"), "segments")
        return next((one for one in found if one.get("name") == edit.ids[0]), None)

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send whom it holds."""
        del key
        return {"name": edit.ids[0], "query": change["query"]}

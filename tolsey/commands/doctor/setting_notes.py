"""What `tolsey doctor` says of each setting: what it does, and what is so without it."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tolsey.settings import Settings


class SettingNote(NamedTuple):
    """What a setting does, and what is so without it."""

    does: str
    without: str


def _priced(of: str, default: str) -> SettingNote:
    return SettingNote(f"is what {of} costs", default)


NEEDED: Final[Mapping[str, SettingNote]] = {
    "CRON_SECRET": SettingNote("opens /api/cron/*", "/api/cron/* answers 503 without it"),
    "PAYMENTS_SECRET_KEY": SettingNote(
        "opens payment routes", "payment routes answer 503 without it"
    ),
    "PAYMENTS_WEBHOOK_SECRET": SettingNote(
        "verifies /api/webhooks/payments", "/api/webhooks/payments answers 503 without it"
    ),
    **{
        f"PAYMENTS_PRICE_{plan}_{cadence}": SettingNote(
            "its first price is sold, all are recognised", "a checkout of it answers 503 without it"
        )
        for plan in ("PRO", "MAX5", "MAX20")
        for cadence in ("MONTHLY", "YEARLY")
    },
    "LLM_BASE_URL": SettingNote("answers /api/chat", "/api/chat answers 503 without it"),
    "LLM_MODEL": SettingNote("answers /api/chat", "/api/chat answers 503 without it"),
}
"""What the service lacks something without."""

OPTIONAL: Final[Mapping[str, SettingNote]] = {
    "BASE_URL": SettingNote(
        "is the main address", "the main address is where tolsey serve listens"
    ),
    "EMBEDDING_MODEL": SettingNote(
        "finds what stores remember by its meaning", "memory is found by its words alone without it"
    ),
    "DATABASE_URL": SettingNote("the database", "an embedded PostgreSQL under DATA_DIR"),
    "REDIS_URL": SettingNote("the cache", "an embedded Redis under DATA_DIR"),
    "HISTORY_KINDS": SettingNote(
        "are the kinds of actors whose states before a message are kept", "no such states are kept"
    ),
    "DATA_DIR": SettingNote(
        "keeps embedded servers, files and keys that were made", ".data keeps them"
    ),
    "OBJECTS_URL": SettingNote("where files are", "files are in a folder under DATA_DIR"),
    "ENCRYPTION_KEYS": SettingNote(
        "seal secrets", "made once and kept in DATA_DIR (loopback only)"
    ),
    "WIRE_FORM": SettingNote(
        "is how processes write to each other", "form 1, which every release reads"
    ),
    "LEASE_SECONDS": SettingNote(
        "is how long nobody answers for the stores of a machine that is lost", "5 seconds"
    ),
    "TRUSTED_PROXIES": SettingNote(
        "their x-forwarded-for is believed",
        "behind a proxy all visitors count as one, unless BASE_URL is loopback",
    ),
    "CLEARTEXT_HTTP2": SettingNote("lets HTTP/2 in without TLS", "HTTP/2 without TLS is refused"),
    "NEXT_PUBLIC_LIVE_SUBDOMAINS": SettingNote(
        "are served beside the main address", "none is served"
    ),
    "CDN_ORIGINS": SettingNote(
        "cdn.<host> answers with (CDN_ORIGIN_<LABEL>)", "cdn.<host> has no label"
    ),
    "OTEL_EXPORTER_OTLP_ENDPOINT": SettingNote("is told traces", "there are no traces"),
    "ADMIN_ORGANIZATION_ID": SettingNote(
        "its members are administrators", "those of the organization that admin create made"
    ),
    "OPERATOR_EMAIL": SettingNote(
        "is told of alerts", "nobody is written to when something is wrong"
    ),
    "LISTING_REVIEW": SettingNote(
        "says who publishes listings", "automatic: sellers publish them themselves"
    ),
    "LAUNCH_THEME_URL": SettingNote(
        "is the theme that launches prepare", "the milestone of the theme is blocked"
    ),
    "COMMERCE_CLIENT_SECRET": SettingNote(
        "verifies the platform's requests for privacy",
        "/api/webhooks/commerce/redact, data-request and customer-redact answer 503 without it",
    ),
    "COMMERCE_API_VERSION": SettingNote(
        "is spoken to the platform", "the version this release was tried with"
    ),
    "COMMERCE_URL_TEMPLATE": SettingNote(
        "is where shops are reached", "at https:// and their domain"
    ),
    "PAYMENTS_API_BASE": SettingNote("is where the processor is", "the processor's own address"),
    "SPONSOR_PRICE_CENTS": _priced("sponsoring", "50000 cents"),
    **{
        name: SettingNote(
            f"closes deals by /api/webhooks/{kind}", f"/api/webhooks/{kind} answers 503 without it"
        )
        for kind, names in (
            ("esign", ("ESIGN_WEBHOOK_SECRET", "ESIGN_API_URL", "ESIGN_API_KEY")),
            ("escrow", ("ESCROW_API_URL", "ESCROW_API_LOGIN", "ESCROW_API_KEY")),
        )
        for name in names
    },
    **{
        f"{name}_WEBHOOK_SECRET": SettingNote(f"verifies {path}", f"{path} answers 503 without it")
        for name, path in (
            ("MAIL", "/api/webhooks/mail"),
            ("CODE_HOST", "/api/webhooks/code-host"),
            ("MESSAGING", "/api/webhooks/messaging"),
        )
    },
    "QUEUE_URL": SettingNote("is where scans of storefronts are queued", "nothing is queued"),
    "QUEUE_TOKEN": SettingNote("queues scans of storefronts", "a tick scans three of them itself"),
    "QUEUE_SIGNING_KEY": SettingNote(
        "proves what the queue calls back", "/api/internal/scans answers 404 without it"
    ),
    "STOREFRONT_URL": SettingNote(
        "stands for every storefront", "storefronts are read where they are"
    ),
    "DNS_URL": SettingNote("is asked who owns a domain", "the machine's own resolver is asked"),
    "SCAN_PACE_SECONDS": SettingNote(
        "is waited for between two pages of a storefront", "2 seconds"
    ),
    "TRAFFIC_API_KEY": SettingNote(
        "reads visits of storefronts", "scans name the variable instead"
    ),
    "TRAFFIC_URL": SettingNote("tells visits", "Similarweb's address"),
    "SOCIAL_API_KEY": SettingNote("reads their followers", "scans name the variable instead"),
    "SOCIAL_URL": SettingNote("tells followers", "YouTube's address"),
    "ADS_API_KEY": SettingNote("reads their advertisements", "scans name the variable instead"),
    "ADS_URL": SettingNote("tells advertisements", "Meta's address"),
    "DATASET_TOKEN": SettingNote("reads the external data set", "none is read"),
    "DATASET_ID": SettingNote("names the external data set", "none is read"),
    "DATASET_URL": SettingNote("is where the external data set is", "Apify's address"),
    "VECTOR_URL": SettingNote(
        "counts and purges vectors; the chat reads those in our database only",
        "pgvector in our own database, the only one that the chat reads",
    ),
    "LLM_API_KEY": SettingNote(
        "is sent to the model's service", "the model is asked without a key"
    ),
    "LLM_LIMIT_FIELD": SettingNote("bounds an answer", "max_tokens"),
    "LLM_TOOLS": SettingNote("says whether the model may use tools", "it may"),
    "LLM_CONTEXT_TOKENS": SettingNote("is what the model takes", "128000 tokens"),
    "LLM_OUTPUT_TOKENS": SettingNote("is what it may answer", "8192 tokens"),
    "LLM_INPUT_MICRO_PER_MILLION": _priced("a million tokens of a question", "3000000 micro-USD"),
    "LLM_OUTPUT_MICRO_PER_MILLION": _priced("a million tokens of an answer", "15000000 micro-USD"),
    "LLM_REASONING_MICRO_PER_MILLION": _priced("a million tokens of reasoning", "as an answer"),
    "LLM_MARGIN_PERCENT": SettingNote("is added to the model's price", "nothing is added"),
    "EMBEDDING_MICRO_PER_MILLION": _priced("a million tokens of embeddings", "130000 micro-USD"),
    "CHAT_LEASE_SECONDS": SettingNote(
        "holds an answer's credits when its process dies", "900 seconds"
    ),
    "CHAT_CHECKPOINT_SECONDS": SettingNote(
        "is how often an answer's cost is written down", "5 seconds"
    ),
}
"""What has a default, or what the service does without."""

UNREAD: Final = ("COMMERCE_CLIENT_ID",)
"""Settings of what is not built yet: setting them changes nothing."""

BY_ANOTHER: Final = ("METRICS_TOKEN", "MAIL_URL", "MAIL_FROM", "VECTOR_TOKEN")
"""Needed or not, as the others are set: `wanted` says of them."""


def wanted(settings: Settings) -> Iterator[tuple[str, SettingNote, bool]]:
    """Give each setting of which something is to be said, what is so, and whether it is needed."""
    metrics = SettingNote("opens /metrics", "/metrics answers 503 without it")
    mail = "mails are kept and sent to no one"
    yield from ((name, told, False) for name, told in OPTIONAL.items())
    if settings.is_local:
        yield "METRICS_TOKEN", metrics._replace(without="/metrics answers this machine only"), False
        yield "MAIL_URL", SettingNote("sends mail", f"{mail}: /mail shows them"), False
    else:
        yield "METRICS_TOKEN", metrics, True
        without = f"{mail}; invitations and new passwords answer 503"
        yield "MAIL_URL", SettingNote("sends mail", without), True
    yield "MAIL_FROM", SettingNote("names the sender of mails", mail), bool(settings.mail_url)
    yield (
        "VECTOR_TOKEN",
        SettingNote("goes with VECTOR_URL", "uses of VECTOR_URL answer 503 without it"),
        bool(settings.vector_url),
    )
    yield from ((name, told, True) for name, told in NEEDED.items())

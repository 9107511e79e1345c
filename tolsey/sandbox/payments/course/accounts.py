"""The processor's accounts on one clock, and what happens to them that nobody asks the API for."""

import secrets
from datetime import datetime

from tolsey.sandbox.clock import Clock
from tolsey.sandbox.payments.account.books import Obj
from tolsey.sandbox.payments.account.keys import Key
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import missing_object
from tolsey.sandbox.payments.account.webhooks import Webhooks
from tolsey.sandbox.payments.course import settlement
from tolsey.sandbox.payments.course.cycle import next_work
from tolsey.sandbox.payments.money import connect, refunds

PLATFORM = "acct_1SandboxPlatform"
SECRET_KEY = "sk_test_sandbox"  # noqa: S105 - opens nothing but this stand-in


class Accounts:
    """A platform account, and others as they are added.

    A frozen clock stands still until `advance`; whatever falls due on the way happens in order.
    """

    def __init__(
        self,
        *,
        now: datetime | None = None,
        frozen_clock: bool = False,
        webhooks: Webhooks | None = None,
        seed: str = "",
    ) -> None:
        self.clock = Clock(now, frozen=frozen_clock)
        self.webhooks = webhooks or Webhooks()
        self.failures: list[Exception] = []
        self.url = ""
        self._seed = seed
        self._looked = 0
        self.merchants: dict[str, Merchant] = {}
        self.platform = self.add_merchant(PLATFORM, platform=True)
        self.add_key(self.platform, SECRET_KEY)

    def add_merchant(self, id: str, *, platform: bool = False) -> Merchant:
        """Open an account of its own, such as a seller's whose restricted key is read with."""
        merchant = Merchant(id, self.clock, self.webhooks, self.url, platform, self._seed)
        self.merchants[id] = merchant
        return merchant

    def add_key(self, merchant: Merchant, secret: str, *permissions: str) -> Key:
        """Give an account a key; a restricted one (`rk_`) may do what is named here."""
        key = merchant.keys[secret] = Key(secret, frozenset(permissions))
        return key

    def make_key(self, account: str, *permissions: str) -> Key:
        """Make a restricted key of a seller's own account, as its holder does at the processor."""
        merchant = self.merchants.get(account)
        if merchant is None or merchant.platform:
            raise missing_object("account", account)
        return self.add_key(merchant, f"rk_live_{secrets.token_hex(24)}", *permissions)

    def merchant_of(self, secret: str) -> Merchant | None:
        """Find the account a key belongs to."""
        return next((m for m in self.merchants.values() if secret in m.keys), None)

    def advance(self, seconds: float = 0, *, days: float = 0) -> None:
        """Move the clock forward through everything that falls due on the way."""
        target = self.clock.now().timestamp() + seconds + days * 86_400
        self._work(target)
        self.clock.advance(max(target - self.clock.now().timestamp(), 0))

    def catch_up(self) -> None:
        """Do what fell due since the clock was last looked at; nothing does within a second."""
        now = int(self.clock.now().timestamp())
        if now != self._looked:
            self._looked = now
            self._work(now)

    def _work(self, until: float) -> None:
        while True:
            found = [work for work in map(next_work, self.merchants.values()) if work is not None]
            at, do = min(found, key=lambda work: work[0], default=(until + 1, None))
            if at > until or do is None:
                return
            self.clock.advance(max(at - self.clock.now().timestamp(), 0))
            do()

    def set_card(self, customer: str, behaviour: str) -> None:
        """Let a customer's methods do something else: ok, decline, insufficient, authenticate."""
        for method in self.platform.books.each("payment_method"):
            if method["customer"] == customer:
                self.platform.cards[method["id"]] = behaviour

    def settle(self, intent: str, *, paid: bool = True) -> None:
        """End a bank debit that is on its way."""
        found = self.platform.books.get("payment_intent", intent)
        settlement.settle(self.platform, found, paid=paid)

    def open_dispute(
        self,
        charge: str,
        *,
        amount: int | None = None,
        reason: str = "fraudulent",
        inquiry: bool = False,
    ) -> Obj:
        """Let the bank dispute a charge, or only inquire."""
        found = self.platform.books.get("charge", charge)
        return refunds.open_dispute(
            self.platform, found, amount=amount, reason=reason, inquiry=inquiry
        )

    def close_dispute(self, dispute: str, status: str) -> Obj:
        """End a dispute as won, lost or warning_closed."""
        found = self.platform.books.get("dispute", dispute)
        return refunds.close_dispute(self.platform, found, status)

    def onboard(self, account: str, *, disabled_reason: str | None = None) -> None:
        """Let the holder of a connected account fill the processor's form in."""
        found = self.platform.books.get("account", account)
        connect.onboard(self.platform, found, disabled_reason=disabled_reason)

    def fail_payout(self, account: str, amount: int, **metadata: str) -> Obj:
        """Let a payout to a connected account's bank come back."""
        found = self.platform.books.get("account", account)
        return connect.fail_payout(self.platform, found, amount, **metadata)

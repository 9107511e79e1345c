"""Money itself: what it buys, who pays, the payment, its way back, and who is paid out."""

"""Routes of money: plans, credits, payments and their way back, and who is paid out."""

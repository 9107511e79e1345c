"""SQL for money: credits, what is paid for, the processor's events, and who is paid out."""

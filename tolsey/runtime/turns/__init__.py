"""Turns: the mailbox that a message waits in, who takes the next turn, and the commit of what was decided."""

"""Answers of the chat model, from the hold before to the settlement after."""

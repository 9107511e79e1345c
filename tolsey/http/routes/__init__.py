"""Routes of the application, a room per subject; each proves who calls, parses, asks, answers."""

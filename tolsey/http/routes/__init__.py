"""Routes of the application, a module per subject; each proves who calls, parses, asks, answers."""

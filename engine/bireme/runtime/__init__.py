"""One worker at work."""

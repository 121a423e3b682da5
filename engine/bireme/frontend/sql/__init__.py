"""SQL text to a typed plan."""

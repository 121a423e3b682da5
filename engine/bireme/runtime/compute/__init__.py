"""Which task runs next, and running it."""

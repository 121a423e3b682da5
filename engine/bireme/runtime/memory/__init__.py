"""Room on each tier."""

"""What was asked: SQL and lazy frames become typed plans."""

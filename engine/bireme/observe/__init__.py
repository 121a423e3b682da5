"""What happened: events, where they go, and views folded from them."""

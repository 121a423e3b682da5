"""Moving batches between peers."""

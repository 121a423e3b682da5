"""What a pipeline does to a batch."""

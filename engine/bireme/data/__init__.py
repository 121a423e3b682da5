"""What flows: types, schemas, tiers and batches."""

"""bireme: a query and feature engine with one plan for CPU, GPU and clusters."""

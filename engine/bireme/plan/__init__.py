"""What to do: expressions, relations, rules, the physical plan and its hints."""

"""The optimizer's rules: a function from plan to plan each, one module a family."""

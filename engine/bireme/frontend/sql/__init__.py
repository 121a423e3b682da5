"""SQL text to a typed plan."""

from bireme.frontend.sql.binder import bind_sql

__all__ = ["bind_sql"]

"""Sessions: the public entry to everything."""

from bireme.session.session import Session, connect

__all__ = ["Session", "connect"]

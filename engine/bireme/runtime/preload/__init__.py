"""Bringing bytes up before they are asked for."""

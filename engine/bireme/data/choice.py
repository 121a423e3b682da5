"""Enumerations that planning asks about all the time: members are found and hashed as fast as other objects."""

from __future__ import annotations

from enum import Enum

from bireme.data import _nodes


class Choice(Enum, metaclass=_nodes.ChoiceType):
    """Base of enumerations; to readers and checkers, `Enum`."""

    __hash__ = object.__hash__  # members are single objects; Enum.__hash__ is a call of Python code

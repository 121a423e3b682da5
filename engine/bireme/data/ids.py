"""Typed identifiers. Each is an int at run time; the types keep them apart for the checker."""

from __future__ import annotations

from typing import NewType

QueryId = NewType("QueryId", int)
PipelineId = NewType("PipelineId", int)
EdgeId = NewType("EdgeId", int)
BatchId = NewType("BatchId", int)
TaskId = NewType("TaskId", int)
WorkerId = NewType("WorkerId", int)
EventId = NewType("EventId", int)

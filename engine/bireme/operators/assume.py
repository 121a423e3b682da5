"""Checking what a plan assumed of rows: an `AssumeStep` at work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from bireme.data.schema import Schema
from bireme.errors import SourceMisstated
from bireme.plan.physical import AssumeStep


def assumed(step: AssumeStep, schema: Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches as they come; raises SourceMisstated for one of which the assumption is false."""
    for batch in batches:
        if not batch.column(step.one).equals(batch.column(step.other)):
            raise SourceMisstated(
                f"{schema.names[step.one]} and {schema.names[step.other]} were assumed to be equal, and differ: "
                "a column that was taken for unique is not"
            )
        yield batch

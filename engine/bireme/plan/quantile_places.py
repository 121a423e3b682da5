"""At which place among the values of its group a quantile stands, as every backend counts it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bireme.plan.physical import AggregateStep

Places = npt.NDArray[np.int64]


def quantile_places(step: AggregateStep, values: Places) -> Places:
    """The places in order, from 0, in groups of so many values each; 0 where there are none."""
    count = values.astype(np.float64)
    match step.function:
        case "quantile_lower":
            places = np.floor((count - 1) * step.fraction)
        case "quantile_higher":
            places = np.ceil((count - 1) * step.fraction)
        case _:
            places = count - np.floor(count - count * step.fraction) - 1
    found: Places = np.maximum(places, 0).astype(np.int64)
    return found

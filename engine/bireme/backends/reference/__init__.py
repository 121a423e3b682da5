"""Kernels in pyarrow and numpy: slow, plain, and the meaning that the other backends must equal.

Columns are Arrow arrays; inside a kernel they are numpy arrays of whole numbers (`vectors`) or python values
(`values`). Order and equality of all types are one thing, in `keys`.
"""

from __future__ import annotations

from bireme.backends.reference.kernels import ReferenceKernels

__all__ = ["ReferenceKernels"]

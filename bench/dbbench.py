"""The ten groupings and five joins of h2o.ai's db-benchmark, over the made-up tables of `h2o.py`.

    python bench/dbbench.py [--rows 10000000] [--queries g05,j05] [--engines bireme,duckdb,polars] [--runs 5]

The texts are in `queries/h2o`. Groupings hand out their rows, up to as many as there are rows in the table; joins are
folded to a few sums, since handing out 10 million wide rows would measure Arrow. At 10 million rows the tables need
about 1 GB on disk; `--rows 100000000` is meant for machines with the room. What an engine cannot answer is said
below the table and left out.
"""

from __future__ import annotations

import sys

from h2o import h2o_files
from suite import run_suite, suite_parser


def main() -> int:
    parser = suite_parser(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    files = h2o_files(options.data, options.rows)
    return run_suite("h2o", f"db-benchmark, {options.rows:,} rows", files, options, rows_in=options.rows)


if __name__ == "__main__":
    sys.exit(main())

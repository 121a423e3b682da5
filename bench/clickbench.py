"""ClickBench's 43 questions over the made-up table of `hits.py`.

    python bench/clickbench.py [--rows 10000000] [--queries q00,q28] [--engines bireme,duckdb,polars] [--runs 5]

The texts are in `queries/clickbench`, numbered as ClickBench does. Thresholds and offsets are a tenth or a hundredth
of the original's, whose table has 100 million rows. What an engine cannot answer is said below the table and left out.
"""

from __future__ import annotations

import sys

from hits import hits_file
from suite import run_suite, suite_parser


def main() -> int:
    parser = suite_parser(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    file = hits_file(options.data, options.rows)
    return run_suite("clickbench", f"ClickBench, {options.rows:,} rows", {"hits": file}, options, rows_in=options.rows)


if __name__ == "__main__":
    sys.exit(main())

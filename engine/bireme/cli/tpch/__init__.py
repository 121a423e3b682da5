"""The TPC-H harness: data, engines in processes of their own, checked answers, interleaved timings."""

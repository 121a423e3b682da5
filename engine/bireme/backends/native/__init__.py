"""The native backend: C++ kernels for hosts without a GPU, every CPU's default."""

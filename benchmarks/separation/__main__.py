"""`python -m benchmarks.separation`."""

from benchmarks.separation import main

main()

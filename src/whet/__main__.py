"""`python -m whet` is the same as `whet`."""

from whet.cli import main

main()

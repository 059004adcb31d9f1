"""`python -m whet.cli` is `whet`."""

from whet.cli.app import main

main()

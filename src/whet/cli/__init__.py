"""The command line: parses, calls the rooms below, prints, and turns errors into one line and an exit code.

This room decides nothing about training. Importing it costs little, because a command's module, and with it the rooms
that the command needs, is imported when the command is called.
"""

from whet.cli.app import main

__all__ = ["main"]

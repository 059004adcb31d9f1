"""What runs in the sandbox beside a generated program: its host, its database, its frozen clock.

Modules here are imported by the sandbox's own processes only. They trust nothing that the program says, and are trusted
with nothing by whet.
"""

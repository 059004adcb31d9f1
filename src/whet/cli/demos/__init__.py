"""The projects of `whet demo`, as files; nothing runs here."""

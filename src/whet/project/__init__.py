"""Reads what users write: tables of whet.toml into frozen structs, and the Python that they name; and knows where what
outlives a project is kept.

This room knows nothing of what the settings or the code are for.
"""

from whet.project.home import data_folder
from whet.project.importing import find, is_reference
from whet.project.settings import decode_settings, nearest

__all__ = ["data_folder", "decode_settings", "find", "is_reference", "nearest"]

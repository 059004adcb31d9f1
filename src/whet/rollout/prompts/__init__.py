"""Prompts of this room, as files."""

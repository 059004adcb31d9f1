"""Worlds that live elsewhere: OpenEnv environments by URL, and MCP servers as tools.

What comes over the wire was written by others. It is read as data, never as code, and a peer that is slow, confused or
gone costs an episode: a fault of the world, which is tried again and never scored.
"""

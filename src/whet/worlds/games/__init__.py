"""Games with endless fresh tasks: each task is a seed, and no two splits share one.

Knows nothing of files; the rules and scores of a game are plain functions that can be called without a world.
"""

"""Learners turn evidence into proposals. Each lever is a package of its own; none knows how it will be judged."""

"""Tests that are run against an agent's code, without the code being able to touch the tests.

The answer runs in one sandbox and the tests in another. What the tests call goes over as plain data and comes back as
plain data, so no answer can patch the judge, read what is expected, or hand back an object that equals everything.
"""

from whet.worlds.unit_tests.scorer import UnitTests, UnitTestScorer

__all__ = ["UnitTestScorer", "UnitTests"]

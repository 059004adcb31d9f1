"""Plays the pack on a machine whose clock is off by so many days, and prints a digest of all verdicts.

at_another_time.py DAYS
"""

import asyncio
import datetime
import hashlib
import sys
import time

SHIFT = datetime.timedelta(days=int(sys.argv[1]))
real_time, RealDate, RealDatetime = time.time, datetime.date, datetime.datetime


class Date(RealDate):
    @classmethod
    def today(cls):
        return (RealDatetime.now() + SHIFT).date()


class Datetime(RealDatetime):
    @classmethod
    def now(cls, tz=None):
        return RealDatetime.now(tz) + SHIFT


time.time = lambda: real_time() + SHIFT.total_seconds()
datetime.date, datetime.datetime = Date, Datetime

from whet.core import Split  # noqa: E402
from whet.worlds.database import ScenarioSettings  # noqa: E402
from whet.worlds.pack import pack  # noqa: E402
from whet.worlds.solving import play  # noqa: E402


async def main() -> str:
    assert Date.today() == (RealDatetime.now() + SHIFT).date()
    world = pack(ScenarioSettings())
    digest = hashlib.blake2b(world.fingerprint.encode(), digest_size=16)
    for task in (task for split in Split for task in world.tasks(split)):
        for solution in (world.known_good(task), *world.damaged(task)):
            verdict = await play(await world.open(task, 0), solution)
            digest.update(repr((task, solution, verdict)).encode())
    return digest.hexdigest()


sys.stdout.write(asyncio.run(main()))

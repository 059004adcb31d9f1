"""Where code runs that we did not write.

This room knows how to confine Python: no network, no credentials, no file but what is given, no writable place but a
private folder, limits on everything, and nothing left behind. It knows nothing of worlds, tasks or verdicts.

    async with Pool(preload=("sqlite3", "json"), level=None) as pool:        # None: the strongest level there is here
        outcome = await pool.run(Program(source, entry="verify"), {"path": "/a.db"}, read=["/a.db"], limits=Limits())
        outcome.kind, outcome.value, outcome.error, outcome.output           # Ending.DONE, or how else it ended

        template = await pool.template(Host("package.module:Class", settings), read=[...], limits=HOST_LIMITS)
        worker = await template.fork(limits=Limits())                        # or fork(folder_made_in_template_folder)
        reply = await worker.ask(b"...", seconds=5)                          # bytes; one request, one reply
        await worker.close(); await template.close()                         # the pool does both at the latest

A program's `entry` is called with the arguments and returns what JSON can say; it may be async. It cannot have
children unless `Limits.processes` says so. What it does is an `Outcome`; `SandboxFault` (a `WorldFault`) is raised only
where the sandbox itself broke, so a failed answer and a fault of ours are never mistaken for each other.

A host is a class of ours: `__init__(settings)` and `load()` run once, confined, in the template; `start(scratch)` and
then `answer(request) -> reply` in each worker, in its own folder, which it works in and alone can write. Its module is
imported before the walls go up; what it imports later must be in Python's library, in whet, or in `read`. `load` must
leave no thread running. The template may write all of `template.folder`; a worker no other's folder, and no worker can
have children. A worker that does not reply in time, or whose request is cancelled, is ended (`WorkerLost`): a late
reply never becomes the next one's. An error that `answer` raises is `HostRaised`, and the worker goes on.
"""

from whet.sandbox.demand import PoolOnDemand
from whet.sandbox.levels import INSTALL_BUBBLEWRAP, Danger, Standing, Survey, survey
from whet.sandbox.orders import Level, Limits
from whet.sandbox.outcomes import Ending, Host, HostRaised, Outcome, Program, SandboxFault, WorkerLost
from whet.sandbox.pool import HOST_LIMITS, PRELOAD, Pool, SandboxWarning
from whet.sandbox.templates import Template, Worker

__all__ = [
    "HOST_LIMITS",
    "INSTALL_BUBBLEWRAP",
    "PRELOAD",
    "Danger",
    "Ending",
    "Host",
    "HostRaised",
    "Level",
    "Limits",
    "Outcome",
    "Pool",
    "PoolOnDemand",
    "Program",
    "SandboxFault",
    "SandboxWarning",
    "Standing",
    "Survey",
    "Template",
    "Worker",
    "WorkerLost",
    "survey",
]

"""Everything that whet raises on purpose.

WhetError                     the root; carries what to do next in `hint`
├── UserError                 the user's to mend; the command line exits with 2
│   ├── ConfigError           whet.toml or --set says something that cannot be
│   ├── InputError            a file or argument from outside is wrong (tasks, skill, export)
│   └── CredentialsError      a key is missing or was refused
├── EndpointError             a model endpoint failed; retried, then the run stops, resumable
│   ├── EndpointUnreachable   no connection, or it broke
│   ├── EndpointBusy          429 or overloaded; may say how long to wait
│   ├── EndpointTimeout       no answer in time
│   ├── RequestRefused        the endpoint says that the request itself is wrong; not retried
│   └── BadReply              it answered with something that is not an answer
├── WorldFault                a world's own code or process broke; never scored 0
├── BudgetExhausted           a cap would be exceeded; what was learned is kept
├── StoreError                the run's database
│   ├── StoreBusy             another process writes to it
│   ├── StoreFull             no room on the disk
│   └── StoreTooNew           written by a later whet
└── RunStopped                a training ended before its end; the same command goes on
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast


class WhetError(Exception):
    """One line of what happened, and in `hint` one line of what to do about it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


class UserError(WhetError):
    pass


class ConfigError(UserError):
    pass


class InputError(UserError):
    pass


class CredentialsError(UserError):
    pass


class EndpointError(WhetError):
    """`retry_after` is what the endpoint asked for, in seconds; `retryable` whether trying again can help."""

    retryable = True

    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class EndpointUnreachable(EndpointError):
    """`worked` says whether the endpoint may have done the work, and charge for it, before the connection broke."""

    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None, worked: bool = False) -> None:
        super().__init__(message, hint=hint, retry_after=retry_after)
        self.worked = worked


class EndpointBusy(EndpointError):
    pass


class EndpointTimeout(EndpointError):
    pass


class RequestRefused(EndpointError):
    retryable = False


class BadReply(EndpointError):
    pass


class WorldFault(WhetError):
    pass


class BudgetExhausted(WhetError):
    pass


class StoreError(WhetError):
    pass


class StoreBusy(StoreError):
    pass


class StoreFull(StoreError):
    pass


class StoreTooNew(StoreError):
    pass


class RunStopped(WhetError):
    pass


def cause_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What to tell of a group: the first error of ours in it, else the first of any kind."""
    leaves = list(_leaves(group))
    return next((leaf for leaf in leaves if isinstance(leaf, WhetError)), leaves[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(inner)
    else:
        yield error

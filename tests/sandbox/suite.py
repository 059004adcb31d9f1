"""Tries every attack as the user that starts it, and says which succeeded.

python suite.py open                          without a sandbox
python suite.py kernel|namespaces|process N   in it, with Landlock of version N at most
... quick                                     without those that take seconds
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whet.sandbox import Danger, Level, Limits, Pool, Program, SandboxWarning

SOURCE = (Path(__file__).parent / "attacks.py").read_text()
LIMITS = Limits(
    seconds=2.8, cpu_seconds=1, memory=128 << 20, file_size=16 << 20, disk=20 << 20, output=1 << 20, reply=1 << 20
)
LEFTOVER = f"left-{os.getpid()}"

ATTACKS: dict[Danger, tuple[str, ...]] = {
    Danger.READ: (
        "read_a_secret",
        "read_the_users",
        "list_a_folder",
        "read_through_a_symbolic_link",
        "read_through_a_hard_link",
        "read_through_the_folder_of_descriptors",
        "read_through_the_root_of_a_process",
        "read_below_an_opened_path",
        "read_by_handle",
        "watch_a_folder",
    ),
    Danger.WRITE: (
        "write_outside",
        "write_what_may_be_read",
        "remove_outside",
        "rename_outside",
        "move_in_from_outside",
        "truncate_by_name",
        "truncate_while_reading",
        "make_a_device",
        "write_a_setting_of_the_kernel",
    ),
    Danger.CHANGE: ("change_a_mode", "change_a_mode_through_a_descriptor", "change_times", "label_a_file"),
    Danger.NETWORK: (
        "connect_over_tcp",
        "send_over_udp",
        "listen",
        "connect_to_a_local_socket",
        "connect_to_an_abstract_socket",
        "send_to_an_abstract_socket_from_a_pair",
        "talk_to_the_kernel_by_netlink",
    ),
    Danger.SIGNAL: (
        "signal_a_process",
        "signal_the_parent",
        "signal_everybody_of_the_group",
        "signal_by_a_descriptor_of_its_own",
        "trace_a_process",
        "read_the_memory_of_a_process",
        "limit_a_process",
        "slow_down_a_process",
    ),
    Danger.SECRETS: (
        "read_the_environment",
        "find_the_environment_in_libc",
        "use_descriptors_of_others",
    ),
    Danger.KERNEL: (
        "read_the_environment_of_whet",
        "io_uring",
        "new_namespace_of_users",
        "new_namespace_by_clone",
        "enter_a_namespace",
        "mount_something",
        "change_the_root",
        "make_a_key",
        "load_a_filter_into_the_kernel",
        "handle_page_faults",
        "share_memory_by_key",
        "share_memory_by_name",
        "make_a_file_of_memory",
        "become_another_user",
        "become_root",
    ),
    Danger.FORK: ("execute_a_program", "execute_a_program_of_its_own", "fork_once", "fork_many"),
    Danger.LINGER: ("leave_a_process_behind",),
    Danger.EXHAUST: (
        "spin",
        "sleep_for_long",
        "eat_memory",
        "eat_shared_memory",
        "write_a_large_file",
        "write_many_files",
        "write_files_that_have_no_name",
        "print_without_end",
    ),
    Danger.FORGE: ("print_a_verdict",),
}
ONLY_FOR_ROOT = frozenset(
    {
        "become_another_user",
        "become_root",
        "change_the_root",
        "enter_a_namespace",
        "load_a_filter_into_the_kernel",
        "handle_page_faults",
        "make_a_device",
        "mount_something",
        "read_by_handle",
        "write_a_setting_of_the_kernel",
    }
)
"""An ordinary user cannot do these anyway."""
MANY_PROCESSES = frozenset({"leave_a_process_behind"})
"""Tried where children are allowed, because otherwise it fails at the first fork."""


def names(*, quick: bool = False) -> list[str]:
    groups = [group for danger, group in ATTACKS.items() if not (quick and danger is Danger.EXHAUST)]
    return [name for group in groups for name in group]


@contextlib.contextmanager
def something_to_attack(folder: Path) -> Iterator[dict[str, Any]]:
    outside = folder / "outside"
    outside.mkdir()
    for name in ("secret", "given", "to-remove", "to-rename", "to-move", "to-truncate", "to-empty"):
        (outside / f"{name}.txt").write_text("secret")
    facts: dict[str, Any] = {
        f"{name}": str(outside / f"{name}.txt") for name in ("secret", "given", "to-truncate", "to-empty")
    }
    victim = os.fork()
    if victim == 0:
        time.sleep(300)
        os._exit(0)
    abstract = f"whet-test-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        for kind, where in (
            (socket.SOCK_STREAM, str(folder / "unix")),
            (socket.SOCK_STREAM, f"\0{abstract}"),
            (socket.SOCK_DGRAM, f"\0{abstract}-datagrams"),
        ):
            local = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            local.bind(where)
            if kind == socket.SOCK_STREAM:
                local.listen()
        try:
            yield facts | {
                "outside": str(outside),
                "victim": victim,
                "whet": os.getpid(),
                "tcp": tcp.getsockname()[1],
                "udp": udp.getsockname()[1],
                "unix": str(folder / "unix"),
                "abstract": abstract,
                "abstract_datagrams": f"{abstract}-datagrams",
                "leftover": LEFTOVER,
            }
        finally:
            os.kill(victim, signal.SIGKILL)
            os.waitpid(victim, 0)


def leftovers() -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == LEFTOVER:
                found.append(int(entry.name))
    return found


def attack_in_the_open(name: str, facts: dict[str, Any], folder: Path) -> bool:
    """In a bare fork, as a program that is simply run."""
    told, tell = os.pipe()
    place = folder / f"open-{name}"
    place.mkdir()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.chdir(place)
        os.dup2(tell, 1)
        success = False
        with contextlib.suppress(BaseException):
            namespace: dict[str, Any] = {"__name__": "attacks"}
            exec(SOURCE, namespace)  # noqa: S102
            success = namespace[name](facts)
        os.write(tell, b"\nsucceeded" if success else b"\nfailed")
        os._exit(0)
    os.close(tell)
    said = b""
    while select.select([told], [], [], 10)[0] and (part := os.read(told, 1 << 16)):
        said = said[-100:] + part
        if said.endswith((b"\nsucceeded", b"\nfailed")):
            break
    os.close(told)
    os.waitpid(pid, 0)
    left = leftovers()
    for each in left:
        os.kill(each, signal.SIGKILL)
    if name in MANY_PROCESSES:
        return bool(left)
    # Whoever takes what is printed for the verdict is told that it is one.
    return said.endswith(b"\nsucceeded") or b'"value":true' in said


async def attack_inside(pool: Pool, name: str, facts: dict[str, Any]) -> bool:
    limits = Limits(seconds=LIMITS.seconds, processes=8) if name in MANY_PROCESSES else LIMITS
    outcome = await pool.run(Program(SOURCE, name), {"facts": facts}, read=[facts["given"]], limits=limits)
    if name in MANY_PROCESSES:
        assert outcome.value is True, outcome
        return bool(leftovers())
    return outcome.done and outcome.value is True


async def attack_all(
    level: Level, landlock: int, facts: dict[str, Any], folder: Path, tried: list[str]
) -> dict[str, bool]:
    async with Pool(level=level, landlock=landlock, folder=folder) as pool:
        assert pool.level is level
        return {name: await attack_inside(pool, name, facts) for name in tried}


def main() -> None:
    assert "WHET_TEST_SECRET" in os.environ
    warnings.simplefilter("ignore", SandboxWarning)
    with tempfile.TemporaryDirectory() as name, something_to_attack(Path(name)) as facts:
        if sys.argv[1] == "open":
            found = {each: attack_in_the_open(each, facts, Path(name)) for each in names()}
        else:
            tried = names(quick="quick" in sys.argv)
            found = asyncio.run(attack_all(Level(sys.argv[1]), int(sys.argv[2]), facts, Path(name), tried))
    sys.stdout.write(f"\n{json.dumps(found)}\n")


if __name__ == "__main__":
    main()

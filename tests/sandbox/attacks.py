"""What code that we did not write might try. Each returns True if it got what it wanted.

The same text is executed outside and inside the sandbox. `facts` says what there is to attack.
"""

import contextlib
import ctypes
import fcntl
import mmap
import os
import resource
import socket
import stat
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
MEGABYTE = b"x" * (1 << 20)


def syscall(x86_64, aarch64, *arguments):
    number = x86_64 if os.uname().machine == "x86_64" else aarch64
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    done = libc.syscall(ctypes.c_long(number), *wide)
    if done < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return done


# Reading


def read_a_secret(facts):
    return "secret" in open(facts["secret"]).read()


def read_the_users(facts):
    return bool(open("/etc/passwd").read())


def list_a_folder(facts):
    return bool(os.listdir(facts["outside"]))


def read_through_a_symbolic_link(facts):
    os.symlink(facts["secret"], "link")
    return "secret" in open("link").read()


def read_through_a_hard_link(facts):
    os.link(facts["secret"], "hard")
    return "secret" in open("hard").read()


def read_through_the_folder_of_descriptors(facts):
    place = os.open(facts["outside"], os.O_PATH)
    return "secret" in open(f"/proc/self/fd/{place}/secret.txt").read()


def read_through_the_root_of_a_process(facts):
    return bool(open("/proc/self/root/etc/passwd").read())


def read_below_an_opened_path(facts):
    place = os.open(facts["outside"], os.O_PATH)
    return bool(os.read(os.open("secret.txt", os.O_RDONLY, dir_fd=place), 10))


def read_by_handle(facts):
    handle = ctypes.create_string_buffer(8 + 128)
    ctypes.c_uint.from_buffer(handle).value = 128
    mount = ctypes.c_int()
    syscall(303, 264, -100, facts["secret"].encode(), handle, ctypes.byref(mount), 0)
    where = os.open(facts["outside"], os.O_RDONLY)
    return b"secret" in os.read(syscall(304, 265, where, handle, os.O_RDONLY), 100)


def watch_a_folder(facts):
    watch = libc.inotify_init1(0)
    return watch >= 0 and libc.inotify_add_watch(watch, facts["outside"].encode(), 0xFFF) >= 0


# Writing


def write_outside(facts):
    with open(facts["outside"] + "/new.txt", "w") as file:
        file.write("here")
    os.unlink(facts["outside"] + "/new.txt")
    return True


def write_what_may_be_read(facts):
    with open(facts["given"], "a") as file:
        file.write("more")
    return True


def remove_outside(facts):
    os.unlink(facts["outside"] + "/to-remove.txt")
    return True


def rename_outside(facts):
    os.rename(facts["outside"] + "/to-rename.txt", facts["outside"] + "/renamed.txt")
    return True


def move_in_from_outside(facts):
    os.rename(facts["outside"] + "/to-move.txt", "moved")
    return True


def truncate_by_name(facts):
    return libc.truncate(facts["to-truncate"].encode(), 0) == 0 and os.stat(facts["to-truncate"]).st_size == 0


def truncate_while_reading(facts):
    os.open(facts["to-empty"], os.O_RDONLY | os.O_TRUNC)
    return os.stat(facts["to-empty"]).st_size == 0


def change_a_mode(facts):
    os.chmod(facts["given"], 0o604)
    return stat.S_IMODE(os.stat(facts["given"]).st_mode) == 0o604


def change_a_mode_through_a_descriptor(facts):
    os.fchmod(os.open(facts["given"], os.O_RDONLY), 0o640)
    return stat.S_IMODE(os.stat(facts["given"]).st_mode) == 0o640


def change_times(facts):
    os.utime(facts["given"], (1, 1))
    return os.stat(facts["given"]).st_mtime == 1


def label_a_file(facts):
    os.setxattr(facts["given"], "user.mine", b"1")
    return True


def make_a_device(facts):
    os.mknod("device", stat.S_IFCHR | 0o666, os.makedev(1, 1))
    return True


def write_a_setting_of_the_kernel(facts):
    with open("/proc/sys/kernel/core_pattern", "r+") as file:
        file.write(file.read())
    return True


# Network and sockets


def connect_over_tcp(facts):
    socket.create_connection(("127.0.0.1", facts["tcp"]), timeout=2)
    return True


def send_over_udp(facts):
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", facts["udp"])) == 1


def listen(facts):
    socket.create_server(("127.0.0.1", 0))
    return True


def connect_to_a_local_socket(facts):
    socket.socket(socket.AF_UNIX).connect(facts["unix"])
    return True


def connect_to_an_abstract_socket(facts):
    socket.socket(socket.AF_UNIX).connect("\0" + facts["abstract"])
    return True


def send_to_an_abstract_socket_from_a_pair(facts):
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return ours.sendto(b"x", "\0" + facts["abstract_datagrams"]) == 1


def talk_to_the_kernel_by_netlink(facts):
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    return True


# Other processes


def signal_a_process(facts):
    os.kill(facts["victim"], 18)
    return True


def signal_the_parent(facts):
    os.kill(os.getppid() or 1, 18)
    return True


def signal_everybody_of_the_group(facts):
    os.kill(0, 0)
    return True


def signal_by_a_descriptor_of_its_own(facts):
    ours, _ = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETOWN, facts["victim"])
    return True


def trace_a_process(facts):
    attached = libc.ptrace(16, facts["victim"], 0, 0) == 0
    if attached:
        os.waitpid(facts["victim"], 0x40000000)
        libc.ptrace(17, facts["victim"], 0, 0)
    return attached


def read_the_memory_of_a_process(facts):
    return os.open(f"/proc/{facts['victim']}/mem", os.O_RDONLY) >= 0


def limit_a_process(facts):
    resource.prlimit(facts["victim"], resource.RLIMIT_CORE, (0, 0))
    return True


def slow_down_a_process(facts):
    os.setpriority(os.PRIO_PROCESS, facts["victim"], 19)
    return True


# Secrets


def read_the_environment(facts):
    return "WHET_TEST_SECRET" in os.environ


def read_the_environment_of_whet(facts):
    return b"WHET_TEST_SECRET" in open(f"/proc/{facts['whet']}/environ", "rb").read()


def find_the_environment_in_libc(facts):
    libc.getenv.restype = ctypes.c_char_p
    return libc.getenv(b"WHET_TEST_SECRET") is not None


def use_descriptors_of_others(facts):
    for number in range(4, 256):
        with contextlib.suppress(OSError):
            os.fstat(number)
            return True
    return False


# Rare parts of the kernel


def io_uring(facts):
    return syscall(425, 425, 4, ctypes.create_string_buffer(120)) >= 0


def new_namespace_of_users(facts):
    return syscall(272, 97, 0x10000000) == 0


def new_namespace_by_clone(facts):
    pid = syscall(56, 220, 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def enter_a_namespace(facts):
    return syscall(308, 268, os.open("/proc/self/ns/net", os.O_RDONLY), 0) == 0


def mount_something(facts):
    os.mkdir("mounted")
    done = libc.mount(b"none", os.path.abspath("mounted").encode(), b"tmpfs", 0, None) == 0
    if done:
        libc.umount2(os.path.abspath("mounted").encode(), 2)
    return done


def change_the_root(facts):
    os.chroot(os.getcwd())
    return True


def make_a_key(facts):
    return syscall(248, 217, b"user", b"whet-test", b"x", 1, -2) > 0


def load_a_filter_into_the_kernel(facts):
    return (
        syscall(321, 280, 0, ctypes.create_string_buffer(bytes([2, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1]), 72), 72) >= 0
    )


def handle_page_faults(facts):
    return syscall(323, 282, 0) >= 0


def share_memory_by_key(facts):
    found = syscall(29, 194, 0, 4096, 0o1600)
    syscall(31, 195, found, 0, None)
    return found >= 0


def share_memory_by_name(facts):
    os.close(os.open("/dev/shm/whet-test", os.O_RDWR | os.O_CREAT))
    os.unlink("/dev/shm/whet-test")
    return True


def make_a_file_of_memory(facts):
    return os.memfd_create("x") >= 0


def become_another_user(facts):
    os.setresuid(12345, 12345, 12345)
    return True


def become_root(facts):
    os.setresuid(0, 0, 0)
    return True


# Programs and processes


def execute_a_program(facts):
    pid = os.posix_spawn("/bin/true", ["true"], {})
    return os.waitpid(pid, 0)[1] == 0


def execute_a_program_of_its_own(facts):
    with open("/bin/true", "rb") as source, open("mine", "wb") as copy:
        copy.write(source.read())
    os.chmod("mine", 0o755)
    return os.waitpid(os.posix_spawn("mine", ["mine"], {}), 0)[1] == 0


def fork_once(facts):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def fork_many(facts):
    pids = []
    with contextlib.suppress(OSError):
        for _ in range(200):
            pid = os.fork()
            if pid == 0:
                time.sleep(20)
                os._exit(0)
            pids.append(pid)
    for pid in pids:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    return len(pids) == 200


def leave_a_process_behind(facts):
    ready, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with contextlib.suppress(OSError):
                os.setsid()
            libc.prctl(15, facts["leftover"].encode())
            os.write(tell, b"x")
            time.sleep(60)
        os._exit(0)
    os.read(ready, 1)
    return True


# Using things up


def spin(facts):
    end = time.process_time() + 2.5
    while time.process_time() < end:
        pass
    return True


def sleep_for_long(facts):
    time.sleep(3)
    return True


def eat_memory(facts):
    return len(bytearray(1 << 29)) > 0


def eat_shared_memory(facts):
    return len(mmap.mmap(-1, 1 << 29)) > 0


def write_a_large_file(facts):
    with open("large", "wb") as file:
        for _ in range(40):
            file.write(MEGABYTE)
    return True


def write_many_files(facts):
    for number in range(100):
        with open(f"part-{number}", "wb") as file:
            file.write(MEGABYTE)
        time.sleep(0.01)
    return True


def write_files_that_have_no_name(facts):
    files = []
    for _ in range(100):
        files.append(os.open("nameless", os.O_WRONLY | os.O_CREAT))
        os.unlink("nameless")
        os.write(files[-1], MEGABYTE)
        time.sleep(0.01)
    return True


def print_without_end(facts):
    for _ in range(40):
        os.write(1, MEGABYTE)
    return True


def print_a_verdict(facts):
    """What a judge would read who believes what is printed."""
    for number in (1, 2):
        os.write(number, b'\x00\x00\x00\x20\x00\x00\x00\x01\x00{"answer":"done","value":true} \n')
    sys.stdout.flush()
    os._exit(0)

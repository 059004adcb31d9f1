"""What Linux calls by number: the calls that the filter knows, on both machines that it is for.

One triple a call: its name, its number on x86_64, its number on aarch64 (- where there is none).
What is not in this table cannot be called inside.
"""

from __future__ import annotations

FILES = """
read 0 63  write 1 64  readv 19 65  writev 20 66  pread64 17 67  pwrite64 18 68  preadv 295 69  pwritev 296 70
preadv2 327 286  pwritev2 328 287  lseek 8 62  close 3 57  close_range 436 436  dup 32 23  dup2 33 -  dup3 292 24
access 21 -  faccessat 269 48  faccessat2 439 439  stat 4 -  fstat 5 80  lstat 6 -  newfstatat 262 79  statx 332 291
statfs 137 43  fstatfs 138 44  readlink 89 -  readlinkat 267 78  getdents 78 -  getdents64 217 61  getcwd 79 17
chdir 80 49  fchdir 81 50  mkdir 83 -  mkdirat 258 34  rmdir 84 -  unlink 87 -  unlinkat 263 35  rename 82 -
renameat 264 38  renameat2 316 276  link 86 -  linkat 265 37  symlink 88 -  symlinkat 266 36  ftruncate 77 46
fallocate 285 47  fsync 74 82  fdatasync 75 83  sync_file_range 277 84  flock 73 32  fadvise64 221 223
sendfile 40 71  copy_file_range 326 285  umask 95 166  open 2 -  openat 257 56  creat 85 -  fcntl 72 25  ioctl 16 29
"""

WAITING = """
pipe 22 -  pipe2 293 59  poll 7 -  ppoll 271 73  select 23 -  pselect6 270 72  epoll_create 213 -
epoll_create1 291 20  epoll_ctl 233 21  epoll_wait 232 -  epoll_pwait 281 22  epoll_pwait2 441 441  eventfd 284 -
eventfd2 290 19  timerfd_create 283 85  timerfd_settime 286 86  timerfd_gettime 287 87  signalfd 282 -
signalfd4 289 74  socketpair 53 199  sendto 44 206  recvfrom 45 207  sendmsg 46 211  recvmsg 47 212  shutdown 48 210
getsockname 51 204  getpeername 52 205  getsockopt 55 209  setsockopt 54 208
"""

MEMORY = """
mmap 9 222  munmap 11 215  mprotect 10 226  mremap 25 216  madvise 28 233  brk 12 214  msync 26 227  mincore 27 232
"""

SIGNALS = """
rt_sigaction 13 134  rt_sigprocmask 14 135  rt_sigreturn 15 139  rt_sigpending 127 136  rt_sigtimedwait 128 137
rt_sigsuspend 130 133  sigaltstack 131 132  restart_syscall 219 128  pause 34 -  alarm 37 -  getitimer 36 102
setitimer 38 103  timer_create 222 107  timer_settime 223 110  timer_gettime 224 108  timer_getoverrun 225 109
timer_delete 226 111  kill 62 129  tgkill 234 131
"""

THREADS = """
futex 202 98  set_robust_list 273 99  set_tid_address 218 96  rseq 334 293  membarrier 324 283  sched_yield 24 124
sched_getaffinity 204 123  sched_getparam 143 121  sched_getscheduler 145 120  sched_get_priority_max 146 125
sched_get_priority_min 147 126  arch_prctl 158 -  exit 60 93  exit_group 231 94  clone 56 220  clone3 435 435
prctl 157 167  prlimit64 302 261
"""

ITSELF = """
gettid 186 178  getpid 39 172  getppid 110 173  getuid 102 174  geteuid 107 175  getgid 104 176  getegid 108 177
getresuid 118 148  getresgid 120 150  getgroups 115 158  getpgrp 111 -  getpgid 121 155  getsid 124 156
getpriority 140 141  getrlimit 97 163  getrusage 98 165  times 100 153  uname 63 160  sysinfo 99 179  getcpu 309 168
gettimeofday 96 169  time 201 -  clock_gettime 228 113  clock_getres 229 114  clock_nanosleep 230 115
nanosleep 35 101  getrandom 318 278
"""

CHILDREN = """
fork 57 -  vfork 58 -  wait4 61 260  waitid 247 95  setsid 112 157  setpgid 109 154
"""

PROGRAMS = """
execve 59 221  execveat 322 281
"""

PRETENDED = """
chmod 90 -  fchmod 91 52  fchmodat 268 53  fchmodat2 452 452  utime 132 -  utimes 235 -  utimensat 280 88
futimesat 261 -
"""

LABELS = """
setxattr 188 5  lsetxattr 189 6  fsetxattr 190 7  getxattr 191 8  lgetxattr 192 9  fgetxattr 193 10
listxattr 194 11  llistxattr 195 12  flistxattr 196 13  removexattr 197 14  lremovexattr 198 15  fremovexattr 199 16
"""

NARROWING = """
landlock_create_ruleset 444 444  landlock_add_rule 445 445  landlock_restrict_self 446 446
"""


def numbers(group: str, machine: str) -> dict[str, int]:
    """The calls of a group by name, as far as this machine has them."""
    words = group.split()
    column = {"x86_64": 1, "aarch64": 2}[machine]
    triples = zip(words[::3], words[1::3], words[2::3], strict=True)
    return {triple[0]: int(triple[column]) for triple in triples if triple[column] != "-"}

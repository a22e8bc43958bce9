"""The agent's calls of Android's C library, by the API level that brought each (AOSP: bionic's `lib*.map.txt`).

21 stands for "by then". A function that is not here is looked up there before it is called. Those with 64 at their end
are the same function there.
"""

from __future__ import annotations

import re

FIRST_LEVEL = {
    name: level
    for level, names in {
        21: """
        __assert2 __cxa_atexit __errno __stack_chk_fail __stack_chk_guard _exit access acosf asinf atanf atoi ceilf
        chdir clock_gettime clock_nanosleep close closedir cosf dlerror dlopen dlsym dup2 environ eventfd execve exp
        expf fallocate fcntl flock fork fprintf fstat getauxval getenv getpid getppid getpriority getrlimit getrusage
        kill localeconv log logf memchr memcmp memcpy memmove memset mkdir mmap munmap nearbyintf open opendir pipe2
        poll powf ppoll prctl pread printf pthread_create pthread_setspecific pthread_sigmask puts read readdir realpath
        rename sched_getaffinity sched_setaffinity sched_yield setitimer setpgid setpriority setsid sigaction sigaddset
        sigemptyset signal sigprocmask sinf snprintf sscanf strcmp strcspn strerror strlen strtod strtol strtoll strtoul
        strtoull sysconf tanf tanhf timerfd_create timerfd_settime tolower uname unlink wait4 wmemchr write
        """,
        23: "sigtimedwait stderr",
    }.items()
    for name in names.split()
}
OF_GLIBC = {"__assert_fail": "__assert2", "__errno_location": "__errno", "__isoc99_sscanf": "sscanf"}
"""The names that headers of Linux and of bionic make of a call."""


def first_level(symbol: str) -> int | None:
    """The API level from which on a phone has what an object calls; None where the table does not know."""
    name = OF_GLIBC.get(symbol, symbol)
    plain = re.sub(r"^__(\w+?)(_time)?64$", r"\1", name)  # musl's, where its time has 64 bits and the processor 32
    return FIRST_LEVEL.get(name, FIRST_LEVEL.get(plain, FIRST_LEVEL.get(name.removesuffix("64"))))

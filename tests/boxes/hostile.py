"""Programs that want more than one answer: each looks for a way out of a box, and answers 1 where it found one.

``analyse`` of each gives 1 where it got through, 0 where it was kept in; a program that dies, hangs or floods gives
nothing. None of them is told what is outside: they look.
"""

__all__ = ["HOSTILE"]

ATTEMPT = """
def analyse(rows):
    try:
        return 1.0 if attempt(rows) else 0.0
    except BaseException:
        return 0.0
"""

HOSTILE: dict[str, str] = {
    "network by TCP": """
import socket
def attempt(rows):
    for family, place in ((socket.AF_INET, ("127.0.0.1", 80)), (socket.AF_INET6, ("::1", 80))):
        try:
            socket.socket(family).connect(place); return True
        except ConnectionRefusedError: return True
        except OSError: pass
""",
    "network by UDP": """
import socket
def attempt(rows):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 53)); return True
""",
    "abstract socket": """
import socket
def attempt(rows):
    one = socket.socket(socket.AF_UNIX); one.bind(b"\\0box"); return True
""",
    "raw netlink": """
import socket
def attempt(rows):
    return bool(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
""",
    "files of the host": """
import os
def attempt(rows):
    for path in ("/etc/passwd", "/etc/shadow", "/root/.ssh", "/home", "/opt", "/var", "/proc/1/environ", "/sys"):
        try: seen = os.listdir(path) if not path.endswith(("d", "w", "n")) else open(path).read()
        except OSError: continue
        if seen: return True
""",
    "environment": """
import os
def attempt(rows):
    return bool(set(os.environ) - {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LC_CTYPE", "PWD"})
""",
    "environment of process 1": """
def attempt(rows):
    return bool(open("/proc/1/environ").read())
""",
    "memory of itself by /proc": """
def attempt(rows):
    return bool(open("/proc/self/maps").read())
""",
    "fork": """
import os
def attempt(rows):
    if os.fork() == 0: os._exit(0)
    return True
""",
    "vfork by spawn": """
import os
def attempt(rows):
    return os.posix_spawn("/usr/bin/true", ["true"], {}) > 0
""",
    "exec": """
import os, sys
def attempt(rows):
    for path in ("/bin/sh", "/usr/bin/env", "/lib64/ld-linux-x86-64.so.2", sys.executable):
        try: os.execv(path, [path])
        except OSError: pass
""",
    "thread": """
import threading
def attempt(rows):
    seen = []
    one = threading.Thread(target=lambda: seen.append(1)); one.start(); one.join(); return bool(seen)
""",
    "memory": """
def attempt(rows):
    kept = []
    for _ in range(64): kept.append(bytearray(1 << 28))
    return True
""",
    "disk": """
import os
def attempt(rows):
    for path in ("/tmp/x", "/dev/shm/x", "x", "/x", "/packages/x", "/empty/x", "/var/tmp/x"):
        try:
            with open(path, "wb") as file: file.write(b"x" * 10_000)
            return True
        except OSError: pass
""",
    "memory file": """
import os
def attempt(rows):
    return os.memfd_create("x") >= 0
""",
    "ptrace": """
import ctypes, os
def attempt(rows):
    return ctypes.CDLL(None).ptrace(16, os.getppid() or 1, 0, 0) == 0
""",
    "memory of another process": """
import ctypes
def attempt(rows):
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(310, 1, None, 0, None, 0, 0) >= 0
""",
    "io_uring": """
import ctypes
def attempt(rows):
    return ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(120)) >= 0
""",
    "nested namespaces": """
import ctypes
def attempt(rows):
    libc = ctypes.CDLL(None)
    return any(libc.unshare(flag) == 0 for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000))
""",
    "mount": """
import ctypes
def attempt(rows):
    return ctypes.CDLL(None).mount(b"none", b"/empty", b"tmpfs", 0, None) == 0
""",
    "signals": """
import os, signal
def attempt(rows):
    os.kill(os.getppid() or -1, signal.SIGUSR1); return True
""",
    "shared memory": """
import ctypes
def attempt(rows):
    libc = ctypes.CDLL(None)
    return libc.shmget(42, 4096, 0o1666) >= 0
""",
    "message queue": """
import ctypes
def attempt(rows):
    return ctypes.CDLL(None).syscall(240, b"/box", 0o102, 0o666, None) >= 0
""",
    "keyring": """
import ctypes
def attempt(rows):
    return ctypes.CDLL(None).syscall(248, b"user", b"box", b"secret", 6, -3) >= 0
""",
    "symbolic links": """
import os
def attempt(rows):
    os.symlink("/etc/passwd", "/empty/link"); return True
""",
    "clock of the host": """
import time
def attempt(rows):
    time.clock_settime(time.CLOCK_REALTIME, 0); return True
""",
    "other filters": """
import ctypes
def attempt(rows):
    libc = ctypes.CDLL(None)
    return libc.prctl(22, 0) == 0 or libc.syscall(317, 1, 0, None) == 0
""",
    "more of its limits": """
import resource
def attempt(rows):
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2); return True
""",
    "another processor": """
import os
def attempt(rows):
    os.sched_setaffinity(0, range(64)); return True
""",
    "terminal": """
import fcntl, termios
def attempt(rows):
    return any(_tried(number) for number in range(3))
def _tried(number):
    try: fcntl.ioctl(number, termios.TIOCSTI, b"x"); return True
    except OSError: return False
""",
    "descriptors that were left open": """
import os
def attempt(rows):
    for number in range(2, 64):
        try:
            if os.read(number, 1): return True
        except OSError: pass
""",
    "load and memory of the host": """
import ctypes
def attempt(rows):
    return ctypes.CDLL(None).sysinfo(ctypes.create_string_buffer(128)) == 0
""",
    "lock on a file that others have": """
import fcntl, os
def attempt(rows):
    fcntl.lockf(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB); return True
""",
    "lease on a file that others have": """
import fcntl, os
def attempt(rows):
    for path in (os.__file__, *("/packages/" + name for name in os.listdir("/packages") if name.endswith(".py"))):
        try: fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK); return True
        except OSError: pass
""",
    "notice of what others do": """
import fcntl, os
def attempt(rows):
    fcntl.fcntl(os.open("/packages", os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_ACCESS); return True
""",
    "size of a pipe": """
import fcntl
def attempt(rows):
    return fcntl.fcntl(1, 1031, 1 << 20) > 0
""",
    "name of the host": """
import os
def attempt(rows):
    return os.uname().nodename != "box"
""",
    "who runs it": """
import os
def attempt(rows):
    return 0 in (os.getuid(), os.geteuid(), os.getgid())
""",
}
HOSTILE = {name: code + ATTEMPT for name, code in HOSTILE.items()}

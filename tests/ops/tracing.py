"""Stops one thread of another process, as a thread that hangs."""

import contextlib
import ctypes
import os
import pathlib

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long
# From ptrace(2).
DETACH, SEIZE, INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000


def ptrace(request, thread):
    if LIBC.ptrace(request, thread, None, None) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"ptrace of thread {thread}: {os.strerror(error)}")


@contextlib.contextmanager
def stopped_thread(process, name):
    """Stops the thread of that name; the others go on. It continues at the end of the block."""
    tasks = pathlib.Path(f"/proc/{process}/task").iterdir()
    names = {int(task.name): (task / "comm").read_text().strip() for task in tasks}
    thread = next((thread for thread, is_named in names.items() if is_named == name), None)
    assert thread is not None, f"no thread {name} in {sorted(names.values())}"
    ptrace(SEIZE, thread)
    ptrace(INTERRUPT, thread)
    os.waitpid(thread, WALL)
    try:
        yield
    finally:
        ptrace(DETACH, thread)

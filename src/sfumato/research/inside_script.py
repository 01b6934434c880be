"""What runs in a box for a script: it locks itself in, then runs one program that has no data and one way out.

This file is started by itself, like ``inside``. Nothing is mounted but the interpreter and its packages; the pipe that
brought the program is the only way out, and what answers on it takes questions and gives certificates.
"""

import io
import json
import os
import struct
import sys


def main() -> None:
    """Lock in, say that the box is ready, and run the program."""
    sys.path.insert(0, "/")
    import inside  # type: ignore[import-not-found]  # in a box it is the file beside this one

    setup = json.loads(inside.frame(0))
    os.environ.clear()
    os.environ.update(setup["environment"])
    sys.path[:] = [path for path in sys.path if path not in ("", "/")] + setup["packages"]
    sys.dont_write_bytecode = True
    from sfumato.core.documents import canonical, encode, parse
    from sfumato.research import connection, messages

    for name in setup["libraries"]:
        __import__(name)
    connection.warm_up()
    ctypes = inside.ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    inside.limit(setup["limits"])
    inside.undumpable(libc)
    if setup["landlock"]:
        inside.landlock(libc, setup["readable"], setup["landlock"])
    inside.filtered(libc, bytes.fromhex(setup["filter"]))
    os.write(1, b"R")
    code = inside.frame(0)
    sys.stdout = sys.stderr = io.StringIO()  # what is printed goes nowhere

    def ask(request: object) -> object:
        body = canonical(encode(request)).encode()
        whole = memoryview(struct.pack("<Q", len(body)) + body)
        while whole:
            whole = whole[os.write(1, whole) :]
        return messages.RESEARCH_MESSAGES.decode(parse(inside.frame(0).decode()), "message")

    connection.speak_through(ask)  # type: ignore[arg-type]  # it sends documents and gives documents
    status = 0
    try:
        exec(compile(code, "script.py", "exec", dont_inherit=True), {"__name__": "__main__"})  # noqa: S102 - what a box is for
    except BaseException:  # noqa: BLE001 - whatever happened is not told
        status = 1
    os.write(1, struct.pack("<Q", 1) + bytes([status]))
    os._exit(0)


if __name__ == "__main__":
    main()

"""Split a compiled lock into what everyone installs and two ways to have torch.

The build of torch for processors alone is a tenth of the size and needs none of the libraries for NVIDIA's devices; it
is tried first. Its digest is not where the others are, so it is named here. pip takes a build whose digest an index
states before one whose digest it must work out, so the two ways cannot be in one file.
"""

import re
import sys
from pathlib import Path

FOR_DEVICES = re.compile(r"^(torch|nvidia-|cuda-|triton)")
FOR_PROCESSORS = """\
torch==2.13.0 \\
    --hash=sha256:84453b69508ec79902f899c5ed9495acb9e2bbe9fda5f1d5d6f19e3c3842e1a7 \\
    --hash=sha256:6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b
"""  # 2.13.0+cpu for Python 3.11: aarch64, x86_64 (Python files as the index has them)


def split(compiled: str) -> tuple[str, str]:
    """The lock that all use, and torch as an index has it, with the libraries that it needs on Linux."""
    entries = [f"{entry}\n" for entry in re.split(r"\n(?=[a-z0-9])", compiled.rstrip("\n"))]
    devices = [entry for entry in entries if FOR_DEVICES.match(entry)]
    return "".join(entry for entry in entries if entry not in devices), "".join(devices)


if __name__ == "__main__":
    lock = Path(sys.argv[1])
    common, devices = split(lock.read_text())
    lock.write_text(common)
    lock.with_name("requirements-torch-devices.lock").write_text(devices)
    lock.with_name("requirements-torch-processors.lock").write_text(FOR_PROCESSORS)

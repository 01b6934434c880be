#!/bin/sh
# Says which package is missing before make tries to use it.
python="$1"
command -v "$python" >/dev/null 2>&1 || {
  echo "There is no '$python' here. Install Python 3.11 or newer (Debian: apt install python3), or say make PYTHON=/path/to/python3." >&2
  exit 1
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "'$python' is $("$python" --version); Sfumato needs Python 3.11 or newer. Say make PYTHON=python3.11." >&2
  exit 1
}
"$python" -c 'import venv, ensurepip' 2>/dev/null || {
  echo "'$python' lacks the venv module. Install it (Debian: apt install python3-venv)." >&2
  exit 1
}

"""A worker of research whose box is played: the program runs in this process, and reaches what a box would reach."""

import json
import sys

from sfumato.server.research.worker import carried_out
from tests.research.worlds import PLAYED

if __name__ == "__main__":
    print(json.dumps(carried_out(json.loads(sys.stdin.readline()), PLAYED)), flush=True)

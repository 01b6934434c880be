"""``python -m examples.course`` writes ``docs/course``; ``python -m examples.course run NOTEBOOK`` runs a notebook."""

import sys
from pathlib import Path

from examples.course.notebooks import write
from examples.course.running import run

match sys.argv[1:]:
    case []:
        write(Path(__file__).parents[2] / "docs" / "course")
    case ["run", path]:
        run(Path(path))
    case _:
        sys.exit(__doc__)

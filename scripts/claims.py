"""Run the tests of all claims and write docs/claims.md from their results, and the validation report from that.

With ``--from FILE`` the results are those that ``pytest --claims-report FILE`` wrote, and nothing is run.
Fails when a claim fails, or when an owner listed as finished still has an open claim.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

# Run as a file, Python looks for modules beside the script and not in the repository.
sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.claims.catalogue import load
from tests.claims.page import Tests, page, problems
from tests.docs import validation

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "claims.md"


def main() -> int:
    """Run, write, and say what is wrong; the exit status is 0 when nothing is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="report", type=Path, metavar="FILE", help="results of a run that was made")
    given: Path | None = parser.parse_args().report
    with tempfile.TemporaryDirectory() as folder:
        report = given or Path(folder) / "claims.json"
        status = 0 if given else _run(report)
        # 1: a test failed, and the page shows it; 5: no claim has a test yet.
        if status not in (0, 1, 5) or not report.exists():
            print(f"The tests did not run to the end (pytest status {status}); {PAGE.name} was not written.")
            return status or 1
        tests: Tests = json.loads(report.read_text(encoding="utf-8"))
    catalogue = load()
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(catalogue, tests), encoding="utf-8")
    validation.write()
    found = problems(catalogue, tests)
    for problem in found:
        print(problem)
    return 1 if found or status == 1 else 0


def _run(report: Path) -> int:
    command = ["-m", "pytest", "-m", "claim and not long", "--claims-report", str(report), "-q", "-n", "2"]
    return subprocess.run([sys.executable, *command], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

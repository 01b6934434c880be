"""Run failed tests of the command line, the browser or of processes once more, and print each as flaky.

Reads what the last run of pytest left behind. Any other failure stands: of a law, a claim or a statistical test a
second draw proves nothing. Status 0: all that failed may be tried again, and passed this time.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
CLAIMS = ROOT / ".claims.json"
AGAIN = (
    "tests/browser/",
    "tests/cli/",
    "tests/governance/test_killed.py",
    "tests/governance/test_parallel_spenders.py",
    "tests/runner/",
    "tests/streams/test_killed.py",
)


def standing(failed: list[str], claims: dict[str, dict[str, str]]) -> list[str]:
    """The failures that no second run may undo."""
    claimed = {test for tests in claims.values() for test in tests}
    return [test for test in failed if test in claimed or not test.startswith(AGAIN)]


def main() -> int:
    """Try again what may be tried again; the exit status is 0 when all of it passes."""
    failed: list[str] = sorted(json.loads(FAILED.read_text(encoding="utf-8"))) if FAILED.exists() else []
    if not failed or not CLAIMS.exists():
        print("The tests did not run to their end; nothing was tried again.")
        return 1
    if stays := standing(failed, json.loads(CLAIMS.read_text(encoding="utf-8"))):
        print("These failures stand, and nothing was tried again:", *stays, sep="\n  ")
        return 1
    status = subprocess.run([sys.executable, "-m", "pytest", "-q", *failed], cwd=ROOT, check=False).returncode
    print("FLAKY, to be mended next:" if status == 0 else "Failed twice:", *failed, sep="\n  ")
    return status


if __name__ == "__main__":
    sys.exit(main())

"""The process of one run: it alone opens the data, runs the program in its box, and names the releases that left.

It is told its run in one line on its standard input. It charges through the owner's socket and signs with the key for
releases; what it prints otherwise goes nowhere.
"""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any  # what JSON holds

from sfumato.core.documents import Registry, parse
from sfumato.governance.research_entries import Project
from sfumato.reports.declarations import DECLARATIONS
from sfumato.research.environment import JOBS, ResearchJob
from sfumato.research.served import ServedProject
from sfumato.tables.schema import Schema
from sfumato.vault import Vault

__all__ = ["carried_out", "main"]


def carried_out(task: dict[str, Any], jobs: Mapping[str, ResearchJob] = JOBS) -> dict[str, Any]:
    """Run one program; whether it came to its end, and the identifiers of what it released.

    Guarantee: all of it goes through the gate, which charges before it reads; no row, no number and no word of the
    program is in the reply. Sensitive: what lies at the places of the task.
    """
    try:
        project = Registry((Project,)).decode(parse(task["project"]), "project")
        vault = Vault(
            unit=DECLARATIONS.decode(task["unit"], "unit"),
            ledger=task["owner"],
            account=project.account,
            purpose=project.purpose,
            recipient=project.recipient,
            key=task["key"],
        )
        data = {name: (held["place"], Schema.from_toml(held["schema"])) for name, held in task["data"].items()}
        served = ServedProject(project, vault, data)
        finished = jobs[task["job"]].run(task["code"], served)
    except Exception:  # noqa: BLE001 - whatever it says may quote data
        return {"finished": False, "released": []}
    return {"finished": finished, "released": list(served.released)}


def main() -> None:
    """Carry out the run that the first line of the input says."""
    back = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    reply = carried_out(json.loads(sys.stdin.readline()))
    os.write(back, json.dumps(reply).encode() + b"\n")


if __name__ == "__main__":
    main()

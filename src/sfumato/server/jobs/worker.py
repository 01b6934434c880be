"""The worker process: it alone opens data, charges through the owner's socket, and says which release came of a job.

It is given one job at a time on its standard input and answers in one line each. What it prints otherwise goes nowhere.
"""

import contextlib
import json
import os
import sys
from collections import OrderedDict
from fractions import Fraction
from typing import IO, Any  # what JSON holds

from sfumato.core.budget import Budget
from sfumato.core.documents import parse
from sfumato.core.limits import Limit
from sfumato.core.units import user
from sfumato.errors import SfumatoError
from sfumato.reports.declarations import DECLARATIONS
from sfumato.tables.schema import Schema
from sfumato.vault import Vault

__all__ = ["answered", "main"]

OF_A_VAULT = ("owner", "account", "unit", "key", "purpose", "recipient", "reads", "datasets")
MOST_VAULTS = 8


def answered(task: dict[str, Any]) -> dict[str, Any]:
    """Release one question; the identifier of what was released, or in our own words why nothing was.

    Guarantee: all of it goes through the gate, which charges before it reads; no row and no exact number is in the
    reply. Sensitive: what lies at the places of the task.
    """
    try:
        vault = _VAULTS.opened(task)
        query = DECLARATIONS.decode(parse(task["query"]), "question")
        limit = task["limit"]
        gate = vault if limit is None else vault.limited(Limit(groups=limit[0], rows_per_group=limit[1]))
        release = gate.release(
            query,
            Budget(epsilon=Fraction(task["epsilon"]), delta=Fraction(task["delta"])),
            fresh=task["fresh"],
            idempotency=task["idempotency"],
            reads=None,
            even_if_useless=task["even_if_useless"],
        )
    except SfumatoError as wrong:
        _VAULTS.forget()
        return {"released": None, "words": str(wrong)}
    except Exception:  # noqa: BLE001 - whatever it says may quote data
        _VAULTS.forget()
        return {"released": None, "words": ""}
    return {"released": release.statement.identifier, "words": ""}


class _KeptVaults:
    """The vaults of the last jobs: whoever pays, for what, and the data as declared are part of what each is known by.

    A table is then opened once, and one whose file has changed since is refused, as in every vault that is kept.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Vault] = OrderedDict()

    def opened(self, task: dict[str, Any]) -> Vault:
        """The vault of a job."""
        key = json.dumps([task[name] for name in OF_A_VAULT], sort_keys=True)
        vault = self._kept.get(key)
        if vault is None:
            vault = Vault(
                unit=DECLARATIONS.decode(task["unit"], "unit"),
                ledger=task["owner"],
                account=task["account"],
                key=task["key"],
                purpose=task["purpose"],
                recipient=task["recipient"],
                reads=None if task["reads"] is None else tuple(task["reads"]),
            )
            for held in task["datasets"]:
                vault.table(held["place"], schema=Schema.from_toml(held["schema"]))
            self._kept[key] = vault
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_VAULTS:
            self._kept.popitem(last=False)
        return vault

    def forget(self) -> None:
        """Begin anew, after something went wrong."""
        self._kept.clear()


_VAULTS = _KeptVaults()


def warm_up() -> None:
    """Answer a question about nobody, so that the first one about somebody does not wait for what is imported."""
    import pyarrow as pa

    rows = pa.table({"person": ["a"], "age": [1]})
    home = Vault(unit=user("person", relation="add/remove"), budget=Budget(epsilon=1), name="warm")
    table = home.table(
        rows, name="nobody", version="1", limit=Limit(groups=1, rows_per_group=1), bounds={"age": (0, 1)}
    )
    table.sql("SELECT COUNT(*) AS n, AVG(age) AS mean FROM nobody").release(epsilon="1/2", even_if_useless=True)


def main() -> None:
    """Answer jobs until there are no more."""
    with contextlib.suppress(BrokenPipeError):
        _answer_all(_own_output())


def _own_output() -> IO[str]:
    """The way back to the service; whatever a library prints goes nowhere."""
    back = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    return os.fdopen(back, "w", encoding="utf-8")


def _answer_all(back: IO[str]) -> None:
    warm_up()
    _tell(back, {"ready": True})
    for line in sys.stdin:
        _tell(back, answered(json.loads(line)))


def _tell(back: IO[str], reply: dict[str, Any]) -> None:
    back.write(json.dumps(reply) + "\n")
    back.flush()


if __name__ == "__main__":
    main()

"""The accounts of the ledger: opened, listed, shared out, divided into windows of time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.ledger import Method, Order, Where, opened
from sfumato.cli.output import AsJson, one_line, say, say_json, say_line, terminal
from sfumato.cli.protected import Delta, Epsilon, Reason, Relation, Who, unit_of
from sfumato.cli.reading import Published, Trusted, reading
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.governance.policies import BaseAndReserve, Proportional

__all__ = ["allot", "list_accounts", "open_account", "windows"]

Account = Annotated[str, typer.Argument(metavar="PATH", help="The account: institution/department/project.")]
Span = Literal["daily", "weekly", "monthly", "quarterly", "yearly"]


def open_account(
    path: Account,
    *,
    unit: Who,
    epsilon: Epsilon,
    reason: Reason,
    relation: Relation = "add/remove",
    delta: Delta = "0",
    method: Method = "basic",
    order: Order = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Open an account with its cap: the institution first, then its departments, then their projects.

    A charge counts against the account and every level above it.

    Example: $ sfumato account open hospital --unit user:patient_id --epsilon 4 --delta 1e-6 --reason "for 2026"

    Example: $ sfumato account open hospital/oncology --unit user:patient_id --epsilon 2 --reason "weekly figures"
    """
    from sfumato.core.budget import Budget

    cap = Budget.asked(epsilon=epsilon, delta=delta)
    who = unit_of(unit, relation)
    with opened(ledger) as book:
        book.open_account(path, unit=who, cap=cap, reason=reason, method=method, order=order)
    if as_json:
        said = {"account": path, "cap": {"epsilon": str(cap.epsilon), "delta": str(cap.delta)}, "method": method}
        say_json(said)
    else:
        say_line(f"the account {path!r} may spend {cap}.")


def list_accounts(
    *, key: Trusted = None, head: Published = None, ledger: Where = None, as_json: AsJson = False
) -> None:
    """List the accounts: who is protected, the filter that decides, how often it was charged, and what is left.

    Example: $ sfumato account list
    """
    from sfumato.core.units import describe

    with reading(ledger, key, head) as book:
        found = [balance for balance in book.balances() if balance.name.startswith("account ")]
    if as_json:
        say_json(
            {
                "accounts": [
                    {
                        "account": each.name.removeprefix("account "),
                        "unit": describe(each.unit),
                        "method": each.method,
                        "charges": each.charges,
                        "cap": {"epsilon": str(each.cap.epsilon), "delta": str(each.cap.delta)},
                        "left": {"epsilon": str(each.left.epsilon), "delta": str(each.left.delta)},
                    }
                    for each in found
                ]
            }
        )
        return
    if not found:
        say("no account is open. Open one: sfumato account open NAME --unit … --epsilon … --reason …")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("account", "protects", "filter"):
        table.add_column(name, overflow="fold")
    for name in ("charges", "left"):
        table.add_column(name, justify="right", overflow="fold")
    for each in found:
        cells = (each.name.removeprefix("account "), describe(each.unit), each.method, str(each.charges))
        table.add_row(*(Text(one_line(cell)) for cell in cells), Text(str(each.left)))
    terminal().print(table)


def allot(
    path: Account,
    *,
    rule: Annotated[
        Literal["proportional", "reserve"],
        typer.Option(help="In proportion to planned releases, or base shares and a reserve that the board unlocks."),
    ],
    share: Annotated[
        list[str],
        typer.Option(metavar="NAME=X", help="For each account below PATH: its planned releases, or its base share."),
    ],
    reason: Reason,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Share the cap of an account out: open the accounts below it, each with its share, and record the rule.

    Example: $ sfumato account allot hospital/oncology --rule reserve --share trials=1/2 --share audit=1/4 --reason 2026
    """
    from sfumato.governance.ledger_state import account_line

    policy = _policy(rule, [_pair(text) for text in share])
    with opened(ledger) as book:
        book.allot(path, policy, reason=reason)
        caps = {balance.name: balance.cap for balance in book.balances()}
        locked = dict(book.decision_state().reserves).get(path)
    shares = {name: caps[account_line(f"{path}/{name}")] for name, _ in (_pair(text) for text in share)}
    if as_json:
        say_json(
            {
                "account": path,
                "rule": rule,
                "shares": {
                    name: {"epsilon": str(cap.epsilon), "delta": str(cap.delta)} for name, cap in shares.items()
                },
                "reserve": locked and {"epsilon": str(locked.epsilon), "delta": str(locked.delta)},
            }
        )
        return
    for name, cap in shares.items():
        say_line(f"{path}/{name}: {cap}")
    if locked is not None:
        say_line(f"reserve: {locked}, which only the board unlocks: sfumato budget request --action unlock")


def windows(
    path: Account,
    *,
    every: Annotated[Span, typer.Option(help="How long a window is.")],
    epsilon: Annotated[str, typer.Option(help="The cap of each window: ε.")],
    entry: Annotated[
        Span | None,
        typer.Option(help="What one protected entry is, of an event unit: all of a person in one such period."),
    ] = None,
    most_windows: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="In how many windows one person can have data, at most.")
    ] = None,
    lifetime_epsilon: Annotated[
        str | None, typer.Option(metavar="X", help="The privacy budget of a person over a lifetime: ε.")
    ] = None,
    delta: Annotated[str, typer.Option(help="The δ of each window.")] = "0",
    lifetime_delta: Annotated[str, typer.Option(metavar="X", help="The δ that goes with the lifetime.")] = "0",
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Give an account a budget for each window of time, beside its own cap. Its unit must be under add/remove.

    A new window gives nothing back to a person: the loss over a life is kept beside the windows, and has a cap. Where a
    person can have data in N windows at most, N times the cap of a window is that cap. Releases then say --reads.

    Example: $ sfumato account open register --unit event --epsilon 12 --reason "monthly figures"

    Example: $ sfumato account windows register --every monthly --entry monthly --epsilon 1 --lifetime-epsilon 24

    Example: $ sfumato account open panel --unit user:person --epsilon 20 --reason "five waves of a panel"

    Example: $ sfumato account windows panel --every quarterly --most-windows 5 --epsilon 1
    """
    from sfumato.core.budget import Budget
    from sfumato.governance.periods import Cadence
    from sfumato.governance.time_windows import TimeWindows

    cap = Budget.asked(epsilon=epsilon, delta=delta)
    if lifetime_epsilon is None and lifetime_delta != "0":
        raise InvalidInput("--lifetime-delta goes with --lifetime-epsilon; no window was opened. Say both.")
    lifetime = None if lifetime_epsilon is None else Budget.asked(epsilon=lifetime_epsilon, delta=lifetime_delta)
    with opened(ledger) as book:
        unit = book.balance(path).unit
        declared = TimeWindows(
            unit=unit,
            stretch=None if entry is None else Cadence(entry),
            every=Cadence(every),
            cap=cap,
            lifetime=lifetime,
            most_windows=most_windows,
        )
        book.set_windows(path, declared)
    if as_json:
        say_json({"account": path, "every": every, "entry": entry, "most_windows": most_windows})
    else:
        whom = "in all of them" if most_windows is None else f"with data in at most {most_windows} of them"
        life = declared.lifetime_cap
        say_line(f"{path}: the privacy budget is {cap} for each {every} window, and {life} for a person {whom}.")


def _policy(rule: str, pairs: Sequence[tuple[str, str]]) -> "Proportional | BaseAndReserve":
    from sfumato.core.exact import rational
    from sfumato.governance.policies import BaseAndReserve, Proportional

    if rule == "reserve":
        return BaseAndReserve(base=tuple((name, rational(text, f"the share of {name!r}")) for name, text in pairs))
    for name, text in pairs:
        if not text.isdecimal():
            raise InvalidInput(
                f"{name}={text} is not a number of planned releases; nothing was allotted. Give a whole number."
            )
    return Proportional(planned=tuple((name, int(text)) for name, text in pairs))


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise InvalidInput(f"{text!r} is not a share; nothing was allotted. Say --share NAME=X.")
    return name, value

"""Accounting on the command line: what several releases cost together, conversions, calibration."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli import accounts
from sfumato.cli.output import AsJson, say, say_json
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.core.documents import Json
    from sfumato.core.events import PrivacyEvent

__all__ = ["account"]

account = typer.Typer(
    help="Open and share out the accounts of the ledger; compose events, convert guarantees, calibrate noise. Reads no "
    "data.\n\nExample: $ sfumato account --help",
    no_args_is_help=True,
)
account.command("open")(accounts.open_account)
account.command("list")(accounts.list_accounts)
account.command("allot")(accounts.allot)
account.command("windows")(accounts.windows)

Method = Literal["pld", "rdp", "zcdp", "basic", "advanced", "optimal"]
Delta = Annotated[str, typer.Option(help="δ, as a decimal or a fraction such as 1e-6 or 1/1000000.")]


@account.command()
def compose(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Certificates, or JSON events (one or a list).")
    ],
    *,
    delta: Delta = "0",
    method: Annotated[
        Method, typer.Option(help="pld is tight; basic, zcdp and rdp hold under adaptive choice.")
    ] = "pld",
    as_json: AsJson = False,
) -> None:
    """Say what all releases or events in these files cost together: the ε at a δ, rounded up.

    Assumes that all of them speak of the same units. With pld, advanced and optimal the list must have been fixed
    beforehand.

    Example: $ sfumato account compose sfumato-demo/ili.json --delta 1e-6
    """
    from sfumato import accounting
    from sfumato.core.exact import probability

    events = [event for file in files for event in _events(file)]
    if not events:
        raise InvalidInput("the files hold no event; nothing was accounted.")
    if len({unit for file in files for unit in _units(file)}) > 1:
        raise InvalidInput(
            "the certificates protect different units or relations, and their losses do not add up; nothing was "
            "accounted. Convert them first, or account for each unit by itself."
        )
    asked = probability(delta, "delta")
    found = accounting.epsilon(events, delta=asked, method=method)
    _tell({"events": len(events), "method": method, "epsilon": found, "delta": asked}, as_json=as_json)


@account.command()
def convert(
    *,
    delta: Delta,
    epsilon: Annotated[str | None, typer.Option(help="From a pure guarantee ε.")] = None,
    rho: Annotated[str | None, typer.Option(help="From ρ-zCDP.")] = None,
    mu: Annotated[str | None, typer.Option(help="From μ-Gaussian DP.")] = None,
    group: Annotated[int, typer.Option(min=1, max=10**9, help="For this many units together.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Say which ε goes with δ for one guarantee, and what the strongest attacker gains.

    Example: $ sfumato account convert --rho 1/2 --delta 1e-5
    """
    from sfumato.core import adversary
    from sfumato.core.exact import non_negative
    from sfumato.core.guarantees import GDP, ZCDP, Guarantee, Pure

    given = {"epsilon": epsilon, "rho": rho, "mu": mu}
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) != 1:
        raise InvalidInput("give exactly one of --epsilon, --rho and --mu; nothing was converted.")
    size = non_negative(str(given[chosen[0]]), chosen[0])
    guarantee: Guarantee
    match chosen[0]:
        case "epsilon":
            guarantee = Pure(epsilon=size)
        case "rho":
            guarantee = ZCDP(rho=size)
        case _:
            guarantee = GDP(mu=size)
    whole = guarantee.group(group)
    figures: dict[str, object] = {
        "epsilon": whole.epsilon_at(delta),
        "delta": non_negative(delta, "delta"),
        "accuracy of guessing membership from even odds": adversary.accuracy(whole),
        "area under the curve of a membership attack": adversary.auc(whole),
    }
    _tell(figures, as_json=as_json)


@account.command()
def calibrate(
    *,
    delta: Delta,
    epsilon: Annotated[str | None, typer.Option(help="The ε to reach, or to find if not given.")] = None,
    sigma: Annotated[str | None, typer.Option(help="Noise for unit sensitivity, or to find.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, max=10**8, help="Number of steps, or to find.")] = None,
    sampling: Annotated[str | None, typer.Option(help="Poisson sampling rate of units, or to find.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find the one of ε, σ, steps and sampling that is not given, on the safe side, for Gaussian noise.

    Example: $ sfumato account calibrate --epsilon 1 --delta 1e-5 --steps 100 --sampling 0.01
    """
    from sfumato import accounting

    found: Fraction | int
    match epsilon, sigma, steps, sampling:
        case None, str(), int(), str():
            found = accounting.epsilon(accounting.plan(sigma=sigma, steps=steps, sampling=sampling), delta=delta)
            missing = "epsilon"
        case str(), None, int(), str():
            found = accounting.calibrate_sigma(epsilon=epsilon, delta=delta, steps=steps, sampling=sampling)
            missing = "sigma"
        case str(), str(), None, str():
            found = accounting.calibrate_steps(sigma=sigma, epsilon=epsilon, delta=delta, sampling=sampling)
            missing = "steps"
        case str(), str(), int(), None:
            found = accounting.calibrate_rate(sigma=sigma, epsilon=epsilon, delta=delta, steps=steps)
            missing = "sampling"
        case _:
            raise InvalidInput("give three of --epsilon, --sigma, --steps and --sampling; nothing was calibrated.")
    given: dict[str, object] = {
        "epsilon": epsilon,
        "sigma": sigma,
        "steps": steps,
        "sampling": sampling,
        "delta": delta,
    }
    _tell(given | {missing: found}, as_json=as_json)


def _events(file: Path) -> "list[PrivacyEvent]":
    from sfumato.core.documents import canonical, parse
    from sfumato.core.events import from_json
    from sfumato.reports.verify import verify

    try:
        body: Json = parse(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"{file} cannot be read as a text file; nothing was accounted.") from None
    if isinstance(body, dict) and body.get("kind") == "certificate":
        outcome = verify(body)
        if not outcome.consistent:
            raise InvalidInput(f"{file} does not verify and was not accounted.\n{outcome}")
        statement = body["statement"]
        return [from_json(canonical(statement["event"]))] if isinstance(statement, dict) else []
    return [from_json(canonical(event)) for event in (body if isinstance(body, list) else [body])]


def _units(file: Path) -> list[str]:
    """The unit of a certificate, as canonical text; events state none."""
    from sfumato.core.documents import canonical, parse

    body = parse(file.read_text(encoding="utf-8"))
    statement = body.get("statement") if isinstance(body, dict) else None
    return [canonical(statement.get("unit"))] if isinstance(statement, dict) else []


def _tell(figures: dict[str, object], *, as_json: bool) -> None:
    """Print figures as decimals rounded up; JSON has the exact fractions too."""
    from sfumato.core.exact import decimal_up

    if as_json:
        exact = {name: str(figure) if isinstance(figure, Fraction) else figure for name, figure in figures.items()}
        say_json(exact)
        return
    for name, figure in figures.items():
        say(f"{name} = {decimal_up(figure, 6) if isinstance(figure, Fraction) else figure}")

"""Requests to the board on a terminal and for programs: how each stands, who is still needed, what was entered."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli.output import one_line, say_json, say_line

if TYPE_CHECKING:
    from rich.console import Console

    from sfumato.governance.agreements import Agreement
    from sfumato.governance.ballots import Ballot
    from sfumato.governance.board import BoardEntry, Proposal, Vote
    from sfumato.governance.minutes import Minutes

__all__ = ["document", "draw", "entered", "needed", "wrote"]


def needed(asked: "Proposal", minutes: "Minutes") -> list[str]:
    """What is still missing for an approval, body by body: how many more, and of whom."""
    from sfumato.governance.board import Choice

    cast = {vote.voter: vote.choice for vote in minutes.votes(asked.number)}
    board = minutes.board
    bodies: list[tuple[str, tuple[str, ...], int, tuple[str, ...]]] = [("the board", board.members, board.quorum, ())]
    for site in asked.sites:
        local = board.committee(site)
        bodies.append((f"the committee of {site}", local.members, local.quorum, local.representatives))
    missing = []
    for name, members, quorum, representatives in bodies:
        able = [who for who in members if who != asked.proposer]
        yes = [who for who in able if cast.get(who) is Choice.YES]
        no = [who for who in able if cast.get(who) is Choice.NO]
        silent = [who for who in able if who not in cast]
        more = max(quorum, len(no) + 1) - len(yes)
        if more > 0:
            missing.append(f"{more} of {', '.join(silent)} for {name}")
        elif representatives and not set(yes) & set(representatives):
            missing.append(f"one of {', '.join(who for who in representatives if who in silent)} for {name}")
    return missing


def document(asked: "Proposal", minutes: "Minutes") -> dict[str, object]:
    """A request for programs."""
    decision = minutes.decision(asked.number)
    return {
        "request": asked.number,
        "action": asked.action.value,
        "subject": asked.subject,
        "by": asked.proposer,
        "key": minutes.signer(asked),
        "account": asked.account,
        "datasets": list(asked.datasets),
        "sites": list(asked.sites),
        "amount": asked.amount and {"epsilon": str(asked.amount.epsilon), "delta": str(asked.amount.delta)},
        "reasons": {"benefit": asked.reasons.benefit, "risk": asked.reasons.risk, "choice": asked.reasons.choice},
        "at": asked.at,
        "expires": asked.expires,
        "outcome": "open" if decision is None else decision.outcome.value,
        "why": None if decision is None else decision.why,
        "votes": [
            {
                "by": vote.voter,
                "vote": vote.choice.value,
                "reason": vote.reason,
                "at": vote.at,
                "key": minutes.signer(vote),
            }
            for vote in minutes.votes(asked.number)
        ],
        "needed": needed(asked, minutes) if decision is None else [],
    }


def draw(found: "Sequence[Proposal]", minutes: "Minutes", console: "Console") -> None:
    """Print the requests, newest last, each with what it waits for."""
    from rich.padding import Padding
    from rich.text import Text

    for asked in found:
        decision = minutes.decision(asked.number)
        state = "open" if decision is None else decision.outcome.value
        title = Text(f"{asked.number}  {state}: ", style="bold").append(one_line(asked.subject), style="not bold")
        console.print(title)
        for line in _lines(asked, minutes):
            console.print(Padding(Text(one_line(line)), (0, 0, 0, 3), expand=False))


def _lines(asked: "Proposal", minutes: "Minutes") -> list[str]:
    decision = minutes.decision(asked.number)
    about = [f"asked by {asked.proposer} on {asked.at[:10]} ({_signed(asked, minutes)})", asked.action.value]
    if asked.account is not None:
        about.append(f"account {asked.account}")
    if asked.datasets:
        about.append(f"datasets {', '.join(asked.datasets)}")
    if asked.sites:
        about.append(f"sites {', '.join(asked.sites)}")
    if asked.amount is not None:
        about.append(str(asked.amount))
    lines = ["; ".join(about)]
    votes = minutes.votes(asked.number)
    if votes:
        cast = (f"{vote.voter} {vote.choice.value} ({_signed(vote, minutes)})" for vote in votes)
        lines.append("votes: " + ", ".join(cast))
    if decision is not None:
        lines.append(f"{decision.at[:10]}: {decision.why}")
    else:
        lines.append(f"needs {'; '.join(needed(asked, minutes))}; until {asked.expires}")
    return lines


def _signed(entry: "BoardEntry", minutes: "Minutes") -> str:
    from sfumato.governance.board import signed_by

    return signed_by(minutes.signer(entry))


def entered(act: "BoardEntry", minutes: "Minutes | None" = None, *, as_json: bool) -> None:
    """Print what was entered; of a vote, with the ``minutes`` after it, what it decided."""
    from sfumato.governance.board import Proposal, Veto, VetoLifted, Vote

    match act:
        case Proposal():
            body: dict[str, object] = {"request": act.number, "subject": act.subject, "expires": act.expires}
            said = (
                f"request {act.number}: {act.subject}. The board decides until {act.expires}: sfumato budget requests"
            )
        case Vote() if minutes is not None:
            body, said = _voted(act, minutes)
        case Veto():
            body = {"community": act.community, "dataset": act.dataset, "veto": True}
            said = (
                f"{act.community} vetoes {act.dataset}: nothing is released from it until {act.community} lifts that."
            )
        case VetoLifted():
            body = {"community": act.community, "dataset": act.dataset, "veto": False}
            anew = "ask the board anew: sfumato budget request --action dataset"
            said = f"{act.community} lifts its veto over {act.dataset}; {anew}"
        case _:
            body = {"request": act.proposal, "outcome": "withdrawn"}
            said = f"request {act.proposal} is withdrawn."
    say_json(body) if as_json else say_line(said)


def _voted(vote: "Vote", minutes: "Minutes") -> tuple[dict[str, object], str]:
    from sfumato.governance.board import Choice

    number, choice, decision = vote.proposal, vote.choice.value, minutes.decision(vote.proposal)
    missing = [] if decision is not None else needed(minutes.proposal(number), minutes)
    outcome = None if decision is None else decision.outcome.value
    body: dict[str, object] = {"request": number, "vote": choice, "outcome": outcome, "needed": missing}
    if decision is not None:
        return body, f"request {number} is {outcome}: {decision.why}."
    done = "abstains" if vote.choice is Choice.ABSTAIN else f"votes {choice}"
    return body, f"request {number}: {vote.voter} {done}. Still needed: {'; '.join(missing)}."


def wrote(ballot: "Ballot | Agreement", out: Path | None, *, as_json: bool) -> None:
    """Write a paper or a signed one to a new file and show what it says; without a file, show it alone."""
    if out is not None:
        ballot.save(out)
    if as_json:
        say_json(
            {
                "file": None if out is None else str(out),
                "signed": ballot.signature is not None,
                "words": list(ballot.words),
            }
        )
        return
    for line in ballot.words:
        say_line(line)
    if out is not None:
        say_line(f"{'signed ballot' if ballot.signature else 'paper'}: {out}")

"""The budgets of an institution on a terminal: a tree with bars, and the same for programs."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.cli.output import one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

    from sfumato.core.budget import Budget
    from sfumato.governance.overview import Level, Overview

__all__ = ["Signs", "bar", "document", "draw"]

WIDEST, NARROWEST, GAP = 24, 6, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What lines and bars are drawn with."""

    spent: str
    open: str
    left: str
    branch: str
    last: str
    line: str
    letters: tuple[str, str, str, str]


FULL = Signs(spent="█", open="▒", left="·", branch="├─ ", last="└─ ", line="│  ", letters=("ε", "δ", "ρ", "α"))
PLAIN = Signs(
    spent="#", open="=", left=".", branch="|- ", last="`- ", line="|  ", letters=("eps", "delta", "rho", "alpha")
)
"""For a terminal that knows ASCII alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loss:
    """One kind of loss of a balance; without ``bar`` it is shown, and does not decide."""

    letter: str
    spent: Fraction
    open: Fraction
    left: Fraction
    cap: Fraction
    bar: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A heading without losses, or a balance; ``stem`` is the tree's line beside its further lines."""

    name: str
    stem: str = ""
    losses: Sequence[_Loss] = ()


def bar(spent: Fraction, held: Fraction, cap: Fraction, *, width: int, signs: Signs = FULL) -> str:
    """Draw a cap: what was answered, what is reserved, what is left; rounded against us.

    >>> bar(Fraction(1, 2), Fraction(1, 4), Fraction(1), width=8), bar(Fraction(0), Fraction(0), Fraction(1), width=4)
    ('████▒▒··', '····')
    >>> bar(Fraction(1, 1000), Fraction(0), Fraction(1), width=4), bar(Fraction(9), Fraction(0), Fraction(1), width=4)
    ('█···', '████')
    """
    if cap <= 0:
        return signs.spent * width
    solid = min(width, math.ceil(spent * width / cap))
    both = min(width, max(math.ceil((spent + held) * width / cap), solid + (held > 0)))
    return signs.spent * solid + signs.open * (both - solid) + signs.left * (width - both)


def draw(found: "Overview", console: "Console") -> None:
    """Print accounts as a tree, populations with their datasets, windows, and what else there is to say."""
    from rich.text import Text

    signs = PLAIN if console.options.ascii_only else FULL
    rows: list[_Row] = []
    for title, part in (("accounts", _accounts(found, signs)), ("people and their data", _people(found, signs))):
        rows += [_Row(name=title), *part] if part else []
    for each in found.windows:
        rows.append(_Row(name=f"{each.every} windows of {each.account}"))
        rows += [_Row(name=level.name, losses=_losses(level, signs)) for level in each.charged]
        rows.append(_Row(name="a whole life", losses=_losses(each.life, signs)))
    if not rows:
        console.print(Text("No account is open yet. Open one: sfumato account open NAME --unit … --epsilon …"))
        return
    console.print(_table(rows, console.width, signs) or _list(rows, signs))
    words = [f"{signs.spent} spent", f"{signs.open} reserved, not answered yet", f"{signs.left} left"]
    console.print(Text("\n" + "   ".join(words), style="dim"))
    console.print(Text(f"as of entry {found.entries}, {found.at}", style="dim"))
    for note in _notes(found, signs):
        console.print(Text(one_line(note)))


def _accounts(found: "Overview", signs: Signs) -> list[_Row]:
    by_path = {level.name: level for level in found.accounts}
    children: dict[str, list[str]] = {}
    for path in sorted(by_path, key=lambda path: path.split("/")):
        children.setdefault(path.rpartition("/")[0], []).append(path)

    def walk(path: str, before: str, own: str) -> Iterator[_Row]:
        below = children.get(path, [])
        stem = before + (signs.line if below else "")
        yield _Row(name=own + path.rpartition("/")[2], stem=stem, losses=_losses(by_path[path], signs))
        for child in below:
            end = child == below[-1]
            deeper = before + ("   " if end else signs.line)
            yield from walk(child, deeper, before + (signs.last if end else signs.branch))

    return [row for root in children.get("", []) for row in walk(root, "", "")]


def _people(found: "Overview", signs: Signs) -> list[_Row]:
    rows: list[_Row] = []
    for people in found.populations:
        about = [held for held in found.datasets if held.population == people.name]
        rows.append(_Row(name=people.name, stem=signs.line if about else "", losses=_losses(people, signs)))
        for held in about:
            own, stem = (signs.last, "   ") if held is about[-1] else (signs.branch, signs.line)
            rows.append(_Row(name=own + held.level.name, stem=stem, losses=_losses(held.level, signs)))
    return rows


def _losses(level: "Level", signs: Signs) -> Sequence[_Loss]:
    """The lines of a balance: what decides first."""
    epsilon, delta, rho, alpha = signs.letters
    kept, cap = level.balance, level.balance.cap
    if kept.filter_cap is not None and kept.filter_spent is not None and kept.filter_left is not None:
        return (
            _Loss(
                letter=rho if kept.order is None else alpha,
                spent=kept.filter_spent - level.open_loss,
                open=level.open_loss,
                left=kept.filter_left,
                cap=kept.filter_cap,
            ),
            _Loss(
                letter=epsilon,
                spent=kept.spent.epsilon,
                open=Fraction(0),
                left=kept.left.epsilon,
                cap=cap.epsilon,
                bar=False,
            ),
        )
    lines = [
        _Loss(
            letter=epsilon,
            spent=kept.epsilon_spent - level.open_epsilon,
            open=level.open_epsilon,
            left=kept.left.epsilon,
            cap=cap.epsilon,
        )
    ]
    if cap.delta or kept.delta_spent:
        lines.append(
            _Loss(
                letter=delta,
                spent=kept.delta_spent - level.open_delta,
                open=level.open_delta,
                left=kept.left.delta,
                cap=cap.delta,
            )
        )
    return lines


def _table(rows: Sequence[_Row], width: int, signs: Signs) -> "RenderableType | None":
    """Columns of figures, with bars as long as there is room for; None where there is too little."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    losses = [loss for row in rows for loss in row.losses]
    held = any(loss.open for loss in losses)
    heading = ["spent", *(["reserved"] if held else []), "left", "cap"]
    figures = [_figures(loss, held=held) for loss in losses]
    numbers = sum(max(map(len, column)) for column in zip(heading, *figures, strict=True))
    names = max(cell_len(one_line(row.name)) for row in rows)
    letters = max((len(loss.letter) for loss in losses), default=1)
    size = min(WIDEST, width - names - letters - numbers - GAP * (len(heading) + 2))
    if size < NARROWEST:
        return None
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
    for _ in range(3):
        drawn.add_column("", no_wrap=True)
    for name in heading:
        drawn.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        if not row.losses:
            if drawn.row_count:
                drawn.add_row()
            drawn.add_row(Text(one_line(row.name), style="bold"))
        for place, loss in enumerate(row.losses):
            shown = Text(one_line(row.stem if place else row.name))
            drawn.add_row(shown, loss.letter, _drawn(loss, size, signs), *_figures(loss, held=held))
    return drawn


def _list(rows: Sequence[_Row], signs: Signs) -> "RenderableType":
    """The same one below the other, for a narrow terminal."""
    from rich.text import Text

    drawn = Text()
    for row in rows:
        drawn.append(f"{one_line(row.name)}\n", style="" if row.losses else "bold")
        for loss in row.losses:
            spent, held, left, cap = _figures(loss, held=True)
            reserved = f" ({held} reserved)" if held else ""
            rest = f", {left} left" if left else ""
            drawn.append(f"{one_line(row.stem)}{loss.letter} ").append_text(_drawn(loss, NARROWEST, signs))
            drawn.append(f" {spent}{reserved} of {cap}{rest}\n")
    drawn.rstrip()
    return drawn


def _drawn(loss: _Loss, size: int, signs: Signs) -> "Text":
    from rich.text import Text

    if not loss.bar:
        return Text(" " * size)
    text = bar(loss.spent, loss.open, loss.cap, width=size, signs=signs)
    solid, light = text.count(signs.spent), text.count(signs.open)
    drawn = Text(text[:solid], style="red" if loss.left == 0 else "cyan")
    return drawn.append(text[solid : solid + light], style="yellow").append(text[solid + light :], style="default")


def _figures(loss: _Loss, *, held: bool) -> list[str]:
    """What was lost rounded up, what is left rounded down."""
    from sfumato.core.exact import decimal_down, decimal_up

    middle = [decimal_up(loss.open) if loss.open else ""] if held else []
    left = decimal_down(loss.left) if loss.bar else ""
    return [decimal_up(loss.spent), *middle, left, decimal_down(loss.cap)]


def _notes(found: "Overview", signs: Signs) -> Iterable[str]:
    from sfumato.core.exact import decimal_down, decimal_up

    epsilon, delta, rho, alpha = signs.letters

    def words(budget: "Budget") -> str:
        return str(budget).replace("ε", epsilon).replace("δ", delta).replace("≤", "<=" if signs is PLAIN else "≤")

    for level in (*found.accounts, *found.populations):
        kept = level.balance
        if kept.filter_cap is not None:
            sign, name = (rho, "zCDP filter") if kept.order is None else (alpha, f"Renyi filter of order {kept.order}")
            at, pure = f"{delta} = {decimal_up(kept.cap.delta)}", decimal_down(kept.left.epsilon)
            yield (
                f"{level.name} is kept by a {name}: {sign} decides, and the {epsilon} spent is read at {at}; noise "
                f"without a {delta} may still ask for {epsilon} = {pure}"
            )
    for path, locked in found.reserves:
        yield f"{path}: a reserve of {words(locked)} is locked; the board unlocks it (sfumato budget request)"
    by_path = {level.name: level.balance for level in found.accounts}
    for path, balance in by_path.items():
        above = ["/".join(path.split("/")[:depth]) for depth in range(1, path.count("/") + 1)]
        short = [level for level in above if by_path[level].left.epsilon < balance.left.epsilon]
        if short:
            least = min(short, key=lambda level: by_path[level].left.epsilon)
            yield f"{path} can ask for no more than {words(by_path[least].left)}, which is what {least} has left"
    for held in found.datasets:
        if held.vetoed_by:
            yield f"{held.level.name}: vetoed by {', '.join(held.vetoed_by)}; nothing is released from it"
        if held.closed:
            yield f"{held.level.name}: version {', '.join(held.closed)} is closed after its engine failed"
    for each in found.windows:
        always = f"who was there all along has lost {words(each.standing.all_along)}"
        most = each.standing.most_windows
        if most is None:
            yield f"{each.account}: a person {always}; windows do not give anything back"
        else:
            several, lost = f"{most} window{'s' if most > 1 else ''}", words(each.standing.lifetime)
            yield f"{each.account}: a person with data in at most {several} has lost at most {lost}; one {always}"
    if found.waiting:
        number = len(found.waiting)
        yield f"{number} request{'s wait' if number > 1 else ' waits'} for the board: sfumato budget requests"


def document(found: "Overview") -> dict[str, object]:
    """All figures, exact, for programs."""
    return {
        "ledger": found.ledger,
        "entries": found.entries,
        "at": found.at,
        "board": found.board,
        "accounts": [_standing(level) for level in found.accounts],
        "populations": [_standing(level) for level in found.populations],
        "datasets": [
            _standing(held.level)
            | {
                "population": held.population,
                "versions": list(held.versions),
                "closed": list(held.closed),
                "vetoed_by": list(held.vetoed_by),
            }
            for held in found.datasets
        ],
        "windows": [
            {
                "account": each.account,
                "every": each.every,
                "cap": _exact(each.cap),
                "charged": [_standing(level) for level in each.charged],
                "lifetime": _standing(each.life) | {"name": "lifetime"},
                "most_windows": each.standing.most_windows,
                "all_along": _exact(each.standing.all_along),
            }
            for each in found.windows
        ],
        "reserves": [{"account": path, "locked": _exact(locked)} for path, locked in found.reserves],
        "waiting": list(found.waiting),
    }


def _standing(level: "Level") -> dict[str, object]:
    from sfumato.core.units import describe

    kept = level.balance
    filtered = None
    if kept.filter_cap is not None:
        filtered = {"cap": str(kept.filter_cap), "spent": str(kept.filter_spent), "reserved": str(level.open_loss)}
        filtered |= {} if kept.order is None else {"order": str(kept.order)}
    return {
        "name": level.name,
        "unit": describe(kept.unit),
        "cap": _exact(kept.cap),
        "spent": _exact(kept.spent),
        "reserved": {"epsilon": str(level.open_epsilon), "delta": str(level.open_delta)},
        "left": _exact(kept.left),
        "method": kept.method,
        "filter": filtered,
        "charges": kept.charges,
    }


def _exact(budget: "Budget") -> dict[str, str]:
    return {"epsilon": str(budget.epsilon), "delta": str(budget.delta)}

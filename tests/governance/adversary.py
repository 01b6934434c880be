"""Somebody who can write anything to the database of a ledger, and what the ledger then does when it is asked."""

# ruff: noqa: S608 - the statements of a test, on tables of its own

import copy
import random
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.core.budget import Budget
from sfumato.core.ledger import Reservation
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.errors import SfumatoError
from sfumato.governance.anchor import Head, SignedHead
from sfumato.governance.board import Action, Board, Choice, Community, Reasons, VetoLifted
from sfumato.governance.entries import (
    AccountOpened,
    Acted,
    Advanced,
    BoardSeated,
    Committed,
    DataClosed,
    DatasetClosed,
    DatasetDeclared,
    Expired,
    Migrated,
    PopulationDeclared,
    Recovered,
    Released,
    Repriced,
    Reserved,
    Row,
    Started,
    TermsDeclared,
    WitnessNamed,
)
from sfumato.governance.entry_tree import Frontier
from sfumato.governance.leaves import map_of
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import MemoryLedgerState, Totals, apply, end_of, question_key, replay
from sfumato.governance.rows import (
    RECORD,
    TABLES,
    balance_of,
    charge_of,
    columns,
    edition_of,
    named,
    totals_of,
)
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, furnished
from tests.governance.signers import key_of, keyed, reseated
from tests.governance.test_governed import TERMS

Tables = dict[str, list[dict[str, Any]]]
Change = Callable[[Tables, random.Random], None]

TENTH, HALF = Budget(epsilon="1/10"), Budget(epsilon="1/2")
REGISTER = Dataset(name="register", edition="1")
SCANS, NEW_SCANS = Dataset(name="scans", edition="1"), Dataset(name="scans", edition="2")
WHY = Reasons(benefit="beds are planned by it", risk="a rare case could be guessed", choice="±6 is enough for that")
BOARD = keyed(
    Board(
        members=("ada", "ben", "cho"),
        quorum=2,
        communities=(Community(name="valley", representatives=("mele",), datasets=("register",)),),
    )
)
STATE = ("balance", "edition", "charge", "answer", "node")


@dataclass(frozen=True)
class Scene:
    """A ledger with something of everything, its tables now and at earlier times, and the charges to ask about."""

    home: Home
    now: Tables
    before: tuple[Tables, ...]
    answered: Reservation
    waiting: Reservation
    queued: Reservation
    stream: Reservation
    server: str | None = None


def connected(home: Home) -> Any:
    if home.lite:
        return sqlite3.connect(home.url)
    import psycopg

    return psycopg.connect(home.url)


def tables_of(home: Home) -> Tables:
    """All that the database holds."""
    connection = connected(home)
    found: Tables = {}
    for table in TABLES.tables.values():
        names = columns(table)
        rows = connection.execute(f"SELECT {', '.join(names)} FROM {table.name}").fetchall()
        found[table.name] = [dict(zip(names, row, strict=True)) for row in rows]
    connection.close()
    return found


def written(home: Home, before: Tables, after: Tables) -> bool:
    """Put other tables into the database, without constraints where they are in the way; False where it refuses."""
    changed = [name for name in after if after[name] != before[name]]
    for bare in (False, True):
        connection = connected(home)
        try:
            for trigger in ("record_no_update", "record_no_delete") if home.lite else ():
                connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
            if not home.lite:
                connection.execute("DROP TRIGGER IF EXISTS record_kept ON record")
            for name in changed:
                _write(connection, home, name, after[name], bare=bare)
            connection.commit()
        except Exception:  # noqa: BLE001 - of one driver or the other; the second time around it is given up
            connection.rollback()
        else:
            return True
        finally:
            connection.close()
    return False


def _write(connection: Any, home: Home, name: str, rows: list[dict[str, Any]], *, bare: bool) -> None:
    names = columns(TABLES.tables[name])
    if bare:
        connection.execute(f"CREATE TABLE bare_{name} AS SELECT * FROM {name}")
        connection.execute(f"DROP TABLE {name}")
        connection.execute(f"ALTER TABLE bare_{name} RENAME TO {name}")
    connection.execute(f"DELETE FROM {name}")
    mark = "?" if home.lite else "%s"
    for row in rows:
        values = [row[one] for one in names]
        connection.execute(f"INSERT INTO {name} ({', '.join(names)}) VALUES ({', '.join([mark] * len(names))})", values)


def scene(home: Home) -> Scene:
    """Accounts, populations, datasets of which one is closed, a board and a veto, charges of every kind, answers."""
    ledger = furnished(home, project=Budget(epsilon=2), population=Budget(epsilon=3))
    plain = user(ledger)
    ledger.open_account("hospital/other", unit=PATIENT, cap=Budget(epsilon=50), reason="another one")
    ledger.declare_population("others", unit=PATIENT, cap=Budget(epsilon=50), reason="other people")
    for dataset, people in ((REGISTER, "patients"), (SCANS, "others"), (NEW_SCANS, "others")):
        ledger.declare_dataset(dataset, population=people, cap=Budget(epsilon=50))
    before = [tables_of(home)]
    answered = plain.reserve(HALF, datasets=[VISITS], idempotency="answered", question="how many?")
    plain.commit_text(answered, "how many?", '{"answer":7}')
    plain.commit_text(plain.reserve(TENTH, datasets=[SCANS]), "how many scans?", '{"answer":8}')
    plain.release(plain.reserve(HALF, datasets=[VISITS], idempotency="given back", queued=True))
    before.append(tables_of(home))
    plain.close([SCANS], {})
    ledger.seat(BOARD, by="director", reason="the statute of 2026")
    for name in ("visits", "register", "scans"):
        ledger.declare_terms(replace(TERMS, dataset=name))
        number = ledger.propose(
            by="ada", action=Action.DATASET, subject=name, reasons=WHY, datasets=(name,), key=key_of("ada")
        )
        for voter in ("ben", "cho"):
            ledger.vote(number, by=voter, key=key_of(voter), choice=Choice.YES)
    before.append(tables_of(home))
    account = user(ledger)
    stream = account.reserve(TENTH, datasets=[VISITS], idempotency="stream", question="a stream")
    for place, holder in enumerate(("a", "b")):
        account.advance(stream, place, holder, datasets=[VISITS])
    queued = account.reserve(TENTH, datasets=[VISITS], queued=True)
    account.commit_text(account.reserve(TENTH, datasets=[REGISTER]), "who?", '{"answer":9}')
    waiting = account.reserve(HALF, datasets=[VISITS])
    ledger.veto(by="mele", key=key_of("mele"), community="valley", dataset="register", reason="we were not asked")
    assert ledger.verify() == ()
    ledger.close()
    if home.lite:
        _folded(home)
    return Scene(home, tables_of(home), tuple(before), answered, waiting, queued, stream)


def user(ledger: Ledger, path: str = ACCOUNT) -> Any:
    return ledger.account(path, unit=PATIENT, purpose="research/oncology", recipient="public")


def _folded(home: Home) -> None:
    """One file, that can be copied."""
    connection = sqlite3.connect(home.url)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()


def copied(of: Scene, folder: Path) -> Home:
    """The same ledger, database and anchor, at another place."""
    folder.mkdir()
    shutil.copytree(of.home.folder, folder / "apart")
    if of.home.lite:
        shutil.copy(of.home.url, folder / "ledger.db")
        return Home(url=str(folder / "ledger.db"), folder=str(folder / "apart"))
    import secrets

    import psycopg
    from sqlalchemy.engine import make_url

    name, old = f"copy_{secrets.token_hex(6)}", make_url(of.home.url).database
    with psycopg.connect(str(of.server), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{old}"')  # type: ignore[call-overload]
    url = make_url(of.home.url).set(database=name).render_as_string(hide_password=False)
    return Home(url=url, folder=str(folder / "apart"))


# -------------------------------------------------------------------------------------------- what the ledger is asked


def asked_of(of: Scene, ledger: Ledger, account: Any) -> dict[str, Callable[[], object]]:
    """Operations in their order; those that write where nothing was forged come last."""
    small = Budget(epsilon="1/100")

    def reserved(cost: Budget, dataset: Dataset, path: str = ACCOUNT, **more: Any) -> Callable[[], object]:
        return lambda: (account if path == ACCOUNT else user(ledger, path)).reserve(cost, datasets=[dataset], **more)

    def whole() -> object:
        charge = account.reserve(small, datasets=[VISITS])
        account.commit_text(charge, "how many now?", '{"answer":10}')
        return charge, account.answer("how many now?"), account.spent

    def proposed() -> object:
        number = ledger.propose(
            by="ada",
            action=Action.RAISE,
            subject="x",
            reasons=WHY,
            account="population others",
            amount=TENTH,
            key=key_of("ada"),
        )
        return ledger.minutes().proposal(number).datasets

    return {
        "over the cap of the account": reserved(Budget(epsilon=1), NEW_SCANS),
        "over the cap of the population": reserved(Budget(epsilon=2), VISITS, "hospital/other"),
        "under a veto": reserved(small, REGISTER),
        "of a closed version": reserved(small, SCANS),
        "of a version that nobody declared": reserved(small, Dataset(name="visits", edition="none")),
        "by an account that nobody opened": reserved(small, VISITS, "hospital/none"),
        "a retry": reserved(HALF, VISITS, idempotency="answered", question="how many?"),
        "the answer of a retry": lambda: account.answer_of(of.answered),
        "another request under a key": reserved(small, VISITS, idempotency="answered"),
        "under a key that was given back": reserved(HALF, VISITS, idempotency="given back", queued=True),
        "a key that nobody used": lambda: account.charge_named("unknown"),
        "a stored answer": lambda: account.answer("how many?"),
        "another stored answer": lambda: account.answer("who?"),
        "an answer that nobody has": lambda: account.answer("how many more?"),
        "a second draw for a charge": lambda: account.commit_text(of.answered, "how many?", "{}"),
        "a started charge given back": lambda: account.release(of.waiting),
        "a charge of something else": lambda: account.again(of.stream.number, "another stream"),
        "the charge of a stream": lambda: account.again(of.stream.number, "a stream"),
        "a place of a stream again": lambda: account.advance(of.stream, 1, "c", datasets=[VISITS]),
        "an answer without a start": lambda: account.commit_text(of.queued, "queued", "{}"),
        "a receipt": lambda: ledger.receipt(of.answered.number + 1),  # of the entry that answers it
        "which are closed": lambda: [account.closed(each) for each in (SCANS, NEW_SCANS, VISITS)],
        "what is left": lambda: account.left_for([VISITS]),
        "a second opening": lambda: ledger.open_account(ACCOUNT, unit=PATIENT, cap=Budget(epsilon=9), reason="again"),
        "a dataset of other people": lambda: ledger.declare_dataset(
            Dataset(name="visits", edition="3"), population="others", cap=Budget(epsilon=100, delta="1/1000")
        ),
        "a veto lifted by somebody": lambda: ledger.lift_veto(
            by="ada", community="valley", dataset="register", reason="x", key=key_of("ada")
        ),
        "a raise without a decision": lambda: ledger.vote(1, by="ben", key=key_of("ben"), choice=Choice.YES),
        "a charge": whole,
        "a proposal about people": proposed,
    }


def outcomes(of: Scene, ledger: Callable[[], Ledger]) -> dict[str, object]:
    """What each operation gives; nothing at all where the ledger cannot be opened."""
    found: dict[str, object] = {}
    try:
        book = ledger()
        account = user(book)
    except SfumatoError:
        return {}
    for name, operation in asked_of(of, book, account).items():
        try:
            found[name] = ("given", operation())
        except SfumatoError:
            found[name] = REFUSED
    book.close()
    return found


REFUSED = ("refused",)


def fooled(untouched: dict[str, object], found: dict[str, object]) -> list[str]:
    """The operations that gave something else than the untouched ledger gives, and were not refused."""
    return [name for name, outcome in found.items() if outcome not in (REFUSED, untouched[name])]


# ------------------------------------------------------------------------------------------------------ what is forged


def of(table: str, **wanted: object) -> Callable[[Tables], dict[str, Any]]:
    """The row of a table with these values."""
    return lambda tables: next(
        row for row in tables[table] if all(row[name] == value for name, value in wanted.items())
    )


def changed(row: Callable[[Tables], dict[str, Any]], **values: object) -> Change:
    return lambda tables, _: row(tables).update(values)


def removed(table: str, **wanted: object) -> Change:
    def change(tables: Tables, _: random.Random) -> None:
        tables[table].remove(of(table, **wanted)(tables))

    return change


def memory_of(tables: Tables) -> MemoryLedgerState:
    """The stored state as values."""

    def read(table: str) -> list[Any]:
        made = named(TABLES.tables[table])
        return [made([row[name] for name in columns(TABLES.tables[table])]) for row in tables[table]]

    balances, editions, charges = map(balance_of, read("balance")), map(edition_of, read("edition")), read("charge")
    return MemoryLedgerState(
        kept={balance.name: balance for balance in balances},
        editions={edition.dataset: edition for edition in editions},
        charges={charge.number: charge for charge in map(charge_of, charges)},
        answers={row["question"]: (row["number"], row["digest"]) for row in tables["answer"]},
        head=totals_of(read("head")[0]),
    )


def fitted(change: Change) -> Change:
    """The same, with a map and a root that fit what was forged; nobody but the ledger can sign that root."""

    def whole(tables: Tables, chance: random.Random) -> None:
        change(tables, chance)
        made = map_of(memory_of(tables))
        tables["node"] = [{"path": path, "children": node} for path, node in made.changed.items()]
        tables["head"][0]["state"] = made.root()

    return whole


def appended(entry: object, *, key: SigningKey | None = None, copied_head: bool = False) -> Change:
    """A well-chained entry at the end, with the state that follows from it; signed by nobody, or by somebody else."""

    def change(tables: Tables, _: random.Random) -> None:
        rows = sorted(tables["record"], key=lambda each: each["number"])
        state = replay(Row(**{name: row[name] for name in columns(RECORD)}) for row in rows)
        end = end_of(state)
        said = replace(entry, at=end.at)  # type: ignore[type-var]  # an entry
        row = Row.after(end.number, end.digest, said)  # type: ignore[arg-type]
        try:
            apply(state, row, said)  # type: ignore[arg-type]
        except SfumatoError:  # the reducer would not take it: then it is chained all the same
            state.head = replace(end, number=row.number, digest=row.digest)
        made = map_of(state)
        state.head = replace(end_of(state), state=made.root())
        last = rows[-1]["head"]
        signed = last if copied_head else "" if key is None else _signed(state.head, last, key)
        _stored(tables, state, made.changed)
        tables["record"].append({name: getattr(row, name) for name in columns(RECORD)} | {"head": signed})

    return change


def _signed(end: Totals, last: str, key: SigningKey) -> str:
    names = ("number", "digest", "at", "epsilon", "delta", "decisions", "state", "tree")
    fields = {name: getattr(end, name) for name in names}
    return SignedHead.sign(Head(ledger=SignedHead.read(last).head.ledger, **fields), key).text


def _stored(tables: Tables, state: MemoryLedgerState, nodes: dict[str, bytes]) -> None:
    from sfumato.governance.rows import balance_row, charge_row, edition_row, totals_row

    tables["balance"] = [balance_row(one) for one in state.kept.values()]
    tables["edition"] = [edition_row(one) for one in state.editions.values()]
    tables["charge"] = [charge_row(one) for one in state.charges.values()]
    tables["answer"] = [{"question": key, "number": n, "digest": d} for key, (n, d) in state.answers.items()]
    tables["node"] = [{"path": path, "children": node} for path, node in nodes.items()]
    tables["head"] = [totals_row(end_of(state))]


def forged_entries(of: Scene) -> dict[str, object]:
    """One entry of every kind that would do somebody good."""
    at, other = "", SigningKey.new()
    reserved = next(
        Row(**{name: row[name] for name in columns(RECORD)}).entry
        for row in of.now["record"]
        if row["number"] == of.waiting.number
    )
    assert isinstance(reserved, Reserved)
    lifted = VetoLifted(at=at, community="valley", voter="mele", dataset="register", reason="x")
    cap = Budget(epsilon=500)
    return {
        "an account": AccountOpened(at=at, path="hospital/none", unit=PATIENT, cap=cap, rho=None, reason="x"),
        "a population": PopulationDeclared(at=at, name="new", unit=PATIENT, cap=cap, rho=None, reason="x"),
        "a dataset": DatasetDeclared(
            at=at, dataset=Dataset(name="visits", edition="none"), population="others", cap=cap
        ),
        "a closing": DatasetClosed(at=at, dataset=VISITS),
        "closed data": DataClosed(at=at, names=("a",)),
        "terms": TermsDeclared(at=at, terms=replace(TERMS, dataset="register")),
        "a board": BoardSeated(at=at, board=reseated(BOARD, communities=()), by="x", reason="x", proposal=None),
        "a lifted veto": Acted(at=at, act=lifted, signature=None),
        "a charge": replace(reserved, cost=TENTH),
        "a start": Started(at=at, charge=of.queued.number),
        "a place": Advanced(at=at, charge=of.stream.number, place=2, holder="x"),
        "an answer": Committed(at=at, charge=of.waiting.number, question="how many?", certificate='{"answer":0}'),
        "a charge given back": Released(at=at, charge=of.queued.number),
        "a stale charge": Expired(at=at, charge=of.queued.number, counted=False),
        "a recovery": Recovered(at=at, reason="x", anchored="", lost=0, gap=Budget.none()),
        "a price": Repriced(at=at, charge=of.answered.number, cost=cap, losses=(), reason="x"),
        "a witness": WitnessNamed(at=at, key="0" * 64, lease=cap, reason="x"),
        "a migration": Migrated(at=at, tables="0004", digest="", state=""),
        "somebody's": other,
    }


def aimed(of_scene: Scene) -> dict[str, Change]:
    """What somebody would do who knows the ledger."""
    account, population, dataset = f"account {ACCOUNT}", "population patients", "dataset visits"
    answered, waiting, queued, stream = (
        of_scene.answered.number,
        of_scene.waiting.number,
        of_scene.queued.number,
        of_scene.stream.number,
    )
    veto = max(row["number"] for row in of_scene.now["record"] if '"board.veto"' in row["body"])
    how = question_key("how many?")

    def balance(name: str) -> Callable[[Tables], dict[str, Any]]:
        return of("balance", name=name)

    def old(table: str, when: int) -> Change:
        return lambda tables, _: tables.update({table: copy.deepcopy(of_scene.before[when][table])})

    def all_old(when: int, *names: str) -> Change:
        return lambda tables, _: tables.update({name: copy.deepcopy(of_scene.before[when][name]) for name in names})

    def swapped(table: str, column: str, one: object, other: object) -> Change:
        def change(tables: Tables, _: random.Random) -> None:
            for row in tables[table]:
                row[column] = {one: other, other: one}.get(row[column], row[column])

        return change

    def all_rows(**values: object) -> Change:
        def change(tables: Tables, _: random.Random) -> None:
            for row in tables["record"]:
                row.update(values)

        return change

    def certificate(tables: Tables, _: random.Random, *, chained: bool = False) -> None:
        answer = of("answer", question=how)(tables)
        row = of("record", number=answer["number"])(tables)
        row["body"] = row["body"].replace("answer", "forged")
        if chained:
            row["digest"] = Row(**{name: row[name] for name in columns(RECORD)}).expected
            answer["digest"] = of("charge", number=answered)(tables)["answered"] = row["digest"]

    def unsigned_end(tables: Tables, _: random.Random) -> None:
        for name in STATE:
            tables[name] = copy.deepcopy(of_scene.before[1][name])

    state: dict[str, Change] = {
        "nothing spent by the account": changed(balance(account), epsilon_spent="0/1"),
        "nothing spent by the population": changed(balance(population), epsilon_spent="0/1"),
        "nothing spent by the dataset": changed(balance(dataset), epsilon_spent="0/1", charges=0),
        "a raised cap": changed(balance(account), cap_epsilon="1000/1"),
        "a raised cap of the people": changed(balance(population), cap_epsilon="1000/1"),
        "a filter that admits much": changed(balance(account), cap_rho="1000/1", rho_spent="0/1"),
        "another unit": changed(balance(population), unit=of("balance", name=account)(of_scene.now)["unit"] + " "),
        "a balance renamed": changed(balance(population), name="population nobody"),
        "balances swapped": swapped("balance", "name", account, "account hospital/other"),
        "a balance removed": removed("balance", name=account),
        "balances of before": old("balance", 1),
        "a version opened again": changed(of("edition", name="scans", edition="1"), closed=False),
        "a version of other people": changed(of("edition", name="visits"), population="others"),
        "a version removed": removed("edition", name="scans", edition="1"),
        "a dataset removed": removed("edition", name="scans", edition="2"),
        "versions of before": old("edition", 1),
        "a version renamed": changed(of("edition", name="visits"), edition="none"),
        "declared later": changed(of("edition", name="visits"), declared=10**6),
        "a settled charge open": changed(of("charge", number=answered), state="reserved", answer=None, answered=None),
        "a charge that was not started": changed(of("charge", number=waiting), started=False, queued=True),
        "a charge that was started": changed(of("charge", number=queued), started=True),
        "a charge removed": removed("charge", number=answered),
        "an open charge removed": removed("charge", number=waiting),
        "a key taken away": changed(of("charge", number=answered), idempotency=None),
        "a key for another charge": swapped("charge", "idempotency", "answered", "stream"),
        "a key for a new request": changed(of("charge", number=answered), request="0" * 64),
        "a charge given back that counts": changed(of("charge", idempotency="given back"), state="committed"),
        "a cheap charge": changed(of("charge", number=waiting), epsilon="0/1"),
        "a charge without lines": changed(of("charge", number=queued), lines="[]"),
        "a count set back": changed(of("charge", number=stream), place=0, holder="a"),
        "a count of somebody else": changed(of("charge", number=stream), holder="c"),
        "another entry of a charge": swapped("charge", "number", stream, waiting),
        "charges of before": old("charge", 1),
        "an answer of another question": changed(
            of("answer", question=how), number=of("answer", question=question_key("who?"))(of_scene.now)["number"]
        ),
        "answers swapped": swapped("answer", "question", how, question_key("who?")),
        "an answer removed": removed("answer", question=how),
        "an answer added": lambda tables, _: tables["answer"].append(
            of("answer", question=how)(tables) | {"question": question_key("how many more?")}
        ),
        "answers of before": old("answer", 1),
    }
    record: dict[str, Change] = {
        "a veto removed": removed("record", number=veto),
        "a veto of another kind": changed(of("record", number=veto), kind="ledger.started"),
        "a veto of another dataset": lambda tables, _: of("record", number=veto)(tables).update(
            body=of("record", number=veto)(tables)["body"].replace("register", "scans")
        ),
        "a board filed as nothing": changed(of("record", kind="ledger.board"), kind="x"),
        "a charge filed as a decision": changed(of("record", number=waiting), kind="ledger.acted"),
        "another certificate": certificate,
        "another certificate with its digest": lambda tables, chance: certificate(tables, chance, chained=True),
        "another opening": lambda tables, _: of("record", number=1)(tables).update(
            body=of("record", number=1)(tables)["body"].replace('"identifier":"', '"identifier":"0')
        ),
        "rows swapped": swapped("record", "number", answered, waiting),
        "no decisions": changed(of("head", one=1), decisions=""),
        "decisions of before": lambda tables, _: tables["head"][0].update(
            decisions=of_scene.before[1]["head"][0]["decisions"]
        ),
        "nothing ever charged": changed(of("head", one=1), epsilon="0/1", delta="0/1"),
        "the root of before": lambda tables, _: tables["head"][0].update(state=of_scene.before[1]["head"][0]["state"]),
        "an earlier end": lambda tables, _: tables["head"][0].update(of_scene.before[2]["head"][0]),
        "another time": changed(of("head", one=1), at="2020-01-01T00:00:00+00:00"),
        "no head": removed("head", one=1),
        "no frontier": changed(of("head", one=1), frontier="0:"),
        "the frontier of before": lambda tables, _: tables["head"][0].update(
            frontier=of_scene.before[2]["head"][0]["frontier"]
        ),
        "a frontier of other entries": lambda tables, _: tables["head"][0].update(
            frontier=Frontier().without(tables["head"][0]["number"]).text
        ),
        "no subtrees": all_rows(subtrees=""),
        "other subtrees": all_rows(subtrees="ab" * 160),
        "no nodes": lambda tables, _: tables["node"].clear(),
        "another root node": lambda tables, _: tables.update(
            node=copy.deepcopy(of_scene.before[2]["node"]) + [row for row in tables["node"] if len(row["path"]) > 1]
        ),
        "the whole state of before": unsigned_end,
        "the whole state and root of before": all_old(1, *STATE, "head"),
        "all of before": all_old(2, *STATE, "head", "record"),
        "all of before but the record": all_old(2, *STATE, "head"),
    }
    made: dict[str, Change] = {**state, **record}
    made |= {f"{name}, and a map that fits": fitted(change) for name, change in state.items()}
    entries = forged_entries(of_scene)
    somebody = entries.pop("somebody's")
    made |= {f"appended: {name}": appended(entry) for name, entry in entries.items()}
    assert isinstance(somebody, SigningKey)
    made["appended and signed by another key"] = appended(entries["a lifted veto"], key=somebody)
    made["appended with the signature before it"] = appended(entries["a lifted veto"], copied_head=True)
    return made


def anything(of_scene: Scene) -> Change:
    """One to three changes by chance, of any table, row and column."""

    def value(tables: Tables, table: str, column: str, chance: random.Random) -> object:
        others = [row[column] for place in (tables, *of_scene.before) for row in place[table]]
        odd: list[object] = [None, "", "0/1", "1000/1", 0, 1, -1, 2**40, True, b"\xff", "x", "[]", "1/0", "\ud7ff", 1.5]
        return chance.choice([*others, *odd] if others else odd)

    def once(tables: Tables, chance: random.Random) -> None:
        table = chance.choice([name for name in tables if tables[name]])
        rows, way = tables[table], chance.randrange(10)
        row = chance.choice(rows)
        column = chance.choice(list(row))
        history = [each for place in of_scene.before for each in place[table]]
        match way:
            case 0 | 1 | 2:
                row[column] = value(tables, table, column, chance)
            case 3:
                rows.remove(row)
            case 4:
                rows.append({**row, column: value(tables, table, column, chance)})
            case 5:
                other = chance.choice(rows)
                row[column], other[column] = other[column], row[column]
            case 6 if history:
                row.update(chance.choice(history))
            case 7 if history:
                rows.append(dict(chance.choice(history)))
            case 8:
                tables[table] = copy.deepcopy(chance.choice(of_scene.before)[table])
            case _:
                when = chance.choice(of_scene.before)
                for name in chance.sample(sorted(tables), 3):
                    tables[name] = copy.deepcopy(when[name])

    def change(tables: Tables, chance: random.Random) -> None:
        for _ in range(chance.randint(1, 3)):
            once(tables, chance)
        if chance.random() < 0.2:
            try:
                fitted(lambda *_: None)(tables, chance)
            except (SfumatoError, AttributeError, IndexError, TypeError, ValueError):
                tables["node"].clear()

    return change

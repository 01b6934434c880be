"""Research on the command line: projects that the board approves, programs that run beside the data, and their log."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from sfumato.cli.asked import DaysRead, days_of
from sfumato.cli.ledger import Where, opened
from sfumato.cli.output import AsJson, counted, say, say_json, say_line
from sfumato.cli.reading import Published, Trusted, reading
from sfumato.cli.requests import entered, wrote
from sfumato.errors import InvalidInput, NotDeclared

if TYPE_CHECKING:
    from sfumato.governance.ledger import Ledger
    from sfumato.governance.research_entries import Project
    from sfumato.research.environment import DryRun, ResearchEnvironment, RunResult
    from sfumato.tables.schema import Schema

__all__ = ["research"]

research = typer.Typer(
    help="Bring programs to the data: a project is approved by the board, its programs run in a box that has no data, "
    "and only releases leave.\n\n"
    "Every run is an entry of the ledger.\n\n"
    "Example: $ sfumato research log",
    no_args_is_help=True,
)

Asks = Annotated[str, typer.Option("--as", metavar="NAME", help="Who you are on the board, which knows your key.")]
Why = Annotated[Path, typer.Option(metavar="FILE", help='The reasons in a TOML file, with kind = "reasons".')]
OwnKey = Annotated[Path | None, typer.Option(metavar="FILE", help="Your key; else --paper.")]
Paper = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Enter nothing, and write a paper to be signed: sfumato ballot")
]
Schemas = Annotated[
    list[Path] | None, typer.Option("--schema", metavar="FILE", help="The schema of a dataset; give all of them.")
]
Held = Annotated[
    list[str] | None, typer.Option("--data", metavar="NAME=FILE", help="Where a dataset lies; give all of them.")
]
File = Annotated[Path, typer.Argument(metavar="FILE", help='TOML, with kind = "project".')]
Number = Annotated[int, typer.Argument(metavar="N", min=1, help="The entry of the program.")]
ReleaseKey = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The key that signs releases, where it is not the ledger's.")
]


@research.command()
def project(
    file: File,
    *,
    by: Asks,
    reasons: Why,
    key: OwnKey = None,
    paper: Paper = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Ask the board for a project: its people, purpose, account and columns, as one text that is approved as it is.

    The file has name, purpose, recipient and account; under [keys] the public key of each of its people, or its file;
    under [columns] the columns of each dataset; reviewed = false where programs are not approved one by one. The board
    votes as on any request: sfumato budget approve, sfumato ballot.

    Example: $ sfumato research project wards.toml --as rosa --key rosa.key --reasons reasons.toml
    """
    from sfumato.governance.declared import project_of

    wanted = project_of(file)
    with opened(ledger) as book:
        _request(book, wanted, wanted.subject, by, reasons, key, paper, as_json=as_json)


@research.command("open")
def open_(
    file: File,
    *,
    request: Annotated[int, typer.Option(metavar="N", min=1, help="The request that the board approved.")],
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Open a project that the board approved. A file that was changed since is another project, and is refused.

    Example: $ sfumato research open wards.toml --request 2
    """
    from sfumato.governance.declared import project_of

    wanted = project_of(file)
    with opened(ledger) as book:
        entry = book.open_project(wanted, proposal=request)
    if as_json:
        say_json({"project": wanted.name, "entry": entry, "subject": wanted.subject})
    else:
        say_line(f"open: {wanted.name}, entry {entry}; people: {', '.join(name for name, _ in wanted.people)}")


@research.command()
def submit(
    name: Annotated[str, typer.Argument(metavar="PROJECT", help="The project.")],
    script: Annotated[Path, typer.Argument(metavar="FILE", help="The program, which asks by sf.connect().")],
    *,
    by: Annotated[str, typer.Option("--as", metavar="NAME", help="Who you are in the project.")],
    key: Annotated[Path, typer.Option(metavar="FILE", help="Your key, whose public half the project names.")],
    schema: Schemas = None,
    synthetic: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="Public rows for the dry run, such as sfumato synthesize made."),
    ] = None,
    job: Annotated[
        Literal["script", "blocks"],
        typer.Option(help="A script that asks by sf.connect(), or analyse(rows) over blocks of persons."),
    ] = "script",
    only_dry: Annotated[bool, typer.Option("--dry-run", help="Try it and hand nothing in.")] = False,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Hand a program in, after a dry run on invented rows of the same schemas; no data are read.

    The dry run says what the program would cost, and stops one that fails. The program stands in the record with your
    signature; where the project is reviewed the board approves it next: sfumato research request.

    Example: $ sfumato research submit wards counts.py --as rosa --key rosa.key --schema visits.toml
    """
    from sfumato.core.signature import SigningKey

    code = _text(script)
    with opened(ledger) as book:
        tried = _dry(book, book.project(name), code, _schemas(schema), dict(_pairs(synthetic, "--synthetic")), job)
        if not tried.finished:
            raise InvalidInput("the program failed in its dry run, on rows that are invented; it was not handed in.")
        number = None if only_dry else book.submit_program(name, by=by, code=code, key=SigningKey.load(key), job=job)
    if as_json:
        cost = {"epsilon": str(tried.cost.epsilon), "delta": str(tried.cost.delta)}
        say_json({"program": number, "dry_run": {"cost": cost, "releases": len(tried.releases)}})
        return
    say_line(f"dry run: came to its end with {counted(len(tried.releases), 'release')}, at a cost of {tried.cost}")
    say_line("handed in: nothing" if number is None else f"handed in: program {number} of {name}")


@research.command()
def sign(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The paper of a program, as a page of the service gave it.")
    ],
    *,
    key: Annotated[Path, typer.Option(metavar="FILE", help="Your key, whose public half the project names.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write it; never overwritten.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Sign the paper of a program with your own key. Needs neither ledger nor database nor network.

    What the paper says is printed: compare the SHA-256 with that of your file, then upload the signed paper.

    Example: $ sfumato research sign counts.paper --key rosa.key
    """
    from sfumato.core.signature import SigningKey
    from sfumato.governance.program_paper import ProgramPaper

    signed = ProgramPaper.load(file).signed(SigningKey.load(key))
    place = out or file.with_name(f"{file.stem}-signed{file.suffix}")
    signed.save(place)
    if as_json:
        say_json({"written": str(place), "words": list(signed.words)})
        return
    for words in signed.words:
        say_line(words)
    say_line(f"written: {place}")


@research.command()
def request(
    number: Number,
    *,
    by: Asks,
    reasons: Why,
    key: OwnKey = None,
    paper: Paper = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Ask the board to approve a program that was handed in, exactly as it stands in the record.

    Example: $ sfumato research request 14 --as rosa --key rosa.key --reasons reasons.toml
    """
    with opened(ledger) as book:
        program = book.research().programs.get(number)
        if program is None:
            raise NotDeclared(f"entry {number} is no program that was handed in; nothing was asked.")
        known = book.project(program.project)
        subject = known.program_subject(program.job, program.code)
        _request(book, known, subject, by, reasons, key, paper, as_json=as_json)


@research.command()
def run(
    number: Annotated[
        int | None, typer.Argument(metavar="N", min=1, help="The program; all that wait if none.")
    ] = None,
    *,
    data: Held = None,
    schema: Schemas = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where certificates are written.")
    ] = Path(),
    key: ReleaseKey = None,
    reads: DaysRead = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Run a program in its box, and write the certificates of what it released, and the weights of its models.

    It is entered before it starts, and its end after. The same program on the same version of the data gives what it
    gave before, at no cost. Without N all programs that wait are run in their order; one that may not run stays.

    Example: $ sfumato research run 14 --data visits=visits.parquet --schema visits.toml --out results
    """
    from sfumato.errors import Refused

    out.mkdir(parents=True, exist_ok=True)
    with opened(ledger) as book:
        environment = _environment(book, data, schema, key, reads)
        done: list[tuple[int, RunResult]] = []
        for program in (number,) if number is not None else book.research().waiting:
            try:
                done.append((program, environment.run(program)))
            except Refused as wrong:
                if number is not None:
                    raise
                say_line(f"program {program} waits: {wrong}", error=True)
    written = {program: _written(program, result, out) for program, result in done}
    if as_json:
        say_json({"runs": [_result(program, result, written[program]) for program, result in done]})
        return
    for program, result in done:
        say_line(f"program {program}: {result.phase.value}, entry {result.run}")
        for file in written[program]:
            say_line(f"written: {file}")


@research.command()
def log(*, key: Trusted = None, head: Published = None, ledger: Where = None, as_json: AsJson = False) -> None:
    """Show every run: which program of which project, whose, on which data, what became of it, and what left.

    It is read off the record, whose entries are signed and chained; nothing of it can be edited unnoticed.

    Example: $ sfumato research log
    """
    with reading(ledger, key, head) as book:
        state = book.research()
    rows = []
    for number, logged in state.runs.items():
        program = state.programs[logged.program]
        rows.append(
            {
                "entry": number,
                "at": logged.at,
                "project": program.project,
                "program": logged.program,
                "by": program.by,
                "data": [f"{dataset.name} {dataset.edition}" for dataset in logged.editions],
                "level": logged.level,
                "phase": logged.phase.value,
                "releases": list(logged.releases),
            }
        )
    if as_json:
        say_json({"runs": rows, "waiting": list(state.waiting)})
        return
    for row in rows:
        data = ", ".join(cast("list[str]", row["data"]))
        about = f"program {row['program']} of {row['project']}, by {row['by']}, on {data}"
        say_line(f"{row['entry']}  {row['at']}  {row['phase']}: {about}{_left(row['releases'])}")
    for number in state.waiting:
        say_line(f"waiting: program {number} of {state.programs[number].project}, by {state.programs[number].by}")
    if not rows and not state.waiting:
        say("nothing was handed in yet.")


@research.command()
def serve(
    *,
    socket: Annotated[
        Path, typer.Option(metavar="FILE", help="The socket to make, in a folder that nobody else can write to.")
    ],
    allow: Annotated[
        list[str],
        typer.Option(metavar="USER=PERSON", help="A user of this machine, by name or number, and who that is."),
    ],
    data: Held = None,
    schema: Schemas = None,
    key: ReleaseKey = None,
    reads: DaysRead = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Let people of projects ask questions over a socket: sf.connect("unix:/path/to/socket", project="…").

    The kernel says who connects, and the record who is of a project. Only questions about approved columns are taken,
    and only certificates leave. Projects whose programs are reviewed are not asked here. It serves until it is stopped
    (Ctrl-C or SIGTERM). On Linux.

    Example: $ sfumato research serve --socket /run/sfumato/research.sock --allow rosa=rosa --data visits=visits.parquet --schema visits.toml
    """  # noqa: E501 - an example is one line
    from sfumato.cli.serve import stopped_by_signals
    from sfumato.governance.owner.permissions import uid_of
    from sfumato.research.server import ResearchServer

    users = {uid_of(user): person for user, person in _pairs(allow, "--allow")}
    with opened(ledger) as book:
        server = ResearchServer(
            _environment(book, data, schema, key, reads),
            socket,
            users=users,
            log=lambda words: say_line(words, error=True),
        )

        def ready() -> None:
            where = f"unix:{server.place}"
            say_json({"serving": where}) if as_json else say_line(f"serving research at {where}")
            sys.stdout.flush()

        with stopped_by_signals(server):
            server.serve(ready)
    say_json({"stopped": True}) if as_json else say_line("stopped; nothing is served any more.")


# ---------------------------------------------------------------------------------------------------------------- parts


def _request(
    book: "Ledger",
    project: "Project",
    subject: str,
    by: str,
    reasons: Path,
    key: Path | None,
    paper: Path | None,
    *,
    as_json: bool,
) -> None:
    """Ask the board about a project or a program, for its datasets and its account."""
    from sfumato.core.signature import SigningKey
    from sfumato.governance.board import Action
    from sfumato.governance.declared import reasons_of

    if (key is None) is (paper is None):
        raise NotDeclared("a request is signed: give --key FILE, or --paper FILE to sign elsewhere. Nothing was asked.")
    sites = sorted({site for name in project.datasets for site in book.decision_state().sites_of(name)})
    ballot = book.request_ballot(
        by=by,
        action=Action.EXCEPTION,
        subject=subject,
        reasons=reasons_of(reasons),
        account=project.account,
        datasets=project.datasets,
        sites=sites,
    )
    if paper is not None:
        wrote(ballot, paper, as_json=as_json)
    elif key is not None:
        entered(book.submit(ballot.signed(SigningKey.load(key))), as_json=as_json)


def _dry(
    book: "Ledger", project: "Project", code: str, schemas: "dict[str, Schema]", synthetic: dict[str, str], job: str
) -> "DryRun":
    from sfumato.research.environment import JOBS, dry_run
    from sfumato.vault import Vault

    balance = book.balance(project.account)
    vault = Vault(unit=balance.unit, budget=balance.cap, name="dry run")
    return dry_run(project, code, schemas, vault=vault, synthetic=synthetic, job=JOBS[job])


def _environment(
    book: "Ledger", data: list[str] | None, schema: list[Path] | None, key: Path | None, reads: str | None
) -> "ResearchEnvironment":
    from sfumato.research.environment import ResearchEnvironment

    schemas, places = _schemas(schema), dict(_pairs(data, "--data"))
    if set(schemas) != set(places):
        raise NotDeclared(
            "each dataset has its --data NAME=FILE and its --schema FILE, by the name in the schema; nothing was read."
        )
    held = {name: (places[name], schemas[name]) for name in places}
    return ResearchEnvironment(ledger=book, data=held, key=key, reads=days_of(reads))


def _schemas(files: list[Path] | None) -> "dict[str, Schema]":
    from sfumato.tables.schema import Schema

    return {str(schema.name): schema for schema in map(Schema.load, files or ())}


def _pairs(given: list[str] | None, option: str) -> Iterator[tuple[str, str]]:
    for text in given or ():
        name, sign, value = text.partition("=")
        if not (name and sign and value):
            raise InvalidInput(f"{option} takes a name, = and what it is; nothing was done.")
        yield name, value


def _text(script: Path) -> str:
    try:
        return script.read_text("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{script} is not a text in UTF-8; nothing was run.") from None


def _written(program: int, result: "RunResult", out: Path) -> list[Path]:
    """The certificates of a run, as files in the order in which they were released, with the weights of models."""
    files = []
    for place, (name, text) in enumerate(result.certificates.items(), start=1):
        files.append(out / f"program-{program}-{place}.json")
        files[-1].write_text(text, encoding="utf-8")
        if name in result.models:
            files.append(files[-1].with_suffix(".safetensors"))
            files[-1].write_bytes(result.models[name])
    return files


def _result(program: int, result: "RunResult", written: list[Path]) -> dict[str, object]:
    return {
        "program": program,
        "entry": result.run,
        "phase": result.phase.value,
        "releases": list(result.certificates),
        "written": [str(file) for file in written],
    }


def _left(releases: object) -> str:
    listed = releases if isinstance(releases, list) else []
    return f"; left: {', '.join(listed)}" if listed else ""

"""The demonstration: the service of an invented hospital network, with people of every role and a month of releases.

It has a folder, a ledger and keys of its own. Everything in it was made by the ways that users have: accounts, a board
that approved a plan by signed ballots, the runner of plans, and questions of analysts through vaults. Its institution
is called a demonstration in every certificate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import sqlalchemy as sa

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.core.units import user
from sfumato.demo import network
from sfumato.errors import InvalidInput, Refused
from sfumato.governance.board import Action, Board, Choice, Community, Reasons
from sfumato.governance.consent import Ground, HipaaBasis, SpecialCategory, Terms
from sfumato.governance.periods import Cadence, Period, period_of
from sfumato.runner.adoption import adopt
from sfumato.runner.plan_file import PlanFile
from sfumato.runner.run import Fate, Runner
from sfumato.server.demo_arrivals import write_arrivals
from sfumato.server.demo_declared import ARRIVALS, PLAN, VISITS
from sfumato.server.demo_research import RESEARCHER, open_research_project
from sfumato.server.demo_stream import FEED, declare_stream, open_stream, write_arrivals_from_now_on
from sfumato.server.identity.passwords import hashed
from sfumato.server.identity.secrets import new_secret
from sfumato.server.identity.tables import PEOPLE
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.settings import FILE, ServiceSettings
from sfumato.tables.schema import Schema
from sfumato.vault import Vault

__all__ = ["HOSPITAL", "PEOPLE_OF_THE_DEMO", "Demo", "opened_demo"]

HOSPITAL = "demonstration hospital"
HEART, SURVEILLANCE, QUALITY = f"{HOSPITAL}/heart", f"{HOSPITAL}/surveillance", f"{HOSPITAL}/quality"
EMERGENCY, RESEARCH = f"{HOSPITAL}/emergency", f"{HOSPITAL}/research"
PATIENT = user("patient_id", relation="add/remove")
DELTA = Fraction(1, 2 * 10**6)
PURPOSE, RECIPIENT = "public health", "public"
INVENTED = "invented for the demonstration"
COUNCIL = "patients' council"
KEYS, PLANS, PUBLISHED = "members", "plans", "published"
MEMBERS = ("mira", "jonas", "wei")
PEOPLE_OF_THE_DEMO: tuple[tuple[str, str, tuple[ServiceRole, ...], tuple[str, ...]], ...] = (
    ("ada", "Ada, heart unit", (ServiceRole.ANALYST,), (HEART, f"{HEART}/*")),
    ("ben", "Ben, surveillance", (ServiceRole.ANALYST,), (SURVEILLANCE, QUALITY, EMERGENCY)),
    ("stella", "Stella, data office", (ServiceRole.STEWARD,), ()),
    ("mira", "Mira, chair of the board", (ServiceRole.BOARD,), ()),
    ("jonas", "Jonas, board", (ServiceRole.BOARD,), ()),
    ("wei", "Wei, board", (ServiceRole.BOARD,), ()),
    ("amara", "Amara, patients' council", (ServiceRole.BOARD,), ()),
    ("otto", "Otto, auditor", (ServiceRole.AUDITOR,), ()),
    ("rosa", "Rosa, university", (ServiceRole.RESEARCHER,), (RESEARCH,)),
    ("nils", "Nils, runs the service", (ServiceRole.ADMIN,), ()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """A demonstration that can be served: the secret of its one-time link, and the password of everybody in it."""

    service: Service
    secret: str
    password: str

    @property
    def link(self) -> str:
        """The address that signs whoever opens it in, once."""
        return f"{self.service.settings.address}enter?secret={self.secret}"


def opened_demo(
    folder: str | Path, *, port: int = 8400, patients: int = 20_000, say: Callable[[str], None] = lambda _: None
) -> Demo:
    """Make the demonstration in a new folder, or open the one that is there; passwords are new at each start."""
    place = Path(folder).absolute()
    if (place / FILE).is_file():
        service = Service.open(place, port=port)
        if not service.settings.demo:
            service.close()
            raise Refused(f"{place} holds a service that is no demonstration; nothing was done. Name another folder.")
    else:
        service = _made(place, port, patients, say)
    open_stream(service, EMERGENCY, by="ben")
    write_arrivals_from_now_on(service)
    password = new_secret()[:16]
    with service.database.writing() as connection:
        connection.execute(sa.update(PEOPLE).values(password=hashed(password)))
    return Demo(service=service, secret=service.sessions.new_link("ada"), password=password)


def _made(place: Path, port: int, patients: int, say: Callable[[str], None]) -> Service:
    settings = ServiceSettings(port=port, demo=True, slot_seconds=3, title="Sfumato", publisher=HOSPITAL)
    service = Service.create(place, settings)
    try:
        say("inventing patients, their visits and a month of arrivals")
        network.generate(service.data, patients=patients)
        last = _month_before(service.clock().date())
        periods = write_arrivals(service.folder / PLANS / "arrivals", month=last, patients=patients)
        for login, shown, roles, accounts in PEOPLE_OF_THE_DEMO:
            service.people.add(login, shown=shown, roles=roles, accounts=accounts)
        say("opening accounts, seating the board and declaring data")
        _govern(service, last)
        say("answering the questions of a month, each charged, noised and signed")
        _plan(service, last, periods)
        _questions(service)
        _research(service)
        _waiting(service)
    except BaseException:
        service.close()
        raise
    return service


def _month_before(today: date) -> Period:
    return period_of(Cadence.MONTHLY, today.replace(day=1) - timedelta(days=1))


def _govern(service: Service, last: Period) -> None:
    """Accounts, people, board and the first versions of both datasets."""
    ledger = service.ledger
    for path, epsilon in ((HOSPITAL, 40), (SURVEILLANCE, 22), (HEART, 6), (QUALITY, 4), (EMERGENCY, 3), (RESEARCH, 2)):
        cap = Budget(epsilon=epsilon, delta=DELTA)
        ledger.open_account(path, unit=PATIENT, cap=cap, reason=INVENTED)
    ledger.declare_population("patients", unit=PATIENT, cap=Budget(epsilon=50, delta=DELTA), reason=INVENTED)
    texts = {"regions": _list(network.REGIONS), "diagnoses": _list(network.DIAGNOSES)}
    service.datasets.declare(
        Schema.from_toml(VISITS.format(edition=last.label, **texts)),
        service.data / network.FILE,
        population="patients",
        relation="add/remove",
        cap=Budget(epsilon=12, delta=DELTA / 2),
        by="stella",
        purpose=PURPOSE,
        recipient=RECIPIENT,
    )
    plans = service.folder / PLANS
    text = ARRIVALS.format(**texts)
    (plans / "arrivals.toml").write_text(text, "utf-8")
    service.datasets.declare(
        Schema.from_toml(text.replace('name = "arrivals"', f'name = "arrivals"\nversion = "{last.label}"')),
        service.folder / PLANS / "arrivals" / f"{last.label}.parquet",
        population="patients",
        relation="add/remove",
        cap=Budget(epsilon=24, delta=DELTA / 2),
        by="stella",
        purpose=PURPOSE,
        recipient=RECIPIENT,
    )
    declare_stream(service, population="patients", by="stella")
    keys = {name: SigningKey.new() for name in (*MEMBERS, "amara", "ada", "stella", RESEARCHER)}
    folder = service.folder / KEYS
    folder.mkdir(mode=0o700)
    for name, key in keys.items():
        key.save(folder / f"{name}.key")  # of invented people: members of a real board keep theirs to themselves
    board = Board(
        members=MEMBERS,
        quorum=2,
        communities=(Community(name=COUNCIL, representatives=("amara",), datasets=("visits",)),),
        keys=tuple((name, key.public_text) for name, key in keys.items()),
        proposers=("ada", "stella", RESEARCHER),
    )
    ledger.seat(board, by="nils", reason=INVENTED)
    for name, benefit in (
        ("visits", "How often illnesses are treated where, and how well pressure is controlled, becomes known."),
        ("arrivals", "The public sees each day how many people come to emergency departments, region by region."),
        (FEED, "Wards see within seconds how many people are coming, and call more staff in before it is too late."),
    ):
        ledger.declare_terms(_terms(name, last))
        _approved(
            service,
            action=Action.DATASET,
            subject=f"Questions about {name}",
            datasets=[name],
            reasons=Reasons(
                benefit=benefit,
                risk="Whoever knows that somebody was treated here learns a little more, within the stated ε.",
                choice="The caps are those that other hospitals in this example chose after weighing the same.",
            ),
        )


def _plan(service: Service, last: Period, periods: tuple[Period, ...]) -> None:
    """The plan of the dashboard: asked for, approved by two members, adopted, and carried out for a month."""
    place = service.folder / PLANS / "plan.toml"
    place.write_text(PLAN.format(year=last.last.year, account=SURVEILLANCE), "utf-8")
    file = PlanFile.load(place)
    _approved(
        service,
        action=Action.PLAN,
        subject=file.digest,
        account=SURVEILLANCE,
        datasets=["arrivals"],
        reasons=Reasons(
            benefit="The public sees each day how many people come to emergency departments, region by region.",
            risk="A patient who comes every day of a year is in 365 daily numbers, 52 weekly ones and 12 monthly ones.",
            choice="At this ε a week with a fifth more arrivals is seen; at half of it, it would not be.",
        ),
    )
    adopt(service.ledger, file)
    runner = Runner.of(file, service.ledger)
    first = min(period.first for period in periods)
    for outcome in runner.run(
        service.folder / PUBLISHED / "arrivals", until=last.last, today=last.last + timedelta(days=1)
    ):
        if outcome.fate is Fate.FAILED or (outcome.fate is Fate.MISSING and outcome.step.period.first >= first):
            raise InvalidInput(f"the plan of the demonstration was not carried out: {outcome.words}")


def _terms(name: str, last: Period) -> Terms:
    """What some data may be used for, for a year from now."""
    return Terms(
        dataset=name,
        purposes=(PURPOSE, "research"),
        ground=Ground.PUBLIC_TASK,
        condition=SpecialCategory.PUBLIC_HEALTH,
        hipaa=HipaaBasis.NOT_SUBJECT,
        consent=(),
        consent_text="",
        forbidden=("research/insurance",),
        recipients=(RECIPIENT,),
        until=f"{last.last.year + 2}-12-31",
        sites=(),
    )


def _approved(
    service: Service,
    *,
    action: Action,
    subject: str,
    datasets: list[str],
    reasons: Reasons,
    account: str | None = None,
    by: str = "stella",
) -> int:
    """Ask the board, and let two members say yes, each with a ballot of their own key; the number of the request."""
    ledger = service.ledger
    number = ledger.propose(
        by=by,
        action=action,
        subject=subject,
        account=account,
        datasets=datasets,
        reasons=reasons,
        key=_key(service, by),
    )
    for name in ("mira", "wei"):
        words = "Useful, and within what we allowed."
        ledger.vote(number, by=name, choice=Choice.YES, reason=words, key=_key(service, name))
    return number


def _questions(service: Service) -> None:
    """What two analysts asked of the visits."""
    held = service.datasets["visits"]
    asked = (
        (HEART, "SELECT region, COUNT(*) AS patients FROM visits GROUP BY region", Fraction(1, 2)),
        (HEART, "SELECT region, COUNT(*) AS patients FROM visits WHERE diagnosis = 'hypertension' GROUP BY region", 1),
        (HEART, "SELECT sex, AVG(sbp) AS pressure FROM visits GROUP BY sex", Fraction(1, 2)),
        (QUALITY, "SELECT region, COUNT(*) AS patients FROM visits WHERE diagnosis = 'ILI' GROUP BY region", 1),
        (QUALITY, "SELECT diagnosis, COUNT(*) AS patients FROM visits GROUP BY diagnosis", Fraction(1, 2)),
        (QUALITY, "SELECT sex, COUNT(*) AS patients FROM visits GROUP BY sex", Fraction(1, 10)),
    )
    for account, sql, epsilon in asked:
        vault = Vault(
            unit=PATIENT,
            ledger=service.ledger,
            account=account,
            key=service.release_key,
            population=held.schema.population,
            purpose=held.purpose,
            recipient=held.recipient,
        )
        vault.table(held.place, schema=held.schema).sql(sql).release(epsilon=epsilon)


def _research(service: Service) -> None:
    """A project of a researcher, with a program that was approved and has not run yet."""

    def approve(subject: str, account: str, reasons: Reasons) -> int:
        return _approved(
            service,
            action=Action.EXCEPTION,
            subject=subject,
            datasets=["visits"],
            account=account,
            reasons=reasons,
            by=RESEARCHER,
        )

    open_research_project(service, RESEARCH, _key(service, RESEARCHER), approve)


def _waiting(service: Service) -> None:
    """A request that waits for the board, with one of the two votes that it needs."""
    number = service.ledger.propose(
        by="ada",
        action=Action.RAISE,
        subject="Two more years of blood pressure",
        account=HEART,
        datasets=["visits"],
        amount=Budget(epsilon=2),
        reasons=Reasons(
            benefit="A trend over two years tells whether the new treatment of hypertension reaches every region.",
            risk="What is known of a patient in all releases of the heart unit together grows from ε = 6 to ε = 8.",
            choice="With 1 in place of 2 the margin of small regions is wider than the change that is looked for.",
        ),
        lasts=timedelta(days=28),
        key=_key(service, "ada"),
    )
    service.ledger.vote(number, by="mira", choice=Choice.YES, reason="The question matters.", key=_key(service, "mira"))


def _key(service: Service, name: str) -> SigningKey:
    return SigningKey.load(service.folder / KEYS / f"{name}.key")


def _list(names: tuple[str, ...]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"

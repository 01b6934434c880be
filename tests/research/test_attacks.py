"""What somebody of a project tried who wanted more than the project was given."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.core.documents import canonical, encode
from sfumato.engines.expressions import Length, Named, Number, Operator, Replaced, ValueCompare
from sfumato.governance.periods import Cadence
from sfumato.governance.time_windows import TimeWindows
from sfumato.research import messages as said
from sfumato.research.connection import Connection
from tests.research.test_server import asked
from tests.research.worlds import PERSON, World, project, world

TENTH = Budget(epsilon="1/10")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    found = world(tmp_path)
    yield found
    found.ledger.close()


def test_a_key_of_one_project_says_nothing_to_another_and_stands_in_nobodys_way(made: World) -> None:
    """Keys were those of the whole ledger: another project saw which were used, and could take them first."""
    one, other = project(reviewed=False), project("ages", people=("tara",), reviewed=False)
    for study in (one, other):
        made.opened(study)
    first, second = (made.environment.served(study) for study in (one, other))
    question = Connection(first.answered).table("visits").count()
    assert question.release(epsilon="1/10", idempotency="monday").charged == TENTH
    text = canonical(encode(question.query))
    probe = asked(text, idempotency="monday", fresh=True)
    fits = said.FittingRequest(questions=(probe.question,), known=(True,), reads=None)
    assert first.answered(fits) == said.CostReply(cost=Budget.none())
    assert second.answered(fits) == said.CostReply(cost=TENTH)
    reply = second.answered(probe)
    assert isinstance(reply, said.CertificateReply)
    assert reply.charged == TENTH
    narrower = asked(text, idempotency="tuesday", limit=sf.Limit(groups=1, rows_per_group=1))
    assert isinstance(second.answered(narrower), said.CertificateReply)


def test_who_asks_does_not_say_which_days_are_read(made: World) -> None:
    """With days of their own choice every question was charged to a window that nobody's rows lie in."""
    study = project(reviewed=False)
    made.opened(study)
    windows = TimeWindows(unit=PERSON, every=Cadence.MONTHLY, cap=TENTH, most_windows=12)
    made.ledger.set_windows(study.account, windows)
    environment = replace(made.environment, reads=("2026-10-01", "2026-10-31"))
    served = environment.served(study)
    text = canonical(encode(Connection(served.answered).table("visits").count().query))
    for reads in (("1990-01-01", "1990-01-02"), ("1991-01-01", "1991-01-02")):
        reply = served.answered(asked(text, fresh=True, reads=reads))
        assert isinstance(reply, said.RefusalReply)
        fits = said.FittingRequest(questions=(asked(text).question,), known=(True,), reads=reads)
        assert isinstance(served.answered(fits), said.RefusalReply)
    assert made.ledger.balance(study.account).spent == Budget.none()
    assert isinstance(served.answered(asked(text, fresh=True)), said.CertificateReply)
    reply = served.answered(asked(text, fresh=True))
    assert isinstance(reply, said.RefusalReply)
    assert reply.error == "BudgetExceeded"


@pytest.mark.parametrize("deep", [6, 7, 30])
def test_texts_made_of_texts_are_refused_before_anything_is_read(made: World, deep: int) -> None:
    """Each was written out at least twice in the next: 12 of them took seconds, 20 did not end."""
    study = project(reviewed=False)
    made.opened(study)
    served = made.environment.served(study)
    value: Replaced | Named = Named(column="ward")
    for _ in range(deep):
        value = Replaced(part=value, old="a", new="ab")
    whole = Connection(served.answered).table("visits").count().query
    where = ValueCompare(left=Length(part=value), operator=Operator.ABOVE, right=Number(Fraction(5)))
    reply = served.answered(asked(canonical(encode(replace(whole, where=where)))))
    if deep > 6:
        assert isinstance(reply, said.RefusalReply)
        assert "simpler terms" in reply.words
        assert made.ledger.balance(study.account).spent == Budget.none()
    else:
        assert isinstance(reply, said.CertificateReply)

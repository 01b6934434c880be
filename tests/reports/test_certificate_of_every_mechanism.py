"""A certificate for every mechanism: signed, verified from itself alone, and caught when a number of it is changed.

Queries of their own come to some mechanisms with later capabilities. Until then a query of this test's own states the
sensitivity, and everything else (loss, law, price, seals, signature) is what any release goes through.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import laws, mechanisms
from sfumato.accounting.basic import cost, guarantee_of
from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.description import Description
from sfumato.core.documents import Registry, encode, parse
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.signature import SigningKey
from sfumato.core.statement import Account, Statement
from sfumato.core.units import Unit
from sfumato.graphs.queries.top import TopNodes
from sfumato.graphs.shape import Shape
from sfumato.graphs.synthetic import SyntheticGraph
from sfumato.mechanisms.matrix import Matrix
from sfumato.mechanisms.matrix.buffered import Buffered
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.verify import verify
from sfumato.tables.queries.limit_suggestion import LimitSuggestion
from tests.reports.forgeries import signed_anew

DATA = Dataset(name="trial", edition="1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question whose sensitivity is ``moved`` in every norm, for each row, whatever the limit.

    ``size`` is how many numbers it asks for, and ``levels`` which quantiles, if it asks for any.
    """

    KIND: ClassVar[str] = "query.asked_in_a_test"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = tuple(one.KIND for one in mechanisms.MECHANISMS)
    dataset: Dataset
    size: int = 1
    levels: tuple[Fraction, ...] = ()
    steps: int = 9
    moved: int = 1

    @property
    def lattice(self) -> SimpleNamespace:
        """Where quantiles are chosen from."""
        return SimpleNamespace(steps=self.steps)

    @property
    def measure(self) -> str:
        return "answer"

    @property
    def names(self) -> tuple[str, ...]:
        return ("answer",)

    def labels(self) -> Mapping[str, Sequence[str]]:
        return {}

    def columns(self, release: Any) -> Mapping[str, Any]:
        raise NotImplementedError

    def expected(self, law: Any, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        raise NotImplementedError

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        raise NotImplementedError

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        return Sensitivity.of(l0=1, l1=self.moved, l2_squared=self.moved**2, linf=self.moved)


MADE: dict[str, tuple[Any, Budget]] = {
    one.KIND: (one, spend)
    for one, spend in (
        (mechanisms.Laplace.calibrated(l1=1, epsilon="1/2"), Budget(epsilon="1/2")),
        (mechanisms.Gaussian.calibrated(l2=1, epsilon=1, delta=1e-6), Budget(epsilon=1, delta=1e-6)),
        (mechanisms.Exponential.calibrated(sensitivity=1, epsilon=1), Budget(epsilon=1)),
        (mechanisms.PermuteAndFlip.calibrated(sensitivity=1, epsilon=1), Budget(epsilon=1)),
        (mechanisms.NoisyMax.calibrated(sensitivity=1, epsilon=1), Budget(epsilon=1)),
        (mechanisms.SparseVector.calibrated(sensitivity=1, alarms=2, epsilon=1), Budget(epsilon=1)),
        (mechanisms.RandomizedResponse.calibrated(epsilon=1, categories=4), Budget(epsilon=1)),
        (mechanisms.LimitSearch.calibrated(candidates=[(1, 2, 3, 4)], epsilon=1, spend=[1]), Budget(epsilon=1)),
        (mechanisms.NoisyThreshold.calibrated(keys=1, most=1, epsilon=1, delta=1e-6), Budget(epsilon=1, delta=1e-6)),
        (mechanisms.OptimalSelection.calibrated(keys=1, epsilon=1, delta=1e-6), Budget(epsilon=1, delta=1e-6)),
        (mechanisms.TopChoice.calibrated(choices=3, sensitivity=1, epsilon=1), Budget(epsilon=1)),
        (
            mechanisms.TopSet.calibrated(candidates=5, choices=1, moved=2, epsilon=1, monotone=True),
            Budget(epsilon=1),
        ),
        (mechanisms.LInfKNorm.calibrated(linf=1, dimensions=3, epsilon=1), Budget(epsilon=1)),
        (
            mechanisms.QuantileChoice(quantiles=(Fraction(1, 2),), steps=9, parts=1, epsilon=Fraction(1)),
            Budget(epsilon=1),
        ),
        (mechanisms.Ladder.calibrated(nodes=3, epsilon=1), Budget(epsilon=1)),
        (
            mechanisms.Ladders(
                parts=tuple(mechanisms.Ladder.calibrated(nodes=3, leaves=k, epsilon=1) for k in (None, 2))
            ),
            Budget(epsilon=2),
        ),
        (
            mechanisms.ChosenCap(
                caps=(1,),
                choice=Fraction(1, 2),
                epsilon=Fraction(1, 2),
                spread=1,
                doubling=5,
                moves=(1,),
                numbers=1,
            ),
            Budget(epsilon=1),
        ),
        (mechanisms.NoisyLocalSensitivity.calibrated(nodes=3, epsilon=1, delta=1e-6), Budget(epsilon=1, delta=1e-6)),
        (mechanisms.NoisyCells.calibrated(cells=6, l1=1088, epsilon=1), Budget(epsilon=1)),
        (mechanisms.DegreeNoise(nodes=5, epsilon=Fraction(1, 2)), Budget(epsilon="1/2")),
        (Matrix.square_root(3, bits=3).measure(sigma_squared=40).declaration, Budget(epsilon=2, delta=1e-6)),
        (
            Buffered(horizon=3, decays=(Fraction(1, 2),), weights=(Fraction(1, 2),), bits=2).with_noise(
                sigma_squared=40
            ),
            Budget(epsilon=2, delta=1e-6),
        ),
    )
}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    wider = Registry((*DECLARATIONS._classes.values(), Asked))
    monkeypatch.setattr("sfumato.reports.verify.DECLARATIONS", wider)


def test_no_mechanism_is_left_out() -> None:
    assert set(MADE) == {one.KIND for one in mechanisms.MECHANISMS}


def signed(kind: str) -> tuple[dict[str, Any], SigningKey]:
    mechanism, spend = MADE[kind]
    size, levels = getattr(mechanism, "choices", 1), getattr(mechanism, "quantiles", ())
    query: Any = Asked(dataset=DATA, size=size if isinstance(size, int) else 1, levels=levels)
    unit: Unit = sf.record(relation="add/remove")
    if isinstance(mechanism, mechanisms.Ladder | mechanisms.Ladders):
        unit = sf.edge(relation="add/remove")
        query = Asked(dataset=DATA, moved=3 if isinstance(mechanism, mechanisms.Ladders) else 1)
    if isinstance(mechanism, mechanisms.TopSet):
        unit, query = sf.edge(relation="add/remove"), TopNodes(dataset=DATA, shape=Shape(nodes=5), choices=1)
    if isinstance(mechanism, mechanisms.LimitSearch):
        unit = sf.user("id", relation="add/remove")
        query = LimitSuggestion(dataset=DATA, most=4, spends=(Fraction(1),))
    if isinstance(mechanism, mechanisms.NoisyCells):
        unit, query = sf.edge(relation="add/remove"), SyntheticGraph(dataset=DATA, shape=Shape(nodes=4))
    sensitivity = query.sensitivity(unit, None)
    event = mechanism.loss(sensitivity)
    guarantee = guarantee_of(event, spend)
    statement = Statement(
        identifier="0" * 32,
        issued="2026-11-15T00:00:00+00:00",
        code="sfumato test",
        dataset=DATA,
        unit=unit,
        limit=None,
        query=query,
        sensitivity=sensitivity,
        mechanism=mechanism,
        law=mechanism.law,
        event=event,
        guarantee=guarantee,
        spend=cost(guarantee),
        account=Account(
            name="trial", ledger="none (in memory)", budget=Budget(epsilon=9, delta=1e-3), spent=spend, releases=1
        ),
        values=(1,) * (query.size or 2),
    )
    key = SigningKey.new()
    document = parse(Certificate.sign(statement, key).text)
    assert isinstance(document, dict)
    return document, key


@pytest.mark.parametrize("kind", sorted(MADE))
def test_a_certificate_verifies_from_itself_alone(kind: str) -> None:
    document, key = signed(kind)
    outcome = verify(document, key=key.public_text)
    assert outcome.authenticated, str(outcome)


def fields(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all rationals in a document."""
    if isinstance(part, dict):
        for name, inner in part.items():
            yield from fields(inner, (*path, name))
    elif isinstance(part, list):
        for place, inner in enumerate(part):
            yield from fields(inner, (*path, place))
    elif isinstance(part, str) and "/" in part and part.replace("/", "").replace("-", "").isdecimal():
        yield path


@pytest.mark.parametrize("kind", sorted(MADE))
def test_no_rational_of_it_can_be_halved_even_by_who_signs_anew(kind: str) -> None:
    """Sensitivity, mechanism, law, event, guarantee and spend hang together: half of any one is noticed.

    More noise than the price asks for is no fault, and halving it is caught; halving a strategy's entry may make
    it stronger, which the price then need not tell, so of a mechanism's many numbers those are left out.
    """
    document, _ = signed(kind)
    found = 0
    for part in ("sensitivity", "law", "event", "guarantee", "spend", "mechanism"):
        for path in fields(document["statement"][part]):
            if part == "mechanism" and set(path) & {"decays", "weights", "strategy", "workload"}:
                continue
            forged = copy.deepcopy(document)
            place: Any = forged["statement"][part]
            for step in path[:-1]:
                place = place[step]
            half = Fraction(place[path[-1]]) / 2
            if half == 0:
                continue
            place[path[-1]] = f"{half.numerator}/{half.denominator}"
            signed_anew(forged)
            assert not verify(forged).consistent, (part, path)
            found += 1
    assert found >= 3


def test_a_choice_has_no_interval() -> None:
    assert MADE["mechanism.exponential"][0].law == laws.Unstated()
    for ask in (lambda law: law.margin(0.95), lambda law: law.covers(1, 0.95), lambda law: law.variance):
        with pytest.raises(sf.errors.Unsupported, match="no margin"):
            ask(laws.Unstated())
    with pytest.raises(sf.errors.Unsupported, match="no margin"):
        _ = laws.Unstated().mean_absolute_error


@pytest.mark.parametrize("kind", sorted(set(MADE) - {*mechanisms.ANY_NOISE, "mechanism.ladders"}))
def test_a_mechanism_that_cannot_answer_a_count_is_caught(kind: str, release: Any) -> None:
    """A promise that holds for a choice, or for degrees, says nothing of exact counts beside it."""
    mechanism, spend = MADE[kind]
    said = release.statement
    document = copy.deepcopy(release.certificate.document)
    sensitivity = said.query.sensitivity(said.unit, said.limit)
    event = mechanism.loss(sensitivity)
    guarantee = guarantee_of(event, Budget(epsilon=1000, delta=spend.delta))
    document["statement"] |= {
        "mechanism": encode(mechanism),
        "law": encode(mechanism.law),
        "event": encode(event),
        "guarantee": encode(guarantee),
        "spend": encode(cost(guarantee)),
    }
    signed_anew(document)
    assert "statement.mechanism.kind" in {finding.field for finding in verify(document).findings}


@pytest.fixture(scope="module")
def release() -> Any:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
    return vault.table(pa.table({"x": [1, 2]}), name="t", version="1").count().release(epsilon=1)


def test_values_and_scales_that_nothing_draws_are_caught(release: Any) -> None:
    document = copy.deepcopy(release.certificate.document)
    document["statement"]["values"] = [10**70]
    assert "statement.values" in {finding.field for finding in verify(document).findings}
    document = copy.deepcopy(release.certificate.document)
    wide = mechanisms.Laplace(l1=Fraction(1), scale=Fraction(10**70))
    document["statement"] |= {"mechanism": encode(wide), "law": encode(wide.law), "event": encode(wide.event)}
    signed_anew(document)
    assert "statement.mechanism.scale" in {finding.field for finding in verify(document).findings}


def test_a_threshold_for_very_many_keys_is_priced_in_a_moment_and_upward() -> None:
    rule = mechanisms.NoisyThreshold.calibrated(keys=3, most=1, epsilon=1, delta=1e-9)
    some, many = (rule.loss(keys).events[1].guarantee.delta for keys in (9_999, 10_001))
    assert some < many <= Fraction(10_001) * some / 9_999 * Fraction(1001, 1000)
    assert rule.loss(10**12).events[1].guarantee.delta == 1

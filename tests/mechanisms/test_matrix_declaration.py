"""The matrix mechanism as a document: it is what runs, is read without NumPy, and its laws are those of the answers."""

import subprocess
import sys
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato import noise
from sfumato.core.documents import canonical, encode, parse
from sfumato.core.query import Mechanism
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused, WrongNorm
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Unstated
from sfumato.mechanisms import BufferedNoise, MatrixNoise
from sfumato.mechanisms.matrix import Buffered, Matrix, Measurement, all_range, degrees, given, identity, prefix
from sfumato.mechanisms.matrix.declaration import rows_of
from sfumato.mechanisms.matrix.gls import estimator
from sfumato.mechanisms.matrix.rational import least_squares
from sfumato.mechanisms.matrix.workloads import named
from sfumato.reports.declarations import DECLARATIONS

pytestmark = pytest.mark.kills

RUNS = {
    "optimal prefix": Matrix.optimal(prefix(6), bits=6).measure(sigma_squared="9/4"),
    "pure ranges": Matrix.pure(all_range(5), bits=6).measure(scale="5/3"),
    "square root": Matrix.square_root(5, bits=4).measure(sigma_squared=2),
    "degrees": Matrix.optimal(degrees(4), bits=5).measure(sigma_squared=3),
    "given": Matrix.optimal(given([[1, 1, 0], [1, -1, 0]]), bits=5).measure(sigma_squared=1),
    "identity": Matrix.of(identity(3), np.eye(3), norm="l1", bits=0).measure(scale=4),
}
every_run = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
PLAIN = {
    "strategy": ((2, 0), (1, 2)),
    "bits": 1,
    "norm": "l2",
    "noise": Fraction(4),
    "workload": "prefix",
    "questions": (),
}


@every_run
def test_what_is_declared_is_what_runs(run: Measurement) -> None:
    said = run.declaration
    again = DECLARATIONS.decode(parse(canonical(encode(said))))
    assert again == said
    assert isinstance(again, Mechanism)
    rebuilt = Measurement.declared(again)
    assert (rebuilt.matrix.strategy == run.matrix.strategy).all()
    assert (rebuilt.matrix.workload.matrix == run.matrix.workload.matrix).all()
    assert rebuilt.matrix.rmse == pytest.approx(run.matrix.rmse)
    assert rebuilt.declaration == said
    x = np.arange(3, 3 + run.matrix.workload.columns)
    silent = lambda parameter, size: np.arange(size)  # noqa: E731
    assert np.allclose(rebuilt.answer(x, draw=silent), run.answer(x, draw=silent))
    assert [list(row) for row in said.asked()] == run.matrix.workload.matrix.tolist()


@every_run
def test_the_loss_without_numpy_is_the_loss_with_it(run: Measurement) -> None:
    for far in (0, 1, 3, Fraction(5, 2)):
        moved = Sensitivity.of(l1=far)
        assert run.declaration.loss(moved) == run.loss(moved)
    assert run.declaration.largest == run.matrix.largest
    with pytest.raises(WrongNorm, match="l1 bound is needed"):
        run.declaration.loss(Sensitivity.of(l2_squared=1))


@pytest.mark.long
def test_a_declaration_is_read_and_its_loss_derived_with_numpy_blocked() -> None:
    said = RUNS["square root"].declaration
    code = f"""
import sys
for name in ("numpy", "scipy", "pandas", "pyarrow", "ibis", "duckdb"):
    sys.modules[name] = None
from sfumato.core.documents import parse
from sfumato.core.sensitivity import Sensitivity
from sfumato.reports.declarations import DECLARATIONS
said = DECLARATIONS.decode(parse({canonical(encode(said))!r}))
print(said.loss(Sensitivity.of(l1=1)).to_json(), said.law.margin(0.95), said.answer_law((1, 1, 1, 1, 1)).margin(0.95))
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    event, law = said.loss(Sensitivity.of(l1=1)), said.answer_law((1, 1, 1, 1, 1))
    assert answer.stdout.strip() == f"{event.to_json()} {said.law.margin(0.95)} {law.margin(0.95)}"


def test_the_law_is_that_of_each_measurement() -> None:
    assert RUNS["square root"].declaration.law == DiscreteGaussian(sigma_squared=Fraction(2 * 4**4))
    assert RUNS["pure ranges"].declaration.law == DiscreteLaplace(scale=RUNS["pure ranges"].noise)


# --------------------------------------------------------------------------------------------------------- answers


@every_run
def test_exact_least_squares_is_the_one_that_answers(run: Measurement) -> None:
    said, strategy = run.declaration, run.matrix.strategy
    decode = estimator(run.matrix.workload.matrix, strategy)
    for row, question in zip(decode, said.asked(), strict=True):
        factors = least_squares(said.strategy, question)
        assert np.allclose([float(one) for one in factors], row, atol=1e-12)
        made = [sum(f * e for f, e in zip(factors, column, strict=True)) for column in zip(*said.strategy, strict=True)]
        assert made == list(question)  # r·A = q, exactly: the answer is unbiased


@every_run
def test_the_variance_of_each_answer_is_the_covariance_of_the_formula(run: Measurement) -> None:
    said, stated = run.declaration, run.covariance.diagonal()
    for question, variance in zip(said.asked(), stated, strict=True):
        assert float(said.answer_law(question).variance) == pytest.approx(variance, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("name", ["optimal prefix", "pure ranges"])
@pytest.mark.alpha(2e-9)
def test_fresh_answers_keep_their_margins(name: str) -> None:
    """100,000 answers to the last question, Hoeffding at α = 1e-9: the margin covers, and half of it does not."""
    run, draws = RUNS[name], 100_000
    said, unit = run.declaration, 2.0**run.matrix.bits
    question = list(said.asked())[-1]
    draw = noise.discrete_gaussian if run.matrix.norm == "l2" else noise.discrete_laplace
    parameter = {"sigma_squared" if run.matrix.norm == "l2" else "scale": run.noise}
    drawn = draw(size=draws * len(said.strategy), **parameter).reshape(-1, draws)
    errors = np.abs(estimator([question], run.matrix.strategy / unit)[0] @ drawn / unit)
    margin, limit = float(said.answer_law(question).margin(0.95)), np.sqrt(np.log(2e9) / (2 * draws))
    assert (errors <= margin * (1 + 1e-9)).mean() >= 0.95 - limit
    assert (errors <= margin / 2).mean() < 0.95 - limit
    assert (errors <= margin * 0.85).mean() < 0.95 - limit  # and it is not much wider than it need be


def test_a_question_outside_the_row_space_has_no_law() -> None:
    half = MatrixNoise(**PLAIN | {"strategy": ((1, 1, 0), (0, 1, 1)), "workload": "identity"})
    assert half.answer_law((1, 2, 1)).variance > 0
    with pytest.raises(Refused, match="rank 2 and its row space does not contain the query"):
        half.answer_law((1, 0, 0))
    with pytest.raises(InvalidInput, match="about 2 and 3 counts"):
        half.answer_law((1, 0))


def test_least_squares_finds_the_shortest_of_many_answers() -> None:
    """With rows to spare, r is orthogonal to everything that A does not see; also where A has columns to spare."""
    strategy = ((1, 0, 1), (0, 1, 1), (1, 1, 2), (2, 1, 3))
    for question in ((1, 0, 1), (0, 1, 1), (3, -1, 2)):
        factors = least_squares(strategy, question)
        for unseen in product(range(-3, 4), repeat=4):
            if not any(np.array(unseen) @ np.array(strategy)):
                assert sum(f * u for f, u in zip(factors, unseen, strict=True)) == 0


# -------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"strategy": ()}, "the strategy must be a non-empty matrix"),
        ({"strategy": ((1, 2), (1,))}, "the strategy must be a non-empty matrix"),
        ({"strategy": ((), ())}, "the strategy must be a non-empty matrix"),
        ({"strategy": ((0, 0), (0, 0))}, "measures nothing"),
        ({"norm": "linf"}, "must be 'l1' or 'l2'"),
        ({"workload": "suffix"}, "must be one of given, prefix"),
        ({"workload": "given"}, "questions are written out"),
        ({"questions": ((1, 1),)}, "questions are written out"),
        ({"workload": "given", "questions": ((1, 1, 1),)}, "about the same counts"),
        ({"workload": "given", "questions": ((1, 1), (1,))}, "the workload must be a non-empty matrix"),
        ({"workload": "degrees"}, "2 counts are not the pairs"),
        ({"noise": Fraction(0)}, "noise = 0"),
        ({"bits": -1}, "bits = -1"),
        ({"bits": 65}, "bits must be at most 64"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(wrong: dict, says: str) -> None:
    MatrixNoise(**PLAIN)
    with pytest.raises(InvalidInput, match=says):
        MatrixNoise(**PLAIN | wrong)
    body = parse(canonical(encode(MatrixNoise(**PLAIN)))) | {name: encode(value) for name, value in wrong.items()}
    with pytest.raises(InvalidInput, match=says):
        DECLARATIONS.decode(body)


def test_workloads_are_known_by_the_same_names_with_and_without_numpy() -> None:
    for form, columns in (("prefix", 4), ("all range", 4), ("identity", 4), ("degrees", 6)):
        workload = named(form, columns)
        assert workload.form == form
        assert workload.matrix.tolist() == [list(row) for row in rows_of(form, columns)]
    for make in (rows_of, named):
        with pytest.raises(InvalidInput, match="no workload 'degrees' of 5 counts"):
            make("degrees", 5)
        with pytest.raises(InvalidInput, match="no workload 'given' of 3 counts"):
            make("given", 3)


# --------------------------------------------------------------------------------------------------------- streams


def test_a_stream_is_declared_and_runs_as_declared() -> None:
    said = Buffered.optimal(8, buffers=2, bits=8).with_noise(sigma_squared="3/2")
    again = DECLARATIONS.decode(parse(canonical(encode(said))))
    assert again == said
    assert again.noise == Fraction(3, 2) * 4**8
    silent = lambda parameter, size: np.array([int(parameter) % 97 * size])  # noqa: E731
    one, two = said.open(draw=silent), again.open(draw=silent)
    assert [one.add(x) for x in range(8)] == [two.add(x) for x in range(8)]
    assert isinstance(again, Mechanism)
    assert again.law == Unstated()  # its error is not of one law
    with pytest.raises(InvalidInput, match="each buffer needs a decay and a weight"):
        BufferedNoise(horizon=3, decays=(), weights=(), bits=2, noise=Fraction(1))

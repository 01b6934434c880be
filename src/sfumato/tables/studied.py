"""Studies of a table: methods of statisticians, each one question and what is made of its release.

What they need of a table is public; what they do is in the modules that they call, which import NumPy and SciPy when
they are first asked.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, cast

from sfumato.core.exact import Exact
from sfumato.engines.expressions import Expression, Term
from sfumato.errors import InvalidInput
from sfumato.tables.keys import KeyValue
from sfumato.tables.study import Study

if TYPE_CHECKING:
    from sfumato.core.release import Release
    from sfumato.studies.batches import BatchComparison
    from sfumato.studies.comparison import ContingencyResult, TwoSampleResult
    from sfumato.studies.regression.result import RegressionResult
    from sfumato.studies.regression.scores import AucResult, CalibrationResult
    from sfumato.studies.survival import SurvivalResult
    from sfumato.synthesis.comparison import SyntheticComparison
    from sfumato.synthesis.related_result import SyntheticRelations
    from sfumato.synthesis.result import SyntheticTable
    from sfumato.tables.hierarchies import Hierarchies
    from sfumato.tables.private_bins import QuantileBins
    from sfumato.tables.related import ChildRows, RelatedSynthesis
    from sfumato.tables.synthesized import Synthesis
    from sfumato.tables.table import Table

__all__ = ["StudiedTable"]


class StudiedTable:
    """What can be studied of a table, beside what can be asked of it.

    Guarantee: each study is one ordinary question, charged and certified as any other; its result is made of the
    release alone. Assumes: rows are independent; several rows of a person are refused before anything is spent.
    """

    __slots__ = ()

    @property
    def _table(self) -> "Table":
        return cast("Table", self)

    def compare_batches(self, value: str | Term, *, by: str = "batch") -> "Study[BatchComparison]":
        """Compare batches, instruments, sites or steps of processing in the mean of a value; ``by`` says which.

        The column is the one that was declared as such: ``vault.table(…, provenance={"batch": "batch_no"})``. The
        result has the rows and the mean of each batch with intervals, and a joint test whose null distribution holds
        sampling and noise. An evidence pack shows it.

        Guarantee: one charge, for the sums of all batches together. Assumes: one row a person, or single rows are
        protected; several rows of a person are refused. Proof: docs/proofs/design.md

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
        >>> rows = pa.table({"lot": ["a", "b"] * 300, "level": [3.0, 4.0] * 300})
        >>> table = vault.table(rows, name="assays", version="1", keys={"lot": ["a", "b"]}, bounds={"level": (0, 10)},
        ...                     provenance={"batch": "lot"})
        >>> table.compare_batches("level").release(epsilon=1).verdict
        'differ'
        """
        from sfumato.tables.studies_batches import batches_of

        return batches_of(self._table, value, by)

    def two_sample(
        self,
        outcome: str | Term | Expression,
        *,
        by: str | Term,
        groups: Sequence[KeyValue] | None = None,
        test: str = "auto",
        bins: int | Sequence[object] | None = None,
        blocks: str | Term | None = None,
    ) -> "Study[TwoSampleResult]":
        """Compare two groups: their shares of a condition, or the values of a column, with intervals and a p-value.

        A condition, or a column of truth values, is compared by χ² with the noise in it, or with ``test="exact"``
        conditionally as in Fisher's test; a number by Welch's test of means, or with ``test="rank"`` by Mann and
        Whitney's over ``bins`` classes. With ``blocks`` the groups were assigned at random within each value of that
        column, and shares are compared within it. ``preview(epsilon=…, rows=…)`` says what can be found.

        Guarantee: one question and one charge; the result costs nothing more, and sampling and noise are both in its
        p-value. Assumes: rows are independent persons. Proof: docs/proofs/comparisons.md

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
        >>> rows = pa.table({"arm": ["A", "B"] * 200, "died": [True, False] * 100 + [False, False] * 100})
        >>> trial = vault.table(rows, name="trial", version="1", keys={"arm": ["A", "B"]})
        >>> result = trial.two_sample("died", by="arm").release(epsilon=8)
        >>> result.p_value < 0.01, round(result.estimate, 1)
        (True, 0.5)
        """
        from sfumato.tables import studies_compare

        return studies_compare.two_sample(
            self._table, outcome, by=by, groups=groups, test=test, bins=bins, blocks=blocks
        )

    def contingency(
        self,
        rows: str | Term,
        columns: str | Term | Expression,
        *,
        test: str = "chi-square",
        scores: Sequence[float] | None = None,
    ) -> "Study[ContingencyResult]":
        """Test whether groups (``rows``) and categories (``columns``) are independent, for any number of both.

        ``test="trend"`` tests whether a share rises or falls over ordered groups (Cochran and Armitage); ``scores`` are
        the numbers that the groups stand for, else their own or their places.

        Guarantee: as for :meth:`two_sample`. Proof: docs/proofs/comparisons.md

        >>> from sfumato.demo.clinic import visits
        >>> import sfumato as sf
        >>> once = visits().with_limit(sf.Limit(groups=1, rows_per_group=1))
        >>> once.contingency("hospital", "sex").question.query.labels()["sex"]
        ['F', 'M', 'F', 'M']
        """
        from sfumato.tables import studies_compare

        return studies_compare.contingency(self._table, rows, columns, test=test, scores=scores)

    def linear_regression(
        self,
        formula: str | None = None,
        *,
        outcome: str | None = None,
        covariates: Sequence[str] | None = None,
        robust: bool = False,
        pieces: int | None = None,
    ) -> "Study[RegressionResult]":
        """A linear regression, such as ``"sbp ~ age + sex + C(ward)"``, or ``outcome=`` with ``covariates=[…]``.

        Numbers need declared bounds, which their values are held to; factors need declared keys, the first of which is
        the reference. ``a:b`` and ``a*b`` are products. All sums that it needs are one release. With ``robust`` the
        variance of the residuals may depend on the covariates: rows are counted spread over splines of at most four
        numbers, and standard errors are of the sandwich kind (HC1).

        Guarantee: what the release costs is all that it costs. Standard errors hold sampling and noise. Assumes: one
        row of each person; complete cases; unless ``robust``, a residual variance that does not depend on covariates.
        Proof: docs/proofs/regression.md

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> one = visits().with_limit(sf.Limit(groups=1, rows_per_group=1))
        >>> one.linear_regression(outcome="sbp", covariates=["age", "sex"]).question.query.design.names
        ('Intercept', 'age', 'sex[M]')
        """
        from sfumato.tables import studies_regression, studies_splines

        model = studies_regression.model_of(formula, outcome, covariates)
        if not isinstance(robust, bool):
            raise InvalidInput(
                f"robust is True or False and was {robust!r}; nothing was done. robust=True has standard errors HC1; "
                "HC2 and HC3 need the leverage of each row, of which nothing is released."
            )
        if robust:
            return studies_splines.robust_linear(self._table, model, pieces=pieces)
        if pieces is not None:
            raise InvalidInput("pieces=… is for robust=True, which spreads numbers; nothing was done.")
        return studies_regression.linear_regression(self._table, model)

    def logistic_regression(
        self,
        formula: str | None = None,
        *,
        outcome: str | None = None,
        covariates: Sequence[str] | None = None,
        cuts: Mapping[str, Sequence[object]] | None = None,
        event: KeyValue | None = None,
        pieces: int | None = None,
    ) -> "Study[RegressionResult]":
        """A logistic regression, such as ``"readmitted ~ age + C(sex)"``, with odds ratios.

        Rows are counted in each cell of the factors and the outcome, which is one release; the model is fitted to the
        noisy counts. Factors need declared keys; ``cuts={"age": [0, 40, 65, 120]}`` makes one of a number. Other
        numbers, at most four, need declared bounds: each row is spread over splines, of ``pieces`` pieces of the range
        of each. The outcome has two declared keys; ``event`` says which is the event, else it is the last one.

        Guarantee: what the release costs is all that it costs. Standard errors hold sampling and noise. Assumes: one
        row of each person; complete cases; that the model holds. Proof: docs/proofs/regression.md

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> one = visits().with_limit(sf.Limit(groups=1, rows_per_group=1))
        >>> one.logistic_regression(outcome="sex", covariates=["hospital"]).question.query.size
        4
        >>> one.logistic_regression(outcome="sex", covariates=["age"]).question.query.size  # 11 splines
        22
        """
        from sfumato.tables import studies_cells, studies_regression

        model = studies_regression.model_of(formula, outcome, covariates)
        return studies_cells.logistic_regression(self._table, model, cuts=cuts or {}, event=event, pieces=pieces)

    def poisson_regression(
        self,
        formula: str | None = None,
        *,
        outcome: str | None = None,
        covariates: Sequence[str] | None = None,
        cuts: Mapping[str, Sequence[object]] | None = None,
        pieces: int | None = None,
    ) -> "Study[RegressionResult]":
        """A regression of the logarithm of a mean, such as ``"stays ~ age + C(ward)"``, with rate ratios.

        Rows, sums and squares of the outcome are added up in each cell of the covariates, for one charge. Covariates
        are as for :meth:`logistic_regression`; the outcome is a number with declared bounds from 0 or more on. Its
        variance is measured, so it may be larger or smaller than its mean.

        Guarantee: what the release costs is all that it costs. Standard errors hold sampling and noise. Assumes: one
        row of each person; complete cases; that the model of the mean holds. Proof: docs/proofs/regression.md

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> one = visits().with_limit(sf.Limit(groups=1, rows_per_group=1))
        >>> one.poisson_regression(outcome="age", covariates=["sex"]).question.query.size
        6
        """
        from sfumato.tables import studies_cells, studies_regression

        model = studies_regression.model_of(formula, outcome, covariates)
        return studies_cells.poisson_regression(self._table, model, cuts=cuts or {}, pieces=pieces)

    def survival(
        self,
        time: str | Term,
        event: str | Term | Expression,
        *,
        until: Exact | None = None,
        steps: int | None = None,
        by: str | None = None,
    ) -> "Study[SurvivalResult]":
        """Ask how long it takes until an event: Kaplan–Meier curves, by group where ``by`` names a declared column.

        ``time`` is how long each row was followed, ``event`` whether the event ended it; who is followed beyond
        ``until`` is censored there. Whole numbers are taken one by one up to 1,000; else ``steps`` cuts the time, into
        as many at the most. A column that is not known to hold whole numbers is rounded up to them. The result has
        medians, mean times, the log-rank test and hazard ratios too, for the one charge. Rows without a time do not
        count, nor those without a value in a column of events; who does not meet a condition is censored.

        Guarantee: one count of rows, in which a person is in one cell of each level. Assumes: each row is another
        person; bounds of the time are declared. Proof: docs/proofs/survival.md

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
        >>> rows = pa.table({"week": [1, 2, 3, 3] * 100, "died": [True, True, True, False] * 100})
        >>> trial = vault.table(rows, name="trial", version="1", bounds={"week": (1, 3)})
        >>> result = trial.survival("week", "died").release(epsilon=8)
        >>> round(result.at(2).estimate, 1)
        0.5
        """
        from sfumato.tables.independent_rows import check_independent
        from sfumato.tables.studies_survival import check_groups, survival_question

        table = self._table
        check_independent(table, "survival(...)")
        asked = survival_question(
            dataset=table.dataset,
            facts=table._facts,
            where=table.predicate,
            joins=table.joins,
            time=time,
            event=event,
            until=until,
            steps=steps,
            group=None if by is None else check_groups(table._declared(by)),
            grouped=bool(table.by),
        )
        return Study(
            question=table._question(asked.query), made=asked.result, foreseen=asked.foreseen, enough=asked.enough
        )

    def auc(
        self, score: str, outcome: str, *, bins: int | Sequence[Exact] = 20, event: KeyValue | None = None
    ) -> "Study[AucResult]":
        """The area under the curve of a score column: how well it tells rows with the event from those without.

        Rows are counted by bins of the score, which has declared bounds, and by the outcome, which has two declared
        keys. ``bins`` is a number of bins of one width, or their edges.

        Guarantee: what the release costs is all that it costs. The interval holds sampling and noise. Assumes: one row
        of each person. Proof: docs/proofs/regression.md

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> one = visits().with_limit(sf.Limit(groups=1, rows_per_group=1))
        >>> one.auc("age", "sex", bins=10).question.query.size
        20
        """
        from sfumato.tables import studies_scores

        return studies_scores.auc(self._table, score, outcome, bins, event)

    def calibration(
        self, score: str, outcome: str, *, bins: int | Sequence[Exact] = 10, event: KeyValue | None = None
    ) -> "Study[CalibrationResult]":
        """The share of events in each bin of a score column, with intervals: whether 20% means 20%.

        With the bins and the spend of :meth:`auc` it is the same release, and costs nothing more.

        Guarantee and assumptions: as for :meth:`auc`.

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> one = visits().with_limit(sf.Limit(groups=1, rows_per_group=1))
        >>> one.calibration("age", "sex").question.query.size
        20
        """
        from sfumato.tables import studies_scores

        return studies_scores.calibration(self._table, score, outcome, bins, event)

    def synthesis(
        self,
        columns: Sequence[str] | None = None,
        *,
        rows: int | None = None,
        bins: "Mapping[str, int | Sequence[Exact | date] | QuantileBins] | None" = None,
        missing: Sequence[str] = (),
        workload: "Sequence[Sequence[str]] | Mapping[tuple[str, ...], Exact]" = (),
        never: "Sequence[Mapping[str, KeyValue | Sequence[KeyValue | None] | None]]" = (),
        at_least: Sequence[tuple[str, str]] = (),
        expected_rows: int | None = None,
        consistent_with: "Sequence[Release]" = (),
        hierarchies: "Hierarchies | None" = None,
    ) -> "Synthesis":
        """What :meth:`synthesize` would ask and make, before ε is decided: ``plan``, ``question`` and ``release``.

        ``release`` takes what a question takes: ``fresh``, ``idempotency`` and ``reads``.

        >>> from sfumato.demo.clinic import visits
        >>> asked = visits().synthesis(["sex", "hospital", "age"], bins={"age": 5}, expected_rows=1000)
        >>> asked.plan(epsilon="1/10", delta=1e-6).tables
        ((0, 1), (0, 2), (1, 2))
        >>> asked.question(epsilon="1/10", delta=1e-6).query.size
        24
        """
        from sfumato.tables.private_bins import binned_synthesis

        return binned_synthesis(
            self._table,
            columns,
            rows=rows,
            expected_rows=expected_rows,
            bins={} if bins is None else bins,
            missing=missing,
            workload=workload,
            never=never,
            at_least=at_least,
            consistent_with=consistent_with,
            hierarchies=hierarchies,
        )

    def synthesize(
        self,
        columns: Sequence[str] | None = None,
        *,
        epsilon: Exact,
        delta: Exact = 0,
        rows: int | None = None,
        bins: "Mapping[str, int | Sequence[Exact | date] | QuantileBins] | None" = None,
        missing: Sequence[str] = (),
        workload: "Sequence[Sequence[str]] | Mapping[tuple[str, ...], Exact]" = (),
        never: "Sequence[Mapping[str, KeyValue | Sequence[KeyValue | None] | None]]" = (),
        at_least: Sequence[tuple[str, str]] = (),
        expected_rows: int | None = None,
        consistent_with: "Sequence[Release]" = (),
        hierarchies: "Hierarchies | None" = None,
    ) -> "SyntheticTable":
        """Make synthetic rows with these columns, by default all that have declared keys or bounds.

        Noisy tables of the columns are measured for this ε, and rows are made of the release alone. Columns with keys
        have these; numbers and dates are cut into ``bins`` between their declared bounds and values are drawn inside: a
        number of bins, their edges, or ``sf.QuantileBins(8)``, whose edges are asked for first with a tenth of ε.
        ``hierarchies`` maps the codes of a column to groups: tables hold the groups, and each row then gets a code of
        its group (``sf.Hierarchy``). ``missing`` names columns whose missing values are a value. ``rows`` is how many
        rows are written; without it, the noisy number of rows. ``workload`` lists the tables that must be right, or
        maps them to their importance. ``never`` lists values of two columns that never occur together, ``at_least``
        pairs of columns whose first value is at least the second; both hold in every row. ``expected_rows`` is the
        public number of rows in the data, about: which tables are measured follows from it, by default from the vault's
        public number of units. ``consistent_with`` lists counts that were released before.

        Guarantee: one ordinary question, charged and certified, and one before it for each column whose bins are
        chosen; together they cost this ε and δ, and the rows are a function of the releases. Assumes: what is declared
        is public. Of a person at most as many rows count as the limit has. Proof: docs/proofs/synthesis.md

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
        >>> people = pa.table({"sex": ["F", "M"] * 500, "ill": [True, False] * 500})
        >>> table = vault.table(people, name="people", version="1", keys={"sex": ["F", "M"], "ill": [True, False]})
        >>> made = table.synthesize(epsilon=5, rows=400)
        >>> made.rows.group_by(["sex", "ill"]).aggregate([([], "count_all")]).num_rows < 5
        True
        >>> made.rows.num_rows, vault.spent == sf.Budget(epsilon=5)
        (400, True)
        """
        asked = self.synthesis(
            columns,
            rows=rows,
            bins=bins,
            missing=missing,
            workload=workload,
            never=never,
            at_least=at_least,
            expected_rows=expected_rows,
            consistent_with=consistent_with,
            hierarchies=hierarchies,
        )
        return asked.release(epsilon=epsilon, delta=delta)

    def related_synthesis(
        self,
        children: "Mapping[str, ChildRows]",
        columns: Sequence[str] | None = None,
        *,
        persons: int | None = None,
        bins: "Mapping[str, int | Sequence[Exact | date]] | None" = None,
        missing: Sequence[str] = (),
        hierarchies: "Hierarchies | None" = None,
    ) -> "RelatedSynthesis":
        """What :meth:`synthesize_related` would ask and make, before ε is decided: ``plan``, ``question``, ``release``.

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> table = visits()
        >>> people = table.per_person(sex=sf.first("sex", by="age"))
        >>> asked = people.related_synthesis({"visits": sf.ChildRows(table, order="age", most=2, columns=["hospital"])})
        >>> sorted(set(asked.question(epsilon=1).query.labels()["marginal"]))[:2]
        ['sex × visits', 'sex × visits.hospital_1']
        """
        from sfumato.tables.related import related_of

        return related_of(
            self._table,
            children,
            columns,
            persons=persons,
            bins=bins or {},
            missing=missing,
            hierarchies={} if hierarchies is None else hierarchies,
        )

    def synthesize_related(
        self,
        children: "Mapping[str, ChildRows]",
        columns: Sequence[str] | None = None,
        *,
        epsilon: Exact,
        delta: Exact = 0,
        persons: int | None = None,
        bins: "Mapping[str, int | Sequence[Exact | date]] | None" = None,
        missing: Sequence[str] = (),
        hierarchies: "Hierarchies | None" = None,
    ) -> "SyntheticRelations":
        """Make synthetic persons with these columns, and below them the rows that they have in other tables.

        The table has one row a person; ``children`` maps names to ``sf.ChildRows(stays, order="admitted", most=4)``.
        How many rows a person has goes with the person's columns, columns of rows go with those of the person and with
        each other, and columns that ``follow`` themselves with their value in the row before. ``persons`` is how many
        persons are written; without it, their noisy number. The rest is as for :meth:`synthesize`.

        Guarantee: one ordinary question, charged and certified, in which a person with all rows is in one cell of each
        table; all files are functions of its release. Assumes: what is declared is public; persons are protected.
        Proof: docs/proofs/synthetic_relations.md

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
        >>> one = sf.Limit(groups=1, rows_per_group=1)
        >>> people = pa.table({"id": range(300), "sex": ["F", "M"] * 150})
        >>> stays = pa.table({"id": list(range(0, 300, 2)) * 2, "day": [1] * 150 + [2] * 150, "ward": ["A", "B"] * 150})
        >>> above = vault.table(people, name="people", version="1", keys={"sex": ["F", "M"]}, limit=one)
        >>> below = vault.table(stays, name="all stays", version="1", keys={"ward": ["A", "B"]})
        >>> made = above.synthesize_related({"stays": sf.ChildRows(below, order="day", most=2)}, epsilon=9, persons=200)
        >>> made.tables["persons"].num_rows, made.tables["stays"].column_names, vault.spent == sf.Budget(epsilon=9)
        (200, ['id', 'number', 'ward'], True)
        """
        asked = self.related_synthesis(
            children, columns, persons=persons, bins=bins, missing=missing, hierarchies=hierarchies
        )
        return asked.release(epsilon=epsilon, delta=delta)

    def compare_synthetic(
        self,
        made: "SyntheticTable",
        *,
        outcome: str | None = None,
        event: "KeyValue | None" = None,
        ways: int = 2,
        bins: int = 10,
    ) -> "Study[SyntheticComparison]":
        """Compare synthetic rows with the rows of this table; a question of its own, with a charge of its own.

        Tables of one and of two columns are counted with noise; the result has total variation and Jensen–Shannon
        divergence of each, with intervals. With an ``outcome`` of two values, a logistic regression is trained on the
        synthetic rows, and the rows of this table are counted by ``bins`` of its score and by the outcome: the result
        has the area under its curve, with an interval. ``ways=1`` leaves tables of two columns out, ``ways=0`` counts
        for the model alone, with the least noise. Call it on persons of whom the rows were not made, where the area is
        to be that of new persons. ``made.report(path, comparison=…)`` shows the result.

        Guarantee: one ordinary question, charged and certified; a score is a function of one row, and each row is in
        one cell of every table. Assumes: one row a person, or single rows are protected.
        Proof: docs/proofs/synthesis.md

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
        >>> people = pa.table({"sex": ["F", "M"] * 500, "ill": [True, False, False, False] * 250})
        >>> table = vault.table(people, name="people", version="1", keys={"sex": ["F", "M"], "ill": [True, False]})
        >>> made = table.synthesize(epsilon=4, rows=1000)
        >>> found = table.compare_synthetic(made, outcome="ill").release(epsilon=5)
        >>> low, high = found.interval()
        >>> low < 0.83 < high, all(far.low <= far.value <= far.high for far, _ in found.distances().values())
        (True, True)
        """
        from sfumato.tables.synthetic_comparison import comparison_of

        return comparison_of(self._table, made, outcome=outcome, event=event, ways=ways, bins=bins)

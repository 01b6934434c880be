"""Answers of works: what a stored release becomes, worked out again from it, at no cost and without data."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.core.release import Release
from sfumato.errors import Refused, SfumatoError
from sfumato.server.asking.offers import schema_table
from sfumato.server.jobs.queue import Job
from sfumato.server.works.forms import RegressionForm, SurvivalForm, WorkForm
from sfumato.server.works.kinds import remembered
from sfumato.studies.printing import ResultPage
from sfumato.studies.result import StudyResult
from sfumato.studies.survival import SurvivalResult

if TYPE_CHECKING:
    from sfumato.server.asking.desk import QuestionDesk
    from sfumato.tables.schema import Schema

__all__ = ["WorkAnswer", "check_same", "read_again", "study_pages", "study_result", "work_of"]

MOST_KEPT = 64
_kept: "OrderedDict[tuple[str, str], StudyResult]" = OrderedDict()
_turn = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAnswer:
    """A job that became a work: its form, the schema that it was asked under, and the release."""

    job: Job
    form: WorkForm
    schema: "Schema"
    release: Release

    @property
    def is_study(self) -> bool:
        """Whether it is a result of statistics."""
        return isinstance(self.form, SurvivalForm | RegressionForm)


def work_of(desk: "QuestionDesk", job: Job) -> WorkForm | None:
    """The form of what a job becomes; None where that is a table of numbers."""
    text = desk.queue.work(job.name)
    return None if text is None else remembered(text)


def read_again(desk: "QuestionDesk", job: Job, form: WorkForm) -> WorkAnswer:
    """The release of a job with all that it takes to read it as a work."""
    versions = desk.service.datasets.versions(job.dataset)
    schema = next((held.schema for held in versions if held.edition == job.edition), None)
    if schema is None:
        raise Refused("the data of this answer are not declared here any more; its certificate is still there.")
    return WorkAnswer(job=job, form=form, schema=schema, release=desk.release(job))


def study_result(answer: WorkAnswer) -> StudyResult:
    """The result of a study, from its release alone."""
    key = answer.release.statement.identifier, answer.job.name
    with _turn:
        if key in _kept:
            return _kept[key]
    form = answer.form
    if not isinstance(form, SurvivalForm | RegressionForm):
        raise Refused("this answer is not that of a study; nothing was done.")
    study = form.study(schema_table(answer.schema, answer.release.statement.unit), answer.schema)
    check_same(study.question.query, answer.release)
    found: StudyResult = study.made(answer.release)
    with _turn:
        _kept[key] = found
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return found


def check_same(query: object, release: Release) -> None:
    """Refuse to read a release as what it is not."""
    if query != release.statement.query:
        raise Refused(
            "the form asks something else by now than was answered, so that the answer is not read as it; nothing was "
            "done. Its certificate is still there."
        )


def study_pages(result: StudyResult, language: str) -> tuple[ResultPage, ...]:
    """What is shown of a result: its main tables, and of survival the tests and figures that follow from the curves."""
    if not isinstance(result, SurvivalResult):
        return (result.page(language),)
    made = [result.median, result.rmst]
    if result.layout.groups:
        made += [result.log_rank, result.hazard_ratio]  # type: ignore[list-item]  # results of several classes
    pages = [result.page(language, names=("survival",))]
    for each in made:
        try:
            pages.append(each().page(language))
        except SfumatoError:  # what these curves do not tell
            continue
    return tuple(pages)

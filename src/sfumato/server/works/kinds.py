"""The kinds of works by their names, and a form as it is kept beside its job."""

from collections.abc import Mapping

from sfumato.core.documents import canonical, parse
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.server.works.forms import REGRESSIONS, RegressionForm, SurvivalForm, WorkForm
from sfumato.server.works.synthetic_form import SyntheticForm

__all__ = ["KINDS", "kept", "read", "remembered"]

KINDS = ("survival", *REGRESSIONS, SyntheticForm.kind)


def read(kind: str, dataset: str, said: Mapping[str, str]) -> WorkForm:
    """The form of a kind that fields say.

    >>> read("linear", "patients", {"outcome": "sbp", "use": "age"}).kind
    'linear'
    """
    if kind == SurvivalForm.kind:
        return SurvivalForm.read(dataset, said)
    if kind in REGRESSIONS:
        return RegressionForm.read(kind, dataset, said)
    if kind == SyntheticForm.kind:
        return SyntheticForm.read(dataset, said)
    raise NotDeclared(f"there is no form of this kind; nothing was done. There are {', '.join(KINDS)}.")


def kept(form: WorkForm) -> str:
    """A form as text, the same for the same form."""
    return canonical({"kind": form.kind, "dataset": form.dataset, "fields": {**form.fields}})


def remembered(text: str) -> WorkForm:
    """The form of a text of :func:`kept`.

    >>> form = read("linear", "patients", {"outcome": "sbp", "use": "age"})
    >>> remembered(kept(form)) == form
    True
    """
    match parse(text):
        case {"kind": str(kind), "dataset": str(dataset), "fields": dict(fields)}:
            return read(kind, dataset, {str(name): str(value) for name, value in fields.items()})
    raise InvalidInput("this is no form of a work; nothing was done.")

"""What the steward vouches for stands in the certificate, in every explanation, and on the page."""

import copy
from functools import cache

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.documents import canonical
from sfumato.core.release import Release
from sfumato.reports.particulars import particulars
from sfumato.reports.verify import load, verify

AUDIENCES = ("public", "patient", "clinician", "manager", "board")
WORDS = {
    "en": "The steward of the data vouches that each row of {} depends on",
    "zh": "{} 的每一行只取决于一个保护对象的数据",
}


@cache
def released(*derived: str) -> Release:
    """A count of visits joined with labs, where these are declared as derived."""
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=1), name="clinic")
    limit = sf.Limit(groups=1, rows_per_group=2)
    visits, labs = (
        vault.table(pa.table({"id": [1, 2]}), name=name, version="1", limit=limit, derived=name in derived)
        for name in ("visits", "labs")
    )
    return visits.join(labs, on="id").count().release(epsilon=1)


@pytest.mark.few(4)
@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("audience", AUDIENCES)
def test_every_reader_is_told_what_is_the_stewards_word(audience: str, language: str) -> None:
    both = {"en": "visits and labs", "zh": "visits 和 labs"}[language]
    for names, said in ((("labs",), "labs"), (("visits",), "visits"), (("visits", "labs"), both)):
        assert WORDS[language].format(said) in released(*names).explain(language, audience)
    for name in ("visits", "labs"):
        assert WORDS[language].format(name) not in released().explain(language, audience)


@pytest.mark.long
def test_it_is_signed_verified_and_shown(tmp_path) -> None:  # type: ignore[no-untyped-def]
    release = released("labs")
    assert [dataset.name for dataset in release.statement.derived] == ["labs"]
    outcome = verify(release.certificate.document)
    assert outcome.consistent, str(outcome)
    assert dict(particulars(release, "en"))["derived"].startswith("by the steward: each row of labs depends on")
    assert "labs" in dict(particulars(release, "zh"))["derived"]
    assert "derived" not in dict(particulars(released(), "en"))
    assert "by the steward: each row of labs" in release.report(tmp_path / "page.html").read_text("utf-8")
    path = release.certificate.save(tmp_path / "c.json")
    assert load(path).statement == release.statement


def test_a_word_that_is_taken_out_or_put_in_does_not_verify() -> None:
    for release, changed in ((released("labs"), []), (released(), [encoded("labs")])):
        document = copy.deepcopy(release.certificate.document)
        document["statement"]["derived"] = changed  # type: ignore[index, call-overload]
        assert not verify(document).consistent


def encoded(name: str) -> dict[str, object]:
    return {"kind": "dataset", "version": 1, "name": name, "edition": "1"}


def test_a_word_about_data_that_was_not_asked_is_found() -> None:
    from dataclasses import replace

    from sfumato.core.certificate import Certificate
    from sfumato.core.query import Dataset
    from sfumato.core.signature import SigningKey

    release = released("labs")
    for derived in ((Dataset(name="others", edition="1"),), release.statement.derived * 2):
        signed = Certificate.sign(replace(release.statement, derived=derived), SigningKey.new())
        found = verify(signed.document).findings
        assert [finding.field for finding in found] == ["statement.derived"], canonical(signed.document)

"""Every kind of document comes back from its JSON as it was, alone and inside a signed certificate."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from sfumato.core.certificate import Certificate
from sfumato.core.documents import canonical, encode, parse
from sfumato.core.signature import SigningKey
from sfumato.core.statement import Statement
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.verify import verify
from tests.documents import CLASSES, built
from tests.reports.forgeries import signed_anew

KEY = SigningKey.new()
LONG = os.environ.get("SFUMATO_LONG") == "1"
QUIET = settings(
    max_examples=50 if LONG else 3,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.few(40)
@pytest.mark.parametrize("kind", sorted(set(CLASSES) - {"statement"}))
def test_each_kind_comes_back_as_it_was(kind: str) -> None:
    seen: list[Any] = []

    @given(document=built(CLASSES[kind]))
    @QUIET
    def check(document: Any) -> None:
        text = canonical(encode(document))
        again = DECLARATIONS.decode(parse(text))
        assert again == document or encode(again) == encode(document)
        assert canonical(encode(again)) == text
        seen.append(again)

    check()
    assert seen


@pytest.mark.long
@given(statement=built(Statement))
@settings(QUIET, max_examples=80 if LONG else 10)
def test_certificates_of_every_kind_come_back_sealed_and_signed(statement: Statement) -> None:
    certificate = Certificate.sign(statement, KEY)
    document = parse(certificate.text)
    assert isinstance(document, dict)
    assert DECLARATIONS.decode(document["statement"]) == statement
    findings = {finding.field for finding in verify(document, key=KEY.public_text).findings}
    # A statement put together at random contradicts itself; what is never wrong is its form, seals and signature.
    assert not any(name.partition(".")[0] in {"kind", "version", "seals", "signature", "document"} for name in findings)
    assert "statement.kind" not in findings
    signed_anew(document)
    assert "signature.key" in {finding.field for finding in verify(document, key=KEY.public_text).findings}

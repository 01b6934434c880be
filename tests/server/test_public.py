"""The public pages: only what is on record and allowed, both languages, no script, and no account or purpose."""

import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from sfumato.errors import NotDeclared
from sfumato.governance.board import Action
from sfumato.reports.evidence.shape import problems, schema
from sfumato.reports.publication import Grounds
from sfumato.reports.verify import parsed, verify
from sfumato.server.publishing.grounds import Publications
from sfumato.server.views.gate import WhyNot, gated
from sfumato.server.views.snapshot import snapshot_of
from sfumato.server.words import OFFERED, PageWords
from tests.server.institution import PURPOSE, Institution, institution
from tests.server.visiting import Visiting

TODAY, FIRST = date(2026, 11, 18), date(2026, 11, 1)
MISSED = date(2026, 11, 11)
OWN = re.compile(r"hospital/|epidemiology|public health")


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Institution]:
    made = institution(tmp_path_factory.mktemp("hospital"), today=TODAY, first=FIRST, missing=(MISSED,))
    yield made
    made.service.close()


@pytest.fixture(scope="module")
def app(hospital: Institution) -> Visiting:
    return Visiting(hospital.service)


@pytest.fixture
def anybody(app: Visiting) -> Visiting:
    return app.other()


def found(hospital: Institution) -> dict[str, str]:
    """The published releases: identifier by dataset and version."""
    service = hospital.service
    stated = {name: each.grounds for name, each in Publications(service.database, now=service.now).all().items()}
    shown = gated(snapshot_of(service.ledger), stated, at=service.clock().isoformat(timespec="seconds"))
    return {
        f"{each.release.statement.dataset.name} {each.release.statement.dataset.edition}": each.identifier
        for each in shown.published
    }


def test_only_what_is_on_record_is_shown(hospital: Institution, anybody: Visiting) -> None:
    names = found(hospital)
    answered = [charge.identifier for charge in snapshot_of(hospital.ledger).trail.charges]
    assert len(names) == len(answered) - 1, "one answer about visits is on record nowhere"
    (other,) = set(answered) - set(names.values())
    assert anybody.ask("GET", f"/public/releases/{other}").status_code == 404
    assert str(other) not in anybody.get("/public").text + anybody.get("/public/registry.json").text
    assert anybody.ask("GET", f"/public/releases/{names['visits 2026-10']}").status_code == 200


@pytest.mark.parametrize("language", list(OFFERED))
def test_a_release_says_everything_in_each_language(hospital: Institution, anybody: Visiting, language: str) -> None:
    say = PageWords(language).say
    text = anybody.get(f"/public/releases/{found(hospital)['visits 2026-10']}?lang={language}").text
    for words in ("raw", "method", "meaning", "pictures", "check", "certificate"):
        assert say(f"public.{words}") in text
    assert "<script" not in text
    assert not OWN.search(text)
    pictures = re.findall(r'src="(/public/releases/[^"]+\.svg)"', text)
    assert len(pictures) == 3
    for address in pictures:
        answer = anybody.ask("GET", address)
        assert answer.headers["content-type"] == "image/svg+xml"
        assert answer.text.startswith("<svg")
        assert "style=" not in answer.text


def test_raw_values_are_those_of_the_certificate(hospital: Institution, anybody: Visiting) -> None:
    identifier = found(hospital)["visits 2026-10"]
    text = anybody.get(f"/public/releases/{identifier}").text
    document = parsed(anybody.get(f"/public/releases/{identifier}/certificate.json").text)
    assert verify(document, key=hospital.ledger.public_key).consistent
    drawn = document["statement"]["values"]  # type: ignore[index,call-overload]
    table = text[text.index('id="raw"') : text.index('id="method"')]
    assert [int(value) for value in re.findall(r'<td class="number">(-?\d+)</td>', table)] == drawn


def test_the_registry_fits_its_schema_and_states_no_account_and_no_purpose(
    hospital: Institution, anybody: Visiting
) -> None:
    document = json.loads(anybody.get("/public/registry.json").text)
    assert problems(document, schema("registry")) == []
    assert {each["identifier"] for each in document["releases"]} == set(found(hospital).values())
    assert not OWN.search(json.dumps(document))
    broken = json.loads(json.dumps(document))
    del broken["releases"][0]["values"]
    assert problems(broken, schema("registry")) == ["document.releases[0].values is missing"]


@pytest.mark.claim("S1-34")
@pytest.mark.parametrize("language", list(OFFERED))
def test_the_dashboard_shows_margins_trend_alarms_and_what_was_skipped_and_why(
    hospital: Institution, anybody: Visiting, language: str
) -> None:
    say = PageWords(language).say
    home = anybody.get(f"/public?lang={language}").text
    (address,) = set(re.findall(r"/public/plans/\w+", home))
    text = anybody.get(address).text
    assert f'<html lang="{language}">' in text
    assert say("public.why_no_data") in text
    assert say("public.periods_one", first=MISSED.isoformat()) in text
    assert say("public.why_parts") in text
    assert say("public.all_meet") in text
    for every in ("daily", "weekly", "monthly"):
        assert say(f"public.every_{every}") in text
    assert say("public.stated", margin="30", confidence="95") in text
    assert any(say(f"public.trend_{way}") in text for way in ("up", "down"))
    assert say("public.alarms") in text
    assert say("public.within") in text
    assert "<script" not in text
    assert not OWN.search(text)
    assert text.count('class="drawn"') >= 3


def test_a_line_of_a_plan_can_be_had_as_a_table(anybody: Visiting) -> None:
    address = re.findall(r"/public/plans/\w+", anybody.get("/public").text)[0]
    lines = anybody.get(f"{address}/days.csv").text.splitlines()
    assert lines[0].startswith("period,first,last,state,why,number,value")
    assert len([line for line in lines if line.startswith("2026-11-02,")]) == 3
    assert [line for line in lines if line.startswith(f"{MISSED},")] == [
        f"{MISSED},{MISSED},{MISSED},skipped,no_data,,,,,"
    ]
    assert anybody.ask("GET", f"{address}/nothing.csv").status_code == 404


@pytest.mark.parametrize("address", ["/public/releases/x", "/public/releases/..%2f..%2fledger.key", "/public/plans/x"])
def test_what_is_not_there_is_not_there(anybody: Visiting, address: str) -> None:
    answer = anybody.ask("GET", address)
    assert answer.status_code == 404
    assert "Traceback" not in answer.text


def test_grounds_are_needed_and_stay_with_who_stated_them(hospital: Institution, app: Visiting) -> None:
    service = hospital.service
    held = Publications(service.database, now=service.now)
    with pytest.raises(NotDeclared, match="legal basis"):
        held.put("somebody", Grounds(reason="for fun"), by="steward")
    steward = app.other().sign_in("steward")
    page = steward.get("/publish").text
    (waiting,) = re.findall(r'action="/publish">.*?name="identifier" value="(\w+)"', page, flags=re.DOTALL)
    said = {"identifier": waiting, "reason": "they ask for it", "legal_basis": ""}
    assert steward.post("/publish", said, page="/publish").status_code == 422
    assert steward.post("/publish", said | {"legal_basis": "section 7"}, page="/publish").status_code == 303
    assert held.all()[waiting].by == "steward"
    assert app.other().ask("GET", f"/public/releases/{waiting}").status_code == 200
    assert steward.post("/publish/withdraw", {"identifier": waiting}, page="/publish").status_code == 303
    assert app.other().ask("GET", f"/public/releases/{waiting}").status_code == 404
    assert steward.post("/publish", {"identifier": "made up"}, page="/publish").status_code == 404


def test_a_veto_takes_a_release_off_the_page_and_lifting_brings_it_back_once_it_is_approved(
    hospital: Institution, app: Visiting
) -> None:
    identifier, anybody = found(hospital)["visits 2026-10"], app.other()
    key, ledger = hospital.keys["eva"], hospital.ledger
    ledger.veto(by="eva", community="riverside", dataset="visits", reason="we were not asked", key=key)
    assert anybody.ask("GET", f"/public/releases/{identifier}").status_code == 404
    home = anybody.get("/public").text
    assert PageWords("en").say("public.withheld_veto", by="riverside") in home
    assert identifier not in home
    ledger.lift_veto(by="eva", community="riverside", dataset="visits", reason="we were asked", key=key)
    assert anybody.ask("GET", f"/public/releases/{identifier}").status_code == 404, "approved before the veto"
    assert PageWords("en").say("public.withheld_terms") in anybody.get("/public").text
    hospital.decided(Action.DATASET, subject="visits again", account=None, datasets=("visits",), amount=None)
    assert anybody.ask("GET", f"/public/releases/{identifier}").status_code == 200


def test_what_the_terms_no_longer_allow_is_withheld_whatever_is_on_record(hospital: Institution) -> None:
    snapshot = snapshot_of(hospital.ledger)
    known = [charge for charge in snapshot.trail.charges if charge.recipient == "public"]
    assert known
    assert all(charge.purpose == PURPOSE for charge in known)
    everything = {charge.identifier: Grounds(reason="all", legal_basis="all") for charge in snapshot.trail.charges}
    late = gated(snapshot, everything, at="2100-01-01T00:00:00+00:00")  # type: ignore[arg-type]
    assert late.published == ()
    assert {each.why for each in late.withheld} == {WhyNot.TERMS}


def test_the_static_site_has_all_of_it_and_nothing_else(hospital: Institution, tmp_path: Path) -> None:
    from sfumato.cli.publish import publish

    publish(
        tmp_path / "site",
        service=hospital.service.folder,
        where=hospital.service.folder / "ledger.toml",
        publisher="City Hospital",
    )
    site = tmp_path / "site"
    pages = sorted(site.rglob("*.html"))
    names = found(hospital)
    assert len(pages) == 2 * (len(names) + 2)
    for page in pages:
        text = page.read_text("utf-8")
        assert "<script" not in text
        assert "City Hospital" in text
        assert not OWN.search(text), page
        for address in re.findall(r'(?:href|src|srcset)="([^"#]+)', text):
            assert "://" not in address
            assert (page.parent / address).is_file(), (page, address)
    assert problems(json.loads((site / "registry.json").read_text("utf-8")), schema("registry")) == []
    for identifier in names.values():
        certificate = (site / "certificates" / f"{identifier}.json").read_text("utf-8")
        assert verify(parsed(certificate), key=(site / "ledger.key.pub").read_text().strip()).consistent
    outside = [path for path in site.rglob("*") if path.is_file() and path.parent.name != "certificates"]
    assert not [path for path in outside if OWN.search(path.read_bytes().decode("utf-8"))]


def test_a_folder_that_is_not_empty_is_left_alone(hospital: Institution, tmp_path: Path) -> None:
    from sfumato.cli.publish import publish
    from sfumato.errors import InvalidInput

    (tmp_path / "kept").write_text("kept")
    with pytest.raises(InvalidInput, match="nothing was written"):
        publish(tmp_path, service=hospital.service.folder, where=hospital.service.folder / "ledger.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]

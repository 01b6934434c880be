"""Pages say the same in both languages, hold what their dataclass has, and ask for nothing from elsewhere."""

import re
from dataclasses import dataclass
from importlib import resources

import pytest

from sfumato.errors import NotDeclared
from sfumato.server.rendering import environment, names_used, static_files
from sfumato.server.words import OFFERED, PageWords
from tests.server.visiting import Visiting

TEMPLATES = sorted(environment().list_templates())
SAID = re.compile(r"""say\(\s*["']([\w.]+)["']\s*[,)]""")


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates_hold_no_sentence_and_no_style_or_script_of_their_own(template: str) -> None:
    text = (resources.files("sfumato.server") / "templates" / template).read_text("utf-8")
    for identifier in SAID.findall(text):
        for language in OFFERED:
            assert PageWords(language).has(identifier), (identifier, language)
    bare = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}|<[^>]*>", " ", text, flags=re.DOTALL)
    assert not re.findall(r"[A-Za-z\u3400-\u9fff]{2,}", bare)
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|https?://(?!www\.w3\.org)", text)


def test_the_search_finds_a_sentence() -> None:
    assert re.findall(r"[A-Za-z]{2,}", re.sub(r"<[^>]*>", " ", "<p>Sign in</p>"))


def test_a_page_has_the_fields_that_its_template_shows() -> None:
    assert names_used("problem.html") == {"title", "words", "detail"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    title: str
    more: str


def test_a_page_with_other_fields_is_refused(application: Visiting) -> None:
    from sfumato.server.rendering import _check

    with pytest.raises(NotDeclared, match=r"detail, more, words"):
        _check("problem.html", Wrong)


@pytest.mark.parametrize("address", ["/", "/sign-in", "/account", "/nowhere", "/enter?secret=x"])
@pytest.mark.parametrize("language", list(OFFERED))
def test_pages_speak_both_languages(address: str, language: str, browser: Visiting) -> None:
    browser.sign_in("admin")
    joined = "&" if "?" in address else "?"
    text = browser.ask("GET", f"{address}{joined}lang={language}").text
    assert f'<html lang="{language}">' in text
    assert browser.ask("GET", address).text.count(f'<html lang="{language}">') == 1  # it is kept
    assert (PageWords(language).say("frame.foot") in text) is True


def test_the_language_of_a_browser_is_taken_at_first(browser: Visiting) -> None:
    assert '<html lang="zh-Hans">' in browser.ask("GET", "/", headers={"accept-language": "zh-CN,en;q=0.5"}).text
    assert '<html lang="en">' in browser.other().ask("GET", "/", headers={"accept-language": "fr"}).text


def test_files_of_the_design_are_served_by_their_names_alone(browser: Visiting) -> None:
    for name, (body, kind, digest) in static_files().items():
        answer = browser.ask("GET", f"/static/{name}?v={digest}")
        assert (answer.content, answer.headers["content-type"].partition(";")[0]) == (body, kind)
        assert "immutable" in answer.headers["cache-control"]
    for name in ("..%2fservice.py", "../settings.py", "%2e%2e/app.py", "nothing.css"):
        assert browser.ask("GET", f"/static/{name}").status_code == 404

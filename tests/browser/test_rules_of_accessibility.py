"""The rules see what they are for: a page that breaks one is named, and a page that breaks none is not."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.accessibility import broken_rules, unreached

GOOD = """<!doctype html><html lang="zh-Hans">
<head><meta name="viewport" content="width=device-width"><title>A page</title>
<style>:focus-visible { outline: 3px solid #00f } input { border: 1px solid #555 }
.skip { position: absolute; left: -100rem } .skip:focus { left: 1rem }</style></head>
<body><a class="skip" href="#main">To the content</a>
<header><nav aria-label="Sections"><a href="/">Home</a></nav></header>
<main id="main"><h1>Title</h1><h2>Part</h2><p lang="en">One two three four five six seven eight words.</p><form>
<fieldset><legend>Choice</legend><label for="one">One</label><input id="one" aria-describedby="hint"></fieldset>
<p id="hint">A hint</p><button>Send</button></form><img alt="" src="data:,"><svg role="img" aria-label="A bar"></svg>
<table><thead><tr><th scope="col">Ward</th></tr></thead><tbody><tr><td>east</td></tr></tbody></table><ul><li>a</li></ul>
</main></body></html>"""
BROKEN = {
    "lang": "document.documentElement.lang = ''",
    "title": "document.title = ''",
    "zoom": "document.querySelector('meta').content = 'width=device-width, user-scalable=no'",
    "language of parts": "document.querySelector('p').removeAttribute('lang')",
    "label": "document.querySelector('label').removeAttribute('for')",
    "button name": "document.querySelector('button').textContent = ''",
    "legend": "document.querySelector('legend').remove()",
    "alt": "document.querySelector('img').removeAttribute('alt')",
    "alt: <svg": "document.querySelector('svg').removeAttribute('aria-label')",
    "link name": "document.querySelector('nav a').textContent = ''",
    "one h1": "document.querySelector('h2').outerHTML = '<h1>Again</h1>'",
    "heading order": "document.querySelector('h2').outerHTML = '<h3>Too deep</h3>'",
    "empty heading": "document.querySelector('h2').textContent = ' '",
    "id": "document.querySelector('ul').id = 'one'",
    "reference": "document.querySelector('#hint').id = 'other'",
    "landmark": "document.querySelector('header').outerHTML = document.querySelector('header').innerHTML",
    "landmark name": "document.querySelector('nav').removeAttribute('aria-label')",
    "region": "document.body.append(Object.assign(document.createElement('div'), { textContent: 'outside' }))",
    "skip link": "document.querySelector('.skip').remove()",
    "table header": "document.querySelector('th').outerHTML = '<td>Ward</td>'",
    "table scope": "document.querySelector('th').removeAttribute('scope')",
    "empty table header": "document.querySelector('th').textContent = ''",
    "list": "document.querySelector('ul').outerHTML = '<div><li>a</li></div>'",
    "keyboard order": "document.querySelector('input').tabIndex = 3",
    "nested": "document.querySelector('nav a').append(document.createElement('button'))",
    "contrast": "document.querySelector('#hint').style.color = '#888'",
    "contrast: 4.48": "document.querySelector('#hint').style.color = '#777'",
    "field contrast": "document.querySelector('input').style.borderColor = '#bbb'",
}


@pytest.fixture(scope="module")
def page(chromium: Any) -> Iterator[Any]:
    context = chromium.new_context(color_scheme="light")
    yield context.new_page()
    context.close()


def test_a_page_that_breaks_nothing_is_not_named(page: Any) -> None:
    page.set_content(GOOD)
    assert broken_rules(page) == []
    assert unreached(page) == []


@pytest.mark.parametrize("rule", list(BROKEN))
def test_a_page_that_breaks_a_rule_is_named(page: Any, rule: str) -> None:
    page.set_content(GOOD)
    page.evaluate(f"() => {{ {BROKEN[rule]} }}")
    assert [found for found in broken_rules(page) if found.startswith(rule)], rule


@pytest.mark.parametrize(
    ("rule", "style"),
    [
        ("visible focus", "a:focus-visible { outline: none }"),
        ("visible focus", "input { outline: 3px solid #00f }"),
        ("skip link", ".skip:focus { left: -100rem }"),
    ],
)
def test_a_focus_that_nobody_sees_is_named(page: Any, rule: str, style: str) -> None:
    page.set_content(GOOD.replace("</style>", f"{style}</style>"))
    assert [found for found in unreached(page) if found.startswith(rule)], rule

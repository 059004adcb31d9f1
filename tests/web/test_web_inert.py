"""Whatever a skill, a model or a world says, a page shows it and does nothing else with it."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reading_pages import Page, after_test, facts, report, ruling, step, timing

from whet.web import render_report
from whet.web.markup import Markup, tag, text

EVIL = [
    "<script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "]]><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' autofocus onfocus='alert(1)",
    "--><svg onload=alert(1)>",
    "</title></textarea></details></pre><iframe src=//example.org>",
    "&lt;script&gt; &amp;lt; &#x3c;script&#x3e;",
    "javascript:alert(1)",
    "\x00\x1b\ud800\ufffe\u202ereversed\u2066",
]
ALLOWED = """
html head meta title style body nav main header footer section h1 h2 h3 h4 p a ul ol li dl div dt dd span strong small
code pre table caption thead tbody tfoot tr th td figure figcaption details summary fieldset legend label input ins del
svg desc defs g line rect circle path use text
"""


def page_with(said: str) -> Page:
    """`said` wherever anything from outside is shown."""
    made = step(1, text=said, decided=ruling(0.7, 0.5), skill=f"{said}\nA rule.\n{said}\n")
    tried = after_test(16, 6, 0, text=said, stopped=said)
    assert tried.comparison is not None
    found = msgspec.structs.replace(tried.comparison, broke=(said,))
    whole = msgspec.structs.replace(tried, steps=(made,), skill={f"SKILL.md{said}": said}, comparison=found)
    return Page(render_report(whole, facts(said), timing(said), f'[world]\nuse = "x"\nkey = {toml(said)}\n'))


def toml(said: str) -> str:
    return '"' + "".join(f"\\U{ord(letter):08X}" for letter in said if not 0xD800 <= ord(letter) < 0xE000) + '"'


def with_examples(said: list[str]):
    def decorate(function):
        for one in said:
            function = example(one)(function)
        return function

    return decorate


@with_examples(EVIL)
@given(st.text() | st.lists(st.sampled_from(EVIL)).map("".join))
@settings(max_examples=60, deadline=None)
def test_nothing_that_is_said_becomes_markup(said: str) -> None:
    page = page_with(said)
    assert {name for name, _ in page.elements} <= set(ALLOWED.split())
    for _, attributes in page.elements:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("style", "src", "srcdoc", "action")
        ]
        assert attributes.get("href", "#").startswith("#")
    assert "url(" not in page.style
    assert "@import" not in page.style


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cs", "Cn", "Co"]), min_size=1))
@settings(max_examples=60, deadline=None)
def test_what_is_said_can_be_read(said: str) -> None:
    read = " ".join(page_with(said).text.split())
    assert " ".join(said.split()) in read


@given(st.text())
def test_a_page_can_be_written_whatever_is_in_it(said: str) -> None:
    assert "\x00" not in text(said).encode().decode()


def test_a_text_that_turns_the_reading_order_around_is_seen() -> None:
    assert text("a\u202eb") == "a⟨U+202E⟩b"


def test_text_is_escaped_once_and_markup_never() -> None:
    inner = tag("b", "1 < 2", title='"&"')
    assert inner == '<b title="&quot;&amp;&quot;">1 &lt; 2</b>'
    assert tag("p", inner) == f"<p>{inner}</p>"
    assert tag("p", f"{inner}") != tag("p", inner), "what was put together as text is text"
    assert text(Markup("<b>")) == "<b>"


def test_the_page_forbids_itself_everything_but_its_own_style() -> None:
    page = page_with("x")
    (policy,) = (one["content"] for one in page.named("meta") if one.get("http-equiv") == "Content-Security-Policy")
    digest = b64encode(sha256(page.style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@pytest.mark.parametrize("address", ["https://me:secret@host/v1", "http://secret@host:8000"])
def test_a_password_in_an_address_is_not_passed_on(address: str) -> None:
    html = render_report(report(), facts(), config=f'[target]\nbase_url = "{address}"\n')
    assert "secret" not in html
    assert re.search(r"https?://…@host", html)


def test_a_config_that_is_not_toml_is_still_shown() -> None:
    assert "what [is this" in Page(render_report(report(), facts(), config="what [is this")).text

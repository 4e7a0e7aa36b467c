"""The page: whatever stands in the log is text there, and nothing else."""

from __future__ import annotations

from html.parser import HTMLParser

from router.reports.html import html
from tests.router.audit.logbox import LogBox
from tests.router.reports.logs import Did
from tests.router.reports.made import NASTY, filled, report

HARMLESS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "dl", "dt", "dd",
    "nav", "a", "section", "div", "table", "thead", "tbody", "tr", "th", "td", "bdi", "figure",
    "figcaption", "ul", "li", "code", "svg", "clippath", "rect", "g", "path", "line", "circle",
    "text",
}  # fmt: skip


class Seen(HTMLParser):
    """Every element with its attributes, and all text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def seen(page: str) -> Seen:
    found = Seen()
    found.feed(page)
    return found


async def test_nothing_in_a_log_becomes_markup(plain: LogBox) -> None:
    done = [Did(name, name, because=name) for name in NASTY]
    await filled(plain, [*done, *(Did(name, code=name) for name in NASTY)])
    page = html(report(plain))
    found = seen(page)
    assert {tag for tag, _ in found.tags} <= HARMLESS
    for _, attributes in found.tags:
        assert not any(name.startswith("on") for name in attributes)
        assert str(attributes.get("href", "#")).startswith("#")
        assert "src" not in attributes
    words = "".join(found.words)
    for name in NASTY[:9]:
        assert name in words
    assert "a\ufffdgnp.exe" in words
    assert "(500 characters)" in words
    assert "{{" not in page.replace("{{ 7 * 7 }}", "")


async def test_links_lead_to_something_and_the_limits_come_last(plain: LogBox) -> None:
    await filled(plain, [Did()] * 3 + [Did("shop", endpoint="sonnet")] * 2)
    page = html(report(plain))
    found = seen(page)
    ids = {attributes.get("id") for _, attributes in found.tags}
    links = [str(attributes["href"]) for _, attributes in found.tags if "href" in attributes]
    assert links
    assert {link.removeprefix("#") for link in links} <= ids
    headings = page.split("<h2")
    assert "What this evidence cannot show" in headings[-1]
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


async def test_an_alarm_stands_on_top(plain: LogBox) -> None:
    await filled(plain, [Did()])
    (plain.folder / "eu-1" / "checkpoint").write_text("nonsense")
    found = html(report(plain, despite=True))
    assert found.index("THIS LOG DOES NOT VERIFY") < found.index("<h1>")
    assert 'role="alert"' not in html(report(plain, despite=True)).split("<h1>")[1]

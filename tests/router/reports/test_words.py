"""The fixed words: complete rows, and limits that name what matters."""

from router.reports.words import articles, cannot_show


def test_every_article_has_its_three_cells() -> None:
    rows = articles()
    assert all(len(row) == 3 and all(row) for row in rows)
    named = " ".join(row[0] for row in rows)
    assert all(one in named for one in ("Art. 30(1)(d)", "Art. 12", "Art. 19", "26(6)"))


def test_the_limits_name_provider_bypass_and_key() -> None:
    words = " ".join(cannot_show())
    for one in ("provider", "never reached a router", "signing key", "clock", "assurances"):
        assert one in words
    assert "\n" not in words

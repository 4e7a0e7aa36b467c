"""The whole demo, as a visitor sees it."""

from __future__ import annotations

from router.demo.play import play


async def test_everything_is_as_it_should_be() -> None:
    said: list[str] = []
    assert await play(said.append, keep=False)
    text = "\n".join(said)
    assert "clinic   self:par1 16×" in text
    assert "503 upstream_unavailable" in text
    assert "403 no_endpoint_inside_boundary" in text
    assert "421 misdirected" in text
    assert text.count("audit verify: ok") == 2

from __future__ import annotations

import pytest

from router.settings.sink_urls import safe_url

HTTP = {"https": False, "http": True}
SYSLOG = {"tls": False, "tcp": True}


@pytest.mark.parametrize(
    ("url", "schemes"),
    [
        (None, HTTP),
        ("https://collector.example.com/v1/logs", HTTP),
        ("http://127.0.0.1:4318/v1/logs", HTTP),
        ("http://localhost:4318", HTTP),
        ("http://10.1.2.3", HTTP),
        ("http://[::1]:4318", HTTP),
        ("tls://syslog.example.com", SYSLOG),
        ("tcp://192.168.1.9:601", SYSLOG),
    ],
)
def test_safe(url: str | None, schemes: dict[str, bool]) -> None:
    safe_url(url, schemes)


@pytest.mark.parametrize(
    ("url", "schemes", "told"),
    [
        ("http://collector.example.com", HTTP, "in clear"),
        ("http://8.8.8.8", HTTP, "in clear"),
        ("tcp://syslog.internal", SYSLOG, "in clear"),
        ("ftp://10.0.0.1", HTTP, "is not `https://"),
        ("tls://10.0.0.1", HTTP, "is not `https://"),
        ("https://", HTTP, "is not `https://"),
        ("https://me:secret@example.com", HTTP, "is not `https://"),
        ("udp://10.0.0.1:514", SYSLOG, "is not `tls://"),
        ("collector", HTTP, "is not `https://"),
    ],
)
def test_not_safe(url: str, schemes: dict[str, bool], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        safe_url(url, schemes)

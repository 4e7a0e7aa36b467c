"""What an endpoint's TLS trusts and shows, where a baseline file says so: `ca`, `client_cert` and
`client_key`, each `file:PATH`, read with the snapshot like every secret.

Only certificates count of a file of authorities, so what is written around them changes nothing.
"""

from __future__ import annotations

import datetime as dt
import ssl
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.utils import CryptographyDeprecationWarning

from policies.findings import DAY, Finding, Severity
from policies.gathered import PolicyFile
from regions.document import Document, Mark
from regions.model import Endpoint
from router.config import ConfigError
from router.settings import bounded
from router.transport.dial import identify
from router.transport.messages import Tls

MOST: Final = 4 << 20
"""Bytes of one file; all authorities of an operating system are a quarter of a mebibyte."""
SOON: Final = 30 * DAY
_KEYS: Final = {"ca": "authority", "client_cert": "client certificate"}


def authorities(path: Path) -> str:
    """The certificates in a file, as PEM text.

    Raises:
        ConfigError: it can't be read, or holds none.
    """
    return _pem(_certificates(_read(path), path))


def tls_of(endpoint: Endpoint, base: Path, baseline: Sequence[PolicyFile]) -> Tls | None:
    """What differs from the usual in an endpoint's TLS; None where nothing does.

    Raises:
        ConfigError: a file can't be used; tells where it is named.
    """
    said = endpoint.settings
    key = "ca"
    try:
        ca = said.get("ca")
        trusted = None if ca is None else authorities(base / _path(ca))
        key = "client_cert"
        identity = _identity(said, base)
    except ConfigError as error:
        mark = place_of(baseline, ("endpoints", endpoint.name, key))
        raise ConfigError(f"{mark}: endpoint `{endpoint.name}`: {error}") from None
    found = Tls(trusted, said.get("tls_name"), identity)
    return None if found == Tls() else found


def printed(tls: Tls) -> dict[str, str | list[str]]:
    """Fingerprints of what a `Tls` trusts and shows: SHA-256 of each certificate, hex, as
    `openssl x509 -fingerprint -sha256` has them. Of our own chain the first; never of a key."""
    found: dict[str, str | list[str]] = {}
    if tls.ca is not None:
        found["authorities"] = sorted(map(_fingerprint, _parsed(tls.ca.encode())))
    if tls.identity is not None:
        found["certificate"] = _fingerprint(_parsed(tls.identity.encode())[0])
    if tls.name is not None:
        found["name"] = tls.name
    return found


def _fingerprint(one: x509.Certificate) -> str:
    return one.fingerprint(SHA256()).hex()


def ending(
    trust: Mapping[str, Tls], names: Iterable[str], baseline: Sequence[PolicyFile], now: float
) -> Iterator[Finding]:
    """Certificates of these endpoints that have ended or will soon. Once none of a file is good at
    `now` (epoch seconds) its endpoint can't be connected to: an error; else a warning."""
    for name in sorted(set(names) & trust.keys()):
        for key, text in (("ca", trust[name].ca), ("client_cert", trust[name].identity)):
            if text is None:
                continue
            told = _judged(_parsed(text.encode()), _KEYS[key], now)
            if told is not None:
                severity, message = told
                mark = place_of(baseline, ("endpoints", name, key))
                place = mark if isinstance(mark, Mark) else None
                message = f"endpoint `{name}`: {message}"
                yield Finding(severity, "certificate_ends", message, place)


def _judged(
    found: Sequence[x509.Certificate], what: str, now: float
) -> tuple[Severity, str] | None:
    """The worst there is to say; of our own certificate the first alone is ours."""
    if what != _KEYS["ca"]:
        found = found[:1]
    good = [one for one in found if _begin(one) <= now < _end(one)]
    if not good:
        last = max(found, key=_end)
        when = _day(_begin(last)) if now < _begin(last) else _day(_end(last))
        did = "is not valid before" if now < _begin(last) else "ended on"
        return Severity.ERROR, f"its {what} {did} {when}; nothing can connect: renew it"
    latest = max(good, key=_end)
    if _end(latest) - now < SOON:
        return Severity.WARNING, f"its {what} ends on {_day(_end(latest))}; renew it before"
    gone = [one for one in found if _end(one) <= now]
    if gone:
        many = f"{len(gone)} of {len(found)} of its authorities have ended"
        return Severity.WARNING, f"{many}, the last on {_day(max(map(_end, gone)))}; take them out"
    return None


def _begin(one: x509.Certificate) -> float:
    return one.not_valid_before_utc.timestamp()


def _end(one: x509.Certificate) -> float:
    return one.not_valid_after_utc.timestamp()


def _day(moment: float) -> str:
    return dt.datetime.fromtimestamp(moment, dt.UTC).date().isoformat()


def _identity(said: Mapping[str, str], base: Path) -> str | None:
    """Our own certificate with its key, in one text."""
    if "client_cert" not in said:
        return None
    path, secret = base / _path(said["client_cert"]), base / _path(said["client_key"])
    chain = _certificates(_read(path), path)
    try:
        key = load_pem_private_key(_read(secret), None)
    except TypeError:
        raise ConfigError(f"the key in `{secret}` is encrypted; nobody is there to ask") from None
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigError(f"`{secret}` holds no private key in PEM") from None
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    if key.public_key().public_bytes(*form) != chain[0].public_key().public_bytes(*form):
        raise ConfigError(f"the key in `{secret}` is not that of the first certificate in `{path}`")
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    identity = text.decode() + _pem(chain)
    try:
        identify(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), identity)
    except ssl.SSLError as error:
        why = (error.reason or "unknown").lower().replace("_", " ")
        raise ConfigError(f"OpenSSL does not take the certificate in `{path}`: {why}") from None
    return identity


def _path(reference: str) -> str:
    return reference.removeprefix("file:")


def _read(path: Path) -> bytes:
    try:
        return bounded.read(path, MOST)
    except OSError as error:
        raise ConfigError(f"can't read `{path}`: {error.strerror}") from None


def _certificates(content: bytes, path: Path) -> list[x509.Certificate]:
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise ConfigError(f"`{path}` holds no certificate in PEM")
    try:
        return _parsed(content)
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigError(f"`{path}` holds a certificate that can't be read") from None


def _parsed(content: bytes) -> list[x509.Certificate]:
    """Raises ValueError, UnsupportedAlgorithm."""
    with warnings.catch_warnings():
        # Some public authorities have a serial number of zero, which OpenSSL takes.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        found = x509.load_pem_x509_certificates(content)
        for one in found:
            one.public_key()
    return found


def _pem(found: Sequence[x509.Certificate]) -> str:
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in found)


def place_of(baseline: Sequence[PolicyFile], path: tuple[str, ...]) -> Mark | str:
    """Where a key stands, of files that were read before."""
    documents = (Document.parse(file.content, file.name) for file in baseline)
    return next((one.key_mark(path) for one in documents if one.holds(path)), "baseline")

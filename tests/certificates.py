"""Certificates made in a test: authorities, and what they sign."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Days = tuple[float, float]
DAYS: Days = (-4000, 4000)


@dataclass(frozen=True)
class Paper:
    """A certificate and its key. `chain`: what stands above it, in PEM."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    chain: str = ""

    @property
    def pem(self) -> str:
        """The certificate alone."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def secret(self) -> str:
        """The key alone."""
        form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return self.key.private_bytes(serialization.Encoding.PEM, *form).decode()

    @classmethod
    def authority(cls, name: str = "test authority", days: Days = DAYS) -> Self:
        """One that nobody signed. `days` from now: its begin and its end."""
        key = ec.generate_private_key(ec.SECP256R1())
        return cls(key, _signed(name, key, name, key.public_key(), (), days, True))

    def signed(
        self, subject: str, names: tuple[str, ...] = (), days: Days = DAYS, ca: bool = False
    ) -> Paper:
        """A certificate below this one, for names and addresses, or of a further authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        made = _signed(str(issuer), self.key, subject, key.public_key(), names, days, ca)
        return Paper(key, made, self.pem + self.chain)

    def server(self, folder: Path, asks: str = "", above: bool = False) -> ssl.SSLContext:
        """A server that shows it, `above`: with those above it; `asks`: for one of theirs."""
        file = folder / f"{self.certificate.serial_number}.pem"
        file.write_text(self.secret + self.pem + (self.chain if above else ""))
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(file)
        if asks:
            made.verify_mode = ssl.CERT_REQUIRED
            made.load_verify_locations(cadata=asks)
        return made


def _signed(
    issuer: str,
    key: ec.EllipticCurvePrivateKey,
    subject: str,
    public: ec.EllipticCurvePublicKey,
    names: tuple[str, ...],
    days: Days,
    ca: bool,
) -> x509.Certificate:
    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    today = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .issuer_name(named(issuer))
        .subject_name(named(subject))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(today + timedelta(days=days[0]))
        .not_valid_after(today + timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if names:
        found = x509.SubjectAlternativeName([_name(one) for one in names])
        made = made.add_extension(found, critical=False)
    return made.sign(key, hashes.SHA256())


def _name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)

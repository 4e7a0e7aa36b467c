"""Check a Domicile bundle with nothing but Python and `cryptography`.

    python verify_bundle.py BUNDLE.json PUBLIC_KEY      (a PEM or vkey file)
Prints the proved entries as JSON lines, or says why not and exits 1. Format: region-log.md.
"""

import json
import sys
from base64 import b64decode
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils

CERTIFIES = b"\xffdomicile-certificate-v1"


def require(true, otherwise):
    """Refuse unless `true`."""
    if not true:
        raise ValueError(otherwise)


def read_key(text):
    """A public key from PEM or a vkey `name+hash+key`: 32 bytes of Ed25519, or 65 of P-256."""
    pem = text.strip().splitlines()[1:-1]
    raw = b64decode("".join(pem) if pem else text.strip().split("+", 2)[2])
    return raw[-65:] if len(raw) > 80 else raw[-32:]  # what comes before names the kind


def check(key, signature, message):
    """Refuse unless the 64 bytes of `signature` are this key's over `message`."""
    if len(key) == 32:
        return ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
    return point.verify(utils.encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))


def open_checkpoint(note, log, signer):
    """Size, root and last second of a tree head (C2SP tlog-checkpoint), signed or certified."""
    text, _, lines = note.rpartition("\n\n")
    signed = [b64decode(raw) for _, name, raw in map(str.split, lines.splitlines()) if name == log]
    ends, tag = 1 << 40, sha256(log.encode() + b"\n" + CERTIFIES + signer).digest()[:4]
    for raw in [raw for raw in signed if raw[:4] == tag][:1]:
        begins, ends = (int.from_bytes(raw[at:][:8], "big") for at in (36, 44))
        said = f"domicile-certificate-v1\n{log}\n{raw[4:36].hex()}\n{begins}\n{ends}\n"
        check(signer, raw[52:], said.encode())
        require(0 < ends - begins <= 86400, "the certificate lasts longer than a day")
        signer = raw[4:36]
    tag = sha256(log.encode() + b"\n\x01" + signer).digest()[:4]
    own = b"".join(raw[4:] for raw in signed if raw[:4] == tag)[:64]
    require(own and text.startswith(f"{log}\n"), "the checkpoint is not signed by this key")
    check(signer, own, (text + "\n").encode())
    return int(text.split("\n")[1]), b64decode(text.split("\n")[2], validate=True), ends


def root_of(line, index, size, path):
    """Root that a line and its path imply (RFC 9162, 2.1.3.2)."""
    node, last, current = index, size - 1, sha256(b"\x00" + line).digest()
    for step in path:
        right = node & 1 or node == last
        current = sha256(b"\x01" + (step + current if right else current + step)).digest()
        require(last > 0, f"the path of line {index} is too long")
        while right and not node & 1 and node:
            node, last = node >> 1, last >> 1
        node, last = node >> 1, last >> 1
    require(0 <= index < size and last == 0, f"the path of line {index} is too short")
    return current


def verify(bundle, key):
    """The proved entries, interned values in the place of their `@` references."""
    require(bundle["format"] == "domicile-bundle/1", "another format")
    size, root, ends = open_checkpoint(bundle["checkpoint"], bundle["log"], key)
    texts = {one["index"]: one["line"] for one in bundle["lines"]}
    for at, path in ((one["index"], map(bytes.fromhex, one["path"])) for one in bundle["lines"]):
        require(root_of(texts[at].encode(), at, size, path) == root, f"{at} is not in this log")
    lines = {at: json.loads(text) for at, text in texts.items()}
    interned = {at: line["v"] for at, line in lines.items() if line["k"] == "intern"}

    def resolved(value):
        shared = interned[value.pop("@")] if "@" in value else {}
        return {**shared, **value} if value else shared

    entries = [at for at, line in lines.items() if line["k"] not in ("intern", "segment")]
    require(entries, "the bundle proves no entry")
    require(max(lines[at]["t"] for at in entries) < ends * 10**6, "its key had ended before")
    return [{**json.loads(texts[at], object_hook=resolved), "index": at} for at in entries]


if __name__ == "__main__":
    try:
        with open(sys.argv[1], encoding="utf-8") as file, open(sys.argv[2]) as key_file:
            proved = verify(json.load(file), read_key(key_file.read()))
    except (InvalidSignature, ValueError, KeyError, TypeError, IndexError, OSError) as error:
        sys.exit(f"not proved: {error or 'the signature is wrong'}")
    sys.stdout.writelines(json.dumps(entry) + "\n" for entry in proved)

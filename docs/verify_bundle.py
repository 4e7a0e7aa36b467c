"""Check a Domicile bundle with only its log's public key, Python and `cryptography`."""

import json
import re
import sys
from base64 import b64decode, b64encode
from contextlib import suppress
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils


def require(true, otherwise):
    """Refuse unless `true`."""
    if not true:
        raise ValueError(otherwise)


def read_key(text):
    """A public key from PEM or a vkey `name+hash+key`: 32 bytes of Ed25519, or 65 of P-256."""
    raw = b64decode("".join(text.strip().splitlines()[1:-1]) or text.strip().split("+", 2)[2])
    return raw[-65:] if len(raw) > 80 else raw[-32:]  # what comes before names the kind


def holds(key, signature, said):
    """Whether `signature`, of 64 bytes, is this key's over `said`."""
    with suppress(InvalidSignature):
        if len(key) == 32:
            return not ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, said)
        r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
        p = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
        return not p.verify(utils.encode_dss_signature(r, s), said, ec.ECDSA(hashes.SHA256()))


def open_checkpoint(note, log, signer):
    """Size, root and last second of a tree head (C2SP tlog-checkpoint), signed or certified."""
    text, _, tail = note.rpartition("\n\n")
    named = [(name, b64decode(raw)) for name, raw in re.findall(r"— ([^\s+]+) (\S+)\n", tail)]
    written = "".join(f"— {name} {b64encode(raw).decode()}\n" for name, raw in named if raw[4:])
    require(written == tail and text.startswith(f"{log}\n"), "this is no signed note of the log")

    def of(key, kind=b"\x01"):
        tag = sha256(log.encode() + b"\n" + kind + key).digest()[:4]
        return [raw[4:] for name, raw in named if name == log and raw[:4] == tag]

    ends = [1 << 40 for raw in of(signer) if holds(signer, raw, f"{text}\n".encode())]
    for raw in of(signer, b"\xffdomicile-certificate-v1"):
        key, begin, end = raw[:32], *(int.from_bytes(raw[at:][:8], "big") for at in (32, 40))
        said = f"domicile-certificate-v1\n{log}\n{key.hex()}\n{begin}\n{end}\n".encode()
        if 0 < end - begin <= 86400 and holds(signer, raw[48:], said):
            ends += [end for own in of(key) if holds(key, own, f"{text}\n".encode())]
    require(ends, "the checkpoint is not signed by this key")
    return int(text.split("\n")[1]), b64decode(text.split("\n")[2], validate=True), ends[0]


def root_of(line, index, size, path):
    """Root that a line and its path imply (RFC 9162, 2.1.3.2)."""
    node, last, current = index, size - 1, sha256(b"\x00" + line).digest()
    for step in map(bytes.fromhex, path):
        right = node & 1 or node == last
        current = sha256(b"\x01" + (step + current if right else current + step)).digest()
        require(last > 0, f"the path of line {index} is too long")
        up = (node & -node).bit_length() if right and node else 1
        node, last = node >> up, last >> up
    require(type(index) is int and 0 <= index < size and last == 0, f"{index}: path too short")
    return current


def verify(bundle, key):
    """The proved entries, interned values in the place of their `@` references."""
    require(bundle["format"] == "domicile-bundle/1", "another format")
    size, root, ends = open_checkpoint(bundle["checkpoint"], bundle["log"], key)
    lines = {one["index"]: json.loads(one["line"]) for one in bundle["lines"]}
    for at, text, path in ((one["index"], one["line"], one["path"]) for one in bundle["lines"]):
        require(path == [bytes.fromhex(step).hex() for step in path], f"{at}: no path of hashes")
        require(root_of(text.encode(), at, size, path) == root, f"{at} is not in this log")
        require(lines[at].get("i", at) == at, f"{at} says it is elsewhere")

    def resolved(value):
        shared = lines[value.pop("@")]["v"] if "@" in value else {}
        return {**shared, **value} if value else shared

    entries = {at: one for at, one in lines.items() if one["k"] not in ("intern", "segment")}
    require(entries, "the bundle proves no entry")
    require(max(one["t"] for one in entries.values()) < ends * 10**6, "its key had ended before")
    whole = json.loads(json.dumps(list(entries.values())), object_hook=resolved)
    return [{**one, "index": at} for at, one in zip(entries, whole, strict=True)]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} PROOF KEY, two files: the log's public key as PEM or vkey")
    try:
        with open(sys.argv[1], encoding="utf-8") as file, open(sys.argv[2]) as key_file:
            proved = verify(json.load(file), read_key(key_file.read()))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError) as error:
        sys.exit(f"not proved: {error}")
    sys.stdout.writelines(json.dumps(entry) + "\n" for entry in proved)

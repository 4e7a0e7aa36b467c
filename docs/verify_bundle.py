"""Check a Domicile bundle with nothing but Python and `cryptography`.

    python verify_bundle.py BUNDLE.json PUBLIC_KEY      (a PEM or vkey file)

Prints the proved entries as JSON lines, or says why not and exits 1. Format: region-log.md.
"""

import base64
import hashlib
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def require(true, otherwise):
    """Refuse unless `true`."""
    if not true:
        raise ValueError(otherwise)


def sha256(data):
    """32 bytes."""
    return hashlib.sha256(data).digest()


def read_key(text):
    """32 bytes of an Ed25519 public key, from PEM or a vkey `name+hash+key`."""
    if "BEGIN PUBLIC KEY" in text:
        return serialization.load_pem_public_key(text.encode()).public_bytes_raw()
    return base64.b64decode(text.strip().split("+", 2)[2])[1:]


def open_checkpoint(note, log, key):
    """Size and root of a signed tree head (C2SP tlog-checkpoint)."""
    text, _, signatures = note.rpartition("\n\n")
    origin, size, root = text.split("\n")[:3]
    require(origin == log, "the checkpoint is of another log")
    key_hash = sha256(log.encode() + b"\n\x01" + key)[:4]
    for name, encoded in (line.split(" ")[1:] for line in signatures.splitlines()):
        signature = base64.b64decode(encoded, validate=True)
        if (name, signature[:4]) == (log, key_hash):
            Ed25519PublicKey.from_public_bytes(key).verify(signature[4:], (text + "\n").encode())
            return int(size), base64.b64decode(root, validate=True)
    raise ValueError("the checkpoint is not signed by this key")


def root_of(line, index, size, path):
    """Root that a line and its path imply (RFC 9162, 2.1.3.2)."""
    require(0 <= index < size, f"line {index} is beyond the checkpoint")
    node, last, current = index, size - 1, sha256(b"\x00" + line)
    for step in path:
        require(last > 0, f"the path of line {index} is too long")
        if node & 1 or node == last:
            current = sha256(b"\x01" + step + current)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            current = sha256(b"\x01" + current + step)
        node, last = node >> 1, last >> 1
    require(last == 0, f"the path of line {index} is too short")
    return current


def resolve(value, interned):
    """Put interned values in the place of their `@` references."""
    if isinstance(value, list):
        return [resolve(item, interned) for item in value]
    if not isinstance(value, dict):
        return value
    rest = {name: resolve(item, interned) for name, item in value.items() if name != "@"}
    require(value.get("@") in (None, *interned), "an interned value is missing")
    shared = interned[value["@"]] if "@" in value else {}
    return {**shared, **rest} if rest else shared


def verify(bundle, key):
    """The proved entries."""
    require(bundle["format"] == "domicile-bundle/1", "another format")
    size, root = open_checkpoint(bundle["checkpoint"], bundle["log"], key)
    lines = {}
    for one in bundle["lines"]:
        path = [bytes.fromhex(step) for step in one["path"]]
        require(root_of(one["line"].encode(), one["index"], size, path) == root, "not in this log")
        lines[one["index"]] = json.loads(one["line"])
    interned = {at: line["v"] for at, line in lines.items() if line["k"] == "intern"}
    entries = [(at, line) for at, line in lines.items() if line["k"] not in ("intern", "segment")]
    require(entries, "the bundle proves no entry")
    return [{**line, "index": at, "b": resolve(line["b"], interned)} for at, line in entries]


if __name__ == "__main__":
    try:
        with open(sys.argv[1], encoding="utf-8") as file, open(sys.argv[2]) as key_file:
            proved = verify(json.load(file), read_key(key_file.read()))
    except (InvalidSignature, ValueError, KeyError, TypeError, IndexError, OSError) as error:
        sys.exit(f"not proved: {error or 'the signature is wrong'}")
    sys.stdout.writelines(json.dumps(entry) + "\n" for entry in proved)

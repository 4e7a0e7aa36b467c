"""Check a Domicile growth proof: that a newer checkpoint's log begins with all of an older one's.

    python verify_growth.py PROOF.json PUBLIC_KEY      (a PEM or vkey file)
Prints both sizes, or says why not and exits 1. Needs verify_bundle.py beside it.
"""

import json
import sys
from hashlib import sha256

from verify_bundle import open_checkpoint, read_key, require


def grown(old, root, new, proof):
    """Root of the newer tree that an older one and a proof imply (RFC 9162, 2.1.4.2)."""
    at, last = old - 1, new - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    first, *path = map(bytes.fromhex, proof if at else [root.hex(), *proof])
    begin = whole = first
    for step in path:
        require(last > 0, "the proof is too long")
        left = at & 1 or at == last
        begin = sha256(b"\x01" + step + begin).digest() if left else begin
        whole = sha256(b"\x01" + (step + whole if left else whole + step)).digest()
        while left and at and not at & 1:
            at, last = at >> 1, last >> 1
        at, last = at >> 1, last >> 1
    require(last == 0, "the proof is too short")
    require(begin == root, "the older checkpoint is of another history")
    return whole


def verify(growth, key):
    """Log, older size and newer size, proved."""
    require(growth["format"] == "domicile-growth/1", "another format")
    log, proof = growth["new"].split("\n")[0], growth["proof"]
    require(
        proof == [bytes.fromhex(step).hex() for step in proof], "the proof is no list of hashes"
    )
    old, before, _ = open_checkpoint(growth["old"], log, key)
    new, after, _ = open_checkpoint(growth["new"], log, key)
    require(0 <= old <= new, "these are not an older and a newer checkpoint")
    require(0 < old < new or not proof, "the proof is too long")
    root = grown(old, before, new, proof) if 0 < old < new else before
    require(root == (after if old else sha256(b"").digest()), "the newer log begins otherwise")
    return {"log": log, "old": old, "new": new}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} PROOF KEY, two files: the log's public key as PEM or vkey")
    try:
        with open(sys.argv[1], encoding="utf-8") as file, open(sys.argv[2]) as key_file:
            proved = verify(json.load(file), read_key(key_file.read()))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError) as error:
        sys.exit(f"not proved: {error}")
    sys.stdout.write(json.dumps(proved) + "\n")

"""What every report says in the same words: laws whose fields it fills, and its limits."""

from __future__ import annotations

from typing import Final

_CANNOT: Final = """
That a provider processed a request where it says. Places come from what was called and from what
the provider promises; only its own records, reconciled with these, can show more. “One of” means
that the provider doesn't tell which of the named places it was.

Requests that never reached a router: whoever holds a provider's credentials can call it directly.
Reconciliation with the provider's records is what finds those.

Anything against whoever holds the signing key, unless a checkpoint or receipt was kept out of
their reach and given to this report. Entries above the newest one so given can be dropped unseen,
and a log without any can have been written anew.

What prompts and answers said. The log holds no content: a data class is what a key, an application
or a classifier declared, not what somebody reading the text would find.

That the clock was right. Times are the router's own.

That assurances (contracts, clauses) are valid in law. They are what the operator recorded, with
evidence and approver; this report repeats them and judges none.

What became of a failed attempt: an endpoint that was sent a prompt and did not answer may have
processed it all the same. Those attempts stand in a table of their own.

Anything outside the period, the logs and the snapshots that this report names.
"""

_ARTICLES: Final = """
GDPR Art. 30(1)(a), 30(2)(a) | controllers and processors | tenants; who operates the router is not
in the log
GDPR Art. 30(1)(b), 30(2)(b) | purposes, categories of processing | data class and kind of call;
purposes in the sense of the law are the tenant's to add
GDPR Art. 30(1)(c) | categories of data | the data class, as declared
GDPR Art. 30(1)(d) | recipients, also in third countries | recipients, by the catalog of the time
GDPR Art. 30(1)(e), 30(2)(c) | transfers and their safeguards | countries, mechanisms, and
“Assurances relied on”
GDPR Art. 30(1)(f) | time limits for erasure | where data may be kept; for how long stands in the
contracts
GDPR Art. 30(1)(g), 32 | security measures | “Is the log whole?”, “Rules and their legal basis”,
“What changed”
EU AI Act Art. 12 | automatic recording of events | every figure is counted from such records;
“Evidence” names them
EU AI Act Art. 19, 26(6) | keeping logs, six months at least | the newest entry of each log, and
since when its processes wrote, in “Is the log whole?”
"""


def cannot_show() -> tuple[str, ...]:
    """What the evidence can't show, one paragraph each."""
    return tuple(" ".join(part.split()) for part in _CANNOT.strip().split("\n\n"))


def articles() -> list[tuple[str, ...]]:
    """Article, what it asks for, where the report has it."""
    rows: list[str] = []
    for line in _ARTICLES.strip().splitlines():
        if line.startswith(("GDPR", "EU AI Act")):
            rows.append(line)
        else:
            rows[-1] += f" {line}"
    return [tuple(cell.strip() for cell in row.split("|")) for row in rows]

"""Load on a gateway: wrk for whole answers, a small client of our own for streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.machine import cpu_seconds

PATH: Final = "/v1/chat/completions"
MARK: Final = "@0123456789@"
"""Where a number stands in bodies that are counted: twelve digits, so that lengths stay."""
_TALK: Final = """\
system: You are a careful assistant for a customer-support desk. Answer briefly, quote the policy \
number you relied on, never reveal personal data of other customers, and ask one clarifying \
question when the request is ambiguous. Reply in the language of the customer.
user: Hello, I ordered two lamps last week (order 48213) and only one has arrived so far. The \
tracking page says that both parcels were delivered on Tuesday, which is not the case.
assistant: I am sorry to hear that. May I ask whether a neighbour could have accepted the second \
parcel, or whether a note was left in your letterbox?
user: I have asked around and nobody has seen it, and there was no note. Could you please check \
with the carrier, and tell me whether you can send a replacement before the weekend?"""
_SCRIPT: Final = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local keys, bodies, headers = {KEYS}, {BODIES}, {HEADERS}
local made, at = {}, 0
init = function()
  local many = math.max(#keys, #bodies, math.max(1, #headers))
  for n = 1, many do
    local h = {["Content-Type"] = "application/json"}
    h["Authorization"] = "Bearer " .. keys[(n - 1) % #keys + 1]
    for _, one in ipairs(EXTRA) do h[one[1]] = one[2] end
    if #headers > 0 then h["x-domicile-attr-project"] = headers[(n - 1) % #headers + 1] end
    made[n] = wrk.format(nil, nil, h, bodies[(n - 1) % #bodies + 1])
  end
end
local asked, parts = 0, {}
request = function()
  at = at % #made + 1
  if not COUNTED then return made[at] end
  if not parts[at] then
    local first, last = made[at]:find("{MARK}", 1, true)
    parts[at] = {made[at]:sub(1, first - 1), made[at]:sub(last + 1)}
  end
  asked = asked + 1
  return parts[at][1] .. string.format("%012d", asked + SINCE) .. parts[at][2]
end
done = function(s, l)
  local e = s.errors
  io.write(string.format('RESULT {"requests":%d,"us":%d,"p50":%d,"p99":%d,"errors":%d}\\n',
    s.requests, s.duration, l:percentile(50), l:percentile(99),
    e.status + e.connect + e.read + e.write + e.timeout))
end
"""


def body(model: str, *, stream: bool = False, note: str = "") -> bytes:
    """A chat of about 1 KB; `note` makes it another one."""
    lines = [line.split(": ", 1) for line in _TALK.splitlines()]
    talk = [{"role": role, "content": text + note} for role, text in lines]
    whole: dict[str, object] = {"model": model, "messages": talk, "temperature": 0.2}
    whole |= {"max_tokens": 256, "user": "user-7f3a"}
    if stream:
        whole["stream"] = True
    return json.dumps(whole, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Traffic:
    """What clients send: API keys, bodies, values of one attribute; each is gone round.

    With `since` every body must hold `MARK`, and has there a number above it that no other has.
    """

    keys: tuple[str, ...]
    bodies: tuple[bytes, ...]
    projects: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    since: int | None = None

    def script(self) -> str:
        """The same as a script for wrk, with every request made beforehand."""
        found = _SCRIPT.replace("{KEYS}", _lua(self.keys))
        found = found.replace("{BODIES}", _lua([one.decode() for one in self.bodies]))
        found = found.replace("{HEADERS}", _lua(self.projects)).replace("{MARK}", MARK)
        found = found.replace("COUNTED", "false" if self.since is None else "true")
        found = found.replace("SINCE", str(self.since or 0))
        pairs = ", ".join(_lua(pair) for pair in self.headers)
        return found.replace("EXTRA", "{" + pairs + "}")


@dataclass(frozen=True, slots=True)
class Measured:
    """One round. CPU in microseconds of the whole process tree per request; times in µs."""

    requests: int
    rate: float
    cpu: float
    p50: int
    p99: int
    errors: int


def wrk(
    port: int, traffic: Traffic, folder: Path, core: str, pid: int | None, conc: int, seconds: int
) -> Measured:
    """Drive a gateway with wrk. `pid` is the process whose tree's CPU time counts."""
    script = folder / "load.lua"
    script.write_text(traffic.script())
    before = cpu_seconds(pid) if pid else 0.0
    command = ["taskset", "-c", core, "wrk", "-t1", f"-c{conc}", f"-d{seconds}s", "--timeout"]
    command += ["30s", "-s", str(script), f"http://127.0.0.1:{port}{PATH}"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    spent = (cpu_seconds(pid) if pid else 0.0) - before
    found = json.loads(told.split("RESULT ", 1)[1].split("\n", 1)[0])
    count = max(1, found["requests"])
    rate = count / found["us"] * 1e6
    return Measured(count, rate, spent / count * 1e6, found["p50"], found["p99"], found["errors"])


@dataclass(frozen=True, slots=True)
class Streamed:
    """Concurrent streams. CPU in seconds per 10,000 chunks; delays of single chunks in µs."""

    streams: int
    done: int
    chunks: int
    cpu: float
    p50: float
    p99: float


def streams(
    port: int, key: str, request: Path, count: int, core: str, pid: int | None,
    headers: Sequence[tuple[str, str]] = (),
) -> Streamed:  # fmt: skip
    """Open streams through a gateway and read them to their ends."""
    before = cpu_seconds(pid) if pid else 0.0
    extra = [f"{name}: {value}" for name, value in headers]
    command = ["taskset", "-c", core, sys.executable, "-m", "bench.streams", "client", str(port)]
    command += [key, str(count), str(request), *extra]
    told = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ}
    ).stdout
    spent = (cpu_seconds(pid) if pid else 0.0) - before
    found = json.loads(told)
    per = spent / max(1, found["chunks"]) * 1e4
    return Streamed(count, found["done"], found["chunks"], per, found["p50"], found["p99"])


def _lua(values: Sequence[str]) -> str:
    quoted = [f"[==[{one}]==]" for one in values]
    return "{" + ", ".join(quoted) + "}"

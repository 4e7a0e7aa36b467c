"""A link between two network namespaces with delay and loss, in user space: two TUN devices.

python -m tests.chaos.link NAME OUR_ADDRESS FAR_PID FAR_ADDRESS

Run it in the one namespace; the process FAR_PID is in the other. Neither gets a default route, so
what is cut can't leave by another way. A line `DELAY LOSS` on the input (seconds each way, share
of packets) sets what holds from then on; SIGSTOP cuts the link, SIGCONT joins it.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
LONGEST = 65536
ORDERS = 0
"""The input's descriptor."""


def device(name: str) -> int:
    """Make a TUN device in this namespace; gives its descriptor."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return file


def joined(name: str, ours: str, far_pid: str, far: str) -> tuple[int, int]:
    """Both ends of a point-to-point link, up, with no route but each other."""
    near, away = device(f"{name}-a"), device(f"{name}-b")
    subprocess.check_call(["ip", "link", "set", f"{name}-b", "netns", far_pid])
    inside = ["nsenter", "-t", far_pid, "-n"]
    for prefix, end, own, peer in (([], "a", ours, far), (inside, "b", far, ours)):
        link = f"{name}-{end}"
        subprocess.check_call([*prefix, "ip", "addr", "add", own, "peer", peer, "dev", link])
        subprocess.check_call([*prefix, "ip", "link", "set", link, "up"])
    return near, away


@dataclass(slots=True)
class Wire:
    """Packets under way between two descriptors."""

    ends: tuple[int, int]
    delay: float = 0.0
    loss: float = 0.0
    waiting: list[tuple[float, int, int, bytes]] = field(default_factory=list)
    count: int = 0

    def take(self, end: int, now: float) -> None:
        """Read all that waits at one end; it comes out at the other, in order."""
        while True:
            try:
                packet = os.read(end, LONGEST)
            except BlockingIOError:
                return
            if random.random() >= self.loss:
                other = self.ends[1] if end == self.ends[0] else self.ends[0]
                self.count += 1
                heapq.heappush(self.waiting, (now + self.delay, self.count, other, packet))

    def give(self, now: float) -> float:
        """Write what is due; gives the seconds until the next is."""
        while self.waiting and self.waiting[0][0] <= now:
            _, _, end, packet = heapq.heappop(self.waiting)
            try:
                os.write(end, packet)
            except OSError:
                continue  # the other namespace is gone: as on a wire, nobody is told
        return max(0.0, self.waiting[0][0] - now) if self.waiting else 1.0


def main(name: str, ours: str, far_pid: str, far: str) -> None:
    """Carry packets until the input ends."""
    wire = Wire(joined(name, ours, far_pid, far))
    sys.stdout.write("joined\n")
    sys.stdout.flush()
    while True:
        wait = wire.give(time.monotonic())
        ready, _, _ = select.select([*wire.ends, ORDERS], [], [], wait)
        for one in ready:
            if one != ORDERS:
                wire.take(one, time.monotonic())
            elif line := os.read(ORDERS, 100).split():
                wire.delay, wire.loss = float(line[-2]), float(line[-1])
            else:
                return


if __name__ == "__main__":
    main(*sys.argv[1:])

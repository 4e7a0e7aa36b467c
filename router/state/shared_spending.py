"""What may be spent, counted together by all routers that have one Redis.

Each process writes there what it took itself, slot by slot, whole every time; what was taken
altogether is the sum. So a call that was lost, or carried out though nobody waited for it any more,
is put right by the next one, and a Redis that comes back empty knows again what each process took
as soon as that asks. All budgets of an endpoint share a hash tag, so a cluster keeps them on one
node.

When Redis is slow, gone or refuses, a process spends by itself no more than its stated share of
each budget, and never so much that with what it last knew of the others the budget would be
passed. What the routers spend meanwhile comes on top of what others spent unseen.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Final

from router.state.breaker import BREAK_MAX, Breaker
from router.state.granted import Granting
from router.state.shared import TIMEOUT, Scripts
from router.state.spending import (
    SLOTS,
    Budget,
    Claim,
    LocalSpending,
    Spent,
    Taken,
    live,
    wait_for,
)

FRESH: Final = 1.0
"""Seconds for which it is believed that others leave no room, before they are asked again."""
PATIENT: Final = 1.0
"""Seconds for what is still to be said at the end."""

# KEYS: budgets of one endpoint. ARGV: this process, the number of its call, slots of a budget,
# then for each budget limit, seconds of a slot, amount, what requests under way hold here, how many
# slots this process took of, and those: number, amount. The time is Redis's own. Gives {fits, now
# in ms, then for each budget the slot that the amount is in, what requests under way hold at
# others, how many slots others took of, and those}; {2} for a call that a later one has overtaken.
# What is held counts for five minutes after it was told: a process may have ended in the middle.
SCRIPT: Final = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local me, call, slots = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local answer, at, fits, takes = {1, math.floor(now * 1000)}, 4, true, {}
for i = 1, #KEYS do
  local last = redis.call('HGET', KEYS[i], me)
  if last and tonumber(last) >= call then return {2} end
end
for i = 1, #KEYS do
  local limit, width, amount = tonumber(ARGV[at]), tonumber(ARGV[at+1]), tonumber(ARGV[at+2])
  local slot = math.floor(now / width)
  local mine, others, seen, alive, total, open = {}, {}, {}, {}, 0, 0
  for j = at + 5, at + 3 + 2 * tonumber(ARGV[at+4]), 2 do
    mine[me .. ':' .. ARGV[j]] = ARGV[j+1]
    if tonumber(ARGV[j]) + slots >= slot then total = total + tonumber(ARGV[j+1]) end
  end
  local held = redis.call('HGETALL', KEYS[i])
  for j = 1, #held, 2 do
    local who, number = string.match(held[j], '^(.*):(%-?%d+)$')
    local other = string.match(held[j], '^(.*)#open$')
    if other and other ~= me then
      local amount, since = string.match(held[j+1], '^(%d+)@(%d+)$')
      if amount and now - tonumber(since) < 300 then
        open = open + tonumber(amount)
      else
        redis.call('HDEL', KEYS[i], held[j])
      end
    end
    if who then
      local old = tonumber(number) + slots < slot
      if old or (who == me and not mine[held[j]]) then
        redis.call('HDEL', KEYS[i], held[j])
      elseif who ~= me then
        total = total + tonumber(held[j+1])
        alive[who] = true
        if not seen[number] then
          others[#others+1] = number
          seen[number] = 0
        end
        seen[number] = seen[number] + tonumber(held[j+1])
      end
    end
  end
  for j = 1, #held, 2 do
    local who = not string.find(held[j], ':', 1, true) and string.gsub(held[j], '#open$', '')
    if who and who ~= me and not alive[who] then redis.call('HDEL', KEYS[i], held[j]) end
  end
  for field, taken in pairs(mine) do redis.call('HSET', KEYS[i], field, taken) end
  redis.call('HSET', KEYS[i], me, ARGV[2])
  redis.call('EXPIRE', KEYS[i], math.ceil(width * (slots + 2)) + 1)
  if amount > 0 then
    if total + amount > limit then fits = false end
  end
  takes[#takes+1] = {KEYS[i], me .. ':' .. string.format('%d', slot), amount, tonumber(ARGV[at+3])}
  answer[#answer+1], answer[#answer+2], answer[#answer+3] = slot, open, #others
  for _, number in ipairs(others) do
    answer[#answer+1] = tonumber(number)
    answer[#answer+1] = seen[number]
  end
  at = at + 5 + 2 * tonumber(ARGV[at+4])
end
if not fits then answer[1] = 0 end
for _, take in ipairs(takes) do
  local open = take[4]
  if fits and take[3] > 0 then
    redis.call('HINCRBY', take[1], take[2], string.format('%d', take[3]))
    open = open + take[3]
  end
  redis.call('HSET', take[1], me .. '#open', string.format('%d@%d', open, math.floor(now)))
end
return answer
"""


class SharedSpending:
    """See `Spending`.

    Args:
        redis: a client whose calls end when they are cancelled.
        clock: monotonic seconds.
        share: the part of every budget that this process may spend alone when Redis can't be had.
        me: this process's name among all, never another's.
        epoch: see `LocalSpending`; Redis's own time counts as soon as it is known.
        prefix: before every key.
        timeout: seconds a reply may take.
    """

    def __init__(
        self,
        redis: Scripts,
        clock: Callable[[], float],
        share: float,
        me: str,
        epoch: float = 0.0,
        prefix: str = "domicile",
        timeout: float = TIMEOUT,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._redis = redis
        self._clock = clock
        self._share = share
        self._me = me
        self._prefix = prefix
        self._timeout = timeout
        self._sleep = sleep
        self._local = LocalSpending(clock, epoch=epoch)
        self._others: dict[str, dict[int, int]] = {}
        self._open: dict[str, int] = {}
        self._asked: dict[str, float] = {}
        self._calls = 0
        self._met = False
        # One call at a time: what a process took is written whole. So a request waits for calls
        # that are nobody's, too, and they may take no longer than its own.
        self._turn = asyncio.Lock()
        self._granting = Granting[tuple[Taken, ...]]()
        self._told: dict[str, set[Budget]] = {}
        self._telling: asyncio.Task[None] | None = None
        self._breaker = Breaker(clock, "bursts are counted alone for now")

    def wait(self, claims: Sequence[Claim]) -> float:
        """See `Spending`."""
        found = max((self._wait(one) for one in claims), default=0.0)
        stale = self._clock() - FRESH
        if 0 < found < inf and any(self._asked.get(c.budget.key, -inf) <= stale for c in claims):
            self._tell([one.budget for one in claims])
        return found

    def _wait(self, claim: Claim) -> float:
        budget, own = claim.budget, self._local.own(claim.budget)
        together = Counter(own) + Counter(self._of_others(budget))
        wait = self._local.wait_in(together, claim, budget.limit, self._open.get(budget.key, 0))
        if wait == inf or not self._breaker.is_open:
            return wait
        part = int(budget.limit * self._share)
        # More than this process's share has room again with Redis, if not before.
        alone = wait_for(own, budget, part, claim.amount, self._local.now())
        return max(wait, min(alone, BREAK_MAX) if claim.amount > part else alone)

    def _of_others(self, budget: Budget) -> dict[int, int]:
        return live(self._others.get(budget.key, {}), budget.slot(self._local.now()))

    async def take(self, claims: Sequence[Claim]) -> tuple[Taken, ...]:
        """See `Spending`."""
        return await self._granting.ask(
            self._take(claims), lambda taken: self.settle(taken, [0] * len(taken))
        )

    async def _take(self, claims: Sequence[Claim]) -> tuple[Taken, ...]:
        if any(one.amount > one.budget.limit for one in claims):
            raise Spent(inf)
        amounts = [int(one.amount) for one in claims]
        async with self._turn:
            granted = await self._call([one.budget for one in claims], amounts)
            if granted is None:
                return self._alone(claims)
            fits, slots = granted
            if fits:
                return self._local.book(claims, slots)
        # As long as what is known now tells; at least a moment, for it was refused.
        raise Spent(max(1.0, *(self._wait(one) for one in claims)))

    def _alone(self, claims: Sequence[Claim]) -> tuple[Taken, ...]:
        wait = max(self._wait(one) for one in claims)
        if wait > 0:
            raise Spent(wait)
        self._tell([one.budget for one in claims])
        now = self._local.now()
        return self._local.book(claims, [one.budget.slot(now) for one in claims])

    def settle(self, taken: Sequence[Taken], used: Sequence[int]) -> None:
        """See `Spending`."""
        self._local.settle(taken, used)
        self._tell([one.budget for one in taken])

    def spent(self, budget: Budget) -> int:
        """See `Spending`."""
        return self._local.spent(budget) + sum(self._of_others(budget).values())

    @property
    def degraded(self) -> str:
        """See `Spending`."""
        return self._breaker.reason

    async def close(self) -> None:
        """See `Spending`."""
        await self._granting.close(PATIENT)
        if self._telling is not None:
            await asyncio.wait([self._telling], timeout=PATIENT)
            self._telling.cancel()

    # ----------------------------------------------------------------------------------

    def _tell(self, budgets: Sequence[Budget]) -> None:
        """Let the others know, and hear of them, without anybody waiting for it."""
        for one in budgets:
            self._told.setdefault(one.endpoint, set()).add(one)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._tells())

    async def _tells(self) -> None:
        while self._told:
            if self._breaker.is_open:
                await self._sleep(self._breaker.pause)
                continue
            endpoint, budgets = self._told.popitem()
            async with self._turn:
                told = await self._call(list(budgets), [0] * len(budgets))
            if told is None:
                self._told.setdefault(endpoint, set()).update(budgets)

    async def _call(
        self, budgets: Sequence[Budget], amounts: Sequence[int]
    ) -> tuple[bool, list[int]] | None:
        """Whether it fits, and the slot of each budget; `None` when Redis can't be had."""
        if not self._met:  # what was taken so far is numbered by a clock that may be another
            await self._ask(budgets, [0] * len(budgets))
        return await self._ask(budgets, amounts)

    async def _ask(
        self, budgets: Sequence[Budget], amounts: Sequence[int]
    ) -> tuple[bool, list[int]] | None:
        if self._breaker.is_open:
            return None
        self._calls += 1
        arguments = [self._me, str(self._calls), str(SLOTS)]
        for budget, amount in zip(budgets, amounts, strict=True):
            own = self._local.own(budget)
            arguments += [str(budget.limit), repr(budget.width), str(amount)]
            arguments += [str(self._local.open(budget)), str(len(own))]
            arguments += [str(number) for pair in own.items() for number in pair]
        keys = [self._key(one) for one in budgets]
        try:
            async with asyncio.timeout(self._timeout):
                found = await self._redis.eval(SCRIPT, len(keys), *keys, *arguments)
            return self._heard(budgets, found)
        except Exception as error:  # noqa: BLE001 - whatever fails there, this process goes on alone
            self._breaker.trip(error)
            return None

    def _heard(self, budgets: Sequence[Budget], found: object) -> tuple[bool, list[int]]:
        if not isinstance(found, list) or len(found) < 2:
            raise TypeError("the script gave no list of budgets")
        numbers = [int(one) for one in found]
        fits, at, slots = numbers[0] == 1, 2, list[int]()
        opens, others = list[int](), list[dict[int, int]]()
        for _ in budgets:
            count = numbers[at + 2]
            pairs = numbers[at + 3 : at + 3 + 2 * count]
            slots.append(numbers[at])
            opens.append(numbers[at + 1])
            others.append(dict(zip(pairs[::2], pairs[1::2], strict=True)))
            at += 3 + 2 * count
        now, era = self._clock(), self._local.era
        self._local.by_clock(numbers[1] / 1000)
        if self._local.era != era:
            self._tell(budgets)
        self._met = True
        for budget, one, held in zip(budgets, others, opens, strict=True):
            self._others[budget.key] = one
            self._open[budget.key] = held
            self._asked[budget.key] = now
        self._breaker.mend()
        return fits, slots

    def _key(self, budget: Budget) -> str:
        return f"{self._prefix}:{{burst:{budget.endpoint}}}:{budget.name}:{budget.seconds:g}"

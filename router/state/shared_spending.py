"""What may be spent, counted together by all routers that have one Redis.

Each process writes there what it took itself, slot by slot, whole every time; what was taken
altogether is the sum. So a call that was lost, or carried out though nobody waited for it any more,
is put right by the next one, and a Redis that comes back empty knows again what each process took
as soon as that asks. All budgets of an endpoint share a hash tag, so a cluster keeps them on one
node; and all requests that wait to take of them are one call, each granted or not by itself.

When Redis is slow, gone or refuses, a process spends by itself no more than its stated share of
each budget, and never so much that with what it last knew of the others the budget would be
passed. What the routers spend meanwhile comes on top of what others spent unseen.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
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

# KEYS: budgets of one endpoint. ARGV: this process, the number of its call, slots of a budget, how
# many requests ask, then for each budget limit, seconds of a slot, what requests under way hold
# here, the amount of each request, how many slots this process took of, and those: number, amount.
# The time is Redis's own. Gives {1, now in ms, whether each request fits beside those before it,
# then for each budget the slot that amounts are in, what requests under way hold at others, how
# many slots others took of, and those}; {2} for a call that a later one has overtaken. What is held
# counts for five minutes after it was told: a process may have ended in the middle.
SCRIPT: Final = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local me, call, slots = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local asked, at, takes = tonumber(ARGV[4]), 5, {}
local answer, told = {1, math.floor(now * 1000)}, {}
for i = 1, #KEYS do
  local last = redis.call('HGET', KEYS[i], me)
  if last and tonumber(last) >= call then return {2} end
end
for i = 1, #KEYS do
  local width = tonumber(ARGV[at+1])
  local owns = at + 3 + asked
  local slot = math.floor(now / width)
  local mine, others, seen, alive, total, open = {}, {}, {}, {}, 0, 0
  for j = owns + 1, owns + 2 * tonumber(ARGV[owns]), 2 do
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
  takes[i] = {slot = slot, room = tonumber(ARGV[at]) - total, first = at + 3, granted = 0}
  takes[i].open = tonumber(ARGV[at+2])
  told[#told+1], told[#told+2], told[#told+3] = slot, open, #others
  for _, number in ipairs(others) do
    told[#told+1] = tonumber(number)
    told[#told+1] = seen[number]
  end
  at = owns + 1 + 2 * tonumber(ARGV[owns])
end
for n = 0, asked - 1 do
  local fits = 1
  for _, take in ipairs(takes) do
    local amount = tonumber(ARGV[take.first+n])
    if amount > 0 and take.granted + amount > take.room then fits = 0 end
  end
  for _, take in ipairs(takes) do
    take.granted = take.granted + fits * tonumber(ARGV[take.first+n])
  end
  answer[#answer+1] = fits
end
for i, take in ipairs(takes) do
  if take.granted > 0 then
    local field = me .. ':' .. string.format('%d', take.slot)
    redis.call('HINCRBY', KEYS[i], field, string.format('%d', take.granted))
  end
  local open = string.format('%d@%d', take.open + take.granted, math.floor(now))
  redis.call('HSET', KEYS[i], me .. '#open', open)
end
for _, one in ipairs(told) do answer[#answer+1] = one end
return answer
"""


@dataclass(slots=True)
class _Asked:
    """A request that asks for its claims, on budgets of one endpoint. `sent`: with a call, alone or
    with others; `fits`: what Redis said, `None` where it said nothing; `taken`: what it took."""

    claims: Sequence[Claim]
    budgets: tuple[Budget, ...]
    sent: bool = False
    fits: bool | None = None
    taken: tuple[Taken, ...] = ()


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
        # One call at a time of an endpoint: what a process took is written whole. So a request
        # waits for calls that are nobody's, too, and they may take no longer than its own.
        self._turns = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._waiting = defaultdict[tuple[Budget, ...], list[_Asked]](list)
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
        if any(one.amount > one.budget.limit for one in claims):
            raise Spent(inf)
        asked = _Asked(claims, tuple([one.budget for one in claims]))
        self._waiting[asked.budgets].append(asked)
        return await self._granting.ask(
            self._take(asked), lambda taken: self.settle(taken, [0] * len(taken))
        )

    async def _take(self, asked: _Asked) -> tuple[Taken, ...]:
        """Whose turn it is asks for all that wait with it, who find it done at theirs."""
        async with self._turns[asked.budgets[0].endpoint]:
            if not asked.sent:
                together = self._waiting.pop(asked.budgets)
                for one in together:
                    one.sent = True
                await self._call(asked.budgets, together)
            if asked.fits is None:
                return self._alone(asked.claims)
        if asked.fits:
            return asked.taken
        # As long as what is known now tells; at least a moment, for it was refused.
        raise Spent(max(1.0, *(self._wait(one) for one in asked.claims)))

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
            async with self._turns[endpoint]:
                told = await self._call(list(budgets))
            if not told:
                self._told.setdefault(endpoint, set()).update(budgets)

    async def _call(self, budgets: Sequence[Budget], waiting: Sequence[_Asked] = ()) -> bool:
        """Tell what was taken, and answer who waits; whether Redis could be had."""
        if not self._met:  # what was taken so far is numbered by a clock that may be another
            await self._ask(budgets, ())
        return await self._ask(budgets, waiting)

    async def _ask(self, budgets: Sequence[Budget], waiting: Sequence[_Asked]) -> bool:
        if self._breaker.is_open:
            return False
        self._calls += 1
        era = self._local.era
        arguments = [self._me, str(self._calls), str(SLOTS), str(len(waiting))]
        for n, budget in enumerate(budgets):
            own = self._local.own(budget)
            arguments += [str(budget.limit), repr(budget.width), str(self._local.open(budget))]
            arguments += [str(int(one.claims[n].amount)) for one in waiting]
            arguments += [str(len(own)), *(str(number) for pair in own.items() for number in pair)]
        keys = [self._key(one) for one in budgets]
        try:
            async with asyncio.timeout(self._timeout):
                found = await self._redis.eval(SCRIPT, len(keys), *keys, *arguments)
            fits, slots = self._heard(budgets, found, len(waiting))
        except Exception as error:  # noqa: BLE001 - whatever fails there, this process goes on alone
            self._breaker.trip(error)
            return False
        if self._local.era != era:  # what was told is numbered by another clock
            self._tell(budgets)
        for one, fit in zip(waiting, fits, strict=True):
            one.fits = fit
            one.taken = self._local.book(one.claims, slots) if fit else ()
        return True

    def _heard(
        self, budgets: Sequence[Budget], found: object, asked: int
    ) -> tuple[list[bool], list[int]]:
        """Whether each request fits, and the slot of each budget."""
        if not isinstance(found, list) or len(found) < 2:
            raise TypeError("the script gave no list of budgets")
        numbers = [int(one) for one in found]
        fits, at, slots = [one == 1 for one in numbers[2 : 2 + asked]], 2 + asked, list[int]()
        opens, others = list[int](), list[dict[int, int]]()
        for _ in budgets:
            count = numbers[at + 2]
            pairs = numbers[at + 3 : at + 3 + 2 * count]
            slots.append(numbers[at])
            opens.append(numbers[at + 1])
            others.append(dict(zip(pairs[::2], pairs[1::2], strict=True)))
            at += 3 + 2 * count
        now = self._clock()
        self._local.by_clock(numbers[1] / 1000)
        self._met = True
        for budget, one, held in zip(budgets, others, opens, strict=True):
            self._others[budget.key] = one
            self._open[budget.key] = held
            self._asked[budget.key] = now
        self._breaker.mend()
        return fits, slots

    def _key(self, budget: Budget) -> str:
        return f"{self._prefix}:{{burst:{budget.endpoint}}}:{budget.name}:{budget.seconds:g}"

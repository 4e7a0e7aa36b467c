"""Sets of countries as masks: the `operate` axis, whose law reaches the operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from regions.places import PlaceError

_CODES = """
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ
BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM
DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS
GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN
KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ
MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM
PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV
SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI
VN VU WF WS YE YT ZA ZM ZW
"""
ISO_3166_1: tuple[str, ...] = tuple(_CODES.split())
_MEANT: Mapping[str, str] = MappingProxyType(
    {"UK": "; the United Kingdom is `GB`", "EL": "; Greece is `GR`"}
)
"""Codes that the European Union writes and ISO 3166-1 doesn't have."""
_BIT = MappingProxyType({code: 1 << (n + 1) for n, code in enumerate(ISO_3166_1)})
_UNKNOWN = 1
_ALL = (1 << (len(ISO_3166_1) + 1)) - 1


@dataclass(frozen=True, slots=True)
class Countries:
    """A set of ISO 3166-1 countries; bit 0 stands for an unknown country.

    `near` holds countries that are not in the set but whose law may be that of one in it, as
    Puerto Rico's that of the United States. Only what takes the set away from another asks
    for it: two sets with one `mask` allow the same.
    """

    mask: int
    near: int = field(default=0, compare=False)

    @classmethod
    def of(cls, codes: Iterable[str], near: Iterable[str] = ()) -> Countries:
        """The set of these codes, and those that are `near` it.

        Raises:
            PlaceError: a code that ISO 3166-1 doesn't have, as `UK` for `GB`.
        """
        return cls(_mask(codes), _mask(near))

    @classmethod
    def any(cls) -> Countries:
        """Every country, the unknown too: the axis is not bounded."""
        return cls(_ALL)

    @classmethod
    def unknown(cls) -> Countries:
        """Only the unknown."""
        return cls(_UNKNOWN)

    @property
    def possible(self) -> int:
        """The mask of all that may be in the set; where anything may be, the unknown may."""
        return self._reach | (_UNKNOWN if self._reach else 0)

    def __or__(self, other: Countries) -> Countries:
        return Countries(self.mask | other.mask, self.near | other.near)

    def __and__(self, other: Countries) -> Countries:
        return Countries(self.mask & other.mask, self._reach & other._reach)

    def __sub__(self, other: Countries) -> Countries:
        # What may be in `other` is taken away too: the unknown may be any country.
        return Countries(self.mask & ~other.possible, self._reach & ~other.mask)

    @property
    def _reach(self) -> int:
        return self.mask | self.near

    def contains(self, other: Countries) -> bool:
        """Whether every country of `other` is here. An empty `other` is an error."""
        if not other.mask:
            raise PlaceError("an operator without any country; give at least one")
        return not other.mask & ~self.mask

    @property
    def is_known(self) -> bool:
        """Whether every country is named."""
        return not self.mask & _UNKNOWN

    @property
    def is_any(self) -> bool:
        """Whether the axis is not bounded at all."""
        return self.mask == _ALL

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes in order; the unknown reads `unknown`, everything reads `any`."""
        if self.is_any:
            return ("any",)
        known = tuple(code for code, bit in _BIT.items() if self.mask & bit)
        return known if self.is_known else (*known, "unknown")


def code_hint(code: str) -> str:
    """What to write in place of what is no code, as the end of a sentence."""
    upper = code.upper()
    if upper in _BIT:
        return f"; write `{upper}`"
    return _MEANT.get(upper, ", as `DE` or `GB`")


def _mask(codes: Iterable[str]) -> int:
    mask = 0
    for code in codes:
        bit = _BIT.get(code)
        if bit is None:
            raise PlaceError(f"`{code}` is not an ISO 3166-1 country code{code_hint(code)}")
        mask |= bit
    return mask

from policies.engine import Preference
from policies.opening import Choice, opened, stage
from tests.policies.samples import example

ATLAS = example().policy.atlas
CH, EU, WORLD = ATLAS.jurisdiction("CH"), ATLAS.jurisdiction("EU"), ATLAS.worldwide()
ZRH, FRA, IAD = (ATLAS.place(p) for p in ("aws:eu-central-2", "aws:eu-central-1", "aws:us-east-1"))
HOME = frozenset({Preference("home", (CH, EU))})


def choices(prefer: frozenset[Preference] = HOME) -> dict[str, Choice]:
    places = {"zrh": ZRH, "fra": FRA, "iad": IAD}
    return {name: Choice(name, place, prefer) for name, place in places.items()}


def test_a_later_set_opens_when_the_earlier_ones_give_nothing() -> None:
    every = choices()
    assert opened([*every.values()]) == ("zrh",)
    assert opened([every["fra"], every["iad"]]) == ("fra",)


def test_an_endpoint_in_no_set_never_opens_unless_the_list_ends_with_everything() -> None:
    assert opened([choices()["iad"]]) == ()
    wide = frozenset({Preference("home", (CH, EU, WORLD))})
    assert opened([choices(wide)["iad"]]) == ("iad",)


def test_being_full_counts_only_with_spill() -> None:
    both = [choices()["zrh"], choices()["fra"]]
    assert opened(both, {"zrh": True}) == ("zrh",)
    spilling = choices(frozenset({Preference("home", (CH, EU), spill=True)}))
    assert opened([spilling["zrh"], spilling["fra"]], {"zrh": True}) == ("zrh", "fra")


def test_every_preference_must_open_it() -> None:
    other = Preference("other", (EU, CH))
    both = choices(HOME | {other})
    assert opened([both["zrh"], both["fra"]]) == ()  # a `prefer_conflict`
    assert opened([both["fra"]]) == ("fra",)


def test_stage() -> None:
    preference = next(iter(HOME))
    assert [stage(preference, p) for p in (ZRH, FRA, IAD)] == [0, 1, None]

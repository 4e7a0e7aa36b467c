from dataclasses import replace

import pytest

from regions.catalog import Catalog, OwnRegion
from router.entries.recipients import NOT_KNOWN, SELF, recipients

CATALOG = Catalog.load({"self:fra1": OwnRegion("DE")})
WORLD, EMEA = "Amazon Web Services, Inc. (US)", "Amazon Web Services EMEA SARL (LU)"


@pytest.mark.parametrize(
    ("places", "told"),
    [
        (["aws:eu-central-1"], (WORLD, EMEA)),
        (["aws:us-east-1"], (WORLD,)),
        (["aws:us-east-1", "aws:eu-central-1"], (WORLD, EMEA)),
        (["self:fra1"], (SELF,)),
    ],
)
def test_the_entities_of_places_are_the_catalogs(places: list[str], told: tuple[str, ...]) -> None:
    assert recipients(CATALOG, map(CATALOG.atlas.region, places)) == told


def test_what_nobody_knows_is_said() -> None:
    assert recipients(CATALOG, CATALOG.atlas.unknown) == (NOT_KNOWN,)
    empty = replace(CATALOG, operators={})
    found = recipients(empty, [CATALOG.atlas.region("aws:eu-central-1")])
    assert found == (f"{NOT_KNOWN} (aws)",)

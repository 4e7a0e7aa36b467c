import json

import pytest

from policies.files import duration, moment, policy_schema, rate


def test_moments() -> None:
    assert moment("1970-01-02") == 86400.0
    assert moment("1970-01-02T01:00:00+01:00") == 86400.0
    assert moment("1970-01-02T00:00:00Z") == 86400.0


@pytest.mark.parametrize("text", ["", "2027", "2027-02-30", "tomorrow", None, "1970-01-02T00:00"])
def test_no_moments(text: object) -> None:
    with pytest.raises(ValueError, match="2027-12-31"):
        moment(text)


def test_durations_and_rates() -> None:
    assert duration("24h") == 86400.0
    assert duration("1.5d") == 129600.0
    assert rate("600/min") == (600, 60.0)
    assert rate("1.5M / h") == (1_500_000, 3600.0)
    for text in ("24", "h", "-1d", "1 month"):
        with pytest.raises(ValueError, match="90d"):
            duration(text)
    for text in ("600", "x/min", "600/fortnight"):
        with pytest.raises(ValueError, match="600/min"):
            rate(text)


def test_numbers_too_large_to_count_with() -> None:
    with pytest.raises(ValueError, match="too large"):
        duration("9" * 400 + "d")
    with pytest.raises(ValueError, match="too large"):
        rate("9" * 400 + "/min")


def test_the_schema_is_json_and_names_the_keys_as_written() -> None:
    schema = json.loads(json.dumps(policy_schema()))
    assert {"tenants", "rules", "assert", "ensure"} <= set(schema["properties"])
    rule = schema["$defs"]["RuleConfig"]
    assert {"when", "unless", "match", "process_within"} <= set(rule["properties"])
    assert rule["required"] == ["name"]
    assert "from" in schema["$defs"]["AttributeConfig"]["properties"]

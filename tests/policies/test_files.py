import json

import pytest

from policies.files import moment, policy_schema


def test_moments() -> None:
    assert moment("1970-01-02") == 86400.0
    assert moment("1970-01-02T01:00:00+01:00") == 86400.0
    assert moment("1970-01-02T00:00:00Z") == 86400.0


@pytest.mark.parametrize("text", ["", "2027", "2027-02-30", "tomorrow", None, "1970-01-02T00:00"])
def test_no_moments(text: object) -> None:
    with pytest.raises(ValueError, match="2027-12-31"):
        moment(text)


def test_the_schema_is_json_and_names_the_keys_as_written() -> None:
    schema = json.loads(json.dumps(policy_schema()))
    assert {"tenants", "rules", "assert", "ensure"} <= set(schema["properties"])
    rule = schema["$defs"]["RuleConfig"]
    assert {"when", "unless", "match", "process_within"} <= set(rule["properties"])
    assert rule["required"] == ["name"]
    assert "from" in schema["$defs"]["AttributeConfig"]["properties"]

"""What keeping a log costs at 1,000 requests per second, raw and as it is sealed.

Price: S3 Standard in Frankfurt (eu-central-1), USD 0.0245 per GB and month for the first 50 TB,
usage type `EUC1-TimedStorage-ByteHrs`, as told of https://aws.amazon.com/s3/pricing/ in September
2024. AWS counts a GB as 2**30 bytes. Requests (some five objects a segment), transfer and taxes
are not in it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from router.audit.sealing import compressed

PRICE: Final = 0.0245
PRICED_ON: Final = "2024-09"
RATE: Final = 1000
YEAR: Final = 365 * 24 * 3600
_GB: Final = 1 << 30
_SAMPLE: Final = 16 << 20


def yearly(bytes_per_request: float) -> Mapping[str, float]:
    """Terabytes that a year adds, what they cost in each month they are kept, and what the year of
    writing them costs, in which half are there on average."""
    size = bytes_per_request * RATE * YEAR
    month = size / _GB * PRICE
    return {
        "tb_per_year": round(size / 1e12, 2),
        "usd_per_month_for_a_year_of_log": round(month),
        "usd_in_the_first_year": round(month * 12 / 2),
    }


def kept(folder: Path, bytes_per_request: float) -> Mapping[str, object]:
    """Both, for the segments in a folder of logs: raw, and compressed as they are sealed."""
    sample = b"".join(path.read_bytes() for path in sorted(folder.glob("*/segments/*.jsonl")))
    sample = sample[:_SAMPLE]
    ratio = len(compressed(sample)) / len(sample)
    return {
        "requests_per_s": RATE,
        "usd_per_gb_month": PRICE,
        "priced": f"S3 Standard, eu-central-1, {PRICED_ON}",
        "raw": yearly(bytes_per_request),
        "sealed_ratio": round(ratio, 3),
        "sealed": yearly(bytes_per_request * ratio),
    }

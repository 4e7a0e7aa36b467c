"""A real S3 API on this machine: ministack, a program with an environment of its own."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from router.audit.anchors.s3 import S3Client

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


@dataclass(frozen=True, slots=True)
class Ministack:
    """A running emulator."""

    url: str

    def client(self, region: str) -> S3Client:
        """A boto3 client of one region."""
        found = boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=region,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}),
        )
        return cast(S3Client, found)

    def bucket(self, name: str, region: str, *, locked: bool = True) -> None:
        """Make a bucket there."""
        self.client(region).create_bucket(  # type: ignore[attr-defined]
            Bucket=name,
            ObjectLockEnabledForBucket=locked,
            CreateBucketConfiguration={"LocationConstraint": region},
        )


@contextmanager
def ministack(folder: Path, port: int) -> Iterator[Ministack]:
    """A fresh emulator. Skips the test without the program."""
    program = os.environ.get("DOMICILE_MINISTACK") or shutil.which("ministack")
    if program is None:
        pytest.skip("`ministack` is not installed: set DOMICILE_MINISTACK to its program")
    environment = {
        **os.environ,
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_REGION": "eu-west-1",
        "HOME": str(folder),
    }
    found = Ministack(f"http://127.0.0.1:{port}")
    with (folder / "out").open("wb") as out:
        server = subprocess.Popen([program], env=environment, stdout=out, stderr=out, cwd=folder)
    try:
        _wait_for(found.client("eu-west-1"), folder / "out")
        yield found
    finally:
        server.terminate()
        server.wait(10)


def _wait_for(client: object, out: Path) -> None:
    give_up = time.monotonic() + 30
    while True:
        try:
            client.list_buckets()  # type: ignore[attr-defined]
        except (BotoCoreError, ClientError):
            if time.monotonic() > give_up:
                pytest.fail(out.read_text()[-2000:])
            time.sleep(0.1)
        else:
            return

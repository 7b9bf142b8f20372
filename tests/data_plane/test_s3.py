"""A real S3 server and the client of AWS: both sides of the proxy have the same bytes.

Without server and client, which `make s3` installs, this is skipped.
"""

from __future__ import annotations

import hashlib
import io
import random
import urllib.error
import urllib.request
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.harness import free_port

from http_peers import HTTP
from s3_site import DRAWN, Recorder, s3_client
from waiting import until

if TYPE_CHECKING:
    from data_plane_peers import Starter

pytestmark = pytest.mark.slow

PART_BYTES = 5 << 20


class Operations:
    """Operations of a client, one after the other, and what came of each.

    Args:
        client: of boto3's.
    """

    def __init__(self, client: Any) -> None:
        self.client, self.bucket = client, "sixty"
        self.found: list[tuple[str, int, dict[str, str], str]] = []

    def do(self, name: str, **arguments: Any) -> dict[str, Any]:
        """One operation; errors that the server tells are results, too."""
        from botocore.exceptions import ClientError

        arguments.setdefault("Bucket", self.bucket)
        try:
            response = getattr(self.client, name)(**arguments)
        except ClientError as error:
            response = dict(error.response)
        metadata = response["ResponseMetadata"]
        body = response.get("Body")
        data = body.read() if body is not None else b""
        told = {field: "" if field in DRAWN else value for field, value in metadata["HTTPHeaders"].items()}
        self.found.append((name, metadata["HTTPStatusCode"], told, hashlib.sha256(data).hexdigest()))
        return response


def work(operations: Operations) -> None:
    """Sixty operations and more."""
    do, draw = operations.do, random.Random(1)
    do("create_bucket")
    do("create_bucket")
    do("head_bucket")
    do("head_bucket", Bucket="nobodys-bucket")
    do("get_bucket_location")
    keys = ["a", "b/c", "b/d e", "b/f+g", "\u00fc/%2F", "sizes/0", "sizes/1", "sizes/large"]
    sizes = [5, 100, 1_000, 4_096, 70_000, 0, 1, 3 << 20]
    for key, size in zip(keys, sizes, strict=True):
        data = draw.randbytes(size)
        do("put_object", Key=key, Body=data, Metadata={"made-by": "test", "n": str(size)})
        do("head_object", Key=key)
        do("get_object", Key=key)
    do("get_object", Key="sizes/large", Range="bytes=100-199")
    do("get_object", Key="sizes/large", Range="bytes=-10")
    do("get_object", Key="a", Range="bytes=100-")
    tag = do("head_object", Key="a")["ETag"]
    do("get_object", Key="a", IfNoneMatch=tag)
    do("get_object", Key="a", IfMatch='"00"')
    do("get_object", Key="nothing")
    do("head_object", Key="nothing")
    do("put_object", Key="typed", Body=b"{}", ContentType="application/json", CacheControl="no-store")
    do("put_object", Key="summed", Body=b"abc", ChecksumAlgorithm="SHA256")
    do("get_object", Key="summed", ChecksumMode="ENABLED")
    do("put_object", Key="piped", Body=io.BytesIO(draw.randbytes(200_000)))
    do("copy_object", Key="copy", CopySource={"Bucket": operations.bucket, "Key": "b/c"})
    do("get_object", Key="copy")
    do("put_object_tagging", Key="a", Tagging={"TagSet": [{"Key": "k", "Value": "v w"}]})
    do("get_object_tagging", Key="a")
    do("delete_object_tagging", Key="a")
    do("list_objects_v2")
    do("list_objects_v2", Prefix="b/", Delimiter="/")
    token = do("list_objects_v2", MaxKeys=2).get("NextContinuationToken", "")
    do("list_objects_v2", MaxKeys=2, ContinuationToken=token)
    do("list_objects", Prefix="sizes/")
    upload = do("create_multipart_upload", Key="parts")["UploadId"]
    parts = []
    for number in (1, 2, 3):
        data = draw.randbytes(PART_BYTES if number < 3 else 1_000)
        part = do("upload_part", Key="parts", UploadId=upload, PartNumber=number, Body=data)
        parts.append({"PartNumber": number, "ETag": part["ETag"]})
    do("list_parts", Key="parts", UploadId=upload)
    do("complete_multipart_upload", Key="parts", UploadId=upload, MultipartUpload={"Parts": parts})
    do("get_object", Key="parts")
    upload = do("create_multipart_upload", Key="given-up")["UploadId"]
    do("list_multipart_uploads")
    do("abort_multipart_upload", Key="given-up", UploadId=upload)
    do("delete_object", Key="copy")
    do("delete_object", Key="copy")
    do("delete_objects", Delete={"Objects": [{"Key": key} for key in keys]})
    for key in ("typed", "summed", "piped", "parts"):
        do("delete_object", Key=key)
    do("list_objects_v2")
    do("delete_bucket")
    do("head_bucket")


def alike(found: tuple[str, int, dict[str, str], str]) -> tuple[str, int, dict[str, str], str]:
    """What does not depend on the ids that a server draws, which lists and uploads tell in their bodies."""
    name, status, told, data = found
    if "list" in name or "multipart" in name or name in {"copy_object", "delete_objects"} or status >= 400:
        told = {field: value for field, value in told.items() if field not in {"content-length", "etag"}}
    return name, status, told, data


def test_sixty_operations_through_the_proxy_are_those_without_it(start: Starter, gateway: int):
    port = free_port()
    with ExitStack() as stack:
        behind = stack.enter_context(Recorder(gateway))
        proxy = start.proxy(
            f"tcp:127.0.0.1:{behind.port}", "window = 2\n", terms=HTTP, listen=f"tcp:127.0.0.1:{port}"
        )
        before = stack.enter_context(Recorder(port))
        direct, proxied = (Operations(s3_client(at)) for at in (gateway, before.port))
        work(direct)
        work(proxied)
        assert len(proxied.found) >= 60
        assert {status for _, status, *_ in proxied.found} >= {200, 204, 206, 304, 404, 412}
        for one, other in zip(direct.found, proxied.found, strict=True):
            assert alike(one) == alike(other)
        proxied.client.close()
        until(lambda: not proxy.streams())
        assert sorted(map(bytes, before.sent)) == sorted(map(bytes, behind.sent)), "requests"
        assert sorted(map(bytes, before.got)) == sorted(map(bytes, behind.got)), "responses"
        asked = b"".join(before.sent)
        assert asked.count(b"AWS4-HMAC-SHA256 Credential=") >= 60
        assert b"100-continue" in asked
        assert proxy.log() == ""


def test_a_request_that_was_signed_before_and_one_that_is_not_right(start: Starter, gateway: int):
    port = free_port()
    start.proxy(f"tcp:127.0.0.1:{gateway}", terms=HTTP, listen=f"tcp:127.0.0.1:{port}")
    client = s3_client(port)
    client.create_bucket(Bucket="signed")
    data = random.Random(2).randbytes(100_000)
    client.put_object(Bucket="signed", Key="a", Body=data)
    url = client.generate_presigned_url("get_object", {"Bucket": "signed", "Key": "a"})
    with urllib.request.urlopen(url, timeout=20) as response:
        assert response.read() == data
    with pytest.raises(urllib.error.HTTPError, match="403") as refused:
        urllib.request.urlopen(url.replace("Signature=", "Signature=0"), timeout=20)
    refused.value.close()
    client.delete_object(Bucket="signed", Key="a")
    client.delete_bucket(Bucket="signed")
    client.close()

"""A store in S3, or what speaks like it. The only module that imports boto3.

No transfer manager: parts go by upload_part with a CRC-32C each; a store that does not know it, and every whole object,
gets a Content-MD5. Either is compared with what the store answers. boto3's own retries are off (retrying.py does them),
and so are its default checksum trailers, which some stores write into the object (botocore 1.36 and newer;
`when_required`).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
import botocore.exceptions
import botocore.parsers
import urllib3.exceptions
from botocore.config import Config as ClientConfig

from drtool.config import Credentials, StoreConfig
from drtool.core.errors import UsageError
from snapshots.crc import crc32c
from snapshots.stores.store import (
    PART_SIZE,
    KeyExists,
    KeyMissing,
    Stored,
    StoreDenied,
    StoreFailed,
    StoreHolds,
    StoreMissing,
    StoreUnavailable,
    Upload,
    checked,
)

CONNECT_TIMEOUT = 10.0
TRANSIENT = {
    "RequestTimeout",
    "RequestTimeTooSkewed",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequests",
    "InternalError",
    "ServiceUnavailable",
    "BadDigest",
    "XAmzContentSHA256Mismatch",
    "IncompleteBody",
    "OperationAborted",
    "ConditionalRequestConflict",
}
DENIED = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "AllAccessDisabled", "403"}
CRC32C = "CRC32C"
UNKNOWN = {"NotImplemented", "InvalidArgument", "InvalidRequest", "501"}
"""What a store may say to a checksum that it does not know."""
MD5 = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class S3Store:
    client: Any
    bucket: str
    prefix: str = ""

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> None:
        digest = _md5(data)
        more: dict[str, Any] = {"IfNoneMatch": "*"} if if_absent else {}
        with self._errors(key):
            reply = self.client.put_object(
                Bucket=self.bucket, Key=self._key(key), Body=data, ContentMD5=_base64(digest), **more
            )
        _compare(reply, digest, f"{self.url}/{key}")

    def begin(self, key: str, part_size: int = PART_SIZE) -> Upload:
        """Asks for CRC-32C of the parts; a store that does not say that it checks them gets an MD5 of each."""
        where = {"Bucket": self.bucket, "Key": self._key(key)}
        with self._errors(key):
            try:
                reply = self.client.create_multipart_upload(**where, ChecksumAlgorithm=CRC32C)
            except botocore.exceptions.ClientError as error:
                if _code(error) not in UNKNOWN:
                    raise
                reply = self.client.create_multipart_upload(**where)
        checksum = CRC32C if reply.get("ChecksumAlgorithm") == CRC32C else ""
        return Upload(key, reply["UploadId"], part_size, checksum)

    def part(self, upload: Upload, number: int, data: bytes) -> str:
        by_crc = upload.checksum == CRC32C
        digest = crc32c(data).to_bytes(4) if by_crc else _md5(data)
        with self._errors(upload.key):
            reply = self.client.upload_part(
                Bucket=self.bucket,
                Key=self._key(upload.key),
                UploadId=upload.id,
                PartNumber=number,
                Body=data,
                **{"ChecksumCRC32C" if by_crc else "ContentMD5": _base64(digest)},
            )
        (_compare_crc if by_crc else _compare)(reply, digest, f"{self.url}/{upload.key}, part {number}")
        return f"{reply['ETag']} {len(data)} {_base64(digest)}"

    def complete(self, upload: Upload, tags: tuple[str, ...]) -> None:
        """An upload that is gone was completed by a call whose answer was lost, where the object has its size."""
        etags, sizes, digests = zip(*(tag.rsplit(" ", 2) for tag in tags), strict=True)
        parts: list[dict[str, Any]] = [{"ETag": etag, "PartNumber": n} for n, etag in enumerate(etags, 1)]
        if upload.checksum == CRC32C:
            parts = [{**part, "ChecksumCRC32C": digest} for part, digest in zip(parts, digests, strict=True)]
        try:
            with self._errors(upload.key):
                self.client.complete_multipart_upload(
                    Bucket=self.bucket,
                    Key=self._key(upload.key),
                    UploadId=upload.id,
                    MultipartUpload={"Parts": parts},
                )
        except KeyMissing:
            if self.size(upload.key) != sum(map(int, sizes)):
                raise

    def abort(self, upload: Upload) -> None:
        try:
            with self._errors(upload.key):
                self.client.abort_multipart_upload(Bucket=self.bucket, Key=self._key(upload.key), UploadId=upload.id)
        except KeyMissing:
            return

    def size(self, key: str) -> int:
        with self._errors(key):
            return int(self.client.head_object(Bucket=self.bucket, Key=self._key(key))["ContentLength"])

    def read(self, key: str, offset: int, length: int) -> bytes:
        """A body that ends before its Content-Length is an error of the connection, to be tried again."""
        if length <= 0:
            return b""
        with self._errors(key):
            try:
                reply = self.client.get_object(
                    Bucket=self.bucket, Key=self._key(key), Range=f"bytes={offset}-{offset + length - 1}"
                )
            except botocore.exceptions.ClientError as error:
                if _code(error) in ("InvalidRange", "416"):
                    return b""
                raise
            with reply["Body"] as body:
                data: bytes = body.read()
            if len(data) != reply["ContentLength"]:
                raise StoreUnavailable(f"{self.url}/{key}: the answer was cut after {len(data)} bytes")
        if len(data) > length:  # a store that ignores ranges
            return data[offset : offset + length]
        return data

    def list(self, prefix: str) -> Iterator[Stored]:
        """Page by page; a page that fails fails the listing."""
        whole = f"{self.prefix}/{prefix}" if self.prefix else prefix
        with self._errors(prefix):
            pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=whole)
            for page in pages:
                for found in page.get("Contents", []):
                    key = found["Key"][len(self.prefix) + 1 :] if self.prefix else found["Key"]
                    if not key.endswith("/"):
                        yield Stored(key, found["Size"], found["LastModified"].astimezone(UTC))

    def delete(self, key: str) -> None:
        try:
            with self._errors(key):
                self.client.delete_object(Bucket=self.bucket, Key=self._key(key))
        except KeyMissing:
            return
        except StoreDenied as denied:
            if any(word in denied.what.lower() for word in ("lock", "retention", "legal hold", "worm")):
                raise StoreHolds(denied.what, "the bucket's object lock keeps it until its retention ends") from denied
            raise

    def give_up(self) -> None:
        """Nothing is ever tried twice here."""

    def sweep(self, prefix: str, before: datetime) -> int:
        whole = f"{self.prefix}/{prefix}" if self.prefix else prefix
        swept = 0
        with self._errors(prefix):
            for page in self.client.get_paginator("list_multipart_uploads").paginate(Bucket=self.bucket, Prefix=whole):
                for found in page.get("Uploads", []):
                    if found["Key"].startswith(whole) and found["Initiated"].astimezone(UTC) < before:
                        self._forget(found["Key"], found["UploadId"])
                        swept += 1
        return swept

    def _forget(self, key: str, upload_id: str) -> None:
        try:
            with self._errors(key):
                self.client.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload_id)
        except KeyMissing:
            return

    def _key(self, key: str) -> str:
        return f"{self.prefix}/{checked(key)}" if self.prefix else checked(key)

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        where = f"{self.url}/{key}".rstrip("/")
        try:
            yield
        except botocore.exceptions.ClientError as error:
            raise _refusal(error, where) from error
        except botocore.exceptions.NoCredentialsError as error:
            raise StoreDenied(f"{where}: no credentials", CREDENTIALS) from error
        except (botocore.exceptions.PartialCredentialsError, botocore.exceptions.CredentialRetrievalError) as error:
            raise StoreDenied(f"{where}: {_plain(error)}", CREDENTIALS) from error
        except botocore.exceptions.SSLError as error:
            raise StoreFailed(
                f"{where}: TLS failed: {_plain(error)}", "set store.ca where a private CA signed"
            ) from error
        except (botocore.exceptions.HTTPClientError, botocore.exceptions.ResponseStreamingError, OSError) as error:
            raise StoreUnavailable(
                f"{where}: {_plain(error)}", "is the endpoint right, and does the store run?"
            ) from error
        except (
            botocore.exceptions.IncompleteReadError,
            botocore.parsers.ResponseParserError,
            urllib3.exceptions.HTTPError,
        ) as error:
            raise StoreUnavailable(f"{where}: the answer was cut or damaged: {_plain(error)}") from error
        except botocore.exceptions.BotoCoreError as error:
            raise StoreFailed(f"{where}: {_plain(error)}") from error


CREDENTIALS = "give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_..._FILE, a profile or systemd credentials"


def connect(
    bucket: str, prefix: str, config: StoreConfig, timeout: float, credentials: Credentials | None = None
) -> S3Store:
    """`timeout` in seconds for one request without an answer; nothing is sent yet. Raises UsageError."""
    keys: dict[str, Any] = {}
    if credentials is not None:
        keys = {
            "aws_access_key_id": credentials.access_key,
            "aws_secret_access_key": credentials.secret_key,
            "aws_session_token": credentials.session_token or None,
        }
    try:
        client = boto3.session.Session().client(
            "s3",
            endpoint_url=config.endpoint or None,
            region_name=config.region or (None if not config.endpoint else "us-east-1"),
            verify=config.ca or None,
            config=ClientConfig(
                connect_timeout=min(CONNECT_TIMEOUT, timeout),
                read_timeout=timeout,
                retries={"total_max_attempts": 1},
                max_pool_connections=10,
                signature_version="s3v4",
                s3={"addressing_style": "path" if config.path_style else "auto"},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
            **keys,
        )
    except (botocore.exceptions.BotoCoreError, ValueError) as wrong:
        raise UsageError(
            f"s3://{bucket}: {_plain(wrong)}", "look at store.endpoint, store.region and store.ca"
        ) from wrong
    return S3Store(client, bucket, prefix)


def make_bucket(bucket: str, config: StoreConfig, credentials: Credentials) -> None:
    """For scratch servers, until they take a write; a store of a person's own is never made."""
    store = connect(bucket, "", config, CONNECT_TIMEOUT, credentials)
    with store._errors(""), suppress(store.client.exceptions.BucketAlreadyOwnedByYou):
        store.client.create_bucket(Bucket=bucket)
    store.put("ready", b"")
    store.delete("ready")


def _refusal(error: botocore.exceptions.ClientError, where: str) -> StoreFailed:
    code, message = _code(error), str(error.response.get("Error", {}).get("Message", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    what = f"{where}: {code}{': ' + message if message and message != code else ''}"
    if code == "NoSuchBucket":
        return StoreMissing(what, "make the bucket; drtool does not")
    if code in ("NoSuchKey", "NoSuchUpload", "NotFound", "404"):
        return KeyMissing(what)
    if code in ("PreconditionFailed", "412"):
        return KeyExists(what)
    if code in TRANSIENT or status >= 500 or status == 429:
        return StoreUnavailable(what)
    if code in DENIED or status in (401, 403):
        return StoreDenied(what, "the credentials do not allow it, or are wrong")
    return StoreFailed(what)


def _code(error: botocore.exceptions.ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _plain(error: Exception) -> str:
    return str(error).strip().replace("\n", " ")[:300]


def _compare(reply: dict[str, Any], digest: bytes, where: str) -> None:
    """The ETag is the MD5 of what the store took, unless it encrypts with KMS or a customer's key (S3 API)."""
    etag = str(reply.get("ETag", "")).strip('"')
    otherwise = reply.get("ServerSideEncryption", "AES256") != "AES256" or "SSECustomerAlgorithm" in reply
    if MD5.fullmatch(etag) and etag != digest.hex() and not otherwise:
        raise StoreUnavailable(f"{where}: the store took other bytes than were sent", "damaged on the way, or there")


def _compare_crc(reply: dict[str, Any], digest: bytes, where: str) -> None:
    if reply.get("ChecksumCRC32C", _base64(digest)) != _base64(digest):
        raise StoreUnavailable(f"{where}: the store took other bytes than were sent", "damaged on the way, or there")


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()

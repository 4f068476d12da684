"""Certificates and keys as files in PEM, which OpenSSL reads, whatever kind of store Kafka's settings name.

Java reads JKS, PKCS12 and PEM. OpenSSL, which the Python clients are built on, reads only PEM: the contents of a PKCS12
store are written to files that only this user can read, with the key still encrypted. Nothing here reads Java's JKS.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from streamskit.common.errors import StreamsError
from streamskit.common.private_files import write_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.hazmat.primitives.serialization import pkcs12

JKS_BEGINS = bytes.fromhex("feedfeed")
DER_BEGINS = b"\x30"


class KeyMaterial(NamedTuple):
    """PEM files: whom to trust, the client's own certificates, and its key; None for the system's trust, or none."""

    ca: Path | None = None
    certificates: Path | None = None
    key: Path | None = None
    key_password: str | None = None

    def __repr__(self) -> str:
        return f"KeyMaterial(ca={self.ca}, certificates={self.certificates})"


def key_material(settings: Mapping[str, str]) -> KeyMaterial:
    """Return the files that the `ssl.` settings of a client stand for.

    Args:
        settings: those of `ClientSettings.revealed`.

    Raises:
        StreamsError: a store is of Java's own kind, is damaged, or its password is wrong.
    """
    own = tuple(sorted((name, str(value)) for name, value in settings.items() if name.startswith("ssl.")))
    return _made(own, tuple(_state(Path(value)) for name, value in own if name.endswith(".location")))


def _state(path: Path) -> tuple[int, int] | None:
    """Return what changes when a file is replaced; None if there is no such file."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size


@lru_cache(maxsize=64)  # a broker is queried every second, and the stores are not replaced that often
def _made(settings: tuple[tuple[str, str], ...], states: tuple[tuple[int, int] | None, ...]) -> KeyMaterial:
    own = dict(settings)
    ca = _trusted(own)
    if "ssl.keystore.key" in own:
        key = write_private("key.pem", own["ssl.keystore.key"])
        chain = write_private("certificates.pem", own["ssl.keystore.certificate.chain"])
        return KeyMaterial(ca, chain, key, own.get("ssl.key.password"))
    if "ssl.keystore.location" not in own:
        return KeyMaterial(ca)
    store = Path(own["ssl.keystore.location"])
    if _is_pem("keystore", store):
        return KeyMaterial(ca, store, store, own.get("ssl.key.password"))
    password = own.get("ssl.key.password") or own.get("ssl.keystore.password")
    found = _opened("keystore", store, own.get("ssl.keystore.password"))
    if found.key is None or found.cert is None:
        raise StreamsError(f"ssl.keystore.location names {store}, which holds no key with its certificate.")
    key = write_private("key.pem", _locked(found.key, password))
    return KeyMaterial(ca, _written([found.cert, *found.additional_certs]), key, password)


def _trusted(own: Mapping[str, str]) -> Path | None:
    if "ssl.truststore.certificates" in own:
        return write_private("ca.pem", own["ssl.truststore.certificates"])
    if "ssl.truststore.location" not in own:
        return None
    store = Path(own["ssl.truststore.location"])
    if _is_pem("truststore", store):
        return store
    found = _opened("truststore", store, own.get("ssl.truststore.password"))
    certificates = [*found.additional_certs, *([found.cert] if found.cert is not None else [])]
    if not certificates:
        raise StreamsError(f"ssl.truststore.location names {store}, which holds no certificate to trust.")
    return _written(certificates)


def _is_pem(store: str, path: Path) -> bool:
    """Say whether a store is in PEM rather than in PKCS12, by what is in it.

    Raises:
        StreamsError: it is in JKS, or cannot be read.
    """
    try:
        begins = path.read_bytes()[:4]
    except OSError as failure:
        raise StreamsError(f"ssl.{store}.location names {path}, which cannot be read: {failure.strerror}.") from failure
    if begins == JKS_BEGINS:
        raise StreamsError(
            f"ssl.{store}.location names {path}, a store in JKS, which only Java reads, and not the clients in Python "
            "that streamskit has besides. Write it anew in PKCS12, with the keytool of your Java: keytool "
            f"-importkeystore -srckeystore {path.name} -destkeystore {path.stem}.p12 -deststoretype PKCS12. Then set "
            f"ssl.{store}.location to that file and ssl.{store}.type=PKCS12."
        )
    return not begins.startswith(DER_BEGINS)


def _opened(store: str, path: Path, password: str | None) -> "pkcs12.PKCS12KeyAndCertificates":
    from cryptography.hazmat.primitives.serialization import pkcs12  # few have such a store

    try:
        return pkcs12.load_pkcs12(path.read_bytes(), None if password is None else password.encode())
    except ValueError:
        raise StreamsError(
            f"ssl.{store}.location names {path}, and it does not open with ssl.{store}.password: that is wrong or "
            "missing, or the file is no store in PKCS12."
        ) from None


def _locked(key: "PrivateKeyTypes", password: str | None) -> bytes:
    """Return a key in PEM, encrypted if there is a password."""
    from cryptography.hazmat.primitives import serialization

    lock: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        lock = serialization.BestAvailableEncryption(password.encode())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)


def _written(certificates: "list[pkcs12.PKCS12Certificate]") -> Path:
    from cryptography.hazmat.primitives.serialization import Encoding

    text = b"".join(each.certificate.public_bytes(Encoding.PEM) for each in certificates)
    return write_private("certificates.pem", text)

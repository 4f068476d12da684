"""Lets Java trust the certificate authorities that Python trusts: behind many networks only those will do."""

import hashlib
import os
import ssl
import struct
from pathlib import Path

VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)
PASSWORD = "changeit"  # the customary one; it guards nothing, the certificates are public


def ca_bundle() -> Path | None:
    """The file of certificate authorities this machine is set up with, as pip and requests find it.

    None where there is none: then Java's own list is the only one.

    >>> ca_bundle()  # doctest: +SKIP
    PosixPath('/etc/ssl/certs/ca-certificates.crt')
    """
    named = [os.environ.get(variable) for variable in VARIABLES]
    for candidate in (*named, ssl.get_default_verify_paths().cafile, *SYSTEM_BUNDLES):
        if candidate and Path(candidate).is_file():
            return Path(candidate)
    return None


def java_trust_options(folder: Path) -> list[str]:
    """Write the machine's authorities into `folder` as a Java trust store; return the options that name it.

    >>> java_trust_options(cache_dir())  # doctest: +SKIP
    ['-Djavax.net.ssl.trustStore=…/trust.jks', '-Djavax.net.ssl.trustStorePassword=changeit']
    """
    bundle = ca_bundle()
    certificates = _read(bundle) if bundle else []
    if not certificates:
        return []
    store = folder / "trust.jks"
    store.write_bytes(key_store(certificates))
    return [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"]


def _read(bundle: Path) -> list[bytes]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cafile=bundle)
    except (ssl.SSLError, OSError):
        return []
    return context.get_ca_certs(binary_form=True)


def key_store(certificates: list[bytes]) -> bytes:
    """A Java key store (the JKS format) of trusted certificates, given in DER form."""
    # Written here because the runtime we bring has only keytool, one process for each certificate.
    body = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", 2) + _text(f"authority-{number}") + struct.pack(">Q", 0)
        body += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    return body + hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()

"""Connections between sites and a coordinator: TLS 1.3 on both sides with the keys of the ledgers, and no authority.

Each side makes a key for its connections and signs a certificate for it with the key of its ledger; the other side
knows that key beforehand and trusts it alone. Names of hosts mean nothing. The key of the ledger is in no file of TLS.
"""

import os
import ssl
import tempfile
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from sfumato.core.signature import SigningKey, read_public_key
from sfumato.errors import Refused

__all__ = ["calling_context", "peer_of", "serving_context"]

SLOW_CLOCK, LASTS = timedelta(days=7), timedelta(days=400)
LEAF = "sfumato connection"


def serving_context(key: SigningKey, callers: Iterable[str]) -> ssl.SSLContext:
    """How a coordinator takes connections: from holders of these public keys, and from nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0  # every connection shows its certificate anew
    return _set_up(context, key, callers)


def calling_context(key: SigningKey, server: str) -> ssl.SSLContext:
    """How a site connects: to the holder of this public key, whatever its address is called."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    return _set_up(context, key, [server])


def peer_of(connection: ssl.SSLSocket, known: Collection[str]) -> str:
    """The public key of whoever is at the other end, one of ``known``; anybody else is refused.

    Guarantee: the certificate of the connection bears a signature of that key itself. A chain in which somebody signed
    for somebody else, whom it names as it likes, is refused.
    """
    shown = connection.getpeercert(binary_form=True)
    if shown is not None:
        leaf = x509.load_der_x509_certificate(shown)
        named = [str(one.value) for one in leaf.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)]
        if len(named) == 1 and named[0] in known and _signed_by(leaf, named[0]):
            return named[0]
    raise Refused("whoever connects is not one of the members; nothing was sent.")


def _set_up(context: ssl.SSLContext, key: SigningKey, known: Iterable[str]) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=b"".join(_anchor(read_public_key(one)) for one in known))
    _show(context, key)
    return context


def _show(context: ssl.SSLContext, key: SigningKey) -> None:
    """Let a context show a certificate that the key of a ledger signed, for a key that lives as long as the context."""
    own = Ed25519PrivateKey.generate()
    leaf = _certificate(LEAF, key.public_text, own.public_key(), key.private, authority=False)
    secret = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    # The library reads files alone. This one is for its owner, holds no key of a ledger, and is gone at once.
    with tempfile.NamedTemporaryFile(prefix="sfumato-", suffix=".pem") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(secret + leaf.public_bytes(Encoding.PEM))
        file.flush()
        context.load_cert_chain(file.name)


def _anchor(public: str) -> bytes:
    """A certificate that says: what this key signed is trusted. Who signed the certificate itself is of no account."""
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
    return _certificate(public, public, key, Ed25519PrivateKey.generate(), authority=True).public_bytes(Encoding.DER)


def _certificate(
    subject: str, issuer: str, public: Ed25519PublicKey, signs: Ed25519PrivateKey, *, authority: bool
) -> x509.Certificate:
    moment = datetime.now(UTC)
    made = x509.CertificateBuilder(
        subject_name=_name(subject),
        issuer_name=_name(issuer),
        public_key=public,
        serial_number=x509.random_serial_number(),
        not_valid_before=moment - SLOW_CLOCK,
        not_valid_after=moment + LASTS,
    )
    basic = x509.BasicConstraints(ca=authority, path_length=0 if authority else None)
    return made.add_extension(basic, critical=True).sign(signs, None)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _signed_by(leaf: x509.Certificate, public: str) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(leaf.signature, leaf.tbs_certificate_bytes)
    except (InvalidSignature, ValueError):
        return False
    return True

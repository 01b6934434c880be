"""A published head can be stamped by an authority of RFC 3161 with the tools that docs/how-to/witness.md names."""

import shutil
import subprocess
from pathlib import Path

import pytest

from sfumato.governance.anchor import SignedHead
from tests.governance.homes import Home, furnished
from tests.parts import absent

AUTHORITY = """
[tsa]
default_tsa = own
[own]
serial = ./serial
crypto_device = builtin
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
[stamping]
extendedKeyUsage = critical,timeStamping
basicConstraints = critical,CA:FALSE
[req]
distinguished_name = dn
[dn]
"""


def openssl(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["openssl", *words], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A folder with an authority of one's own, as nobody outside is asked."""
    if shutil.which("openssl") is None:
        absent("openssl is not installed")
    (tmp_path / "authority.conf").write_text(AUTHORITY)
    (tmp_path / "serial").write_text("01\n")
    made = openssl(
        *(tmp_path, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "own.key", "-out", "authority.pem"),
        *("-subj", "/CN=stamps", "-config", "authority.conf", "-extensions", "stamping"),
    )
    assert made.returncode == 0, made.stderr
    return tmp_path


def test_a_published_head_is_stamped_and_another_one_is_not_it(home: Home, authority: Path) -> None:
    ledger = furnished(home)
    (authority / "head.json").write_text(ledger.head().text + "\n")
    assert (
        openssl(*(authority, "ts", "-query", "-data", "head.json", "-sha256", "-cert", "-out", "head.tsq")).returncode
        == 0
    )
    stamped = openssl(
        *(authority, "ts", "-reply", "-config", "authority.conf", "-section", "own", "-queryfile", "head.tsq"),
        *("-signer", "authority.pem", "-inkey", "own.key", "-out", "head.tsr"),
    )
    assert stamped.returncode == 0, stamped.stderr
    asked = ("ts", "-verify", "-data", "head.json", "-in", "head.tsr", "-CAfile", "authority.pem")
    held = openssl(authority, *asked)
    assert "Verification: OK" in held.stdout + held.stderr
    assert ledger.verify(SignedHead.read((authority / "head.json").read_text().strip())) == ()
    ledger.confirm_clock("a quiet week")
    (authority / "head.json").write_text(ledger.head().text + "\n")
    assert openssl(authority, *asked).returncode != 0

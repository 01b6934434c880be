"""Keys: kept by their owner, never shown, never overwritten; signatures that hold for one text alone."""

import stat

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.signature import SigningKey, read_public_key, signature_holds
from sfumato.errors import InvalidInput

KEY, OTHER = SigningKey.new(), SigningKey.new()


@settings(max_examples=30, deadline=None)
@given(text=st.binary(max_size=60), at=st.integers(0, 59), flip=st.integers(1, 255))
def test_a_signature_holds_for_its_text_and_its_key_alone(text, at, flip):
    signature = KEY.sign(text)
    assert len(signature) == 128
    assert signature_holds(KEY.public_text, signature, text)
    assert not signature_holds(OTHER.public_text, signature, text)
    assert not signature_holds(KEY.public_text, signature, text + b"!")
    if text:
        changed = bytearray(text)
        changed[at % len(text)] ^= flip
        assert not signature_holds(KEY.public_text, signature, bytes(changed))
    touched = bytearray(bytes.fromhex(signature))
    touched[at] ^= flip
    assert not signature_holds(KEY.public_text, touched.hex(), text)


@pytest.mark.parametrize(("public", "signature"), [("", ""), ("zz" * 32, "00" * 64), ("00" * 31, "00" * 64)])
def test_malformed_input_does_not_hold(public, signature):
    assert signature_holds(public, signature, b"text") is False


@pytest.mark.parametrize("signature", ["", "00", "zz" * 64, "00" * 64])
def test_a_malformed_signature_does_not_hold(signature):
    assert signature_holds(KEY.public_text, signature, b"text") is False


def test_a_key_is_saved_for_its_owner_alone_and_read_again(tmp_path):
    path = tmp_path / "key.pem"
    KEY.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = SigningKey.load(path)
    assert again.public_text == KEY.public_text
    assert signature_holds(KEY.public_text, again.sign(b"text"), b"text")
    assert read_public_key(tmp_path / "key.pem.pub") == read_public_key(KEY.public_text) == KEY.public_text


def test_a_key_is_never_overwritten(tmp_path):
    path = tmp_path / "key.pem"
    KEY.save(path)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=r"was not written to .*key\.pem: File exists\. Choose a new file"):
        OTHER.save(path)
    assert path.read_bytes() == before
    assert read_public_key(f"{path}.pub") == KEY.public_text
    with pytest.raises(InvalidInput, match="No such file or directory"):
        KEY.save(tmp_path / "nowhere" / "key.pem")


def test_what_is_not_a_key_is_refused_with_the_command_that_makes_one(tmp_path):
    path = tmp_path / "key.pem"
    with pytest.raises(InvalidInput, match=f"{path} is not a readable signing key. Make one: sfumato key new"):
        SigningKey.load(path)
    path.write_text("not a key", encoding="utf-8")
    with pytest.raises(InvalidInput, match="is not a readable signing key"):
        SigningKey.load(path)
    path.write_bytes(generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(InvalidInput, match="holds another kind of key"):
        SigningKey.load(path)


@pytest.mark.parametrize("text", ["", "00", "Z" * 64, "A" * 64, "0" * 63, "0" * 65])
def test_a_public_key_is_64_hexadecimal_digits(text):
    with pytest.raises(InvalidInput, match="64 hexadecimal digits"):
        read_public_key(text)


def test_a_file_that_holds_no_key_is_refused(tmp_path):
    path = tmp_path / "key.pub"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="nothing was verified"):
        read_public_key(path)


def test_a_key_never_shows_itself(tmp_path):
    path = tmp_path / "key.pem"
    KEY.save(path)
    secret = "".join(path.read_text(encoding="ascii").splitlines()[1:-1])
    assert secret not in repr(KEY)
    assert secret not in str(KEY)
    assert KEY.public_text not in repr(KEY)


def test_a_signature_has_one_spelling():
    key = SigningKey.new()
    signature = key.sign(b"text")
    assert signature_holds(key.public_text, signature, b"text")
    for other in (signature + " ", f" {signature}", signature.upper(), f"{signature[:2]} {signature[2:]}", ""):
        assert not signature_holds(key.public_text, other, b"text")

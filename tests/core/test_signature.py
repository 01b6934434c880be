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


def test_a_key_that_is_missing_is_refused_with_the_command_that_makes_one(tmp_path):
    path = tmp_path / "key.pem"
    with pytest.raises(InvalidInput, match=f"there is no key {path}; nothing was signed. Make one: sfumato key new"):
        SigningKey.load(path)


def test_what_is_not_a_key_is_refused_without_the_advice_to_make_another(tmp_path):
    path = tmp_path / "key.pem"
    other = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for held in (b"not a key", b"\xff", b"", other):
        path.write_bytes(held)
        with pytest.raises(InvalidInput, match="is not an Ed25519 signing key that can be read") as wrong:
            SigningKey.load(path)
        assert "key new" not in str(wrong.value)
    path.write_text(KEY.public_text + "\n", encoding="ascii")
    with pytest.raises(InvalidInput, match="holds a public key, which verifies and cannot sign"):
        SigningKey.load(path)
    with pytest.raises(InvalidInput, match="could not be read: Is a directory"):
        SigningKey.load(tmp_path)
    with pytest.raises(InvalidInput, match="no name of a file"):
        SigningKey.load("a\0b")


def test_a_key_that_one_may_not_read_is_no_reason_to_make_another(tmp_path, monkeypatch):
    path = tmp_path / "key.pem"
    KEY.save(path)

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")  # root may read everything, so modes alone would not show it

    monkeypatch.setattr("pathlib.Path.open", refused)
    with pytest.raises(InvalidInput, match="you are not permitted to read the key") as wrong:
        SigningKey.load(path)
    assert "key new" not in str(wrong.value)
    with pytest.raises(InvalidInput, match="you are not permitted to read"):
        read_public_key(f"{path}.pub")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o644])
def test_a_key_that_others_can_read_is_refused_with_the_command_that_shuts_it(tmp_path, mode):
    path = tmp_path / "key.pem"
    KEY.save(path)
    path.chmod(mode)
    with pytest.raises(InvalidInput, match=f"chmod 600 {path}"):
        SigningKey.load(path)
    path.chmod(0o400)
    assert SigningKey.load(path).public_text == KEY.public_text


FIELD = 2**255 - 19
CURVE = -121665 * pow(121666, -1, FIELD) % FIELD


def _plus(one, other):
    """The sum of two points of the curve −x² + y² = 1 + d·x²·y²."""
    (x, y), (u, v) = one, other
    both = CURVE * x * u * y * v
    return (
        (x * v + y * u) * pow(1 + both, -1, FIELD) % FIELD,
        (y * v + x * u) * pow(1 - both, -1, FIELD) % FIELD,
    )


def _points():
    """Points of the curve, by their y."""
    for y in range(2, 100):
        square = (y * y - 1) * pow(CURVE * y * y + 1, -1, FIELD) % FIELD
        x = pow(square, (FIELD + 3) // 8, FIELD)
        x = x if x * x % FIELD == square else x * pow(2, (FIELD - 1) // 4, FIELD) % FIELD
        if x * x % FIELD == square:
            yield x, y


def _times(number, point):
    found = (0, 1)
    while number:
        found = _plus(found, point) if number & 1 else found
        number, point = number >> 1, _plus(point, point)
    return found


def _spelled(y, sign):
    return (y | sign << 255).to_bytes(32, "little").hex()


def _small_order():
    """All spellings of the eight points of small order, the points worked out from the curve itself."""
    prime = 2**252 + 27742317777372353535851937790883648493
    eighths = (_times(prime, point) for point in _points())
    eighth = next(point for point in eighths if _times(4, point) != (0, 1))
    points = [_times(number, eighth) for number in range(8)]
    assert len(set(points)) == 8
    assert _times(8, eighth) == (0, 1)
    return sorted(
        {_spelled(y, sign) for _, y in points for sign in (0, 1)}
        | {_spelled(y + FIELD, sign) for _, y in points if y + FIELD < 2**255 for sign in (0, 1)}
    )


def test_there_are_fourteen_spellings_of_points_of_small_order():
    assert len(_small_order()) == 14


@pytest.mark.parametrize("public", _small_order())
def test_a_public_key_of_small_order_is_refused_and_nothing_holds_under_it(public):
    with pytest.raises(InvalidInput, match="one that no key pair has"):
        read_public_key(public)
    # R = the neutral point and S = 0 hold under such keys for every text, or for one in eight.
    for text in range(32):
        assert not signature_holds(public, "01" + "00" * 63, str(text).encode())


@pytest.mark.parametrize("y", range(FIELD, 2**255))
def test_a_spelling_of_a_public_key_that_is_not_canonical_is_refused(y, tmp_path):
    for sign in (0, 1):
        public = _spelled(y, sign)
        (tmp_path / "key.pub").write_text(public, encoding="ascii")
        for given_as in (public, tmp_path / "key.pub"):
            with pytest.raises(InvalidInput, match="another spelling"):
                read_public_key(given_as)


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

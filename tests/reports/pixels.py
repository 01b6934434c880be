"""Reads PNG files, so that a test can look at a picture; only what our drawer writes: 8 bits, RGB or RGBA."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["Picture", "compressed"]


@dataclass(frozen=True)
class Picture:
    """Rows of pixels, red, green and blue."""

    dots: "np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]"

    @classmethod
    def read(cls, data: bytes) -> "Picture":
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        chunks = list(_chunks(data))
        width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
        assert (depth, interlaced) == (8, 0)
        channels = {2: 3, 6: 4}[kind]
        raw = zlib.decompress(b"".join(body for name, body in chunks if name == b"IDAT"))
        rows = _unfiltered(raw, width * channels, height, channels)
        return cls(np.frombuffer(rows, np.uint8).reshape(height, width, channels)[:, :, :3])

    def marked(self, paper: str) -> "np.ndarray[tuple[int, int], np.dtype[np.bool_]]":
        """Where something is drawn: every dot that is clearly not paper."""
        colour = np.array([int(paper[place : place + 2], 16) for place in (1, 3, 5)], np.int16)
        return np.abs(self.dots.astype(np.int16) - colour).max(axis=2) > 12


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = 8
    while place < len(data):
        (size,) = struct.unpack(">I", data[place : place + 4])
        yield data[place + 4 : place + 8], data[place + 8 : place + 8 + size]
        place += size + 12


def _unfiltered(raw: bytes, stride: int, height: int, step: int) -> bytes:
    """Undo the filter of each row (the PNG specification, section 9)."""
    before = bytes(stride)
    found = bytearray()
    for row in range(height):
        start = row * (stride + 1)
        kind, line = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        match kind:
            case 1:
                parts = np.frombuffer(bytes(line), np.uint8).reshape(-1, step)
                line = bytearray(np.cumsum(parts, axis=0, dtype=np.uint8).tobytes())
            case 2:
                line = bytearray((np.frombuffer(bytes(line), np.uint8) + np.frombuffer(before, np.uint8)).tobytes())
            case 3:
                for place in range(stride):
                    left = line[place - step] if place >= step else 0
                    line[place] = (line[place] + (left + before[place]) // 2) & 255
            case 4:
                for place in range(stride):
                    left, corner = (line[place - step], before[place - step]) if place >= step else (0, 0)
                    line[place] = (line[place] + _nearest(left, before[place], corner)) & 255
            case _:
                assert kind == 0
        before = bytes(line)
        found += before
    return bytes(found)


def _nearest(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    away = (abs(guess - left), abs(guess - above), abs(guess - corner))
    return (left, above, corner)[away.index(min(away))]


def compressed(picture: Picture) -> bytes:
    """A picture as PNG again, as small as zlib makes it; for files that are kept."""
    height, width, _ = picture.dots.shape
    rows = b"".join(b"\0" + row.tobytes() for row in picture.dots)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    written = (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)

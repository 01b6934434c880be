"""The tour: what it spends, writes, refuses, and that nothing exact gets out."""

import io
import json
import math
import re
import shutil
import struct
import sys
import xml.etree.ElementTree as ET
import zlib
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey, read_public_key
from sfumato.demo import network
from sfumato.demo.bars import bar, share_table, spent_bar
from sfumato.demo.folder import FILES
from sfumato.demo.heat import heat, shade
from sfumato.demo.tour import Tour, tour
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.reports.verify import read, verify
from tests import parts


def walk(folder: Path, **options: int) -> tuple[Tour, str]:
    heard = io.StringIO()
    shown = tour(folder, console=Console(file=heard, width=80), **{"patients": 400, **options})
    return shown, heard.getvalue()


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tour") / "sfumato-demo"
    return folder, *walk(folder)


def test_three_releases_are_charged_and_the_repeat_is_not(walked):
    _, shown, text = walked
    first, second, third, again, spread = shown.releases
    assert [release.charged.epsilon for release in (first, second, third)] == [Fraction(1, 2)] * 3
    assert spread.charged.epsilon == Fraction(1, 10)
    assert shown.spent.epsilon == Fraction(8, 5)
    assert "Charged ε = 1/10." in text
    assert again.repeated
    assert again.charged == Budget.none()
    assert again.values == first.values
    assert "The stored answer came back: the same numbers, charged ε = 0." in text


def test_the_third_release_has_the_noise_that_a_delta_buys(walked):
    _, shown, text = walked
    heat_map = shown.releases[2]
    assert heat_map.charged.delta == Fraction(1, 10**6)
    assert isinstance(heat_map.statement.mechanism, Gaussian)
    with_delta = heat_map.statement.law.margin("0.95")
    assert with_delta < Laplace.calibrated(l1=12, epsilon="1/2").law.margin("0.95")
    assert f"±72 for each cell with ε alone, ±{with_delta} with δ = 1e-6 besides." in text


def test_the_share_costs_nothing_and_follows_from_one_release(walked):
    _, shown, text = walked
    first, second, *_ = shown.releases
    with pytest.raises(Refused, match="cut these releases differently"):
        first / second
    total = sum(first.values)
    for region, value, one in zip(network.REGIONS, shown.share.values, first.values, strict=True):
        assert value == pytest.approx(one / total)
        assert any(
            line.split()[: len(region.split())] == region.split() and re.search("%|unknown", line)
            for line in text.splitlines()
        )
    assert shown.spent == Budget(epsilon=Fraction(8, 5), delta=Fraction(1, 10**6))


def test_the_refusal_is_shown_and_leaves_the_budget_alone(walked):
    _, shown, text = walked
    assert shown.budget == Budget(epsilon=2, delta=Fraction(1, 10**6))
    assert "has ε = 2/5" in shown.refusal
    assert "asks for ε = 1" in shown.refusal
    assert shown.refusal.split(";")[0] in " ".join(text.split())
    assert "The account is unchanged." in text
    assert "██▓▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒▒▒▒▒░░░░░░░░░░········ 1.6 of 2" in text


def test_every_region_is_listed_with_its_margin(walked):
    _, shown, text = walked
    for region, value, (low, high) in zip(
        network.REGIONS, shown.releases[0].values, shown.releases[0].interval(), strict=True
    ):
        assert any(
            line.split()[: len(region.split())] == region.split()
            and f"{value:,}" in line
            and f"{low:,} to {high:,}" in line
            for line in text.splitlines()
        )


def test_the_files_are_there_and_the_last_lines_name_them(walked):
    parts.package("vl_convert")
    folder, shown, text = walked
    assert {path.name for path in folder.iterdir()} == {*FILES, "README.txt"}
    assert set(shown.files) == {folder / name for name in FILES}
    closing = text[text.index(". The files") :]
    assert all(str(file) in closing for file in shown.files)
    assert f"sfumato verify {folder}/ili.json --key {folder}/key.pub" in closing
    assert f"sfumato explain {folder}/heat.json --lang zh" in closing
    assert f" {folder}/report.html" in closing


def fits(text: str, width: int) -> None:
    story, _, _ = text.partition(". The files")  # commands and paths are not broken
    assert max(len(line) for line in story.splitlines()) <= width
    assert "\x1b" not in story


def test_the_tour_fits_a_common_terminal(walked):
    fits(walked[2], 80)


@pytest.mark.long
@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("width", [40, *(pytest.param(width, marks=pytest.mark.long) for width in (56, 160))])
def test_the_tour_fits_the_terminal(tmp_path, width):
    heard = io.StringIO()
    tour(tmp_path / "t", patients=400, program="s", console=Console(file=heard, width=width))
    fits(heard.getvalue(), width)


@pytest.mark.long
@pytest.mark.usefixtures("no_pictures")
def test_the_commands_at_the_end_start_with_what_was_typed(tmp_path):
    shown = tour(tmp_path / "a b", patients=50, program=".venv/bin/sfumato", console=Console(quiet=True))
    assert shown.next[1] == f".venv/bin/sfumato verify '{tmp_path}/a b/ili.json' --key '{tmp_path}/a b/key.pub'"


def test_all_certificates_verify(walked):
    folder, shown, _ = walked
    for name, release in zip(("ili", "everyone", "heat"), shown.releases, strict=False):
        assert verify(read(folder / f"{name}.json"), key=folder / "key.pub").authenticated
        assert json.loads((folder / f"{name}.json").read_text("utf-8")) == release.certificate.document


def test_the_picture_is_not_blank(walked):
    parts.package("vl_convert")
    folder, _, _ = walked
    lines = scanlines((folder / "ili.png").read_bytes())
    assert len(lines) > 200
    assert len(set(lines)) > 50  # a blank picture has two or three kinds of line
    words = " ".join(ET.parse(folder / "ili.svg").getroot().itertext())  # noqa: S314 - written by ourselves
    assert all(region in words for region in network.REGIONS)


@pytest.fixture
def no_pictures(monkeypatch):
    """Leave the plots extra out, which is what takes the time."""
    monkeypatch.setitem(sys.modules, "altair", None)
    monkeypatch.setitem(sys.modules, "vl_convert", None)


@pytest.mark.long
@pytest.mark.usefixtures("no_pictures")
def test_a_second_tour_overwrites_its_own_files_and_keeps_the_key(walked, tmp_path):
    shutil.copytree(walked[0], tmp_path, dirs_exist_ok=True)
    key, certificate = (tmp_path / "key").read_bytes(), (tmp_path / "ili.json").read_bytes()
    (tmp_path / "key.pub").write_text("smudged")
    walk(tmp_path)
    assert (tmp_path / "key").read_bytes() == key
    assert (tmp_path / "ili.json").read_bytes() != certificate
    assert read_public_key(tmp_path / "key.pub") == SigningKey.load(tmp_path / "key").public_text
    (tmp_path / "key").unlink()
    walk(tmp_path)
    assert verify(read(tmp_path / "ili.json"), key=tmp_path / "key.pub").authenticated


def test_files_that_are_not_the_tours_are_never_overwritten(tmp_path):
    (tmp_path / "visits.parquet").write_text("real patients")
    with pytest.raises(InvalidInput, match="Nothing was written"):
        walk(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["visits.parquet"]
    assert (tmp_path / "visits.parquet").read_text() == "real patients"


@pytest.mark.usefixtures("no_pictures")
def test_a_key_that_cannot_be_read_is_left_alone(walked, tmp_path):
    shutil.copytree(walked[0], tmp_path, dirs_exist_ok=True)
    (tmp_path / "key").write_text("half written")
    with pytest.raises(InvalidInput, match="Nothing was overwritten"):
        walk(tmp_path)
    assert (tmp_path / "key").read_text() == "half written"


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidInput, match="cannot be written"):
        walk(tmp_path / "file")


@pytest.mark.long
@pytest.mark.usefixtures("no_pictures")
def test_without_the_plots_extra_there_is_a_report_and_no_picture(tmp_path):
    shown, text = walk(tmp_path)
    assert {file.name for file in shown.files} == {*FILES} - {"ili.svg", "ili.png"}
    assert "sfumato[plots]" in text
    assert "<svg" not in (tmp_path / "report.html").read_text("utf-8")


def still(self: Laplace | Gaussian, exact: list[int], bits: object) -> tuple[int, ...]:
    """Stands in for the noise: what comes out does not depend on what went in."""
    return tuple(1000 + 10 * place for place in range(len(exact)))


def leaking(self: Laplace | Gaussian, exact: list[int], bits: object) -> tuple[int, ...]:
    """The broken twin: the exact counts come out."""
    return tuple(exact)


def public_side(folder: Path, seed: int) -> dict[str, object]:
    """Everything that a tour says and publishes, less what differs from one release to the next by design."""
    _, text = walk(folder, seed=seed)
    sides: dict[str, object] = {"text": text}
    page = (folder / "report.html").read_text("utf-8")
    for name in ("ili", "everyone", "heat"):
        document = json.loads((folder / f"{name}.json").read_text("utf-8"))
        if name == "ili":  # the page holds its certificate, whose seals and signature are about what is compared here
            quoted = [document["signature"]["value"], *document["seals"].values()]
            quoted += [document["statement"][part] for part in ("identifier", "issued")]
            quoted += [document["statement"]["identifier"][:8], *re.findall("base64,([A-Za-z0-9+/=]+)", page)]
            for word in quoted:
                page = page.replace(word, "")
        for part in ("identifier", "issued"):
            document["statement"].pop(part)
        sides[name] = document["statement"]
    pictures = [path.read_bytes() for path in (folder / "ili.svg", folder / "ili.png") if path.exists()]
    return sides | {"page": page, "pictures": pictures}


@pytest.mark.long
def test_with_the_noise_held_still_two_networks_cannot_be_told_apart(tmp_path, monkeypatch):
    for mechanism in (Laplace, Gaussian):
        monkeypatch.setattr(mechanism, "add_noise", still)
    one = public_side(tmp_path, seed=1)
    rows = pq.read_table(tmp_path / "visits.parquet")
    other = public_side(tmp_path, seed=2)
    assert not rows.equals(pq.read_table(tmp_path / "visits.parquet"))
    assert one == other


@pytest.mark.long
@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("mechanism", [Laplace, Gaussian])
def test_the_comparison_would_notice_exact_counts(tmp_path, monkeypatch, mechanism):
    for each in (Laplace, Gaussian):
        monkeypatch.setattr(each, "add_noise", leaking if each is mechanism else still)
    one, other = public_side(tmp_path, seed=1), public_side(tmp_path, seed=2)
    leaked = ("text", "ili", "everyone", "page") if mechanism is Laplace else ("text", "heat")
    assert all(one[part] != other[part] for part in leaked)


@pytest.mark.parametrize(
    ("low", "high", "drawn"),
    [
        (40, 60, "████░░"),
        (0, 100, "░░░░░░░░░░"),
        (-5, 8, "░"),
        (-9, -1, ""),
        (96, 100, "█████████░"),
        (50, 50, "█████"),
    ],
)
def test_a_bar_is_solid_up_to_low_and_light_up_to_high(low, high, drawn):
    assert bar(low, high, most=100, width=10) == drawn


def test_a_cell_that_may_be_empty_is_marked(walked):
    _, shown, text = walked
    heat_map = shown.releases[2]
    most = max(heat_map.values)
    drawn = [shade(value, low, most) for value, (low, _) in zip(heat_map.values, heat_map.interval(), strict=True)]
    assert all((sign == "·") == (low <= 0) for sign, (low, _) in zip(drawn, heat_map.interval(), strict=True))
    legend = text[text.index("8. ") : text.index("9. ")]
    assert legend.count("·") == drawn.count("·") + 1  # and once in the key below the table


@pytest.mark.parametrize(
    ("value", "low", "sign"),
    [(0, 0, "·"), (10, 0, "·"), (10, 1, "░"), (25, 5, "▒"), (50, 9, "▓"), (75, 9, "█"), (100, 9, "█"), (-9, -20, "·")],
)
def test_a_shade_is_a_quarter(value, low, sign):
    assert shade(value, low, 100) == sign


def test_a_heat_table_needs_two_keys(walked):
    _, shown, _ = walked
    with pytest.raises(Unsupported, match="two keys"):
        heat(shown.releases[0], width=80)


def test_a_budget_as_a_bar():
    thirds = [Fraction(1, 3)] * 3
    assert spent_bar(thirds, Budget(epsilon=1), width=9) == "███▓▓▓▒▒▒ 1 of 1"
    assert spent_bar([], Budget(epsilon=1), width=4) == "···· 0 of 1"
    assert spent_bar([Fraction(1, 100)], Budget(epsilon=1), width=4).startswith("···· 0.01")


class Unknown:
    """A share whose lower number may be 0."""

    labels: ClassVar[dict[str, tuple[str, ...]]] = {"region": ("here",)}
    values = (0.25,)

    def interval(self) -> list[tuple[float, float]]:
        return [(-math.inf, math.inf)]


def test_a_share_that_the_noise_leaves_open_is_not_stated():
    heard = io.StringIO()
    Console(file=heard, width=80).print(share_table(Unknown()))
    assert heard.getvalue().splitlines()[1].split() == ["here", "unknown", "any", "░" * 26]


def scanlines(png: bytes) -> list[bytes]:
    """The filtered lines of a PNG with 8 bits a channel."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    place, data, width, channels = 8, b"", 0, 0
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        body = png[place + 8 : place + 8 + length]
        if kind == b"IHDR":
            width, channels = struct.unpack(">I", body[:4])[0], {2: 3, 6: 4}[body[9]]
        elif kind == b"IDAT":
            data += body
        place += 12 + length
    lines, step = zlib.decompress(data), 1 + width * channels
    return [lines[start : start + step] for start in range(0, len(lines), step)]

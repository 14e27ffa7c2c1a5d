"""A chart as SVG or PNG, and the escaping of what stands beside it."""

from __future__ import annotations

import json
import re
import struct
import zlib
from pathlib import Path
from urllib.parse import unquote

import altair as alt
import pytest
import vl_convert as vlc
from hypothesis import given
from hypothesis import strategies as st

from calframe._charts._theme import DARK, LIGHT
from calframe._report._escape import csv_link, finite, script_json, strict_json
from calframe._report._svg import to_png, to_svg
from tests._markup import Document
from tests._page_example import small_chart


def test_drawing_names_no_namespace_and_no_address():
    linked = small_chart().encode(href=alt.value("https://example.invalid/"))
    drawing = to_svg(linked, uid="a", label="finding")
    assert "http" not in drawing
    assert "xmlns" not in drawing


def test_drawing_renumbers_its_ids():
    drawing = to_svg(small_chart(clip=True), uid="forest-wide", label="finding")
    assert re.findall(r' id="([^"]+)"', drawing) == ["forest-wide-0"]
    assert set(re.findall(r"url\(#([^)]+)\)", drawing)) == {"forest-wide-0"}


def test_drawing_keeps_the_words_of_a_mark_and_shortens_its_path():
    words = 'gap 0.12345 url(#clip1) id="clip1" <b>&'
    drawing = to_svg(small_chart(label=words, clip=True), uid="a", label='say "yes" <now>')
    document = Document(drawing)
    assert words in document.values("aria-label")
    assert document.elements[0][1]["aria-label"] == 'say "yes" <now>'
    assert all(not re.search(r"\.\d{3}", value) for value in document.values("d") + document.values("transform"))


def test_drawing_keeps_css_variables():
    assert "var(--cf-over)" in to_svg(small_chart(), uid="a", label="")


def test_drawing_takes_numbers_that_are_not_finite():
    drawing = to_svg(small_chart(height=float("nan")), uid="a", label="")
    assert "NaN" not in drawing
    assert Document(drawing).values("aria-label").count("first") == 1


def test_drawing_ignores_the_theme_and_the_data_settings_of_the_user(tmp_path, monkeypatch):
    plain = to_svg(small_chart(), uid="a", label="")
    monkeypatch.chdir(tmp_path)
    with alt.theme.enable("dark"), alt.data_transformers.enable("csv"):
        inside = to_svg(small_chart(), uid="a", label="")
        active = alt.theme.active, alt.data_transformers.active
    assert inside == plain
    assert active == ("dark", "csv")
    assert list(tmp_path.iterdir()) == []


def test_drawing_fetches_nothing():
    chart = alt.Chart("https://example.invalid/rows.csv").mark_point().encode(x="x:Q")
    with pytest.raises(ValueError, match="not allowed"):
        to_svg(chart, uid="a", label="")


def test_drawing_refuses_a_version_that_cannot_be_drawn(monkeypatch):
    monkeypatch.setattr(vlc, "get_vegalite_versions", lambda: ["5.8"])
    with pytest.raises(RuntimeError, match=r"versions vl-convert draws \(5\.8\).*Install a newer vl-convert-python"):
        to_svg(small_chart(), uid="a", label="")


def png_facts(path: Path) -> tuple[int, bytes]:
    """Read width and first pixel, which is stored as it is under every filter (PNG specification, 9.2)."""
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    at, packed = 8, b""
    while at < len(content):
        size, kind = struct.unpack(">I4s", content[at : at + 8])
        packed += content[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    return struct.unpack(">I", content[16:20])[0], zlib.decompress(packed)[1:4]


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_picture_has_the_ground_and_the_scale_asked_for(tmp_path, palette):
    path = tmp_path / "chart.png"
    to_png(small_chart(label="var(--cf-unknown)"), path, palette=palette, scale=2.0)
    width = int(re.search(r' width="(\d+)"', to_svg(small_chart(), uid="a", label=""))[1])
    assert png_facts(path) == (2 * width, bytes.fromhex(palette["card"][1:]))


texts = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(texts)
def test_json_in_a_script_reads_back_and_holds_no_markup(value):
    text = script_json(value)
    assert json.loads(text) == finite(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert not re.search(r"\b(NaN|Infinity)\b", re.sub(r'"(\\.|[^"\\])*"', "", text))


def test_json_of_a_tuple_is_a_list():
    assert strict_json({"interval": (0.1, float("inf"))}) == '{"interval":[0.1,null]}'


@given(st.text(st.characters(codec="utf-8")))
def test_csv_link_is_a_legal_address_and_reads_back(text):
    link = csv_link(text)
    assert re.fullmatch(r"[A-Za-z0-9%/,:;()=+\-._~!*$@]*", link)  # RFC 3986, and no quote
    assert unquote(link.removeprefix("data:text/csv;charset=utf-8,")) == text

"""The arguments that give other packages' numbers, against the packages themselves and against recorded values."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import calframe
from calframe import ArgumentError, conventions
from tests._peer_numbers import CLASSES, NEEDS_TORCH, ONE_COLUMN, Array, Numbers, Peer

Table = tuple[Array, Array]
RNG = np.random.default_rng(20)
HUNDREDTHS = 37 * np.arange(240) % 101 / 100
HAPPENED = ((53 * np.arange(240) + 11) % 97 / 97 < 0.9 * HUNDREDTHS**1.4 + 0.05).astype(int)
TENTHS = np.arange(11) / 10
EVERY_OTHER = np.arange(11) % 2


def noisy(p: Array) -> Table:
    happened = (RNG.random(len(p)) < p).astype(int)
    return p, np.where(RNG.random(len(p)) < 0.15, 1 - happened, happened)


def drawn(p: Array) -> Table:
    happened = np.array([RNG.choice(p.shape[1], p=row / row.sum()) for row in p])
    return p, np.where(RNG.random(len(p)) < 0.2, RNG.integers(0, p.shape[1], len(p)), happened)


def parts(n: int, of: int) -> Array:
    """Rows of three scores k / of that sum to 1: many on edges, some of 0 and 1."""
    cut = np.sort(RNG.integers(0, of + 1, (n, 2)), axis=1)
    return np.column_stack([cut[:, 0], cut[:, 1] - cut[:, 0], of - cut[:, 1]]) / of


SCORES: dict[str, Table] = {
    "random": noisy(RNG.random(300)),
    "tenths": noisy(RNG.integers(0, 11, 200) / 10),
    "fifteenths": noisy(RNG.integers(0, 16, 200) / 15),
    "twentieths": noisy(RNG.integers(0, 21, 200) / 20),
    "corners and ties": noisy(RNG.choice([0, 1, 0.5, 0.25, 1e-9, 1 - 1e-9], 150)),
}
VECTORS: dict[str, Table] = {
    "random": drawn(RNG.dirichlet([1, 1, 1], 200)),
    "tenths": drawn(parts(150, 10)),
    "fifteenths": drawn(parts(150, 15)),
    "twentieths": drawn(parts(150, 20)),
}


def frame(p: Array, y: Array, **columns: Array) -> pl.DataFrame:
    scores = {"p": p} if p.ndim == 1 else {f"p{c}": p[:, c] for c in range(p.shape[1])}
    return pl.DataFrame({"y": y, **scores, **columns})


def found(p: Array, y: Array, arguments: Mapping[str, Any], **more: Any) -> Numbers:
    score: Any = "p" if p.ndim == 1 else {c: f"p{c}" for c in range(p.shape[1])}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="log_loss is infinite", category=calframe.CalframeWarning)
        return calframe.metrics(frame(p, y, **more), label="y", score=score, **arguments).row(0, named=True)


def close(numbers: Mapping[str, float], tolerance: float = 1e-12) -> Any:
    return pytest.approx(dict(numbers), rel=tolerance, abs=tolerance)


def only(numbers: Numbers, names: Mapping[str, float]) -> Numbers:
    return {name: numbers[name] for name in names}


# ------------------------------------------------------------------ the packages themselves
def params(peers: Mapping[str, Peer]) -> list[Any]:
    return [pytest.param(name, peer, id=name) for name, peer in peers.items()]


def installed(peer: Peer) -> None:
    hint = "recorded values stand in" if peer.distribution in NEEDS_TORCH else "see the extra 'peers'"
    pytest.importorskip(peer.module, reason=f"{peer.distribution} is not installed; {hint}")


@pytest.mark.filterwarnings("ignore:the string cache has been replaced:DeprecationWarning")  # in model-diagnostics
@pytest.mark.parametrize("table", SCORES)
@pytest.mark.parametrize(("name", "peer"), params(ONE_COLUMN))
def test_one_column_of_scores(name: str, peer: Peer, table: str) -> None:
    installed(peer)
    p, y = SCORES[table]
    if name == "calzone":  # it drops scores of 0
        p, y = p[p > 0], y[p > 0]
    for bins in peer.bins:
        wanted = peer.ask(p, y, bins)
        assert set(wanted) == set(conventions[name].metrics)
        assert only(found(p, y, conventions[name](bins)), wanted) == close(wanted), bins


@pytest.mark.parametrize("table", VECTORS)
@pytest.mark.parametrize(("name", "peer"), params(CLASSES))
def test_vectors_of_scores(name: str, peer: Peer, table: str) -> None:
    installed(peer)
    p, y = VECTORS[table]
    tolerance, every = 1e-12, peer.bins
    if name == "torchmetrics.confidence":  # float32 inside
        p, tolerance = p.astype(np.float32), 1e-6
    if name == "pycalib.confidence" and table != "random":  # its gaps are another test's
        every = (2, 5, 10)
    for bins in every:
        wanted = peer.ask(p, y, bins)
        assert set(wanted) == set(conventions[name].metrics)
        assert only(found(p, y, conventions[name](bins)), wanted) == close(wanted, tolerance), bins


@pytest.mark.filterwarnings("ignore:the string cache has been replaced:DeprecationWarning")
@pytest.mark.parametrize("table", ["random", "tenths"])
@pytest.mark.parametrize(("name", "peer"), params({name: peer for name, peer in ONE_COLUMN.items() if peer.weighted}))
def test_weights(name: str, peer: Peer, table: str) -> None:
    installed(peer)
    assert peer.weighted is not None
    p, y = SCORES[table]
    weight = np.random.default_rng(4).integers(1, 9, len(p)) / 2
    for bins in peer.bins:
        wanted = peer.weighted(p, y, bins, weight)
        got = found(p, y, {**conventions[name](bins), "weight": "w"}, w=weight)
        assert only(got, wanted) == close(wanted), bins


def test_calzone_drops_scores_of_0() -> None:
    pytest.importorskip("calzone", reason="calzone-tool is not installed; see the extra 'peers'")
    p, y = TENTHS, 1 - EVERY_OTHER
    wanted = ONE_COLUMN["calzone"].ask(p, y, 10)
    assert only(found(p, y, conventions["calzone"](10)), wanted) != close(wanted, 1e-3)
    assert only(found(p[1:], y[1:], conventions["calzone"](10)), wanted) == close(wanted)


@pytest.mark.parametrize(("table", "bins"), [("fifteenths", 15), ("tenths", 14)])
def test_pycalib_loses_confidences_on_edges(table: str, bins: int) -> None:
    pytest.importorskip("pycalib", reason="pycalib is not installed; see the extra 'peers'")
    p, y = VECTORS[table]
    wanted = CLASSES["pycalib.confidence"].ask(p, y, bins)
    assert only(found(p, y, conventions["pycalib.confidence"](bins)), wanted) != close(wanted, 1e-4)


@pytest.mark.parametrize("bins", [15, 20, 33])
def test_the_edges_of_torch_on_this_processor(bins: int) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")
    edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64).tolist()
    assert conventions["torchmetrics"](bins)["bins"] == pytest.approx([*edges, 2.0], abs=2e-16)
    for p, y in SCORES.values():
        wanted = ONE_COLUMN["torchmetrics"].ask(p, y, bins)
        got = found(p, y, {**conventions["torchmetrics"](bins), "bins": [*edges, 2.0]})
        assert only(got, wanted) == close(wanted), bins


# ------------------------------------------------------------------ recorded values, for packages that may not be there
VECTORS_BY_HAND = np.array(
    [[10, 0, 0], [5, 3, 2], [2, 5, 3], [6, 3, 1], [1, 8, 1], [3, 3, 4], [7, 2, 1], [1, 1, 8]]
).astype(float) / 10  # fmt: skip
CLASS_BY_HAND = np.array([0, 1, 1, 0, 1, 2, 2, 2])
WEIGHT = 1 + np.arange(240) % 3 / 2

RECORDED_TABLES: dict[str, Table] = {
    "hundredths": (HUNDREDTHS, HAPPENED),
    "tenths": (TENTHS, EVERY_OTHER),
    "vectors": (VECTORS_BY_HAND, CLASS_BY_HAND),
}
RECORDED: list[tuple[str, str, int | None, tuple[float, ...], float]] = [
    # calibre 0.14.0 on Python 3.12
    ("calibre", "hundredths", 5, (0.07799999999999997, 0.1327272727272727, 0.08411662145674315), 1e-12),
    ("calibre", "hundredths", 10, (0.09383333333333335, 0.2652173913043478, 0.11669791681047953), 1e-12),
    ("calibre", "tenths", 5, (0.35454545454545455, 0.5666666666666667, 0.38924947208076144), 1e-12),
    ("calibre", "tenths", 10, (0.35454545454545455, 0.9, 0.45075693913884257), 1e-12),
    # mcgrad 0.1.5
    ("mcgrad", "hundredths", 10, (0.09383333333333332, 1.1853465346534653), 1e-12),
    ("mcgrad", "tenths", 5, (0.35454545454545455, 1.1), 1e-12),
    ("mcgrad", "tenths", 10, (0.35454545454545455, 1.1), 1e-12),
    # netcal 1.4.0
    ("netcal", "hundredths", 5, (0.07799999999999997, 0.1327272727272727, 0.0790217165396139), 1e-12),
    ("netcal", "hundredths", 10, (0.09383333333333334, 0.2652173913043478, 0.09307861743731309), 1e-12),
    ("netcal", "tenths", 5, (0.35454545454545455, 0.5666666666666667, 0.3466666666666667), 1e-12),
    ("netcal", "tenths", 10, (0.3545454545454546, 0.9, 0.39375), 1e-12),
    ("netcal.confidence", "vectors", 5, (0.2625, 0.7, 0.36111111111111116), 1e-12),
    ("netcal.confidence", "vectors", 10, (0.2625, 0.7, 0.32666666666666666), 1e-12),
    # R: the recipe of reliabilitydiag
    ("reliabilitydiag", "hundredths", None, (0.0203263005, 0.1013131061, 0.2437326389, 0.1627458333), 1e-9),
    # R: rms 6.5.0, val.prob(p, y)
    ("rms", "hundredths", None, (0.07717711, 0.10091270, 0.11226368, 0.1627458333), 1e-7),
    # R: SpecsVerification 0.5-3, BrierDecomp(p, y, bins = 10)
    ("SpecsVerification", "tenths", 10, (0.31318181818181823, 0.2024793388429752, 0.24793388429752064), 1e-12),
    # torchmetrics 1.9.0 with torch 2.13.0, in float64; alike on processors without vectors, with AVX2 and with AVX512
    ("torchmetrics", "hundredths", 5, (0.07799999999999994, 0.08307322882564348, 0.12), 1e-12),
    ("torchmetrics", "hundredths", 10, (0.09166666666666667, 0.10763329245641039, 0.208695652173913), 1e-12),
    ("torchmetrics", "hundredths", 20, (0.10466666666666667, 0.12781864156288056, 0.2358333333333334), 1e-12),
    ("torchmetrics", "tenths", 5, (0.31818181818181823, 0.4073193966767246, 1.0), 1e-12),
    ("torchmetrics", "tenths", 10, (0.4636363636363637, 0.5596264988202562, 1.0), 1e-12),
    ("torchmetrics.confidence", "vectors", 5, (0.16249999403953552, 0.17499999701976776, 0.20000001788139343), 1e-6),
    ("torchmetrics.confidence", "vectors", 10, (0.26249998807907104, 0.3691205680370331, 0.699999988079071), 1e-6),
]


@pytest.mark.parametrize(("name", "table", "bins", "values", "tolerance"), RECORDED)
def test_recorded_values(name: str, table: str, bins: int | None, values: tuple[float, ...], tolerance: float) -> None:
    convention = conventions[name]
    wanted = dict(zip(convention.metrics, values, strict=True))
    p, y = RECORDED_TABLES[table]
    p = p.astype(np.float32) if name == "torchmetrics.confidence" else p
    assert only(found(p, y, convention(bins)), wanted) == close(wanted, tolerance)


def test_versions_are_those_of_the_extra() -> None:
    text = Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8")
    extra = re.search(r"^peers = \[(.*?)\]", text, re.DOTALL | re.MULTILINE)
    assert extra is not None
    pinned = dict(re.findall(r'"([\w-]+)==([^"]+)"', extra[1]))
    peers = {name: peer.distribution for name, peer in {**ONE_COLUMN, **CLASSES}.items()}
    assert set(pinned) == set(peers.values()) - {"scikit-learn", *NEEDS_TORCH}
    assert all(conventions[name].version == pinned[package] for name, package in peers.items() if package in pinned)


def test_every_convention_is_compared_as_it_says() -> None:
    recorded = {name for name, *_ in RECORDED}
    assert set(conventions) == {*ONE_COLUMN, *CLASSES, *recorded}
    for name, convention in conventions.items():
        assert (convention.tested == "the package itself") == (name not in recorded)
        assert convention.several_classes == (name in CLASSES)


# ------------------------------------------------------------------ the arguments
def test_arguments_are_those_of_metrics() -> None:
    assert conventions["uncertainty-calibration"](10) == {
        "metrics": ["ece", "rmsce", "ece_debiased"],
        "bins": 10,
        "strategy": "uniform",
        "closed": "right",
    }
    assert conventions["model-diagnostics"]() == {"metrics": ["gap", "brier", "mcb", "dsc", "unc"]}
    assert conventions["rms"]()["smoother"] == "lowess"
    assert conventions["scikit-learn"]()["clip"] == np.finfo(float).eps


def test_arguments_are_new_at_each_call() -> None:
    first = conventions["netcal"](2)
    first["metrics"].append("brier")
    first["bins"].append(3.0)
    assert conventions["netcal"](2) == {
        "metrics": ["ece", "mce", "ace"],
        "bins": [0.0, 0.5, 1.0],
        "strategy": "uniform",
        "closed": "left",
    }


@pytest.mark.parametrize(
    ("name", "bins"),
    # what each package takes when it is not told
    [("calzone", 10), ("mapie", 50), ("mcgrad", 40), ("netcal", 10), ("pycalib", 15), ("scikit-learn", 5)],
)
def test_without_a_number_the_package_s_own_is_taken(name: str, bins: int) -> None:
    assert conventions[name]() == conventions[name](bins)


@pytest.mark.parametrize("name", [name for name in conventions if conventions[name].edges])
@pytest.mark.parametrize("bins", [2, 10, 15, 49, 100])
def test_edges_ascend_and_hold_every_score(name: str, bins: int) -> None:
    edges = conventions[name](bins)["bins"]
    if edges != bins:
        assert np.all(np.diff(edges) > 0)
        assert edges[0] <= 0
        assert edges[-1] >= 1


def test_edges_worked_by_hand() -> None:
    step = 1 / 10  # 3 * 0.1 is 0.30000000000000004, 6 * 0.1 is 0.6000000000000001, 1 - 4 * 0.1 is 0.6
    assert conventions["netcal"](10)["bins"][3:8] == [3 * step, 0.4, 0.5, 0.6000000000000001, 0.7000000000000001]
    assert conventions["torchmetrics"](10)["bins"][3:8] == [3 * step, 0.4, 0.5, 0.6, 0.7]
    assert conventions["torchmetrics"](2)["bins"] == [0.0, 0.5, 1.0, 2.0]
    assert conventions["torchmetrics.confidence"](5)["bins"][1:5] == [float(np.float32(k / 5)) for k in range(1, 5)]
    assert conventions["mapie"](3)["bins"] == [-1.0, 0.0, 0.5, 1.0]
    assert conventions["pycalib"](2)["bins"] == [0.0, 0.5 + 5e-9, 1.0 + 1e-8]
    assert conventions["pycalib.confidence"](14)["bins"][-2:] == [13 * (1 / 14) + 0.0, 1.0]


@pytest.mark.parametrize("bins", [3, 10, 15, 49, 100])
def test_edges_by_division_are_where_the_whole_part_jumps(bins: int) -> None:
    for k, edge in enumerate(conventions["relplot"](bins)["bins"][1:-1], start=1):
        assert int(edge / (1 / bins)) == k
        assert int(math.nextafter(edge, 0) / (1 / bins)) == k - 1


@pytest.mark.parametrize(
    ("name", "bins", "message"),
    [
        ("netcal", 0, "bins of 'netcal' must be a whole number from 1 to 100,000; got 0"),
        ("netcal", 2.0, r"must be a whole number from 1 to 100,000; got 2\.0"),
        ("netcal", True, "must be a whole number from 1 to 100,000; got True"),
        ("mapie", 1, "bins of 'mapie' must be a whole number from 2 to 100,000; got 1"),
        ("scikit-learn", "auto", "must be a whole number from 1 to 100,000; got 'auto'"),
        ("model-diagnostics", 10, "the convention 'model-diagnostics' has no bins; leave them out. Got 10"),
    ],
)
def test_numbers_of_bins_that_cannot_be(name: str, bins: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        conventions[name](bins)


# ------------------------------------------------------------------ the mapping
def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(
        ArgumentError, match=r"convention='sklearn' is not known\. Did you mean 'scikit-learn'\? It must be one of"
    ):
        conventions["sklearn"]


def test_what_is_not_offered_says_why() -> None:
    with pytest.raises(ArgumentError, match=r"no convention gives 'mcgrad\.ecce': it changes with the order of rows"):
        conventions["mcgrad.ecce"]
    assert not set(conventions.not_offered) & set(conventions)


def test_it_is_a_mapping() -> None:
    assert conventions.get("netcal") is conventions["netcal"]
    assert conventions.get("sklearn") is None
    assert "sklearn" not in conventions
    assert list(conventions) == sorted(conventions, key=str.casefold)
    assert len(conventions) == len(list(conventions))
    assert isinstance(conventions, Mapping)


def test_it_cannot_be_changed() -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        conventions["mine"] = conventions["netcal"]  # type: ignore[index]
    with pytest.raises(TypeError, match="does not support item assignment"):
        conventions.not_offered["mine"] = "no"  # type: ignore[index]
    with pytest.raises(AttributeError, match="cannot assign to field 'closed'"):
        conventions["netcal"].closed = "right"  # type: ignore[misc]


@pytest.mark.parametrize("name", conventions)
def test_a_convention_prints_in_words(name: str) -> None:
    convention = conventions[name]
    lines = str(convention).splitlines()
    assert len(repr(convention)) <= 80
    assert max(map(len, lines)) <= 80
    assert lines[0] == name
    words = " ".join(" ".join(lines).split())
    assert convention.version in words
    assert ", ".join(convention.metrics) in words
    assert "edges" in words if convention.edges else "edges" not in words


def test_the_mapping_prints_every_name() -> None:
    text = str(conventions)
    assert max(map(len, text.splitlines())) <= 80
    assert all(name in text for name in [*conventions, *conventions.not_offered])
    assert repr(conventions) == "<27 conventions of 15 packages; print() lists them>"

"""Confidence from sampled answers: the share of the samples that agree."""

from __future__ import annotations

import unicodedata

import polars as pl

from calframe._errors import ScoreError

_BEFORE, _AFTER = " \"'`*_([{“‘«", " \"'`*_.,;:!?)]}”’»"  # quotes, markup and stops around an answer


def normal(text: str) -> str:
    """Return an answer in the form in which answers are compared.

    Examples
    --------
    >>> normal("  **Paris**. "), normal("New   York"), normal("-5")
    ('paris', 'new york', '-5')
    """
    text = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return text.lstrip(_BEFORE).rstrip(_AFTER)


def samples_in(samples: pl.Series, column: str) -> pl.Series:
    """Return a column of lists of answers as lists of texts, or raise."""
    if isinstance(samples.dtype, pl.Array):
        samples = samples.arr.to_list()
    if isinstance(samples.dtype, pl.List | pl.Null) and not getattr(samples.dtype, "inner", pl.Null()).is_nested():
        return samples.cast(pl.List(pl.String))
    msg = (
        f"column {column!r} has type {samples.dtype}; it must hold a list of sampled answers, texts, in each row. "
        "Tables of one row per sample need by=, the question."
    )
    raise ScoreError(msg)


def of_samples(
    samples: pl.Series, answers: pl.Series | None, *, smoothing: float, normalize: bool
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return `_cf_share` and `_cf_answer` of rows that each hold a list of sampled answers, and counts of null rows.

    Parameters
    ----------
    samples : polars.Series
        The lists of texts.
    answers : polars.Series of texts, optional
        The answer of each row; by default the most frequent sample, the first sampled of equally frequent ones.
    smoothing : float
        What is added to the count of each answer, and of one unseen.
    normalize : bool
        Whether answers are compared in the form of `normal`.
    """
    rows = pl.DataFrame({"row": pl.int_range(len(samples), eager=True, dtype=pl.Int64), "text": samples})
    long = rows.explode("text").with_columns(key=_key(normalize=normalize))
    long = long.filter(pl.col("key").is_not_null()).with_row_index("place")
    each = long.group_by("row", "key").agg(pl.len().alias("count"), pl.col("place").min(), pl.col("text").first())
    whole = each.group_by("row").agg(pl.col("count").sum().alias("total"), pl.len().alias("distinct"))
    if answers is None:
        top = each.sort("row", "count", "place", descending=[False, True, False]).group_by("row").first()
        rows = rows.select("row").join(top, on="row", how="left", maintain_order="left")
    else:
        rows = rows.select("row", pl.lit(answers).alias("text")).with_columns(key=_key(normalize=normalize))
        rows = rows.join(each.select("row", "key", "count"), on=["row", "key"], how="left", maintain_order="left")
    rows = rows.join(whole, on="row", how="left", maintain_order="left")
    found = rows.select(_share(smoothing).alias("_cf_share"), pl.col("text").alias("_cf_answer"))
    sizes = samples.list.len()
    unsampled = rows.get_column("total").is_null()
    counts = {
        "missing": samples.null_count(),
        "empty list": int((sizes == 0).sum()),
        "list of nulls or empty texts": int((unsampled & (sizes > 0)).sum()),
        "missing answer": int((rows.get_column("key").is_null() & ~unsampled).sum()),
    }
    return found, counts


def of_questions(
    frame: pl.DataFrame, samples: pl.Series, by: list[str], *, smoothing: float, normalize: bool
) -> tuple[pl.Series, dict[str, int]]:
    """Return for rows that each hold one sample the share of its question's samples that say the same."""
    keys = [f"_cf_by{place}" for place in range(len(by))]
    rows = frame.select(pl.lit(samples).alias("text"), *(
        frame.get_column(name).alias(key) for name, key in zip(by, keys, strict=True)
    )).with_columns(key=_key(normalize=normalize))  # fmt: skip
    said = pl.col("key").is_not_null()
    rows = rows.with_columns(
        pl.when(said).then(pl.len().over(*keys, "key")).alias("count"),
        pl.col("key").count().over(keys).alias("total"),
        pl.col("key").drop_nulls().n_unique().over(keys).alias("distinct"),
    )
    share = rows.select(_share(smoothing)).to_series()
    return share, {"missing": int(rows.get_column("key").is_null().sum())}


def _share(smoothing: float) -> pl.Expr:
    """Return (count + a) / (total + a (distinct + 1)), where an answer never sampled has a count of 0."""
    count = pl.col("count").fill_null(0).cast(pl.Float64) + smoothing
    whole = pl.col("total").cast(pl.Float64) + smoothing * (pl.col("distinct").cast(pl.Float64) + 1.0)
    return pl.when(pl.col("key").is_not_null()).then(count / whole)


def _key(*, normalize: bool) -> pl.Expr:
    """Return the form in which texts are compared, each distinct text worked on once; null where nothing is said."""
    if not normalize:
        return pl.when(pl.col("text") != "").then(pl.col("text"))

    def normals(texts: pl.Series) -> pl.Series:
        known = {text: normal(text) or None for text in texts.drop_nulls().unique()}
        return texts.replace_strict(known, return_dtype=pl.String) if known else texts

    return pl.col("text").map_batches(normals, return_dtype=pl.String)

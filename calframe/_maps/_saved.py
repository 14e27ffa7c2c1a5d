"""Maps as JSON: what is written of a map, and a map from what was written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from calframe._errors import CalframeError
from calframe._maps._forms import from_record, to_record
from calframe._maps._json import Reader, each, entries, number, optional, scalar, text, texts, truth, whole
from calframe._maps._map import CalibrationMap, Json
from calframe._maps._segments import Segments
from calframe._results import json_ready

SCHEMA = "calframe.calibration_map"
SCHEMA_VERSION = 1

_HEAD: Mapping[str, Reader] = {
    "method": text,
    "options": entries,
    "label": text,
    "scores": texts,
    "classes": each(scalar),
    "positive": optional(scalar),
    "vector": truth,
    "by": texts,
    "pooling": text,
    "link": text,
    "floor": number,
    "n": whole,
    "n_missing": whole,
    "n_invalid": whole,
    "low": optional(number),
    "high": optional(number),
    "notes": texts,
    "mark": text,
}


def record_of(the_map: CalibrationMap) -> Json:
    """Return a map as JSON-ready data with a schema and its version; floats keep every digit."""
    head = {name: _plain(getattr(the_map, name)) for name in _HEAD}
    start = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION}
    return start | head | {"segments": the_map.segments.to_record(), "form": to_record(the_map.form)}


def load_map(path: str | Path) -> CalibrationMap:
    """Read a calibration map that `CalibrationMap.save` wrote.

    Parameters
    ----------
    path : str or Path
        The JSON file.

    Raises
    ------
    CalframeError
        If the file holds no map, or one of a version that this calframe does not know.
    """
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        msg = f"{str(path)!r} is no calibration map: it is not JSON ({error})."
        raise CalframeError(msg) from error
    return map_of(record, source=str(path))


def map_of(record: Any, *, source: str) -> CalibrationMap:
    """Return the map of a record that `CalibrationMap.to_dict` made."""
    if not isinstance(record, Mapping) or record.get("schema") != SCHEMA:
        msg = f"{source!r} is no calibration map: it has no schema {SCHEMA!r}. Maps are written by .save(path)."
        raise CalframeError(msg)
    version = record.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        msg = (
            f"{source!r} is a calibration map of version {version!r}; this calframe reads version {SCHEMA_VERSION}. "
            "Update calframe, or fit and save the map anew."
        )
        raise CalframeError(msg)
    try:
        return _made(record)
    except ValueError as error:
        msg = f"{source!r} is a damaged calibration map ({str(error).rstrip('.')}); fit and save it anew."
        raise CalframeError(msg) from error


def _made(record: Mapping[str, Any]) -> CalibrationMap:
    for name in (*_HEAD, "segments", "form"):
        if name not in record:
            msg = f"{name} is missing"
            raise ValueError(msg)
    head = {name: read(record[name], name) for name, read in _HEAD.items()}
    return CalibrationMap(**head, segments=Segments.from_record(record["segments"]), form=from_record(record["form"]))


def _plain(value: Any) -> Any:
    """Return a value of any library as JSON has it."""
    if isinstance(value, Mapping):
        return json_ready({name: _plain(one) for name, one in value.items()})
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    listed = getattr(value, "tolist", None)
    if callable(listed):
        return listed()
    return float(value) if isinstance(value, Fraction) else value

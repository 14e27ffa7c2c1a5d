"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from calframe._measures import _own
from tests._tables import LIBRARIES, Maker

# The same examples every time: a merge must not depend on luck. HYPOTHESIS_PROFILE=default searches anew.
settings.register_profile("same", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(autouse=True)
def _no_own_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test or an example in a docstring registers is unknown to other tests."""
    monkeypatch.setattr(_own, "_OWN", {})


@pytest.fixture(params=LIBRARIES)
def make(request: pytest.FixtureRequest) -> Maker:
    """A maker of tables, one run for each library."""
    return Maker(request.param)


@pytest.fixture
def reference_folder() -> Path:
    """The folder with the independent reference values, named by CALFRAME_REFERENCE."""
    folder = os.environ.get("CALFRAME_REFERENCE")
    if folder is None:
        pytest.skip("CALFRAME_REFERENCE does not name the folder of reference values")
    return Path(folder)

"""A message server with the accounts of rule managers and controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ascar.messaging import MessageServer, controller_user, manager_user

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessageServer]:
    folder: Path = tmp_path_factory.mktemp("server")
    with MessageServer(folder, [manager_user(), controller_user("controller")]) as started:
        yield started

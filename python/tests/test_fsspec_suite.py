"""fsspec's own abstract test suite, against a real daemon."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import fsspec.tests.abstract as abstract
import pytest
from conftest import Daemon
from fsspec.implementations.local import LocalFileSystem

from haul.fs import HaulFileSystem


class HaulFixtures(abstract.AbstractFixtures):
    @pytest.fixture(scope="class")
    @classmethod
    def fs(cls, daemon: Daemon) -> Iterator[HaulFileSystem]:
        fs = HaulFileSystem("127.0.0.1", daemon.port, state=daemon.state)
        yield fs
        fs.close()

    @pytest.fixture
    def fs_path(self, fs: HaulFileSystem) -> Iterator[str]:
        path = f"/data/suite-{uuid.uuid4().hex}"
        fs.mkdir(path)
        yield path
        fs.rm(path, recursive=True)

    @pytest.fixture(scope="class")
    @classmethod
    def local_fs(cls) -> LocalFileSystem:
        return LocalFileSystem(auto_mkdir=True)

    @pytest.fixture
    def supports_empty_directories(self) -> bool:
        return True


class TestCopy(abstract.AbstractCopyTests, HaulFixtures):
    pass


class TestGet(abstract.AbstractGetTests, HaulFixtures):
    pass


class TestPut(abstract.AbstractPutTests, HaulFixtures):
    pass


class TestOpen(abstract.AbstractOpenTests, HaulFixtures):
    pass


class TestPipe(abstract.AbstractPipeTests, HaulFixtures):
    pass

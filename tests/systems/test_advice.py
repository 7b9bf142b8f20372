"""What manuals advise: values that the settings have, that promise what the defaults do, for every memory."""

from __future__ import annotations

import pytest

from ascar.catalogues.advice import advised_values
from ascar.catalogues.mariadb import mariadb
from ascar.catalogues.postgresql import postgresql_of
from ascar.optimizers.starting import start_proposals
from ascar.results.trial import Origin
from ascar.space import Choices, Space
from ascar.study import StartSection
from ascar.systems import Advising
from ascar.systems.postgresql.existing import ExistingPostgreSQL
from ascar.systems.postgresql.space import postgresql_space

GIB = 1 << 30
SETTINGS = {
    "postgresql 15": tuple(postgresql_of(15).values()),
    "postgresql 18": tuple(postgresql_of(18).values()),
    "mariadb": tuple(mariadb().values()),
}


@pytest.mark.parametrize("system", SETTINGS)
@pytest.mark.parametrize("memory_bytes", [64 << 20, GIB, 512 * GIB])
def test_an_advised_value_is_one_of_the_setting_and_weakens_nothing(system, memory_bytes):
    settings = {one.parameter_name: one for one in SETTINGS[system]}
    advised = advised_values(settings.values(), memory_bytes)
    assert advised
    for name, value in advised.items():
        parameter = settings[name].parameter()
        if isinstance(parameter.domain, Choices):
            assert value in parameter.domain.values
        elif memory_bytes == GIB:
            assert parameter.canonical(value) == value
        found = Space((parameter,), name="one").nearest({name: value})
        assert not parameter.weakens(found[name])


def test_shares_of_the_memory_are_in_the_settings_own_unit():
    advised = advised_values(SETTINGS["postgresql 15"], GIB)
    assert advised["shared_buffers"] == 262_144  # kB
    assert advised["effective_cache_size"] == 786_432
    assert advised["wal_compression"] == "lz4"
    pool = advised_values(SETTINGS["mariadb"], GIB)["innodb_buffer_pool_size"]
    assert isinstance(pool, int)
    assert pool % 8_388_608 == 0
    assert 0.69 * GIB < pool <= 0.7 * GIB


def test_the_first_trial_of_a_search_of_postgresql_is_the_advice():
    space = postgresql_space("expert", SETTINGS["postgresql 15"], 100, GIB)
    (found,) = start_proposals(StartSection(), space, 1, (), advised_values(SETTINGS["postgresql 15"], GIB))
    assert found.origin is Origin.ADVISED
    assert space.is_valid(found.configuration)
    assert found.configuration["shared_buffers"] == 262_144
    assert found.configuration["work_mem"] == space.default()["work_mem"]
    # Less memory than the defaults may use allows no more than these.
    small = postgresql_space("expert", SETTINGS["postgresql 15"], 100, 64 << 20)
    advised = advised_values(SETTINGS["postgresql 15"], 64 << 20)
    for one in start_proposals(StartSection(), small, 1, (), advised):
        assert small.is_valid(one.configuration)


def test_the_targets_that_have_a_manual_say_what_it_advises():
    existing = ExistingPostgreSQL({"server": "existing", "host": "/nowhere", "memory": "1 GiB"})
    assert isinstance(existing, Advising)
    assert existing.advice["shared_buffers"] == 262_144

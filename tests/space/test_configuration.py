import json
import pickle
import subprocess
import sys

import pytest

from ascar.space import Configuration


def test_a_configuration_is_a_frozen_mapping():
    configuration = Configuration({"fs": "ext4", "size": 4096})
    assert dict(configuration) == {"fs": "ext4", "size": 4096}
    assert "fs" in configuration
    assert len(configuration) == 2
    with pytest.raises(TypeError):
        configuration["fs"] = "xfs"
    with pytest.raises(AttributeError, match="immutable"):
        configuration._values = {}
    with pytest.raises(AttributeError, match="immutable"):
        del configuration._values


def test_it_does_not_change_with_what_it_was_made_of():
    values = {"fs": "ext4"}
    configuration = Configuration(values)
    values["fs"] = "xfs"
    assert configuration["fs"] == "ext4"


def test_equality_and_hash_do_not_depend_on_order():
    one, other = Configuration({"a": 1, "b": True}), Configuration({"b": True, "a": 1})
    assert one == other
    assert hash(one) == hash(other)
    assert one.text == other.text
    assert one.key() == other.key()
    assert one != Configuration({"a": 2, "b": True})
    assert one != {"a": 1, "b": True}


def test_canonical_text():
    configuration = Configuration({"b": True, "a": 0.1, "é": "ü", "c": 1})
    assert configuration.text == '{"a":0.1,"b":true,"c":1,"\\u00e9":"\\u00fc"}'
    assert json.loads(configuration.text) == dict(configuration)


def test_the_key_is_stable_across_processes():
    configuration = Configuration({"fs": "ext4", "size": 4096, "x": 0.1, "on": False})
    assert configuration.key() == "c5c10ee171fd5d9f"
    program = (
        "from ascar.space import Configuration; "
        "print(Configuration({'on': False, 'x': 0.1, 'size': 4096, 'fs': 'ext4'}).key())"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == configuration.key()


def test_replaced_and_copies():
    configuration = Configuration({"a": 1})
    assert configuration.replaced(a=2) == Configuration({"a": 2})
    assert configuration["a"] == 1
    assert pickle.loads(pickle.dumps(configuration)) == configuration

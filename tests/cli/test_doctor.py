from __future__ import annotations

import shutil

from ascar.program.node_binary import find_ascard


def test_the_doctor_names_every_target_and_what_it_needs(ascar):
    document = ascar("doctor", "--json").document
    assert {target["kind"] for target in document["targets"]} >= {"localfs", "sqlite", "table", "simulated"}
    needs = {need["name"]: need for need in document["needs"]}
    assert needs["mkfs.xfs"]["debian_package"] == needs["mkfs.xfs"]["fedora_package"] == "xfsprogs"
    assert needs["fio"]["found"] == shutil.which("fio")
    assert needs["ascard proxy"]["found"] == str(find_ascard())


def test_what_is_missing_is_named_with_the_packages_that_bring_it(process, path_without):
    environment = {"PATH": path_without("fio")}
    document = process("doctor", "--json", env=environment).document
    assert document["missing_debian_packages"] == document["missing_fedora_packages"] == ["fio"]
    assert not next(target for target in document["targets"] if target["kind"] == "localfs")["ready"]
    text = process("doctor", env=environment).out
    assert "apt-get install fio" in text
    assert "dnf install fio" in text
    assert "target localfs: cannot be tuned here: fio" in text
    assert "target simulated: ready" in text

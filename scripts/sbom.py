#!/usr/bin/env python3
"""Writes what the program haul is made of, as a CycloneDX 1.5 bill of materials: scripts/sbom.py TARGET >haul.cdx.json

Every crate that is compiled into it for TARGET, with its version, licence, source and the hash that Cargo.lock holds it to; what only builds or tests it
is left out. The same lock file gives the same bytes.
"""

import json
import re
import subprocess
import sys


def metadata(target):
    command = ["cargo", "metadata", "--locked", "--format-version=1", "--filter-platform", target]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def checksums():
    """The hashes of Cargo.lock, by name and version."""
    found = {}
    with open("Cargo.lock", encoding="utf-8") as lock:
        for block in lock.read().split("[[package]]"):
            fields = dict(re.findall(r'^(name|version|checksum) = "(.*)"$', block, re.MULTILINE))
            if "checksum" in fields:
                found[fields["name"], fields["version"]] = fields["checksum"]
    return found


def compiled_into(nodes, root):
    """The packages below `root`, by normal dependencies alone, and what each of them needs."""
    needs, waiting = {}, [root]
    while waiting:
        package = waiting.pop()
        if package in needs:
            continue
        normal = [dep["pkg"] for dep in nodes[package]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        needs[package] = sorted(normal)
        waiting += normal
    return needs


def component(package, hashes):
    purl = f"pkg:cargo/{package['name']}@{package['version']}"
    made = {"type": "library", "bom-ref": purl, "name": package["name"], "version": package["version"], "purl": purl}
    if package["license"]:
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if package["description"]:
        made["description"] = " ".join(package["description"].split())
    checksum = hashes.get((package["name"], package["version"]))
    if checksum:
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return made


def main():
    data = metadata(sys.argv[1])
    packages = {package["id"]: package for package in data["packages"]}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    root = next(package["id"] for package in data["packages"] if package["name"] == "haul-cli")
    needs, hashes = compiled_into(nodes, root), checksums()
    made = {package: component(packages[package], hashes) for package in needs}
    refs = {package: made[package]["bom-ref"] for package in needs}
    main_component = {**made.pop(root), "type": "application", "name": "haul"}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": main_component},
        "components": sorted(made.values(), key=lambda one: one["bom-ref"]),
        "dependencies": sorted(
            ({"ref": refs[package], "dependsOn": sorted(refs[dep] for dep in deps)} for package, deps in needs.items()),
            key=lambda one: one["ref"],
        ),
    }
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main()

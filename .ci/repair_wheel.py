#!/usr/bin/env python3
"""Makes the wheel that scikit-build-core built run on other machines: auditwheel puts in the libraries that it is linked
with, and this beside them the licence of each and of all that is compiled in.

    .ci/repair_wheel.py WHEEL FOLDER      leaves the repaired wheel in FOLDER; needs auditwheel and patchelf

A licence is found by the package that owns the file (dpkg or rpm), or, of what was built from source, in
share/licenses/NAME of the prefix that the file lies in. A library without one is an error.
"""

import glob
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from auditwheel.wheeltools import InWheelCtx

LIBRARIES = "attest_attention.libs"
PLACE = "attest/program/share/licenses"
# What is compiled in, by a file of each: its name in PLACE, and where its headers or archives may lie.
COMPILED_IN = {
    "boost": "boost/version.hpp",
    "cli11": "CLI/CLI.hpp",
    "eigen": "Eigen/Core",
    "nlohmann-json": "nlohmann/json.hpp",
    "rapidcheck": "rapidcheck.h",
}
# libFuzzer, which fuzz/CMakeLists.txt links where it lies here.
LIBFUZZER = "/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer_no_main-*.a"
PREFIXES = ("/usr/local", "/usr")
# Full texts to which Debian's copyright files refer.
COMMON = pathlib.Path("/usr/share/common-licenses")


def output_of(*words):
    return subprocess.run(words, check=False, capture_output=True, text=True).stdout


def linked_libraries(wheel):
    """The true files of all libraries that the wheel's programs load, by the name that auditwheel gives them."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
        for file in pathlib.Path(folder).rglob("*"):
            if not file.is_file() or file.read_bytes()[:4] != b"\x7fELF":
                continue
            for path in re.findall(r"=> (/\S+) \(", output_of("ldd", str(file))):
                library = pathlib.Path(path).resolve()
                stem, rest = library.name.split(".", 1)
                found[f"{stem}-{hashlib.sha256(library.read_bytes()).hexdigest()[:8]}.{rest}"] = library
    return found


def package_of(file):
    """(package, version, its licence files); the package is empty where none owns the file."""
    # Where /lib is a link to /usr/lib, packages may name either.
    names = [str(file), str(file).removeprefix("/usr")]
    if shutil.which("dpkg-query"):
        for name in names:
            owner = output_of("dpkg-query", "-S", name).partition(": ")[0].partition(",")[0]
            if owner:
                version = output_of("dpkg-query", "-W", "-f", "${Version}", owner)
                return owner.partition(":")[0], version, [pathlib.Path("/usr/share/doc", owner.partition(":")[0], "copyright")]
    if shutil.which("rpm"):
        for name in names:
            owner = output_of("rpm", "-qf", "--qf", "%{NAME} %{VERSION}", name).split()
            if len(owner) == 2:
                return *owner, [pathlib.Path(line) for line in output_of("rpm", "-q", "--licensefiles", owner[0]).split()]
    return "", "", []


def licences_of(name, file):
    """(what the file is of, texts) for the notice."""
    package, version, texts = package_of(file)
    if not package:
        for prefix in PREFIXES:
            folder = pathlib.Path(prefix, "share/licenses", name)
            if file.is_relative_to(prefix) and folder.is_dir():
                package, version, texts = name, "built from source", sorted(folder.iterdir())
                break
    texts = [text for text in texts if text.is_file()]
    if not texts:
        sys.exit(f"repair_wheel.py: no licence of {file} ({package or 'no package owns it'}) is to be found")
    return f"{package} {version}", texts


def header(path):
    for prefix in PREFIXES:
        for folder in ("include", "include/eigen3"):
            if pathlib.Path(prefix, folder, path).is_file():
                return pathlib.Path(prefix, folder, path)
    sys.exit(f"repair_wheel.py: {path} lies in none of {', '.join(PREFIXES)}; what the wheel has of it has no licence")


def find_from_root(root):
    """Behind walls there is no /proc, without which the loader knows no $ORIGIN: the libraries are seen in a folder of /
    (core/isolation/walls/construction.cc)."""
    for program in ("kernel-start", "kernel-host"):
        file = str(root / "attest/program/libexec/attest" / program)
        paths = output_of("patchelf", "--print-rpath", file).strip()
        subprocess.run(["patchelf", "--force-rpath", "--set-rpath", f"{paths}:/{LIBRARIES}", file], check=True)


def add_licences(root, origins):
    place = root / PLACE
    place.mkdir(parents=True)
    parts = {}
    for library in sorted((root / LIBRARIES).iterdir()):
        if library.name not in origins:
            sys.exit(f"repair_wheel.py: where {library.name} is from is not known")
        name = re.match(r"lib([A-Za-z0-9_+-]+?)-[0-9a-f]{8}\.", library.name)[1]
        parts[name] = (library.name, origins[library.name])
    for name, path in COMPILED_IN.items():
        parts[name] = ("compiled in", header(path))
    for archive in glob.glob(LIBFUZZER):
        parts["libfuzzer"] = ("compiled in", pathlib.Path(archive))
    lines, common = [], set()
    for name, (what, file) in parts.items():
        package, texts = licences_of(name, file)
        for text in texts:
            content = text.read_text(errors="replace")
            target = place / (f"{name}.txt" if len(texts) == 1 else f"{name}-{text.name}.txt")
            target.write_text(content)
            common.update(re.findall(rf"{COMMON}/([A-Za-z0-9.+-]*[A-Za-z0-9])", content))
            lines.append(f"{target.name}: {what} ({package})")
    vega = pathlib.Path(__file__).resolve().parents[1] / "reports/vega/node_modules/vega/LICENSE"
    if vega.is_file():
        shutil.copy(vega, place / "vega.txt")
        lines.append("vega.txt: compiled in, for the plots of reports")
    for name in sorted(common):
        if (COMMON / name).is_file():
            shutil.copy((COMMON / name).resolve(), place / f"common-{name}.txt")
            lines.append(f"common-{name}.txt: the text to which others here refer as {COMMON / name}")
    (place / "README.txt").write_text(
        "Attest is under the Apache License 2.0 (share/doc/attest/LICENSE). What this wheel has of others, and the licences:\n\n"
        + "\n".join(lines)
        + "\n\nThe libraries are linked dynamically: any of them can be replaced by another build of the same interface. Their\n"
        "sources are those of the distribution's packages named here, in these versions.\n"
    )


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    wheel, folder = sys.argv[1:]
    origins = linked_libraries(wheel)
    with tempfile.TemporaryDirectory() as repaired:
        subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", repaired, wheel], check=True)
        (bare,) = pathlib.Path(repaired).iterdir()
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        with InWheelCtx(bare, pathlib.Path(folder, bare.name).absolute()) as unpacked:
            find_from_root(unpacked.path)
            add_licences(unpacked.path, origins)
    print(pathlib.Path(folder, bare.name))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compiles a development: the catalogue's in this folder, or rounding/. Commands, each for one test:

  names        of the catalogue: every row of theorems.md is proved here under its mechanical name or stands in
               not_here.txt with a reason; no theorem without a row. Of rounding/: every theorem stands in its README.
               Of both: no unproved statement in any file. Needs no Coq.
  compile      coqc on every file, in a folder of its own.
  assumptions  Print Assumptions of every theorem: the axioms of allowed_axioms.txt and no other. After compile.
  coqchk       the independent checker on every file, and on MathComp; not on the libraries of real numbers that
               rounding/ has. After compile.
  stamp        compile and assumptions, and when both pass the hashes of what they read, into compiled.txt.
  stamped      compiled.txt is of the files as they stand. Needs no Coq.
"""

import argparse
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

# Words that leave something unproved, or switch a check of Coq off.
UNPROVED = re.compile(
    r"\b(Admitted|admit|give_up|Axioms?|Parameters?|Conjectures?|Abort|Unset\s+(Guard|Positivity|Universe)\s+Checking|"
    r"bypass_check|type-in-type)\b"
)


class Failure(Exception):
    """What is wrong, a line each."""


def project(folder):
    """The options for coqc and the files, in order, of _CoqProject."""
    words = (folder / "_CoqProject").read_text().split()
    files = [word for word in words if word.endswith(".v")]
    options = [word for word in words if not word.endswith(".v") and word != "-arg"]
    return options, files


def without_comments(text):
    """Coq's comments nest; a string could hold one's beginning, and no file here has strings."""
    kept, depth, at = [], 0, 0
    while at < len(text):
        if text.startswith("(*", at):
            depth, at = depth + 1, at + 2
        elif depth and text.startswith("*)", at):
            depth, at = depth - 1, at + 2
        else:
            if not depth:
                kept.append(text[at])
            at += 1
    return "".join(kept)


def namespace(folder):
    """What the files of the folder are called by: "Attest" for -Q . Attest."""
    options = project(folder)[0]
    return options[options.index("-Q") + 2]


def module(folder, file):
    """What a file of the folder, or of one inside, is called: "Attest.Rounding.sums.merge"."""
    return f"{namespace(folder)}." + file.removesuffix(".v").replace("/", ".")


def sources(folder, build):
    """Every file of the development as _CoqProject names it: not those of another one inside, nor compiled copies."""
    others = {build.resolve()} | {other.parent for other in folder.rglob("_CoqProject") if other.parent != folder}
    files = [file for file in sorted(folder.rglob("*.v")) if not others & set(file.parents)]
    return [file.relative_to(folder).as_posix() for file in files]


def theorems(folder):
    """(file, name) of every statement that Theorem introduces, in order."""
    found = []
    for file in project(folder)[1]:
        code = without_comments((folder / file).read_text())
        found += [(file, name) for name in re.findall(r"\bTheorem\s+(\w+)", code)]
    return found


def catalogue(path):
    """The names of all rows: the first cells of the tables, and the list of reductions."""
    text = path.read_text()
    names, in_reductions = [], False
    for line in text.splitlines():
        if line.startswith("## "):
            in_reductions = line.startswith("## reductions")
        if line.startswith("| `"):
            names += re.findall(r"`([a-z0-9]+\.[a-z0-9-]+)`", line.split("|")[1])
        elif in_reductions:
            names += re.findall(r"`(reduction\.[a-z0-9-]+)`", line)
    if len(names) != len(set(names)):
        raise Failure("the catalogue names a row twice")
    return names


def excluded(folder):
    """Rows of not_here.txt: 'name: reason'."""
    rows = {}
    for line in (folder / "not_here.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, colon, reason = line.partition(": ")
        if not colon or not reason.strip():
            raise Failure(f"not_here.txt: '{line}' gives no reason; a line is 'row: reason'")
        if name in rows:
            raise Failure(f"not_here.txt names {name} twice")
        rows[name] = reason
    return rows


def mechanical(row):
    return re.sub(r"[.-]", "_", row)


def against_the_catalogue(folder, catalogue_path, names):
    """What is wrong, and what stands where nothing is."""
    rows = catalogue(catalogue_path)
    reasons = excluded(folder)
    wrong = []
    for row in rows:
        if (mechanical(row) in names) == (row in reasons):
            wrong.append(
                f"{row} is both proved and in not_here.txt"
                if row in reasons
                else f"{row} is neither proved, as {mechanical(row)}, nor in not_here.txt"
            )
    wrong += [f"not_here.txt names {row}, which is no row of the catalogue" for row in reasons if row not in rows]
    proved = {mechanical(row) for row in rows}
    wrong += [f"{name} is the name of no row" for name in names if name.partition("__")[0] not in proved]
    return wrong, f"{len(rows)} rows: {len(rows) - len(reasons)} proved by {len(names)} theorems, {len(reasons)} not here"


def against_the_readme(folder, names):
    """The same of theorems that are rows of a table in the folder's README.md."""
    listed = re.findall(r"^\| `(\w+)`", (folder / "README.md").read_text(), re.MULTILINE)
    wrong = [f"{name} does not stand in README.md" for name in names if name not in listed]
    wrong += [f"README.md names {name}, which is no theorem" for name in listed if name not in names]
    return wrong, f"{len(names)} theorems, all in README.md"


def check_names(folder, catalogue_path, build):
    names = [name for _, name in theorems(folder)]
    of_catalogue = (folder / "not_here.txt").exists()
    wrong, right = against_the_catalogue(folder, catalogue_path, names) if of_catalogue else against_the_readme(folder, names)
    wrong += [f"{name} is stated twice" for name in sorted(set(names)) if names.count(name) > 1]
    listed = set(project(folder)[1])
    for file in sources(folder, build):
        if file not in listed:
            wrong.append(f"{file} is not in _CoqProject")
        for word in UNPROVED.finditer(without_comments((folder / file).read_text())):
            wrong.append(f"{file} has '{word.group()}'")
    if wrong:
        raise Failure("\n".join(wrong))
    print(right)


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def compile_all(folder, build, coqc):
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    options, files = project(folder)
    for file in files:
        (build / file).parent.mkdir(exist_ok=True)
        shutil.copy(folder / file, build / file)
        run([coqc, *options, file], build)
    print(f"{len(files)} files compiled")


def allowed_axioms(folder):
    lines = (folder / "allowed_axioms.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def check_assumptions(folder, build, coqc):
    options, files = project(folder)
    allowed, names = allowed_axioms(folder), theorems(folder)
    lines = ["Require " + " ".join(module(folder, file) for file in files) + "."]
    for file, name in names:
        lines.append(f'Redirect "{name}" Print Assumptions {module(folder, file)}.{name}.')
    for old in build.glob("*.out"):
        old.unlink()
    (build / "assumptions.v").write_text("\n".join(lines) + "\n")
    run([coqc, *options, "assumptions.v"], build)
    wrong = []
    for _, name in names:
        printed = (build / f"{name}.out").read_text().strip()
        if printed == "Closed under the global context":
            continue
        axioms = re.findall(r"^(\S+)\s*:", printed, re.MULTILINE)[1:]  # the first is the heading
        if not axioms or not printed.startswith("Axioms:") or not set(axioms) <= allowed:
            wrong.append(f"{name} rests on more than is allowed:\n{printed}")
    if wrong:
        raise Failure("\n".join(wrong))
    print(f"{len(names)} theorems, no axiom beyond the {len(allowed)} allowed")


def hashes(folder):
    """What a stamp vouches for, as sha256sum writes it."""
    files = ["_CoqProject", "allowed_axioms.txt", *sorted(project(folder)[1])]
    return "".join(f"{hashlib.sha256((folder / file).read_bytes()).hexdigest()}  {file}\n" for file in files)


def write_stamp(folder, build, coqc):
    compile_all(folder, build, coqc)
    check_assumptions(folder, build, coqc)
    version = run([coqc, "--print-version"], build).split()[0]
    (folder / "compiled.txt").write_text(f"# Coq {version}\n{hashes(folder)}")
    print(f"stamped: Coq {version}")


def check_stamp(folder):
    stamp = (folder / "compiled.txt").read_text()
    stands, stamped = hashes(folder).splitlines(), stamp.splitlines()[1:]
    changed = sorted({line.split()[1] for line in set(stands) ^ set(stamped)})
    if changed or not re.fullmatch(r"# Coq [0-9.]+", stamp.splitlines()[0]):
        raise Failure(f"not compiled since they changed: {', '.join(changed)}; run check.py stamp")
    print(f"{len(stands)} files as they were compiled and checked")


def check_again(folder, build, coqchk):
    _, files = project(folder)
    space, allowed = namespace(folder), allowed_axioms(folder)
    modules = [module(folder, file) for file in files]
    # What rests on axioms of a library is checked by itself: the library of real numbers takes an hour.
    modules = [word for one in modules for word in (["-norec", one] if allowed else [one])]
    printed = run([coqchk, "-silent", "-o", "-Q", ".", space, *modules], build)
    print(printed)
    summary = printed.partition("CONTEXT SUMMARY")[2]
    for heading in ("type-in-type", r"unsafe \(co\)fixpoints", "positivity"):
        if not re.search(rf"^\* .*{heading}.*:\s*<none>", summary, re.MULTILINE):
            raise Failure(f"coqchk does not say that '{heading}' is <none>")
    listed = re.search(r"^\* Axioms:(.*?)^\*", summary, re.MULTILINE | re.DOTALL)
    if not listed:
        raise Failure("coqchk lists no axioms, and does not say that there are none")
    # Of libraries that it does not check it lists what a module type hides, too: Print Assumptions is what tells those.
    for axiom in listed.group(1).replace("<none>", "").split():
        if not allowed or axiom.startswith(space + "."):
            raise Failure(f"coqchk finds the axiom {axiom}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["names", "compile", "assumptions", "coqchk", "stamp", "stamped"])
    parser.add_argument("--folder", type=pathlib.Path, default=HERE, help="the development (default: here)")
    parser.add_argument("--catalogue", type=pathlib.Path, default=HERE.parents[1] / "theorems.md")
    parser.add_argument("--build", type=pathlib.Path, default=HERE / "build", help="where compiled files go")
    parser.add_argument("--coqc", default="coqc")
    parser.add_argument("--coqchk", default="coqchk")
    options = parser.parse_args()
    try:
        if options.command == "names":
            check_names(options.folder.resolve(), options.catalogue, options.build)
        elif options.command == "compile":
            compile_all(options.folder, options.build, options.coqc)
        elif options.command == "assumptions":
            check_assumptions(options.folder, options.build, options.coqc)
        elif options.command == "stamp":
            write_stamp(options.folder, options.build, options.coqc)
        elif options.command == "stamped":
            check_stamp(options.folder)
        else:
            check_again(options.folder, options.build, options.coqchk)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Foreign mutants: how many small changes to kernels that other people wrote does `attest check` see?

    python3 mutants.py [kernels.toml] --out DIR [--count 30] [--time 60s] [--witness 60s] [--only GLOB] [--jobs 2]

For each kernel of the list: the library is installed by its recipe, the kernel as it is must hold, and `--count`
mutants of it (rules.py) are checked, each by `attest check --fail-fast` for `--time`. Where one survives, a witness is
looked for: an input on which it is wrong, among those of inputs.py, which no generator of Attest drew, by a check with
another seed and by `attest fuzz`, for `--witness` each. A mutant that nothing tells from the kernel may be the same
function: it stands in the results and counts neither way. What is done is not done again; DIR/mutants.json has the
results.

ATTEST_PROGRAM is the program, `attest` where it is not set. NumPy is needed.
"""

import argparse
import ast
import concurrent.futures
import dataclasses
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib

import inputs
import rules

HERE = pathlib.Path(__file__).resolve().parent
NEEDED = {"name", "version", "recipe", "source", "functions", "kernel", "dtypes"}
KEYS = NEEDED | {"between", "mended", "build", "kv_dtype", "module", "properties", "timeout"}
ORIGINAL = "orig"  # a folder whose name is as long as the mutants' numbers, so that built code does not differ by that
OUTCOMES = ("killed", "missed", "not told apart", "same code", "does not start", "does not compile")


class Wrong(Exception):
    """What ends a kernel's part with one line."""


@dataclasses.dataclass
class Kernel:
    entry: dict
    folder: pathlib.Path  # what is made for it
    library: pathlib.Path
    source: pathlib.Path
    text: str  # of the source, with what is known to be wrong mended

    @property
    def python(self):
        return self.source.suffix == ".py"

    def fill(self, template, place):
        return template.format(library=self.library, list=HERE, mutant=place, source=self.source.name)

    def make(self, place, text):
        """The kernel with that source, in a folder of its own; False where it does not compile."""
        place.mkdir(parents=True, exist_ok=True)
        (place / self.source.name).write_text(text)
        if self.python:
            return parsed(text) is not None
        with (place / "build.log").open("w") as log:
            command = ["sh", "-c", self.fill(self.entry["build"], place)]
            return subprocess.run(command, cwd=place, stdout=log, stderr=log).returncode == 0

    def same(self, place):
        """Whether it is what the kernel as it is is: byte by byte as built, of Python as it reads."""
        if self.python:
            return ast.dump(parsed((place / self.source.name).read_text())) == ast.dump(parsed(self.text))
        return self.code_in(place) == self.code_in(self.folder / ORIGINAL)

    def code_in(self, place):
        """What was built in a folder, without the folder's name and without the hash of all of it."""
        built = pathlib.Path(self.fill(self.entry["kernel"], place))
        stripped = place / "stripped"
        subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", built, stripped], check=True)
        return stripped.read_bytes().replace(bytes(place), b"")

    def run(self, command, place, *options):
        """(exit status, what was printed, seconds)"""
        line = [os.environ.get("ATTEST_PROGRAM", "attest"), command, "--kernel", self.fill(self.entry["kernel"], place),
                "--dtype", ",".join(self.entry["dtypes"]), "--jobs", "1", "--quiet", "--overwrite",
                "--out", str(place / command), *options]  # fmt: skip
        if "timeout" in self.entry:
            line += ["--timeout", self.entry["timeout"]]
        environment = dict(os.environ)
        if "module" in self.entry:
            before = environment.get("PYTHONPATH")
            environment["PYTHONPATH"] = os.pathsep.join([str(HERE), *([before] if before else [])])
            environment["ATTEST_MUTANT"] = f"{self.entry['module']}={place / self.source.name}"
        began = time.monotonic()
        done = subprocess.run(line, cwd=place, env=environment, capture_output=True, text=True, errors="replace")
        shutil.rmtree(place / command, ignore_errors=True)
        return done.returncode, done.stdout + done.stderr, time.monotonic() - began

    def check(self, place, limit, *options):
        asked = [part for glob in self.entry.get("properties", []) for part in ("--property", glob)]
        return self.run("check", place, *asked, "--time", limit, *options)

    def wrong_on_inputs(self, place):
        """Whether one of the inputs of inputs.py shows it to be wrong."""
        folder = self.folder.parent / "inputs"
        of_kv = self.entry.get("kv_dtype")
        cases = [str(case) for dtype in self.entry["dtypes"]
                 for case in inputs.make(folder / f"{dtype}-{of_kv or dtype}", dtype, of_kv)]  # fmt: skip
        return self.run("check", place, "--property", "attention.oracle", "--fail-fast", "--case", *cases)[0] == 1


def parsed(text):
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def kernel_of(entry, out):
    unknown, missing = set(entry) - KEYS, NEEDED - set(entry)
    if unknown or missing:
        raise Wrong(f"unknown keys: {sorted(unknown)}; missing keys: {sorted(missing)}")
    recipe = (HERE / entry["recipe"]).resolve()
    library = out / "libraries" / f"{recipe.parent.name}-{entry['version']}"
    installed = library / "mutants-installed"
    if not installed.exists():
        done = subprocess.run(["sh", str(recipe), str(library), entry["version"]], capture_output=True, text=True)
        if done.returncode:
            raise Wrong((done.stderr.strip() or f"the recipe ends with {done.returncode}").splitlines()[-1])
        installed.touch()
    found = sorted(library.glob(entry["source"]))
    if len(found) != 1:
        raise Wrong(f"{entry['source']} is {len(found)} files in {library}; it must be one")
    text = found[0].read_text()
    for before, after in entry.get("mended", []):
        if before not in text:
            raise Wrong(f"{before} is to be mended and is not in {found[0].name}")
        text = text.replace(before, after)
    return Kernel(entry, out / re.sub(r"\W+", "-", entry["name"]), library, found[0], text)


def first_line(printed):
    return next((line.strip() for line in printed.splitlines() if line.strip()), "")[:200]


def violated_in(printed):
    """The property that is violated first."""
    found = re.search(r"VIOLATED (\S+) by", printed)
    return found[1] if found else first_line(printed)


def original(kernel, limit):
    """Holds the kernel as it is against what its mutants will be held against."""
    place = kernel.folder / ORIGINAL
    kept = place / "held.json"
    if not kept.exists():
        if not kernel.make(place, kernel.text):
            raise Wrong(f"it does not build: {place / 'build.log'}")
        status, printed, seconds = kernel.check(place, limit)
        if status not in (0, 4):
            raise Wrong(f"it does not hold as it is: {first_line(printed)}")
        if kernel.wrong_on_inputs(place):
            raise Wrong("it does not hold as it is on the inputs of inputs.py")
        kept.write_text(json.dumps({"status": status, "seconds": round(seconds, 1)}))
    return json.loads(kept.read_text())


def examine(kernel, number, mutant, options):
    """What became of one mutant."""
    place = kernel.folder / f"{number:04}"
    kept = place / "result.json"
    what = {"rule": mutant.rule, "line": mutant.line, "before": mutant.before, "after": mutant.after}
    if kept.exists():
        result = json.loads(kept.read_text())
        if result.items() >= what.items():
            return result
    result = what | outcome_of(kernel, place, mutant, options)
    kept.write_text(json.dumps(result))
    return result


def outcome_of(kernel, place, mutant, options):
    if not kernel.make(place, mutant.apply(kernel.text)):
        return {"outcome": "does not compile"}
    if kernel.same(place):
        return {"outcome": "same code"}
    status, printed, seconds = kernel.check(place, options.time, "--fail-fast")
    if status == 3:
        return {"outcome": "does not start"}
    if status == 1:
        return {"outcome": "killed", "seconds": round(seconds, 1), "by": violated_in(printed)}
    if status not in (0, 4):
        raise Wrong(f"mutant {place.name}: attest ended with {status}: {first_line(printed)}")
    if kernel.wrong_on_inputs(place):
        return {"outcome": "missed", "witness": "inputs.py"}
    if kernel.check(place, options.witness, "--fail-fast", "--seed", "2")[0] == 1:
        return {"outcome": "missed", "witness": "attest check with another seed"}
    if kernel.run("fuzz", place, "--time", options.witness, "--fail-fast")[0] == 1:
        return {"outcome": "missed", "witness": "attest fuzz"}
    return {"outcome": "not told apart"}


def result_of(entry, out, options):
    kernel = kernel_of(entry, out)
    held = original(kernel, options.time)
    every = rules.mutants(kernel.text, entry["functions"], kernel.python, entry.get("between"))
    chosen = rules.sample(every, options.count, seed=1)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda each: examine(kernel, *each, options), enumerate(chosen)))
    told = {key: entry[key] for key in ("name", "version", "functions", "between", "dtypes", "mended") if key in entry}
    return told | {"original": held, "time": options.time, "sites": len(every),
                   "mutants": review(entry["name"], results, options.reviewed)}  # fmt: skip


def review(name, results, entries):
    """Says of each mutant of a kernel that was not told apart what reading it has shown."""
    for each in results:
        for entry in entries:
            if each["outcome"] != "not told apart" or entry["kernel"] != name or each["line"] not in entry["lines"]:
                continue
            if entry.get("after", each["after"]) == each["after"]:
                missed = entry.get("missed", False)
                each |= {"outcome": "missed", "witness": entry["why"]} if missed else {"why": entry["why"]}
                break
    return results


def counted(kernel):
    return {outcome: sum(each["outcome"] == outcome for each in kernel["mutants"]) for outcome in OUTCOMES}


def tables_of(file, key):
    try:
        with open(file, "rb") as opened:
            return tomllib.load(opened)[key]
    except (OSError, ValueError) as error:
        raise Wrong(f"{file}: {error}") from None
    except KeyError:
        raise Wrong(f"{file}: it has no [[{key}]]") from None


def line_of(kernel):
    count = counted(kernel)
    return f"{kernel['name']}: " + ", ".join(f"{count[outcome]} {outcome}" for outcome in OUTCOMES if count[outcome])


def write(file, kernels):
    """Writes the results; a kernel that this run was not asked about stays as it was."""
    earlier = json.loads(file.read_text())["kernels"] if file.exists() else []
    names = {kernel["name"] for kernel in kernels}
    every = kernels + [kernel for kernel in earlier if kernel["name"] not in names]
    every.sort(key=lambda kernel: kernel["name"].lower())
    file.write_text(json.dumps({"kernels": every}, indent=1, ensure_ascii=False) + "\n")
    file.with_suffix(".md").write_text(table(every))


def table(kernels):
    """The results as Markdown."""
    lines = ["| kernel | " + " | ".join(OUTCOMES) + " |", "|---|" + "---|" * len(OUTCOMES)]
    for kernel in kernels:
        count = counted(kernel)
        lines.append(f"| {kernel['name']} | " + " | ".join(str(count[outcome]) for outcome in OUTCOMES) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("list", nargs="?", default=HERE / "kernels.toml", help="kernels.toml, or another list")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of libraries, mutants and results")
    parser.add_argument("--count", type=int, default=30, help="mutants of each kernel, as many of each rule")
    parser.add_argument("--time", default="60s", help="how long each is checked")
    parser.add_argument("--witness", default="60s", help="how long each search for a survivor's mistake takes")
    parser.add_argument("--only", default="*", help="kernels of such a name alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants that are checked at once")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    try:
        entries = tables_of(options.list, "kernel")
        options.reviewed = tables_of(HERE / "reviewed.toml", "reviewed")
    except Wrong as error:
        print(error, file=sys.stderr)
        return 2
    failed = False
    for entry in entries:
        if fnmatch.fnmatch(entry.get("name", ""), options.only):
            try:
                kernel = result_of(entry, out, options)
            except (Wrong, ValueError) as error:
                print(f"{entry.get('name', 'a kernel without a name')}: {error}", file=sys.stderr)
                failed = True
                continue
            write(out / "mutants.json", [kernel])
            print(line_of(kernel), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

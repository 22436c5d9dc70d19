#!/usr/bin/env python3
"""Holds every include of the tree against the order of its folders: a file may include from its own folder and from those
before it, and nobody includes a test but tests. Prints each include that does not, and how many there are. A folder that
has grown beyond one subject, by the number of its files, is told as well, and so is a type that two files define by one
name: no linker sees that their functions are not the same, and one of the two is called for the other.

    .ci/layers.py [ROOT]
"""
import collections
import pathlib
import re
import sys

FLOORS = {
    "core": "include support value measure problem definition scalars proof kernel kernel/manifest_json bound/loops bound oracle/rows oracle oracle/gradients journal call isolation/walls isolation kernels",
    "properties": "generators language arrangement catalogue families/multihead families families/variants faults road diagnosis/arithmetic diagnosis proofs attest",
    "fuzz": ". targets",
    "reports": "text run_folder run causes results conclusion page sections formats starter command_line survey judge service commands/options commands test_targets .",
}
# What stands beside the floor and sees all of it.
ANNEXES = ("test", "bench")
MOST_FILES = 33
TYPE = re.compile(r"(?:struct|class|enum class|enum) (?:alignas\(.*?\) )?(\w+)(?: final)?(?: :[^;]*)? \{")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def place(path):
    """(floor, folder) as numbers; folder is None in an annex."""
    floor, *folders = path.parts[:-1]
    if folders and folders[0] in ANNEXES:
        return list(FLOORS).index(floor), None
    order = FLOORS[floor].split()
    # A folder within another has a place of its own, or the other's.
    names = ["/".join(folders[:count]) for count in range(len(folders), 0, -1)] or ["."]
    return list(FLOORS).index(floor), next(order.index(name) for name in names if name in order)


def wrong(source, root):
    for name in INCLUDE.findall((root / source).read_text()):
        target = pathlib.PurePosixPath(name)
        if target.parts[0] not in FLOORS or not (root / target).exists():
            # What is made as it is built, or lies beside a kernel that its author compiles by itself.
            if "/" in name or (root / source).with_name(name).exists() and source.suffix != ".c":
                yield f'{source}: "{name}" is not written from the root of the tree'
            continue
        here, there = place(source), place(target)
        if there[1] is None and here[1] is not None and target.parts[1] == "test":
            yield f"{source} includes {target}, which is a test's"
        elif there[0] > here[0] or (there[0] == here[0] and None not in (here[1], there[1]) and there[1] > here[1]):
            yield f"{source} includes {target}, which comes after it"


def types(text):
    """(namespaces, name) of the types that a file defines for every other one to see."""
    within = []
    for line in text.splitlines():
        if line.startswith(("namespace ", "inline namespace ")) and line.endswith("{"):
            within.append(line.removesuffix("{").split("namespace", 1)[1].strip())
        elif line.startswith("}  // namespace"):
            within.pop()
        elif (found := TYPE.match(line)) and "" not in within:
            yield "::".join([*within, found[1]])


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + "/../..").resolve()
    files = (file for floor in FLOORS for file in sorted((root / floor).rglob("*")) if file.suffix in (".h", ".cc", ".inc"))
    sources = [pathlib.PurePosixPath(file.relative_to(root)) for file in files if file.relative_to(root).parts[1] != "adapters"]
    found = [line for source in sources for line in wrong(source, root)]
    defined = collections.defaultdict(list)
    for source in sources:
        for name in types((root / source).read_text()):
            defined[name].append(source)
    twice = [f"{name} is defined by {' and '.join(map(str, places))}" for name, places in defined.items() if len(places) > 1]
    in_folder = collections.Counter(source.parent for source in sources)
    large = [f"{folder} has {count} files, more than {MOST_FILES}" for folder, count in in_folder.items() if count > MOST_FILES]
    print(*large, *twice, *found, f"{len(found)} includes against the order, of {len(sources)} files", sep="\n")
    return 1 if large or twice or found or not sources else 0


if __name__ == "__main__":
    sys.exit(main())

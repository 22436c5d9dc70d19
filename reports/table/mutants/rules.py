"""One small change to the source of a kernel, in C, C++ or Python: what can be changed, and how.

The rules are those of mutation testing (DeMillo, Lipton and Sayward 1978; for GPU kernels Zhu and Zaidman 2020, and the
six families of KernelBench-M, 2026), written anew for attention. A rule sees the code of the named functions alone. It
knows nothing of what the suite can see: no rule was left out or added for what came of its mutants.
"""

import ast
import dataclasses
import io
import itertools
import random
import re
import tokenize

RULES = {
    "boundary": "a comparison turned or one further, a condition that is always or never true, a mask left out",
    "arithmetic": "another operator, another sign, a running sum or product that forgets what was before",
    "index": "a whole number one greater or one less, two neighbouring arguments exchanged",
    "statement": "an assignment, an update or a call that is left out",
    "number": "a constant that is doubled or 0, another function, -10000 for minus infinity, true for false",
    "precision": "16 bits in the place of 32, a conversion that is left out",
}


@dataclasses.dataclass(frozen=True)
class Mutant:
    rule: str
    line: int
    before: str
    after: str
    start: int  # characters of the source that `after` replaces
    end: int

    def apply(self, source):
        return source[: self.start] + self.after + source[self.end :]


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str  # name, number, operator
    text: str
    start: int
    end: int


C_TOKENS = re.compile(
    r"(?P<skip>//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#(?:\\\n|[^\n])*|\s+)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<number>\.?\d(?:[\w.]|[eEpP][+-])*)"
    r"|(?P<operator><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|.)",
    re.DOTALL,
)


def c_tokens(source, start, end):
    for match in C_TOKENS.finditer(source, start, end):
        if match.lastgroup != "skip":
            yield Token(match.lastgroup, match[0], match.start(), match.end())


def line_starts(source):
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def python_tokens(source, start, end):
    starts = line_starts(source)
    kinds = {tokenize.NAME: "name", tokenize.NUMBER: "number", tokenize.OP: "operator"}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        first, last = starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]
        if token.type in kinds and start <= first and last <= end:
            yield Token(kinds[token.type], token.string, first, last)


def c_functions(source, names):
    """(start, end) of the bodies of the functions, by their braces."""
    tokens = list(c_tokens(source, 0, len(source)))
    for name in names:
        bodies = []
        for at, token in enumerate(tokens[:-1]):
            if token.text == name and tokens[at + 1].text == "(":
                close = closing(tokens, at + 1)
                while close + 1 < len(tokens) and tokens[close + 1].text in ("const", "noexcept"):
                    close += 1
                if close + 1 < len(tokens) and tokens[close + 1].text == "{":
                    bodies.append((tokens[close + 1].end, tokens[closing(tokens, close + 1)].start))
        if not bodies:
            raise ValueError(f"no function {name}")
        yield from bodies


def closing(tokens, at):
    """The token that closes the bracket at `at`."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    opens, closes, depth = tokens[at].text, pairs[tokens[at].text], 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].text == opens) - (tokens[place].text == closes)
        if depth == 0:
            return place
    raise ValueError(f"{opens} is not closed")


def python_functions(source, names):
    """(start, end) of the bodies of the functions, without what describes them."""
    starts = line_starts(source)
    defined = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            defined[node.name] = node  # the last one, behind the overloads that only say types
    for name in names:
        if name not in defined:
            raise ValueError(f"no function {name}")
        body = defined[name].body
        first = body[1] if ast.get_docstring(defined[name]) is not None and len(body) > 1 else body[0]
        yield starts[first.lineno - 1], starts[body[-1].end_lineno]


EXCHANGED = {
    "boundary": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
                 "&&": "||", "||": "&&", "and": "or", "or": "and"},
    "arithmetic": {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "/", "@": "*",
                   "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="},
    "number": {"max": "min", "min": "max", "fmax": "fmin", "fmin": "fmax", "fmaxf": "fminf", "fminf": "fmaxf",
               "maximum": "minimum", "minimum": "maximum", "amax": "amin", "amin": "amax", "sum": "mean",
               "exp": "exp2", "expf": "exp2f", "exp2": "exp", "exp2f": "expf", "log": "log2", "logf": "log2f",
               "sqrt": "abs", "sqrtf": "fabsf", "True": "False", "False": "True", "true": "false", "false": "true"},
    "precision": {"float32": "float16", "float64": "float16", "float": "_Float16", "double": "_Float16"},
}  # fmt: skip
C_KEYWORDS = "for if else return while break continue do switch case const goto".split()
INFINITY = re.compile(
    r"-\s*(?:INFINITY|FLT_MAX|(?:\w+\.)*inf\b|float\(\s*[\"']inf[\"']\s*\))|float\(\s*[\"']-inf[\"']\s*\)"
    r"|-?(?:\w+\.)+finfo\([^()]*\)\.(?:min|max)"
)
INTEGER = re.compile(r"\d+[uUlL]*\Z")
FLOAT = re.compile(r"(\d+\.\d*|\.\d+|\d+[eE][-+]?\d+|\d+\.\d*[eE][-+]?\d+)[fF]?\Z")


def binary(tokens, at):
    """Whether the operator at `at` stands between two operands, and is no sign, pointer or star of Python."""
    if at == 0 or at + 1 == len(tokens):
        return False
    before, after = tokens[at - 1], tokens[at + 1]
    is_operand = before.kind == "number" or before.text in (")", "]")
    is_name = before.kind == "name" and before.text not in ("return", "in", "and", "or", "not", "if", "else")
    stars = tokens[at].text == after.text == "*"
    return (is_operand or is_name) and (after.kind != "operator" or after.text in "([-*" and not stars)


def by_token(source, tokens, python):
    for at, token in enumerate(tokens):
        text = token.text
        for rule, table in EXCHANGED.items():
            if text not in table:
                continue
            if rule == "arithmetic" and not text.endswith("=") and not binary(tokens, at):
                continue
            if rule == "precision" and not python and (at + 1 == len(tokens) or tokens[at + 1].kind != "name"):
                continue  # a pointer or a cast keeps what lies in memory
            yield Mutant(rule, 0, text, table[text], token.start, token.end)
        if text in ("+=", "-=", "*=", "/="):
            yield Mutant("arithmetic", 0, text, "=", token.start, token.end)
        if text == "not" and python and tokens[at + 1].text != "in" and tokens[at - 1].text != "is":
            yield Mutant("boundary", 0, text, "", token.start, token.end)
        if token.kind == "number" and INTEGER.match(text):
            value = int(re.match(r"\d+", text)[0])
            for other in (value + 1, value - 1):
                if other >= 0:
                    yield Mutant("index", 0, text, str(other), token.start, token.end)
        elif token.kind == "number" and FLOAT.match(text):
            value, suffix = float(text.rstrip("fF")), "f" if text[-1] in "fF" else ""
            for other in ([1.0] if value == 0 else [0.0, 2 * value]):
                yield Mutant("number", 0, text, f"{other!r}{suffix}", token.start, token.end)
    for match in INFINITY.finditer(source, tokens[0].start, tokens[-1].end):
        yield Mutant("number", 0, match[0], "-10000.0", match.start(), match.end())


def exchanged_arguments(source, tokens):
    """Two neighbours in the brackets of a call or a subscript, each one name, number or simple expression."""
    for at, token in enumerate(tokens[:-1]):
        calls = token.text in ("(", "[") and at > 0 and tokens[at - 1].kind == "name"
        if not calls or tokens[at - 1].text in ("if", "for", "while", "in", "return"):
            continue
        parts, depth, first = [], 0, at + 1
        try:
            close = closing(tokens, at)
        except ValueError:
            continue
        for place in range(at + 1, close + 1):
            text = tokens[place].text
            if depth == 0 and (text == "," or place == close):
                if place > first:
                    parts.append((tokens[first].start, tokens[place - 1].end))
                first = place + 1
            depth += (text in "([{") - (text in ")]}")
        for (a, b), (c, d) in zip(parts, parts[1:]):
            one, other = source[a:b], source[c:d]
            if one != other and "=" not in one + other and "\n" not in source[a:d]:
                yield Mutant("index", 0, source[a:d], other + source[b:c] + one, a, d)


def assigns_or_calls(statement):
    """Whether a statement of C neither declares nor jumps, so that what follows compiles without it."""
    texts = [token.text for token in statement]
    if len(texts) < 2 or texts[0] in C_KEYWORDS:
        return False
    declares_pointer = texts[1] in ("*", "<", "&") and texts[3:4] == ["="]
    uses_name = statement[0].kind == "name" and statement[1].kind == "operator" and texts[1] != "::"
    return texts[0] in ("*", "(") or uses_name and not declares_pointer


def c_statements(source, tokens):
    """Left out: what assigns to a name that is there already, and calls."""
    first, depth = 0, 0
    for at, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if token.text in ("{", "}"):
            first = at + 1
        elif token.text == ";" and depth == 0:
            if assigns_or_calls(tokens[first:at]):
                start = tokens[first].start
                yield Mutant("statement", 0, source[start : token.end], ";", start, token.end)
            first = at + 1
    for at, token in enumerate(tokens[:-1]):
        if token.text == "if" and tokens[at + 1].text == "(":
            close = tokens[closing(tokens, at + 1)]
            condition = source[tokens[at + 1].end : close.start]
            for constant in ("0 &&", "1 ||"):
                yield Mutant("boundary", 0, condition, f"{constant} ({condition})", tokens[at + 1].end, close.start)


def python_statements(source, start, end):
    starts = line_starts(source)

    def place(node):
        # Columns are bytes of UTF-8.
        line = source[starts[node.lineno - 1] : starts[node.lineno]]
        last = source[starts[node.end_lineno - 1] : starts[node.end_lineno]]
        return (starts[node.lineno - 1] + len(line.encode()[: node.col_offset].decode()),
                starts[node.end_lineno - 1] + len(last.encode()[: node.end_col_offset].decode()))  # fmt: skip

    assigned = set()
    nodes = [node for node in ast.walk(ast.parse(source)) if hasattr(node, "lineno")]
    for node in sorted(nodes, key=lambda node: place(node)[0]):
        first, last = place(node)
        if first < start or last > end:
            continue
        text = source[first:last]
        if isinstance(node, ast.AugAssign) or isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            yield Mutant("statement", 0, text, "pass", first, last)
        elif isinstance(node, ast.Assign):
            names = {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            if names <= assigned:
                yield Mutant("statement", 0, text, "pass", first, last)
            assigned |= names
        elif isinstance(node, (ast.If, ast.IfExp)):
            test = place(node.test)
            condition = source[slice(*test)]
            for constant in ("False and", "True or"):
                yield Mutant("boundary", 0, condition, f"({constant} ({condition}))", *test)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            inner = place(node.func.value)
            if node.func.attr in ("astype", "to", "float", "cast"):
                yield Mutant("precision", 0, text, source[slice(*inner)], first, last)
            elif node.func.attr in ("sqrt", "rsqrt") and node.args:
                yield Mutant("number", 0, text, source[slice(*place(node.args[0]))], first, last)
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in ("preferred_element_type", "dtype", "other", "mask"):
                    where = place(keyword.value)
                    name = source.rindex(keyword.arg, first, where[0])
                    comma = source.rfind(",", first, name)
                    if comma > 0:
                        rule = "precision" if "type" in keyword.arg else "boundary"
                        yield Mutant(rule, 0, source[comma : where[1]], "", comma, where[1])


def between_anchors(source, first, last):
    """(start, end) of what stands between two texts that the source has once each."""
    for anchor in (first, last):
        if source.count(anchor) != 1:
            raise ValueError(f"{anchor} is in the source {source.count(anchor)} times; it must be once")
    return source.index(first) + len(first), source.index(last)


def mutants(source, functions, python, between=None):
    """Every mutant of the functions and of what is between two texts, each once, in the order of the source."""
    found = {}
    parts = list((python_functions if python else c_functions)(source, functions))
    for start, end in [*parts, *([between_anchors(source, *between)] if between else [])]:
        tokens = list((python_tokens if python else c_tokens)(source, start, end))
        made = [*by_token(source, tokens, python), *exchanged_arguments(source, tokens),
                *(python_statements(source, start, end) if python else c_statements(source, tokens))]  # fmt: skip
        for mutant in made:
            found.setdefault((mutant.start, mutant.end, mutant.after), mutant)
    return [dataclasses.replace(found[key], line=source.count("\n", 0, key[0]) + 1) for key in sorted(found)]


def sample(every, count, seed):
    """`count` of them, one of each rule in turn, in an order that the seed says; all where there are no more."""
    draw = random.Random(seed)
    of_rules = [[each for each in every if each.rule == rule] for rule in RULES]
    shuffled = [draw.sample(group, len(group)) for group in of_rules if group]
    in_turn = itertools.zip_longest(*shuffled)
    return [each for turn in in_turn for each in turn if each is not None][:count]

"""reports/table/mutants: the rules, what makes a mutant of an installed module, and a campaign from its list to its
results."""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

import pytest

MUTANTS = pathlib.Path(__file__).resolve().parents[2] / "table" / "mutants"
sys.path.insert(0, str(MUTANTS))
rules = pytest.importorskip("rules")

C = """
#define SIZE 3
int size(void) { return 7; }
void attend(float* out, const float* score, int n) { // n < 5
  float most = -INFINITY, sum = 0.0f;
  for (int j = 0; j < n; j++) {
    if (score[j] > most) { most = score[j]; }
  }
  const char* why = "1 + 2";
  for (int j = 0; j < n; j++) sum += expf(score[j] - most);
  scale(out, n);
}
"""
PYTHON = '''
def other(x):
    return x + 1


def attend(q, k, *, causal=False):
    """Takes 2 things."""
    s = q @ k
    if causal and not q.empty:
        s = where(mask, s, -math.inf)
    p = softmax(s.astype(float32), axis=-1)
    p *= 0.5
    return p, jnp.sqrt(q)
'''


def of(source, python):
    found = rules.mutants(source, ["attend"], python)
    return {(mutant.before, mutant.after) for mutant in found}, found


def test_every_rule_of_c_makes_its_mutants():
    pairs, found = of(C, python=False)
    assert {mutant.rule for mutant in found} == set(rules.RULES)
    assert pairs >= {
        ("<", "<="), (">", ">="), ("score[j] > most", "0 && (score[j] > most)"),  # boundary
        ("+=", "="), ("+=", "-="), ("-", "+"),  # arithmetic
        ("0", "1"), ("out, n", "n, out"),  # index
        ("most = score[j];", ";"), ("scale(out, n);", ";"),  # statement
        ("expf", "exp2f"), ("-INFINITY", "-10000.0"), ("0.0f", "1.0f"),  # number
        ("float", "_Float16"),  # precision
    }  # fmt: skip


def test_every_rule_of_python_makes_its_mutants():
    pairs, found = of(PYTHON, python=True)
    assert {mutant.rule for mutant in found} == set(rules.RULES)
    assert pairs >= {
        ("and", "or"), ("not", ""), ("causal and not q.empty", "(False and (causal and not q.empty))"),
        ("@", "*"), ("*=", "/="), ("*=", "="),
        ("1", "2"), ("1", "0"), ("mask, s", "s, mask"),
        ("s = where(mask, s, -math.inf)", "pass"), ("p *= 0.5", "pass"),
        ("0.5", "1.0"), ("-math.inf", "-10000.0"), ("jnp.sqrt(q)", "q"),
        ("float32", "float16"), ("s.astype(float32)", "s"),
    }  # fmt: skip


@pytest.mark.parametrize("source, python", [(C, False), (PYTHON, True)])
def test_mutants_are_of_the_functions_alone_and_each_is_another(source, python):
    _, found = of(source, python)
    made = [mutant.apply(source) for mutant in found]
    assert source not in made and len(set(made)) == len(made)
    first = source.index("attend")
    for mutant in found:
        assert mutant.start > first, "what stands before the function is not its"
        assert source[mutant.start : mutant.end] == mutant.before
        assert mutant.line == source.count("\n", 0, mutant.start) + 1
    comments = [source.index("// n < 5"), source.index('"1 + 2"')] if not python else [source.index("Takes 2")]
    for comment in comments:
        assert not any(comment <= mutant.start < comment + 8 for mutant in found), "of a comment or a string"


def test_a_sample_has_as_many_of_each_rule_and_is_the_same_each_time():
    _, found = of(PYTHON, python=True)
    taken = rules.sample(found, 12, seed=1)
    assert taken == rules.sample(found, 12, seed=1) != rules.sample(found, 12, seed=2)
    assert {mutant.rule for mutant in taken[:6]} == set(rules.RULES)
    assert len(rules.sample(found, 10**6, seed=1)) == len(found)


def test_a_function_that_is_not_there_is_named():
    for python in (False, True):
        with pytest.raises(ValueError, match="no function absent"):
            rules.mutants("int f(void) { return 1; }" if not python else "x = 1", ["absent"], python)


def test_an_installed_module_is_read_from_the_mutant(tmp_path):
    mutant = tmp_path / "mine.py"
    mutant.write_text("LIMIT = 'changed'\n")
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "their_module.py").write_text("LIMIT = 'as it is'\n")
    environment = dict(os.environ, ATTEST_MUTANT=f"their_module={mutant}")
    environment["PYTHONPATH"] = os.pathsep.join([str(MUTANTS), str(tmp_path / "installed")])
    program = "import their_module; print(their_module.LIMIT)"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "changed", done.stderr


KERNEL = r"""
#include <attest/kernel.h>
#include <attest/known_arguments.h>
#include <math.h>

const char* attest_kernel_manifest(void) {
  return "{\"name\": \"plain\", \"dtypes\": [\"f32\"], \"fully_masked_row\": \"nan\", \"masks\": [],"
         " \"limits\": {\"max_keys\": 64}}";
}
static void row(const float* q, const float* k, const float* v, float* out, int n, int dk, int dv, double scale) {
  double s[64], most = -INFINITY, sum = 0;
  for (int j = 0; j < n; j++) {
    s[j] = 0;
    for (int c = 0; c < dk; c++) s[j] += (double)q[c] * k[j * dk + c];
    s[j] *= scale;
    if (s[j] > most) most = s[j];
  }
  for (int j = 0; j < n; j++) sum += s[j] = exp(s[j] - most);
  for (int c = 0; c < dv; c++) {
    double o = 0;
    for (int j = 0; j < n; j++) o += s[j] * v[j * dv + c];
    out[c] = o / sum;
  }
}
int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t size) {
  int status = attest_known_arguments(p, r, message, size);
  const int n = p->k.shape[2], dk = p->q.shape[3], dv = p->v.shape[3], rows = p->q.shape[2];
  if (status != ATTEST_OK) return status;
  for (int b = 0; b < p->q.shape[0] * p->q.shape[1]; b++)
    for (int i = 0; i < rows; i++)
      row((float*)p->q.data + (b * rows + i) * dk, (float*)p->k.data + b * n * dk, (float*)p->v.data + b * n * dv,
          (float*)r->out.data + (b * rows + i) * dv, n, dk, dv, p->scale);
  return ATTEST_OK;
}
"""


@pytest.fixture
def campaign(tmp_path):
    """Runs the list of one kernel, which its recipe writes, changed as asked."""
    pytest.importorskip("numpy")
    if not shutil.which("cc") or not os.environ.get("ATTEST_PROGRAM"):
        pytest.skip("needs cc and ATTEST_PROGRAM")
    (tmp_path / "kernel.c").write_text(KERNEL)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "recipe.sh").write_text(f'mkdir -p "$1" && cp {tmp_path}/kernel.c "$1"\n')

    def run(*options, before="", after="", **changed):
        entry = {"name": "plain", "version": "1", "recipe": str(tmp_path / "plain" / "recipe.sh"), "source": "kernel.c",
                 "functions": ["row"], "dtypes": ["f32"], "kernel": "{mutant}/kernel.so",
                 "build": "cc -O1 -w -fPIC -shared -I {list}/../../../core/include {source} -lm -o kernel.so"}  # fmt: skip
        entry |= changed
        (tmp_path / "kernel.c").write_text(KERNEL.replace(before, after) if before else KERNEL)
        text = "[[kernel]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items())
        (tmp_path / "list.toml").write_text(text)
        command = [sys.executable, str(MUTANTS / "mutants.py"), str(tmp_path / "list.toml"), "--out",
                   str(tmp_path / "out"), "--jobs", "1", "--time", "4s", "--witness", "2s", *options]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        results = tmp_path / "out" / "mutants.json"
        return done, json.loads(results.read_text())["kernels"] if results.exists() else []

    return run


def test_a_campaign_kills_what_is_wrong_and_is_not_run_twice(campaign):
    done, (kernel,) = campaign("--count", "12", functions=["row"])
    assert done.returncode == 0, done.stderr
    assert len(kernel["mutants"]) == 12
    outcomes = collections.Counter(mutant["outcome"] for mutant in kernel["mutants"])
    assert outcomes["killed"] >= 6 and outcomes["missed"] == 0, kernel
    again, same = campaign("--count", "12")
    assert again.stdout == done.stdout and same == [kernel]


def test_a_kernel_that_is_wrong_as_it_is_is_not_mutated(campaign):
    done, kernels = campaign("--count", "1", before="o / sum", after="o / sum * 1.01")
    assert done.returncode == 1 and kernels == []
    assert "plain: it does not hold as it is: VIOLATED" in done.stderr


def test_what_is_known_to_be_wrong_is_mended_first(campaign):
    done, kernels = campaign("--count", "0", before="o / sum", after="o / sum * 1.01", mended=[["* 1.01", ""]])
    assert done.returncode == 0 and kernels[0]["mended"] == [["* 1.01", ""]], done.stderr
    done, _ = campaign("--count", "0", mended=[["what is not there", ""]])
    assert "plain: what is not there is to be mended and is not in kernel.c" in done.stderr


def test_a_mistake_in_the_list_costs_one_line(campaign):
    done, _ = campaign(speed="fast")
    assert done.stderr == "plain: unknown keys: ['speed']; missing keys: []\n" and done.returncode == 1
    done, _ = campaign(functions=["absent"])
    assert done.stderr == "plain: no function absent\n"


def test_reading_gives_a_reason_or_says_that_it_was_missed():
    mutants = pytest.importorskip("mutants")
    survivor = {"line": 5, "after": "0", "outcome": "not told apart"}
    entries = [{"kernel": "a", "lines": [5], "after": "1", "missed": True, "why": "an input"},
               {"kernel": "a", "lines": [5, 6], "why": "the same answer"}]  # fmt: skip
    results = [dict(survivor), survivor | {"after": "1"}, survivor | {"line": 7}, survivor | {"outcome": "killed"}]
    same, missed, unread, killed = mutants.review("a", results, entries)
    assert same["outcome"] == "not told apart" and same["why"] == "the same answer"
    assert missed["outcome"] == "missed" and missed["witness"] == "an input" and "why" not in missed
    assert "why" not in unread and "why" not in killed
    assert "why" not in mutants.review("b", [dict(survivor)], entries)[0]


def published():
    return json.loads((MUTANTS / "mutants.json").read_text())["kernels"]


def listed():
    return {entry["name"]: entry for entry in tomllib.loads((MUTANTS / "kernels.toml").read_text())["kernel"]}


def test_the_published_results_are_of_the_list():
    of_list = listed()
    for kernel in published():
        entry = of_list[kernel["name"]]
        for key in ("version", "functions", "dtypes"):
            assert kernel[key] == entry[key], kernel["name"]
    assert {kernel["name"] for kernel in published()} == set(of_list)


def test_the_published_table_is_of_the_published_results():
    mutants = pytest.importorskip("mutants")
    assert mutants.table(published()) in (MUTANTS / "README.md").read_text()


def test_every_survivor_that_is_published_was_read():
    for kernel in published():
        for mutant in kernel["mutants"]:
            assert mutant["outcome"] != "not told apart" or mutant["why"], (kernel["name"], mutant)
            assert mutant["outcome"] != "missed" or mutant["witness"], (kernel["name"], mutant)

// What attest init writes, used as its user does: here, and by the steps of the CI jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/test/places.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

/// A new project in mine/ with few cases to check, and where CI clones Attest to, what stands for that.
ShellResult begin(const fake::Folder& folder, const std::string& options) {
  return shell(folder,
               joined({"$attest init mine ", options,
                       " && sed -i 's/--cases [0-9][0-9]*/--cases 20/' mine/attest.sh && mkdir -p mine/attest/core && "
                       "ln -s \"$attest\" mine/attest/attest && ln -s '" +
                           source_folder() + "/core/include' mine/attest/core/include"}));
}

/// The script as CI runs it, where python3 is Debian's, which has NumPy.
ShellResult check(const fake::Folder& folder, const std::string& options = "") {
  return shell(folder, joined({"PATH=/usr/bin:$PATH ATTEST=$PWD/mine/attest sh mine/attest.sh ", options}));
}

struct Case {
  const char *language, *file, *right, *wrong;
};
constexpr Case languages[] = {
    {"c", "mine.c", "score \\*= scale", "score *= 1.01f * scale"},
    {"cpp", "mine.cpp", "score \\*= scale", "score *= 1.01f * scale"},
    {"python", "mine.py", "type(scale)", "type(1.01 * scale)"},
};

TEST(Init, WritesAKernelThatHoldsAndAScriptThatGuardsIt) {
  for (const Case& one : languages) {
    const fake::Folder folder;
    const ShellResult made = begin(folder, joined({"--language ", one.language}));
    EXPECT_EQ(made.status, 0) << made.output;
    EXPECT_THAT(made.output,
                Says(joined({"wrote ", one.file, ", attest.sh, .gitignore, .github/workflows/attest.yml in mine\n"})));
    if (one.language == std::string("python") && shell(folder, "/usr/bin/python3 -c 'import numpy'").status != 0)
      continue;
    const ShellResult right = check(folder);
    EXPECT_EQ(right.status, 0) << one.language << right.output;
    EXPECT_THAT(right.output, Says("\n  report    run/report.html\n"));
    expect_status(folder,
                  "cp mine/run/tolerances.json mine/attest-baseline.json && test -s mine/run/report.html && "
                  "test -s mine/run/junit.xml && test -s mine/run/attest.sarif && test -s mine/run/comment.md");
    const ShellResult again = check(folder);
    EXPECT_EQ(again.status, 0) << one.language << again.output;
    EXPECT_THAT(again.output, Says("baseline"));
    const ShellResult wrong = shell(folder, joined({"sed -i 's/", one.right, "/", one.wrong, "/' mine/", one.file,
                                                    " && grep -q '1.01' mine/", one.file}));
    ASSERT_EQ(wrong.status, 0) << one.language;
    EXPECT_EQ(check(folder).status, 1) << one.language;
    // With options it is a run of the user's own: no baseline, no number of cases.
    const ShellResult own = check(folder, "--property causal.no-leak --cases 30");
    EXPECT_EQ(own.status, 0) << own.output;
    EXPECT_THAT(own.output,
                testing::AllOf(Says("1 of 1 property that concerns this kernel judged; "), NeverSays("baseline")));
  }
}

TEST(Init, ItsScriptKeepsItsOptionsBesideThoseThatAreGiven) {
  const fake::Folder folder;
  ASSERT_EQ(begin(folder, "").status, 0);
  ASSERT_EQ(check(folder).status, 0);
  expect_status(folder, "mv mine/run/tolerances.json mine/attest-baseline.json");
  const auto oracle = [&](const std::string& run) {
    const nlohmann::json summary = summary_of(folder, "mine/" + run);
    for (const auto& property : summary["kernels"][0]["properties"])
      if (property["name"] == "attention.oracle")
        return std::pair(summary["seed"].get<int>(), property["cases"].get<int>());
    return std::pair(0, 0);
  };
  const ShellResult seeded = check(folder, "--seed 11");
  EXPECT_THAT(seeded.output, Says("baseline: "));
  EXPECT_EQ(oracle("run"), std::pair(11, 20));
  expect_status(folder, "test -s mine/run/junit.xml && test -s mine/run/attest.sarif");
  // What is given takes the place of what the script has, and other cases have no baseline.
  for (const char* const line : {"--cases 5 --out there", "--cases=5 -o there", "--cases 5 --output=there"}) {
    const ShellResult own = check(folder, line);
    EXPECT_EQ(own.status, 0) << line << own.output;
    EXPECT_THAT(own.output, NeverSays("baseline"));
    EXPECT_EQ(oracle("there"), std::pair(1, 5));
    expect_status(folder, "test -s mine/there/junit.xml && rm -r mine/there");
  }
  EXPECT_THAT(check(folder, "--kernel builtin:flash --dtype f32 --junit 'a file.xml'").output,
              Says("builtin:flash  f32", "\n  report    run/report.html\n"));
  expect_status(folder, "test -s 'mine/a file.xml'");
}

TEST(Init, TellsABuildThatFailedFromAVerdict) {
  const fake::Folder folder;
  ASSERT_EQ(begin(folder, "").status, 0);
  expect_status(folder, "echo oops >> mine/mine.c && ATTEST=$PWD/mine/attest sh mine/attest.sh", 2);
  const std::string lost = output_of(folder, "ATTEST=/nowhere sh mine/attest.sh", 2);
  EXPECT_EQ(lost, "attest.sh: there is no Attest in /nowhere; set ATTEST to where it was cloned or installed to\n");
}

TEST(Init, NamesTheProgramThatWroteIt) {
  const fake::Folder folder;
  ASSERT_EQ(begin(folder, "").status, 0);
  // The program of the tests lies in a build folder of the clone.
  EXPECT_THAT(read_file(folder / "mine/attest.sh"), Says("ATTEST=" + source_folder() + "\n"));
  EXPECT_THAT(check(folder, "--seed 1 --seed 2").output, Says("--seed is given 2 times"));
}

TEST(Init, OverwritesNothing) {
  const fake::Folder folder;
  const std::string refused = output_of(folder, "mkdir mine && echo precious > mine/attest.sh && $attest init mine", 2);
  EXPECT_EQ(refused,
            "attest: \"mine/attest.sh\" is there already, and attest init overwrites nothing; name another folder\n");
  EXPECT_EQ(shell(folder, "ls mine && cat mine/attest.sh").output, "attest.sh\nprecious\n");
  EXPECT_THAT(output_of(folder, "mkdir other && echo mine > other/.gitlab-ci.yml && $attest init other --ci gitlab", 2),
              Says("or leave it out with --ci none"));
  EXPECT_EQ(shell(folder, "$attest init other --ci none && ls -A other").output.substr(0, 46),
            "wrote mine.c, attest.sh, .gitignore in other\n\n");
  // What is only convenient is left as it is.
  EXPECT_EQ(shell(folder,
                  "mkdir own && echo mine > own/.gitignore && $attest init own --ci none > /dev/null && "
                  "cat own/.gitignore && ls -A own")
                .output,
            "mine\n.gitignore\nattest.sh\nmine.c\n");
  // A link to nowhere is something, too.
  expect_status(folder, "mkdir third && ln -s nowhere third/mine.c && $attest init third", 2);
}

TEST(Init, WritesAllOrNothing) {
  const fake::Folder folder;
  EXPECT_THAT(one_line_of(folder, "mkdir mine && touch mine/.github && $attest init mine", 2), Says(".github"));
  EXPECT_EQ(shell(folder, "ls -A mine").output, ".github\n");
}

TEST(Init, RefusesWhatItDoesNotKnow) {
  expect_refused("init", "takes one DIR, the folder to write into");
  expect_refused("init a b", "not 2");
  expect_refused("init ''", "not an empty name");
  expect_refused("init a --language pyton", "did you mean \"python\"?");
  expect_refused("init a --language rust", "known: \"c\", \"cpp\", \"python\"");
  expect_refused("init a --ci gitlub", "unknown --ci \"gitlub\"");
  expect_refused("init /dev/null/a", "cannot be made");
  expect_refused("init a --cases 5", "unknown option \"--cases\" of attest init");
}

TEST(Init, SaysWhereAJobIsLookedFor) {
  const fake::Folder folder;
  EXPECT_THAT(output_of(folder, "mkdir -p top/.git && $attest init top/kernels"),
              Says("top/kernels is not the top of the repository"));
  EXPECT_THAT(shell(folder, "$attest init top").output, NeverSays("is not the top"));
}

/// The shell lines of a CI job as one script each: of the steps or the jobs, in NAME.sh, NAME the first word of a name.
constexpr const char* unpack = R"py(
import sys, yaml
flow = yaml.safe_load(open(sys.argv[1]))
if 'stages' in flow:
    scripts = {name: job['script'] for name, job in flow.items() if isinstance(job, dict) and 'script' in job}
    scripts['after'] = flow['check']['after_script']
else:
    scripts = {step['name'].split()[0]: [step['run']] for step in flow['jobs']['check']['steps'] if 'run' in step}
for name, lines in scripts.items():
    open(name + '.sh', 'w').write('set -e\n' + '\n'.join(lines))
)py";

/// A new project with its job's scripts beside it; false where nothing here reads YAML.
bool unpacked(const fake::Folder& folder, const std::string& service, const std::string& file) {
  std::ofstream(folder / "unpack.py") << unpack;
  if (shell(folder, "/usr/bin/python3 -c 'import yaml'").status != 0) return false;
  const ShellResult made = begin(folder, joined({"--ci ", service}));
  EXPECT_EQ(made.status, 0) << made.output;
  expect_status(folder, joined({"cd mine && /usr/bin/python3 ../unpack.py ", file}));
  return true;
}

TEST(Init, TheJobOfGitHubRunsAsItStands) {
  const fake::Folder folder;
  if (!unpacked(folder, "github", ".github/workflows/attest.yml")) GTEST_SKIP() << "python3-yaml is not here";
  const auto step = [&](const std::string& line) { return shell(folder, joined({"cd mine && ", line})); };
  const ShellResult right = step("sh Check.sh");
  EXPECT_EQ(right.status, 0) << right.output;
  EXPECT_EQ(step("GITHUB_STEP_SUMMARY=shown.md sh Show.sh && cmp shown.md run/summary.md && sh Hand.sh && "
                 "cmp run/report.html pages/index.html && test -s run/attest.sarif && test -s run/junit.xml")
                .status,
            0);
  // What was accepted is held against; the same once more is not worse.
  EXPECT_EQ(step("cp run/tolerances.json attest-baseline.json && sh Check.sh").status, 0);
  EXPECT_EQ(step("sed -i 's/score \\*= scale/score *= 1.01f * scale/' mine.c && sh Check.sh").status, 1);
  EXPECT_THAT(read_file(folder / "mine/run/junit.xml"), Says("name=\"WORSE "));
  EXPECT_EQ(step("GITHUB_STEP_SUMMARY=wrong.md sh Show.sh && head -1 wrong.md").output,
            "## ❌ Attest: violated, and worse than the baseline\n");
  // Where nothing was checked there is nothing to show, and the first failure is the one that is seen.
  EXPECT_NE(step("rm -r run && echo oops >> mine.c && sh Check.sh").status, 0);
  EXPECT_EQ(step("GITHUB_STEP_SUMMARY=none.md sh Show.sh").status, 0);
  EXPECT_THAT(step("git() { echo cloned; }; . ./Get.sh").output, Says("must be set to where Attest is cloned from"));
}

TEST(Init, TheJobsOfGitLabRunAsTheyStand) {
  const fake::Folder folder;
  if (!unpacked(folder, "gitlab", ".gitlab-ci.yml")) GTEST_SKIP() << "python3-yaml is not here";
  const auto job = [&](const std::string& line) { return shell(folder, joined({"cd mine && ", line})); };
  const ShellResult right = job("sh check.sh");
  EXPECT_EQ(right.status, 0) << right.output;
  EXPECT_THAT(job("sh after.sh").output, Says("## ✅ Attest: held"));
  EXPECT_EQ(job("sh pages.sh && cmp public/index.html run/report.html && test -s run/junit.xml").status, 0);
  EXPECT_EQ(job("cp run/tolerances.json attest-baseline.json && sh check.sh").status, 0);
  EXPECT_EQ(job("sed -i 's/score \\*= scale/score *= 1.01f * scale/' mine.c && sh check.sh").status, 1);
}

}  // namespace
}  // namespace attest

// What a run leaves for CI: of a kernel with a mistake, of a right one, merged, and of no run at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "reports/test/json.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string chosen = "--dtype f32 --property attention.oracle --property attention.finite --cases 60 --quiet ";

std::string junit_facts(const fake::Folder& folder, const std::string& file) {
  return shell(
             folder,
             "/usr/bin/python3 -c 'import sys, xml.etree.ElementTree as t\n"
             "r = t.parse(sys.argv[1]).getroot()\n"
             "print(r.get(\"failures\"), r.get(\"errors\"), len(r.findall(\".//failure\")), end=\" \")\n"
             "print([l for f in r.iter(\"failure\") for l in f.text.splitlines() if l.startswith(\"replay\")][:1])' " +
                 file)
      .output;
}

TEST(Formats, AreWrittenOfAKernelWithAMistake) {
  const fake::Folder folder;
  const ShellResult run = shell(folder, "$attest check --verbose --kernel fault:scale-ignored " + chosen +
                                            "--out run --junit junit.xml --sarif run.sarif > /dev/null");
  EXPECT_EQ(run.status, 1) << run.output;
  EXPECT_THAT(junit_facts(folder, "junit.xml"), StartsWith("1 0 1 ['replay: attest replay run/cases/attention.oracle"));
  const auto sarif = parsed_json(read_file(folder / "run.sarif"));
  const auto& results = sarif["runs"][0]["results"];
  // One alert for the one mistake, known again by what it is and not by the case that showed it.
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0]["partialFingerprints"]["attestCause/v1"],
            "fault:scale-ignored/the scale were 1/sqrt(dk), whatever is asked");
  EXPECT_THAT(results[0]["message"]["text"].get<std::string>(),
              AllOf(HasSubstr("fault:scale-ignored in f32: it computes as if the scale were 1/sqrt(dk)"),
                    HasSubstr("\nreplay: attest replay run")));
  EXPECT_TRUE(std::filesystem::exists(
      folder /
      ("run/" + results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].get<std::string>())));
  const std::string markdown = read_file(folder / "run/summary.md");
  EXPECT_THAT(markdown, StartsWith("## ❌ Attest: violated"));
  // The line is there to be copied.
  const std::size_t line = markdown.find("attest replay run/cases/attention.oracle");
  ASSERT_NE(line, std::string::npos) << markdown;
  const std::string replay = "$" + markdown.substr(line, markdown.find('\n', line) - line);
  EXPECT_EQ(shell(folder, replay).status, 1) << replay;
  // The report of the run says the same as the check that made it.
  EXPECT_EQ(shell(folder, "$attest report run --junit j2.xml --sarif s2.sarif --summary s2.md").status, 0);
  EXPECT_EQ(shell(folder, "cmp junit.xml j2.xml && cmp run.sarif s2.sarif && cmp run/summary.md s2.md").status, 0);
  EXPECT_EQ(shell(folder,
                  "$attest report run --toml -o t.toml && grep -c '^\\[\"fault:scale-ignored\".f32\\]' t.toml && "
                  "grep -c VIOLATED t.toml")
                .output,
            "wrote t.toml\n1\n1\n");
}

TEST(Formats, AreWrittenOfARightKernelAndOfMergedShards) {
  const fake::Folder folder;
  for (const char* shard : {"0/2", "1/2"}) {
    const std::string line = std::string("$attest check --verbose --kernel builtin:flash ") + chosen + "--shard " +
                             shard + " --out part-" + shard[0];
    EXPECT_EQ(shell(folder, line).status, 0);
  }
  EXPECT_EQ(shell(folder, "$attest report part-0 part-1 --junit j.xml --sarif s.sarif --summary s.md").status, 0);
  EXPECT_THAT(junit_facts(folder, "j.xml"), StartsWith("0 0 0 []"));
  EXPECT_TRUE(parsed_json(read_file(folder / "s.sarif"))["runs"][0]["results"].empty());
  EXPECT_THAT(read_file(folder / "s.md"),
              AllOf(StartsWith("## ✅ Attest: held\n\n"), HasSubstr(" of 120 cases judged, ")));
  EXPECT_EQ(shell(folder, "$attest merge part-* -o whole/ && head -1 whole/summary.md").output,
            "wrote whole/: 2 batches, 0 findings of 1 kernel\n## ✅ Attest: held\n");
}

TEST(Formats, FollowTheExpectedViolationsAsTheExitStatusDoes) {
  const fake::Folder folder;
  const auto known = [&](const std::string& property) {
    std::ofstream(folder / "known.toml") << "[[finding]]\nkernel = 'fault:scale-ignored'\ndtype = 'f32'\nproperty = '"
                                         << property << "'\nreason = 'it is so'\ndate = 2026-01-31\n";
    return shell(folder, "$attest check --verbose --kernel fault:scale-ignored " + chosen +
                             "--out run --overwrite --known known.toml --junit j.xml --sarif s.sarif > /dev/null")
        .status;
  };
  EXPECT_EQ(known("attention.oracle"), 0);
  EXPECT_THAT(junit_facts(folder, "j.xml"), StartsWith("0 0 0"));
  EXPECT_THAT(read_file(folder / "s.sarif"), HasSubstr("\"suppressions\""));
  EXPECT_EQ(known("attention.finite"), 1);
  EXPECT_THAT(junit_facts(folder, "j.xml"), StartsWith("3 0 3")) << "the violation, that it is new, and one is gone";
  EXPECT_THAT(read_file(folder / "s.sarif"), Not(HasSubstr("\"suppressions\"")));
}

TEST(Formats, AreWrittenOfACampaign) {
  const fake::Folder folder;
  const std::string fuzz = "$attest fuzz --dtype f32 --jobs 1 --quiet --objective error --objective nonfinite ";
  const ShellResult found = shell(folder, fuzz +
                                              "--kernel fault:sum-not-rescaled --runs 300 --out run --junit j.xml "
                                              "--sarif s.sarif > /dev/null");
  ASSERT_EQ(found.status, 1) << found.output;
  const std::string xml = read_file(folder / "j.xml");
  EXPECT_THAT(xml, HasSubstr("classname=\"fault:sum-not-rescaled.f32\" name=\"attention.oracle\">"));
  EXPECT_THAT(xml, HasSubstr("classname=\"fault:sum-not-rescaled.f32\" name=\"attention.finite\""));
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"attest\" name=\"run\" time=\""));
  // The line is there to be copied.
  const std::size_t line = xml.find("replay: attest replay run/cases/attention.oracle");
  ASSERT_NE(line, std::string::npos) << xml;
  const std::string replay = xml.substr(line + 8, xml.find('\n', line) - line - 8);
  EXPECT_EQ(shell(folder, "$" + replay).status, 1) << replay;
  const auto sarif = parsed_json(read_file(folder / "s.sarif"));
  EXPECT_EQ(sarif["runs"][0]["results"][0]["ruleId"], "attention.oracle");
  EXPECT_EQ(shell(folder, "$attest report run --junit j2.xml --sarif s2.sarif").status, 0);
  EXPECT_EQ(shell(folder, "cmp j.xml j2.xml && cmp s.sarif s2.sarif").status, 0);
  EXPECT_EQ(shell(folder, fuzz + "--kernel builtin:flash --runs 30 --out right --junit right.xml").status, 0);
  EXPECT_THAT(junit_facts(folder, "right.xml"), StartsWith("0 0 0 []"));
}

TEST(Formats, OfMergedShardsFollowTheExpectedViolations) {
  const fake::Folder folder;
  for (const char* shard : {"0/2", "1/2"}) {
    const std::string line = std::string("$attest check --verbose --kernel fault:scale-ignored ") + chosen +
                             "--shard " + shard + " --out part-" + shard[0] + " > /dev/null";
    EXPECT_EQ(shell(folder, line).status, 1);
  }
  const auto merge = [&](const std::string& rest) {
    return shell(folder, "rm -rf whole; $attest merge part-0 part-1 --junit j.xml --sarif s.sarif " + rest + " > said");
  };
  const ShellResult alone = merge("-o whole/");
  EXPECT_EQ(alone.status, 0) << alone.output;
  EXPECT_THAT(junit_facts(folder, "j.xml"), StartsWith("1 0 1 ['replay: attest replay whole/cases/attention.oracle"));
  EXPECT_THAT(read_file(folder / "s.sarif"), Not(HasSubstr("\"suppressions\"")));
  std::ofstream(folder / "known.toml") << "[[finding]]\nkernel = 'fault:scale-ignored'\ndtype = 'f32'\nproperty = "
                                          "'attention.oracle'\nreason = 'it is so'\ndate = 2026-01-31\n";
  EXPECT_EQ(merge("--known known.toml -o whole.jsonl").status, 0);
  EXPECT_THAT(junit_facts(folder, "j.xml"), StartsWith("0 0 0"));
  EXPECT_THAT(read_file(folder / "s.sarif"), HasSubstr("\"suppressions\""));
  EXPECT_THAT(read_file(folder / "said"), HasSubstr("\nknown: 1 expected, 0 new or gone"));
  std::ofstream(folder / "known.toml") << "";
  EXPECT_EQ(merge("--known known.toml -o whole.jsonl").status, 1);
  EXPECT_THAT(junit_facts(folder, "j.xml"), StartsWith("2 0 2")) << "the violation, and that it is new";
}

TEST(Formats, AreNamedWhereTheyStay) {
  const fake::Folder folder;
  const std::string check = "$attest check --verbose --kernel fault:scale-ignored " + chosen;
  ASSERT_EQ(shell(folder, check + "--out run > /dev/null; $attest check --verbose --kernel builtin:flash " + chosen +
                              "--out right > /dev/null; mv run/report.html page.html")
                .status,
            0);
  const auto said = [&](const std::string& line) {
    const ShellResult result = shell(folder, line);
    EXPECT_EQ(result.status, 0) << line << result.output;
    return result.output;
  };
  const std::string merged = said("$attest merge run right -o all.jsonl");
  EXPECT_EQ(merged, "wrote all.jsonl: 4 batches, " + said("printf %s $(grep -c '\"kind\":\"finding\"' all.jsonl)") +
                        " findings of 2 kernels\n");
  EXPECT_EQ(said("$attest merge right -o right.jsonl"), "wrote right.jsonl: 2 batches, 0 findings of 1 kernel\n");
  // The page of a run's folder goes there, and is the one that the check wrote.
  EXPECT_EQ(said("$attest report run"), "wrote run/report.html\n");
  EXPECT_EQ(said("sed -i 's/[0-9a-f]\\{32\\}/nonce/g' run/report.html page.html; cmp run/report.html page.html"), "");
  EXPECT_EQ(said("$attest report run/ --junit j.xml -o other.html"), "wrote other.html, j.xml\n");
  EXPECT_EQ(said("rm run/report.html; $attest report run --junit j.xml; ls run/report.html 2> /dev/null || echo none"),
            "wrote j.xml\nnone\n");
  // Tables go to standard output, and nothing else does, whatever is written besides.
  for (const std::string format : {"--toml", "--json", "--csv"}) {
    EXPECT_EQ(said("$attest report run " + format + " -o table"), "wrote table\n");
    EXPECT_EQ(said(joined({"$attest report run ", format, " > shown && $attest report run ", format,
                           " --sarif s.sarif > shown-2 && cmp shown table && cmp shown-2 table && test -s table"})),
              "");
  }
  EXPECT_EQ(said("$attest report run --csv -o /dev/stdout | cmp - table"), "");
  EXPECT_EQ(said("$attest merge run -o /dev/null"), "");
  EXPECT_EQ(shell(folder, "$attest report right.jsonl").output,
            "attest: attest report needs -o FILE, the page to write: \"right.jsonl\" is no run's folder\n");
}

TEST(Formats, AreRefusedInALine) {
  expect_refused("merge run --junit x", "attest merge needs -o FILE");
  expect_refused("fuzz --self-test --junit x", "--self-test measures the search and judges no kernel; --junit is for");

  expect_refused("check --junit ''", "--junit is empty; it must name a file");
  expect_refused("report nowhere --toml", "cannot read \"nowhere\"");
  expect_refused("report nowhere", "cannot read \"nowhere\"");
  expect_refused("report /dev/null",
                 "attest report needs -o FILE, the page to write: \"/dev/null\" is no run's folder");
  expect_refused("report / /usr", "attest report needs -o FILE, the page to write: there are 2 RUNs");
  expect_refused("report run --toml --csv -o x", "--toml and --csv exclude each other");
  expect_refused("report nowhere --junit x", "nowhere");
}

TEST(FormatsProgram, RefusesAFileThatHasNoFolderBeforeTheRun) {
  const fake::Folder folder;
  for (const char* command : {"check --cases 5", "fuzz --runs 50"}) {
    const ShellResult refused =
        shell(folder, joined({"$attest ", command, " --kernel builtin:flash --dtype f32 --junit no/where/j.xml"}));
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(refused.output,
              "attest: --junit \"no/where/j.xml\" has no folder to stand in: make \"no/where\" first\n");
    EXPECT_EQ(shell(folder, "ls").output, "") << "nothing was run";
  }
  EXPECT_EQ(
      shell(folder, "$attest check --kernel builtin:flash --dtype f32 --cases 5 --quiet --out run --sarif run/s.sarif")
          .status,
      0);
}

}  // namespace
}  // namespace attest

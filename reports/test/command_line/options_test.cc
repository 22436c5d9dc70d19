#include "reports/command_line/options.h"

#include <gtest/gtest.h>

#include "core/problem/case.h"
#include "reports/command_line/help.h"
#include "reports/command_line/option_table.h"

namespace attest {
namespace {

Options parse(std::vector<const char*> words) {
  words.insert(words.begin(), "attest");
  return parse_options(static_cast<int>(words.size()), words.data());
}

/// The one line that a command line is refused with.
std::string refusal(const std::vector<const char*>& words) {
  try {
    (void)parse(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Options, ReadsEveryOptionOfCheck) {
  const Options o = parse({"check",
                           "--kernel",
                           "builtin:*",
                           "--kernel=exec:python3 a.py --x",
                           "--property",
                           "attention.*",
                           "--dtype",
                           "f32,bf16",
                           "--dtype",
                           "f32",
                           "--cases",
                           "12",
                           "--seed",
                           "18446744073709551615",
                           "--jobs",
                           "3",
                           "--out",
                           "o",
                           "--overwrite",
                           "--shard",
                           "1/4",
                           "--time",
                           "1.5m",
                           "--fail-fast",
                           "--timeout",
                           "500ms",
                           "--inconclusive=held",
                           "--alarm",
                           "--memory",
                           "1.5GiB",
                           "--in-process",
                           "--quiet"});
  EXPECT_EQ(o.command, Command::check);
  EXPECT_EQ(o.kernels, (std::vector<std::string>{"builtin:*", "exec:python3 a.py --x"}));
  EXPECT_EQ(o.properties, std::vector<std::string>{"attention.*"});
  EXPECT_EQ(o.dtypes, (std::vector<DType>{DType::f32, DType::bf16}));
  EXPECT_EQ(o.cases, 12);
  EXPECT_EQ(o.seed, 18446744073709551615U);
  EXPECT_EQ(o.jobs, 3);
  EXPECT_EQ(o.out, "o");
  EXPECT_TRUE(o.overwrite && o.fail_fast && o.quiet && o.inconclusive_held && o.alarm && !o.resume);
  EXPECT_EQ(o.shard, (Shard{1, 4}));
  EXPECT_EQ(*o.time, std::chrono::milliseconds(90'000));
  EXPECT_EQ(o.timeout, std::chrono::milliseconds(500));
  EXPECT_EQ(o.memory, 3U << 29U);
  EXPECT_TRUE(o.in_process);
  EXPECT_EQ(o.kernel_options().memory, o.memory);
  EXPECT_EQ(o.kernel_options().reply, o.timeout);
  EXPECT_TRUE(o.kernel_options().in_process);
}

TEST(Options, TakesSeveralFilesAndPositionals) {
  EXPECT_EQ(parse({"check", "--case", "a", "b", "--case", "c", "--quiet"}).case_files.size(), 3U);
  EXPECT_EQ(parse({"merge", "a", "b", "-o", "c"}).inputs.size(), 2U);
  EXPECT_EQ(parse({"report", "-o", "c", "a"}).output, "c");
  EXPECT_EQ(parse({"replay", "a", "--kernel", "builtin:flash"}).kernels.size(), 1U);
  EXPECT_EQ(parse({"bench", "--benchmark_filter=x", "y"}).passed_on,
            (std::vector<std::string>{"--benchmark_filter=x", "y"}));
  EXPECT_TRUE(parse({"check", "--help"}).help);
  EXPECT_TRUE(parse({"--version"}).version);
}

TEST(Options, ReadsSizes) {
  EXPECT_EQ(parse({"check"}).memory, std::uint64_t{4} << 30U);
  EXPECT_FALSE(parse({"check"}).in_process);
  EXPECT_EQ(parse({"check", "--memory", "none"}).memory, 0U);
  EXPECT_EQ(parse({"check", "--memory", "16777216"}).memory, 1U << 24U);
  EXPECT_EQ(parse({"replay", "a", "--memory", "512MiB"}).memory, 1U << 29U);
  EXPECT_EQ(parse({"check", "--memory", "2GB"}).memory, 2'000'000'000U);
}

TEST(Options, RefusesBadValuesInOneLine) {
  EXPECT_EQ(refusal({"check", "--memory", "4Gib"}),
            "--memory is \"4Gib\"; it must be a size from 16MiB to 1024TiB such as 512MiB or 4GiB, or none");
  for (const char* size : {"1MiB", "0", "-4GiB", "nan", "1e9TiB", "", "much"})
    EXPECT_NE(refusal({"check", "--memory", size}).find("--memory"), std::string::npos) << size;
  EXPECT_EQ(refusal({"check", "--cases", "-3"}), "--cases is -3; it must be at least 1");
  EXPECT_EQ(refusal({"check", "--cases", "0"}), "--cases is 0; it must be at least 1");
  EXPECT_EQ(refusal({"check", "--cases", "many"}), "--cases is \"many\"; it must be a whole number of at least 1");
  EXPECT_EQ(refusal({"check", "--cases", "1e3"}), "--cases is \"1e3\"; it must be a whole number of at least 1");
  EXPECT_EQ(refusal({"check", "--cases", ""}), "--cases is \"\"; it must be a whole number of at least 1");
  EXPECT_NE(refusal({"check", "--cases", "99999999999999999999"}).find("at most"), std::string::npos);
  EXPECT_NE(refusal({"check", "--seed", "-1"}).find("--seed is \"-1\""), std::string::npos);
  EXPECT_NE(refusal({"check", "--jobs", "0"}).find("at least 1"), std::string::npos);
  EXPECT_NE(refusal({"check", "--shard", "2/2"}).find("0 <= i < n"), std::string::npos);
  EXPECT_NE(refusal({"check", "--shard", "2"}).find("i/n"), std::string::npos);
  EXPECT_NE(refusal({"check", "--shard", "-1/2"}).find("at least 0"), std::string::npos);
  EXPECT_NE(refusal({"check", "--time", "soon"}).find("--time is \"soon\""), std::string::npos);
  EXPECT_NE(refusal({"check", "--time", "-1s"}).find("--time"), std::string::npos);
  EXPECT_NE(refusal({"check", "--time", "nan"}).find("--time"), std::string::npos);
  EXPECT_NE(refusal({"check", "--time", "1e300h"}).find("--time"), std::string::npos);
  EXPECT_NE(refusal({"check", "--timeout", "0"}).find("--timeout"), std::string::npos);
  EXPECT_NE(refusal({"check", "--out", ""}).find("--out is empty"), std::string::npos);
  EXPECT_NE(refusal({"check", "--inconclusive", "hold"}).find("held"), std::string::npos);
  EXPECT_EQ(refusal({"check", "--dtype", "f23"}), "unknown dtype \"f23\"; did you mean \"f32\"?");
  EXPECT_NE(refusal({"check", "--dtype", "bool"}).find("unknown dtype"), std::string::npos);
  EXPECT_EQ(refusal({"check", "--seed", "1", "--seed", "2"}), "--seed is given 2 times; give it once");
  EXPECT_NE(refusal({"check", "--cases"}).find("--cases"), std::string::npos);
}

TEST(Options, EveryOptionWithoutItsValueIsAnsweredWithTheRemedy) {
  EXPECT_EQ(refusal({"report", "--junit"}),
            "--junit has no value; it takes one: write --junit FILE (see attest report --help)");
  EXPECT_EQ(refusal({"check", "--jobs", "--seed", "2"}),
            "--jobs has no value, \"--seed\" follows it; it takes one: write --jobs N (see attest check --help)");
  EXPECT_NE(refusal({"check", "--kernel", "--help"}).find("--kernel has no value, \"--help\" follows it"),
            std::string::npos);
  EXPECT_EQ(refusal({"check", "--quiet=yes"}), "--quiet has a value, \"yes\"; it takes none: write --quiet");
  for (const CommandRow& command : command_rows()) {
    for (const OptionRow& row : option_rows()) {
      if ((row.commands & on(command.command)) == 0 || row.positional()) continue;
      for (const std::string_view flag : spellings_of(row)) {
        const std::string name(command.name), option(flag), empty = option + "=", given = option + "=x";
        const std::string said = option + " has no value";
        const std::string remedy =
            "write " + option + " " + std::string(row.value) + " (see attest " + name + " --help)";
        if (row.takes == Takes::nothing) {
          EXPECT_EQ(refusal({name.c_str(), given.c_str()}).find(option + " has a value"), 0U);
          continue;
        }
        for (const std::string& line :
             {refusal({name.c_str(), option.c_str()}), refusal({name.c_str(), option.c_str(), option.c_str(), "1"}),
              option.starts_with("--") ? refusal({name.c_str(), empty.c_str()}) : said + remedy}) {
          EXPECT_EQ(line.find(said), 0U) << line;
          EXPECT_NE(line.find(remedy), std::string::npos) << line;
        }
      }
    }
  }
  // What looks like an option and is none of the command's is a value.
  EXPECT_EQ(parse({"check", "--kernel", "--nothing"}).kernels, std::vector<std::string>{"--nothing"});
  EXPECT_EQ(parse({"check", "--junit=--sarif"}).junit, "--sarif");
}

TEST(Options, WhatIsWrittenIsNamedByEitherSpelling) {
  for (const char* const spelling : {"-o", "--out", "--output"}) {
    for (const char* const command : {"check", "audit", "prove"})
      EXPECT_EQ(parse({command, spelling, "there"}).out, "there") << command << spelling;
    EXPECT_EQ(parse({"fuzz", "--kernel", "k", spelling, "there"}).out, "there") << spelling;
    EXPECT_EQ(parse({"merge", "a", spelling, "there"}).output, "there") << spelling;
    EXPECT_EQ(parse({"report", "a", spelling, "there"}).output, "there") << spelling;
    EXPECT_EQ(parse({"compare", "a", "b", spelling, "there"}).output, "there") << spelling;
    EXPECT_EQ(parse({"probe", "--kernel", "k", spelling, "there"}).output, "there") << spelling;
  }
  EXPECT_NE(refusal({"check", "--out", "a", "--output", "b"}).find("--out is given 2 times"), std::string::npos);
  EXPECT_EQ(parse({"check", "--output=there"}).out, "there");
  // Help shows one of them.
  const auto has = [](Command command, const char* text) { return help_text(command).find(text) != std::string::npos; };
  EXPECT_TRUE(has(Command::check, "-o, --out DIR") && !has(Command::check, "--output"));
  EXPECT_TRUE(has(Command::merge, "-o, --output FILE") && !has(Command::merge, "--out "));
}

TEST(Options, OffersTheNearestNameForEveryMistypedOption) {
  const std::pair<const char*, std::vector<const char*>> by_command[] = {
      {"check",
       {"--kernel", "--property", "--dtype", "--cases", "--seed", "--jobs", "--out", "--resume", "--overwrite",
        "--shard", "--time", "--fail-fast", "--timeout", "--memory", "--inconclusive", "--case", "--quiet"}},
      {"list", {"--kernels", "--properties", "--dtypes", "--json", "--markdown"}},
      {"replay", {"--kernel", "--timeout"}},
      {"merge", {"--output"}},
      {"report", {"--output"}}};
  for (const auto& [command, options] : by_command) {
    for (const std::string option : options) {
      // Two neighbours swapped: the commonest slip.
      std::string typo = option;
      std::swap(typo[typo.size() - 1], typo[typo.size() - 2]);
      const std::string line = refusal({command, typo.c_str()});
      EXPECT_NE(line.find("unknown option \"" + typo + "\" of attest " + command), std::string::npos) << line;
      EXPECT_NE(line.find("did you mean \"--"), std::string::npos) << line;
      // "--caes" is as near to --cases as to --case, which stands later in the table.
      if (option == "--case") continue;
      EXPECT_NE(line.find("did you mean \"" + option + "\""), std::string::npos) << line;
    }
  }
  EXPECT_EQ(refusal({"chekc"}), "unknown command \"chekc\"; did you mean \"check\"?");
  EXPECT_NE(refusal({"--verison"}).find("--version"), std::string::npos);
  EXPECT_NE(refusal({}).find("no command given"), std::string::npos);
  EXPECT_NE(refusal({"check", "stray"}).find("unexpected argument \"stray\""), std::string::npos);
}

TEST(Options, RefusesContradictions) {
  EXPECT_NE(refusal({"check", "--resume", "--overwrite", "--out", "a"}).find("exclude each other"), std::string::npos);
  EXPECT_NE(refusal({"check", "--resume"}).find("--out"), std::string::npos);
  EXPECT_NE(refusal({"check", "--case", "a", "--cases", "3"}).find("--cases is for generated cases"),
            std::string::npos);
  EXPECT_NE(refusal({"list", "--markdown"}).find("--properties --markdown"), std::string::npos);
  EXPECT_NE(refusal({"list", "--properties", "--markdown", "--json"}).find("exclude"), std::string::npos);
  EXPECT_NE(refusal({"replay"}).find("one CASE"), std::string::npos);
  EXPECT_NE(refusal({"replay", "a", "b"}).find("one CASE"), std::string::npos);
  EXPECT_NE(refusal({"merge", "-o", "x"}).find("needs a RUN"), std::string::npos);
  EXPECT_NE(refusal({"merge", "x"}).find("needs -o FILE"), std::string::npos);
  EXPECT_NE(refusal({"check", "list"}).find("not check and list"), std::string::npos);
}

TEST(Options, HelpNamesEveryCommandWithAnExample) {
  const std::string all = help_text(Command::none);
  for (const auto& [command, name] :
       {std::pair{Command::check, "check"}, std::pair{Command::list, "list"}, std::pair{Command::replay, "replay"},
        std::pair{Command::merge, "merge"}, std::pair{Command::report, "report"}, std::pair{Command::bench, "bench"}}) {
    EXPECT_NE(all.find(std::string("example: attest ") + name), std::string::npos);
    EXPECT_NE(help_text(command).find(std::string("example: attest ") + name), std::string::npos);
  }
  EXPECT_NE(help_text(Command::check).find("--fail-fast"), std::string::npos);
}

}  // namespace
}  // namespace attest

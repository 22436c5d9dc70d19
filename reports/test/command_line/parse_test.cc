#include "reports/command_line/parse.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "core/support/errors.h"
#include "reports/command_line/help.h"
#include "reports/command_line/option_values.h"
#include "reports/commands/commands.h"
#include "reports/test/command_line/parsed.h"

namespace attest {
namespace {

/// The one line that a command line is refused with.
std::string refusal(std::vector<const char*> words) {
  words.insert(words.begin(), "attest");
  try {
    (void)parse(all_commands(), words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

/// Options of every kind.
struct SomeOptions {
  bool flag = false;
  std::optional<std::int64_t> number;
  std::vector<std::string> texts;
  std::vector<DType> dtypes;
  std::filesystem::path out;
  std::vector<std::filesystem::path> files_named, inputs;

  void declare(OptionList& list) {
    list.flag("--flag", flag, "a flag");
    list.option("--number", number, whole_number<std::int64_t>(1), "a number");
    list.option("--text", texts, any_text("TEXT"), "texts");
    list.option("--dtype", dtypes, dtype_list(), "dtypes");
    list.option("-o,--out", out, file_name(), "a file");
    list.several("--case", files_named, any_text("FILE", files), "files");
    list.several("INPUT", inputs, any_text("FILE", files), "files");
  }
  void refuse() const {
    if (flag && number) throw UsageError("--flag and --number exclude each other");
  }
};

struct PassingOptions {
  std::vector<std::string> words;
  void declare(OptionList& list) { list.pass_on(words); }
};

const auto some = parsed<SomeOptions>;

TEST(Options, AreReadIntoTheFieldsOfTheCommandThatRuns) {
  const SomeOptions o = some({"--text", "a b", "--number", "12", "--text=c", "one", "--case", "x", "y", "--case", "z",
                              "--dtype", "f32,bf16", "--dtype", "f32", "--output", "there"});
  EXPECT_FALSE(o.flag);
  EXPECT_EQ(o.number, 12);
  EXPECT_EQ(o.texts, (std::vector<std::string>{"a b", "c"}));
  EXPECT_EQ(o.dtypes, (std::vector<DType>{DType::f32, DType::bf16}));
  EXPECT_EQ(o.files_named, (std::vector<std::filesystem::path>{"x", "y", "z"}));
  EXPECT_EQ(o.inputs, std::vector<std::filesystem::path>{"one"});
  EXPECT_EQ(o.out, "there");
  EXPECT_TRUE(some({"--flag"}).flag);
  EXPECT_EQ(some({"a", "b", "-o", "c"}).inputs.size(), 2U);
  // What looks like an option and is none of the command's is a value, and so is the name of the arguments.
  EXPECT_EQ(some({"--text", "--nothing"}).texts, std::vector<std::string>{"--nothing"});
  EXPECT_EQ(some({"--text", "INPUT"}).texts, std::vector<std::string>{"INPUT"});
  EXPECT_EQ(some({"--out=--case"}).out, "--case");
  EXPECT_THROW(some({"--flag", "--number", "1"}), UsageError);
}

TEST(Options, HelpAndVersionAreAskedForWhateverElseIsMissing) {
  const std::vector<Command> commands = all_commands();
  const CommandLine line = parse(commands, std::vector{"attest", "fuzz", "--help"});
  EXPECT_TRUE(line.help);
  EXPECT_EQ(line.command->name, "fuzz");
  EXPECT_TRUE(parse(all_commands(), std::vector{"attest", "--version"}).version);
}

TEST(Options, PassesOnWhatIsAnotherPrograms) {
  EXPECT_EQ(parsed<PassingOptions>({"--benchmark_filter=x", "y", "--help"}).words,
            (std::vector<std::string>{"--benchmark_filter=x", "y", "--help"}));
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
  const std::pair<const char*, const char*> frameworks[] = {{"bfloat16", "bf16"},   {"torch.bfloat16", "bf16"},
                                                            {"jnp.float32", "f32"}, {"Float64", "f64"},
                                                            {"double", "f64"},      {"half", "f16"},
                                                            {"fp16", "f16"},        {"numpy.float16", "f16"},
                                                            {"torch.float", "f32"}, {"torch.float8_e4m3fn", "f8_e4m3"},
                                                            {"f32,float16", "f16"}};
  for (const auto& [theirs, ours] : frameworks) {
    EXPECT_NE(refusal({"check", "--dtype", theirs}).find(std::string("; did you mean \"") + ours + "\"?"),
              std::string::npos)
        << theirs;
  }
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
  for (const Command& command : all_commands()) {
    for (const ShownOption& shown : command.options.shown()) {
      for (const std::string& option : shown.spellings) {
        const std::string name(command.name), empty = option + "=", given = option + "=x";
        const std::string said = option + " has no value";
        const std::string remedy = fmt::format("write {} {} (see attest {} --help)", option, shown.value, name);
        if (shown.value.empty()) {
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
}

TEST(Options, WhatIsWrittenIsNamedByEitherSpelling) {
  for (const char* const spelling : {"-o", "--out", "--output"}) {
    EXPECT_EQ(some({spelling, "there"}).out, "there") << spelling;
    // One option, whichever way it is written.
    for (const char* const command : {"check", "audit", "prove", "fuzz"})
      EXPECT_EQ(refusal({command, "--out", "a", spelling, "b"}), "--out is given 2 times; give it once") << command;
    for (const char* const command : {"merge", "report", "compare", "probe"})
      EXPECT_EQ(refusal({command, "--output", "a", spelling, "b"}), "--output is given 2 times; give it once")
          << command;
    for (const std::vector<const char*>& line :
         std::vector<std::vector<const char*>>{{"check", spelling, "there"},
                                               {"audit", spelling, "there"},
                                               {"prove", spelling, "there"},
                                               {"fuzz", "--kernel", "k", spelling, "there"},
                                               {"merge", "a", spelling, "there"},
                                               {"report", "a", spelling, "there"},
                                               {"compare", "a", "b", spelling, "there"},
                                               {"probe", "--kernel", "k", spelling, "there"}})
      EXPECT_EQ(refusal(line), "accepted") << line.front() << spelling;
  }
  // Help shows one of them.
  const auto has = [](const Command& command, const char* text) {
    return command_help(command).find(text) != std::string::npos;
  };
  EXPECT_TRUE(has(check_command(), "-o, --out DIR") && !has(check_command(), "--output"));
  EXPECT_TRUE(has(merge_command(), "-o, --output FILE") && !has(merge_command(), "--out "));
}

TEST(Options, OffersTheNearestNameForEveryMistypedOption) {
  const std::pair<const char*, std::vector<const char*>> by_command[] = {
      {"check",
       {"--kernel", "--property", "--dtype", "--cases", "--seed", "--jobs", "--out", "--resume", "--overwrite",
        "--shard", "--time", "--fail-fast", "--timeout", "--memory", "--inconclusive", "--case", "--quiet"}},
      {"list", {"--kernels", "--properties", "--dtypes", "--tolerances", "--json", "--markdown"}},
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
  const std::vector<Command> commands = all_commands();
  const std::string all = program_help(commands);
  EXPECT_EQ(commands.size(), 16U);
  for (const Command& command : commands) {
    const std::string example = "example: attest " + std::string(command.name);
    EXPECT_NE(all.find(example), std::string::npos);
    EXPECT_NE(command_help(command).find(example), std::string::npos);
  }
  EXPECT_NE(command_help(check_command()).find("--fail-fast"), std::string::npos);
}

}  // namespace
}  // namespace attest

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "core/kernel/kernel_under_test.h"
#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/folder.h"
#include "core/support/names.h"
#include "reports/commands/commands.h"
#include "reports/commands/options/shared_options.h"
#include "reports/run/interrupt.h"
#include "reports/survey/survey_cell.h"
#include "reports/survey/survey_page.h"
#include "reports/text/text.h"
#include "reports/text/wrap.h"

namespace attest {
namespace {

constexpr const char* data_name = "survey.json";
constexpr const char* page_name = "survey.html";

struct SurveyOptions {
  SurveyPlan plan;
  std::optional<std::chrono::milliseconds> time;
  Shard shard;
  std::vector<std::string> only;  ///< globs of names of cells; empty: all
  bool no_runs = false;
  bool quiet = false;
  std::vector<std::filesystem::path> files;  ///< a list, or surveys to be joined

  void declare(OptionList& list) {
    list.option("-o,--out", plan.out, text_naming("a folder", "DIR", folders),
                "the survey's folder; it has to be given");
    list.option("--time", time, duration(),
                "how long each check takes, and each search: 90s, 10m or 2h; a number alone is seconds (default: 5m)");
    list.option("--cases", plan.cases, whole_number<std::int64_t>(1),
                "cases of each property, and runs of each search, in the place of --time: the same on every machine");
    declare_seed(list, plan.seed);
    plan.jobs = 1;
    list.option("--jobs", plan.jobs, whole_number(1), "threads of each check and search (default: 1)");
    list.option("--shard", shard, shard_of_run(),
                "take the cells I mod N only, 0 <= I < N: parts may share a folder, or be joined by their survey.json");
    list.option("--only", only, any_text("CELL"),
                "take the cells whose name matches CELL: \"PyTorch 2.13.0: SDPA, math in f32\"; repeatable");
    list.flag("--no-runs", no_runs, "run nothing, and draw the table of what is there");
    declare_quiet(list, quiet);
    list.several("LIST", files, any_text("LIST", attest::files),
                 "a list of code paths (FILE.toml), or two survey.json or more, which are joined");
  }
  [[nodiscard]] bool joins() const { return !files.empty() && files.front().extension() != ".toml"; }
  void refuse() const {
    refuse_if(files.empty(), "attest survey needs LIST, a TOML file with a [[path]] for each code path");
    refuse_if(plan.out.empty(), "attest survey needs --out DIR, the survey's folder");
    refuse_if(time && plan.cases, "--time and --cases exclude each other; give one");
    refuse_if(!joins() && files.size() > 1, fmt::format("attest survey takes one LIST, not {}", files.size()));
    const bool mixed =
        std::ranges::any_of(files, [](const std::filesystem::path& file) { return file.extension() == ".toml"; });
    refuse_if(joins() && mixed, "a list and tables cannot be joined; run the list first, then join its survey.json");
  }
};

/// Of surveys that are joined: their rows, and their inputs beside the table.
std::vector<SurveyRow> rows_of_tables(const std::vector<std::filesystem::path>& files,
                                      const std::filesystem::path& out) {
  std::vector<SurveyRow> all;
  for (const std::filesystem::path& given : files) {
    const std::filesystem::path file = is_directory(given) ? given / data_name : given;
    for (SurveyRow& row : parse_survey(read_file(file), file.string())) {
      const auto take = [&](const std::string& input) {
        if (input.empty()) return;
        // A name leads nowhere else: it was read from a file of others.
        if (std::filesystem::path(input) != std::filesystem::path("cases") / std::filesystem::path(input).filename())
          throw UsageError(fmt::format("{}: {} is no file of its cases/", file.string(), in_quotes(input)));
        if (exists(out / input)) return;
        create_directories(out / "cases");
        write_file_atomically(out / input, Folder(file.has_parent_path() ? file.parent_path() : ".").read(input));
      };
      take(row.worst_input);
      for (const WrongPath& wrong : row.wrong) take(wrong.input);
      all.push_back(std::move(row));
    }
  }
  return all;
}

std::vector<SurveyRow> rows_of_list(SurveyOptions& options) {
  SurveyPlan& plan = options.plan;
  plan.list = std::filesystem::absolute(options.files.front()).parent_path();
  plan.time = options.time.value_or(std::chrono::minutes(5));
  plan.say = [&](const std::string& line) {
    if (!options.quiet) fmt::print(stderr, "{}\n", one_line(line));
  };
  std::vector<SurveyCell> cells = cells_of(read_library_paths(std::filesystem::absolute(options.files.front())));
  std::erase_if(cells, [&](const SurveyCell& cell) {
    return !options.only.empty() &&
           std::ranges::none_of(options.only, [&](const std::string& glob) { return glob_match(glob, cell.name()); });
  });
  if (cells.empty())
    throw UsageError(fmt::format("--only {} matches no cell of the list", in_quotes(options.only.front())));
  handle_signals();
  for (std::size_t i = 0; i < cells.size() && !options.no_runs; ++i)
    if (static_cast<std::int64_t>(i) % options.shard.count == options.shard.index) run_cell(cells[i], plan);
  // Of every cell, for other parts may have run theirs in this folder.
  std::vector<SurveyRow> rows;
  for (const SurveyCell& cell : cells) std::ranges::move(rows_of(cell, plan), std::back_inserter(rows));
  return rows;
}

std::string terminal_table(const std::vector<SurveyRow>& rows) {
  std::vector<std::vector<std::string>> lines{{"code path", "dtype", "output", "verdict", "worst share"}};
  std::string not_run;
  for (const SurveyRow& row : rows) {
    if (row.not_run.empty()) {
      lines.push_back({one_line(path_words(row)), row.dtype, output_words(row),
                       fmt::format("{} {}", name_of(row.verdict), alone_words(row)), short_number(row.worst_share)});
    } else {
      not_run += fmt::format("not run: {} in {}: {}\n", path_words(row), row.dtype, row.not_run);
    }
  }
  return (lines.size() > 1 ? columns(lines, {false, false, false, false, true}) : "") +
         wrapped(not_run, terminal_columns());
}

int survey(SurveyOptions& options) {
  const std::filesystem::path& out = options.plan.out;
  create_directories(out);
  const std::vector<SurveyRow> rows =
      joined(options.joins() ? rows_of_tables(options.files, out) : rows_of_list(options));
  write_file_atomically(out / data_name, survey_json(rows));
  write_file_atomically(out / page_name, survey_page(rows));
  if (!options.quiet) fmt::print("{}\n", terminal_table(rows));
  fmt::print("table: {}\npage: {}\n", (out / data_name).string(), (out / page_name).string());
  return std::ranges::all_of(rows, [](const SurveyRow& row) { return !row.not_run.empty(); }) ? 3 : 0;
}

}  // namespace

Command survey_command() {
  return {with_options<SurveyOptions>(survey), "survey", "attest survey LIST --out DIR [OPTIONS]",
          "Makes a table of libraries: for each code path of a list, in each dtype, it installs the library by its "
          "recipe, probes its arithmetic, checks every property and searches for the worst known case, and writes one "
          "page and one data file. What is there is not run again, so that a survey that was ended goes on. Exit 0 "
          "whatever the verdicts, 3 where nothing could be run.",
          "attest survey paths.toml --out survey --time 10m --shard 0/4"};
}

}  // namespace attest

#include "reports/survey/survey_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include "reports/page/frame.h"
#include "reports/page/print.h"
#include "reports/run_folder/run_folder.h"
#include "reports/sections/sections.h"
#include "reports/text/text.h"

namespace attest {
namespace {

Tags tags_of(const SurveyRow& row) {
  return {.kernel = fmt::format("{} {}", path_words(row), row.dtype),
          .property = output_words(row),
          .verdict = row.not_run.empty() ? std::string(name_of(row.verdict)) : "skipped"};
}

/// A commit by its first digits, as git shows it: a table has no room for forty.
std::string short_version(const std::string& version) {
  const auto is_digit = [](unsigned char c) { return std::isxdigit(c) != 0; };
  return version.size() == 40 && std::ranges::all_of(version, is_digit) ? version.substr(0, 7) : version;
}

/// The line that runs a case of the table again, typed in the table's folder.
std::string replay_of(const SurveyRow& row, const std::string& input) {
  return fmt::format("{} replay {} --kernel {}", command_name(), shell_quoted(input), shell_quoted(row.kernel));
}
Piece input_of(const SurveyRow& row) {
  if (row.worst_input.empty()) return "–";
  return folded_line(row.worst_was_searched ? "searched" : "drawn", replay_of(row, row.worst_input));
}

/// What of the arithmetic that was found is otherwise than declared comes first; a dash where nothing was found.
Piece arithmetic_of(const SurveyRow& row) {
  if (row.found.empty()) return "–";
  const std::string_view label = row.declared.empty() || row.declared == row.found ? "as declared" : "otherwise";
  return {label, Piece::Kind::unfolds, row.found};
}

Text promise_of(const SurveyRow& row) {
  std::string words = row.promises;
  for (const std::string& claim : row.claims) words += (words.empty() ? "" : ", ") + claim;
  if (words.empty()) return "–";
  return {badge(row.promise.value_or(row.verdict)), " ", theirs(words)};
}

std::string share_text(double share) {
  return share == 0 ? "0" : short_number(share);
}

/// A dash where errors of such an output are not measured, and where no ordinary case was drawn.
std::string measured(const SurveyRow& row, double number) {
  return row.by_keys.empty() ? "–" : short_number(number);
}
std::string ordinary(const SurveyRow& row, double number) {
  return row.ordinary_cases == 0 ? "–" : share_text(number);
}

Text verdict_of(const SurveyRow& row) {
  const std::string alone = alone_words(row);
  if (alone.empty()) return badge(row.verdict);
  return {badge(row.verdict), Piece(alone, Piece::Kind::below)};
}

Table table_of(const std::vector<SurveyRow>& rows) {
  Table table{
      "A row for each output of a code path in a dtype",
      columns_of(
          "library|version|code path|dtype|output|verdict|#worst share|#in u Σα¦v¦|#p99.9, ordinary|#ordinary, in u Σα¦v¦|"
          "#judged|#searched|worst known input|arithmetic found|promised, and kept|date|processor"),
      "dense"};
  for (const SurveyRow& row : rows) {
    if (!row.not_run.empty()) continue;
    table.rows.push_back(
        {{theirs(row.library), theirs(short_version(row.version)), theirs(row.path), theirs(row.dtype),
          output_words(row), TableCell(verdict_of(row)), share_text(row.worst_share), measured(row, row.worst_scaled),
          ordinary(row, row.ordinary_share), ordinary(row, row.ordinary_scaled), with_commas(row.judged),
          with_commas(row.searched), input_of(row), arithmetic_of(row), TableCell(promise_of(row)), row.date,
          theirs(row.processor)},
         tags_of(row)});
  }
  return table;
}

/// A card for each mistake, which several outputs of an operation share.
Blocks wrong_section(const std::vector<SurveyRow>& rows) {
  Blocks blocks;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> told;
  for (const SurveyRow& row : rows) {
    for (const WrongPath& wrong : row.wrong) {
      if (!told.emplace(path_words(row), row.dtype, row.operation, wrong.what).second) continue;
      Facts facts;
      const auto add = [&](std::string_view name, const std::string& said) {
        if (!said.empty()) facts.facts.push_back({name, {theirs(said)}});
      };
      add("when", wrong.when);
      add("smallest", wrong.smallest);
      add("found", wrong.found);
      for (const std::string& finding : row.findings) add("in the library", finding);
      Group card{.kind = Group::Kind::article,
                 .title = {title_of(path_words(row), row.dtype), ": ", theirs(wrong.what)},
                 .blocks = {std::move(facts)},
                 .tags = {.kernel = tags_of(row).kernel}};
      if (!wrong.input.empty()) card.blocks.emplace_back(CodeLines{{replay_of(row, wrong.input)}});
      blocks.emplace_back(std::move(card));
    }
  }
  return blocks;
}

Blocks recipes_section(const std::vector<SurveyRow>& rows) {
  Table table{"How each path was installed, run and forced",
              columns_of("library|version|code path|recipe|kernel|forced|asked"), "dense"};
  std::set<std::string> told;
  for (const SurveyRow& row : rows) {
    if (!told.insert(path_words(row)).second) continue;
    table.rows.push_back({{theirs(row.library), theirs(row.version), theirs(row.path),
                           row.recipe.empty() ? Piece("–") : code(row.recipe), code(row.kernel),
                           row.forced.empty() ? Piece("–") : theirs(row.forced),
                           row.properties.empty() ? Text("every property") : first_of(row.properties, 4)},
                          {.kernel = tags_of(row).kernel}});
  }
  return {std::move(table),
          Paragraph{{"In a kernel ", code("{library}"), " is the folder that ", code("sh RECIPE FOLDER VERSION"),
                     " filled, and ", code("{list}"), " that of the survey's list."},
                    "note"}};
}

Blocks not_run_section(const std::vector<SurveyRow>& rows) {
  Listing listing;
  for (const SurveyRow& row : rows) {
    if (!row.not_run.empty())
      listing.items.push_back({theirs(path_words(row)), " in ", theirs(row.dtype), ": ", theirs(row.not_run)});
  }
  if (listing.items.empty()) return {};
  return {std::move(listing)};
}

Blocks honesty_section(const std::vector<SurveyRow>& rows) {
  std::set<std::string> processors, versions;
  for (const SurveyRow& row : rows) {
    if (!row.not_run.empty()) continue;
    processors.insert(row.processor), versions.insert("attest " + row.attest);
  }
  std::string on;
  for (const std::string& one : processors) on += (on.empty() ? "" : "; ") + one;
  return {
      Listing{{
          Text{"Held says: of so many judged cases none lies beyond the proved bound of the declared arithmetic. It "
               "says nothing about cases that were not drawn."},
          Text{"A worst known error is a lower bound of the true worst: a longer search may find a larger one. The "
               "largest of more cases is larger; compare rows of like numbers of cases."},
          Text{"A share of the bound depends on what is declared: a path that declares sums in 16 bits is allowed "
               "more. Errors in u Σα|v| do not depend on it, and grow with the number of keys and the size of the "
               "scores of the cases."},
          Text{"No single number ranks these paths, and the table has no order but the alphabet's: they differ in "
               "what they take, in their formats and in what they promise."},
          Text{"What is not in the table was not run. Another processor, number of threads or version may take "
               "another path."},
      }},
      Facts{{{"processors", {theirs(on.empty() ? "–" : on)}}, {"judged by", {theirs(some_of(versions))}}}}};
}

std::string headline_of(const std::vector<SurveyRow>& rows) {
  std::set<std::string> libraries, paths, missing;
  std::map<Outcome, std::size_t> verdicts;
  std::size_t alone = 0;
  for (const SurveyRow& row : rows) {
    if (!row.not_run.empty()) {
      missing.insert(path_words(row) + row.dtype);
      continue;
    }
    libraries.insert(row.library), paths.insert(row.library + ": " + row.path);
    ++verdicts[row.verdict];
    if (row.verdict == Outcome::held && !alone_words(row).empty()) ++alone;
  }
  std::string words = fmt::format("{} code paths of {} libraries, {} rows:", paths.size(), libraries.size(),
                                  std::ranges::count(rows, std::string(), &SurveyRow::not_run));
  for (const Outcome verdict : {Outcome::violated, Outcome::inconclusive, Outcome::held, Outcome::skipped})
    if (verdicts[verdict] > 0) words += fmt::format(" {} {},", verdicts[verdict], name_of(verdict));
  if (alone > 0) words += fmt::format(" {} of what held by some properties or the search alone,", alone);
  words.back() = '.';
  if (!missing.empty()) words += fmt::format(" Not run: {}.", missing.size());
  return words;
}

/// Plots of the output, one for each dtype.
PagePlots plots_of(const std::vector<SurveyRow>& rows, const std::string& nonce) {
  std::map<std::string, std::vector<ErrorsByKeys>> lines;
  for (const SurveyRow& row : rows) {
    if (row.not_run.empty() && row.output == "out" && !row.by_keys.empty())
      lines["Error by number of keys, " + row.dtype].push_back(
          {one_line(path_words(row)), row.worst_share, row.by_keys});
  }
  return plots_of_errors_by_keys(lines, nonce);
}

/// Words and whole numbers of a version, so that numbers compare as such.
std::vector<std::pair<std::int64_t, std::string>> parts_of(const std::string& version) {
  std::vector<std::pair<std::int64_t, std::string>> parts;
  for (std::size_t at = 0; at < version.size();) {
    const auto digit = [&](std::size_t i) { return std::isdigit(static_cast<unsigned char>(version[i])) != 0; };
    std::size_t end = at;
    while (end < version.size() && end - at < 18 && digit(end) == digit(at)) ++end;
    const std::string part = version.substr(at, end - at);
    // Letters come before numbers: 2.0rc1 before 2.0.1.
    if (digit(at))
      parts.emplace_back(std::stoll(part), "");
    else
      parts.emplace_back(-1, part);
    at = end;
  }
  return parts;
}

}  // namespace

Blocks versions_section(const std::vector<SurveyRow>& rows) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::vector<const SurveyRow*>> groups;
  for (const SurveyRow& row : rows)
    if (row.not_run.empty()) groups[{row.library, row.path, row.dtype, output_words(row)}].push_back(&row);
  Table table{
      "What an upgrade changed",
      columns_of("library|code path|dtype|output|from|to|verdict before|verdict|#worst share before|#worst share"),
      "dense"};
  for (auto& [key, of_versions] : groups) {
    std::ranges::sort(of_versions, {},
                      [](const SurveyRow* row) { return std::pair(parts_of(row->version), row->processor); });
    for (std::size_t i = 1; i < of_versions.size(); ++i) {
      const SurveyRow &before = *of_versions[i - 1], &now = *of_versions[i];
      if (before.version == now.version) continue;  // on another processor
      table.rows.push_back({{theirs(now.library), theirs(now.path), theirs(now.dtype), output_words(now),
                             theirs(before.version), theirs(now.version), badge(before.verdict), badge(now.verdict),
                             share_text(before.worst_share), share_text(now.worst_share)},
                            tags_of(now)});
    }
  }
  if (table.rows.empty()) return {};
  return {std::move(table)};
}

std::string survey_page(const std::vector<SurveyRow>& rows) {
  const std::string nonce = fresh_nonce();
  const PagePlots plots = plots_of(rows, nonce);
  std::string body, links;
  const auto add = [&](std::string_view id, std::string_view title, const Blocks& blocks, bool folded = false) {
    if (blocks.empty()) return;
    links += fmt::format("<a href=\"#{}\">{}</a> ", id, title);
    const std::string heading = fmt::format("<h2>{}</h2>", title);
    body += fmt::format("<section id=\"{}\">{}{}{}</section>\n", id,
                        folded ? fmt::format("<details class=\"folded\"><summary>{}</summary>", heading) : heading,
                        html_of(blocks), folded ? "</details>" : "");
  };
  add("table", "The table", {table_of(rows)});
  add("wrong", "What is wrong", wrong_section(rows));
  add("versions", "Versions", versions_section(rows));
  if (!plots.html.empty()) add("plots", "Errors by number of keys", {Drawing{plots.html}});
  add("reading", "What the table says, and what it does not", honesty_section(rows));
  add("not-run", "Not run", not_run_section(rows));
  add("recipes", "Recipes", recipes_section(rows), /*folded=*/true);
  add("numbers", "How each number is computed", numbers_page(/*alarm=*/false), /*folded=*/true);
  return framed({.title = "Attest: survey of attention kernels",
                 .heading = "Accuracy of attention kernels",
                 .first = html_of(Blocks{Paragraph{headline_of(rows)}}),
                 .body = fmt::format("<nav aria-label=\"Sections\">{}</nav>\n{}", links, body),
                 .plots = plots},
                nonce);
}

}  // namespace attest

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <vector>

#include "core/support/errors.h"
#include "core/support/folder.h"
#include "reports/page/print.h"
#include "reports/results/cause_words.h"
#include "reports/results/error_map.h"
#include "reports/run_folder/run_folder.h"
#include "reports/sections/sections.h"

namespace attest {
namespace {

/// Of the answer that stands in the file of the run; nothing where there is none, or where file or manifest are not
/// valid, as those of others may be.
std::optional<ErrorMap> map_in(const Reported& run, const std::string& file, const KernelRecord& kernel) {
  try {
    const std::filesystem::path path = run.folder;
    const Folder folder(path);
    if (!folder.holds(file)) return std::nullopt;
    const Manifest manifest = parse_manifest(kernel.manifest, kernel.id);
    std::optional<ErrorMap> map = error_map(decode_answered_case(folder.read(file), (path / file).native()), manifest);
    return map && map->wrong() > 0 ? map : std::nullopt;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

struct Shown {
  ErrorMap map;
  std::string_view which;  ///< "worst case"
};
/// What is wrong in the answer to the worst case of the example's property, as it was drawn; where that one is not to
/// be had, or may be another mistake's, in the answer to the smallest.
std::optional<Shown> shown_of(const Reported& run, const CauseWords& words) {
  const Cause& cause = *words.cause;
  const auto kernel = std::ranges::find(run.journal.kernels, cause.kernel, &KernelRecord::id);
  if (run.folder.empty() || words.case_file.empty() || kernel == run.journal.kernels.end() || kernel->manifest.empty())
    return std::nullopt;
  const auto causes = std::ranges::count(run.summary.causes, cause.kernel, &Cause::kernel);
  if (const std::size_t at = words.case_file.rfind("--k"); causes == 1 && at != std::string::npos)
    if (auto worst = map_in(run, words.case_file.substr(0, at) + "--worst.safetensors", *kernel))
      return Shown{*std::move(worst), "worst case"};
  auto smallest = map_in(run, words.case_file, *kernel);
  if (!smallest) return std::nullopt;
  return Shown{*std::move(smallest), "smallest case"};
}

/// Rows of batch, heads and queries down, columns across; a cell of a large one is the worst of its elements.
Drawing picture_of(const Shown& shown) {
  const ErrorMap& map = shown.map;
  constexpr std::int64_t most_rows = 96, most_columns = 64;
  const std::int64_t rows = map.batch * map.heads * map.queries;
  const std::int64_t tall = (rows + most_rows - 1) / most_rows, wide = (map.columns + most_columns - 1) / most_columns;
  const std::int64_t down = (rows + tall - 1) / tall, across = (map.columns + wide - 1) / wide;
  // From right to far too far, by sixteens; each class is one path.
  const auto class_of = [](double share) { return !(share > 1) ? 0 : share <= 16 ? 1 : share <= 256 ? 2 : 3; };
  constexpr std::array<std::string_view, 4> classes{"right", "near", "off", "far"};
  std::array<std::string, 4> paths;
  for (std::int64_t y = 0; y < down; ++y) {
    std::int64_t begun = 0;
    int last = -1;
    for (std::int64_t x = 0; x <= across; ++x) {
      int now = -1;
      for (std::int64_t row = y * tall; x < across && row < std::min(rows, (y + 1) * tall); ++row)
        for (std::int64_t column = x * wide; column < std::min(map.columns, (x + 1) * wide); ++column)
          now = std::max(now, class_of(map.shares[static_cast<std::size_t>(row * map.columns + column)]));
      if (now == last) continue;
      if (last >= 0)
        paths[static_cast<std::size_t>(last)] += fmt::format("M{} {}h{}v1H{}z", begun, y, x - begun, begun);
      begun = x;
      last = now;
    }
  }
  const auto pixels = [](std::int64_t cells, std::int64_t most) { return std::min(24 * cells, most); };
  const std::string words = escaped(fmt::format("Wrong in the {}: {}", shown.which, where_wrong(map)));
  std::string svg = fmt::format(
      "<svg class=\"map\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" style=\"width:{}px;height:{}px\" role=\"img\" "
      "aria-label=\"{}\"><title>{}</title>",
      across, down, pixels(across, 384), pixels(down, 192), words, words);
  for (std::size_t i = 0; i < paths.size(); ++i)
    if (!paths[i].empty()) svg += fmt::format("<path class=\"{}\" d=\"{}\"/>", classes[i], paths[i]);
  // Between heads, while they are to be told apart.
  const double head = static_cast<double>(map.queries) / static_cast<double>(tall);
  for (std::int64_t i = 1; i < map.batch * map.heads && head >= 2; ++i)
    svg +=
        fmt::format("<line x1=\"0\" x2=\"{1}\" y1=\"{0:.2f}\" y2=\"{0:.2f}\"/>", static_cast<double>(i) * head, across);
  return {svg + "</svg>",
          fmt::format("The output of the {}: {} rows (batch, head, query) down, {} columns across. Grey: as it may be; "
                      "the darker, the further beyond what is allowed (up to 16, to 256, and more times).",
                      shown.which, rows, map.columns)};
}

Group card_of(const Reported& run, const CauseWords& cause) {
  // What is long, and what one looks at second, stands below what one types next.
  Facts facts, further;
  const auto add = [](Facts& to, std::string_view name, const std::string& said) {
    if (!said.empty()) to.facts.push_back({name, {theirs(said)}});
  };
  const std::optional<Shown> shown = shown_of(run, cause);
  add(facts, "when", cause.when);
  add(facts, "smallest", cause.smallest);
  add(facts, "found", cause.found);
  add(further, "why", cause.why);
  add(further, "right", cause.right);
  if (shown) add(further, "where", fmt::format("in the {} {}", shown->which, where_wrong(shown->map)));
  add(further, "fails", cause.fails);
  Group card{.kind = Group::Kind::article,
             .title = {title_of(cause.kernel, cause.dtypes), ": ", theirs(cause.what)},
             .blocks = {std::move(facts)},
             .tags = {cause.kernel + " " + cause.dtypes}};
  if (!cause.replay.empty()) card.blocks.emplace_back(CodeLines{{cause.replay}});
  if (!further.facts.empty()) card.blocks.emplace_back(std::move(further));
  constexpr std::size_t few = 16;
  if (shown && shown->map.shares.size() >= few) card.blocks.emplace_back(picture_of(*shown));
  return card;
}

}  // namespace

Blocks causes_page(const Reported& run) {
  Blocks cards;
  for (const CauseWords& cause : words_of_causes(run.summary, run.folder, name_of_folder(run.folder)))
    cards.emplace_back(card_of(run, cause));
  return cards;
}

Brief causes_brief(const Reported& run) {
  Brief brief{"What is wrong", "causes", {}, {}};
  for (const CauseWords& cause : words_of_causes(run.summary, run.folder, name_of_folder(run.folder))) {
    Listing listing;
    const auto add = [&](std::string_view name, const std::string& said) {
      if (!said.empty()) listing.items.push_back({name, ": ", theirs(said)});
    };
    add("why", cause.why);
    add("when", cause.when);
    add("smallest", cause.smallest);
    add("found", cause.found);
    add("right", cause.right);
    add("fails", cause.fails);
    Group entry{.blocks = {Paragraph{{sign(Outcome::violated), " ", theirs(cause.kernel), " in ", theirs(cause.dtypes),
                                      ": ", theirs(cause.what)}},
                           std::move(listing)}};
    if (!cause.replay.empty()) entry.blocks.emplace_back(CodeLines{{cause.replay}});
    brief.entries.emplace_back(std::move(entry));
  }
  return brief;
}

}  // namespace attest

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "properties/catalogue/property.h"
#include "reports/sections/sections.h"

namespace attest {
namespace {

/// Levels of proofs, the strongest first, behind the one that says that something is wrong.
constexpr std::array<std::string_view, 10> strongest_first{
    "DIFFERENT", "coq-all-shapes", "symbolic", "particular",       "probabilistic",
    "abstract",  "refuted",        "tested",   "coq-not-compiled", "untreated"};

std::ptrdiff_t rank_of(const ProofRecord& proof) {
  return std::ranges::find(strongest_first, proof.level) - strongest_first.begin();
}

/// " up to 3,3,2,2,2" of "the core's templates at 16 shapes, 2,2,2,1,1 to 3,3,2,2,2: …", or " at 2,2,2,1,1"; empty
/// where the proof is about no shapes.
std::string shapes_of(const ProofRecord& proof) {
  const std::size_t at = proof.subject.find(" at "), end = proof.subject.find(": ", at);
  if (at == std::string::npos || end == std::string::npos) return {};
  const std::string shapes = proof.subject.substr(at + 4, end - at - 4);
  const std::size_t last = shapes.find(" to ");
  return last == std::string::npos ? " at " + shapes : " up to " + shapes.substr(last + 4);
}

struct LevelWords {
  std::string_view words;
  Outcome colour;
  bool at_shapes = false;  ///< it is about the shapes that the proof names
};
/// What is said of a level wherever the page speaks of it.
LevelWords words_of(std::string_view level) {
  if (level == "coq-all-shapes") return {"proved for all shapes", Outcome::held};
  if (level == "coq-not-compiled") return {"not compiled here", Outcome::skipped};
  if (level == "symbolic") return {"proved for small shapes", Outcome::held, true};
  if (level == "particular") return {"proved of particular numbers", Outcome::held, true};
  if (level == "probabilistic") return {"proved but for a small probability", Outcome::held, true};
  if (level == "abstract") return {"by signs or dependence", Outcome::held, true};
  // Only what theorems.md lists as false is refuted; of anything else a witness contradicts.
  if (level == "refuted") return {"refuted, as it should be", Outcome::held};
  if (level == "DIFFERENT") return {"contradicted", Outcome::violated};
  if (level == "tested") return {"only tested", Outcome::skipped};
  if (level == "untreated") return {"not treated", Outcome::skipped};
  return {"of a kind that this version does not know", Outcome::skipped};
}

TableCell proof_cell(const ProofRecord* proof) {
  if (proof == nullptr) return {"–", "none"};
  const LevelWords level = words_of(proof->level);
  return {theirs(std::string(level.words) + (level.at_shapes ? shapes_of(*proof) : "")), name_of(level.colour),
          proof->subject + (proof->words.empty() ? "" : "; " + proof->words)};
}

/// Rounded down: "1234", "56k", "7.8M".
std::string count_text(std::int64_t count) {
  if (count < 10'000) return std::to_string(count);
  if (count < 1'000'000) return fmt::format("{}k", count / 1000);
  if (count < 100'000'000) return fmt::format("{}.{}M", count / 1'000'000, count / 100'000 % 10);
  return fmt::format("{}M", count / 1'000'000);
}

/// A core whose outputs enclose the exact ones: what it held was certified case by case, up to the width of intervals.
bool encloses(const KernelSummary& kernel) {
  const std::string_view scalar = std::string_view(kernel.id).substr(0, kernel.id.find('@'));
  return scalar == "core:mpfi" || scalar == "core:arb";
}

TableCell kernel_cell(const KernelSummary& kernel, const PropertySummary& property) {
  const Tally& tally = property.tally;
  const auto cell = [&](Piece short_words, const std::string& words) {
    return TableCell(std::move(short_words), name_of(property.verdict), words);
  };
  const auto link = [&](const std::string& words) {
    return property.findings.empty() ? Piece(words) : leading(anchor_of(kernel, property), words);
  };
  switch (property.verdict) {
    case Outcome::held:
      if (encloses(kernel))
        return cell("✓ enclosed " + count_text(tally.judged()),
                    fmt::format("the enclosures of both sides meet in {} cases", tally.judged()));
      return cell("✓ " + count_text(tally.judged()), fmt::format("held on {} cases", tally.judged()));
    case Outcome::violated: {
      const std::string by =
          property.findings.empty() ? std::string() : fmt::format(", refuted by case {}", property.findings.front().k);
      return cell(link("✗ " + count_text(tally.violated)),
                  fmt::format("violated by {} of {} judged cases{}", tally.violated, tally.judged(), by));
    }
    case Outcome::inconclusive:
      return cell(link("? " + count_text(tally.inconclusive)),
                  fmt::format("undecided: {}, held on {} cases", property.reason, tally.held));
    case Outcome::skipped:
    case Outcome::excused:
      break;
  }
  return cell("–", property.reason);
}

/// Of the property's proofs the strongest that is about the model, or about anything else.
const ProofRecord* strongest(const std::vector<const ProofRecord*>& proofs, bool of_model) {
  const auto found =
      std::ranges::find_if(proofs, [&](const ProofRecord* one) { return one->level.starts_with("coq-") == of_model; });
  return found == proofs.end() ? nullptr : *found;
}

/// "proved for all shapes", coloured: of all that was established about a property the strongest.
Piece strongest_evidence(std::string_view level) {
  const LevelWords words = words_of(level);
  return badge(words.colour, words.words);
}

Table matrix(const Summary& summary, const std::vector<ProofRecord>& proofs) {
  std::map<std::string, std::vector<const ProofRecord*>> proofs_of;
  for (const ProofRecord& proof : proofs) proofs_of[proof.property].push_back(&proof);
  std::map<std::string, std::map<const KernelSummary*, const PropertySummary*>> tallies_of;
  for (const KernelSummary& kernel : summary.kernels)
    for (const PropertySummary& property : kernel.properties) tallies_of[property.name][&kernel] = &property;
  std::set<std::string> unordered;
  for (const auto& [name, ignored] : proofs_of) unordered.insert(name);
  for (const auto& [name, ignored] : tallies_of) unordered.insert(name);
  // In the catalogue's order; then what this program does not know.
  std::vector<std::string> names;
  for (const Property* property : catalogue())
    if (unordered.erase(std::string(property->name)) > 0) names.emplace_back(property->name);
  names.insert(names.end(), unordered.begin(), unordered.end());
  Table table{"Strongest evidence of each property, for the real numbers and for each kernel and dtype",
              columns_of(proofs.empty() ? "property"
                                        : "property|strongest evidence|real numbers, a model|real numbers, the core"),
              "matrix",
              /*sorts=*/false};
  for (const KernelSummary& kernel : summary.kernels)
    table.columns.push_back({.name = {theirs(kernel.name), " ", theirs(kernel.dtype)},
                             .upright = true,
                             .tags = tags_of(kernel),
                             .about = "evidence of a kernel"});
  for (const std::string& name : names) {
    const auto& tallies = tallies_of[name];
    Outcome worst = Outcome::skipped;
    for (const auto& [kernel, property] : tallies) worst = worse(worst, property->verdict);
    TableRow row{{theirs(name)}, {"", name, tallies.empty() ? "" : std::string(name_of(worst))}};
    if (!proofs.empty()) {
      const auto& of_it = proofs_of[name];
      row.cells.push_back(of_it.empty() ? TableCell("–", "none") : TableCell(strongest_evidence(of_it.front()->level)));
      for (const bool of_model : {true, false}) row.cells.push_back(proof_cell(strongest(of_it, of_model)));
    }
    for (const KernelSummary& kernel : summary.kernels) {
      const auto property = tallies.find(&kernel);
      row.cells.push_back(property == tallies.end() ? TableCell(Text()) : kernel_cell(kernel, *property->second));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Group proofs_table(const std::vector<ProofRecord>& proofs) {
  Table table{
      "What was established over the real numbers, by property, the strongest first. Each line is about its own "
      "subject; none is about rounding.",
      columns_of("property|evidence|about|words")};
  for (const ProofRecord& proof : proofs)
    table.rows.push_back({{theirs(proof.property), theirs(proof.level), theirs(proof.subject), theirs(proof.words)},
                          {"", proof.property}});
  return {Group::Kind::folded, fmt::format("All {} lines of evidence behind it", proofs.size()), {std::move(table)}};
}

}  // namespace

bool holds_proofs_alone(const Summary& summary, const Journal& journal) {
  return summary.kernels.empty() && summary.not_started.empty() && !journal.proofs.empty();
}

Text proofs_alone(const Journal& journal) {
  std::map<std::string, const ProofRecord*> best;
  for (const ProofRecord& proof : journal.proofs) {
    const ProofRecord*& known = best.try_emplace(proof.property, &proof).first->second;
    if (rank_of(proof) < rank_of(*known)) known = &proof;
  }
  std::map<std::pair<std::ptrdiff_t, std::string>, int> levels;
  for (const auto& [property, proof] : best) ++levels[{rank_of(*proof), proof->level}];
  Text text = fmt::format("{} propert{} over the real numbers: ", best.size(), best.size() == 1 ? "y" : "ies");
  for (const auto& [level, count] : levels) {
    const LevelWords words = words_of(level.second);
    text = {text, &level == &levels.begin()->first ? "" : ", ",
            badge(words.colour, fmt::format("{} {}", count, words.words))};
  }
  return {text, ". No kernel was run."};
}

Blocks evidence_page(const Reported& run) {
  const Summary& summary = run.summary;
  const Journal& journal = run.journal;
  if (summary.kernels.empty() && journal.proofs.empty()) return {};
  std::vector<ProofRecord> proofs = journal.proofs;
  std::ranges::sort(proofs, {}, [](const ProofRecord& proof) {
    return std::tuple(proof.property, rank_of(proof), proof.subject, proof.words);
  });
  Blocks blocks{matrix(summary, proofs)};
  if (!proofs.empty()) blocks.emplace_back(proofs_table(proofs));
  return blocks;
}

}  // namespace attest

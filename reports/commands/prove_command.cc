#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/names.h"
#include "properties/catalogue/hypotheses.h"
#include "properties/proofs/evidence.h"
#include "properties/road/watched_kernel.h"
#include "reports/commands/commands.h"
#include "reports/commands/options/chosen_properties.h"
#include "reports/commands/options/shared_options.h"
#include "reports/commands/without_command.h"
#include "reports/run/interrupt.h"
#include "reports/run_folder/run_folder.h"
#include "reports/run_folder/version.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// Five whole numbers. At N = 1 or dk = 1 false statements become true; beyond 512 no proof is finished.
ProofShape shape_from(std::string_view option, const std::string& text) {
  const Value<std::int64_t> number = whole_number<std::int64_t>(1);
  std::vector<std::int64_t> numbers;
  for (const auto part : std::views::split(text, ','))
    numbers.push_back(number.read(option, std::string(part.begin(), part.end())));
  const auto most = [](std::int64_t n) { return n <= 512; };
  if (numbers.size() != 5 || !std::ranges::all_of(numbers, most) || numbers[1] < 2 || numbers[2] < 2) {
    throw UsageError(
        fmt::format("{} is {}; it must be M,N,dk,dv,h with N and dk from 2 and all up to 512, as 3,3,2,2,2", option,
                    in_quotes(text)));
  }
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

Completions hypothesis_names() {
  Completions names;
  for (const Hypothesis* hypothesis : all_hypotheses()) names.words.emplace_back(hypothesis->name);
  return names;
}

struct ProveCommandOptions {
  std::vector<std::string> properties;  ///< globs; empty: all
  bool overwrite = false;
  std::vector<ProofShape> shapes;  ///< empty: all up to up_to
  ProofShape up_to{3, 3, 2, 2, 2};
  std::vector<BackEnd> back_ends;  ///< empty: those that need no large shapes
  EvidenceOptions how;
  std::filesystem::path out;           ///< empty: nothing is kept
  std::filesystem::path certificates;  ///< folder; empty: none are kept
  std::string without;                 ///< the hypothesis to take away; empty: none
  std::filesystem::path witnesses;     ///< folder for those against theorems without it; empty: none are kept
  bool json = false;

  void declare(OptionList& list) {
    const Value<BackEnd> back_end{"NAME", [](std::string_view, const std::string& text) { return back_end_from(text); },
                                  word_of<BackEnd>("NAME").offer};
    const Value<ProofShape> shape{"M,N,dk,dv,h", shape_from};
    declare_properties(list, properties);
    declare_overwrite(list, overwrite);
    list.option("--shape", shapes, shape,
                "queries, keys, head dimensions of k and v, heads of a shape to prove at; repeatable");
    list.option("--up-to", up_to, shape,
                "every shape from 2,2,2,1,1 to this one, where no --shape is given (default: 3,3,2,2,2)");
    list.option(
        "--back-end", back_ends, back_end,
        "symbolic (formulas), finite-field (formulas at random points, for large shapes), sign (inequalities by signs "
        "alone) or taint (the same operations on the same inputs); repeatable (default: symbolic, sign, taint)");
    list.option("--variants", how.variants, whole_number<std::int64_t>(1),
                "cases a shape, which differ in masks, biases and arguments (default: 3)");
    list.option("-o,--out", out, text_naming("a folder", "DIR", folders),
                "keep what was established as a run's journal, for attest report and attest merge");
    list.option("--certificate", certificates, any_text("DIR", folders),
                "write both sides of the equalities of each property's first case there, a file per property");
    list.option("--without", without, text_naming("a hypothesis, as unmasked", "HYPOTHESIS", hypothesis_names),
                "take this hypothesis from every property that states it: a witness refutes those that need it, and "
                "the others say why they do not");
    list.option("--witness", witnesses, any_text("DIR", folders),
                "write the witnesses of --without there, as cases that attest replay shows");
    list.flag("--json", json, "as JSON");
  }
  void refuse() const {
    refuse_if(without.empty() && !witnesses.empty(),
              "--witness keeps the witnesses of --without; give a hypothesis with it");
    refuse_if(!without.empty() && (!shapes.empty() || !certificates.empty()),
              fmt::format("--without draws small cases of its own; {} is for proofs",
                          shapes.empty() ? "--certificate" : "--shape"));
  }
};

std::vector<ProofShape> shapes_of(const ProveCommandOptions& options) {
  if (!options.shapes.empty()) return options.shapes;
  const ProofShape& most = options.up_to;
  std::vector<ProofShape> all;
  for (std::int64_t M = std::min<std::int64_t>(2, most.queries); M <= most.queries; ++M)
    for (std::int64_t N = 2; N <= most.keys; ++N)
      for (std::int64_t dk = 2; dk <= most.dk; ++dk)
        for (std::int64_t dv = 1; dv <= most.dv; ++dv)
          for (std::int64_t h = 1; h <= most.heads; ++h) all.push_back({M, N, dk, dv, h});
  return all;
}

nlohmann::json to_json(const Standing& standing) {
  nlohmann::json evidence = nlohmann::json::array();
  for (const ProofRecord& record : standing.records)
    evidence.push_back({{"level", record.level}, {"subject", record.subject}, {"words", record.words}});
  nlohmann::json proofs = nlohmann::json::array();
  for (const Proof& proof : standing.proofs) {
    nlohmann::json shapes = nlohmann::json::array();
    for (const ProofShape& s : proof.shapes) shapes.push_back({s.queries, s.keys, s.dk, s.dv, s.heads});
    proofs.push_back({{"back_end", name_of(proof.back_end)},
                      {"evidence", name_of(proof.evidence)},
                      {"shapes", shapes},
                      {"cases", proof.cases},
                      {"comparisons", proof.equalities},
                      {"words", proof.words}});
    if (proof.evidence == Evidence::probabilistic) proofs.back()["log2_error"] = proof.log2_error;
  }
  return {{"property", standing.property->name}, {"evidence", evidence}, {"proofs", proofs}};
}

void write_certificates(const Proof& proof, const std::filesystem::path& folder) {
  std::string text = fmt::format("{}\nat {}\n", proof.property->statement, to_string(proof.shapes.front()));
  for (const SymbolicCertificate& certificate : proof.certificates) text += "\n" + certificate.text();
  write_file_atomically(folder / fmt::format("{}.txt", proof.property->name), text);
}

/// The table as it grows, a line for each record, and on a terminal which row is being worked on.
class Table {
 public:
  Table(const std::vector<const Property*>& properties, bool silent)
      : silent_(silent), terminal_(!silent && isatty(STDERR_FILENO) != 0), count_(properties.size()) {
    for (const Property* const property : properties) width_ = std::max(width_, property->name.size());
    if (!silent_) fmt::print("{:<{}}  {:<16}  {}\n", "property", width_, "evidence", "subject");
  }
  void begin(const Property& property) {
    ++at_;
    if (terminal_) fmt::print(stderr, "\r\x1b[K{} of {}: {}", at_, count_, property.name);
  }
  void add(const Standing& standing) {
    ++levels_[standing.records.front().level];
    if (silent_) return;
    clear();
    std::string_view name = standing.property->name;
    for (const ProofRecord& record : standing.records) {
      const std::string words = record.words.empty() ? "" : fmt::format("; {}", one_line(record.words));
      fmt::print("{:<{}}  {:<16}  {}\n", name, width_, record.level, cut_short(record.subject + words, 160, "..."));
      name = "";
    }
    std::fflush(stdout);
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\x1b[K");
  }
  void end() const {
    if (silent_) return;
    std::string counts;
    for (const auto& [level, rows] : levels_) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", rows, level);
    fmt::print("\nrows by their first line: {}\nnothing here is about rounding\n", counts);
  }

 private:
  bool silent_, terminal_;
  std::size_t count_, at_ = 0, width_ = 8;
  std::map<std::string, int> levels_;
};

/// What is kept of the proofs, as a run's journal that `attest report` reads; nothing without --out.
class KeptProofs {
 public:
  explicit KeptProofs(const ProveCommandOptions& options) {
    if (options.out.empty()) return;
    const auto mode = options.overwrite ? RunFolder::Mode::overwrite : RunFolder::Mode::fresh;
    folder_.emplace(options.out, mode);
    writer_.emplace(folder_->journal());
    folder_->begin(*writer_, RunRecord{.seed = 1, .case_files = {}});
    writer_->append(begin_record());
  }
  void add(const Standing& standing) {
    if (!writer_) return;
    for (const ProofRecord& record : standing.records) writer_->append(record);
  }
  void end(bool interrupted) {
    if (!writer_) return;
    writer_->append(end_record(start_, interrupted));
    writer_->sync();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<RunFolder> folder_;
  std::optional<JournalWriter> writer_;
};

int prove_properties(ProveCommandOptions& options) {
  handle_signals();
  if (!options.without.empty())
    return prove_without(options.without, options.witnesses, options.properties, options.json);
  const std::vector<const Property*> properties = chosen_properties(options.properties);
  const bool keeps = !options.certificates.empty();
  if (keeps) {
    std::error_code failed;
    std::filesystem::create_directories(options.certificates, failed);
    if (failed)
      throw UsageError(fmt::format("--certificate {}: {}; name a folder that can be written",
                                   in_quotes(options.certificates.string()), failed.message()));
  }
  EvidenceOptions& how = options.how;
  how.shapes = shapes_of(options);
  how.certificates = keeps;
  if (!options.back_ends.empty()) how.back_ends = options.back_ends;
  KeptProofs kept(options);
  Table table(properties, options.json);
  nlohmann::json all = nlohmann::json::array();
  bool contradicted = false;
  for (const Property* const property : properties) {
    if (interrupt_requested()) {
      table.clear();
      kept.end(/*interrupted=*/true);
      throw Abandoned();
    }
    table.begin(*property);
    const Standing standing = standing_of(*property, how);
    contradicted = contradicted || standing.is_contradicted();
    table.add(standing);
    kept.add(standing);
    for (const Proof& proof : standing.proofs)
      if (!proof.certificates.empty() && !proof.shapes.empty()) write_certificates(proof, options.certificates);
    if (options.json) all.push_back(to_json(standing));
  }
  kept.end(/*interrupted=*/false);
  if (options.json) fmt::print("{}\n", all.dump(2));
  table.end();
  return contradicted ? 1 : 0;
}

}  // namespace

Command prove_command() {
  return {with_options<ProveCommandOptions>(prove_properties), "prove", "attest prove [OPTIONS]",
          "Proves properties for all real inputs of small shapes: the core that runs on floats runs on formulas, and "
          "both sides must be the same formula. False statements are refuted by a counterexample in certified "
          "enclosures. Says nothing about rounding. Exit 1 when two formulas differ that should not.",
          "attest prove --property 'masked.*' --certificate proofs"};
}

}  // namespace attest

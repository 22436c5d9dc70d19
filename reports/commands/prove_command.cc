#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/names.h"
#include "properties/proofs/evidence.h"
#include "reports/commands/chosen_properties.h"
#include "reports/commands/commands.h"
#include "reports/commands/without_command.h"
#include "reports/run/interrupt.h"
#include "reports/run/run_folder.h"
#include "reports/run/text.h"
#include "reports/run/version.h"
#include "reports/run/watched_kernel.h"

namespace attest {
namespace {

std::vector<ProofShape> shapes_of(const Options& options) {
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
  explicit KeptProofs(const Options& options) {
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

}  // namespace

int prove_command(const Options& options) {
  if (!options.without.empty()) return without_command(options);
  handle_signals();
  const std::vector<const Property*> properties = chosen_properties(options);
  const bool keeps = !options.certificates.empty();
  if (keeps) {
    std::error_code failed;
    std::filesystem::create_directories(options.certificates, failed);
    if (failed)
      throw UsageError(fmt::format("--certificate {}: {}; name a folder that can be written",
                                   in_quotes(options.certificates.string()), failed.message()));
  }
  EvidenceOptions how{.shapes = shapes_of(options), .certificates = keeps};
  if (!options.back_ends.empty()) how.back_ends = options.back_ends;
  if (options.variants) how.variants = *options.variants;
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

}  // namespace attest

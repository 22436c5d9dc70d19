#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "attest/errors.h"
#include "attest/files.h"
#include "attest/names.h"
#include "chosen_properties.h"
#include "commands.h"
#include "interrupt.h"
#include "proofs/prove.h"
#include "text.h"
#include "watched_kernel.h"

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

/// What the evidence is about, or why there is none.
std::string subject(const Proof& proof) {
  if (proof.evidence != Evidence::symbolic && proof.evidence != Evidence::particular) return one_line(proof.words);
  std::string text = fmt::format("all real inputs at {}", to_string(proof.shapes.front()));
  if (proof.shapes.size() > 1)
    text = fmt::format("all real inputs at {} shapes, {} to {}", proof.shapes.size(), to_string(proof.shapes.front()),
                       to_string(proof.shapes.back()));
  text += fmt::format(": {} equalities in {} cases", proof.equalities, proof.cases);
  return proof.words.empty() ? text : fmt::format("{}, {}", text, proof.words);
}

std::string shortened(std::string text) {
  constexpr std::size_t most = 160;
  if (text.size() <= most) return text;
  std::size_t end = most - 3;
  // Never inside a character.
  while ((static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

nlohmann::json to_json(const Proof& proof) {
  nlohmann::json shapes = nlohmann::json::array();
  for (const ProofShape& s : proof.shapes) shapes.push_back({s.queries, s.keys, s.dk, s.dv, s.heads});
  return {{"property", proof.property->name},
          {"evidence", name_of(proof.evidence)},
          {"shapes", shapes},
          {"cases", proof.cases},
          {"equalities", proof.equalities},
          {"words", proof.words}};
}

void write_certificates(const Proof& proof, const std::filesystem::path& folder) {
  std::string text = fmt::format("{}\nat {}\n", proof.property->statement, to_string(proof.shapes.front()));
  for (const SymbolicCertificate& certificate : proof.certificates) text += "\n" + certificate.text();
  write_file_atomically(folder / fmt::format("{}.txt", proof.property->name), text);
}

}  // namespace

int prove_command(const Options& options) {
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
  const ProveOptions how{.shapes = shapes_of(options), .variants = 3, .certificates = keeps};
  std::vector<std::vector<std::string>> rows{{"property", "evidence", "subject"}};
  std::map<Evidence, int> counts;
  nlohmann::json all = nlohmann::json::array();
  for (const Property* const property : properties) {
    if (interrupt_requested()) throw Abandoned();
    const Proof proof = prove(*property, how);
    ++counts[proof.evidence];
    if (keeps && !proof.certificates.empty() && !proof.shapes.empty()) write_certificates(proof, options.certificates);
    if (options.json) {
      all.push_back(to_json(proof));
    } else {
      rows.push_back({std::string(property->name), std::string(name_of(proof.evidence)), shortened(subject(proof))});
    }
  }
  if (options.json) {
    fmt::print("{}\n", all.dump(2));
  } else {
    fmt::print(
        "{}\n{} proved, {} with particular numbers, {} refuted as they should be, {} untreated, {} different\n"
        "about the core's templates over the real numbers at these shapes, and nothing about rounding\n",
        columns(rows, {false, false, false}), counts[Evidence::symbolic], counts[Evidence::particular],
        counts[Evidence::refuted], counts[Evidence::untreated], counts[Evidence::different]);
  }
  return counts[Evidence::different] > 0 ? 1 : 0;
}

}  // namespace attest

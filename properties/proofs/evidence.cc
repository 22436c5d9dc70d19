#include "properties/proofs/evidence.h"

#include <fmt/format.h>

#include <algorithm>

#include "properties/road/road.h"

namespace attest {
namespace {

std::string at_shapes(const Proof& proof) {
  const std::string first = to_string(proof.shapes.front());
  if (proof.shapes.size() == 1) return fmt::format("at {}", first);
  return fmt::format("at {} shapes, {} to {}", proof.shapes.size(), first, to_string(proof.shapes.back()));
}

ProofRecord record_of(const Property& property, const Proof& proof) {
  ProofRecord record{.property = std::string(property.name),
                     .level = std::string(name_of(proof.evidence)),
                     .subject = {},
                     .words = {}};
  record.words = proof.words;
  const auto found = [&](std::string_view what) {
    record.subject = fmt::format("the core's templates {}: {}", at_shapes(proof), what);
    record.words = fmt::format("{} comparisons in {} cases{}{}", proof.equalities, proof.cases,
                               proof.words.empty() ? "" : ", ", proof.words);
  };
  switch (proof.evidence) {
    case Evidence::symbolic:
      found("all real inputs");
      break;
    case Evidence::particular:
      found("all real inputs, but particular numbers of the property's own");
      break;
    case Evidence::probabilistic:
      found(fmt::format("all real inputs, but for an error of probability 2^{:.1f}", proof.log2_error));
      break;
    case Evidence::abstract:
      found(proof.back_end == BackEnd::taint ? "the same operations on the same inputs, whatever others hold"
                                             : "by signs alone");
      break;
    case Evidence::refuted:
      record.subject = "the false statement: a witness in certified enclosures";
      break;
    case Evidence::different:
      record.subject = "the core's templates, or what is believed of them: one of the two is wrong";
      break;
    case Evidence::untreated:
      record.subject = fmt::format("nothing by the back end {}", name_of(proof.back_end));
      break;
  }
  return record;
}

ProofRecord proved_in_coq(const Property& property, const std::vector<std::string_view>& theorems,
                          const EvidenceOptions& options) {
  return {.property = std::string(property.name),
          .level = "coq-all-shapes",
          .subject = fmt::format("a model, all M, N, dk, dv, h: a theorem of no axiom, compiled by {}", options.coq),
          .words = fmt::format("{}", fmt::join(theorems, ", "))};
}

/// The property on the core in double: what there is where nothing can be proved.
ProofRecord tested(const Property& property) {
  constexpr std::int64_t cases = 50;
  const std::vector<KernelEntry> kernels = core_kernels();
  const std::unique_ptr<Kernel> kernel = std::ranges::find(kernels, "core:double", &KernelEntry::id)->make();
  WatchedKernel watched(*kernel);
  std::int64_t held = 0, judged = 0;
  for (std::int64_t k = 0; k < cases; ++k) {
    const Walked walked =
        walk({}, property, watched, [&] { return generate(property, DType::f64, /*run_seed=*/1, k); });
    held += walked.is(Outcome::held);
    judged += walked.is(Outcome::held) || walked.is(Outcome::violated);
  }
  return {.property = std::string(property.name),
          .level = judged > 0 ? "tested" : "untreated",
          .subject = judged > 0 ? fmt::format("core:double: held in {} of {} cases", held, judged) : "nothing",
          .words = {}};
}

}  // namespace

bool Standing::is_contradicted() const {
  return std::ranges::any_of(proofs, [](const Proof& proof) { return proof.evidence == Evidence::different; });
}

Standing standing_of(const Property& property, const EvidenceOptions& options) {
  Standing standing{.property = &property, .records = {}, .proofs = {}};
  const std::vector<std::string_view> theorems = coq_theorems(property.name);
  if (!theorems.empty() && !options.coq.empty()) standing.records.push_back(proved_in_coq(property, theorems, options));
  std::vector<ProofRecord> untreated;
  for (const BackEnd back_end : options.back_ends) {
    const ProveOptions how{.shapes = options.shapes,
                           .variants = options.variants,
                           .certificates = options.certificates && back_end == BackEnd::symbolic,
                           .back_end = back_end};
    Proof proof = prove(property, how);
    const bool refuted = proof.evidence == Evidence::refuted;
    ProofRecord record = record_of(property, proof);
    (proof.evidence == Evidence::untreated ? untreated : standing.records).push_back(std::move(record));
    standing.proofs.push_back(std::move(proof));
    if (refuted) break;  // no back end has more to say of a false statement
  }
  const bool treated =
      std::ranges::any_of(standing.proofs, [](const Proof& proof) { return proof.evidence != Evidence::untreated; });
  if (!treated && !standing.proofs.empty()) {
    ProofRecord record = tested(property);
    record.words = fmt::format("no proof: {}", untreated.front().words);
    standing.records.push_back(std::move(record));
  }
  if (!theorems.empty() && options.coq.empty())
    standing.records.push_back({.property = std::string(property.name),
                                .level = "coq-not-compiled",
                                .subject = "a model: stated in Coq, and not compiled here since the files changed",
                                .words = fmt::format("{}", fmt::join(theorems, ", "))});
  // What is wrong comes first.
  const auto wrong = std::ranges::find(standing.records, "DIFFERENT", &ProofRecord::level);
  if (wrong != standing.records.end()) std::rotate(standing.records.begin(), wrong, wrong + 1);
  return standing;
}

}  // namespace attest

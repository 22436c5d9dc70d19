#include "properties/proofs/prove.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "core/kernel/formal.h"
#include "core/support/errors.h"
#include "properties/proofs/unprovable.h"

namespace attest {
namespace {

/// On balls two runs differ only where their enclosures are apart: what is found holds of the real numbers.
Proof refute(const Property& property) {
  Proof proof;
  proof.property = &property;
  const std::vector<KernelEntry> kernels = core_kernels();
  const auto balls = std::ranges::find(kernels, "core:arb", &KernelEntry::id);
  const std::unique_ptr<Kernel> kernel = balls->make();
  constexpr std::int64_t budget = 50;
  std::string last = "no case meets the hypotheses";
  for (std::int64_t k = 0; k < budget; ++k) {
    const Case c = project(generate(property, DType::f64, /*run_seed=*/1, k), kernel->manifest());
    const Verdict verdict = check_case(property, *kernel, c);
    last = verdict.reason;
    if (verdict.outcome != Outcome::held || !verdict.reason.starts_with("counterexample")) continue;
    proof.evidence = Evidence::refuted;
    proof.words = verdict.reason;
    return proof;
  }
  proof.words = fmt::format("no counterexample in {} cases: {}", budget, last);
  return proof;
}

/// One variant at one shape.
struct Attempt {
  ProofShape shape;
  Verdict verdict;
  std::int64_t equalities = 0, undeclared = 0;
  double log2_error = 0;
  std::set<double> particular;
  std::vector<SymbolicCertificate> certificates;
};

/// The shape and those near it that hypotheses may ask for.
std::vector<ProofShape> fitted(const ProofShape& shape) {
  std::vector<ProofShape> all;
  for (const std::int64_t heads : {shape.heads, std::int64_t{1}}) {
    for (const std::int64_t queries : {shape.queries, shape.keys}) {
      ProofShape s = shape;
      s.heads = heads, s.queries = queries;
      all.push_back(s);
    }
  }
  // Never down to dk = 1, where false statements become true too.
  ProofShape one_width = shape, more_queries = shape, one_query = shape, one_key = shape;
  one_width.dv = shape.dk;
  more_queries.queries = shape.keys + 1;
  one_query.queries = 1;
  // At N = 1 false statements become true: only where a hypothesis leaves nothing else.
  one_key.keys = 1;
  all.insert(all.end(), {one_width, more_queries, one_query, one_key});
  return all;
}

std::optional<Attempt> attempt(const Property& property, Kernel& kernel, const ProofShape& wanted, std::int64_t k,
                               const ProveOptions& options, bool certificates) {
  for (const ProofShape& shape : fitted(wanted)) {
    const std::unique_ptr<ProofBackEnd> back_end = make_back_end(options.back_end);
    GenericInputs inputs(*back_end);
    if (certificates) inputs.keep_certificates();
    const std::optional<Case> c = formal_case(property, shape, k, inputs);
    if (!c) continue;
    Attempt result{.shape = shape, .verdict = check_case(property, kernel, *c), .particular = {}, .certificates = {}};
    result.equalities = inputs.comparisons();
    result.undeclared = inputs.undeclared();
    result.particular = inputs.particular();
    result.certificates = inputs.certificates();
    if (result.verdict.outcome == Outcome::held) {
      // The errors of all cases add up.
      const auto cases = static_cast<double>(options.shapes.size()) * static_cast<double>(options.variants);
      if (!inputs.made_sure(largest_log2_error - std::ceil(std::log2(cases)))) {
        result.verdict.outcome = Outcome::violated;
        result.verdict.reason = "two formulas differ at a random point";
      }
      result.log2_error = back_end->log2_error();
    }
    return result;
  }
  return std::nullopt;
}

Evidence evidence_of(BackEnd back_end, bool particular) {
  switch (back_end) {
    case BackEnd::symbolic:
      return particular ? Evidence::particular : Evidence::symbolic;
    case BackEnd::finite_field:
      return Evidence::probabilistic;
    case BackEnd::sign:
    case BackEnd::taint:
      return Evidence::abstract;
  }
  return Evidence::untreated;
}

constexpr std::int64_t draws_per_variant = 8;

/// The smallest first, so that what fails is shown at the smallest shape.
std::vector<ProofShape> ascending(std::vector<ProofShape> shapes) {
  const auto key = [](const ProofShape& s) {
    return std::tuple(s.queries * s.keys * (s.dk + s.dv) * s.heads, s.queries, s.keys, s.dk, s.dv);
  };
  std::ranges::sort(shapes, {}, key);
  return shapes;
}

/// Those to be tried. A gradient that is summed over rows has the product of all their denominators for its own, and
/// the sum of a row's weights under a cap that of all its scores': as polynomials written out, four rows of four keys
/// of the one take 14 GB, sixteen keys of the other 8 GB and minutes.
std::vector<ProofShape> tried(const Property& property, const ProveOptions& options) {
  std::vector<ProofShape> shapes = options.shapes;
  const bool written_out = options.back_end == BackEnd::symbolic, gradients = property.backward != Backward::none;
  for (ProofShape& shape : shapes) {
    if (written_out && gradients) shape.queries = std::min(shape.queries, most_of_gradients);
    if (written_out && gradients) shape.keys = std::min(shape.keys, most_of_gradients);
    if (written_out && property.needs.find("softcap") != std::string_view::npos)
      shape.keys = std::min(shape.keys, most_under_cap);
  }
  shapes = ascending(std::move(shapes));
  const auto again = std::ranges::unique(shapes);
  shapes.erase(again.begin(), again.end());
  return shapes;
}

}  // namespace

Proof prove(const Property& property, const ProveOptions& options) {
  return prove(property, options, *formal_kernel());
}

Proof prove(const Property& property, const ProveOptions& options, Kernel& kernel) {
  if (property.is_counterexample()) return refute(property);
  Proof proof;
  proof.property = &property;
  proof.back_end = options.back_end;
  if (const std::string_view why = why_unprovable(property.name); !why.empty()) {
    proof.words = why;
    return proof;
  }
  std::string untreated = "no shape was asked for";
  std::set<double> particular;
  double error = 0;
  for (const ProofShape& shape : tried(property, options)) {
    std::int64_t here = 0;
    try {
      // A variant may have nothing to say: every row fully masked, no row kept.
      for (std::int64_t k = 0; here < options.variants && k < draws_per_variant * options.variants; ++k) {
        std::optional<Attempt> one;
        try {
          one = attempt(property, kernel, shape, k, options, options.certificates && proof.certificates.empty());
        } catch (const UndefinedUsed& why) {
          // The documents define no output where a head leaves a row without a key.
          untreated = why.what();
          continue;
        }
        if (!one) {
          untreated = fmt::format("no case of a shape like {} meets the hypotheses", to_string(shape));
          continue;
        }
        const Verdict& verdict = one->verdict;
        if (verdict.outcome == Outcome::violated && one->undeclared > 0) {
          proof.words = "computes with inputs in a way that the proof does not follow";
          return proof;
        }
        if (verdict.outcome == Outcome::violated) {
          proof.evidence = Evidence::different;
          proof.words = fmt::format("at {}: {}", to_string(one->shape), verdict.reason);
          return proof;
        }
        if (verdict.outcome != Outcome::held || one->equalities == 0) {
          untreated = verdict.outcome == Outcome::held ? "compares no two formulas" : verdict.reason;
          continue;
        }
        ++here;
        proof.equalities += one->equalities;
        error += std::exp2(one->log2_error);
        particular.merge(one->particular);
        if (proof.shapes.empty() || proof.shapes.back() != one->shape) proof.shapes.push_back(one->shape);
        if (proof.certificates.empty()) proof.certificates = std::move(one->certificates);
      }
    } catch (const NotTreated& why) {
      proof.words = why.what();
      return proof;
    } catch (const ProofError& why) {
      proof.words = fmt::format("at {}: {}", to_string(shape), why.what());
      return proof;
    }
    proof.cases += here;
  }
  if (proof.cases == 0) {
    proof.words = untreated;
    return proof;
  }
  proof.evidence = evidence_of(options.back_end, !particular.empty());
  proof.log2_error = std::log2(error);
  if (!particular.empty()) proof.words = fmt::format("with the numbers {}", fmt::join(particular, ", "));
  return proof;
}

}  // namespace attest

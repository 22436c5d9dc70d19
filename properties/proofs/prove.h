// Proofs: the catalogue's properties, as they are checked on numbers, run on the core with inputs that stand for all
// numbers (formal.h). What a back end decides there holds for all real inputs of that shape; nothing is said about
// rounding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem/case.h"
#include "core/support/words.h"
#include "properties/catalogue/property.h"
#include "properties/proofs/formal_case.h"

namespace attest {

/// What stands behind a row of the catalogue.
enum class Evidence : std::uint8_t {
  symbolic,       ///< proved for all real inputs at the shapes tried
  particular,     ///< the same, but for numbers that the property itself computes or states: those were particular ones
  probabilistic,  ///< the same but for an error of probability, Proof::log2_error
  abstract,       ///< of signs, or of what a number is computed from, alone
  refuted,        ///< a false statement, with a counterexample certified by interval enclosures
  different,      ///< believed true, and two formulas differ: the core, or the belief, is wrong
  untreated       ///< this back end has nothing to say, and says why
};
template <>
struct Words<Evidence> {
  static constexpr std::array<std::string_view, 7> names{"symbolic", "particular", "probabilistic", "abstract",
                                                         "refuted",  "DIFFERENT",  "untreated"};
};

struct Proof {
  const Property* property = nullptr;
  BackEnd back_end = BackEnd::symbolic;
  Evidence evidence = Evidence::untreated;
  std::vector<ProofShape> shapes;  ///< where it was proved: in every variant that was drawn
  std::int64_t cases = 0;          ///< variants (masks, biases, arguments) proved at all shapes together
  std::int64_t equalities = 0;     ///< pairs of formulas found identical, and formulas found not negative
  double log2_error = 0;           ///< where probabilistic: of the whole row
  std::string words;               ///< the counterexample, the difference, or why it is untreated
  std::vector<SymbolicCertificate> certificates;  ///< where asked for: of the first shape's first case
};

/// A probabilistic result with a larger error counts for nothing.
inline constexpr double largest_log2_error = -60;

/// Queries and keys at which formulas of gradients are written out.
inline constexpr std::int64_t most_of_gradients = 3;
/// Keys at which those of capped scores are.
inline constexpr std::int64_t most_under_cap = 8;

struct ProveOptions {
  std::vector<ProofShape> shapes;
  std::int64_t variants = 3;  ///< cases a shape, which differ in masks, biases and arguments
  bool certificates = false;  ///< of the symbolic back end
  BackEnd back_end = BackEnd::symbolic;
};

/// One property by one back end, at the shapes from the smallest on, each or the nearest one that the hypotheses allow
/// (as many keys as queries, one head, one key), and where the back end is symbolic one of at most most_of_gradients
/// rows and keys of gradients, most_under_cap keys of capped scores; a shape that they rule out, and a variant with a
/// row that sees no key, are passed over. A statement that theorems.md lists as false is refuted on the core in balls
/// instead. Proved: for all real inputs, with the arguments (a row, a permutation, a scaled permutation G) that the
/// variants drew.
[[nodiscard]] Proof prove(const Property& property, const ProveOptions& options);
/// The same on another kernel than the core on expressions.
[[nodiscard]] Proof prove(const Property& property, const ProveOptions& options, Kernel& kernel);

}  // namespace attest

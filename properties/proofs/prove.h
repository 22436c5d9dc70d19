// Proofs: the catalogue's properties, as they are checked on numbers, run on the core with symbolic inputs. What is
// identical there is equal for all real inputs of that shape; nothing is said about rounding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attest/case.h"
#include "proofs/formal_case.h"
#include "property.h"

namespace attest {

/// What stands behind a row of the catalogue.
enum class Evidence {
  symbolic,    ///< proved for all real inputs at the shapes tried
  particular,  ///< the same, but for numbers that the property itself computes or states: those were particular ones
  refuted,     ///< a false statement, with a counterexample certified by interval enclosures
  different,   ///< believed true, and two formulas differ: the core, or the belief, is wrong
  untreated    ///< this back end has nothing to say, and says why
};
[[nodiscard]] std::string_view name_of(Evidence evidence);

struct Proof {
  const Property* property = nullptr;
  Evidence evidence = Evidence::untreated;
  std::vector<ProofShape> shapes;                 ///< where it was proved: in every variant that was drawn
  std::int64_t cases = 0;                         ///< variants (masks, biases, arguments) proved at all shapes together
  std::int64_t equalities = 0;                    ///< pairs of formulas found identical
  std::string words;                              ///< the counterexample, the difference, or why it is untreated
  std::vector<SymbolicCertificate> certificates;  ///< where asked for: of the first shape's first case
};

struct ProveOptions {
  std::vector<ProofShape> shapes;
  std::int64_t variants = 3;  ///< cases drawn a shape, which differ in masks, biases and arguments
  bool certificates = false;
};

/// One property. A statement that theorems.md lists as false is refuted on the core in intervals; any other is run on
/// the symbolic scalar at every shape, or at the nearest one that its hypotheses allow (as many keys as queries, one
/// head, one key); one that they rule out, and a variant with a row that sees no key, are passed over. Proved: for all
/// real inputs, with the arguments (a row, a permutation, a scaled permutation G) that the variants drew. Nothing is
/// said about rounding.
[[nodiscard]] Proof prove(const Property& property, const ProveOptions& options);
/// The same on another kernel than the core on the symbolic scalar.
[[nodiscard]] Proof prove(const Property& property, const ProveOptions& options, FormalKernel& kernel);

}  // namespace attest

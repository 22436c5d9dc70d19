// A kernel that computes as it declares: Arithmetic drives every rounding, Structure the order of the operations. Only
// for the validation of the bound; it may hold legitimate and illegitimate kernels alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel/arithmetic.h"
#include "core/problem/case.h"
#include "core/value/tensor.h"

namespace attest::fleet {

/// How a key's score is summed up.
enum class Dot { sequential, fused, tiles };  ///< tiles: four partial sums, as vector units have
/// How partial results of key ranges become one.
enum class Merge { max_and_sum, lse, lse_division_free };

/// What Arithmetic leaves open.
struct Structure {
  Dot dot = Dot::sequential;
  std::int64_t splits = 1;
  Merge merge = Merge::max_and_sum;
  bool permuted_pairwise = false;  ///< two-pass sums over the keys in a scrambled order, pairwise
  bool reciprocal = false;         ///< 1/l, then products, instead of divisions
  bool fused_values = false;       ///< o = fma(p, v, o)
  bool exp_errs = false;           ///< exp errs by up to arithmetic.exp_ulp ulp, also at 0
};

/// What is wrong with it on purpose; the defaults are right.
struct Fault {
  bool forgets_rescale = false;  ///< o is not rescaled when the maximum rises
  double log2e = 0.0;            ///< used instead of log2(e); 0: the right one
  double exp_error = 0.0;        ///< relative error of every exponential, alternating in sign
  double leak = 0.0;             ///< hidden keys enter with this share of the weight they would have
  bool drops_last_key = false;
  double scale_factor = 1.0;
};

struct Emulation {
  std::string name;
  Arithmetic arithmetic;
  Structure structure;
  Fault fault;
};

struct Answer {
  Tensor out;  ///< in arithmetic.output
  Tensor lse;  ///< f64
};

/// Runs an attention case of one batch entry and head. Fully masked rows give NaN and lse -inf.
[[nodiscard]] Answer emulate(const Emulation& kernel, const Case& c);

/// The weights of the keys that a row sees, as a backward pass has them.
struct EmulatedWeights {
  std::vector<std::int64_t> keys;
  std::vector<double> weights;
  std::vector<double> tangents;  ///< of a cap: tanh(product/cap)
  std::optional<double> sink;    ///< what the sink has, where the row sees one
};
/// Formed again, e^(score - lse) in the kernel's own arithmetic.
[[nodiscard]] EmulatedWeights weights_again(const Emulation& kernel, const Case& c, std::int64_t row, double lse);
/// Normalised and rounded to the format of weights, as a kernel that keeps them has them.
[[nodiscard]] EmulatedWeights stored_weights(const Emulation& kernel, const Case& c, std::int64_t row);

}  // namespace attest::fleet

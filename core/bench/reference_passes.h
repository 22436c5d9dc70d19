// The passes that a verdict is compared with: the same forward pass in double and in wider arithmetic.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace attest {

/// One head without a mask, row-major: q [M][dk], k [N][dk], v [N][dv].
struct HeadData {
  std::int64_t queries = 0, keys = 0, dk = 0, dv = 0;
  double scale = 1;
  std::vector<double> q, k, v;
};

/// softmax(scale Q K^T) V in double on the loops of the oracle itself, chosen for this processor in the same way: packs
/// the keys once, then three loops a row and nothing else. dv is a multiple of 4. Keeps its memory between calls, as
/// the oracle does.
class PlainPass {
 public:
  /// M x dv, valid until the next call.
  const std::vector<double>& operator()(const HeadData& head);

 private:
  std::vector<double> panels_, weights_, out_;
};

/// The gradients of the same by q, k and v for a gradient by the output, `d_out` [M][dv], in double: scores, products
/// and dq on the oracle's loops, and dk and dv by plain ones. dk and dv are multiples of 4.
class PlainBackwardPass {
 public:
  struct Gradients {
    std::vector<double> dq, dk, dv;
  };
  /// Valid until the next call. `out`: the output, and `lse` its log-sum-exp per row.
  const Gradients& operator()(const HeadData& head, const std::vector<double>& d_out, const std::vector<double>& out,
                              const std::vector<double>& lse);

 private:
  std::vector<double> keys_, values_, weights_, products_;
  Gradients found_;
};

/// The same in wider arithmetic, each returning M x dv as doubles.
[[nodiscard]] std::vector<double> arb_pass(const HeadData& head, long bits);
/// MPFR through Boost, `digits` decimal digits.
[[nodiscard]] std::vector<double> mpfr_pass(const HeadData& head, unsigned digits);
[[nodiscard]] std::vector<double> bin_float_50_pass(const HeadData& head);

/// CPU seconds that Python's mpmath takes for one query row and one key at `bits` with this dk = dv, measured on a few
/// keys; nothing where it cannot be run.
[[nodiscard]] std::optional<double> mpmath_seconds_per_key(std::int64_t dk, long bits);

}  // namespace attest

#include <array>

#include "generators/recipe.h"

namespace attest {
namespace {

template <class Kind, std::size_t n>
std::string_view lookup(const std::array<std::string_view, n>& names, Kind kind) {
  static_assert(n == static_cast<std::size_t>(Kind::count));
  return kind < Kind::count ? names[static_cast<std::size_t>(kind)] : "?";
}

constexpr std::array<std::string_view, 18> score_names{
    "gaussian-0.1",    "gaussian",        "gaussian-10",     "heavy",        "integers", "powers-of-two",
    "exact-ties",      "near-ties",       "duplicate-keys",  "dominant",     "offset",   "spread",
    "below-sentinels", "underflow-edges", "ill-conditioned", "zero-queries", "huge",     "bit-classes"};
constexpr std::array<std::string_view, 13> value_names{
    "gaussian",     "heavy",     "integers",   "powers-of-two", "ones", "one-hot",    "low-weight-one-hot",
    "zero-visible", "half-ones", "cancelling", "huge-offset",   "huge", "bit-classes"};
constexpr std::array<std::string_view, 12> mask_names{"none",       "random",  "first-block", "middle-block",
                                                      "last-block", "padding", "whole-row",   "whole-head",
                                                      "causal",     "bias",    "alibi",       "finite-sentinel"};
constexpr std::array<std::string_view, 9> matrix_names{
    "gaussian", "gaussian-10", "integers", "powers-of-two", "identity", "one-hot", "equal-tokens", "zeros", "heavy"};
constexpr std::array<std::string_view, 4> scale_names{"inverse-root", "one", "power-of-two", "uniform"};

}  // namespace

std::string_view name_of(ScoreKind kind) {
  return lookup(score_names, kind);
}
std::string_view name_of(ValueKind kind) {
  return lookup(value_names, kind);
}
std::string_view name_of(MaskKind kind) {
  return lookup(mask_names, kind);
}
std::string_view name_of(MatrixKind kind) {
  return lookup(matrix_names, kind);
}
std::string_view name_of(ScaleKind kind) {
  return lookup(scale_names, kind);
}

}  // namespace attest

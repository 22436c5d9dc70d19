// Problems of attention as RapidCheck generators, for properties of your own beside the catalogue's:
//
//   #include <attest/rapidcheck.h>
//   RC_GTEST_PROP(Mine, IsUnmovedByAPermutationOfHeads, (const attest::Case& c)) { … RC_ASSERT(…); }
//
//   rc::check("mine is finite", [] {
//     const attest::Case c = *attest::attention_cases(attest::DType::f32, [](attest::Recipe& r) { r.heads = 4; });
//     …
//   });
//
// Cases are those that `attest check` draws, and shrink by its own steps. RapidCheck's size is not looked at: most
// extents are at most 8, a few lie around the edges of blocks, rarely N is in the thousands; write the extents in
// `edit` where a test wants others. <rapidcheck/gtest.h> defines RC_GTEST_PROP.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/kernel/manifest.h"
#include "core/problem/case.h"
#include "core/problem/describe.h"
#include "core/problem/selection.h"
#include "properties/generators/recipe.h"

namespace attest {

/// Changes what was drawn before its numbers are written out (recipe.h); whatever it writes decodes to a valid case.
using EditRecipe = std::function<void(Recipe&)>;

/// Cases of softmax(QKᵀ·scale + mask) V in a dtype: f64, f32, f16 or bf16.
[[nodiscard]] rc::Gen<Case> attention_cases(DType dtype, EditRecipe edit = nullptr);
/// Cases of multi-head attention with its projections.
[[nodiscard]] rc::Gen<Case> multihead_cases(DType dtype, EditRecipe edit = nullptr);
/// Cases that meet the hypotheses of a property of the catalogue, brought to the manifest's limits of shape. seed and k
/// of the provenance are what `attest check --seed SEED` draws the same case by, with k below 100. Throws UsageError
/// for a name that is no property.
[[nodiscard]] rc::Gen<Case> cases_of(std::string_view property, DType dtype, const Manifest& manifest);
/// Masks for extents, [batch|1, heads|1, M, N], boolean or of the dtype; some hide nothing.
[[nodiscard]] rc::Gen<Tensor> masks(const Extents& extents, DType dtype);

/// What RapidCheck prints of a counterexample: all of a small case's numbers.
inline void showValue(const Case& c, std::ostream& out) {
  out << describe(c);
}
template <Worded Enum>
void showValue(Enum value, std::ostream& out) {
  out << name_of(value);
}

/// The parts of a recipe that are one of a list.
template <class Part>
concept RecipePart =
    std::is_same_v<Part, ScoreKind> || std::is_same_v<Part, ValueKind> || std::is_same_v<Part, MaskKind> ||
    std::is_same_v<Part, MatrixKind> || std::is_same_v<Part, ScaleKind> || std::is_same_v<Part, Causal> ||
    std::is_same_v<Part, MaskConvention>;

}  // namespace attest

namespace rc {

/// An attention case in any of the four dtypes.
template <>
struct Arbitrary<attest::Case> {
  static Gen<attest::Case> arbitrary();
};
/// A dtype that a case may have: f64, f32, f16, bf16.
template <>
struct Arbitrary<attest::DType> {
  static Gen<attest::DType> arbitrary();
};
/// Extents of an attention case; they shrink towards 1.
template <>
struct Arbitrary<attest::Extents> {
  static Gen<attest::Extents> arbitrary();
};
template <attest::RecipePart Part>
struct Arbitrary<Part> {
  static Gen<Part> arbitrary() {
    std::vector<Part> all;
    all.reserve(attest::Words<Part>::names.size());
    for (std::size_t i = 0; i < attest::Words<Part>::names.size(); ++i) all.push_back(static_cast<Part>(i));
    return gen::elementOf(std::move(all));
  }
};

}  // namespace rc

// Fills: from a recipe's kinds to the numbers of a case's tensors. Each writes doubles that `stored` rounds once.
#pragma once

#include <span>
#include <vector>

#include "core/problem/case.h"
#include "core/value/dtype.h"
#include "properties/generators/recipe.h"
#include "properties/generators/stream.h"

namespace attest {

/// The stream of one tensor of a recipe: changing how another tensor is made leaves this one alone.
[[nodiscard]] inline Stream stream_of(const Recipe& recipe, Slot slot) {
  return Stream(recipe.seed + 0x632be59bd9b4e019 * (static_cast<std::uint64_t>(slot) + 1));
}

/// The values in `dtype`, each brought to within the largest finite number first and then rounded once.
[[nodiscard]] Tensor stored(DType dtype, const Shape& shape, std::span<double> values);

/// A number of a random bit class: zeros of both signs, subnormals and their edge, powers of two and their neighbours,
/// the largest of exponent `high`, and plain ones with exponents in [low, high].
[[nodiscard]] double bit_class(Stream& stream, const Format& format, int low, int high);
/// +-2^e, e in [low, high], one in three an ulp off.
[[nodiscard]] double power_of_two(Stream& stream, const Format& format, int low, int high);

/// The scale of the recipe, for dk columns.
[[nodiscard]] double scale_of(const Recipe& recipe);

/// Mask of the recipe for M×N, or absent.
[[nodiscard]] Tensor filled_mask(const Recipe& recipe);

/// Writes q and k of a case that has its scale. The doubles before rounding are left in the two vectors.
void fill_scores(const Recipe& recipe, Case& c, std::vector<double>& q, std::vector<double>& k);
/// Writes v of a case that has its q, k, mask and causal form; q and k as fill_scores left them.
void fill_values(const Recipe& recipe, Case& c, std::span<const double> q, std::span<const double> k);
/// Gives an attention case the lengths and the padding on the left of its recipe.
void fill_sequences(const Recipe& recipe, Case& c);
/// Gives an attention case that has its q and k the sinks of its recipe, in f32.
void fill_sinks(const Recipe& recipe, Case& c);
/// Gives an attention case that has its q and k the dropout of its recipe, with its rate, where a mask that is given
/// has not too many weights.
void fill_dropout(const Recipe& recipe, Case& c);
/// The kind that a seed draws; never none.
[[nodiscard]] LossKind drawn_loss(std::uint64_t seed);
/// Whether a seed draws one by the log-sum-exp, too: one in four.
[[nodiscard]] bool draws_loss_by_lse(std::uint64_t seed);
/// Gives an attention case that has its v the gradients by its output of its recipe, and by its log-sum-exp.
void fill_loss(const Recipe& recipe, Case& c);
/// Gives an attention case that has its tensors the factors of its recipe.
void fill_descale(const Recipe& recipe, Case& c);
/// Gives an attention case that has its q the slopes of its recipe, in f32, of each batch entry or of all.
void fill_slopes(const Recipe& recipe, Case& c);
/// Gives what the recipe lays out `repeated` equal slices along an axis. A mask of heads of its own loses them.
void make_repeatable(const Recipe& recipe, Case& c);
/// Writes every tensor of a multihead case but the mask.
void fill_multihead(const Recipe& recipe, Case& c);

}  // namespace attest

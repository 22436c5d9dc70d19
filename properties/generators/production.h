// Production shapes: those of models that people run, and the edges of the tiles in which kernels work. Most cases of a
// run are small, because small ones find most mistakes for the least time; what a kernel does from its second tile on,
// at a head's 128 columns or with twelve heads shows in these or in none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/selection.h"
#include "core/support/words.h"
#include "properties/generators/recipe.h"
#include "properties/generators/stream.h"

namespace attest {

/// How many of a run's cases have production shapes.
enum class LargeCases : std::uint8_t {
  none,
  some,  ///< so many that they cost about a third of the run, counted in multiplications and numbers, never by a clock
  all
};
template <>
struct Words<LargeCases> {
  static constexpr std::array<std::string_view, 3> names{"none", "some", "all"};
};

/// What a run asks of shapes.
struct Shapes {
  LargeCases large = LargeCases::none;
  /// Not empty: these in turn, instead of drawn ones; c_q and the like are not read. Multi-head attention has as many
  /// key-value heads as heads.
  std::vector<Extents> given;

  [[nodiscard]] bool operator==(const Shapes&) const = default;
};

/// Small cases alone, and what a run draws that is asked for nothing else.
inline const Shapes small_shapes{.large = LargeCases::none, .given = {}};
inline const Shapes default_shapes{.large = LargeCases::some, .given = {}};

/// What journals have of it: empty for small cases only, else "some" or "all" and the given shapes, each as
/// "B,H,KV,M,N,DK,DV" behind a space.
[[nodiscard]] std::string to_string(const Shapes& shapes);

/// Every how many cases in a row one has a production shape: of a law, which calls the kernel several times; of a law
/// that parts, deletes, pads or rearranges what tiles are made of; of gradients; and of the definition's own property,
/// which judges every element of one answer.
inline constexpr std::int64_t period_of_laws = 256, period_of_tile_laws = 32, period_of_gradients = 16,
                              period_of_definition = 8;

/// The how manieth production case of a property case k is; nothing where it is none. One of each `period` cases in a
/// row is, not always at the same place, so that every shard has its part.
[[nodiscard]] std::optional<std::int64_t> production_number(const Shapes& shapes, std::int64_t k, std::int64_t period);

/// What a production case is for, which says how large it may be: a law calls the kernel several times, and gradients
/// cost several times as much to judge as an output.
enum class LargeFor : std::uint8_t { law, gradients, definition };
/// Of case `number` of a row that draws one in `period`; more than one in four of gradients is larger than a law's.
[[nodiscard]] LargeFor large_for(std::int64_t period, std::int64_t number);

/// Gives a recipe the shape of production case `number`, and kinds that let mistakes in tiles show: scores that rise or
/// fall along the keys, one tile that outweighs the others, scores that are even.
void make_production(Recipe& recipe, const Shapes& shapes, std::int64_t number, LargeFor what);

/// Gives an attention recipe the window of a model (production.cc lists them) that is shorter than its keys, of one
/// with such groups of heads or widths where there is any. False where there is none.
bool give_model_window(Recipe& recipe, Stream& stream);

/// How many heads a model has whose scores fall by slopes (production.cc lists them), of one with that dk where there
/// is any.
[[nodiscard]] std::int64_t heads_of_sloped_model(std::int64_t dk, Stream& stream);

/// Shapes for heads of which nobody knows the lengths: those of production cases, of decoding or of prompts and a
/// chunk. Of `heads` only heads and widths are read. The same each time.
[[nodiscard]] std::vector<Extents> with_production_lengths(const Extents& heads, bool decoding);

/// As make_production, of multi-head attention: lengths beyond a tile, layers of models, up to twenty heads or wide
/// tokens. Narrow tokens otherwise, so that what is multiplied is rather those of the heads than projections.
void make_multihead_production(Recipe& recipe, const Shapes& shapes, std::int64_t number, LargeFor what);

}  // namespace attest

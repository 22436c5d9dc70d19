#include <array>

#include "properties/faults/faults.h"

namespace attest {

std::span<const ControlKernel> controls() {
  static constexpr std::array all{
      ControlKernel{.name = "small-blocks",
                    .summary = "blocks of 4 keys, each block's products summed by themselves, one reciprocal a row",
                    .make = {.block = 4, .tiles = true, .reciprocal = true}},
      ControlKernel{.name = "large-blocks",
                    .summary = "blocks of 64 keys, weights rounded to the dtype before V",
                    .make = {.block = 64, .narrow_weights = true}},
      ControlKernel{.name = "three-splits",
                    .summary = "three parts merged through their log-sum-exps, weights rounded to the dtype",
                    .make = {.block = 8, .splits = 3, .narrow_weights = true}},
      ControlKernel{.name = "seven-splits-backwards",
                    .summary = "seven parts, each summed from its last key to its first, one reciprocal a part",
                    .make = {.block = 2, .splits = 7, .backwards = true, .reciprocal = true}},
      ControlKernel{.name = "backwards",
                    .summary = "keys from the last to the first in blocks of 16",
                    .make = {.block = 16, .backwards = true, .tiles = true}},
      ControlKernel{.name = "exp2",
                    .summary = "scale and maximum folded into exp2, weights rounded to the dtype",
                    .make = {.block = 32, .folded_exp2 = true, .reciprocal = true, .narrow_weights = true}},
      ControlKernel{.name = "lazy",
                    .summary = "the reference follows the maximum when it is 8 behind, rounded weights summed too",
                    .make = {.block = 4, .lazy_nats = 8, .narrow_weights = true, .narrow_denominator = true}},
      ControlKernel{.name = "truncating",
                    .summary = "sums of products rounded toward zero, as tensor cores do",
                    .make = {.block = 16, .truncates = true}},
      ControlKernel{.name = "stored-scores",
                    .summary = "scores written to memory in the dtype, then normalised weights rounded to it",
                    .make = {.block = 0,
                             .normalise_first = true,
                             .narrow_weights = true,
                             .narrow_denominator = false,
                             .narrow_scores = true}},
      ControlKernel{.name = "prescaled-queries",
                    .summary = "q times scale rounded to the dtype before the product",
                    .make = {.block = 16, .prescaled_q = true}},
      ControlKernel{.name = "bf16-weights",
                    .summary = "weights rounded to bf16 whatever the dtype, and summed so",
                    .make = {.block = 16, .narrow_denominator = true, .bf16_weights = true}},
      ControlKernel{.name = "tiles-of-16",
                    .summary = "16 queries by 16 keys, tiles that the mask hides are skipped",
                    .make = {.block = 16, .query_tile = 16, .skips_hidden = true}},
      ControlKernel{.name = "tiles-of-64",
                    .summary = "64 queries by 64 keys, weights rounded to the dtype",
                    .make = {.block = 64, .narrow_weights = true, .query_tile = 64}},
      ControlKernel{.name = "tiles-of-128",
                    .summary = "128 queries by 128 keys, weights rounded to the dtype, one reciprocal a row",
                    .make = {.block = 128, .reciprocal = true, .narrow_weights = true, .query_tile = 128}},
      ControlKernel{.name = "lazy-tiles",
                    .summary = "128 queries by 64 keys, the reference follows the maximum when it is 8 behind",
                    .make = {.block = 64, .lazy_nats = 8, .query_tile = 128}},
      ControlKernel{.name = "tiles-in-parts",
                    .summary = "tiles of 64; up to 16 queries take four tiles of keys at a time, merged as parts",
                    .make = {.block = 64, .narrow_weights = true, .query_tile = 64, .split_tiles = 4}},
      ControlKernel{.name = "small-tiles-in-parts",
                    .summary = "tiles of 16; up to 16 queries take four tiles of keys at a time, merged as parts",
                    .make = {.block = 16, .query_tile = 16, .split_tiles = 4, .skips_hidden = true}}};
  return all;
}

}  // namespace attest

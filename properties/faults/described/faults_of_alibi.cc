// Planted faults of slopes: which slope a head has, what it is multiplied by, where the product is added, and where it
// is left out. In their words m is the slope, p the position of the row and j the key.
#include <algorithm>
#include <array>
#include <iterator>

#include "properties/faults/catalogue.h"

namespace attest {
namespace {

constexpr Make base_two{.block = 32, .folded_exp2 = true, .reciprocal = true, .narrow_weights = true};
constexpr Make tiles_of_16{.block = 16, .query_tile = 16};
constexpr Make tiles_of_64{.block = 64, .narrow_weights = true, .query_tile = 64};
constexpr Make parts_of_64{.block = 16, .query_tile = 16, .split_tiles = 4};

std::vector<PlantedFault> of_slopes() {
  return {{.name = "alibi-slopes-of-so-many-heads",
           .classes = "R",
           .wrong = "the slope of head h is 2^(-8 (h + 1)/heads) of the heads that are there, whatever is given",
           .stands_for = "flashinfer#1606; Megatron-DeepSpeed#227; mlx#343",
           .caught_by = "attention.oracle alibi.equals-mask alibi.as-given alibi.heads",
           .make = {}},
          {.name = "alibi-slope-of-the-head-before",
           .classes = "R",
           .wrong = "head h has the slope of head h - 1, and head 0 the slope 1",
           .stands_for = "aprender PR#2143",
           .caught_by = "attention.oracle alibi.equals-mask alibi.as-given alibi.heads",
           .make = {}},
          {.name = "alibi-slope-of-key-value-head",
           .classes = "R L",
           .wrong = "a query head takes the slope at the place of its key-value head",
           .stands_for = "native-sparse-attention-triton#27",
           .caught_by = "attention.oracle alibi.equals-mask alibi.as-given",
           .make = {}},
          {.name = "alibi-slopes-of-first-batch",
           .classes = "R H",
           .wrong = "every batch entry takes the slopes of entry 0",
           .stands_for = "flash-attention#1585",
           .caught_by = "attention.oracle alibi.equals-mask alibi.as-given",
           .make = {}},
          {.name = "alibi-strides-ignored",
           .classes = "R O",
           .wrong = "slopes are read row-major whatever their strides",
           .stands_for = "ik_llama.cpp PR#2087",
           .caught_by = "attention.strides",
           .make = {}},
          {.name = "alibi-off-where-the-first-slope-is-zero",
           .classes = "R",
           .wrong = "a slope of 0 in head 0 is taken to say that no head has one",
           .stands_for = "vllm PR#945",
           .caught_by = "attention.oracle alibi.equals-mask alibi.as-given",
           .make = {}},
          {.name = "alibi-negative-slope-dropped",
           .classes = "R",
           .wrong = "a slope below 0 is taken for 0",
           .stands_for = "flash-attention#796",
           .caught_by = "attention.oracle alibi.equals-mask alibi.as-given",
           .make = {}},
          {.name = "alibi-slope-in-bf16",
           .classes = "R E",
           .wrong = "slopes are rounded to bf16",
           .stands_for = "flash-attention PR#846",
           .caught_by = "attention.oracle alibi.equals-mask alibi.as-given",
           .make = {},
           .dtypes = {DType::f64, DType::f32, DType::f16}}};
}

std::vector<PlantedFault> of_distances() {
  return {
      {.name = "alibi-rewards-distance",
       .classes = "R",
       .wrong = "the score has m |p - j| more, not less",
       .stands_for = "attention-gym PR#86",
       .caught_by = "attention.oracle alibi.equals-mask alibi.geometric alibi.slope-limit",
       .make = {}},
      {.name = "alibi-signed-without-causal",
       .classes = "R",
       .wrong = "without a causal form m (j - p) is added: keys behind the row's position are rewarded",
       .stands_for = "flashinfer attention/variants.cuh; flash-attention PR#540",
       .caught_by = "attention.oracle alibi.equals-mask alibi.two-sided",
       .make = {}},
      {.name = "alibi-top-left-for-bottom-right",
       .classes = "R F",
       .wrong = "p is i where it should be i + N - M",
       .stands_for = "flash-attention#907",
       .caught_by = "attention.oracle alibi.equals-mask alibi.translation alibi.decode",
       .make = {}},
      {.name = "alibi-bottom-right-for-top-left",
       .classes = "R F",
       .wrong = "p is i + N - M where it should be i",
       .stands_for = "flash-attention#907",
       .caught_by = "attention.oracle alibi.equals-mask",
       .make = {}},
      {.name = "alibi-offset-missing-under-causal",
       .classes = "R F",
       .wrong = "under a causal form m (j - i) is added whatever the form: the output is right, and the log-sum-exp "
                "is not where p is not i",
       .stands_for = "flashinfer attention/variants.cuh",
       .caught_by = "attention.oracle alibi.lse alibi.equals-mask alibi.column-form",
       .make = {}},
      {.name = "alibi-decode-counts-from-the-length",
       .classes = "R",
       .wrong = "the kernel for single queries counts from N and not from N - 1, the last key: the output is right, "
                "and the log-sum-exp is not",
       .stands_for = "vllm PR#945",
       .caught_by = "attention.oracle alibi.lse alibi.equals-mask alibi.decode",
       .make = {}},
      {.name = "alibi-positions-in-bf16",
       .classes = "R E",
       .wrong = "p and j are rounded to bf16, which has not all whole numbers above 256",
       .stands_for = "TensorRT-Model-Connect#667; HabanaAI/vllm-fork PR#503",
       .caught_by = "attention.oracle alibi.equals-mask alibi.lse",
       .make = {}},
      {.name = "alibi-distance-in-8-bits",
       .classes = "R N",
       .wrong = "the distance is kept in 8 bits: 256 is none",
       .stands_for = "pytorch PR#188015",
       .caught_by = "attention.oracle alibi.equals-mask alibi.lse",
       .make = {}}};
}

std::vector<PlantedFault> of_order() {
  return {
      {.name = "alibi-bias-in-bf16",
       .classes = "R E",
       .wrong = "m |p - j| is rounded to bf16, which is not declared",
       .stands_for = "aotriton PR#228; TensorRT-Model-Connect#667",
       .caught_by = "attention.oracle alibi.equals-mask alibi.lse",
       .make = {},
       .dtypes = {DType::f64, DType::f32, DType::f16}},
      {.name = "alibi-before-the-scale",
       .classes = "R K",
       .wrong = "slopes act on q.k, which is scaled afterwards",
       .stands_for = "flash-attention csrc/flash_attn/src/alibi.h",
       .caught_by = "attention.oracle alibi.equals-mask alibi.geometric",
       .make = {}},
      {.name = "alibi-before-the-softcap",
       .classes = "R J",
       .wrong = "slopes act on the scaled product, which is capped afterwards",
       .stands_for = "flashinfer attention/variants.cuh",
       .caught_by = "attention.oracle alibi.after-softcap alibi.equals-mask",
       .make = {}},
      {.name = "alibi-without-log2e",
       .classes = "R",
       .wrong = "exponentials are to base 2, and what slopes add has no factor log2(e)",
       .stands_for = "segment-anything-fast PR#71",
       .caught_by = "attention.oracle alibi.equals-mask alibi.geometric",
       .make = base_two},
      {.name = "alibi-lse-of-columns",
       .classes = "R",
       .wrong = "under a causal form the log-sum-exp is that of m j in the place of -m (p - j), m p larger than the "
                "manifest says",
       .stands_for = "flash-attention csrc/flash_attn/src/alibi.h",
       .caught_by = "attention.oracle alibi.lse alibi.equals-mask alibi.column-form",
       .make = {}},
      {.name = "alibi-sink-without-the-shift",
       .classes = "R",
       .wrong = "under a causal form m j is added in the place of -m (p - j), and a sink is not shifted by the m p "
                "that all scores are",
       .stands_for = "flash-attention csrc/flash_attn/src/alibi.h; rocm-libraries#12227",
       .caught_by = "attention.oracle alibi.equals-mask alibi.lse",
       .make = {}}};
}

std::vector<PlantedFault> of_paths() {
  return {{.name = "alibi-ignored",
           .classes = "R",
           .wrong = "slopes are not read",
           .stands_for = "vllm#57614",
           .caught_by = "attention.oracle alibi.equals-mask alibi.as-given alibi.geometric",
           .make = {}},
          {.name = "alibi-ignored-for-one-query",
           .classes = "R",
           .wrong = "the kernel for single queries has no slopes",
           .stands_for = "HabanaAI/vllm-fork PR#503",
           .caught_by = "attention.oracle alibi.equals-mask alibi.decode",
           .make = {}},
          {.name = "alibi-ignored-without-mask",
           .classes = "R",
           .wrong = "slopes are taken for a part of the mask: where there is none they add nothing",
           .stands_for = "attention_with_linear_biases#20",
           .caught_by = "attention.oracle alibi.equals-mask alibi.geometric",
           .make = {}}};
}

std::vector<PlantedFault> of_sequences() {
  return {{.name = "alibi-positions-from-the-padded-end",
           .classes = "R H",
           .wrong = "slopes have bottom-right positions of the batch's N and M in the place of the sequence's own",
           .stands_for = "HabanaAI/vllm-fork PR#503; vllm-project/flash-attention PR#18",
           .caught_by = "attention.oracle alibi.equals-mask",
           .make = {}},
          {.name = "alibi-left-pad-counted",
           .classes = "R H",
           .wrong = "slopes count keys from the padding before them, and rows without it",
           .stands_for = "transformers PR#17866; flash-attention#1788",
           .caught_by = "attention.oracle alibi.equals-mask",
           .make = {}},
          {.name = "alibi-keys-from-the-start-of-the-pack",
           .classes = "R H",
           .wrong = "slopes count the keys of packed sequences among those of all, and rows in their own",
           .stands_for = "vllm-project/flash-attention PR#18",
           .caught_by = "attention.oracle alibi.equals-mask",
           .make = {}}};
}

std::vector<PlantedFault> of_tiled_distances() {
  return {{.name = "alibi-row-in-its-tile",
           .classes = "R",
           .wrong = "p counts from the first row of the tile of queries",
           .stands_for = "flash-attention PR#540",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "alibi-key-in-its-tile",
           .classes = "R",
           .wrong = "j counts from the first key of the tile of keys",
           .stands_for = "flash-attention PR#540",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "alibi-distance-of-the-tiles-first-row",
           .classes = "R",
           .wrong = "all rows of a tile of queries have the distances of its first one",
           .stands_for = "flash-attention#179",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "alibi-distance-of-the-tiles-first-key",
           .classes = "R",
           .wrong = "all keys of a tile have the distance of its first one",
           .stands_for = "flash-attention#179",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "alibi-keys-from-the-windows-first-tile",
           .classes = "R",
           .wrong = "beside a window j counts from the first tile that it does not leave out",
           .stands_for = "flash-attention PR#540",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "alibi-keys-from-the-start-of-the-part",
           .classes = "R B",
           .wrong = "where few queries have their keys in parts, j counts from the first key of its part",
           .stands_for = "flash-attention#907",
           .caught_by = "attention.oracle",
           .make = parts_of_64},
          {.name = "alibi-positions-in-f16",
           .classes = "R E",
           .wrong = "p and j are rounded to f16, which has not all whole numbers above 2048",
           .stands_for = "Megatron-DeepSpeed PR#101",
           .caught_by = "attention.oracle",
           .make = tiles_of_64}};
}

std::vector<PlantedFault> of_tiled_slopes() {
  return {
      {.name = "alibi-slope-in-three-bits",
       .classes = "R N",
       .wrong = "the number of the head whose slope is read has three bits",
       .stands_for = "flashinfer#1606",
       .caught_by = "attention.oracle",
       .make = tiles_of_16},
      {.name = "alibi-slope-of-the-groups-first-head",
       .classes = "R L",
       .wrong = "where few queries have their keys in parts, the heads of a group are rows of one tile and all have "
                "the slope of its first one",
       .stands_for = "Baichuan-13B#172; native-sparse-attention-triton#27",
       .caught_by = "attention.oracle",
       .make = parts_of_64}};
}

std::vector<PlantedFault> of_tiled_sums() {
  return {{.name = "alibi-skips-the-last-tile",
           .classes = "R M",
           .wrong = "slopes add nothing in a last tile of keys that is not full",
           .stands_for = "flash-attention PR#540",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "alibi-skips-unmasked-tiles",
           .classes = "R",
           .wrong = "tiles of which nothing is hidden take a path without slopes",
           .stands_for = "flash-attention PR#540",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "alibi-in-the-first-tile-alone",
           .classes = "R",
           .wrong = "slopes add nothing in tiles of keys behind the first",
           .stands_for = "flash-attention PR#540",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "alibi-dropped-in-parts",
           .classes = "R B",
           .wrong = "where few queries have their keys in parts, there are no slopes",
           .stands_for = "HabanaAI/vllm-fork PR#503",
           .caught_by = "attention.oracle",
           .make = parts_of_64},
          {.name = "alibi-maximum-without-slopes",
           .classes = "R B E",
           .wrong = "the running maximum is that of the scores without what slopes add: exponentials overflow where a "
                    "negative slope adds much, and all vanish where a positive one takes much",
           .stands_for = "flash-attention PR#540",
           .caught_by = "attention.oracle",
           .make = tiles_of_16}};
}

}  // namespace

std::vector<PlantedFault> faults_of_alibi() {
  std::vector<PlantedFault> all;
  for (auto&& faults : std::array{of_slopes(), of_distances(), of_order(), of_paths(), of_sequences(),
                                  of_tiled_distances(), of_tiled_slopes(), of_tiled_sums()})
    std::ranges::move(faults, std::back_inserter(all));
  for (PlantedFault& fault : all) fault.kind = fault.make.query_tile > 0 ? FaultKind::alibi_tiles : FaultKind::alibi;
  return all;
}

}  // namespace attest

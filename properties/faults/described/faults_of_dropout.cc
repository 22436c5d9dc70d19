// Planted faults of dropout: what the weights that are kept are multiplied by, when the others are dropped, whose mask
// says which, where it is read, and how a kernel draws one itself. In their words p is the probability that a weight is
// dropped.
#include <algorithm>
#include <array>
#include <iterator>

#include "properties/faults/catalogue.h"

namespace attest {
namespace {

constexpr Make tiles_of_16{.block = 16, .query_tile = 16};
constexpr Make tiles_of_64{.block = 64, .narrow_weights = true, .query_tile = 64};
constexpr Make parts_of_64{.block = 16, .query_tile = 16, .split_tiles = 4};

std::vector<PlantedFault> of_factors() {
  return {{.name = "dropout-not-scaled",
           .classes = "R",
           .wrong = "what is kept is not divided by 1 - p",
           .stands_for = "py-faster-rcnn#211; ROCm/triton#460",
           .caught_by = "attention.oracle dropout.none dropout.complement dropout.scale",
           .make = {}},
          {.name = "dropout-scaled-twice",
           .classes = "R",
           .wrong = "what is kept is divided by 1 - p twice, as a weight and as an output",
           .stands_for = "mlpractical PR#32",
           .caught_by = "attention.oracle dropout.none dropout.complement dropout.scale",
           .make = {}},
          {.name = "dropout-scaled-down",
           .classes = "R",
           .wrong = "what is kept is multiplied by 1 - p, as where nothing is dropped any more",
           .stands_for = "matconvnet#866",
           .caught_by = "attention.oracle dropout.none dropout.complement dropout.scale",
           .make = {}},
          {.name = "dropout-scaled-by-p",
           .classes = "R",
           .wrong = "what is kept is multiplied by p in the place of 1/(1 - p)",
           .stands_for = "apex PR#816",
           .caught_by = "attention.oracle dropout.none dropout.complement dropout.scale",
           .make = {}},
          {.name = "dropout-over-p",
           .classes = "R",
           .wrong = "what is kept is divided by p, which is taken for the probability of being kept",
           .stands_for = "LLMs-from-scratch#431; theanets PR#123",
           .caught_by = "attention.oracle dropout.none dropout.complement dropout.scale",
           .make = {}},
          {.name = "dropout-scale-quantised",
           .classes = "R E",
           .wrong = "what is kept is divided by (floor(255 (1 - p)) + 1)/256, with which a random byte keeps a weight, "
                    "where the mask is given",
           .stands_for = "flash-attention csrc/flash_attn/src/dropout.h",
           .caught_by = "attention.oracle dropout.none dropout.scale",
           .make = {},
           .dtypes = {DType::f64, DType::f32, DType::f16}},
          {.name = "dropout-in-sixteenths",
           .classes = "R E",
           .wrong = "p is rounded to a multiple of 1/16",
           .stands_for = "pytorch PR#174245",
           .caught_by = "attention.oracle dropout.none dropout.scale",
           .make = {}},
          {.name = "dropout-scale-in-bf16",
           .classes = "R E",
           .wrong = "1/(1 - p) is rounded to bf16, which is not declared",
           .stands_for = "pytorch PR#102038",
           .caught_by = "attention.oracle dropout.none dropout.scale",
           .make = {},
           .dtypes = {DType::f64, DType::f32, DType::f16}},
          {.name = "dropout-p-in-f16",
           .classes = "R E",
           .wrong = "p is rounded to f16",
           .stands_for = "pytorch PR#174245",
           .caught_by = "attention.oracle dropout.none dropout.scale",
           .make = {},
           .dtypes = {DType::f64, DType::f32}}};
}

std::vector<PlantedFault> of_order() {
  return {
      {.name = "dropout-before-the-sum",
       .classes = "R B",
       .wrong = "weights are dropped before they are summed: those that are kept sum to 1, or are 0/0",
       .stands_for = "nki-samples PR#80",
       .caught_by = "attention.oracle dropout.all dropout.lse-unaffected dropout.column dropout.renormalises",
       .make = {}},
      {.name = "dropout-hides-keys",
       .classes = "R",
       .wrong = "scores are dropped to -inf before their exponentials, and the output divided by 1 - p",
       .stands_for = "ROCm/triton#460",
       .caught_by = "attention.oracle dropout.lse-unaffected dropout.column dropout.renormalises",
       .make = {}},
      {.name = "dropout-of-scores",
       .classes = "R",
       .wrong = "the scores are what is dropped to 0 or divided by 1 - p, and the weights are not",
       .stands_for = "Parakeet PR#74",
       .caught_by = "attention.oracle dropout.all dropout.lse-unaffected dropout.dropped-values-dead",
       .make = {}},
      {.name = "dropout-in-lse",
       .classes = "R",
       .wrong = "the log-sum-exp is that of the weights that are kept; the output is right",
       .stands_for = "nki-samples PR#80",
       .caught_by = "attention.oracle dropout.lse-unaffected",
       .make = {}},
      {.name = "dropout-scale-in-lse",
       .classes = "R",
       .wrong = "the sum has the factor 1 - p, by which the output is divided, when its logarithm is taken",
       .stands_for = "flash-attention#93",
       .caught_by = "attention.oracle dropout.lse-unaffected",
       .make = {}},
      {.name = "dropout-scale-beside-the-sink",
       .classes = "R",
       .wrong = "the sum of the keys' weights has the factor 1 - p before the sink joins it",
       .stands_for = "flash-attention#93; rocm-libraries#12227",
       .caught_by = "attention.oracle dropout.none dropout.scale",
       .make = {}},
      {.name = "dropout-multiplies-by-zero",
       .classes = "R C",
       .wrong = "a weight that is dropped is 0 and multiplies its value, NaN or not, though dead values are said to "
                "be ignored",
       .stands_for = "pytorch#59421",
       .caught_by = "dropout.dropped-values-dead",
       .make = {}}};
}

std::vector<PlantedFault> of_paths() {
  return {{.name = "dropout-ignored",
           .classes = "R",
           .wrong = "nothing is dropped",
           .stands_for = "Informer2020#97",
           .caught_by = "attention.oracle dropout.all dropout.complement dropout.column",
           .make = {}},
          {.name = "dropout-ignored-for-one-query",
           .classes = "R",
           .wrong = "the kernel for single queries drops nothing",
           .stands_for = "pytorch PR#179390",
           .caught_by = "attention.oracle dropout.all dropout.column",
           .make = {}}};
}

std::vector<PlantedFault> of_masks() {
  return {{.name = "dropout-mask-inverted",
           .classes = "R I",
           .wrong = "what the mask keeps is dropped, and the rest kept",
           .stands_for = "Inception-v4#5; Dluid PR#125",
           .caught_by = "attention.oracle dropout.all dropout.column",
           .make = {}},
          {.name = "dropout-mask-of-key-value-head",
           .classes = "R L",
           .wrong = "a query head takes the mask of dropout at the place of its key-value head",
           .stands_for = "native-sparse-attention-triton#27",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "dropout-mask-of-first-head",
           .classes = "R I",
           .wrong = "every head takes the mask of dropout of head 0",
           .stands_for = "pytorch PR#188015",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "dropout-mask-of-first-batch",
           .classes = "R H",
           .wrong = "every batch entry takes the mask of dropout of entry 0",
           .stands_for = "pytorch PR#188015; pytorch PR#192138",
           .caught_by = "attention.oracle dropout.mean",
           .make = {}},
          {.name = "dropout-mask-of-first-row",
           .classes = "R I",
           .wrong = "every row takes the mask of dropout of row 0",
           .stands_for = "TransformerEngine PR#227",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "dropout-mask-transposed",
           .classes = "R I",
           .wrong = "where M = N, the mask of dropout is read by key and query",
           .stands_for = "flash-attention PR#2439",
           .caught_by = "attention.oracle dropout.column",
           .make = {}},
          {.name = "dropout-mask-strides-ignored",
           .classes = "R O",
           .wrong = "the mask of dropout is read row-major whatever its strides",
           .stands_for = "ik_llama.cpp PR#2087",
           .caught_by = "attention.strides",
           .make = {}}};
}

std::vector<PlantedFault> of_own_masks() {
  return {{.name = "own-dropout-keeps-by-p",
           .classes = "R",
           .wrong = "where the kernel draws the mask of dropout, a weight is kept with probability p",
           .stands_for = "LLMs-from-scratch#431; theanets PR#123",
           .caught_by = "dropout.rate",
           .make = {}},
          {.name = "own-dropout-of-bytes",
           .classes = "R E",
           .wrong = "where the kernel draws the mask of dropout, a weight is kept with probability "
                    "(floor(255 (1 - p)) + 1)/256, which is not declared",
           .stands_for = "flash-attention csrc/flash_attn/src/dropout.h",
           .caught_by = "dropout.rate",
           .make = {}},
          {.name = "own-dropout-seed-ignored",
           .classes = "R",
           .wrong = "where the kernel draws the mask of dropout, every seed gives the same one",
           .stands_for = "flash-attention#2088",
           .caught_by = "dropout.rate",
           .make = {}},
          {.name = "own-dropout-alike-in-every-head",
           .classes = "R I",
           .wrong = "where the kernel draws the mask of dropout, all heads drop the same",
           .stands_for = "pytorch PR#188015",
           .caught_by = "dropout.rate",
           .make = {}},
          {.name = "own-dropout-alike-in-every-row",
           .classes = "R I",
           .wrong = "where the kernel draws the mask of dropout, all rows of a head drop the same",
           .stands_for = "TransformerEngine PR#227",
           .caught_by = "dropout.rate",
           .make = {}},
          {.name = "own-dropout-not-scaled",
           .classes = "R",
           .wrong = "where the kernel draws the mask of dropout, what is kept is not divided by 1 - p",
           .stands_for = "py-faster-rcnn#211; ROCm/triton#460",
           .caught_by = "dropout.rate",
           .make = {}}};
}

std::vector<PlantedFault> of_tiled_masks() {
  return {{.name = "dropout-row-in-its-tile",
           .classes = "R",
           .wrong = "the mask of dropout is read by a row's place in its tile of queries",
           .stands_for = "xformers PR#755",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "dropout-key-in-its-tile",
           .classes = "R",
           .wrong = "the mask of dropout is read by a key's place in its tile of keys",
           .stands_for = "xformers PR#755",
           .caught_by = "attention.oracle",
           .make = tiles_of_64},
          {.name = "dropout-pitch-of-the-causal-keys",
           .classes = "R G",
           .wrong = "rows of the mask of dropout are taken to be as long as the causal form leaves keys to the tile",
           .stands_for = "xformers PR#755",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "dropout-columns-eight-apart-exchanged",
           .classes = "R",
           .wrong = "keys j and j + 8 of sixteen have each other's places in the mask of dropout, as in another layout "
                    "of registers",
           .stands_for = "flash-attention PR#2439",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "dropout-offset-of-16-bits",
           .classes = "R N",
           .wrong = "a place in a head's mask of dropout is kept in 16 bits",
           .stands_for = "pytorch PR#188015; pytorch PR#192138",
           .caught_by = "attention.oracle",
           .make = tiles_of_64},
          {.name = "dropout-mask-of-the-first-sequence",
           .classes = "R H",
           .wrong = "rows and keys of every sequence take the mask of dropout as if theirs were the entry's first",
           .stands_for = "vllm-project/flash-attention PR#18",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "dropout-skips-the-last-tile",
           .classes = "R M",
           .wrong = "no weight of a last tile of keys that is not full is dropped",
           .stands_for = "flash-attention PR#2439",
           .caught_by = "attention.oracle",
           .make = tiles_of_64}};
}

std::vector<PlantedFault> of_tiled_sums() {
  return {{.name = "dropout-in-the-sum-of-later-tiles",
           .classes = "R B",
           .wrong = "tiles of keys behind the first drop weights before they add them to the sum",
           .stands_for = "nki-samples PR#80",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "dropout-scaled-in-every-tile",
           .classes = "R B",
           .wrong = "every tile of keys divides by 1 - p what has been summed so far of weights times values",
           .stands_for = "flash-attention#93",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "dropout-not-scaled-in-parts",
           .classes = "R B",
           .wrong = "where few queries have their keys in parts, what is kept is not divided by 1 - p",
           .stands_for = "flash-attention#93",
           .caught_by = "attention.oracle",
           .make = parts_of_64},
          {.name = "dropout-skips-dropped-tiles",
           .classes = "R B",
           .wrong = "tiles of which no weight is kept are skipped, as hidden ones are, and are not in the sum",
           .stands_for = "ROCm/triton#460",
           .caught_by = "attention.oracle",
           .make = tiles_of_16}};
}

}  // namespace

std::vector<PlantedFault> faults_of_dropout() {
  std::vector<PlantedFault> all;
  for (auto&& faults :
       std::array{of_factors(), of_order(), of_paths(), of_masks(), of_own_masks(), of_tiled_masks(), of_tiled_sums()})
    std::ranges::move(faults, std::back_inserter(all));
  for (PlantedFault& fault : all)
    fault.kind = fault.make.query_tile > 0 ? FaultKind::dropout_tiles : FaultKind::dropout;
  return all;
}

}  // namespace attest

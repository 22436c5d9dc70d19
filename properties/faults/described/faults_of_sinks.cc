// Planted faults of sinks: whose it is, where it enters the sum and how often, and what is returned of it.
#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "properties/faults/catalogue.h"

namespace attest {
namespace {

constexpr Make tiles_of_16{.block = 16, .query_tile = 16};
constexpr Make tiles_of_64{.block = 64, .narrow_weights = true, .query_tile = 64};
constexpr Make parts_of_64{.block = 16, .query_tile = 16, .split_tiles = 4};

std::vector<PlantedFault> of_rows() {
  return {{.name = "sink-ignored",
           .classes = "R",
           .wrong = "the sink is not read",
           .stands_for = "ik_llama.cpp PR#2087",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "sink-scaled",
           .classes = "R",
           .wrong = "the sink is multiplied by the scale, as the products are",
           .stands_for = "rocm-libraries#12227",
           .caught_by = "attention.oracle sink.unscaled",
           .make = {}},
          {.name = "sink-of-key-value-head",
           .classes = "R K",
           .wrong = "a query head takes the sink at the place of its key-value head",
           .stands_for = "ik_llama.cpp PR#2087",
           .caught_by = "attention.oracle sink.per-head",
           .make = {}},
          {.name = "sink-of-single-queries",
           .classes = "R",
           .wrong = "the path for more than one query has no sink",
           .stands_for = "mlx#3452",
           .caught_by = "attention.oracle sink.query-count",
           .make = {}},
          {.name = "sink-dropped-beside-a-mask",
           .classes = "R H",
           .wrong = "beside a mask the sink is dropped",
           .stands_for = "ik_llama.cpp PR#2087",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "sink-exponent-in-base-two",
           .classes = "R E",
           .wrong = "2 is raised to the sink, where the scores have the factor log2(e)",
           .stands_for = "flash-attention#1973",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "sink-in-bf16",
           .classes = "E",
           .wrong = "the sink is rounded to bf16, which is not declared",
           .stands_for = "jax#40128",
           .caught_by = "attention.oracle",
           .make = {},
           .dtypes = {DType::f64, DType::f32, DType::f16}},
          {.name = "sink-beside-the-maximum",
           .classes = "R E",
           .wrong = "the sink is no candidate for the maximum, though it is said to be: e^(sink - max) overflows",
           .stands_for = "flash-attention PR#2706",
           .caught_by = "attention.oracle sink.large",
           .make = {}},
          {.name = "sink-clamped-above-the-keys",
           .classes = "R",
           .wrong = "the factor 1/(1 + e^(sink - lse)) is that of lse - sink clamped to [-20, 0]",
           .stands_for = "torchtitan PR#2211",
           .caught_by = "attention.oracle sink.rescales",
           .make = {}},
          {.name = "sink-not-in-lse",
           .classes = "R Q",
           .wrong = "the log-sum-exp is that of the keys, though it is said to have the sink",
           .stands_for = "torchtitan PR#2211",
           .caught_by = "attention.oracle sink.lse",
           .make = {}},
          {.name = "sink-with-the-first-value",
           .classes = "R",
           .wrong = "the sink's share of the weights goes to the first key's value",
           .stands_for = "rocm-libraries#12227",
           .caught_by = "attention.oracle sink.equals-key",
           .make = {}},
          {.name = "sink-of-an-empty-row-nan",
           .classes = "R T",
           .wrong = "a row that sees no key and has a sink is NaN: 0/0",
           .stands_for = "cudnn-frontend#676",
           .caught_by = "attention.oracle sink.empty-row",
           .make = {}},
          {.name = "sink-in-every-part",
           .classes = "R B",
           .wrong = "each of four parts of the keys has the sink in its sum",
           .stands_for = "rocm-libraries#12227",
           .caught_by = "attention.oracle sink.counted-once",
           .make = {.splits = 4}}};
}

std::vector<PlantedFault> of_tiles() {
  return {{.name = "sink-in-every-tile",
           .classes = "R B",
           .wrong = "every tile of keys behind the first adds the sink to the sum once more",
           .stands_for = "rocm-libraries#12227",
           .caught_by = "attention.oracle sink.counted-once",
           .make = tiles_of_64},
          {.name = "first-tile-overwrites-the-sink",
           .classes = "R B",
           .wrong = "the first tile of keys sets the sum, which began with the sink, instead of adding to it",
           .stands_for = "ik_llama.cpp PR#2087",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "sink-in-whole-query-tiles",
           .classes = "R M",
           .wrong = "a tile of fewer queries than it has room for, the last one or the only one, has no sink",
           .stands_for = "mlx#3452",
           .caught_by = "attention.oracle",
           .make = tiles_of_64},
          {.name = "sink-in-every-part-of-tiles",
           .classes = "R B",
           .wrong = "where few queries have their keys in parts, each part has the sink in its sum",
           .stands_for = "rocm-libraries#12227",
           .caught_by = "attention.oracle",
           .make = parts_of_64}};
}

}  // namespace

std::vector<PlantedFault> faults_of_sinks() {
  std::vector<PlantedFault> all = of_kind(FaultKind::sinks, of_rows());
  std::ranges::move(of_kind(FaultKind::sink_tiles, of_tiles()), std::back_inserter(all));
  return all;
}

}  // namespace attest

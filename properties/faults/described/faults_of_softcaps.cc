// Planted faults of capped scores: what the formula is, how exact its tanh, what it is taken of, and where it is
// dropped. In their words t is the scaled product and c the cap.
#include <algorithm>
#include <array>
#include <iterator>

#include "properties/faults/catalogue.h"

namespace attest {
namespace {

constexpr Make tiles_of_16{.block = 16, .query_tile = 16};
constexpr Make tiles_of_64{.block = 64, .narrow_weights = true, .query_tile = 64};
constexpr Make parts_of_64{.block = 16, .query_tile = 16, .split_tiles = 4};

std::vector<PlantedFault> of_formulas() {
  return {{.name = "softcap-times-score",
           .classes = "J",
           .wrong = "the score is (t/c) tanh(t/c), where c is the factor",
           .stands_for = "flash-attention#2396; flash-attention PR#2402",
           .caught_by = "attention.oracle softcap.odd softcap.monotone softcap.equals-mask",
           .make = {}},
          {.name = "softcap-keeps-score",
           .classes = "J",
           .wrong = "the score is t tanh(t/c), which no cap bounds",
           .stands_for = "unsloth-zoo PR#593",
           .caught_by = "attention.oracle softcap.odd softcap.weights-bounded softcap.saturates",
           .make = {}},
          {.name = "softcap-factor-missing",
           .classes = "J",
           .wrong = "the score is tanh(t/c), and the factor c forgotten",
           .stands_for = "flash-attention PR#2402",
           .caught_by = "attention.oracle softcap.equals-mask softcap.limit",
           .make = {}},
          {.name = "softcap-argument-whole",
           .classes = "J",
           .wrong = "the score is c tanh(t), where t is divided by c",
           .stands_for = "flash-attention#1181",
           .caught_by = "attention.oracle softcap.contraction softcap.limit",
           .make = {}},
          {.name = "softcap-clamped",
           .classes = "J",
           .wrong = "the score is t cut off at -c and c, without a tanh",
           .stands_for = "flash-attention PR#1025",
           .caught_by = "attention.oracle softcap.equals-mask",
           .make = {}},
          {.name = "softcap-of-positive-scores",
           .classes = "J",
           .wrong = "negative t are left as they are",
           .stands_for = "triton PR#8551",
           .caught_by = "attention.oracle softcap.odd softcap.weights-bounded",
           .make = {}},
          {.name = "softcap-without-sign",
           .classes = "J",
           .wrong = "tanh is that of |t|/c, and the sign is not given back",
           .stands_for = "triton PR#8551",
           .caught_by = "attention.oracle softcap.odd softcap.monotone",
           .make = {}},
          {.name = "softcap-of-base-two",
           .classes = "J",
           .wrong = "t has the factor log2(e) already when it is capped, and c has not",
           .stands_for = "sgl-kernel-xpu PR#491",
           .caught_by = "attention.oracle softcap.equals-mask softcap.saturates",
           .make = {}},
          {.name = "softcap-rounded-cap",
           .classes = "J",
           .wrong = "the cap is a whole number, 1 or more",
           .stands_for = "ReaLLM-Forge PR#461",
           .caught_by = "attention.oracle softcap.equals-mask",
           .make = {}},
          {.name = "softcap-of-thirty",
           .classes = "J",
           .wrong = "every cap is 30",
           .stands_for = "flashinfer PR#339",
           .caught_by = "attention.oracle softcap.weights-bounded softcap.saturates",
           .make = {}}};
}

std::vector<PlantedFault> of_tanh() {
  return {{.name = "softcap-overflows",
           .classes = "J E",
           .wrong = "tanh is (e^x - e^-x)/(e^x + e^-x): NaN where e^|x| overflows",
           .stands_for = "vllm PR#56579; AMD-AGI/Primus PR#1057",
           .caught_by = "attention.oracle softcap.saturates softcap.weights-bounded attention.finite",
           .make = {}},
          {.name = "softcap-approximate",
           .classes = "J E",
           .wrong = "tanh has a relative error of 2^-11, which is not declared",
           .stands_for = "tt-metal#22807",
           .caught_by = "attention.oracle softcap.equals-mask",
           .make = {},
           .dtypes = {DType::f64, DType::f32}},
          {.name = "softcap-by-softsign",
           .classes = "J E",
           .wrong = "x/(1 + |x|) stands for tanh x",
           .stands_for = "iree-turbine PR#829",
           .caught_by = "attention.oracle softcap.equals-mask softcap.saturates",
           .make = {}},
          {.name = "softcap-in-the-dtype",
           .classes = "J E",
           .wrong = "t/c, its tanh and the capped score are rounded to the dtype, which is not declared",
           .stands_for = "mistral.rs PR#2076",
           .caught_by = "attention.oracle softcap.equals-mask",
           .make = {},
           .dtypes = {DType::f16, DType::bf16}}};
}

std::vector<PlantedFault> of_order() {
  return {{.name = "softcap-scale-twice",
           .classes = "J K",
           .wrong = "t is scaled once more where it is divided by c",
           .stands_for = "flashinfer attention/variants.cuh",
           .caught_by = "attention.oracle softcap.scale-before softcap.equals-mask",
           .make = {}},
          {.name = "softcap-before-scale",
           .classes = "J K",
           .wrong = "q.k is capped, and scaled afterwards",
           .stands_for = "trl PR#5691",
           .caught_by = "attention.oracle softcap.scale-before softcap.equals-mask",
           .make = {}},
          {.name = "softcap-after-bias",
           .classes = "J",
           .wrong = "what an additive mask adds is capped with t; what is hidden stays hidden",
           .stands_for = "TransformerEngine PR#3391; flashinfer attention/variants.cuh",
           .caught_by = "attention.oracle softcap.bias-after softcap.masks-after",
           .make = {}},
          {.name = "softcap-after-mask",
           .classes = "J D",
           .wrong = "scores are capped after the mask: a hidden key has the score -c",
           .stands_for = "flash-attention PR#1025; flashinfer PR#350; onnxruntime PR#28379",
           .caught_by = "attention.oracle softcap.masks-after",
           .make = {}},
          {.name = "softcap-caps-the-sink",
           .classes = "J R",
           .wrong = "the sink is capped, as the scores of keys are",
           .stands_for = "rocm-libraries PR#12229",
           .caught_by = "attention.oracle",
           .make = {}}};
}

std::vector<PlantedFault> of_paths() {
  return {{.name = "softcap-ignored",
           .classes = "J",
           .wrong = "the cap is not read",
           .stands_for = "sglang#33915; vllm-metal#665; sgl-kernel-xpu PR#491",
           .caught_by = "attention.oracle softcap.weights-bounded softcap.equals-mask softcap.saturates",
           .make = {}},
          {.name = "softcap-of-single-queries",
           .classes = "J",
           .wrong = "the path for more than one query has no cap",
           .stands_for = "kekzl/imp PR#688",
           .caught_by = "attention.oracle softcap.weights-bounded softcap.equals-mask",
           .make = {}}};
}

std::vector<PlantedFault> of_tiles() {
  return {{.name = "softcap-skips-the-last-tile",
           .classes = "J M",
           .wrong = "the keys of a last tile that is not full are not capped",
           .stands_for = "kekzl/imp PR#688",
           .caught_by = "attention.oracle",
           .make = tiles_of_64},
          {.name = "softcap-skips-unmasked-tiles",
           .classes = "J",
           .wrong = "tiles of which nothing is hidden, and to which nothing is added, take a path without the cap",
           .stands_for = "sglang#33915",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "softcap-shows-padded-keys",
           .classes = "J C",
           .wrong = "what lies behind the last key of a tile is capped after it is hidden, and has the score -c",
           .stands_for = "sgl-kernel-xpu PR#491",
           .caught_by = "attention.oracle",
           .make = tiles_of_64},
          {.name = "softcap-dropped-in-parts",
           .classes = "J B",
           .wrong = "where few queries have their keys in parts, there is no cap",
           .stands_for = "sglang PR#38525",
           .caught_by = "attention.oracle",
           .make = parts_of_64}};
}

}  // namespace

std::vector<PlantedFault> faults_of_softcaps() {
  std::vector<PlantedFault> all;
  for (auto&& faults : std::array{of_formulas(), of_tanh(), of_order(), of_paths(), of_tiles()})
    std::ranges::move(faults, std::back_inserter(all));
  for (PlantedFault& fault : all)
    fault.kind = fault.make.query_tile > 0 ? FaultKind::softcap_tiles : FaultKind::softcaps;
  return all;
}

}  // namespace attest

// Planted faults of factors of q, k and v: which one a row has, how often and where it is multiplied, and where it is
// left out.
#include <algorithm>
#include <array>
#include <iterator>

#include "properties/faults/catalogue.h"

namespace attest {
namespace {

constexpr Make tiles_of_16{.block = 16, .query_tile = 16};
constexpr Make parts_of_64{.block = 16, .query_tile = 16, .split_tiles = 4};

std::vector<PlantedFault> left_out() {
  return {{.name = "descale-of-q-ignored",
           .classes = "R",
           .wrong = "q has no factors",
           .stands_for = "sglang PR#28144",
           .caught_by = "attention.oracle descale.equals-multiplied descale.into-scale descale.only-the-product",
           .make = {}},
          {.name = "descale-of-k-ignored",
           .classes = "R",
           .wrong = "k has no factors",
           .stands_for = "vllm PR#42580; flashinfer#1023; tokenspeed PR#759",
           .caught_by = "attention.oracle descale.equals-multiplied descale.into-scale descale.only-the-product",
           .make = {}},
          {.name = "descale-of-v-ignored",
           .classes = "R",
           .wrong = "v has no factors",
           .stands_for = "flashinfer#4979; sglang PR#22615",
           .caught_by = "attention.oracle descale.equals-multiplied descale.linear-in-values",
           .make = {}},
          {.name = "descale-ignored-for-one-query",
           .classes = "R",
           .wrong = "the kernel for single queries has no factors",
           .stands_for = "tokenspeed PR#759",
           .caught_by = "attention.oracle descale.equals-multiplied descale.linear-in-values",
           .make = {}}};
}

std::vector<PlantedFault> of_others() {
  return {{.name = "descale-of-k-for-v",
           .classes = "R",
           .wrong = "where k has factors, v is multiplied by them and not by its own",
           .stands_for = "sglang PR#26852",
           .caught_by = "attention.oracle descale.equals-multiplied descale.linear-in-values",
           .make = {}},
          {.name = "descale-of-query-head",
           .classes = "R L",
           .wrong = "k and v have the factors at the number of the query head, which is not that of its key-value head",
           .stands_for = "flash-attention hopper/flash_fwd_kernel_sm90.h",
           .caught_by = "attention.oracle descale.equals-multiplied descale.as-given",
           .make = {}},
          {.name = "descale-of-first-head",
           .classes = "R L",
           .wrong = "one number is read where every head has its own: all have that of head 0",
           .stands_for = "sgl-kernel-xpu PR#252; vllm PR#42580",
           .caught_by = "attention.oracle descale.equals-multiplied descale.as-given",
           .make = {}},
          {.name = "descale-of-first-batch",
           .classes = "R H",
           .wrong = "every batch entry has the factors of entry 0",
           .stands_for = "rocm-libraries PR#10474; sgl-kernel-xpu PR#252",
           .caught_by = "attention.oracle descale.equals-multiplied descale.as-given",
           .make = {}},
          {.name = "descale-strides-ignored",
           .classes = "R O",
           .wrong = "factors are read row-major whatever their strides",
           .stands_for = "vllm PR#42580",
           .caught_by = "attention.strides",
           .make = {}}};
}

std::vector<PlantedFault> of_blocks() {
  return {{.name = "descale-one-length-of-blocks",
           .classes = "R",
           .wrong = "keys are counted off in blocks as long as those of queries",
           .stands_for = "radial-attention#36",
           .caught_by = "attention.oracle descale.equals-multiplied descale.blocks",
           .make = {}},
          {.name = "descale-of-whole-blocks",
           .classes = "R M",
           .wrong = "as many blocks are counted as are whole: the rows behind the last one have its factor",
           .stands_for = "SageAttention sageattention/quant_per_block.py",
           .caught_by = "attention.oracle descale.equals-multiplied descale.blocks",
           .make = {}},
          {.name = "descale-blocks-of-each-sequence",
           .classes = "R H",
           .wrong = "blocks are counted from the first row of a sequence and from its first key, and not from those "
                    "of the tensor",
           .stands_for = "rocm-libraries PR#10474",
           .caught_by = "attention.oracle descale.equals-multiplied descale.blocks",
           .make = {}}};
}

std::vector<PlantedFault> of_products() {
  return {{.name = "descale-divides",
           .classes = "R",
           .wrong = "rows are divided by their factors, as where they are quantised",
           .stands_for = "TensorRT-LLM decoderMaskedMultiheadAttentionTemplate.h",
           .caught_by = "attention.oracle descale.equals-multiplied descale.linear-in-values",
           .make = {}},
          {.name = "descale-of-k-twice",
           .classes = "R K",
           .wrong = "k is multiplied by its factors as it is loaded, and they are in the scale as well",
           .stands_for = "vllm PR#48016",
           .caught_by = "attention.oracle descale.equals-multiplied descale.into-scale descale.only-the-product",
           .make = {}},
          {.name = "descale-after-softcap",
           .classes = "R J",
           .wrong = "the factors of q and k multiply the score that has been capped",
           .stands_for = "attention.rs PR#3",
           .caught_by = "attention.oracle descale.equals-multiplied",
           .make = {}},
          {.name = "descale-of-the-mask",
           .classes = "R K",
           .wrong = "the factors of q and k multiply what the mask adds, too",
           .stands_for = "onnxruntime PR#14976",
           .caught_by = "attention.oracle descale.equals-multiplied",
           .make = {}},
          {.name = "descale-of-v-in-lse",
           .classes = "R",
           .wrong = "the sum of the weights is divided by the factor of v, and the log-sum-exp is that one's",
           .stands_for = "vllm PR#55557",
           .caught_by = "attention.oracle descale.lse-without-values descale.equals-multiplied",
           .make = {}},
          {.name = "descale-in-bf16",
           .classes = "R E",
           .wrong = "factors are rounded to bf16",
           .stands_for = "mlx PR#3119",
           .caught_by = "attention.oracle",
           .make = {},
           .dtypes = {DType::f32, DType::f16}}};
}

std::vector<PlantedFault> of_tiles() {
  return {{.name = "descale-block-in-its-tile",
           .classes = "R",
           .wrong = "the block of a row is counted from the first row of its tile",
           .stands_for = "radial-attention#36",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "descale-block-of-the-tiles-first-row",
           .classes = "R",
           .wrong = "all rows of a tile have the factor of its first one, though blocks are shorter",
           .stands_for = "radial-attention#36",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "descale-of-v-on-the-running-sum",
           .classes = "R B",
           .wrong = "the factor of a tile's values multiplies what has been summed of the tiles before as well",
           .stands_for = "flashinfer PR#5272",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "descale-skips-the-last-tile",
           .classes = "R M",
           .wrong = "rows of a last tile that is not full have no factors",
           .stands_for = "flashinfer PR#5272",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "descale-dropped-in-parts",
           .classes = "R B",
           .wrong = "where few queries have their keys in parts, there are no factors",
           .stands_for = "vllm PR#51363",
           .caught_by = "attention.oracle",
           .make = parts_of_64}};
}

}  // namespace

std::vector<PlantedFault> faults_of_factors() {
  std::vector<PlantedFault> all;
  for (auto&& faults : std::array{left_out(), of_others(), of_blocks(), of_products(), of_tiles()})
    std::ranges::move(faults, std::back_inserter(all));
  for (PlantedFault& fault : all)
    fault.kind = fault.make.query_tile > 0 ? FaultKind::descale_tiles : FaultKind::descale;
  return all;
}

}  // namespace attest

// Planted faults of chunks of keys: where a chunk begins and ends, what stands beside it, where positions are counted
// from, and what a kernel of tiles makes of chunks that end within one.
#include <array>
#include <iterator>
#include <utility>

#include "properties/faults/catalogue.h"

namespace attest {
namespace {

constexpr Make tiles_of_16{.block = 16, .query_tile = 16};
constexpr Make tiles_of_64{.block = 64, .narrow_weights = true, .query_tile = 64};
constexpr Make parts_of_64{.block = 16, .query_tile = 16, .split_tiles = 4};

std::vector<PlantedFault> ends() {
  return {
      {.name = "chunk-read-as-window",
       .classes = "R",
       .wrong = "chunks of C keys are a sliding window: a row sees its own key and the C - 1 before it",
       .stands_for = "PaddleFormers PR#4536",
       .caught_by = "attention.oracle chunk.is-no-window chunk.equals-mask chunk.split",
       .make = {}},
      {.name = "chunk-boundary-one-early",
       .classes = "R",
       .wrong = "a row is in the chunk of the key behind its own, that of (p + 1) / C, as where the length stands for "
                "the last position",
       .stands_for = "TensorRT-LLM decoderMaskedMultiheadAttentionTemplate.h",
       .caught_by = "attention.oracle chunk.equals-mask chunk.visible-set chunk.decode",
       .make = {}},
      {.name = "chunk-boundary-one-late",
       .classes = "R",
       .wrong = "a row is in the chunk of the key before its own, that of (p - 1) / C",
       .stands_for = "vllm PR#19351; vllm#21694",
       .caught_by = "attention.oracle chunk.equals-mask chunk.visible-set chunk.decode",
       .make = {}},
      {.name = "chunk-start-exclusive",
       .classes = "R",
       .wrong = "the first key of a chunk is not seen: keys are counted from one too low",
       .stands_for = "transformers PR#37414",
       .caught_by = "attention.oracle chunk.equals-mask chunk.visible-set chunk.leading-blocks",
       .make = {}},
      {.name = "chunk-end-inclusive",
       .classes = "R",
       .wrong = "the end of a chunk is compared by <= where < belongs: the first key of the next one is seen",
       .stands_for = "flash-attention hopper/mask.h",
       .caught_by = "attention.oracle chunk.equals-mask chunk.row-locality chunk.one",
       .make = {}},
      {.name = "chunk-without-a-right-end",
       .classes = "R G",
       .wrong = "keys before a chunk alone are hidden: without a causal form all behind it are seen",
       .stands_for = "flash-attention commit 7bb8e824; llama.cpp PR#12791",
       .caught_by = "attention.oracle chunk.equals-mask chunk.row-locality chunk.tail",
       .make = {}},
      {.name = "chunk-made-causal",
       .classes = "R G",
       .wrong = "a row sees nothing of its chunk behind its position, though no causal form is asked for",
       .stands_for = "flashinfer PR#2446",
       .caught_by = "attention.oracle chunk.equals-mask chunk.slice",
       .make = {}},
      {.name = "chunk-by-a-mask-of-bits",
       .classes = "R",
       .wrong = "a chunk begins at p & ~(C - 1), which a C that is a power of two alone has",
       .stands_for = "flashinfer PR#2446",
       .caught_by = "attention.oracle chunk.equals-mask chunk.visible-set chunk.lse-monotone",
       .make = {}},
      {.name = "chunk-of-rows-before-the-keys",
       .classes = "R A F",
       .wrong = "p / C is rounded towards 0: rows fewer than C before the first key are in the first chunk",
       .stands_for = "flash-attention commit 7bb8e824",
       .caught_by = "chunk.empty-row",
       .make = {}}};
}

std::vector<PlantedFault> what_they_go_with() {
  return {{.name = "chunk-drops-the-causal-form",
           .classes = "R G",
           .wrong = "where there are chunks the causal form does not hold",
           .stands_for = "flash-attention hopper/flash_api.cpp",
           .caught_by = "attention.oracle chunk.intersects chunk.slice",
           .make = {}},
          {.name = "chunk-ignored-without-mask",
           .classes = "R",
           .wrong = "chunks are worked into the mask, and ignored where there is none",
           .stands_for = "maxtext PR#1545; flashinfer PR#3518",
           .caught_by = "attention.oracle chunk.equals-mask chunk.wide-is-sharp",
           .make = {}},
          {.name = "chunk-ignored-without-causal",
           .classes = "R G",
           .wrong = "chunks are ignored where there is no causal form",
           .stands_for = "flash-attention commit 7bb8e824",
           .caught_by = "attention.oracle chunk.equals-mask chunk.wide-is-sharp",
           .make = {}},
          {.name = "chunk-ignored-for-one-query",
           .classes = "R",
           .wrong = "a single query is taken for decoding, where there are no chunks",
           .stands_for = "sglang PR#5479; TensorRT-LLM PR#4693",
           .caught_by = "attention.oracle chunk.decode chunk.slice",
           .make = {}},
          {.name = "chunk-ignored-beside-a-window",
           .classes = "R",
           .wrong = "where there is a window the chunks are ignored",
           .stands_for = "flash-attention hopper/mask.h, of gradients",
           .caught_by = "attention.oracle chunk.intersects chunk.slice",
           .make = {}},
          {.name = "chunk-replaces-the-window",
           .classes = "R",
           .wrong = "where there are chunks the window is ignored",
           .stands_for = "sglang#8649",
           .caught_by = "attention.oracle chunk.intersects chunk.slice",
           .make = {}},
          {.name = "chunk-replaces-the-mask",
           .classes = "R H",
           .wrong = "the mask is not read where there are chunks",
           .stands_for = "PaddleFormers PR#4536",
           .caught_by = "attention.oracle chunk.intersects",
           .make = {}}};
}

std::vector<PlantedFault> positions() {
  return {
      {.name = "chunk-top-left-for-bottom-right",
       .classes = "R F",
       .wrong = "chunks' positions count from the first key where they are to count from the last",
       .stands_for = "maxtext PR#1811; amd-shark-ai PR#1452",
       .caught_by = "attention.oracle chunk.equals-mask chunk.decode chunk.eviction",
       .make = {}},
      {.name = "chunk-bottom-right-for-top-left",
       .classes = "R F",
       .wrong = "chunks' positions count from the last key where they are to count from the first",
       .stands_for = "flash-attention hopper/mask.h",
       .caught_by = "attention.oracle chunk.equals-mask chunk.wide chunk.tail",
       .make = {}},
      {.name = "chunk-from-the-last-page",
       .classes = "R F P",
       .wrong = "at the bottom right chunks' positions count from the end of the last page of 16 keys",
       .stands_for = "mlx-vlm#2031; mlx-vlm PR#2036",
       .caught_by = "attention.oracle chunk.equals-mask chunk.decode chunk.alignments-agree",
       .make = {}},
      {.name = "chunk-from-the-capacity",
       .classes = "R F P",
       .wrong = "at the bottom right chunks' positions count from the end of the room for keys, not of the sequence",
       .stands_for = "mlx-lm PR#1673",
       .caught_by = "attention.oracle",
       .make = {}},
      {.name = "chunk-of-the-packed-keys",
       .classes = "R H",
       .wrong = "chunks count the keys of packed sequences, and their rows, among those of all",
       .stands_for = "maxtext PR#4743",
       .caught_by = "attention.oracle",
       .make = {}},
      {.name = "chunk-of-cache-slots",
       .classes = "R H",
       .wrong = "chunks count keys, and rows, from the padding before them",
       .stands_for = "transformers#40214; transformers PR#40324",
       .caught_by = "attention.oracle",
       .make = {}}};
}

std::vector<PlantedFault> chunk_tiles() {
  return {{.name = "first-tile-of-chunk-not-masked",
           .classes = "R M",
           .wrong = "a chunk begins with the tile that its first key lies in",
           .stands_for = "flash-linear-attention PR#1105",
           .caught_by = "attention.oracle chunk.row-locality",
           .make = tiles_of_64},
          {.name = "last-tile-of-chunk-rounded-down",
           .classes = "R M",
           .wrong = "the last tile of a chunk is skipped where the chunk ends within",
           .stands_for = "tt-metal PR#42582",
           .caught_by = "attention.oracle chunk.equals-mask",
           .make = tiles_of_64},
          {.name = "chunk-tiles-from-the-last-row",
           .classes = "R M",
           .wrong = "the first tile of keys is where the chunk of the last row of a tile begins",
           .stands_for = "flash-attention hopper/block.h",
           .caught_by = "attention.oracle chunk.equals-mask chunk.intersects",
           .make = tiles_of_16},
          {.name = "chunk-tiles-to-the-last-rows-key",
           .classes = "R G M",
           .wrong = "the last tile of keys is that of the last row's position, as if there were a causal form",
           .stands_for = "flash-attention commit 7bb8e824",
           .caught_by = "attention.oracle chunk.equals-mask chunk.leading-blocks",
           .make = tiles_of_16},
          {.name = "chunk-of-the-tiles-first-row",
           .classes = "R F M",
           .wrong = "the rows of a tile are in the chunk that its first row is in",
           .stands_for = "ferrox PR#255",
           .caught_by = "attention.oracle chunk.equals-mask",
           .make = tiles_of_64},
          {.name = "chunk-rounded-up-to-the-tile",
           .classes = "R M",
           .wrong = "a chunk has as many keys as whole tiles",
           .stands_for = "bd3lms#23",
           .caught_by = "attention.oracle chunk.equals-mask",
           .make = tiles_of_16},
          {.name = "chunk-ignored-in-parts",
           .classes = "R",
           .wrong = "where the keys are split into parts there are no chunks",
           .stands_for = "TensorRT-LLM PR#6306; sglang PR#5479",
           .caught_by = "attention.oracle chunk.eviction chunk.visible-set",
           .make = parts_of_64}};
}

}  // namespace

std::vector<PlantedFault> faults_of_chunks() {
  std::vector<PlantedFault> all;
  for (auto&& faults : std::array{ends(), what_they_go_with(), positions()})
    std::ranges::move(of_kind(FaultKind::chunks, std::move(faults)), std::back_inserter(all));
  std::ranges::move(of_kind(FaultKind::chunk_tiles, chunk_tiles()), std::back_inserter(all));
  return all;
}

}  // namespace attest

// Planted faults of sequences of lengths of their own: which rows and keys are whose, in kernels of rows and of tiles.
#include <array>
#include <iterator>
#include <utility>

#include "properties/faults/catalogue.h"

namespace attest {
namespace {

constexpr Make tiles_of_16{.block = 16, .query_tile = 16};
constexpr Make tiles_of_64{.block = 64, .narrow_weights = true, .query_tile = 64};

std::vector<PlantedFault> keys() {
  return {{.name = "key-lengths-ignored",
           .classes = "H",
           .wrong = "keys behind a sequence's length are seen: the batch's N in the place of its own",
           .stands_for = "vllm-project/flash-attention PR#18; flash-attention#1417",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "lengths-ignored-with-a-mask",
           .classes = "H",
           .wrong = "keys behind a sequence's length are seen where there is a mask",
           .stands_for = "candle PR#3743",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "key-length-of-the-first-sequence",
           .classes = "H",
           .wrong = "every sequence has as many keys as the first one",
           .stands_for = "vllm-project/flash-attention PR#18",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "key-length-of-the-queries",
           .classes = "F",
           .wrong = "a sequence has as many keys as queries",
           .stands_for = "nano-vllm#212; candle PR#3743",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "a-key-too-many-in-sequences",
           .classes = "H",
           .wrong = "the key behind a sequence's last one is seen: <= where < belongs",
           .stands_for = "vllm PR#47305",
           .caught_by = "attention.oracle",
           .make = tiles_of_64},
          {.name = "last-key-of-sequences-lost",
           .classes = "M",
           .wrong = "the last key of a sequence is not seen",
           .stands_for = "sgl-kernel-xpu#196",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "keys-to-the-end-of-the-tile",
           .classes = "H M",
           .wrong = "the last tile of a sequence's keys is seen as a whole, and with it keys of the next sequence",
           .stands_for = "vllm PR#936; vllm PR#47305; flash-attention PR#2333",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "keys-by-the-starts-of-queries",
           .classes = "H",
           .wrong = "packed keys begin where the sequence's queries do",
           .stands_for = "TransformerEngine#3333",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "keys-of-the-sequence-before",
           .classes = "H",
           .wrong = "packed keys are those of the sequence before, where that has as many",
           .stands_for = "flash-attention PR#2333; flash-attention PR#2337",
           .caught_by = "attention.oracle",
           .make = tiles_of_16}};
}

std::vector<PlantedFault> rows() {
  return {{.name = "rows-to-the-start-of-the-tile",
           .classes = "M",
           .wrong = "a sequence's last rows, which fill no tile, are left out",
           .stands_for = "flash-attention PR#2333; flash-attention PR#2337",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "rows-beyond-the-first-length-lost",
           .classes = "H",
           .wrong = "no sequence has more rows than the first one",
           .stands_for = "flash-attention#1537",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "last-sequence-lost",
           .classes = "H",
           .wrong = "the last sequence is not computed",
           .stands_for = "flash-attention PR#2337",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "sequences-end-at-an-empty-one",
           .classes = "Q",
           .wrong = "a sequence without queries ends the batch",
           .stands_for = "flash-attention#2562; flash-attention#1537; flash-attention PR#1155",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "mask-of-sequences-from-its-first-row",
           .classes = "H I",
           .wrong = "a packed sequence reads the mask from row 0 and key 0 on",
           .stands_for = "ik_llama.cpp PR#2087",
           .caught_by = "attention.oracle",
           .make = {}}};
}

std::vector<PlantedFault> positions() {
  return {{.name = "positions-from-the-padded-end",
           .classes = "F",
           .wrong = "bottom-right positions count from the batch's N and M in the place of the sequence's own",
           .stands_for = "flash-attention#443; flash-attention-npu#261",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "positions-of-tokens-among-all",
           .classes = "F",
           .wrong = "the positions of packed queries and keys are those among all tokens",
           .stands_for = "TransformerEngine#3333; sparkinfer#3",
           .caught_by = "attention.oracle",
           .make = {}}};
}

std::vector<PlantedFault> left_pads() {
  return {{.name = "left-pad-ignored",
           .classes = "H",
           .wrong = "the keys before a sequence's first one are seen",
           .stands_for = "flash-attention#1788",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "left-pad-of-the-first-sequence",
           .classes = "H",
           .wrong = "every sequence has as much padding on the left as the first one",
           .stands_for = "vllm-project/flash-attention PR#18, on the left",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "left-pad-taken-off-the-end",
           .classes = "H F",
           .wrong = "padding on the left shortens a sequence, which begins at the first key all the same",
           .stands_for = "flash-attention#1788",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "length-behind-the-left-pad",
           .classes = "H F",
           .wrong = "the length of keys is counted from the first key behind the padding on the left",
           .stands_for = "flash-attention-npu#261",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "left-pad-one-short",
           .classes = "H",
           .wrong = "the last key of the padding on the left is seen: <= where < belongs",
           .stands_for = "vllm PR#47305, on the left",
           .caught_by = "attention.oracle",
           .make = tiles_of_64},
          {.name = "left-pad-to-the-start-of-the-tile",
           .classes = "H",
           .wrong = "padding on the left is skipped by whole tiles alone",
           .stands_for = "flash-attention PR#2333, on the left",
           .caught_by = "attention.oracle",
           .make = tiles_of_16},
          {.name = "mask-before-the-left-pad",
           .classes = "H I",
           .wrong = "a sequence with padding on the left reads the mask from key 0 on",
           .stands_for = "ik_llama.cpp PR#2087",
           .caught_by = "attention.oracle",
           .make = {}}};
}

std::vector<PlantedFault> caches() {
  return {{.name = "pages-in-order",
           .classes = "H",
           .wrong = "pages are read in the order in which they lie in the pool",
           .stands_for = "vllm PR#27547; nvidia/cutlass PR#2221",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "pages-of-the-first-sequence",
           .classes = "H",
           .wrong = "every sequence's pages are those that the table's first row names",
           .stands_for = "ssd PR#22",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "page-read-twice",
           .classes = "H",
           .wrong = "from the third page on a sequence reads the page before",
           .stands_for = "flashinfer#4347",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "values-by-the-table-of-keys",
           .classes = "H",
           .wrong = "values are read by the table of keys where they have one of their own",
           .stands_for = "aiter PR#3498",
           .caught_by = "paged.independent-tables",
           .make = {}},
          {.name = "page-numbers-in-16-bits",
           .classes = "H",
           .wrong = "the numbers of pages are kept in 16 bits",
           .stands_for = "tt-metal#57364; aiter#2517",
           .caught_by = "paged.far-pages",
           .make = {}},
          {.name = "partial-page-lost",
           .classes = "M",
           .wrong = "a page that is not full is not read, where there are full ones",
           .stands_for = "flashinfer#941; flashinfer#4347",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "cache-index-ignored",
           .classes = "H",
           .wrong = "entry b reads row b of the cache, whatever row its index names",
           .stands_for = "flash-attention#638",
           .caught_by = "cache.index",
           .make = {}}};
}

std::vector<PlantedFault> padding() {
  return {{.name = "sequence-without-keys-nan",
           .classes = "A Q",
           .wrong = "the rows of a sequence without keys are 0 divided by 0",
           .stands_for = "flashinfer#3047; flash-attention PR#2421",
           .caught_by = "varlen.empty-sequences",
           .make = tiles_of_16},
          {.name = "values-of-padding-multiplied",
           .classes = "C H",
           .wrong = "values behind a sequence's last are multiplied by a weight of 0: NaN comes through",
           .stands_for = "flashinfer#941; vllm PR#936; tilelang PR#2461",
           .caught_by = "varlen.padding-dead",
           .make = tiles_of_16},
          {.name = "padding-unwritten",
           .classes = "Q",
           .wrong = "rows of no sequence are left as they were, though they are to be 0",
           .stands_for = "flash-linear-attention PR#892",
           .caught_by = "attention.oracle",
           .make = {}},
          {.name = "padding-is-nan",
           .classes = "C",
           .wrong = "rows of no sequence are 0 divided by 0",
           .stands_for = "tilelang PR#2461; flash-attention#443",
           .caught_by = "varlen.padding-dead",
           .make = {}}};
}

}  // namespace

std::vector<PlantedFault> faults_of_sequences() {
  std::vector<PlantedFault> all;
  for (auto&& faults : std::array{keys(), rows(), positions(), left_pads(), caches(), padding()})
    std::ranges::move(faults, std::back_inserter(all));
  for (PlantedFault& fault : all)
    fault.kind = fault.make.query_tile > 0 ? FaultKind::sequence_tiles : FaultKind::sequences;
  return all;
}

}  // namespace attest

// The planted faults of kernels of tiles: each is shown a case of the shape that its mistake needs. A property sees the
// mistake, and holds for the same kernel without it.
#include "properties/faults/planted_tiles.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <set>
#include <string>

#include "core/oracle/oracle.h"
#include "core/problem/kv_cache.h"
#include "core/problem/memory.h"
#include "core/problem/sight.h"
#include "core/test/cases.h"
#include "core/test/names.h"
#include "core/test/sanitizers.h"
#include "properties/catalogue/property.h"
#include "properties/faults/faults.h"
#include "properties/generators/stream.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {

/// How GoogleTest prints a parameter.
static void PrintTo(const ControlKernel* control, std::ostream* out) {
  *out << control->name;
}

namespace {

/// What shows a fault: a shape, and what else its mistake needs.
struct Shown {
  std::string_view fault;
  test::CaseSizes sizes;
  Causal causal = Causal::none;
  /// Whether row i of head h of batch entry b sees key j; none: there is no mask.
  bool (*sees)(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) = nullptr;
  /// How far the scores of key j lie above those of others, about; none: not at all.
  double (*above)(std::int64_t j) = nullptr;
  std::string_view property = "attention.oracle";
  std::string arguments = {};  ///< of the property
  MemoryLayout keys = MemoryLayout::row_major;
  std::int64_t left = -1, right = -1;  ///< of the window
  std::int64_t chunk = 0;              ///< keys to a chunk; 0: there are none
  Causal alignment = Causal::none;
  std::vector<double> q_lengths{}, kv_lengths{};  ///< of its sequences; none: there are no such lengths
  std::vector<double> left_pad{};                 ///< of its sequences; none: there is none
  bool packed = false;                            ///< they stand one after another
  std::int64_t page = 0, append = 0;              ///< keys to a page, and keys that the call appends
  std::vector<double> sinks{};                    ///< of the heads; none: there are none
  bool by_lse = false;                            ///< a loss has a gradient by the log-sum-exp, too
  double softcap = 0;                             ///< 0: none
  double dropout_p = 0;                           ///< beside `keeps`
  /// Whether row i of head h of batch entry b keeps the weight of key j; none: no weight is dropped.
  bool (*keeps)(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) = nullptr;
  /// Of the heads; none: there are none. Positions count as the alignment says, or from the first key.
  std::vector<double> slopes{};
  std::int64_t block = 0;                        ///< of keys that have a factor together; 0: all have
  std::vector<double> k_factors{}, v_factors{};  ///< of the blocks; none: there are none
};

/// How GoogleTest prints a parameter.
void PrintTo(const Shown& shown, std::ostream* out) {
  *out << shown.fault;
}

using Index = std::int64_t;
constexpr Causal top_left = Causal::top_left, bottom_right = Causal::bottom_right;

const Shown shown[] = {
    // second key tile
    {.fault = "prefill-sum-not-rescaled", .sizes = {.queries = 64, .keys = 65, .dk = 4, .dv = 2}},
    {.fault = "last-tile-not-rescaled", .sizes = {.queries = 1, .keys = 256, .dk = 4, .dv = 2}},
    {.fault = "odd-tile-output-not-rescaled", .sizes = {.queries = 1, .keys = 128, .dk = 4, .dv = 2}},
    {.fault = "maximum-of-the-tile-alone",
     .sizes = {.queries = 1, .keys = 128, .dk = 4, .dv = 2},
     .above = [](Index j) { return j < 64 ? 100.0 : 0.0; }},
    {.fault = "factor-of-the-row-eight-above", .sizes = {.queries = 9, .keys = 128, .dk = 4, .dv = 2}},
    {.fault = "sum-of-half-a-tile", .sizes = {.queries = 1, .keys = 128, .dk = 4, .dv = 2}},
    {.fault = "sum-kept-in-the-dtype", .sizes = {.queries = 4, .keys = 512, .dk = 4, .dv = 2}},
    {.fault = "hidden-first-tile-nan",
     .sizes = {.queries = 2, .keys = 65, .dk = 4, .dv = 2},
     .sees = [](Index, Index, Index i, Index j) { return i == 0 || j >= 64; }},
    {.fault = "hidden-tile-clears-the-row",
     .sizes = {.queries = 1, .keys = 32, .dk = 4, .dv = 2},
     .sees = [](Index, Index, Index, Index j) { return j < 16; }},
    {.fault = "values-of-two-tiles-before", .sizes = {.queries = 1, .keys = 129, .dk = 4, .dv = 2}},
    {.fault = "odd-tile-counted-twice", .sizes = {.queries = 1, .keys = 129, .dk = 4, .dv = 2}},
    {.fault = "tiles-beyond-fours-dropped", .sizes = {.queries = 1, .keys = 257, .dk = 4, .dv = 2}},
    {.fault = "lazy-maximum-in-lse",
     .sizes = {.queries = 1, .keys = 128, .dk = 4, .dv = 2},
     .above = [](Index j) { return j < 64 ? 0.0 : 4.0; }},
    // partial tile
    {.fault = "padded-keys-count", .sizes = {.queries = 1, .keys = 200, .dk = 4, .dv = 2}},
    {.fault = "one-padded-key-counts", .sizes = {.queries = 1, .keys = 100, .dk = 4, .dv = 2}},
    {.fault = "causal-tail-not-masked", .sizes = {.queries = 128, .keys = 100, .dk = 4, .dv = 2}, .causal = top_left},
    {.fault = "shifted-last-query-tile", .sizes = {.queries = 100, .keys = 100, .dk = 4, .dv = 2}, .causal = top_left},
    {.fault = "last-rows-in-sixteens", .sizes = {.queries = 100, .keys = 2, .dk = 4, .dv = 2}},
    {.fault = "values-in-sixteens", .sizes = {.queries = 4, .keys = 79, .dk = 4, .dv = 8}},
    {.fault = "tail-keeps-values",
     .sizes = {.queries = 1, .keys = 100, .dk = 4, .dv = 2},
     .sees = [](Index, Index, Index, Index) { return true; },
     .property = "masked.suppression",
     .arguments = "i=0 s=50 poison=3"},
    {.fault = "lse-of-last-tile-unwritten", .sizes = {.queries = 100, .keys = 2, .dk = 4, .dv = 2}},
    {.fault = "mask-tail-in-eights",
     .sizes = {.queries = 1, .keys = 100, .dk = 4, .dv = 2},
     .sees = [](Index, Index, Index, Index j) { return j < 97; }},
    // causal tiles
    {.fault = "diagonal-tile-rounded-down",
     .sizes = {.queries = 64, .keys = 100, .dk = 4, .dv = 2},
     .causal = bottom_right},
    {.fault = "one-diagonal-tile", .sizes = {.queries = 64, .keys = 100, .dk = 4, .dv = 2}, .causal = bottom_right},
    {.fault = "rows-above-the-first-key-unwritten",
     .sizes = {.queries = 100, .keys = 20, .dk = 4, .dv = 2},
     .causal = bottom_right,
     .property = "masked.fully-masked-row"},
    {.fault = "keys-bounded-by-queries",
     .sizes = {.queries = 1, .keys = 128, .dk = 4, .dv = 2},
     .causal = bottom_right},
    {.fault = "causal-row-in-its-tile", .sizes = {.queries = 200, .keys = 200, .dk = 4, .dv = 2}, .causal = top_left},
    {.fault = "chunk-attends-to-whole-length",
     .sizes = {.queries = 20, .keys = 100, .dk = 4, .dv = 2},
     .causal = bottom_right},
    {.fault = "cached-prefix-ignored", .sizes = {.queries = 20, .keys = 200, .dk = 4, .dv = 2}, .causal = bottom_right},
    // mask tiles
    {.fault = "mask-on-last-tile-only",
     .sizes = {.queries = 1, .keys = 100, .dk = 4, .dv = 2},
     .sees = [](Index, Index, Index, Index j) { return j != 7; }},
    {.fault = "tile-mask-by-corners",
     .sizes = {.queries = 64, .keys = 64, .dk = 4, .dv = 2},
     .sees = [](Index, Index, Index i, Index j) { return j != 7 || i != 30; }},
    {.fault = "tile-skipped-by-first-row",
     .sizes = {.queries = 2, .keys = 32, .dk = 4, .dv = 2},
     .sees = [](Index, Index, Index i, Index j) { return i > 0 || j < 16; }},
    {.fault = "tile-skipped-by-first-head",
     .sizes = {.heads = 2, .queries = 1, .keys = 128, .dk = 4, .dv = 2},
     .sees = [](Index, Index h, Index, Index j) { return h > 0 || j < 64; }},
    {.fault = "values-behind-after-skip",
     .sizes = {.queries = 1, .keys = 128, .dk = 4, .dv = 2},
     .sees = [](Index, Index, Index, Index j) { return j >= 64; }},
    {.fault = "mask-row-in-its-tile",
     .sizes = {.queries = 65, .keys = 2, .dk = 4, .dv = 2},
     .sees = [](Index, Index, Index i, Index j) { return i < 64 || j == 0; }},
    {.fault = "hidden-values-multiplied-behind-first-tile",
     .sizes = {.queries = 1, .keys = 100, .dk = 4, .dv = 2},
     .sees = [](Index, Index, Index, Index) { return true; },
     .property = "masked.suppression",
     .arguments = "i=0 s=70 poison=3"},
    {.fault = "hidden-score-added-behind-first-tile",
     .sizes = {.queries = 1, .keys = 100, .dk = 4, .dv = 2},
     .sees = [](Index, Index, Index, Index) { return true; },
     .property = "masked.suppression",
     .arguments = "i=0 s=70 poison=3"},
    // head dim
    {.fault = "second-half-reads-first", .sizes = {.queries = 1, .keys = 8, .dk = 128, .dv = 2}},
    {.fault = "head-dim-in-sixty-fours", .sizes = {.queries = 1, .keys = 8, .dk = 96, .dv = 2}},
    {.fault = "head-dim-in-eights-above-64", .sizes = {.queries = 1, .keys = 8, .dk = 100, .dv = 2}},
    {.fault = "head-dim-tail-stale", .sizes = {.queries = 1, .keys = 8, .dk = 80, .dv = 2}},
    {.fault = "head-dim-above-128-cut", .sizes = {.queries = 1, .keys = 8, .dk = 192, .dv = 2}},
    {.fault = "first-value-chunk-rescaled", .sizes = {.queries = 1, .keys = 128, .dk = 4, .dv = 128}},
    {.fault = "value-chunks-of-head-dim", .sizes = {.queries = 1, .keys = 8, .dk = 64, .dv = 128}},
    {.fault = "value-pitch-of-keys", .sizes = {.queries = 1, .keys = 8, .dk = 192, .dv = 128}},
    {.fault = "values-above-128-unnormalised", .sizes = {.queries = 1, .keys = 8, .dk = 192, .dv = 192}},
    {.fault = "score-halves-in-the-dtype", .sizes = {.queries = 8, .keys = 64, .dk = 128, .dv = 16}},
    {.fault = "scale-of-padded-head-dim", .sizes = {.queries = 1, .keys = 8, .dk = 112, .dv = 2}},
    {.fault = "row-pitch-rounded-up", .sizes = {.queries = 1, .keys = 8, .dk = 80, .dv = 2}},
    // heads
    {.fault = "group-by-shift", .sizes = {.heads = 6, .queries = 1, .keys = 8, .dk = 4, .dv = 2, .kv_heads = 2}},
    {.fault = "group-of-eight-fixed", .sizes = {.heads = 32, .queries = 1, .keys = 8, .dk = 4, .dv = 2, .kv_heads = 8}},
    {.fault = "heads-in-three-bits", .sizes = {.heads = 9, .queries = 1, .keys = 8, .dk = 4, .dv = 2}},
    {.fault = "mask-plane-in-three-bits",
     .sizes = {.heads = 9, .queries = 1, .keys = 8, .dk = 4, .dv = 2},
     .sees = [](Index, Index h, Index, Index j) { return h < 8 || j > 0; }},
    {.fault = "heads-beyond-32-unwritten", .sizes = {.heads = 40, .queries = 1, .keys = 8, .dk = 4, .dv = 2}},
    {.fault = "grid-of-65535", .sizes = {.batch = 256, .heads = 257, .queries = 1, .keys = 1, .dk = 1, .dv = 1}},
    {.fault = "values-of-the-head-before", .sizes = {.heads = 2, .queries = 1, .keys = 65, .dk = 4, .dv = 2}},
    // batch
    {.fault = "batch-in-two-bits", .sizes = {.batch = 5, .queries = 1, .keys = 8, .dk = 4, .dv = 2}},
    {.fault = "mask-of-first-batch-in-later-tiles",
     .sizes = {.batch = 2, .queries = 65, .keys = 8, .dk = 4, .dv = 2},
     .sees = [](Index b, Index, Index, Index j) { return b == 0 || j > 0; }},
    // long rows
    {.fault = "not-rescaled-at-every-512",
     .sizes = {.queries = 1, .keys = 600, .dk = 4, .dv = 2},
     .above = [](Index j) { return j < 512 ? 0.0 : 1.0; }},
    {.fault = "keys-beyond-2048-dropped", .sizes = {.queries = 1, .keys = 2100, .dk = 4, .dv = 2}},
    {.fault = "tiles-in-eight-bits", .sizes = {.queries = 1, .keys = 4100, .dk = 4, .dv = 2}},
    {.fault = "window-of-4096-left-on",
     .sizes = {.queries = 1, .keys = 4200, .dk = 4, .dv = 2},
     .causal = bottom_right},
    {.fault = "key-index-of-16-bits",
     .sizes = {.queries = 1, .keys = 65'540, .dk = 1, .dv = 1},
     .above = [](Index j) { return j < 65'536 ? 0.0 : 8.0; }},
    {.fault = "length-of-16-bits", .sizes = {.queries = 1, .keys = 65'540, .dk = 1, .dv = 1}},
    // index
    {.fault = "key-offset-of-16-bits", .sizes = {.queries = 1, .keys = 1030, .dk = 64, .dv = 64}},
    {.fault = "query-offset-of-16-bits", .sizes = {.queries = 1030, .keys = 2, .dk = 64, .dv = 1}},
    {.fault = "output-offset-of-16-bits", .sizes = {.queries = 1030, .keys = 2, .dk = 1, .dv = 64}},
    {.fault = "head-offset-of-16-bits", .sizes = {.heads = 16, .queries = 1, .keys = 80, .dk = 64, .dv = 1}},
    {.fault = "mask-offset-of-16-bits",
     .sizes = {.queries = 300, .keys = 300, .dk = 1, .dv = 1},
     .sees = [](Index, Index, Index i, Index j) { return i < 220 || j > 100; }},
    {.fault = "lse-offset-of-16-bits", .sizes = {.heads = 9, .queries = 8192, .keys = 1, .dk = 1, .dv = 1}},
    {.fault = "tile-offset-of-16-bits", .sizes = {.queries = 1, .keys = 128, .dk = 192, .dv = 2}},
    {.fault = "strides-ignored-at-128",
     .sizes = {.queries = 1, .keys = 8, .dk = 128, .dv = 2},
     .property = "attention.strides",
     .keys = MemoryLayout::padded_rows},
    // split
    {.fault = "split-drops-the-rest", .sizes = {.queries = 1, .keys = 600, .dk = 4, .dv = 2}},
    {.fault = "parts-beyond-32-not-merged", .sizes = {.queries = 1, .keys = 2100, .dk = 4, .dv = 2}},
    {.fault = "empty-part-nan", .sizes = {.queries = 1, .keys = 520, .dk = 4, .dv = 2}},
    {.fault = "empty-part-has-lse-zero", .sizes = {.queries = 1, .keys = 130, .dk = 4, .dv = 2}},
    {.fault = "part-without-keys-nan", .sizes = {.queries = 4, .keys = 258, .dk = 4, .dv = 2}, .causal = bottom_right},
    {.fault = "parts-merged-by-maxima", .sizes = {.queries = 1, .keys = 600, .dk = 4, .dv = 2}},
    {.fault = "merge-maximum-without-last-part",
     .sizes = {.queries = 1, .keys = 300, .dk = 4, .dv = 2},
     .above = [](Index j) { return j < 256 ? 0.0 : 100.0; }},
    {.fault = "lse-of-last-part", .sizes = {.queries = 1, .keys = 300, .dk = 4, .dv = 2}},
    {.fault = "scratch-of-first-query", .sizes = {.queries = 2, .keys = 300, .dk = 4, .dv = 2}},
    {.fault = "causal-dropped-in-parts",
     .sizes = {.queries = 4, .keys = 300, .dk = 4, .dv = 2},
     .causal = bottom_right},
    {.fault = "packed-group-position",
     .sizes = {.heads = 2, .queries = 4, .keys = 300, .dk = 4, .dv = 2, .kv_heads = 1},
     .causal = bottom_right},
    {.fault = "parts-in-the-dtype", .sizes = {.queries = 8, .keys = 200, .dk = 4, .dv = 64}},
    {.fault = "parts-by-queries",
     .sizes = {.queries = 17, .keys = 300, .dk = 4, .dv = 2},
     .property = "attention.query-deletion"},
    // window tiles
    {.fault = "first-tile-of-window-not-masked",
     .sizes = {.queries = 1, .keys = 100, .dk = 4, .dv = 2},
     .left = 20,
     .alignment = bottom_right},
    {.fault = "first-tile-of-window-rounded-up",
     .sizes = {.queries = 1, .keys = 100, .dk = 4, .dv = 2},
     .left = 50,
     .alignment = bottom_right},
    {.fault = "last-tile-of-window-rounded-down",
     .sizes = {.queries = 1, .keys = 100, .dk = 4, .dv = 2},
     .right = 70,
     .alignment = top_left},
    {.fault = "window-masked-on-its-first-and-last-tile",
     .sizes = {.queries = 16, .keys = 64, .dk = 4, .dv = 2},
     .left = 20,
     .alignment = bottom_right},
    {.fault = "window-tiles-from-the-last-row",
     .sizes = {.queries = 16, .keys = 64, .dk = 4, .dv = 2},
     .left = 4,
     .alignment = bottom_right},
    {.fault = "window-tiles-to-the-first-row",
     .sizes = {.queries = 16, .keys = 64, .dk = 4, .dv = 2},
     .right = 4,
     .alignment = top_left},
    {.fault = "window-tiles-of-a-causal-span",
     .sizes = {.queries = 16, .keys = 64, .dk = 4, .dv = 2},
     .left = 4,
     .alignment = top_left},
    {.fault = "window-left-end-of-the-tiles-first-row",
     .sizes = {.queries = 64, .keys = 64, .dk = 4, .dv = 2},
     .left = 4,
     .alignment = top_left},
    {.fault = "tile-outside-the-window-nan",
     .sizes = {.queries = 16, .keys = 64, .dk = 4, .dv = 2},
     .left = 4,
     .alignment = bottom_right},
    {.fault = "window-without-tiles-nan",
     .sizes = {.queries = 64, .keys = 16, .dk = 4, .dv = 2},
     .property = "window.empty-row",
     .arguments = "i=20",
     .left = 4,
     .alignment = top_left},
    {.fault = "empty-window-clears-the-rows-behind",
     .sizes = {.queries = 64, .keys = 16, .dk = 4, .dv = 2},
     .right = 4,
     .alignment = bottom_right},
    {.fault = "window-ignored-in-parts",
     .sizes = {.queries = 1, .keys = 200, .dk = 4, .dv = 2},
     .left = 150,
     .alignment = bottom_right},
    {.fault = "values-outside-the-window-multiplied",
     .sizes = {.queries = 1, .keys = 64, .dk = 4, .dv = 2},
     .property = "window.row-locality",
     .arguments = "i=0 poison=1",
     .left = 50,
     .alignment = bottom_right},
    // chunk tiles
    {.fault = "first-tile-of-chunk-not-masked",
     .sizes = {.queries = 1, .keys = 100, .dk = 4, .dv = 2},
     .chunk = 80,
     .alignment = bottom_right},
    {.fault = "last-tile-of-chunk-rounded-down",
     .sizes = {.queries = 1, .keys = 200, .dk = 4, .dv = 2},
     .chunk = 100,
     .alignment = top_left},
    {.fault = "chunk-tiles-from-the-last-row",
     .sizes = {.queries = 16, .keys = 64, .dk = 4, .dv = 2},
     .chunk = 20,
     .alignment = bottom_right},
    {.fault = "chunk-tiles-to-the-last-rows-key",
     .sizes = {.queries = 16, .keys = 64, .dk = 4, .dv = 2},
     .chunk = 40,
     .alignment = top_left},
    {.fault = "chunk-of-the-tiles-first-row",
     .sizes = {.queries = 64, .keys = 64, .dk = 4, .dv = 2},
     .chunk = 20,
     .alignment = top_left},
    {.fault = "chunk-rounded-up-to-the-tile",
     .sizes = {.queries = 16, .keys = 64, .dk = 4, .dv = 2},
     .chunk = 10,
     .alignment = top_left},
    {.fault = "chunk-ignored-in-parts",
     .sizes = {.queries = 1, .keys = 200, .dk = 4, .dv = 2},
     .chunk = 150,
     .alignment = bottom_right},
    // sequence tiles
    {.fault = "key-lengths-ignored",
     .sizes = {.batch = 2, .queries = 2, .keys = 40, .dk = 4, .dv = 2},
     .kv_lengths = {40, 20}},
    {.fault = "a-key-too-many-in-sequences",
     .sizes = {.batch = 2, .queries = 2, .keys = 80, .dk = 4, .dv = 2},
     .kv_lengths = {80, 70}},
    {.fault = "left-pad-ignored",
     .sizes = {.batch = 2, .queries = 2, .keys = 40, .dk = 4, .dv = 2},
     .left_pad = {0, 20}},
    {.fault = "left-pad-one-short",
     .sizes = {.batch = 2, .queries = 2, .keys = 80, .dk = 4, .dv = 2},
     .left_pad = {0, 70}},
    {.fault = "left-pad-to-the-start-of-the-tile",
     .sizes = {.batch = 2, .queries = 2, .keys = 40, .dk = 4, .dv = 2},
     .left_pad = {16, 20}},
    {.fault = "keys-to-the-end-of-the-tile",
     .sizes = {.queries = 2, .keys = 60, .dk = 4, .dv = 2},
     .q_lengths = {1, 1},
     .kv_lengths = {20, 40},
     .packed = true},
    {.fault = "keys-of-the-sequence-before",
     .sizes = {.queries = 2, .keys = 40, .dk = 4, .dv = 2},
     .q_lengths = {1, 1},
     .kv_lengths = {20, 20},
     .packed = true},
    {.fault = "rows-to-the-start-of-the-tile",
     .sizes = {.queries = 30, .keys = 4, .dk = 4, .dv = 2},
     .q_lengths = {20},
     .kv_lengths = {4}},
    {.fault = "sequence-without-keys-nan",
     .sizes = {.batch = 2, .queries = 2, .keys = 20, .dk = 4, .dv = 2},
     .property = "varlen.empty-sequences",
     .arguments = "s=0 which=1 many=0",
     .q_lengths = {2, 2},
     .kv_lengths = {20, 20}},
    {.fault = "values-of-padding-multiplied",
     .sizes = {.queries = 2, .keys = 30, .dk = 4, .dv = 2},
     .property = "varlen.padding-dead",
     .arguments = "poison=1",
     .q_lengths = {2},
     .kv_lengths = {20}},
    {.fault = "one-page-to-a-tile", .sizes = {.queries = 1, .keys = 64, .dk = 4, .dv = 2}, .page = 4},
    {.fault = "table-pitch-in-fours", .sizes = {.batch = 2, .queries = 1, .keys = 20, .dk = 4, .dv = 2}, .page = 4},
    {.fault = "new-keys-in-fours",
     .sizes = {.queries = 1, .keys = 40, .dk = 4, .dv = 2},
     .kv_lengths = {40},
     .append = 6},
    {.fault = "tiles-as-before-the-append",
     .sizes = {.queries = 1, .keys = 40, .dk = 4, .dv = 2},
     .kv_lengths = {40},
     .append = 10},
    // sink tiles
    {.fault = "sink-in-every-tile", .sizes = {.queries = 1, .keys = 128, .dk = 4, .dv = 2}, .sinks = {0}},
    {.fault = "first-tile-overwrites-the-sink", .sizes = {.queries = 1, .keys = 40, .dk = 4, .dv = 2}, .sinks = {0}},
    {.fault = "sink-in-whole-query-tiles", .sizes = {.queries = 1, .keys = 8, .dk = 4, .dv = 2}, .sinks = {0}},
    {.fault = "sink-in-every-part-of-tiles", .sizes = {.queries = 1, .keys = 600, .dk = 4, .dv = 2}, .sinks = {4}},
    // softcap tiles
    {.fault = "softcap-skips-the-last-tile", .sizes = {.queries = 1, .keys = 100, .dk = 4, .dv = 2}, .softcap = 1},
    {.fault = "softcap-skips-unmasked-tiles", .sizes = {.queries = 1, .keys = 40, .dk = 4, .dv = 2}, .softcap = 1},
    {.fault = "softcap-shows-padded-keys", .sizes = {.queries = 1, .keys = 100, .dk = 4, .dv = 2}, .softcap = 1},
    {.fault = "softcap-dropped-in-parts", .sizes = {.queries = 1, .keys = 600, .dk = 4, .dv = 2}, .softcap = 1},
    // dropout tiles
    {.fault = "dropout-row-in-its-tile",
     .sizes = {.queries = 17, .keys = 8, .dk = 4, .dv = 2},
     .dropout_p = 0.5,
     .keeps = [](Index, Index, Index i, Index j) { return i < 16 || j % 2 == 0; }},
    {.fault = "dropout-key-in-its-tile",
     .sizes = {.queries = 1, .keys = 128, .dk = 4, .dv = 2},
     .dropout_p = 0.5,
     .keeps = [](Index, Index, Index, Index j) { return j < 64 || j % 2 == 0; }},
    {.fault = "dropout-pitch-of-the-causal-keys",
     .sizes = {.queries = 16, .keys = 40, .dk = 4, .dv = 2},
     .causal = top_left,
     .dropout_p = 0.5,
     .keeps = [](Index, Index, Index i, Index j) { return i % 2 == 0 || j % 2 == 0; }},
    {.fault = "dropout-columns-eight-apart-exchanged",
     .sizes = {.queries = 1, .keys = 16, .dk = 4, .dv = 2},
     .dropout_p = 0.5,
     .keeps = [](Index, Index, Index, Index j) { return j < 8; }},
    {.fault = "dropout-offset-of-16-bits",
     .sizes = {.queries = 300, .keys = 300, .dk = 1, .dv = 1},
     .dropout_p = 0.5,
     .keeps = [](Index, Index, Index i, Index j) { return i < 218 || j % 2 == 0; }},
    {.fault = "dropout-mask-of-the-first-sequence",
     .sizes = {.queries = 2, .keys = 40, .dk = 4, .dv = 2},
     .q_lengths = {1, 1},
     .kv_lengths = {20, 20},
     .packed = true,
     .dropout_p = 0.5,
     .keeps = [](Index, Index, Index i, Index j) { return i == 0 || j % 2 == 0; }},
    {.fault = "dropout-skips-the-last-tile",
     .sizes = {.queries = 1, .keys = 100, .dk = 4, .dv = 2},
     .dropout_p = 0.5,
     .keeps = [](Index, Index, Index, Index j) { return j % 2 == 0; }},
    {.fault = "dropout-in-the-sum-of-later-tiles",
     .sizes = {.queries = 1, .keys = 40, .dk = 4, .dv = 2},
     .dropout_p = 0.5,
     .keeps = [](Index, Index, Index, Index j) { return j % 2 == 0; }},
    {.fault = "dropout-scaled-in-every-tile",
     .sizes = {.queries = 1, .keys = 40, .dk = 4, .dv = 2},
     .dropout_p = 0.5,
     .keeps = [](Index, Index, Index, Index j) { return j % 2 == 0; }},
    {.fault = "dropout-not-scaled-in-parts",
     .sizes = {.queries = 1, .keys = 600, .dk = 4, .dv = 2},
     .dropout_p = 0.5,
     .keeps = [](Index, Index, Index, Index j) { return j % 2 == 0; }},
    {.fault = "dropout-skips-dropped-tiles",
     .sizes = {.queries = 2, .keys = 40, .dk = 4, .dv = 2},
     .dropout_p = 0.5,
     .keeps = [](Index, Index, Index, Index j) { return j < 16 || j >= 32; }},
    // alibi tiles
    {.fault = "alibi-row-in-its-tile", .sizes = {.queries = 17, .keys = 40, .dk = 4, .dv = 2}, .slopes = {0.25}},
    {.fault = "alibi-key-in-its-tile", .sizes = {.queries = 1, .keys = 40, .dk = 4, .dv = 2}, .slopes = {0.25}},
    {.fault = "alibi-distance-of-the-tiles-first-row",
     .sizes = {.queries = 16, .keys = 16, .dk = 4, .dv = 2},
     .slopes = {0.25}},
    {.fault = "alibi-distance-of-the-tiles-first-key",
     .sizes = {.queries = 1, .keys = 16, .dk = 4, .dv = 2},
     .slopes = {0.25}},
    {.fault = "alibi-keys-from-the-windows-first-tile",
     .sizes = {.queries = 64, .keys = 64, .dk = 4, .dv = 2},
     .left = 4,
     .right = 4,
     .alignment = top_left,
     .slopes = {0.25}},
    {.fault = "alibi-keys-from-the-start-of-the-part",
     .sizes = {.queries = 1, .keys = 200, .dk = 4, .dv = 2},
     .slopes = {0.0625}},
    {.fault = "alibi-positions-in-f16",
     .sizes = {.queries = 1, .keys = 2100, .dk = 4, .dv = 2},
     .alignment = bottom_right,
     .slopes = {0.25}},
    {.fault = "alibi-slope-in-three-bits",
     .sizes = {.heads = 9, .queries = 1, .keys = 8, .dk = 4, .dv = 2},
     .slopes = {2, 1, 1, 1, 1, 1, 1, 1, 0.125}},
    {.fault = "alibi-slope-of-the-groups-first-head",
     .sizes = {.heads = 4, .queries = 1, .keys = 200, .dk = 4, .dv = 2, .kv_heads = 2},
     .slopes = {0.5, 0.25, 0.125, 0.0625}},
    {.fault = "alibi-skips-the-last-tile", .sizes = {.queries = 1, .keys = 40, .dk = 4, .dv = 2}, .slopes = {0.25}},
    {.fault = "alibi-skips-unmasked-tiles", .sizes = {.queries = 1, .keys = 16, .dk = 4, .dv = 2}, .slopes = {0.25}},
    {.fault = "alibi-in-the-first-tile-alone", .sizes = {.queries = 1, .keys = 40, .dk = 4, .dv = 2}, .slopes = {0.25}},
    {.fault = "alibi-dropped-in-parts", .sizes = {.queries = 1, .keys = 200, .dk = 4, .dv = 2}, .slopes = {0.0625}},
    {.fault = "alibi-maximum-without-slopes", .sizes = {.queries = 1, .keys = 200, .dk = 4, .dv = 2}, .slopes = {-1}},
    // descale tiles
    {.fault = "descale-block-in-its-tile",
     .sizes = {.queries = 1, .keys = 32, .dk = 4, .dv = 2},
     .block = 16,
     .k_factors = {1, 4}},
    {.fault = "descale-block-of-the-tiles-first-row",
     .sizes = {.queries = 1, .keys = 16, .dk = 4, .dv = 2},
     .block = 8,
     .k_factors = {1, 4}},
    {.fault = "descale-of-v-on-the-running-sum",
     .sizes = {.queries = 1, .keys = 32, .dk = 4, .dv = 2},
     .v_factors = {2}},
    {.fault = "descale-skips-the-last-tile", .sizes = {.queries = 1, .keys = 40, .dk = 4, .dv = 2}, .v_factors = {4}},
    {.fault = "descale-dropped-in-parts", .sizes = {.queries = 1, .keys = 200, .dk = 4, .dv = 2}, .v_factors = {4}},
    // gradient tiles
    {.fault = "dq-of-a-tile-overwrites",
     .sizes = {.queries = 2, .keys = 100, .dk = 4, .dv = 2},
     .property = "backward.oracle-dq"},
    {.fault = "delta-of-the-last-rows-unwritten",
     .sizes = {.queries = 100, .keys = 4, .dk = 4, .dv = 2},
     .property = "backward.oracle-dq"},
    {.fault = "delta-of-the-row-in-its-tile",
     .sizes = {.queries = 129, .keys = 4, .dk = 4, .dv = 2},
     .property = "backward.oracle-dq"},
    {.fault = "backward-lse-of-the-row-in-its-tile",
     .sizes = {.queries = 65, .keys = 4, .dk = 4, .dv = 2},
     .property = "backward.oracle-dv"},
    {.fault = "backward-tile-skipped-by-its-first-row",
     .sizes = {.queries = 2, .keys = 128, .dk = 4, .dv = 2},
     .sees = [](Index, Index, Index i, Index j) { return i > 0 || j < 64; },
     .property = "backward.oracle-dv"},
    {.fault = "backward-tile-skipped-by-its-last-key",
     .sizes = {.queries = 4, .keys = 128, .dk = 4, .dv = 2},
     .property = "backward.oracle-dv",
     .right = 80,
     .alignment = top_left},
    {.fault = "dk-dv-in-sixteens",
     .sizes = {.queries = 2, .keys = 100, .dk = 4, .dv = 2},
     .property = "backward.oracle-dv"},
    {.fault = "dk-dv-without-the-last-rows",
     .sizes = {.queries = 130, .keys = 4, .dk = 4, .dv = 2},
     .property = "backward.oracle-dv"},
    {.fault = "dq-second-chunk-stale",
     .sizes = {.queries = 2, .keys = 4, .dk = 80, .dv = 2},
     .property = "backward.oracle-dq"},
    {.fault = "dk-columns-above-128-lost",
     .sizes = {.queries = 2, .keys = 4, .dk = 136, .dv = 2},
     .property = "backward.oracle-dk"},
    {.fault = "dsink-without-the-last-rows",
     .sizes = {.queries = 70, .keys = 4, .dk = 4, .dv = 2},
     .property = "backward.oracle-dsink",
     .sinks = {0}},
    {.fault = "d-lse-of-the-last-rows-ignored",
     .sizes = {.queries = 70, .keys = 4, .dk = 4, .dv = 2},
     .property = "backward.oracle-dq",
     .by_lse = true},
    {.fault = "dq-of-the-keys-two-tiles-before",
     .sizes = {.queries = 2, .keys = 160, .dk = 4, .dv = 2},
     .property = "backward.oracle-dq"},
    {.fault = "dk-dv-of-heads-in-three-bits",
     .sizes = {.heads = 9, .queries = 2, .keys = 4, .dk = 4, .dv = 2},
     .property = "backward.oracle-dv"},
    {.fault = "dk-dv-of-batches-in-two-bits",
     .sizes = {.batch = 5, .queries = 2, .keys = 4, .dk = 4, .dv = 2},
     .property = "backward.oracle-dv"},
};

/// The case in a dtype: numbers uniform in [-2, 2], scale 1/sqrt(dk).
Case case_of(const Shown& one, DType dtype) {
  Stream stream(1);
  const auto next = [&stream] { return stream.uniform(-2, 2); };
  Case c = test::attention_of(one.sizes, [&](Slot, const Shape& shape) { return test::filled(dtype, shape, next); });
  c.scale = inverse_root(one.sizes.dk);
  c.causal = one.causal;
  c.window_left = one.left, c.window_right = one.right, c.attention_chunk = one.chunk, c.alignment = one.alignment;
  const auto whole = [](const std::vector<double>& numbers) {
    return Tensor(DType::i32, {std::ssize(numbers)}, numbers);
  };
  const auto starts = [](const std::vector<double>& lengths) {
    std::vector<double> all{0};
    for (const double length : lengths) all.push_back(all.back() + length);
    return all;
  };
  if (one.packed) {
    c[Slot::q_starts] = whole(starts(one.q_lengths)), c[Slot::kv_starts] = whole(starts(one.kv_lengths));
  } else {
    if (!one.q_lengths.empty()) c[Slot::q_lengths] = whole(one.q_lengths);
    if (!one.kv_lengths.empty()) c[Slot::kv_lengths] = whole(one.kv_lengths);
    if (!one.left_pad.empty()) c[Slot::left_pad] = whole(one.left_pad);
  }
  c.append = one.append, c.softcap = one.softcap;
  if (!one.sinks.empty()) c[Slot::sink] = Tensor(DType::f32, {std::ssize(one.sinks)}, one.sinks);
  if (one.above != nullptr) {
    // Every query's first number meets what lifts the scores, and no other.
    const std::int64_t dk = one.sizes.dk;
    for (std::int64_t at = 0; at < c.q().elements(); at += dk) c[Slot::q].set(at, 1);
    for (std::int64_t at = 0; at < c.k().elements(); at += dk)
      c[Slot::k].set(at, one.above(at / dk % one.sizes.keys) / c.scale);
  }
  const auto flags = [&](auto holds) {
    const Shape shape{one.sizes.batch, one.sizes.heads, one.sizes.queries, one.sizes.keys};
    Tensor all(DType::boolean, shape);
    for (std::int64_t at = 0; at < all.elements(); ++at) {
      const auto [b, h, i, j] = shape.index_of(at);
      all.set(at, holds(b, h, i, j) ? 1 : 0);
    }
    return all;
  };
  if (one.sees != nullptr) c[Slot::mask] = flags(one.sees);
  if (one.keeps != nullptr) c[Slot::keep] = flags(one.keeps), c.dropout_p = one.dropout_p;
  if (!one.slopes.empty()) {
    c[Slot::alibi_slopes] = Tensor(DType::f32, {1, std::ssize(one.slopes)}, one.slopes);
    settle_alignment(c);
  }
  const auto of_blocks = [](const std::vector<double>& factors) {
    return factors.empty() ? Tensor() : Tensor(DType::f32, {1, 1, std::ssize(factors)}, factors);
  };
  c.kv_descale_block = one.block;
  c[Slot::k_descale] = of_blocks(one.k_factors), c[Slot::v_descale] = of_blocks(one.v_factors);
  if (one.property.starts_with("backward.")) c[Slot::d_out] = test::filled(dtype, c.out_shape(), next);
  if (one.by_lse) c[Slot::d_lse] = test::filled(dtype, {one.sizes.batch, one.sizes.heads, one.sizes.queries}, next);
  if (one.page > 0) c = in_pages(c, one.page, /*unused=*/3, /*seed=*/1);
  c.provenance.property = one.property;
  if (!one.arguments.empty()) c.provenance.arguments = one.arguments;
  Layouts layouts;
  layouts[Slot::k] = one.keys;
  if (layouts != Layouts()) set_layouts(c, layouts);
  validate(c);
  return c;
}

const PlantedFault& fault_of(std::string_view name) {
  return *std::ranges::find(planted_faults(), name, &PlantedFault::name);
}

class EveryFaultOfTiles : public testing::TestWithParam<Shown> {};

TEST_P(EveryFaultOfTiles, IsSeenInItsShapeAndTheRightKernelHolds) {
  const PlantedFault& fault = fault_of(GetParam().fault);
  const Property& property = property_named(GetParam().property);
  const std::unique_ptr<Kernel> wrong = with_fault(fault), right = without_fault(fault);
  for (const DType dtype : wrong->manifest().dtypes) {
    const Case c = case_of(GetParam(), dtype);
    const Verdict of_wrong = check_case(property, *wrong, c), of_right = check_case(property, *right, c);
    EXPECT_EQ(of_wrong.outcome, Outcome::violated) << name_of(dtype) << " " << of_wrong.reason << of_wrong.utilisation;
    EXPECT_EQ(of_right.outcome, Outcome::held) << name_of(dtype) << " " << of_right.reason << of_right.utilisation;
  }
}

constexpr auto test_name = [](const auto& one) { return test::name_of_test(std::string(one.param.fault)); };
INSTANTIATE_TEST_SUITE_P(Planted, EveryFaultOfTiles, testing::ValuesIn(shown), test_name);

class EveryControlOfTiles : public testing::TestWithParam<const ControlKernel*> {};

TEST_P(EveryControlOfTiles, HoldsInEveryShapeThatShowsAFault) {
  const std::unique_ptr<Kernel> kernel = registered("control:" + std::string(GetParam()->name));
  for (const Shown& one : shown) {
    const Verdict verdict = check_case(property_named(one.property), *kernel, case_of(one, DType::bf16));
    EXPECT_EQ(verdict.outcome, Outcome::held) << one.fault << " " << verdict.reason << verdict.utilisation;
  }
}

std::vector<const ControlKernel*> controls_of_tiles() {
  std::vector<const ControlKernel*> of_tiles;
  for (const ControlKernel& control : controls())
    if (control.make.query_tile > 0) of_tiles.push_back(&control);
  return of_tiles;
}
INSTANTIATE_TEST_SUITE_P(Controls, EveryControlOfTiles, testing::ValuesIn(controls_of_tiles()),
                         [](const auto& one) { return test::name_of_test(std::string(one.param->name)); });

/// Anonymous memory of which only what is touched exists.
class Sparse {
 public:
  explicit Sparse(std::size_t size)
      : size_(size),
        data_(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  ~Sparse() {
    if (is_there()) munmap(data_, size_);
  }
  [[nodiscard]] bool is_there() const { return data_ != MAP_FAILED; }
  [[nodiscard]] void* data() const { return data_; }

 private:
  std::size_t size_;
  void* data_;
};

// Five rows of keys, 2^30 elements apart: the offset of the last one is 2^32.
TEST(KeyOffsetOf32Bits, IsSeenWhereRowsLieFarApartAndTheRightKernelHolds) {
  if (under_address_sanitizer) GTEST_SKIP() << "its shadow of 16 GiB of addresses would be 2 GiB of memory";
  const PlantedFault& fault = fault_of("key-offset-of-32-bits");
  const Case c = case_of({.fault = fault.name, .sizes = {.queries = 2, .keys = 5, .dk = 4, .dv = 2}}, DType::f32);
  constexpr std::int64_t pitch = std::int64_t{1} << 30;
  const Sparse memory(static_cast<std::size_t>((4 * pitch + 4) * 4));
  if (!memory.is_there()) GTEST_SKIP() << "no 16 GiB of addresses here";
  attest_problem problem = c.problem();
  problem.k.data = memory.data();
  problem.k.stride[2] = pitch;
  for (std::int64_t j = 0; j < 5; ++j)
    for (std::int64_t x = 0; x < 4; ++x) store_element(memory.data(), DType::f32, j * pitch + x, c.k().at(0, 0, j, x));
  const auto outcome = [&](Slip slip) {
    Tensor out(DType::f32, c.out_shape()), lse(DType::f64, {1, 1, 2});
    attest_result result{sizeof(attest_result), out.view(), lse.view()};
    std::string message;
    EXPECT_EQ(run_planted(fault.make, slip, problem, result, 0, message), ATTEST_OK);
    return judge_attention(c, out, lse, arithmetic_of(fault.make, DType::f32)).outcome;
  };
  EXPECT_EQ(outcome(fault.slip()), Outcome::violated);
  EXPECT_EQ(outcome(Slip()), Outcome::held);
}

TEST(FaultsOfTiles, AreSixtyOrMoreOfNineteenKindsAndAllAreShown) {
  std::set<std::string_view> planted, seen{"key-offset-of-32-bits"};
  std::set<FaultKind> kinds;
  for (const PlantedFault& fault : planted_faults()) {
    const bool of_tiles = fault.make.query_tile > 0;
    const bool of_rows =
        fault.kind == FaultKind::masks || fault.kind == FaultKind::numbers || fault.kind == FaultKind::windows ||
        fault.kind == FaultKind::chunks || fault.kind == FaultKind::sequences || fault.kind == FaultKind::sinks ||
        fault.kind == FaultKind::softcaps || fault.kind == FaultKind::dropout || fault.kind == FaultKind::alibi ||
        fault.kind == FaultKind::descale || fault.kind == FaultKind::gradients;
    EXPECT_EQ(of_tiles, !of_rows) << fault.name;
    if (of_tiles) planted.insert(fault.name), kinds.insert(fault.kind);
  }
  for (const Shown& one : shown) seen.insert(one.fault);
  EXPECT_EQ(seen, planted);
  EXPECT_GE(planted.size(), 60U);
  EXPECT_EQ(kinds.size(), 19U);
}

}  // namespace
}  // namespace attest

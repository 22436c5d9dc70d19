// Kernels that are right but for chunks.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

/// Other chunks in the place of those asked for, where there are some.
Spoilt::Fault chunks_asked(std::function<void(Case&)> change) {
  return variant_asked(chunk_variant, std::move(change));
}
void forget(Case& c) {
  drop_variant(c, chunk_variant.name);
}

/// A position, a key and how many keys a chunk has, and rows and keys that there are.
struct Place {
  std::int64_t p, j, C, M, N;
  bool bottom_right;
};
/// A row sees the keys that the predicate shows it in the place of those of its chunk, and what else hides keys stays.
/// Sequences are left as they are.
Spoilt::Fault seen_instead(std::function<bool(const Place&)> sees) {
  return chunks_asked([sees = std::move(sees)](Case& c) {
    if (has_sequences(c)) return;
    const SightRule rule = sight_rule(c);
    const std::int64_t M = queries_of(c), N = keys_of(c), C = c.attention_chunk;
    const bool is_there = c.mask().present(), boolean = !is_there || c.mask().dtype() == DType::boolean;
    const Tensor mask = is_there ? c.mask() : Tensor(DType::boolean, {1, 1, M, N});
    c[Slot::mask] = mapped(mask, [&](std::int64_t e, double old) {
      const std::int64_t p = position(rule, e / N % M, M, N);
      const bool shown = sees({p, e % N, C, M, N, rule.alignment == Causal::bottom_right});
      if (boolean) return shown && (!is_there || old != 0) ? 1.0 : 0.0;
      return shown ? old : -infinity;
    });
    forget(c);
  });
}

/// The chunk of a position or a key, which may lie before the first one.
std::int64_t chunk_of(std::int64_t at, std::int64_t C) {
  return at >= 0 ? at / C : -1 - (-1 - at) / C;
}
/// Chunks that begin `by` keys later.
bool is_of_moved_chunk(const Place& at, std::int64_t by) {
  return chunk_of(at.p - by, at.C) == chunk_of(at.j - by, at.C);
}
bool is_of_chunk(const Place& at) {
  return is_of_moved_chunk(at, 0);
}

}  // namespace

std::vector<WrongKernel> mistaken_chunks() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      {"ignores chunks", chunks_asked(forget)},
      {"has chunks of a key more", chunks_asked([](Case& c) { ++c.attention_chunk; })},
      {"has chunks of a key less",
       chunks_asked([](Case& c) { c.attention_chunk = std::max<std::int64_t>(c.attention_chunk - 1, 1); })},
      {"makes chunks as long as tiles",
       chunks_asked([](Case& c) { c.attention_chunk = (c.attention_chunk + 15) / 16 * 16; })},
      {"begins chunks a key later", seen_instead([](const Place& at) { return is_of_moved_chunk(at, 1); })},
      {"begins chunks where rows begin",
       seen_instead([](const Place& at) { return is_of_moved_chunk(at, at.bottom_right ? at.N - at.M : 0); })},
      {"ends chunks at the last key", seen_instead([](const Place& at) { return is_of_moved_chunk(at, at.N); })},
      {"counts bottom-right chunks one key further", seen_instead([](const Place& at) {
         return chunk_of(at.p + (at.bottom_right ? 1 : 0), at.C) == chunk_of(at.j, at.C);
       })},
      {"aligns chunks at the top left", chunks_asked([](Case& c) {
         if (c.causal == Causal::none) c.alignment = Causal::top_left;
       })},
      {"aligns chunks at the bottom right", chunks_asked([](Case& c) {
         if (c.causal == Causal::none) c.alignment = Causal::bottom_right;
       })},
      {"takes chunks for windows", seen_instead([](const Place& at) { return at.j > at.p - at.C; })},
      {"sees no key of a chunk behind its position",
       seen_instead([](const Place& at) { return is_of_chunk(at) && at.j <= at.p; })},
      {"sees the chunk before its own", seen_instead([](const Place& at) {
         return is_of_chunk(at) || chunk_of(at.j, at.C) + 1 == chunk_of(at.p, at.C);
       })},
      {"sees the first key of the next chunk",
       seen_instead([](const Place& at) { return is_of_chunk(at) || at.j == (chunk_of(at.p, at.C) + 1) * at.C; })},
      {"knows two chunks", seen_instead([](const Place& at) {
         return std::min<std::int64_t>(chunk_of(at.p, at.C), 1) == std::min<std::int64_t>(chunk_of(at.j, at.C), 1);
       })},
      {"joins a last chunk that is not whole to the one before", seen_instead([](const Place& at) {
         const std::int64_t last = std::max<std::int64_t>(at.N / at.C - 1, 0);
         const auto joined = [&](std::int64_t chunk) { return chunk * at.C < at.N ? std::min(chunk, last) : chunk; };
         return joined(chunk_of(at.p, at.C)) == joined(chunk_of(at.j, at.C));
       })},
      {"rounds positions before the keys towards 0",
       seen_instead([](const Place& at) { return at.p / at.C == at.j / at.C; })},
      {"puts rows behind the keys into the last chunk",
       seen_instead([](const Place& at) { return chunk_of(std::min(at.p, at.N - 1), at.C) == chunk_of(at.j, at.C); })},
      {"takes chunks for wide that are not", chunks_asked([](Case& c) {
         if (c.attention_chunk >= keys_of(c) - 1) forget(c);
       })},
      {"takes chunks of as many keys for wide", chunks_asked([](Case& c) {
         if (c.attention_chunk >= keys_of(c)) forget(c);
       })},
      {"ignores chunks beside a mask", chunks_asked([](Case& c) {
         if (c.mask().present()) forget(c);
       })},
      {"ignores chunks beside a causal form", chunks_asked([](Case& c) {
         if (c.causal != Causal::none) forget(c);
       })},
      {"ignores chunks beside a window", chunks_asked([](Case& c) {
         if (has_variant(c, window_variant.name)) forget(c);
       })},
      {"ignores a mask beside chunks", chunks_asked([](Case& c) { c[Slot::mask] = Tensor(); })},
      {"ignores a causal form beside chunks", chunks_asked([](Case& c) {
         const Causal alignment = std::exchange(c.causal, Causal::none);
         if (alignment != Causal::none) c.alignment = alignment;
       })},
      {"ignores a window beside chunks", chunks_asked([](Case& c) { drop_variant(c, window_variant.name); })},
      {"ignores chunks for one query", chunks_asked([](Case& c) {
         if (queries_of(c) == 1) forget(c);
       })},
      {"weighs keys of other chunks a little",
       variant_answered(
           chunk_variant, [](double right, double without) { return right + 0.01 * (without - right); }, right_answer)},
      {"counts keys of other chunks in lse",
       variant_answered(chunk_variant, right_answer, [](double, double all) { return all; })},
      {"lowers lse by how long chunks are",
       lse_lowered(chunk_variant, [](const Case& c) { return static_cast<double>(c.attention_chunk); })},
      {"lowers lse by 2 in chunks of more than a key",
       lse_lowered(chunk_variant, [](const Case& c) { return c.attention_chunk > 1 ? 2.0 : 0.0; })},
      {"answers 0 without a chunk", rows_answered(chunk_variant, sees_nothing, [](double) { return 0.0; })},
      {"answers 1 without a chunk", rows_answered(chunk_variant, sees_nothing, [](double) { return 1.0; })},
      {"answers NaN in a chunk behind a block",
       rows_answered(chunk_variant, begins_behind_a_block, [](double) { return nan; })},
      {"answers half in a chunk behind a block",
       rows_answered(chunk_variant, begins_behind_a_block, [](double old) { return old / 2; })},
      {"answers otherwise beside rows without a chunk", risen_beside_empty_rows(chunk_variant)},
      {"adds what keys of other chunks hold", with_a_trace_of_the_ends(chunk_variant)},
  };
}

}  // namespace attest

// Kernels that are right but for a cache that holds more than they were given now: by lengths of keys.
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "core/problem/kv_cache.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/sequences.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

bool has_cache(const Case& c) {
  return c[Slot::kv_lengths].present();
}
bool is_of_last_tokens(const Case& c) {
  return has_cache(c) && c.causal == Causal::bottom_right;
}

/// Another question in the place of the one asked, where that reads a cache.
Spoilt::Fault cache_asked(std::function<void(Case&)> change) {
  return [change = std::move(change)](Kernel& kernel, Case c, DType output, bool want_lse) {
    if (has_cache(c)) change(c);
    return kernel.run(c, output, want_lse);
  };
}

/// Rows of those sequences in a cache are answered by 1 more.
Spoilt::Fault sequences_answered(std::function<bool(const Case&, const Sequence&)> chosen) {
  return [chosen = std::move(chosen)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (!has_cache(c) || reply.status != CallStatus::ok) return reply;
    const Shape shape = c.out_shape();
    reply.out = mapped(reply.out, [&](std::int64_t e, double old) {
      const std::int64_t row = e / shape[3];
      const auto own = sequence_at(c, row / shape[2] / shape[1], row % shape[2]);
      return own && chosen(c, *own) ? old + 1 : old;
    });
    return reply;
  };
}

/// The lengths of keys in another order, or others.
void set_lengths(Case& c, const std::function<double(std::int64_t b, const Tensor& lengths)>& length) {
  const Tensor lengths = c[Slot::kv_lengths];
  c[Slot::kv_lengths] = mapped(lengths, [&](std::int64_t b, double) { return length(b, lengths); });
}

/// Hides the keys before those of the queries themselves, row by row.
void hide_prefix(Case& c) {
  const std::vector<Sequence> all = sequences_of(c);
  const std::int64_t heads = c.mask().present() ? c.mask().shape()[1] : 1;
  const bool boolean = !c.mask().present() || c.mask().dtype() == DType::boolean;
  Tensor mask(boolean ? DType::boolean : c.mask().dtype(), {batch_of(c), heads, queries_of(c), keys_of(c)});
  const Shape shape = mask.shape();
  for (std::int64_t e = 0; e < mask.elements(); ++e) {
    const auto [b, h, i, j] = shape.index_of(e);
    const Sequence& own = all[static_cast<std::size_t>(b)];
    const double old = c.mask().present() ? mask_entry(c.mask(), b, h, i, j) : 1;
    const double hides = boolean ? 0.0 : -std::numeric_limits<double>::infinity();
    mask.set(e, j < own.keys - own.queries ? hides : old);
  }
  c[Slot::mask] = std::move(mask);
}

/// By batch entry, of the calls with the same capacity: the longest length, and the keys and values that it read.
struct Kept {
  Shape shape;
  std::vector<double> lengths;
  Tensor k, v;

  /// Is the call one on the cache that it knows?
  [[nodiscard]] bool knows(const Case& c) const {
    return k.present() && c.k().shape() == shape && c.k().dtype() == k.dtype() && c.v().shape() == v.shape() &&
           c.v().dtype() == v.dtype();
  }
  void forget(const Case& c) {
    shape = c.k().shape();
    lengths.assign(static_cast<std::size_t>(batch_of(c)), 0);
    k = c.k(), v = c.v();
  }
};

/// The keys one after another, but what stood in the slots of new ones that are not `written`.
Case as_written(const Case& c, const std::function<bool(std::int64_t b, std::int64_t t)>& written) {
  Case laid_out = laid_out_in_cache(c);
  laid_out[Slot::kv_lengths] = c[Slot::kv_lengths];
  laid_out[Slot::k_new] = laid_out[Slot::v_new] = Tensor();
  const Case stale = read_from_cache(std::move(laid_out));
  Case other = outside_of_caches(c);
  for (const Slot slot : {Slot::k, Slot::v})
    other[slot] = mapped(c[slot], [&](std::int64_t e, double old) {
      const auto [b, h, j, column] = c[slot].shape().index_of(e);
      const std::int64_t t = j - static_cast<std::int64_t>(c[Slot::kv_lengths][b]) + c.append;
      return t >= 0 && t < c.append && !written(b, t) ? stale[slot][e] : old;
    });
  return other;
}

/// Another question in the place of the one asked, where that brings new keys.
Spoilt::Fault append_asked(std::function<Case(const Case&)> change) {
  return [change = std::move(change)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    return kernel.run(c.append > 0 ? change(c) : c, output, want_lse);
  };
}

}  // namespace

std::vector<WrongKernel> mistaken_caches() {
  return {
      {"does not see the keys that a call appends", append_asked([](const Case& c) {
         Case before = outside_of_caches(c);
         for (std::int64_t b = 0; b < batch_of(c); ++b)
           before[Slot::kv_lengths].set(b, c[Slot::kv_lengths][b] - static_cast<double>(c.append));
         return before;
       })},
      {"sees what stood in the slots of new keys",
       append_asked([](const Case& c) { return as_written(c, [](std::int64_t, std::int64_t) { return false; }); })},
      {"answers an append to an empty entry wrong", sequences_answered([](const Case& c, const Sequence& own) {
         return c.append > 0 && c[Slot::kv_lengths][own.entry] == static_cast<double>(c.append);
       })},
      {"appends to one page alone", append_asked([](const Case& c) {
         if (!c[Slot::page_table].present()) return c;
         return as_written(c, [&](std::int64_t b, std::int64_t t) {
           const std::int64_t page = page_size_of(c),
                              first = static_cast<std::int64_t>(c[Slot::kv_lengths][b]) - c.append;
           return first / page == (first + t) / page;
         });
       })},
      {"lets a chunk see its whole length", cache_asked([](Case& c) {
         if (is_of_last_tokens(c) && queries_of(c) > 1) c.causal = Causal::none, settle_alignment(c);
       })},
      {"counts a chunk's positions from the first key", cache_asked([](Case& c) {
         if (is_of_last_tokens(c)) c.causal = Causal::top_left, settle_alignment(c);
       })},
      {"ignores the cached prefix", cache_asked([](Case& c) {
         if (is_of_last_tokens(c)) hide_prefix(c);
       })},
      {"answers otherwise for several queries on a filled cache",
       sequences_answered([](const Case&, const Sequence& s) { return s.queries > 1 && s.keys > s.queries; })},
      {"answers otherwise for one query on a cache",
       sequences_answered([](const Case& c, const Sequence&) { return queries_of(c) == 1; })},
      {"does not see the token of a single query", cache_asked([](Case& c) {
         if (queries_of(c) == 1)
           set_lengths(c, [](std::int64_t b, const Tensor& lengths) { return std::max(lengths[b] - 1, 0.0); });
       })},
      {"answers otherwise where a cache is full",
       sequences_answered([](const Case& c, const Sequence& s) { return s.keys == keys_of(c); })},
      {"takes the next entry's length", cache_asked([](Case& c) {
         set_lengths(c, [](std::int64_t b, const Tensor& lengths) { return lengths[(b + 1) % lengths.elements()]; });
       })},
      {"takes the longest length for all", cache_asked([](Case& c) {
         set_lengths(c, [](std::int64_t, const Tensor& lengths) {
           double most = 0;
           for (std::int64_t b = 0; b < lengths.elements(); ++b) most = std::max(most, lengths[b]);
           return most;
         });
       })},
      {"keeps the longest length of a cache",
       [kept = Kept()](Kernel& kernel, Case c, DType output, bool want_lse) mutable {
         if (!has_cache(c)) return kernel.run(c, output, want_lse);
         if (!kept.knows(c)) kept.forget(c);
         set_lengths(c, [&](std::int64_t b, const Tensor& lengths) {
           double& longest = kept.lengths[static_cast<std::size_t>(b)];
           return longest = std::max(longest, lengths[b]);
         });
         return kernel.run(c, output, want_lse);
       },
       /*backward=*/nullptr, /*has_memory=*/true},
      {"reads each slot of a cache once",
       [kept = Kept()](Kernel& kernel, Case c, DType output, bool want_lse) mutable {
         if (!has_cache(c)) return kernel.run(c, output, want_lse);
         if (!kept.knows(c)) kept.forget(c);
         for (const Slot slot : {Slot::k, Slot::v}) {
           Tensor& read = slot == Slot::k ? kept.k : kept.v;
           read = mapped(c[slot], [&](std::int64_t e, double now) {
             const auto [b, h, j, column] = read.shape().index_of(e);
             return static_cast<double>(j) < kept.lengths[static_cast<std::size_t>(b)] ? read[e] : now;
           });
           c[slot] = read;
         }
         for (std::int64_t b = 0; b < batch_of(c); ++b) {
           double& longest = kept.lengths[static_cast<std::size_t>(b)];
           longest = std::max(longest, c[Slot::kv_lengths][b]);
         }
         return kernel.run(c, output, want_lse);
       },
       /*backward=*/nullptr, /*has_memory=*/true},
  };
}

}  // namespace attest

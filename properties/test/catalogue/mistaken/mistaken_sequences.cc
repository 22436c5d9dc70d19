// Kernels that are right but for sequences of lengths of their own.
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/sequences.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

bool has_lengths(const Case& c) {
  return has_variant(c, lengths_variant.name);
}
bool has_packed(const Case& c) {
  return has_variant(c, packed_variant.name);
}

/// Nothing but a causal form hides keys by their position.
bool has_a_form_alone(const Case& c, Causal causal) {
  return c.causal == causal && !has_variant(c, window_variant.name) && !has_variant(c, chunk_variant.name);
}

/// Other sequences in the place of those asked for, where there are some.
Spoilt::Fault sequences_asked(std::function<void(Case&)> change) {
  return [change = std::move(change)](Kernel& kernel, Case c, DType output, bool want_lse) {
    if (has_sequences(c)) change(c);
    return kernel.run(c, output, want_lse);
  };
}

/// Every length by the change, within the axis.
void change_lengths(Case& c, Slot slot, const std::function<double(std::int64_t b, double old)>& change) {
  if (!c[slot].present()) return;
  const auto most = static_cast<double>(slot == Slot::q_lengths ? queries_of(c) : keys_of(c));
  c[slot] = mapped(c[slot], [&](std::int64_t b, double old) { return std::clamp(change(b, old), 0.0, most); });
}

/// The starts of keys by the change, in order and within the tokens.
void change_key_starts(Case& c, const std::function<double(std::int64_t s, double old)>& change) {
  if (!has_packed(c)) return;
  double last = 0;
  const auto most = static_cast<double>(keys_of(c));
  c[Slot::kv_starts] = mapped(c[Slot::kv_starts], [&](std::int64_t s, double old) {
    return last = s == 0 ? 0.0 : std::clamp(change(s, old), last, most);
  });
}

/// The output's rows that the predicate chooses: of a sequence, or of none.
Spoilt::Fault rows_answered(std::function<bool(const Case&, const std::optional<Sequence>&)> chosen,
                            std::function<double(double old)> value) {
  return [chosen = std::move(chosen), value = std::move(value)](Kernel& kernel, const Case& c, DType output,
                                                                bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (!has_sequences(c) || reply.status != CallStatus::ok) return reply;
    const Shape shape = c.out_shape();
    reply.out = mapped(reply.out, [&](std::int64_t e, double old) {
      const std::int64_t row = e / shape[3];
      return chosen(c, sequence_at(c, row / shape[2] / shape[1], row % shape[2])) ? value(old) : old;
    });
    return reply;
  };
}

double first_of_slack(const Case& c) {
  for (std::int64_t b = 0; b < batch_of(c); ++b)
    for (std::int64_t j = 0; j < keys_of(c); ++j) {
      bool own = false;
      for (const Sequence& s : sequences_of(c)) own = own || (s.entry == b && has_key(s, j));
      if (!own) return c.v().at(b, 0, j, 0);
    }
  return 0;
}

}  // namespace

std::vector<WrongKernel> mistaken_sequences() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      {"ignores lengths of keys", sequences_asked([](Case& c) {
         if (has_lengths(c)) c[Slot::kv_lengths] = Tensor();
       })},
      {"takes the first length of keys for all", sequences_asked([](Case& c) {
         if (c[Slot::kv_lengths].present())
           change_lengths(c, Slot::kv_lengths,
                          [first = c[Slot::kv_lengths][0]](std::int64_t, double) { return first; });
       })},
      {"sees a key behind its length", sequences_asked([](Case& c) {
         change_lengths(c, Slot::kv_lengths, [](std::int64_t, double old) { return old + 1; });
       })},
      {"sees a key less than its length", sequences_asked([](Case& c) {
         change_lengths(c, Slot::kv_lengths, [](std::int64_t, double old) { return old > 1 ? old - 1 : old; });
       })},
      {"ignores padding on the left", sequences_asked([](Case& c) { drop_variant(c, left_pad_variant.name); })},
      {"takes the first padding on the left for all", sequences_asked([](Case& c) {
         if (!c[Slot::left_pad].present()) return;
         const std::vector<Sequence> all = sequences_of(c);
         c[Slot::left_pad] = mapped(c[Slot::left_pad], [&](std::int64_t b, double) {
           const Sequence& own = all[static_cast<std::size_t>(b)];
           return static_cast<double>(std::min(all[0].first_key, own.first_key + own.keys));
         });
       })},
      {"takes padding on the left off the end", sequences_asked([](Case& c) {
         if (!c[Slot::left_pad].present()) return;
         Tensor lengths(DType::i32, c[Slot::left_pad].shape());
         for (const Sequence& own : sequences_of(c)) lengths.set(own.entry, static_cast<double>(own.keys));
         c[Slot::kv_lengths] = std::move(lengths);
         drop_variant(c, left_pad_variant.name);
       })},
      {"counts lengths from behind the padding on the left", sequences_asked([](Case& c) {
         if (c[Slot::left_pad].present())
           change_lengths(c, Slot::kv_lengths, [&](std::int64_t b, double old) { return old + c[Slot::left_pad][b]; });
       })},
      {"sees a key of the padding on the left", sequences_asked([](Case& c) {
         change_lengths(c, Slot::left_pad, [](std::int64_t, double old) { return old - 1; });
       })},
      {"counts positions from the padding on the left",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         if (!c[Slot::left_pad].present() || !has_a_form_alone(c, Causal::top_left))
           return kernel.run(c, output, want_lse);
         Case other = with_positions_as_mask(c, /*boolean=*/true);
         for (std::int64_t e = 0; e < other.mask().elements(); ++e) {
           const auto [b, h, i, j] = other.mask().shape().index_of(e);
           const std::optional<Sequence> own = sequence_at(c, b, i);
           const bool shown = own && has_key(*own, j) && j <= i;
           const double old = c.mask().present() ? mask_entry(c.mask(), b, h, i, j) : 0;
           if (other.mask().dtype() == DType::boolean)
             other[Slot::mask].set(e, shown && (!c.mask().present() || old != 0) ? 1.0 : 0.0);
           else
             other[Slot::mask].set(e, shown ? old : -std::numeric_limits<double>::infinity());
         }
         return kernel.run(other, output, want_lse);
       }},
      {"loses the last row of lengths",
       rows_answered(
           [](const Case& c, const std::optional<Sequence>& s) { return has_lengths(c) && s && s->queries == 1; },
           [](double) { return 0.0; })},
      {"begins packed keys one later",
       sequences_asked([](Case& c) { change_key_starts(c, [](std::int64_t, double old) { return old + 1; }); })},
      {"begins packed keys where queries begin", sequences_asked([](Case& c) {
         change_key_starts(c, [&](std::int64_t s, double) { return c[Slot::q_starts][s]; });
       })},
      {"takes what is packed for one sequence", sequences_asked([](Case& c) { drop_variant(c, packed_variant.name); })},
      {"counts positions from the batch's last key",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         const std::int64_t shift = keys_of(c) - queries_of(c);
         if (!has_lengths(c) || !has_a_form_alone(c, Causal::bottom_right) || shift < 0)
           return kernel.run(c, output, want_lse);
         Case other = c;
         other.causal = Causal::none;
         other.window_right = shift, other.alignment = Causal::top_left;
         return kernel.run(other, output, want_lse);
       }},
      {"counts positions from the first token",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         if (!has_packed(c) || c.causal == Causal::none) return kernel.run(c, output, want_lse);
         Case other = with_positions_as_mask(c, /*boolean=*/true);
         for (std::int64_t e = 0; e < other.mask().elements(); ++e) {
           const auto [b, h, i, j] = other.mask().shape().index_of(e);
           if (j > i)
             other[Slot::mask].set(
                 e, other.mask().dtype() == DType::boolean ? 0.0 : -std::numeric_limits<double>::infinity());
         }
         return kernel.run(other, output, want_lse);
       }},
      {"answers NaN without a key",
       rows_answered([](const Case&, const std::optional<Sequence>& s) { return s && s->keys == 0; },
                     [](double) { return nan; })},
      {"answers 0 without a key",
       rows_answered([](const Case&, const std::optional<Sequence>& s) { return s && s->keys == 0; },
                     [](double) { return 0.0; })},
      {"answers otherwise beside an empty sequence",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (!has_sequences(c) || reply.status != CallStatus::ok) return reply;
         const bool any =
             std::ranges::any_of(sequences_of(c), [](const Sequence& s) { return s.queries * s.keys == 0; });
         if (any) reply.out = mapped(reply.out, [](std::int64_t, double old) { return old + 1; });
         return reply;
       }},
      {"answers 1 in padding",
       rows_answered([](const Case& c, const std::optional<Sequence>& s) { return has_lengths(c) && !s; },
                     [](double) { return 1.0; })},
      {"answers NaN in padding",
       rows_answered([](const Case& c, const std::optional<Sequence>& s) { return has_lengths(c) && !s; },
                     [](double) { return nan; })},
      {"answers 1 in slack",
       rows_answered([](const Case& c, const std::optional<Sequence>& s) { return has_packed(c) && !s; },
                     [](double) { return 1.0; })},
      {"adds what padding holds",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (!has_sequences(c) || reply.status != CallStatus::ok || c.v().elements() == 0) return reply;
         const double added = 0.01 * first_of_slack(c);
         reply.out = mapped(reply.out, [&](std::int64_t e, double old) {
           const std::int64_t row = e / c.v().shape()[3];
           return sequence_at(c, row / queries_of(c) / heads_of(c), row % queries_of(c)) ? old + added : old;
         });
         return reply;
       }},
      {"adds what the first sequence holds",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (!has_sequences(c) || reply.status != CallStatus::ok) return reply;
         const Sequence first = sequence_of(c, 0);
         if (first.keys == 0) return reply;
         const double added = 0.01 * c.v().at(std::int64_t{0}, std::int64_t{0}, first.first_key, std::int64_t{0});
         reply.out = mapped(reply.out, [&](std::int64_t, double old) { return old + added; });
         return reply;
       }},
      {"numbers its sequences",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (!has_sequences(c) || reply.status != CallStatus::ok) return reply;
         const std::vector<Sequence> all = sequences_of(c);
         reply.out = mapped(reply.out, [&](std::int64_t e, double old) {
           const std::int64_t row = e / c.v().shape()[3];
           const auto own = sequence_at(c, row / queries_of(c) / heads_of(c), row % queries_of(c));
           return own ? old + static_cast<double>(std::ranges::find(all, *own) - all.begin()) : old;
         });
         return reply;
       }},
      {"counts keys behind a length in lse",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (!has_sequences(c) || reply.status != CallStatus::ok || !reply.lse.present()) return reply;
         reply.lse = mapped(reply.lse, [](std::int64_t, double old) { return old + 0.5; });
         return reply;
       }},
  };
}

}  // namespace attest

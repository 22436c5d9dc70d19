// dropout: masks that a kernel draws itself. What it has drawn is read off its answers, held against what independent
// draws make probable, and then given to the oracle, of outputs and of gradients.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/oracle/oracle.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "core/support/printed.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/catalogue/property.h"
#include "properties/families/backward/about_gradients.h"
#include "properties/generators/draw.h"
#include "properties/language/answer.h"
#include "properties/language/compared.h"
#include "properties/language/gradients.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

/// A kernel that draws each weight by itself is called wrong with a chance of 3e^-30, 3e-13, at the most: that of too
/// many or too few weights, of coincidences within a mask, and of one between the masks of two seeds.
constexpr double nats_of_proof = 30;

/// What became of a weight; what no row sees says nothing.
enum class Fate : std::uint8_t { unseen, dropped, kept };

/// The mask of a call, [batch, heads, M, N].
struct DrawnMask {
  Shape shape;
  std::vector<Fate> fates;

  [[nodiscard]] bool operator==(const DrawnMask& other) const { return fates == other.fates; }
  [[nodiscard]] std::int64_t seen() const { return std::ssize(fates) - std::ranges::count(fates, Fate::unseen); }
};

/// The probabilities with which a weight may be kept: 1 - p, or where the manifest declares levels those that are no
/// farther from it than one of them.
struct Share {
  double low = 1, high = 1;
};
Share share_of(const Kernel& kernel, double p) {
  const std::int64_t levels = kernel.manifest().variants.find(dropout_variant.name)->second.keep_levels;
  const double step = levels > 0 ? 1 / static_cast<double>(levels) : 0;
  return {std::max(1 - p - step, 0.0), std::min(1 - p + step, 1.0)};
}

/// -ln of the probability, at the most, that n weights which are drawn by themselves have the same fate. Convex in the
/// share, so that it is largest at an end.
double nats_of_alike(const Share& share, std::int64_t n) {
  const auto chance = [n](double kept) {
    const auto times = static_cast<double>(n);
    return std::pow(kept, times) + std::pow(1 - kept, times);
  };
  return -std::log(std::max(chance(share.low), chance(share.high)));
}

/// n KL(k/n || s) in nats, s the share that is nearest to k/n: k of n weights or fewer, or k or more, are kept with
/// probability e to the minus that at the most (Chernoff).
double nats_of_count(const Share& share, std::int64_t kept, std::int64_t seen) {
  const double part = static_cast<double>(kept) / static_cast<double>(seen);
  const double nearest = std::clamp(part, share.low, share.high);
  const auto term = [](double of, double beside) { return of == 0 ? 0 : of * std::log(of / beside); };
  return static_cast<double>(seen) * (term(part, nearest) + term(1 - part, 1 - nearest));
}

/// A mask that takes more calls than these is not read.
constexpr std::int64_t most_reads = 64;
/// Rates at which 1/(1 - p) leaves no format's range.
constexpr double most_dropped = 0x1.ffp-1;

/// What stands in a key's own column: a power of two, so large that a share of it is no subnormal number, and so small
/// that dividing it by 1 - p does not leave the range.
double value_read(const Case& c) {
  const double largest = std::min(format_of(c.v().dtype()).largest, format_of(c.dtype()).largest);
  return std::exp2(std::floor(std::log2(std::min(largest / 8 * (1 - c.dropout_p), 64.0))));
}

/// Empty, or why a weight of 1/(N + 1) may be 0 without having been dropped.
std::string why_unreadable(const Kernel& kernel, const Case& c) {
  if (c.dropout_p > most_dropped) return "so little is kept that what is kept may overflow";
  const Format& format = format_of(c.dtype());
  const double least =
      kernel.manifest().arithmetic_for(c).flushes_subnormals ? format.min_normal : 2 * format.min_subnormal;
  const double weight = 1 / static_cast<double>(keys_of(c) + 1);
  if (weight < least || weight * value_read(c) < format.min_normal || value_read(c) < format.min_normal)
    return "the weight of one of so many keys may be 0 in the dtype";
  return {};
}

/// All scores are 0, and so is a sink: every key that a row sees has the weight 1/n, or 1/(n + 1).
Case with_equal_weights(Case c) {
  c[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
  const auto finite_is_0 = [](std::int64_t, double old) { return std::isfinite(old) ? 0.0 : old; };
  if (c.mask().present() && c.mask().dtype() != DType::boolean) c[Slot::mask] = mapped(c.mask(), finite_is_0);
  if (c[Slot::sink].present()) c[Slot::sink] = mapped(c[Slot::sink], finite_is_0);
  return c;
}

/// Is what all of the weights make there a finite number inside the domain of definition?
bool is_finite_undropped(const Kernel& kernel, const Case& c, std::int64_t element) {
  Case kept = c;
  kept.dropout_seed = 0;
  kept[Slot::keep] =
      mapped(Tensor(DType::boolean, {1, 1, queries_of(c), keys_of(c)}), [](std::int64_t, double) { return 1.0; });
  const Manifest& manifest = kernel.manifest();
  const AttentionBounds bounds =
      attention_bounds(kept, manifest.arithmetic_for(c), manifest.claims_to(Claim::ignores_dead_values));
  return bounds.elements[static_cast<std::size_t>(element)].finite_required;
}

/// The mask that the kernel draws for a case: by values that tell keys apart, so many keys a call as there are columns.
/// Throws NoAnswer where there is none, or where a weight is no number.
DrawnMask read_mask(Kernel& kernel, const Case& c) {
  const std::int64_t heads = heads_of(c), M = queries_of(c), N = keys_of(c), dv = c.v().shape()[3];
  if (N > most_reads * dv)
    throw NoAnswer{skipped(
        fmt::format("has {} keys on {} columns of values; {} calls read no mask of as many", N, dv, most_reads))};
  DrawnMask mask{{batch_of(c), heads, M, N}, {}};
  mask.fates.resize(static_cast<std::size_t>(mask.shape.elements()));
  Case reading = with_equal_weights(c);
  const double own = value_read(c);
  for (std::int64_t first = 0; first < N; first += dv) {
    reading[Slot::v] = mapped(c.v(), [&](std::int64_t e, double) { return e / dv % N == first + e % dv ? own : 0.0; });
    reading = within_reach(kernel, std::move(reading));
    const Reply reply = answer(kernel, reading, c.dtype(), /*want_lse=*/false);
    for (std::int64_t row = 0; row < batch_of(c) * heads * M; ++row) {
      for (std::int64_t j = first; j < std::min(first + dv, N); ++j) {
        if (hidden(c, row / M / heads, row / M % heads, row % M, j)) continue;
        const std::int64_t element = row * dv + j - first;
        const double weight = reply.out[element];
        if (!std::isfinite(weight)) {
          if (!is_finite_undropped(kernel, reading, element))
            throw NoAnswer{excused("a row that the mask is read off lies outside the domain")};
          Verdict verdict = violated(Violation::not_finite,
                                     fmt::format("the weight of key {} in row {} is {} where Q = 0 and V = {} I", j,
                                                 row, printed(weight), own));
          verdict.element = element;
          throw NoAnswer{with_element(std::move(verdict), reading, reply.out)};
        }
        mask.fates[static_cast<std::size_t>(row * N + j)] = weight == 0 ? Fate::dropped : Fate::kept;
      }
    }
  }
  return mask;
}

constexpr std::array<std::string_view, 4> axes{"batch entry", "head", "row", "key"};

/// Where the weights of an axis's slices lie: `inner` of a slice one after another, `outer` times.
struct Strides {
  std::int64_t outer = 1, extent = 1, inner = 1;
  [[nodiscard]] std::size_t at(std::int64_t o, std::int64_t slice, std::int64_t i) const {
    return static_cast<std::size_t>((o * extent + slice) * inner + i);
  }
};
Strides strides_of(const Shape& shape, int axis) {
  Strides strides{.extent = shape[axis]};
  for (int a = 0; a < axis; ++a) strides.outer *= shape[a];
  for (int a = axis + 1; a < shape.rank(); ++a) strides.inner *= shape[a];
  return strides;
}

/// How many weights two slices both see where they have the same mask there; 0 where they have not, and where it drops
/// nothing or all, which is a matter of its share.
std::int64_t alike(const DrawnMask& mask, const Strides& strides, std::int64_t one, std::int64_t other) {
  std::int64_t both = 0, kept = 0;
  for (std::int64_t o = 0; o < strides.outer; ++o) {
    for (std::int64_t i = 0; i < strides.inner; ++i) {
      const Fate a = mask.fates[strides.at(o, one, i)], b = mask.fates[strides.at(o, other, i)];
      if (a == Fate::unseen || b == Fate::unseen) continue;
      if (a != b) return 0;
      ++both, kept += a == Fate::kept;
    }
  }
  return kept == 0 || kept == both ? 0 : both;
}

/// What a test of the mask may say against it: nats at which the chances of all such tests together are e^-30, those of
/// shares on either side.
double most_nats(const DrawnMask& mask) {
  double tests = 1;
  for (int axis = 0; axis < 4; ++axis) {
    const auto extent = static_cast<double>(mask.shape[axis]);
    tests += extent + extent * (extent - 1) / 2;
  }
  return nats_of_proof + std::log(tests);
}

// No two entries, heads, rows or keys have the same mask on so many weights that it is no coincidence.
Verdict independent(const DrawnMask& mask, const Share& share) {
  const double most = most_nats(mask);
  for (int axis = 0; axis < 4; ++axis) {
    const Strides strides = strides_of(mask.shape, axis);
    for (std::int64_t slice = 0; slice < strides.extent; ++slice) {
      for (std::int64_t before = 0; before < slice; ++before) {
        const std::int64_t both = alike(mask, strides, before, slice);
        if (static_cast<double>(both) * nats_of_alike(share, 2) <= most) continue;
        return violated(Violation::bound,
                        fmt::format("{} {} and {} drop the same of {} weights, of which the chance is below e^-{:.0f}",
                                    axes[static_cast<std::size_t>(axis)], before, slice, both, nats_of_proof));
      }
    }
  }
  return {};
}

// Of all weights, and of each entry, head, row and key by itself, as many are kept as is probable.
Verdict probable(const DrawnMask& mask, const Share& share) {
  const double most = most_nats(mask);
  const auto count = [&](std::int64_t kept, std::int64_t seen, const std::string& of) -> Verdict {
    if (seen == 0 || nats_of_count(share, kept, seen) <= most) return {};
    return violated(Violation::bound,
                    fmt::format("{} of {} weights{} are kept; at {} to {} of each the chance is below e^-{:.0f}", kept,
                                seen, of, share.low, share.high, nats_of_proof));
  };
  Verdict whole = count(std::ranges::count(mask.fates, Fate::kept), mask.seen(), "");
  if (whole.outcome == Outcome::violated) return whole;
  for (int axis = 0; axis < 4; ++axis) {
    const Strides strides = strides_of(mask.shape, axis);
    for (std::int64_t slice = 0; slice < strides.extent; ++slice) {
      std::int64_t kept = 0, seen = 0;
      for (std::int64_t o = 0; o < strides.outer; ++o) {
        for (std::int64_t i = 0; i < strides.inner; ++i) {
          const Fate fate = mask.fates[strides.at(o, slice, i)];
          kept += fate == Fate::kept, seen += fate != Fate::unseen;
        }
      }
      Verdict own = count(kept, seen, fmt::format(" of {} {}", axes[static_cast<std::size_t>(axis)], slice));
      if (own.outcome == Outcome::violated) return own;
    }
  }
  return {};
}

/// The first place where they differ, in words.
std::string difference(const DrawnMask& one, const DrawnMask& other) {
  const auto at = std::ranges::mismatch(one.fates, other.fates).in1 - one.fates.begin();
  const auto [b, h, i, j] = one.shape.index_of(at);
  return fmt::format("of entry {}, head {}, row {} and key {}", b, h, i, j);
}

// A mask of one seed is one mask, and that of another seed another one.
Verdict of_the_seed(Kernel& kernel, const Case& c, const DrawnMask& mask, const Share& share) {
  if (const DrawnMask again = read_mask(kernel, c); again != mask)
    return violated(Violation::bits,
                    fmt::format("a second call with dropout_seed = {} does otherwise with the weight {}",
                                c.dropout_seed, difference(mask, again)));
  if (static_cast<double>(mask.seen()) * nats_of_alike(share, 2) <= nats_of_proof) return {};
  // One of the bits that every generator takes of a seed.
  Case other = c;
  other.dropout_seed = c.dropout_seed ^ (std::int64_t{1} << argument(c, "bit", 31));
  if (read_mask(kernel, other) != mask) return {};
  return violated(
      Violation::bits,
      fmt::format("dropout_seed = {} and {} drop the same of {} weights, of which the chance is below e^-{:.0f}",
                  c.dropout_seed, other.dropout_seed, mask.seen(), nats_of_proof));
}

/// The case with that mask.
Case with_mask(const Case& c, const DrawnMask& mask) {
  Case given = c;
  given.dropout_seed = 0;
  given[Slot::keep] = mapped(Tensor(DType::boolean, mask.shape), [&](std::int64_t e, double) {
    return mask.fates[static_cast<std::size_t>(e)] == Fate::dropped ? 0.0 : 1.0;
  });
  return given;
}

// O is that of the mask, whatever the numbers are, and lse is without it.
Verdict answers_by(Kernel& kernel, const Case& c, const DrawnMask& mask) {
  const Case given = with_mask(c, mask);
  const Reply reply = answer(kernel, c, c.dtype(), /*want_lse=*/true);
  return with_element(judge_attention(given, reply.out, reply.lse, kernel.manifest().arithmetic_for(c)), given,
                      reply.out);
}

Verdict rate(Kernel& kernel, const Case& c) {
  if (std::string why = why_unreadable(kernel, c); !why.empty()) return excused(std::move(why));
  const Share share = share_of(kernel, c.dropout_p);
  const DrawnMask mask = read_mask(kernel, c);
  if (mask.seen() == 0) return excused("no row sees a key");
  if (Verdict apart = independent(mask, share); apart.outcome == Outcome::violated) return apart;
  if (Verdict drawn = probable(mask, share); drawn.outcome == Outcome::violated) return drawn;
  if (Verdict seeded = of_the_seed(kernel, c, mask, share); seeded.outcome == Outcome::violated) return seeded;
  return worse_of({Verdict(), answers_by(kernel, c, mask)});
}

// The gradients are those of the mask that the forward pass draws.
Verdict same_mask(Kernel& kernel, const Case& c) {
  const Case forward = forward_of(c);
  if (std::string why = why_unreadable(kernel, forward); !why.empty()) return excused(std::move(why));
  const DrawnMask mask = read_mask(kernel, forward);
  if (mask.seen() == 0) return excused("no row sees a key");
  return BackwardRun(kernel, c).known_as(with_mask(c, mask)).judged(GradientsAt::definition);
}

constexpr std::array drawn_by_the_kernel{defining(hypotheses::own_dropout, "the theorem is about one"),
                                         defining(hypotheses::a_query_and_a_key, "nothing is drawn for others")};
constexpr std::array drawn_in_either_pass{defining(hypotheses::gradients, "it is about them"),
                                          defining(hypotheses::own_dropout, "the theorem is about one"),
                                          defining(hypotheses::a_query_and_a_key, "nothing is drawn for others")};

/// So few keys that their masks are read in a few calls. One in eight has so many weights that a wrong rate shows, of
/// narrow queries, as reading takes columns of values.
void readable(Recipe& r) {
  constexpr std::int32_t most_rows = 256, most_keys = 256, most_calls = 4;
  if (!r.large && r.seed % 8 == 0) {
    const auto more = [&](int shift, std::uint64_t of) { return static_cast<std::int32_t>((r.seed >> shift) % of); };
    r.batch = 1 + more(8, 2);
    r.heads = 2;
    r.queries = 48 + more(16, 49);
    r.keys = 64 + more(24, 65);
    r.dk = std::min(r.dk, 8);
  }
  r.queries = std::clamp(r.queries, 1, most_rows);
  r.keys = std::clamp(r.keys, 1, most_keys);
  r.dv = std::max(r.dv, (r.keys + most_calls - 1) / most_calls);
}

const Property family[] = {
    {.name = "dropout.rate",
     .statement = "own κ: κ_ij = 1 of each i, j with probability 1 − p, or the declared multiple of 1/n next to it, by "
                  "the seed; O is that of κ",
     .source = "+",
     .needs = "attention, dropout of its own",
     .floating_point = "of κ: chance of a false alarm below 3e^−30; of O and lse: bound",
     .variant = "dropout",
     .under = "window chunk lengths packed left_pad sink softcap",
     .hypotheses = drawn_by_the_kernel,
     .given = [](Draw& draw) -> Case {
       return draw.attention().where(readable).with_later_arguments().with_own_dropout();
     },
     .check = rate},
    about_gradients(
        {.name = "dropout.same-mask",
         .statement = "own κ: the gradients are those of the κ that the forward pass draws of the same seed",
         .needs = "attention_backward, dropout of its own",
         .floating_point = "bound",
         .variant = "dropout",
         .hypotheses = drawn_in_either_pass,
         .given = [](Draw& draw) -> Case {
           return draw.attention().where(readable).with_later_arguments().with_own_dropout().with_gradients();
         },
         .check = same_mask},
        "window chunk lengths packed left_pad sink softcap d_lse"),
};

}  // namespace

std::span<const Property> drawn_dropout_properties() {
  return family;
}

}  // namespace attest

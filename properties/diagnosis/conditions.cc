#include "properties/diagnosis/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/memory.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "properties/diagnosis/pair_product.h"

namespace attest {
namespace {

/// Which of the observed cases have something.
using Bits = std::vector<std::uint64_t>;

Bits both(const Bits& a, const Bits& b) {
  Bits c = a;
  for (std::size_t i = 0; i < c.size(); ++i) c[i] &= b[i];
  return c;
}

std::int64_t count(const Bits& bits) {
  std::int64_t all = 0;
  for (const std::uint64_t word : bits) all += std::popcount(word);
  return all;
}

std::int64_t count_of_both(const Bits& a, const Bits& b) {
  std::int64_t all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) all += std::popcount(a[i] & b[i]);
  return all;
}

/// log2 of n choose v, and of the n + 1 values that v may have.
double code_length(std::int64_t n, std::int64_t v) {
  const auto log2_factorial = [](std::int64_t x) { return std::lgamma(static_cast<double>(x) + 1) / std::log(2.0); };
  return log2_factorial(n) - log2_factorial(v) - log2_factorial(n - v) + std::log2(static_cast<double>(n) + 1);
}

constexpr std::string_view of_kind = " of the kind ";

/// What a case may have, in words.
struct Part {
  std::string words;
  Bits bits;
  double cost = 0;  ///< bits to name it, beyond its place in the list
};

using Extent = std::int64_t Extents::*;
constexpr std::pair<std::string_view, Extent> named_extents[] = {
    {"H", &Extents::heads}, {"KV", &Extents::kv_heads}, {"B", &Extents::batch}, {"M", &Extents::queries},
    {"N", &Extents::keys},  {"dk", &Extents::dk},       {"dv", &Extents::dv}};

class Search {
 public:
  Search(std::span<const Observed> observed, std::vector<std::size_t> open)
      : observed_(observed), open_(std::move(open)) {
    violated_ = bits_of([](const Observed& one) { return one.violated; });
    all_violated_ = count(violated_);
    relations();
    words();
    thresholds();
  }

  struct Found {
    double length;
    std::vector<std::size_t> parts;
  };
  /// Bits of the description without a condition.
  [[nodiscard]] double length() const { return code_length(std::ssize(open_), all_violated_); }
  /// The best condition as the numbers of its parts, and the bits of the description with it; no parts: none makes it
  /// shorter. `all`: of those that every violated case meets.
  [[nodiscard]] Found best(bool all) const {
    Found best{.length = length(), .parts = {}};
    std::vector<Found> layer;
    layer.reserve(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) layer.push_back(found({i}, parts_[i].bits, all));
    for (int size = 1; size <= most_parts; ++size) {
      std::ranges::sort(layer, {}, [](const Found& one) { return std::tie(one.length, one.parts); });
      if (!layer.empty() && layer.front().length < best.length) best = layer.front();
      if (size == most_parts) break;
      if (layer.size() > widest) layer.resize(widest);
      std::vector<Found> next;
      for (const Found& shorter : layer) {
        const Bits bits = bits_of(shorter.parts);
        for (std::size_t i = 0; i < parts_.size(); ++i) {
          if (std::ranges::find(shorter.parts, i) != shorter.parts.end()) continue;
          std::vector<std::size_t> parts = shorter.parts;
          parts.push_back(i);
          std::ranges::sort(parts);
          next.push_back(found(std::move(parts), both(bits, parts_[i].bits), all));
        }
      }
      layer = std::move(next);
    }
    return best;
  }

  [[nodiscard]] Condition condition(const std::vector<std::size_t>& parts) const {
    Condition condition;
    for (const std::size_t i : parts)
      condition.words += fmt::format("{}{}", condition.words.empty() ? "" : " and ", parts_[i].words);
    const Bits bits = bits_of(parts);
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const bool meets = (bits[i / 64] >> i % 64 & 1U) != 0, violated = observed_[open_[i]].violated;
      if (meets) condition.of.push_back(open_[i]);
      ++(meets ? condition.cases : condition.others);
      if (violated) ++(meets ? condition.violated : condition.others_violated);
    }
    return condition;
  }

 private:
  static constexpr int most_parts = 3;
  static constexpr std::size_t widest = 40;  ///< conditions that get a further part

  [[nodiscard]] Found found(std::vector<std::size_t> parts, const Bits& bits, bool all) const {
    const std::int64_t n = count(bits), v = count_of_both(bits, violated_);
    const auto cases = static_cast<std::int64_t>(open_.size());
    // A condition says when cases are violated, not when they are held.
    if (v * cases <= all_violated_ * n || (all && v < all_violated_))
      return {std::numeric_limits<double>::infinity(), std::move(parts)};
    double length = code_length(n, v) + code_length(cases - n, all_violated_ - v);
    for (const std::size_t i : parts) length += std::log2(static_cast<double>(parts_.size())) + parts_[i].cost;
    return {length, std::move(parts)};
  }

  template <class Has>
  [[nodiscard]] Bits bits_of(Has has) const
    requires std::predicate<Has, const Observed&>
  {
    Bits bits((open_.size() + 63) / 64);
    for (std::size_t i = 0; i < open_.size(); ++i)
      if (has(observed_[open_[i]])) bits[i / 64] |= std::uint64_t{1} << i % 64;
    return bits;
  }
  [[nodiscard]] Bits bits_of(const std::vector<std::size_t>& parts) const {
    Bits bits = parts_[parts.front()].bits;
    for (const std::size_t i : parts) bits = both(bits, parts_[i].bits);
    return bits;
  }

  /// Of parts that the same cases have the first is taken, so that what is said first is said most plainly.
  template <class Has>
  void add(std::string words, Has has, double cost = 0) {
    Part part{std::move(words), bits_of([&](const Observed& one) { return has(one.traits); }), cost};
    const std::int64_t n = count(part.bits);
    if (n == 0 || n == static_cast<std::int64_t>(open_.size())) return;
    // A smaller case is of no kind that was drawn.
    if (part.words.find(of_kind) == std::string::npos && is_refuted(has)) return;
    if (known_.insert(part.bits).second) parts_.push_back(std::move(part));
  }
  /// A case that is violated without it does not need it; of several mistakes one may have been found as a case of
  /// another was made smaller.
  template <class Has>
  [[nodiscard]] bool is_refuted(Has has) const {
    std::size_t had = 0, lost = 0;
    for (const std::size_t i : open_) {
      const Observed& one = observed_[i];
      if (!one.smaller || !has(one.traits)) continue;
      ++had;
      lost += has(*one.smaller) ? 0 : 1;
    }
    return 2 * lost > had;
  }

  void relations() {
    const auto add_of = [&](std::string words, std::predicate<const Extents&> auto has) {
      add(std::move(words), [has](const Traits& t) { return has(t.extents); });
    };
    add_of("H > KV > 1", [](const Extents& e) { return e.heads > e.kv_heads && e.kv_heads > 1; });
    add_of("H > KV", [](const Extents& e) { return e.heads > e.kv_heads && e.kv_heads > 0; });
    add_of("KV > 1", [](const Extents& e) { return e.kv_heads > 1; });
    add_of("H = KV > 1", [](const Extents& e) { return e.heads == e.kv_heads && e.heads > 1; });
    add_of("H > 1", [](const Extents& e) { return e.heads > 1; });
    add_of("B > 1", [](const Extents& e) { return e.batch > 1; });
    add_of("M = 0", [](const Extents& e) { return e.queries == 0; });
    add_of("N = 0", [](const Extents& e) { return e.keys == 0; });
    add_of("M > 1", [](const Extents& e) { return e.queries > 1; });
    add_of("M = 1", [](const Extents& e) { return e.queries == 1; });
    add_of("N > 1", [](const Extents& e) { return e.keys > 1; });
    add_of("N = 1", [](const Extents& e) { return e.keys == 1; });
    add_of("M = N", [](const Extents& e) { return e.queries == e.keys; });
    add_of("M != N", [](const Extents& e) { return e.queries != e.keys; });
    add_of("M < N", [](const Extents& e) { return e.queries < e.keys; });
    add_of("M > N", [](const Extents& e) { return e.queries > e.keys; });
    add_of("dk != dv", [](const Extents& e) { return e.dk != e.dv; });
    add_of("dk = dv", [](const Extents& e) { return e.dk == e.dv; });
    for (const auto& [name, extent] : named_extents) {
      for (const std::int64_t tile : {2, 4, 8, 16, 32, 64, 128, 256})
        add_of(fmt::format("{} > {}", name, tile), [=](const Extents& e) { return e.*extent > tile; });
      for (const std::int64_t tile : {2, 4, 8, 16, 32, 64, 128}) {
        add_of(fmt::format("{} not a multiple of {}", name, tile),
               [=](const Extents& e) { return e.*extent % tile != 0; });
        // (0 has a part of its own.)
        add_of(fmt::format("{} a multiple of {}", name, tile),
               [=](const Extents& e) { return e.*extent > 0 && e.*extent % tile == 0; });
      }
    }
  }

  void words() {
    std::set<std::string> all;
    for (const std::size_t i : open_) all.insert(observed_[i].traits.words.begin(), observed_[i].traits.words.end());
    for (const std::string& word : all)
      add(word, [&](const Traits& t) { return std::ranges::find(t.words, word) != t.words.end(); });
  }

  /// Between what violated cases have at least and at most.
  void thresholds() {
    constexpr double cost = 4;  // to say which number it is
    for (const auto& [name, extent] : named_extents) {
      std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
      for (const std::size_t i : open_) {
        if (!observed_[i].violated) continue;
        least = std::min(least, observed_[i].traits.extents.*extent);
        most = std::max(most, observed_[i].traits.extents.*extent);
        if (observed_[i].smaller) least = std::min(least, observed_[i].smaller->extents.*extent);
      }
      const auto add_of = [&, which = extent](std::string words, auto has) {
        add(std::move(words), [has, which](const Traits& t) { return has(t.extents.*which); }, cost);
      };
      if (least == most) {
        add_of(fmt::format("{} = {}", name, least), [=](std::int64_t x) { return x == least; });
      } else {
        add_of(fmt::format("{} >= {}", name, least), [=](std::int64_t x) { return x >= least; });
        add_of(fmt::format("{} <= {}", name, most), [=](std::int64_t x) { return x <= most; });
      }
    }
  }

  std::span<const Observed> observed_;
  std::vector<std::size_t> open_;  ///< the observed cases that are looked at
  Bits violated_;
  std::int64_t all_violated_ = 0;
  std::vector<Part> parts_;
  std::set<Bits> known_;
};

/// "scores:huge" as "scores of the kind huge"; empty for what the case itself tells.
std::string spoken(std::string_view word) {
  const std::size_t colon = std::min(word.find(':'), word.size());
  const std::string_view group = word.substr(0, colon);
  if (colon == word.size() || group == "causal" || group == "shape" || group == "scale") return {};
  bool of_variant = false;
  for_each_scalar(Operation::attention,
                  [&](const auto& field) { of_variant = of_variant || (!field.is_original() && field.name == group); });
  const std::vector<Variant>& all = variants();
  const auto variant = std::ranges::find(all, group, &Variant::name);
  if (of_variant || variant != all.end()) return {};
  return fmt::format("{}{}{}{}", group == "mask" ? "a " : "", group, of_kind, word.substr(colon + 1));
}

std::vector<std::string> traits_of_window(const Case& c) {
  if (!has_variant(c, window_variant.name)) return {"no window"};
  const bool left = c.window_left >= 0, right = c.window_right >= 0, causal = c.causal != Causal::none;
  std::vector<std::string> words{"a window", causal ? "a window beside a causal form" : "a window and no causal form",
                                 c.mask().present() ? "a window beside a mask" : "a window and no mask",
                                 fmt::format("a window aligned {}", name_of(c.alignment))};
  if (left) words.emplace_back("a window with a left end");
  if (right) words.emplace_back("a window with a right end");
  if (left != right) words.emplace_back(left ? "a window with only a left end" : "a window with only a right end");
  if (c.window_left == 0 || c.window_right == 0) words.emplace_back("a window with an end of 0 keys");
  const Extents e = extents_of(c);
  if (e.queries != e.keys) words.push_back(fmt::format("a window aligned {} and M != N", name_of(c.alignment)));
  return words;
}

std::vector<std::string> traits_of_chunks(const Case& c) {
  if (!has_variant(c, chunk_variant.name)) return {"no chunks"};
  const Extents e = extents_of(c);
  const bool causal = c.causal != Causal::none;
  std::vector<std::string> words{"chunks", causal ? "chunks beside a causal form" : "chunks and no causal form",
                                 c.mask().present() ? "chunks beside a mask" : "chunks and no mask",
                                 e.queries == 1 ? "chunks and one query" : "chunks and more than one query",
                                 fmt::format("chunks aligned {}", name_of(c.alignment))};
  if (has_variant(c, window_variant.name)) words.emplace_back("chunks beside a window");
  if (has_sequences(c)) words.emplace_back("chunks beside sequences of lengths of their own");
  if (c.attention_chunk == 1) words.emplace_back("chunks of one key");
  words.emplace_back(c.attention_chunk < e.keys ? "chunks of fewer than N keys" : "chunks of N keys or more");
  if (e.keys % c.attention_chunk != 0) words.emplace_back("chunks of which the last is not full");
  if (c.attention_chunk % 16 != 0) words.emplace_back("chunks that no tile of 16 ends with");
  if (e.queries != e.keys) words.push_back(fmt::format("chunks aligned {} and M != N", name_of(c.alignment)));
  if (e.queries > e.keys) words.emplace_back("chunks and more queries than keys");
  return words;
}

std::vector<std::string> traits_of_sinks(const Case& c) {
  const Tensor& sinks = c[Slot::sink];
  if (!sinks.present()) return {"no sink"};
  std::vector<std::string> words{"a sink", c.mask().present() ? "a sink beside a mask" : "a sink and no mask",
                                 queries_of(c) == 1 ? "a sink and one query" : "a sink and more than one query"};
  bool none = false, positive = false;
  for (const double sink : sinks.to_doubles()) none = none || std::isinf(sink), positive = positive || sink > 0;
  if (none) words.emplace_back("a sink of -inf");
  if (positive) words.emplace_back("a sink above 0");
  if (heads_of(c) > 1) words.emplace_back("a sink and more than one head");
  if (heads_of(c) != c.k().shape()[1]) words.emplace_back("a sink and grouped heads");
  return words;
}

/// The largest |scale q.k| of a visible key, of rows spread over the case, so that it takes no longer than drawing it.
double largest_product(const Case& c) {
  constexpr std::int64_t most_multiplications = 1 << 14;
  const Extents e = extents_of(c);
  const std::int64_t rows = e.batch * e.heads * e.queries, of_row = std::max<std::int64_t>(e.keys * e.dk, 1);
  const std::int64_t step = std::max<std::int64_t>(1, rows / std::max<std::int64_t>(1, most_multiplications / of_row));
  double largest = 0;
  for (std::int64_t row = 0; row < rows; row += step) {
    const std::int64_t b = row / e.queries / e.heads, h = row / e.queries % e.heads, i = row % e.queries;
    for (std::int64_t j = 0; j < e.keys; ++j) {
      if (hidden(c, b, h, i, j)) continue;
      largest = std::max(largest, std::abs(c.scale * static_cast<double>(product_of_pair(c, b, h, i, j))));
    }
  }
  return largest;
}

std::vector<std::string> traits_of_softcap(const Case& c) {
  if (c.softcap == 0) return {"no softcap"};
  std::vector<std::string> words{"a softcap", c.mask().present() ? "a softcap beside a mask" : "a softcap and no mask",
                                 queries_of(c) == 1 ? "a softcap and one query" : "a softcap and more than one query"};
  if (c.mask().present() && c.mask().dtype() != DType::boolean) words.emplace_back("a softcap beside an additive mask");
  if (c.causal != Causal::none) words.emplace_back("a softcap beside a causal form");
  if (c[Slot::sink].present()) words.emplace_back("a softcap beside a sink");
  if (c.softcap != std::trunc(c.softcap)) words.emplace_back("a softcap that is no whole number");
  // tanh(1/8)/(1/8) is 0.995.
  const double largest = largest_product(c);
  if (largest > c.softcap / 8) words.emplace_back("a softcap below 8 times the largest product");
  if (largest > c.softcap) words.emplace_back("a softcap below the largest product");
  return words;
}

/// What keep drops of keys that rows see, of rows spread over the case, so that it takes no longer than drawing it.
struct Dropped {
  bool a_key = false, every_key_of_a_row = false;
};
Dropped dropped_in(const Case& c) {
  constexpr std::int64_t most_keys = 1 << 16;
  const std::int64_t heads = heads_of(c), M = queries_of(c), N = keys_of(c), rows = batch_of(c) * heads * M;
  const std::int64_t step =
      std::max<std::int64_t>(1, rows / std::max<std::int64_t>(1, most_keys / std::max<std::int64_t>(N, 1)));
  Dropped dropped;
  for (std::int64_t row = 0; row < rows; row += step) {
    const std::int64_t b = row / M / heads, h = row / M % heads, i = row % M;
    std::int64_t seen = 0, kept = 0;
    for (std::int64_t j = 0; j < N; ++j) {
      if (hidden(c, b, h, i, j)) continue;
      ++seen;
      if (keeps(c, b, h, i, j)) ++kept;
    }
    dropped.a_key = dropped.a_key || kept < seen;
    dropped.every_key_of_a_row = dropped.every_key_of_a_row || (kept == 0 && seen > 0);
  }
  return dropped;
}

std::vector<std::string> traits_of_dropout(const Case& c) {
  if (!has_variant(c, dropout_variant.name)) return {"no dropout"};
  std::vector<std::string> words{"dropout", c.dropout_p > 0 ? "dropout with p > 0" : "dropout with p = 0",
                                 c.mask().present() ? "dropout beside a mask" : "dropout and no mask",
                                 queries_of(c) == 1 ? "dropout and one query" : "dropout and more than one query"};
  if (c.dropout_p > 0.5) words.emplace_back("dropout with p > 1/2");
  if (c.causal != Causal::none) words.emplace_back("dropout beside a causal form");
  if (c[Slot::sink].present()) words.emplace_back("dropout beside a sink");
  if (has_sequences(c)) words.emplace_back("dropout beside sequences of lengths of their own");
  if (heads_of(c) != c.k().shape()[1]) words.emplace_back("dropout and grouped heads");
  const Tensor& keep = c[Slot::keep];
  if (!keep.present()) {
    words.emplace_back("dropout that the kernel draws");
    return words;
  }
  if (keep.shape()[0] > 1) words.emplace_back("dropout of its own for each batch entry");
  if (keep.shape()[1] > 1) words.emplace_back("dropout of its own for each head");
  const Dropped dropped = dropped_in(c);
  words.emplace_back(dropped.a_key ? "a dropped key" : "dropout that drops no key");
  if (dropped.every_key_of_a_row) words.emplace_back("a row whose keys are all dropped");
  return words;
}

std::vector<std::string> traits_of_alibi(const Case& c) {
  const Tensor& slopes = c[Slot::alibi_slopes];
  if (!slopes.present()) return {"no slopes"};
  const Extents e = extents_of(c);
  const bool causal = c.causal != Causal::none;
  const Causal aligned = causal ? c.causal : c.alignment;
  std::vector<std::string> words{"slopes", causal ? "slopes beside a causal form" : "slopes and no causal form",
                                 c.mask().present() ? "slopes beside a mask" : "slopes and no mask",
                                 e.queries == 1 ? "slopes and one query" : "slopes and more than one query",
                                 fmt::format("slopes aligned {}", name_of(aligned))};
  if (c.mask().present() && c.mask().dtype() != DType::boolean) words.emplace_back("slopes beside an additive mask");
  if (has_variant(c, window_variant.name)) words.emplace_back("slopes beside a window");
  if (has_variant(c, chunk_variant.name)) words.emplace_back("slopes beside chunks");
  if (c.softcap > 0) words.emplace_back("slopes beside a softcap");
  if (c[Slot::sink].present()) words.emplace_back("slopes beside a sink");
  if (has_variant(c, dropout_variant.name)) words.emplace_back("slopes beside dropout");
  if (has_sequences(c)) words.emplace_back("slopes beside sequences of lengths of their own");
  bool negative = false, zero = false, odd = false, differ = false;
  for (const double slope : slopes.to_doubles()) {
    int exponent = 0;
    negative = negative || slope < 0, zero = zero || slope == 0, differ = differ || slope != slopes[0];
    odd = odd || (slope != 0 && std::frexp(std::fabs(slope), &exponent) != 0.5);
  }
  if (negative) words.emplace_back("a slope below 0");
  if (zero) words.emplace_back("a slope of 0");
  if (odd) words.emplace_back("a slope that is no power of 2");
  if (differ) words.emplace_back("slopes that differ");
  if (slopes.shape()[0] > 1) words.emplace_back("slopes for each batch entry");
  if (e.heads > 1) words.emplace_back("slopes and more than one head");
  if (e.heads != e.kv_heads) words.emplace_back("slopes and grouped heads");
  if (e.heads > 0 && !std::has_single_bit(static_cast<std::uint64_t>(e.heads)))
    words.emplace_back("slopes and a number of heads that is no power of 2");
  if (e.queries != e.keys) {
    words.emplace_back("slopes and M != N");
    words.push_back(fmt::format("slopes aligned {} and M != N", name_of(aligned)));
  }
  if (e.queries > e.keys) words.emplace_back("slopes and more queries than keys");
  if (e.keys > 256) words.emplace_back("slopes and more than 256 keys");
  return words;
}

std::vector<std::string> traits_of_descale(const Case& c) {
  if (!has_variant(c, descale_variant.name)) return {"no factors"};
  const Extents e = extents_of(c);
  std::vector<std::string> words{"factors", c.mask().present() ? "factors beside a mask" : "factors and no mask",
                                 e.queries == 1 ? "factors and one query" : "factors and more than one query"};
  bool of_heads = false, of_entries = false, odd = false, above = false, below = false;
  for (const Slot tensor : {Slot::q, Slot::k, Slot::v}) {
    const Tensor& factors = c[descale_of(tensor)];
    if (!factors.present()) continue;
    words.push_back(fmt::format("factors of {}", name_of(tensor)));
    if (has_blocks(c, tensor)) words.push_back(fmt::format("factors of blocks of {}", name_of(tensor)));
    of_heads = of_heads || factors.shape()[1] > 1, of_entries = of_entries || factors.shape()[0] > 1;
    for (const double factor : factors.to_doubles()) {
      int exponent = 0;
      odd = odd || std::frexp(factor, &exponent) != 0.5, above = above || factor > 1, below = below || factor < 1;
    }
  }
  if (c.q_descale_block != 0 || c.kv_descale_block != 0) words.emplace_back("factors of blocks");
  if (c.q_descale_block > 1 || c.kv_descale_block > 1) words.emplace_back("factors of blocks of more than one row");
  if (of_heads) words.emplace_back("factors for each head");
  if (of_entries) words.emplace_back("factors for each batch entry");
  if (odd) words.emplace_back("a factor that is no power of 2");
  if (above) words.emplace_back("a factor above 1");
  if (below) words.emplace_back("a factor below 1");
  if (e.heads != e.kv_heads) words.emplace_back("factors and grouped heads");
  if (c.mask().present() && c.mask().dtype() != DType::boolean) words.emplace_back("factors beside an additive mask");
  if (c.causal != Causal::none) words.emplace_back("factors beside a causal form");
  if (has_variant(c, window_variant.name)) words.emplace_back("factors beside a window");
  if (has_variant(c, chunk_variant.name)) words.emplace_back("factors beside chunks");
  if (c.softcap > 0) words.emplace_back("factors beside a softcap");
  if (c[Slot::sink].present()) words.emplace_back("factors beside a sink");
  if (c[Slot::alibi_slopes].present()) words.emplace_back("factors beside slopes");
  if (has_variant(c, dropout_variant.name)) words.emplace_back("factors beside dropout");
  if (has_sequences(c)) words.emplace_back("factors beside sequences of lengths of their own");
  return words;
}

std::vector<std::string> traits_of_sequences(const Case& c) {
  const bool lengths = has_variant(c, lengths_variant.name), packed = has_variant(c, packed_variant.name);
  if (!has_sequences(c)) return {"batch entries as long as each other"};
  std::vector<std::string> words{"sequences of lengths of their own"};
  if (lengths) words.emplace_back("lengths");
  if (packed) words.emplace_back("packed sequences");
  if (has_variant(c, left_pad_variant.name)) words.emplace_back("padding on the left");
  if (c[Slot::q_lengths].present()) words.emplace_back("lengths of queries");
  if (c[Slot::kv_lengths].present()) words.emplace_back("lengths of keys");
  const std::vector<Sequence> all = sequences_of(c);
  const auto any = [&](auto is, const char* trait) {
    if (std::ranges::any_of(all, is)) words.emplace_back(trait);
  };
  any([](const Sequence& s) { return s.queries == 0; }, "a sequence without queries");
  any([](const Sequence& s) { return s.keys == 0 && s.queries > 0; }, "a sequence without keys");
  any([](const Sequence& s) { return s.queries != s.keys; }, "a sequence of M_b != N_b");
  any([](const Sequence& s) { return s.keys > 16 && s.keys % 16 != 0; },
      "a sequence of more than 16 keys that no tile of 16 ends with");
  if (has_padding(c)) words.emplace_back(packed ? "slack" : "padding");
  if (std::ssize(all) > 1) words.emplace_back("several sequences");
  if (c.mask().present()) words.emplace_back("sequences beside a mask");
  if (c.causal != Causal::none) words.emplace_back("sequences beside a causal form");
  return words;
}

}  // namespace

Traits traits_of(const Case& c) {
  Traits traits{extents_of(c), {}};
  const auto add = [&](std::string words) { traits.words.push_back(std::move(words)); };
  add(fmt::format("dtype {}", name_of(c.dtype())));
  add(c.operation == Operation::multihead ? "the multihead entry" : "the attention entry");
  add(c.mask().present() ? "a mask" : "no mask");
  if (c.mask().present()) {
    const Shape shape = c.mask().shape();
    const bool boolean = c.mask().dtype() == DType::boolean;
    add(boolean ? "a boolean mask" : "an additive mask");
    if (!boolean && c.mask_convention == MaskConvention::pre_scale) add("a mask added before the scale");
    if (shape.rank() == 4 && shape[1] > 1) add("a mask of its own for every head");
    if (shape.rank() == 4 && shape[0] > 1) add("a mask of its own for every batch entry");
    if (c.causal != Causal::none) add("a mask beside a causal form");
  }
  add(c.causal == Causal::none ? "no causal form" : "a causal form");
  if (c.causal != Causal::none) {
    add(fmt::format("the causal form {}", name_of(c.causal)));
    if (traits.extents.queries != traits.extents.keys) add("a causal form and M != N");
  }
  for (std::string& words : traits_of_window(c)) add(std::move(words));
  if (c.operation == Operation::attention)
    for (auto* const traits_of : {traits_of_chunks, traits_of_sinks, traits_of_softcap, traits_of_dropout,
                                  traits_of_alibi, traits_of_descale, traits_of_sequences})
      for (std::string& words : traits_of(c)) add(std::move(words));
  if (asks_for_gradients(c))
    add(c[Slot::d_lse].present() ? "a gradient by the log-sum-exp" : "no gradient by the log-sum-exp");
  add(is_inverse_root(c.scale, traits.extents.dk) ? "the scale 1/sqrt(dk)" : "another scale than 1/sqrt(dk)");
  if (c.k().dtype() != c.dtype() || c.v().dtype() != c.dtype()) add("k or v in another format than q");
  if (c.k().dtype() == DType::i8 || c.v().dtype() == DType::i8) add("k or v of whole numbers");
  for (int slot = static_cast<int>(Slot::w_q); slot < original_slots; ++slot)
    if (c[static_cast<Slot>(slot)].present()) add(fmt::format("{}", name_of(static_cast<Slot>(slot))));
  const Layouts layouts = layouts_of(c);
  const std::string text = to_string(layouts);
  bool strided = false;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, end - from);
    const std::size_t tensor = word.find('=');
    const bool aliased = word.substr(tensor + 1) == name_of(MemoryLayout::aliased);
    add(aliased ? fmt::format("{} in the memory of an equal input", word.substr(0, tensor)) : "strides " + word);
    strided = strided || !aliased;
    from = end + 1;
  }
  if (strided) add("strides");
  std::string_view kinds = kinds_of(c);
  while (!kinds.empty()) {
    const std::size_t end = std::min(kinds.find(' '), kinds.size());
    if (std::string words = spoken(kinds.substr(0, end)); !words.empty()) add(std::move(words));
    kinds.remove_prefix(std::min(end + 1, kinds.size()));
  }
  return traits;
}

std::vector<Condition> conditions_of(std::span<const Observed> observed) {
  constexpr std::size_t most_conditions = 4;
  // Of what one condition leaves over, a second is believed less readily.
  constexpr double first_gain = 10, further_gain = 20;
  std::vector<Condition> conditions;
  std::vector<std::size_t> open(observed.size());
  for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
  const auto violated = [&](std::size_t i) { return observed[i].violated; };
  if (std::ranges::none_of(open, violated)) return {};
  const Search whole(observed, open);
  const Search::Found of_all = whole.best(/*all=*/true);
  double gained = 0;
  while (conditions.size() < most_conditions && std::ranges::any_of(open, violated)) {
    const Search search(observed, open);
    const Search::Found best = search.best(/*all=*/false);
    const double gain = search.length() - best.length;
    if (best.parts.empty() || gain < (conditions.empty() ? first_gain : further_gain)) break;
    gained += gain;
    conditions.push_back(search.condition(best.parts));
    std::erase_if(open, [&](std::size_t i) { return std::ranges::binary_search(conditions.back().of, i); });
  }
  // One mistake shows more often in some cases than in others, which is no reason to tell it as two.
  const double gained_by_one = whole.length() - of_all.length;
  constexpr double share = 0.2, most_left_over = 0.01;
  if (!of_all.parts.empty() && gained_by_one >= first_gain && gained_by_one >= share * gained)
    return {whole.condition(of_all.parts)};
  // Nor are several conditions an answer that leave over what they were to tell.
  const auto left_over = static_cast<double>(std::ranges::count_if(open, violated));
  if (conditions.size() > 1 && left_over > most_left_over * static_cast<double>(open.size())) {
    conditions.resize(1);
    open.clear();
    for (std::size_t i = 0; i < observed.size(); ++i)
      if (!std::ranges::binary_search(conditions[0].of, i)) open.push_back(i);
  }
  // A condition without which cases are violated almost as often is none.
  if (conditions.size() == 1) {
    const auto rate = [](std::int64_t part, std::int64_t all) {
      return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(all, 1));
    };
    const Condition& one = conditions[0];
    if (10 * rate(one.others_violated, one.others) > rate(one.violated, one.cases)) {
      conditions.clear();
      open.resize(observed.size());
      for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
    }
  }
  if (conditions.empty()) {
    const auto all = static_cast<std::int64_t>(std::ranges::count_if(open, violated));
    return {{.of = open, .cases = std::ssize(open), .violated = all}};
  }
  // What is left over is told with the first.
  for (const std::size_t i : open)
    if (observed[i].violated) conditions.front().of.push_back(i);
  std::ranges::sort(conditions.front().of);
  return conditions;
}

}  // namespace attest

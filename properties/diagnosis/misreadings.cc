#include "properties/diagnosis/misreadings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

#include "core/oracle/oracle.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/sequences.h"
#include "properties/diagnosis/misread_numbers.h"
#include "properties/diagnosis/other_sights.h"
#include "properties/diagnosis/row_misreadings.h"
#include "properties/diagnosis/variants/alibi_misreadings.h"
#include "properties/diagnosis/variants/chunk_misreadings.h"
#include "properties/diagnosis/variants/descale_misreadings.h"
#include "properties/diagnosis/variants/dropout_misreadings.h"
#include "properties/diagnosis/variants/sequence_misreadings.h"
#include "properties/diagnosis/variants/sink_misreadings.h"
#include "properties/diagnosis/variants/softcap_misreadings.h"
#include "properties/diagnosis/variants/window_misreadings.h"

namespace attest {
namespace {

/// Tiles and paths have such sizes.
constexpr std::int64_t tiles[] = {2, 4, 8, 16, 32, 64, 128, 256};
/// As far back as kernels look that keep to a window.
constexpr std::int64_t windows[] = {16, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096};
constexpr const char* zero_values = "all values were 0";
/// What readings say of a case with more products than these is not asked: each costs an answer of the oracle.
constexpr std::int64_t most_products = std::int64_t{1} << 22;

/// A reading of one case.
struct Misreading {
  std::string words;      ///< with a # for the size, where there is one
  std::int64_t size = 0;  ///< 0: none
  bool is_told = true;    ///< by a problem; else there is none of the case, which tells nothing of the reading then
  Case problem = {};
  /// Where its elements lie in an output that is no [batch, heads, M, dv].
  std::function<Tensor(const Tensor& out)> rearranged = {};
};

/// Collects those that are other problems. Of one sequence: lengths and packed sequences are taken apart before.
class Misreadings {
 public:
  explicit Misreadings(const Case& c) : c_(c), e_(extents_of(c)) {
    scales();
    if (c.mask().present()) masks();
    causal_forms();
    variants();
    sights();
    heads();
    batch_entries();
    keys();
    columns();
    tensors();
    equal_weights();
  }
  [[nodiscard]] std::vector<Misreading> take() { return std::move(found_); }

 private:
  void add(std::string words, Case problem, std::function<Tensor(const Tensor&)> rearranged = {}) {
    if (!rearranged && static_cast<const Problem&>(problem) == static_cast<const Problem&>(c_)) return;
    found_.push_back({.words = std::move(words), .problem = std::move(problem), .rearranged = std::move(rearranged)});
  }
  void add_sized(std::string words, std::int64_t size, Case problem) {
    const std::size_t before = found_.size();
    add(std::move(words), std::move(problem));
    if (found_.size() > before) found_.back().size = size;
  }
  void add_sight_of(MisreadSight reading) {
    if (reading.problem) return add_sized(std::move(reading.words), reading.size, *std::move(reading.problem));
    found_.push_back({.words = std::move(reading.words), .size = reading.size, .is_told = false, .problem = c_});
  }
  void add_scale(std::string words, double scale) {
    if (!(scale > 0) || scale == infinity || scale == c_.scale) return;
    Case other = c_;
    other.scale = scale;
    add(std::move(words), std::move(other));
  }
  /// Capped or not, so many times as large.
  void add_scores(std::string words, double times) {
    Case other = with_slopes_times(c_, times);
    other.scale *= times, other.softcap *= times;
    const auto valid = [](double x, double before) { return before == 0 || (x > 0 && x < infinity); };
    if (valid(other.scale, c_.scale) && valid(other.softcap, c_.softcap)) add(std::move(words), std::move(other));
  }
  /// The tensor with element e read from where `from` says.
  static Tensor gathered(const Tensor& tensor, const std::function<std::int64_t(std::int64_t e)>& from) {
    Tensor other = tensor;
    for (std::int64_t e = 0; e < tensor.elements(); ++e) other.set(e, tensor[from(e)]);
    return other;
  }

  void scales() {
    add_scale("q·k were not scaled", 1);
    add_scale("the scale were 1/sqrt(dk), whatever is asked", inverse_root(e_.dk));
    add_scale("the scale were applied twice", c_.scale * c_.scale);
    add_scale("the scale were 1/dk", 1 / static_cast<double>(e_.dk));
    add_scale("the scale were 1/sqrt(dv)", inverse_root(e_.dv));
    add_scale("the scale were 1/sqrt(heads·dk)", inverse_root(e_.heads * e_.dk));
    if (only_hides(c_)) {
      add_scores("powers of 2 stood for powers of e", std::numbers::ln2);
      add_scores("scores were multiplied by log2(e), and powers of e taken", std::numbers::log2e);
    }
  }
  /// Three that differ in what becomes of a mask.
  void equal_weights() {
    Case even = c_;
    even[Slot::q] = mapped(c_.q(), [](std::int64_t, double) { return 0.0; });
    Case hides = even;
    drop_variant(hides, alibi_variant.name);
    if (c_.mask().present() && c_.mask().dtype() != DType::boolean)
      hides[Slot::mask] = mapped(c_.mask(), [](std::int64_t, double old) { return old == -infinity ? old : 0.0; });
    add("all visible keys weighed the same", std::move(hides));
    add("all scores were equal before the mask is added", even);
    // A row that sees none keeps to what the manifest says of it.
    const Shape shape{e_.batch, e_.heads, e_.queries, e_.keys};
    Tensor shown(DType::boolean, shape);
    std::int64_t first = 0;
    for (std::int64_t row = 0; row < e_.batch * e_.heads * e_.queries; ++row, first += e_.keys) {
      bool sees = false;
      for (std::int64_t j = 0; j < e_.keys; ++j) {
        const auto [b, h, i, key] = shape.index_of(first + j);
        sees = sees || !hidden(c_, b, h, i, key);
      }
      for (std::int64_t j = 0; j < e_.keys; ++j) shown.set(first + j, sees ? 1.0 : 0.0);
    }
    even[Slot::mask] = std::move(shown);
    drop_positions(even);
    // Nothing else of the weights is looked at, either.
    for (const Variant& variant : {sink_variant, dropout_variant, alibi_variant}) drop_variant(even, variant.name);
    add("all keys weighed the same, hidden ones too", std::move(even));
  }

  void masks() {
    const bool boolean = c_.mask().dtype() == DType::boolean;
    const Shape shape = c_.mask().shape();
    const std::int64_t page = shape[2] * shape[3], batch = shape[0], heads = shape[1];
    Case without = c_;
    without[Slot::mask] = Tensor();
    add("the mask were not there", std::move(without));
    const auto add_mask = [&](std::string words, Tensor mask) {
      Case other = c_;
      other[Slot::mask] = std::move(mask);
      add(std::move(words), std::move(other));
    };
    if (boolean) {
      add_mask("true hid a key", mapped(c_.mask(), [](std::int64_t, double old) { return 1 - old; }));
      add_mask("the boolean mask were added to the scores",
               mapped(Tensor(c_.dtype(), shape), [&](std::int64_t e, double) { return c_.mask()[e]; }));
    } else {
      Case other = c_;
      const bool post = c_.mask_convention == MaskConvention::post_scale;
      other.mask_convention = post ? MaskConvention::pre_scale : MaskConvention::post_scale;
      // No problem with a cap or slopes has a mask before the scale.
      if (c_[Slot::alibi_slopes].present()) {
        other.mask_convention = MaskConvention::post_scale;
        other[Slot::mask] =
            mapped(Tensor(DType::f64, shape), [&](std::int64_t e, double) { return c_.scale * c_.mask()[e]; });
      }
      if (c_.softcap == 0)
        add(post ? "the mask were added before the scale" : "the mask were added after the scale", std::move(other));
      add_mask("only -inf in the mask counted",
               mapped(c_.mask(), [](std::int64_t, double old) { return old == -infinity ? old : 0.0; }));
      add_mask("whatever is not 0 in the mask hid a key",
               mapped(c_.mask(), [](std::int64_t, double old) { return old == 0 ? old : -infinity; }));
      add_mask("-10000 and less in the mask hid a key",
               mapped(c_.mask(), [](std::int64_t, double old) { return old <= -1e4 ? -infinity : old; }));
      const auto turned = [&](double least) {
        return mapped(c_.mask(), [&](std::int64_t, double old) { return old < 0 && old > least ? -old : old; });
      };
      add_mask("what the mask adds below 0 were added with the other sign", turned(-infinity));
      add_mask("what the mask adds between -8 and 0 were added with the other sign", turned(-8));
    }
    const double shows = boolean ? 1.0 : 0.0;
    const auto columns_gone = [&](std::string words, std::int64_t whole, std::int64_t size) {
      if (whole == shape[3] || whole == 0) return;
      Case other = c_;
      other[Slot::mask] =
          mapped(c_.mask(), [&](std::int64_t e, double old) { return e % shape[3] < whole ? old : shows; });
      add_sized(std::move(words), size, std::move(other));
    };
    columns_gone("the last column of the mask were not there", shape[3] - 1, 0);
    for (const std::int64_t tile : tiles)
      columns_gone("columns of the mask behind the last whole # were not there", shape[3] - shape[3] % tile, tile);
    add_mask("every head had the mask of the first",
             gathered(c_.mask(), [&](std::int64_t e) { return e / page / heads * heads * page + e % page; }));
    add_mask("every batch entry had the mask of the first",
             gathered(c_.mask(), [&](std::int64_t e) { return e % (heads * page); }));
    if (batch == heads)
      add_mask("batch entries and heads of the mask were exchanged", gathered(c_.mask(), [&](std::int64_t e) {
                 const std::int64_t b = e / page / heads, h = e / page % heads;
                 return (h * heads + b) * page + e % page;
               }));
    if (heads == e_.heads)
      add_mask("a head had the mask of its key-value head's number", gathered(c_.mask(), [&](std::int64_t e) {
                 const std::int64_t b = e / page / heads, h = e / page % heads;
                 return (b * heads + kv_head_of(c_, h)) * page + e % page;
               }));
    add_mask("every row had the mask of the first",
             gathered(c_.mask(), [&](std::int64_t e) { return e / page * page + e % shape[3]; }));
    if (shape[2] == shape[3])
      add_mask("rows and columns of the mask were exchanged", gathered(c_.mask(), [&](std::int64_t e) {
                 const std::int64_t i = e % page / shape[3], j = e % shape[3];
                 return e / page * page + j * shape[3] + i;
               }));
  }

  /// Keys up to `behind` beyond the row's own place, counted from the first of them.
  void add_diagonal(std::string words, std::int64_t behind) {
    if (!can_hide_by_mask(c_)) return;
    Case plain = c_;
    plain.causal = Causal::none;
    Case other = only_hides(plain) ? with_boolean_mask(plain) : with_additive_mask(plain);
    const double hides = other.mask().dtype() == DType::boolean ? 0.0 : -infinity;
    other[Slot::mask] = mapped(other.mask(), [&](std::int64_t e, double old) {
      const auto [b, h, i, j] = other.mask().shape().index_of(e);
      return j > i + behind ? hides : old;
    });
    add(std::move(words), std::move(other));
  }
  /// With a mask in which row i sees key j where `sees` says so of (i, j, whether it saw it).
  template <class Sees>
  void add_sight(std::string words, std::int64_t size, Sees sees) {
    if (!can_hide_by_mask(c_)) return;
    Case other = only_hides(c_) ? with_boolean_mask(c_) : with_additive_mask(c_);
    const bool boolean = other.mask().dtype() == DType::boolean;
    const double hides = boolean ? 0.0 : -infinity, shows = boolean ? 1.0 : 0.0;
    const Tensor before = other.mask();
    other[Slot::mask] = mapped(before, [&](std::int64_t e, double old) {
      const auto [b, h, i, j] = before.shape().index_of(e);
      const bool saw = old != hides, now = sees(i, j, e - j);
      return now == saw ? old : now ? shows : hides;
    });
    add_sized(std::move(words), size, std::move(other));
  }
  /// Windows, and rows that see their tile to its end.
  void sights() {
    if (!can_hide_by_mask(c_)) return;
    const Case told = only_hides(c_) ? with_boolean_mask(c_) : with_additive_mask(c_);
    const double hides = told.mask().dtype() == DType::boolean ? 0.0 : -infinity;
    const auto saw = [&](std::int64_t first, std::int64_t j) { return told.mask()[first + j] != hides; };
    const std::int64_t N = e_.keys, more = std::max<std::int64_t>(N - e_.queries, 0);
    for (const std::int64_t window : windows) {
      if (window >= e_.queries - 1 + more) continue;
      add_sight("a row saw no keys more than # back", window, [&](std::int64_t i, std::int64_t j, std::int64_t first) {
        return saw(first, j) && j + window >= i + more;
      });
    }
    std::vector<std::int64_t> ends;  // behind the last key that a row sees
    for (std::int64_t first = 0; first < told.mask().elements(); first += N) {
      ends.push_back(N);
      while (ends.back() > 0 && !saw(first, ends.back() - 1)) --ends.back();
    }
    for (const std::int64_t tile : tiles) {
      const auto up = [&](std::int64_t end) { return end > tile ? std::min((end + tile - 1) / tile * tile, N) : end; };
      if (tile >= N || tile > 128) continue;
      if (c_.causal != Causal::none) {
        const std::int64_t shift = c_.causal == Causal::bottom_right ? N - e_.queries : 0;
        Case plain = c_;
        plain.causal = Causal::none;
        const Case open = only_hides(plain) ? with_boolean_mask(plain) : with_additive_mask(plain);
        Case other = open;
        other[Slot::mask] = mapped(open.mask(), [&](std::int64_t e, double old) {
          const auto [b, h, i, j] = open.mask().shape().index_of(e);
          return j < up(std::clamp<std::int64_t>(i + shift + 1, 0, N)) ? old : hides;
        });
        add_sized("a causal row saw its block of # keys to the end, from the second block on", tile, std::move(other));
      }
      if (c_.mask().present()) {
        add_sight("the keys that a row sees were rounded up to a multiple of #, from the second on", tile,
                  [&](std::int64_t, std::int64_t j, std::int64_t first) {
                    const std::int64_t end = ends[static_cast<std::size_t>(first / N)];
                    return saw(first, j) || (j >= end && j < up(end));
                  });
      }
    }
  }
  void causal_forms() {
    const bool hides_more = has_variant(c_, window_variant.name) || has_variant(c_, chunk_variant.name);
    const auto add_form = [&](std::string words, Causal causal) {
      Case other = c_;
      if (causal != Causal::none && hides_more) {
        // Windows and chunks would go with it.
        if (c_.dtype() == DType::f8_e4m3) return;
        other.causal = Causal::none;
        other = with_causal_written_out(std::move(other));
      }
      other.causal = causal;
      // Slopes count positions as it does.
      settle_alignment(other);
      add(std::move(words), std::move(other));
    };
    const std::int64_t more = e_.keys - e_.queries;
    if (c_.causal == Causal::none) {
      add_form("it were causal, from the first keys on", Causal::top_left);
      if (more != 0) add_form("it were causal, up to the last keys", Causal::bottom_right);
      return;
    }
    const bool bottom = c_.causal == Causal::bottom_right;
    add_form("there were no causal form", Causal::none);
    if (more != 0)
      add_form(
          bottom ? "the causal form were aligned to the first keys" : "the causal form were aligned to the last keys",
          bottom ? Causal::top_left : Causal::bottom_right);
    add_diagonal("a causal row saw one key more", (bottom ? more : 0) + 1);
    add_diagonal("a causal row did not see its own key", (bottom ? more : 0) - 1);
  }

  void variants() {
    for (auto* const misread : {misread_windows, misread_chunks})
      for (MisreadSight& reading : misread(c_)) add_sight_of(std::move(reading));
    for (MisreadSinks& reading : misread_sinks(c_)) add(std::move(reading.words), std::move(reading.problem));
    for (MisreadSoftcap& reading : misread_softcaps(c_)) add(std::move(reading.words), std::move(reading.problem));
    for (MisreadDropout& reading : misread_dropout(c_))
      add_sized(std::move(reading.words), reading.size, std::move(reading.problem));
    for (MisreadSlopes& reading : misread_slopes(c_))
      add_sized(std::move(reading.words), reading.size, std::move(reading.problem));
    for (MisreadDescale& reading : misread_descale(c_))
      add_sized(std::move(reading.words), reading.size, std::move(reading.problem));
  }

  void heads() {
    if (e_.kv_heads > 1 && e_.kv_heads < e_.heads)
      add("head h read key-value head h mod KV, where h / (H / KV) is right",
          with_kv_heads(c_, [&](std::int64_t h) { return h % e_.kv_heads; }));
    if (e_.kv_heads > 1) {
      add("all heads read the first key-value head", with_kv_heads(c_, [](std::int64_t) { return std::int64_t{0}; }));
      add("heads of keys and values were in reverse order",
          with_kv_heads(c_, [&](std::int64_t h) { return e_.kv_heads - 1 - kv_head_of(c_, h); }));
    }
  }

  void batch_entries() {
    if (e_.batch == 1) return;
    const auto add_entries = [&](std::string words, std::span<const Slot> slots, auto entry) {
      Case other = c_;
      for (const Slot slot : slots) {
        const std::int64_t size = c_[slot].elements() / e_.batch;
        other[slot] = gathered(c_[slot], [&](std::int64_t e) { return entry(e / size) * size + e % size; });
      }
      add(std::move(words), std::move(other));
    };
    constexpr Slot keys_and_values[] = {Slot::k, Slot::v}, only_keys[] = {Slot::k}, only_values[] = {Slot::v},
                   queries[] = {Slot::q};
    const auto first = [](std::int64_t) { return std::int64_t{0}; };
    const auto one_before = [&](std::int64_t b) { return (b + e_.batch - 1) % e_.batch; };
    add_entries("all batch entries read the keys and values of the first", keys_and_values, first);
    add_entries("all batch entries read the keys of the first", only_keys, first);
    add_entries("all batch entries read the values of the first", only_values, first);
    add_entries("all batch entries had the queries of the first", queries, first);
    add_entries("batch entries read the keys and values of the one before", keys_and_values, one_before);
    for (std::int64_t b = 1; b < e_.batch; ++b) {
      Case other = c_;
      for (const Slot slot : keys_and_values) {
        const std::int64_t size = c_[slot].elements() / e_.batch;
        other[slot] = gathered(c_[slot], [&](std::int64_t e) { return e / size == b ? e - size : e; });
      }
      add_sized("batch entry # (counted from 0) read the keys and values of the one before", b, std::move(other));
    }
  }

  /// Other keys than those that there are. What hides by position, and slopes, count keys, so they become a mask first.
  void keys() {
    const std::int64_t N = e_.keys;
    if (N < 1) return;
    const bool by_position = hides_by_position(c_);
    const Case unsloped = with_slopes_as_mask(c_);
    if (by_position && !has_slopes() && c_.dtype() == DType::f8_e4m3) return;
    const Case counted = by_position ? with_causal_written_out(unsloped) : unsloped;
    const auto add_keys = [&](std::string words, const Indices& chosen, std::int64_t size = 0) {
      if (!chosen.empty()) add_sized(std::move(words), size, with_keys(counted, chosen));
    };
    const auto range = [](std::int64_t first, std::int64_t last) {
      Indices some(static_cast<std::size_t>(std::max<std::int64_t>(last - first, 0)));
      std::iota(some.begin(), some.end(), first);
      return some;
    };
    add_keys("the last key were not there", range(0, N - 1));
    add_keys("the first key were not there", range(1, N));
    Case zero = c_;
    zero[Slot::k] = mapped(c_.k(), [&](std::int64_t e, double old) { return e / e_.dk % N == N - 1 ? 0.0 : old; });
    add("the last key were zeros", std::move(zero));
    if (N > e_.queries) add_keys("there were no more keys than queries", range(0, e_.queries));
    for (const std::int64_t tile : tiles) {
      const std::int64_t whole = N - N % tile;
      if (N > tile) {
        add_keys("there were # keys at most", range(0, tile), tile);
        add_keys("the first # keys were not there", range(tile, N), tile);
      }
      if (N > tile) {
        Indices without = range(0, tile), again = range(0, N);
        for (const std::int64_t j : range(std::min(2 * tile, N), N)) without.push_back(j);
        for (const std::int64_t j : range((N - 1) / tile * tile, N)) again.push_back(j);
        add_keys("the second # keys were not there", without, tile);
        add_keys("the last tile of # keys counted twice", again, tile);
      }
      if (whole == N) continue;
      if (whole > 0) add_keys("keys behind the last whole # were not there", range(0, whole), tile);
      if (N > tile) {
        Indices twice = range(0, N);
        for (const std::int64_t j : range(N - tile, whole)) twice.push_back(j);
        add_keys("keys that the last # share with those before counted twice", twice, tile);
      }
      add_sized("keys of zeros filled up a multiple of #", tile, padded(counted, whole + tile - N));
    }
  }
  [[nodiscard]] bool has_slopes() const { return c_[Slot::alibi_slopes].present(); }
  /// With that many keys and values of zeros behind the last, which every row sees, from as far as they are.
  [[nodiscard]] Case padded(const Case& counted, std::int64_t more) const {
    Indices chosen = all_of(e_.keys);
    chosen.insert(chosen.end(), static_cast<std::size_t>(more), 0);
    Case other = with_keys(counted, chosen);
    const std::int64_t keys = e_.keys + more;
    for (const Slot slot : {Slot::k, Slot::v}) {
      const std::int64_t width = other[slot].shape()[3];
      other[slot] =
          mapped(other[slot], [&](std::int64_t e, double old) { return e / width % keys < e_.keys ? old : 0.0; });
    }
    if (other.mask().present()) {
      const double shows = other.mask().dtype() == DType::boolean ? 1.0 : 0.0;
      const Shape shape = other.mask().shape();
      other[Slot::mask] = mapped(other.mask(), [&](std::int64_t e, double old) {
        const auto [b, h, i, j] = shape.index_of(e);
        return j < e_.keys ? old : has_slopes() ? slope_term(c_, b, h, i, j) : shows;
      });
    }
    return other;
  }

  void columns() {
    if (e_.queries > 1) {
      Case other = c_;
      other[Slot::q] =
          gathered(c_.q(), [&](std::int64_t e) { return e / e_.dk % e_.queries == e_.queries - 1 ? e - e_.dk : e; });
      add("the last query were the one before it", std::move(other));
    }
    const auto values = [&](std::string words, auto&& column) {
      Case other = c_;
      other[Slot::v] = gathered(c_.v(), [&](std::int64_t e) { return e - e % e_.dv + column(e % e_.dv); });
      add(std::move(words), std::move(other));
    };
    if (e_.dv > 1)
      values("the last column of v were the one before it",
             [&](std::int64_t column) { return column == e_.dv - 1 ? column - 1 : column; });
    if (e_.dv > e_.dk)
      values("columns of v from dk on were read again from the first",
             [&](std::int64_t column) { return column % e_.dk; });
    Case zero = c_;
    zero[Slot::v] = mapped(c_.v(), [](std::int64_t, double) { return 0.0; });
    add(zero_values, std::move(zero));
    for (const std::int64_t width : tiles) {
      if (e_.dk <= width) continue;
      const auto cut = [&](std::int64_t columns, std::string words) {
        if (columns <= 0 || columns == e_.dk) return;
        Case other = c_;
        other[Slot::q] = mapped(c_.q(), [&](std::int64_t e, double old) { return e % e_.dk < columns ? old : 0.0; });
        add_sized(std::move(words), width, std::move(other));
      };
      cut(e_.dk - e_.dk % width, "columns of q and k behind the last whole # were not there");
      cut(width, "q and k had # columns at most");
    }
  }

  void tensors() {
    const auto exchanged = [&](std::string words, Slot a, Slot b) {
      if (c_[a].shape() != c_[b].shape() || c_[a].dtype() != c_[b].dtype()) return;
      Case other = c_;
      std::swap(other[a], other[b]);
      add(std::move(words), std::move(other));
    };
    exchanged("keys and values were exchanged", Slot::k, Slot::v);
    exchanged("queries and keys were exchanged", Slot::q, Slot::k);
    if (c_.k().shape() == c_.v().shape() && c_.k().dtype() == c_.v().dtype()) {
      Case other = c_;
      other[Slot::v] = c_.k();
      add("the keys were the values, too", std::move(other));
    }
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
      const std::int64_t tokens = c_[slot].shape()[2], width = c_[slot].shape()[3];
      Case other = c_;
      other[slot] = gathered(c_[slot], [&](std::int64_t e) {
        const std::int64_t page = tokens * width, i = e % page / width, column = e % width;
        return e / page * page + column * tokens + i;
      });
      if (tokens > 1 && width > 1)
        add(fmt::format("{} lay in memory column by column", name_of(slot)), std::move(other));
    }
    tokens_before_heads();
  }
  /// The layout of other libraries: [batch, tokens, heads, width].
  void tokens_before_heads() {
    const auto by_token = [](const Tensor& tensor) {
      const Shape shape = tensor.shape();
      const std::int64_t heads = shape[1], tokens = shape[2], width = shape[3], entry = heads * tokens * width;
      return gathered(tensor, [=](std::int64_t e) {
        const std::int64_t h = e % entry / (tokens * width), i = e % (tokens * width) / width;
        return e / entry * entry + (i * heads + h) * width + e % width;
      });
    };
    if (e_.heads == 1 && e_.kv_heads == 1 && e_.queries == 1 && e_.keys == 1) return;
    Case other = c_;
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) other[slot] = by_token(c_[slot]);
    add("tensors lay in memory as [batch, tokens, heads, width]", other, by_token);
    add("the output were asked for as [batch, tokens, heads, width]", c_, by_token);
    // Whoever takes the extents from the shape finds other ones, too.
    if (e_.queries != e_.keys || c_.mask().present() || c_[Slot::keep].present()) return;
    const auto exchanged = [](const Tensor& tensor) {
      const Shape shape = tensor.shape();
      Tensor turned(tensor.dtype(), {shape[0], shape[2], shape[1], shape[3]});
      for (std::int64_t e = 0; e < turned.elements(); ++e) {
        const auto [b, i, h, column] = turned.shape().index_of(e);
        turned.set(e, tensor.at(b, h, i, column));
      }
      return turned;
    };
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) other[slot] = exchanged(c_[slot]);
    add("shapes were [batch, tokens, heads, width]", std::move(other), exchanged);
  }

  const Case& c_;
  const Extents e_;
  std::vector<Misreading> found_;
};

/// Are there factors for each head and row?
bool factors_serve(const Case& problem) {
  return std::ranges::all_of(std::array{Slot::q, Slot::k, Slot::v}, [&](Slot tensor) {
    const Tensor& factors = problem[descale_of(tensor)];
    if (!factors.present()) return true;
    const Shape &shape = factors.shape(), &of = problem[tensor].shape();
    const std::int64_t block = tensor == Slot::q ? problem.q_descale_block : problem.kv_descale_block;
    const bool serve = (shape[0] == 1 || shape[0] == of[0]) && (shape[1] == 1 || shape[1] == of[1]);
    return serve && (shape[2] == 1 || shape[2] * block >= of[2]);
  });
}

/// Are there sinks, slopes, factors and what keep says for each of its heads? Axes that are read as others may leave
/// more heads than there are of these, or other rows.
bool serves_its_axes(const Case& problem) {
  const Tensor &sinks = problem[Slot::sink], &keep = problem[Slot::keep], &slopes = problem[Slot::alibi_slopes];
  if (sinks.present() && sinks.elements() != heads_of(problem)) return false;
  if (!factors_serve(problem)) return false;
  const auto serves = [](std::int64_t pages, std::int64_t all) { return pages == 1 || pages == all; };
  if (slopes.present() && (slopes.shape()[1] != heads_of(problem) || !serves(slopes.shape()[0], batch_of(problem))))
    return false;
  if (!keep.present()) return true;
  const Shape& shape = keep.shape();
  return serves(shape[0], batch_of(problem)) && serves(shape[1], heads_of(problem)) &&
         shape[2] == queries_of(problem) && shape[3] == keys_of(problem);
}

/// How an answer fares as one to that problem.
Outcome outcome_as(const Case& problem, const Tensor& out, const Arithmetic& arithmetic) {
  if (out.shape() != problem.out_shape() || !serves_its_axes(problem)) return Outcome::violated;
  return judge_attention(problem, out, Tensor(), arithmetic).outcome;
}

/// "16", "16 or 32", "16, 32 or 64".
std::string either(const std::vector<std::string>& sizes) {
  std::string text;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == sizes.size() ? " or " : ", ", sizes[i]);
  return text;
}

/// A reading that the kernel's wrong answers so far are right answers to.
struct Fitting {
  std::string words;
  std::int64_t size = 0;
  std::size_t right = 0;                      ///< in how many cases the answer is right
  std::size_t far = 0;                        ///< and far from right as one to the case itself
  std::vector<std::ptrdiff_t> problems = {};  ///< of each case; the same number of those that read it the same
};

/// Each once; one that fits with several sizes with all of them, where they are the same problems. Where they are not,
/// at most one of them can be what the kernel does: then the bounds tell none of them from the others, and a reading
/// that cannot be told from a wrong one is none.
std::vector<std::string> told(const std::vector<Fitting>& fitting) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < fitting.size(); ++i) {
    const Fitting& one = fitting[i];
    const auto alike = [&](const Fitting& other) { return other.words == one.words; };
    if (std::any_of(fitting.begin(), fitting.begin() + static_cast<std::ptrdiff_t>(i), alike)) continue;
    std::vector<std::string> sizes;
    bool same = true;
    for (const Fitting& other : fitting) {
      if (!alike(other)) continue;
      sizes.push_back(std::to_string(other.size));
      same = same && other.problems == one.problems;
    }
    if (!same) continue;
    std::string words = one.words;
    if (const std::size_t at = words.find('#'); at != std::string::npos) words.replace(at, 1, either(sizes));
    all.push_back(std::move(words));
  }
  return all;
}

}  // namespace

Case with_kv_heads(const Case& c, const std::function<std::int64_t(std::int64_t head)>& kv_head) {
  const std::int64_t heads = heads_of(c);
  Case expanded = c;
  for (const Slot slot : {Slot::k, Slot::v}) {
    const Tensor& narrow = c[slot];
    const Shape shape = narrow.shape();
    const std::int64_t page = shape[2] * shape[3];
    Tensor wide(narrow.dtype(), shape.with(1, heads));
    for (std::int64_t e = 0; e < wide.elements(); ++e) {
      const std::int64_t head = e / page;
      wide.set(e, narrow[(head / heads * shape[1] + kv_head(head % heads)) * page + e % page]);
    }
    expanded[slot] = std::move(wide);
    // A head's factors go with it.
    const Tensor& factors = c[descale_of(slot)];
    if (!factors.present() || factors.shape()[1] == 1) continue;
    const Shape of_heads = factors.shape().with(1, heads);
    expanded[descale_of(slot)] = mapped(Tensor(factors.dtype(), of_heads), [&](std::int64_t e, double) {
      const std::int64_t head = e / of_heads[2];
      return factors.at(head / heads, kv_head(head % heads), e % of_heads[2]);
    });
  }
  return expanded;
}

namespace {

/// A case that the kernel answers wrong.
struct Wrong {
  const Case* value;
  Tensor out;
  /// The error is several times what is allowed. A little beyond the bound a narrower format lies as well, and another
  /// problem that is nearly the same.
  bool far;
};

std::vector<Wrong> wrong_answers(Kernel& kernel, std::span<const Case> cases) {
  constexpr double several = 4;
  std::vector<Wrong> wrong;
  for (const Case& c : cases) {
    const Extents e = extents_of(c);
    if (c.operation != Operation::attention || e.queries == 0 || e.keys == 0) continue;
    if (e.batch * e.heads * e.queries * e.keys * (e.dk + e.dv) > most_products) continue;
    Reply reply = kernel.run(c);
    if (reply.status != CallStatus::ok || !reply.out.present()) continue;
    const Verdict verdict = judge_attention(c, reply.out, Tensor(), kernel.manifest().arithmetic_for(c));
    if (verdict.outcome == Outcome::violated)
      wrong.push_back({&c, std::move(reply.out), !(verdict.utilisation < several)});
  }
  return wrong;
}

/// Narrows the readings that fitted all wrong cases so far, those of one case after another.
class Narrowing {
 public:
  /// Every reading of a case, whether its answer is right, says nothing, or is wrong; `problem`: the same number of
  /// those that are the same problem.
  struct Read {
    std::string words;
    std::int64_t size;
    Outcome outcome;
    std::ptrdiff_t problem;
  };
  [[nodiscard]] bool still_fits(const std::string& words, std::int64_t size) const {
    return !found_ || find(words, size) != found_->end();
  }
  /// `counts`: whether the answer was wrong. A right one has to fit, too, and says nothing for a reading.
  void add(const std::vector<Read>& readings, bool far, bool counts = true) {
    std::vector<Fitting> fitting;
    for (const Read& one : readings) {
      if (!still_fits(one.words, one.size)) continue;
      Fitting fits{.words = one.words, .size = one.size};
      if (found_) fits = *find(one.words, one.size);
      // A case of which the other problem says nothing, as it hides all keys, say, speaks neither for it nor against.
      if (one.outcome != Outcome::held && one.outcome != Outcome::excused) continue;
      if (one.outcome == Outcome::held && counts) ++fits.right, fits.far += far ? 1 : 0;
      fits.problems.push_back(one.problem);
      fitting.push_back(std::move(fits));
    }
    found_ = std::move(fitting);
    cases_ += counts ? 1 : 0;
  }
  [[nodiscard]] bool is_over() const { return found_ && found_->empty(); }
  [[nodiscard]] std::vector<std::string> words() {
    if (!found_) return {};
    std::erase_if(*found_, [&](const Fitting& one) {
      // A row of zeros may be one that sees no key.
      const std::size_t enough = one.words == zero_values ? 4 : std::min<std::size_t>(cases_, 2);
      return one.right < enough || 2 * one.far < one.right;
    });
    return told(*found_);
  }

 private:
  [[nodiscard]] std::vector<Fitting>::const_iterator find(const std::string& words, std::int64_t size) const {
    return std::ranges::find_if(*found_, [&](const Fitting& old) { return old.words == words && old.size == size; });
  }

  std::optional<std::vector<Fitting>> found_;  ///< nothing before the first case
  std::size_t cases_ = 0;
};

/// The sequences that are answered wrong, each as a case of its own, of which `kept` is the memory.
std::vector<Wrong> taken_apart(std::vector<Wrong> wrong, const Manifest& manifest, std::deque<Case>& kept) {
  std::vector<Wrong> parts;
  for (Wrong& one : wrong) {
    if (!has_sequences(*one.value)) {
      parts.push_back(std::move(one));
      continue;
    }
    for (std::int64_t s = 0; s < sequence_count(*one.value); ++s) {
      const Sequence own = sequence_of(*one.value, s);
      if (own.queries == 0 || own.keys == 0) continue;
      const Case& part = kept.emplace_back(alone(*one.value, s));
      Tensor out = rows_of_sequence(one.out, *one.value, s);
      if (outcome_as(part, out, manifest.arithmetic_for(part)) == Outcome::violated)
        parts.push_back({&part, std::move(out), one.far});
    }
  }
  return parts;
}

std::vector<Misreading> readings_of_sequences(const Case& c) {
  std::vector<Misreading> readings;
  for (MisreadSequences& reading : misread_sequences(c))
    readings.push_back({.words = std::move(reading.words),
                        .size = 0,
                        .is_told = reading.problem.has_value(),
                        .problem = reading.problem ? *std::move(reading.problem) : c});
  return readings;
}

std::vector<std::string> misread_problem(const std::vector<Wrong>& wrong, const Manifest& manifest,
                                         std::vector<Misreading> (*readings_of)(const Case& c)) {
  Narrowing narrowing;
  for (const Wrong& one : wrong) {
    const std::vector<Misreading> readings = readings_of(*one.value);
    std::vector<Narrowing::Read> read;
    for (const Misreading& reading : readings) {
      if (!narrowing.still_fits(reading.words, reading.size)) continue;
      const auto same = std::ranges::find_if(readings, [&](const Misreading& other) {
        return other.words == reading.words &&
               static_cast<const Problem&>(other.problem) == static_cast<const Problem&>(reading.problem);
      });
      const Outcome outcome =
          !reading.is_told ? Outcome::excused
                           : outcome_as(reading.problem, reading.rearranged ? reading.rearranged(one.out) : one.out,
                                        manifest.arithmetic_for(*one.value));
      read.push_back({reading.words, reading.size, outcome, same - readings.begin()});
    }
    narrowing.add(read, one.far);
    if (narrowing.is_over()) break;
  }
  return narrowing.words();
}

/// The same of rows alone.
std::vector<std::string> misread_rows(const std::vector<Wrong>& wrong, const Manifest& manifest) {
  Narrowing narrowing;
  // The numbers of a reading are rounded to f64, which is no less than what is allowed of answers in it.
  const bool narrow = std::ranges::any_of(wrong, [](const Wrong& one) { return one.value->dtype() != DType::f64; });
  // When a sink comes into a row's sum is every kernel's own affair: rows without one tell of the others.
  const auto sinks = [](const Wrong& one) { return has_variant(*one.value, sink_variant.name); };
  const bool plain = !std::ranges::all_of(wrong, sinks);
  for (const Wrong& one : wrong) {
    if ((narrow && one.value->dtype() == DType::f64) || (plain && sinks(one))) continue;
    const Arithmetic& arithmetic = manifest.arithmetic_for(*one.value);
    for (const ExaminedRow& place : rows_to_look_at(*one.value, one.out, arithmetic)) {
      const std::vector<RowReading> readings = readings_of_row(*one.value, place);
      if (readings.empty()) continue;
      const Tensor row = row_of(one.out, place);
      std::vector<Narrowing::Read> read;
      for (const RowReading& reading : readings) {
        if (!narrowing.still_fits(reading.words, reading.size)) continue;
        const auto same = std::ranges::find_if(readings, [&](const RowReading& other) {
          return other.words == reading.words &&
                 static_cast<const Problem&>(other.problem) == static_cast<const Problem&>(reading.problem);
        });
        read.push_back(
            {reading.words, reading.size, outcome_as(reading.problem, row, arithmetic), same - readings.begin()});
      }
      narrowing.add(read, one.far, place.is_wrong);
      if (narrowing.is_over()) return {};
    }
  }
  return narrowing.words();
}

}  // namespace

std::vector<std::string> misreadings_of(Kernel& kernel, std::span<const Case> cases) {
  const std::vector<Wrong> wrong = wrong_answers(kernel, cases);
  if (wrong.empty()) {
    const std::optional<std::string> lse = misread_lse(kernel, cases);
    return lse ? std::vector{*lse} : std::vector<std::string>();
  }
  const auto of_one_sequence = [](const Case& c) { return Misreadings(c).take(); };
  std::deque<Case> kept;
  const std::vector<Wrong> parts = taken_apart(wrong, kernel.manifest(), kept);
  std::vector<std::string> words;
  // What is wrong of sequences alone is said of them: of one that is taken apart, its last key is the last of all.
  if (std::ranges::all_of(wrong, [](const Wrong& one) { return has_sequences(*one.value) || is_in_cache(*one.value); }))
    words = misread_problem(wrong, kernel.manifest(), readings_of_sequences);
  if (words.empty()) words = misread_problem(parts, kernel.manifest(), of_one_sequence);
  if (words.empty()) words = misread_rows(parts, kernel.manifest());
  if (!words.empty()) return words;
  const auto not_finite = std::ranges::find_if(wrong, [](const Wrong& one) {
    for (std::int64_t at = 0; at < one.out.elements(); ++at)
      if (!std::isfinite(one.out[at])) return true;
    return false;
  });
  if (not_finite == wrong.end()) return {};
  const std::optional<std::string> exp = overflowing_exp(kernel, *not_finite->value);
  return exp ? std::vector{*exp} : std::vector<std::string>();
}

}  // namespace attest

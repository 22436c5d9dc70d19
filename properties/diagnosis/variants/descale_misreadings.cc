#include "properties/diagnosis/variants/descale_misreadings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/pair_product.h"
#include "properties/diagnosis/variants/alibi_misreadings.h"

namespace attest {
namespace {

constexpr std::array tensors{Slot::q, Slot::k, Slot::v};
/// Kernels take so many rows or keys at a time.
constexpr std::int64_t tiles[] = {16, 32, 64, 128};

class DescaleReadings {
 public:
  explicit DescaleReadings(const Case& c) : c_(c), group_(heads_of(c) / std::max<std::int64_t>(c.k().shape()[1], 1)) {
    for (const Slot tensor : tensors) {
      if (!has(tensor)) continue;
      Case without = c;
      without[descale_of(tensor)] = Tensor();
      settle_blocks(without);
      add(fmt::format("there were no factors of {}", name_of(tensor)),
          fmt::format(R"(Leave "{}" out of "tensors" of "descale" in "variants".)", name_of(tensor)),
          std::move(without));
    }
    Case none = c;
    drop_variant(none, descale_variant.name);
    add("there were no factors", R"(Leave "descale" out of "variants".)", std::move(none));
    other_sizes();
    other_tensors();
    first_ones();
    if (group_ > 1 && has(Slot::q)) groups();
    if (std::ranges::any_of(tensors, [&](Slot tensor) { return has_blocks(c_, tensor); })) blocks();
    if (has(Slot::q) || has(Slot::k)) beside_others();
  }
  [[nodiscard]] std::vector<MisreadDescale> take() { return std::move(found_); }

 private:
  [[nodiscard]] bool has(Slot tensor) const { return c_[descale_of(tensor)].present(); }
  [[nodiscard]] double own(const FactorPlace& at) const { return factor_of(c_, at.tensor, at.batch, at.head, at.row); }
  /// Of the nearest row that there is.
  [[nodiscard]] double own_of_row(FactorPlace at, std::int64_t row) const {
    at.row = std::clamp<std::int64_t>(row, 0, std::max<std::int64_t>(c_[at.tensor].shape()[2] - 1, 0));
    return own(at);
  }
  [[nodiscard]] std::int64_t block_of(Slot tensor) const {
    return tensor == Slot::q ? c_.q_descale_block : c_.kv_descale_block;
  }

  void add(std::string words, std::string remedy, Case problem) {
    found_.push_back({.words = std::move(words), .remedy = std::move(remedy), .problem = std::move(problem)});
  }
  /// None where f32 does not hold one, or all are the case's own.
  void add_factors(std::string words, std::string remedy, const FactorAt& factor, std::int64_t size = 0) {
    bool are_factors = true;
    Case other = with_factors(c_, [&](const FactorPlace& at) {
      const double one = round_to(DType::f32, factor(at));
      are_factors = are_factors && one > 0 && std::isfinite(one);
      return one;
    });
    if (!are_factors || have_the_same_factors(c_, other)) return;
    add(std::move(words), std::move(remedy), std::move(other));
    found_.back().size = size;
  }
  /// Of each tensor, and of all: "factors{} counted twice" is said of "factors of q". Where one alone has factors, that
  /// is one problem, and first what is said of least.
  void add_of_each(std::string_view words, const std::string& remedy, const FactorAt& factor) {
    for (const Slot tensor : tensors)
      if (has(tensor))
        add_factors(fmt::format(fmt::runtime(words), fmt::format(" of {}", name_of(tensor))), remedy,
                    [&](const FactorPlace& at) { return at.tensor == tensor ? factor(at) : own(at); });
    add_factors(fmt::format(fmt::runtime(words), ""), remedy, factor);
  }

  void other_sizes() {
    add_of_each("factors{} divided, and did not multiply", "In the adapter: pass 1 divided by the factor.",
                [&](const FactorPlace& at) { return 1 / own(at); });
    add_of_each("factors{} counted twice",
                "In the adapter: pass the factors with the numbers as they come, which are not multiplied yet.",
                [&](const FactorPlace& at) { return own(at) * own(at); });
  }

  /// Of heads of q beside those of k: a head has the factor of its key-value head, which has that of its group's first.
  /// Without blocks the product of the two is the right one, or groups() says what it is.
  void other_tensors() {
    if (has(Slot::q) && has(Slot::k) && (has_blocks(c_, Slot::q) || has_blocks(c_, Slot::k)))
      add_factors("factors of q and k were exchanged",
                  "In the adapter: pass q_descale and k_descale in each other's place.", [&](const FactorPlace& at) {
                    if (at.tensor == Slot::v) return own(at);
                    const bool of_q = at.tensor == Slot::q;
                    return own_of_row({.tensor = of_q ? Slot::k : Slot::q,
                                       .batch = at.batch,
                                       .head = of_q ? at.head / group_ : at.head * group_},
                                      at.row);
                  });
    if (!has(Slot::k) || !has(Slot::v)) return;
    const auto of = [&](FactorPlace at, Slot tensor) {
      at.tensor = tensor;
      return own(at);
    };
    const std::string differ = "In the adapter: raise Unsupported where k_descale and v_descale differ.";
    add_factors("factors of k and v were exchanged",
                "In the adapter: pass k_descale and v_descale in each other's place.", [&](const FactorPlace& at) {
                  return at.tensor == Slot::q ? own(at) : of(at, at.tensor == Slot::k ? Slot::v : Slot::k);
                });
    add_factors("values had the factors of keys", differ,
                [&](const FactorPlace& at) { return at.tensor == Slot::v ? of(at, Slot::k) : own(at); });
    add_factors("keys had the factors of values", differ,
                [&](const FactorPlace& at) { return at.tensor == Slot::k ? of(at, Slot::v) : own(at); });
  }

  void first_ones() {
    add_of_each("every head{} had the factors of the first", R"(State "per_head": false of "descale" in "variants".)",
                [&](FactorPlace at) {
                  at.head = 0;
                  return own(at);
                });
    add_of_each("every batch entry{} had the factors of the first",
                R"(State "per_batch": false of "descale" in "variants".)", [&](FactorPlace at) {
                  at.batch = 0;
                  return own(at);
                });
    add_of_each("every block{} had the factor of the first",
                R"(Leave "q_blocks", "kv_blocks" and "blocks" out of "descale" in "variants".)", [&](FactorPlace at) {
                  at.row = 0;
                  return own(at);
                });
  }

  /// FlashAttention 3 has factors of q for each key-value head.
  void groups() {
    const auto of_head = [&](std::string words, std::string remedy,
                             const std::function<std::int64_t(std::int64_t)>& head) {
      add_factors(std::move(words), std::move(remedy), [&](FactorPlace at) {
        if (at.tensor == Slot::q) at.head = head(at.head);
        return own(at);
      });
    };
    of_head("a head of q had the factor at the place of its key-value head",
            "In the adapter: pass q_descale of each group's first head, and raise Unsupported where a group's differ.",
            [&](std::int64_t h) { return h / group_; });
    of_head("the heads of a group had the factor of its first",
            "In the adapter: raise Unsupported where factors of q differ within a group.",
            [&](std::int64_t h) { return h / group_ * group_; });
  }

  /// Rows without blocks of their own have one factor, whatever row is asked.
  void blocks() {
    const std::string none = R"(Leave "q_blocks", "kv_blocks" and "blocks" out of "descale" in "variants".)";
    const auto by_row = [&](std::string words, const std::function<std::int64_t(const FactorPlace&)>& row,
                            std::int64_t size = 0) {
      add_factors(std::move(words), none, [&](const FactorPlace& at) { return own_of_row(at, row(at)); }, size);
    };
    by_row("blocks began one row early", [](const FactorPlace& at) { return at.row + 1; });
    by_row("blocks began one row late", [](const FactorPlace& at) { return at.row - 1; });
    by_row("as many rows were shared out to each block", [&](const FactorPlace& at) {
      const std::int64_t count = c_[descale_of(at.tensor)].shape()[2];
      return at.row * count / c_[at.tensor].shape()[2] * block_of(at.tensor);
    });
    by_row("blocks of q were as long as those of k and v, and these as long as those of q", [&](const FactorPlace& at) {
      const std::int64_t other = block_of(at.tensor == Slot::q ? Slot::k : Slot::q);
      return other == 0 ? at.row : at.row / other * block_of(at.tensor);
    });
    // Longer ones than there are rows are the first of them.
    std::int64_t most = 0;
    for (const Slot tensor : tensors)
      if (has_blocks(c_, tensor)) most = std::max(most, c_[tensor].shape()[2]);
    for (const std::int64_t tile : tiles)
      if (tile < most)
        by_row(
            "blocks had # rows each", [&](const FactorPlace& at) { return at.row / tile * block_of(at.tensor); }, tile);
  }

  /// Of a row of q and a key, beside what slopes add: slope_term says it of the same pair.
  void beside_others() {
    const auto factor = [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
      return factor_of(c_, Slot::q, b, h, i) * factor_of(c_, Slot::k, b, kv_head_of(c_, h), j);
    };
    if (c_.softcap > 0) {
      bool finite = true;
      Case other = with_slope_terms(c_, [&](const SlopePlace& at) {
        const double times = factor(at.batch, at.head, at.row, at.key), of_both = scaled_product(at),
                     t = of_both / times;
        const double added =
            times * capped(t, c_.softcap) - of_both + slope_term(c_, at.batch, at.head, at.row, at.key);
        finite = finite && std::isfinite(added);
        return added;
      });
      drop_variant(other, softcap_variant.name);
      if (finite)
        add("the cap were taken before the factors", R"(State "excludes": ["softcap"] of "descale" in "variants".)",
            std::move(other));
    }
    const Tensor& mask = c_.mask();
    if (!mask.present() || mask.dtype() == DType::boolean) return;
    Case other = c_;
    other[Slot::mask] = Tensor(DType::f64, {batch_of(c_), heads_of(c_), queries_of(c_), keys_of(c_)});
    other[Slot::mask] = mapped(other.mask(), [&](std::int64_t e, double) {
      const auto [b, h, i, j] = other.mask().shape().index_of(e);
      return mask_entry(mask, b, h, i, j) * factor(b, h, i, j);
    });
    add("the mask were multiplied by the factors", R"(State "excludes": ["additive-mask"] of "descale" in "variants".)",
        std::move(other));
  }
  [[nodiscard]] double scaled_product(const SlopePlace& at) const {
    return c_.scale * static_cast<double>(product_of_pair(c_, at.batch, at.head, at.row, at.key));
  }

  const Case& c_;
  const std::int64_t group_;
  std::vector<MisreadDescale> found_;
};

}  // namespace

std::vector<MisreadDescale> misread_descale(const Case& c) {
  return has_variant(c, descale_variant.name) ? DescaleReadings(c).take() : std::vector<MisreadDescale>();
}

Case with_factors(const Case& c, const FactorAt& factor) {
  Case other = c;
  for (const Slot tensor : tensors) {
    if (!c[descale_of(tensor)].present()) continue;
    const Shape& shape = c[tensor].shape();
    const std::int64_t rows = std::max<std::int64_t>(shape[2], 1);
    other[descale_of(tensor)] = mapped(Tensor(DType::f32, {shape[0], shape[1], rows}), [&](std::int64_t e, double) {
      return factor({.tensor = tensor, .batch = e / rows / shape[1], .head = e / rows % shape[1], .row = e % rows});
    });
    (tensor == Slot::q ? other.q_descale_block : other.kv_descale_block) = 1;
  }
  settle_blocks(other);
  return other;
}

bool have_the_same_factors(const Case& a, const Case& b) {
  return std::ranges::all_of(tensors, [&](Slot tensor) {
    const Shape& shape = a[tensor].shape();
    for (std::int64_t row = 0; row < shape[0] * shape[1] * shape[2]; ++row) {
      const std::int64_t entry = row / shape[2] / shape[1], head = row / shape[2] % shape[1], i = row % shape[2];
      if (factor_of(a, tensor, entry, head, i) != factor_of(b, tensor, entry, head, i)) return false;
    }
    return true;
  });
}

}  // namespace attest

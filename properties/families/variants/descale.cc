// descale: factors of q, k and v, whose numbers are in formats that are too narrow for them.
#include "core/problem/descale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/formal.h"
#include "core/kernel/limits.h"
#include "core/problem/fields.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/catalogue/property.h"
#include "properties/families/variants/sequence_laws.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"
#include "properties/language/not_judged.h"
#include "properties/language/numbers.h"

namespace attest {
namespace {

constexpr std::array tensors{Slot::q, Slot::k, Slot::v};

/// factor(place, old) in the place of each of a tensor's.
Case with_factors(Case c, Slot tensor, const std::function<double(std::int64_t, double)>& factor) {
  Tensor& factors = c[descale_of(tensor)];
  if (!factors.present()) return c;
  // A number that stands for a formula in a proof is one of f64.
  const Tensor old = factors;
  factors = mapped(Tensor(in_a_proof() ? DType::f64 : DType::f32, old.shape()),
                   [&](std::int64_t e, double) { return factor(e, old[e]); });
  return c;
}

Case times(const Case& c, Slot tensor, double by) {
  return with_factors(c, tensor, [&](std::int64_t, double old) { return product_of(old, by); });
}

/// Without the factors of a tensor.
Case without_factors_of(Case c, Slot tensor) {
  c[descale_of(tensor)] = Tensor();
  settle_blocks(c);
  return c;
}

/// Powers of two near the factors, so near to 1 that most products with them are numbers of the tensor's format. In a
/// proof the factors themselves.
Case with_powers_of_two(Case c) {
  if (in_a_proof()) return c;
  for (const Slot tensor : tensors)
    c = with_factors(std::move(c), tensor, [](std::int64_t, double old) {
      return std::exp2(std::clamp(std::round(std::log2(old)), -3.0, 3.0));
    });
  return c;
}

/// A power of two other than 1, of the case's own choice; in a proof any number.
double some_power(const Case& c) {
  constexpr std::array powers{0.25, 0.5, 2.0, 4.0};
  if (in_a_proof()) return any_positive_number();
  return powers[static_cast<std::size_t>(argument(c, "power", 4))];
}

/// A number near x whose product with a power of two is one of its format, as x is; in a proof x.
double multipliable(DType dtype, double x, double power) {
  const auto is_number = [&](double y) { return std::isnan(y) || round_to(dtype, y) == y; };
  if (in_a_proof() || is_number(x * power)) return x;
  if (dtype == DType::i8) return power > 1 ? std::trunc(x / power) : std::trunc(x * power) / power;
  return power > 1 ? round_to(dtype, x / power) : round_to(dtype, x * power) / power;
}

// q, k and v times their factors, without these.
Verdict equals_multiplied(Kernel& kernel, const Case& given) {
  Case c = with_powers_of_two(given), plain = c;
  for (const Slot tensor : tensors) {
    if (!c[descale_of(tensor)].present()) continue;
    const Shape& shape = c[tensor].shape();
    const auto factor = [&](std::int64_t e) {
      const auto [b, h, i, x] = shape.index_of(e);
      return factor_of(c, tensor, b, h, i);
    };
    c[tensor] =
        mapped(c[tensor], [&](std::int64_t e, double old) { return multipliable(c[tensor].dtype(), old, factor(e)); });
    plain[tensor] = mapped(c[tensor], [&](std::int64_t e, double old) { return product_of(old, factor(e)); });
  }
  drop_variant(plain, descale_variant.name);
  return same(run_with_lse(kernel, c), run_with_lse(kernel, plain), Match::bound);
}

// Factors of 1 are none.
Verdict ones(Kernel& kernel, const Case& given) {
  Case c = given;
  for (const Slot tensor : tensors) c = with_factors(std::move(c), tensor, [](std::int64_t, double) { return 1.0; });
  Case plain = given;
  drop_variant(plain, descale_variant.name);
  return same(run_with_lse(kernel, c), run_with_lse(kernel, plain), Match::bound);
}

// A factor that all of q have, or all of k, multiplies the scale as well as them.
Verdict into_scale(Kernel& kernel, const Case& given) {
  const bool both = given[Slot::q_descale].present() && given[Slot::k_descale].present();
  const Slot tensor = both                               ? (argument(given, "tensor", 2) == 0 ? Slot::q : Slot::k)
                      : given[Slot::q_descale].present() ? Slot::q
                                                         : Slot::k;
  Case c = with_powers_of_two(given);
  set_block(c, tensor == Slot::q, 0);
  c[descale_of(tensor)] = of_first_head(first_row(c[descale_of(tensor)]));
  Case scaled = without_factors_of(c, tensor);
  scaled.scale = product_of(c.scale, c[descale_of(tensor)][0]);
  return same(run_with_lse(kernel, within_reach(kernel, c)), run_with_lse(kernel, within_reach(kernel, scaled)),
              Match::bound);
}

// What q's factors are larger by and k's smaller by changes nothing.
Verdict only_the_product(Kernel& kernel, const Case& c) {
  const double by = some_power(c);
  return same(run_with_lse(kernel, c), run_with_lse(kernel, times(times(c, Slot::q, by), Slot::k, inverse_of(by))),
              Match::bound);
}

// What v's factors are larger by the output is.
Verdict linear_in_values(Kernel& kernel, const Case& c) {
  const double by = some_power(c);
  return agree({Numbers(run(kernel, times(c, Slot::v, by))), Numbers(run(kernel, c)).scaled(by)});
}

// lse has nothing of v's factors.
Verdict lse_without_values(Kernel& kernel, const Case& c) {
  if (std::string why = why_no_lse(kernel.manifest(), c); !in_a_proof() && !why.empty()) return skipped(std::move(why));
  const Result with = run_with_lse(kernel, c), without = run_with_lse(kernel, without_factors_of(c, Slot::v));
  return agree_in_lse_in_domain({with, without}, Match::bound);
}

// A block's factor is that of each of its rows, or keys.
Verdict blocks(Kernel& kernel, const Case& c) {
  Case each = c;
  spread_factors(each, true, true);
  return same(run_with_lse(kernel, c), run_with_lse(kernel, within_reach(kernel, each)), Match::bound);
}

// Head h of entry b has the factors that are given for it, and no other's.
Verdict as_given(Kernel& kernel, const Case& c) {
  const std::int64_t b = argument(c, "b", batch_of(c)), h = argument(c, "h", heads_of(c));
  const Case alone = within_reach(kernel, with_heads(with_batch(c, {b}), {h}));
  return same(run_with_lse(kernel, c).batch({b}).heads({h}), run_with_lse(kernel, alone), Match::bound);
}

/// Of which blocks of keys row i sees one, in any entry and head.
std::vector<bool> blocks_seen(const Case& c, std::int64_t i) {
  const std::int64_t N = keys_of(c), block = std::max<std::int64_t>(c.kv_descale_block, 1);
  std::vector<bool> sees(static_cast<std::size_t>((N + block - 1) / block), false);
  for (std::int64_t b = 0; b < batch_of(c); ++b)
    for (std::int64_t h = 0; h < heads_of(c); ++h)
      for (std::int64_t j = 0; j < N; ++j)
        if (!hidden(c, b, h, i, j)) sees[static_cast<std::size_t>(j / block)] = true;
  return sees;
}

// Row i has nothing of the factors of blocks that it sees no key of.
Verdict hidden_blocks(Kernel& kernel, const Case& c) {
  const std::int64_t rows = queries_of(c), first = argument(c, "i", std::max<std::int64_t>(rows, 1));
  if (rows == 0) return {};
  // One that sees keys of all of them has nothing to show: the row after it, then.
  std::int64_t i = first;
  std::vector<bool> sees = blocks_seen(c, i);
  for (std::int64_t next = 1; next < rows && std::ranges::all_of(sees, std::identity()); ++next)
    i = (first + next) % rows, sees = blocks_seen(c, i);
  Case changed = c;
  bool any = false;
  for (const Slot tensor : {Slot::k, Slot::v}) {
    if (!has_blocks(c, tensor)) continue;
    const std::int64_t count = c[descale_of(tensor)].shape()[2];
    changed = with_factors(std::move(changed), tensor, [&](std::int64_t e, double old) {
      if (sees[static_cast<std::size_t>(e % count)]) return old;
      any = true;
      return product_of(old, in_a_proof() ? any_positive_number() : 4);
    });
  }
  if (!any) return excused("every row sees a key of every block");
  const Result left = run_with_lse(kernel, changed).queries({i}), right = run_with_lse(kernel, c).queries({i});
  return worse_of({agree_in_domain({left, right}, Match::bound), agree_in_lse_in_domain({left, right}, Match::bound)});
}

void blocked(Recipe& r) {
  r.queries = std::clamp(r.queries, 2, 200), r.keys = std::clamp(r.keys, 2, 300);
}
void heads_and_entries(Recipe& r) {
  if (r.heads == 1) r.heads = r.kv_heads = 2;
  if (r.batch == 1 && !r.large) r.batch = 2;
}
void hides_keys(Recipe& r) {
  if (r.mask == MaskKind::none && r.causal == Causal::none)
    r.causal = r.seed % 2 == 0 ? Causal::top_left : Causal::bottom_right;
  // A few rows see keys of each of so large blocks as kernels have, whatever is hidden.
  if (!r.large && r.seed / 2 % 4 == 0)
    r.queries = r.keys = std::max(r.keys, 17 + static_cast<std::int32_t>(r.seed / 8 % 64));
}

constexpr std::array any_factors{defining(hypotheses::descale, "there is nothing to speak of then")};
constexpr std::array of_scores{defining(hypotheses::descale_of_scores, "there is no factor to move then"),
                               needed(hypotheses::added_after_scale, "the scale multiplies what is added before it")};
constexpr std::array of_both{defining(hypotheses::descale_of_both, "there is no product of factors then")};
constexpr std::array of_values{defining(hypotheses::descale_of_values, "there is nothing to speak of then")};
constexpr std::array in_blocks{defining(hypotheses::descale_blocks, "there is no block then")};

constexpr std::string_view others = "window chunk lengths packed left_pad sink softcap dropout alibi";

const Property family[] = {
    {.name = "descale.equals-multiplied",
     .statement = "factors f are q, k and v times f",
     .source = "+",
     .needs = "attention, descale",
     .floating_point = "bound, of powers of two",
     .variant = "descale",
     .under = others,
     .hypotheses = any_factors,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_later_arguments().with_descale();
     },
     .check = equals_multiplied},
    {.name = "descale.ones",
     .statement = "f = 1 is no factor",
     .source = "+",
     .needs = "attention, descale",
     .floating_point = "bound",
     .variant = "descale",
     .under = others,
     .hypotheses = any_factors,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_later_arguments().with_descale();
     },
     .check = ones},
    {.name = "descale.into-scale",
     .statement = "one factor f of all of q, or of all of k, is the scale times f",
     .source = "+",
     .needs = "attention, descale",
     .floating_point = "bound, of powers of two",
     .variant = "descale",
     .under = others,
     .hypotheses = of_scores,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .with_later_arguments()
           .with_descale(FactorKind::of_scores)
           .where([](Recipe& r) { r.convention = MaskConvention::post_scale; });
     },
     .check = into_scale},
    {.name = "descale.only-the-product",
     .statement = "q's factors times a and k's over a change nothing",
     .source = "+",
     .needs = "attention, descale",
     .floating_point = "bound, of powers of two",
     .variant = "descale",
     .under = others,
     .hypotheses = of_both,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_later_arguments().with_descale(FactorKind::of_both);
     },
     .check = only_the_product},
    {.name = "descale.linear-in-values",
     .statement = "v's factors times a are the output times a",
     .source = "+",
     .needs = "attention, descale",
     .floating_point = "bound, of powers of two",
     .variant = "descale",
     .under = others,
     .hypotheses = of_values,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_later_arguments().with_descale(FactorKind::of_values);
     },
     .check = linear_in_values},
    {.name = "descale.lse-without-values",
     .statement = "lse has nothing of v's factors",
     .source = "+",
     .needs = "attention, descale, lse",
     .floating_point = "bound",
     .variant = "descale",
     .under = others,
     .hypotheses = of_values,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_later_arguments().with_descale(FactorKind::of_values);
     },
     .check = lse_without_values},
    {.name = "descale.blocks",
     .statement = "a block's factor is that of each of its rows of q, or of its keys: row i has that of block ⌊i/B⌋",
     .source = "+",
     .needs = "attention, descale",
     .floating_point = "bound",
     .variant = "descale",
     .under = others,
     .hypotheses = in_blocks,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .where(blocked)
           .with_later_arguments()
           .with_descale(FactorKind::in_blocks);
     },
     .check = blocks},
    {.name = "descale.as-given",
     .statement =
         "a head of an entry has the factors that are given for it, and no other: query head h those of its own, "
         "and of its key-value head",
     .source = "+",
     .needs = "attention, descale",
     .floating_point = "bound",
     .variant = "descale",
     .under = "window chunk lengths left_pad sink softcap dropout alibi",
     .hypotheses = any_factors,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(heads_and_entries).with_later_arguments().with_descale();
     },
     .check = as_given},
    {.name = "descale.hidden-blocks",
     .statement = "o_i, lse_i have nothing of the factors of blocks of which row i sees no key",
     .source = "+",
     .needs = "attention, descale",
     .floating_point = "bound",
     .variant = "descale",
     .under = "window chunk sink softcap dropout alibi",
     .hypotheses = in_blocks,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .where(blocked)
           .where(hides_keys)
           .with_later_arguments()
           .with_descale(FactorKind::in_blocks);
     },
     .check = hidden_blocks},
};

}  // namespace

std::span<const Property> descale_properties() {
  return family;
}

}  // namespace attest

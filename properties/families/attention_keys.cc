// attention: what happens to keys, and to keys and queries together.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/problem/sight.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/shifted.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

Verdict no_keys() {
  return {.outcome = Outcome::excused, .reason = std::string(name_of(Excuse::fully_masked))};
}

/// For every row of the output, of the values `of` given per page of K and V and column.
template <class Value>
std::vector<double> every_row(const Case& c, const Shape& out, Value of) {
  std::vector<double> all;
  for (std::int64_t e = 0; e < out.elements(); ++e) {
    const auto [b, h, i, column] = out.index_of(e);
    all.push_back(of(b * c.v().shape()[1] + kv_head_of(c, h), column));
  }
  return all;
}

// +: N = 1 => o_i = v_1.
Verdict one_key(Kernel& kernel, const Case& c) {
  const Result out = run(kernel, c);
  const std::int64_t dv = out.shape()[3], N = keys_of(c);
  const auto value = [&](std::int64_t page, std::int64_t k) { return c.v()[page * N * dv + k]; };
  return agree({Numbers(out), Numbers(out.shape(), every_row(c, out.shape(), value))});
}

/// o_i is the mean of the values: N o_i = sum_j v_j.
Verdict means_of_values(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c);
  const Result out = run(kernel, c);
  // Column by column as one row of N numbers, whose product with ones is the sum.
  const Shape& o = out.shape();
  std::vector<double> columns;
  for (std::int64_t e = 0; e < o.elements(); ++e) {
    const auto [b, h, i, column] = o.index_of(e);
    for (std::int64_t key = 0; key < N; ++key) columns.push_back(c.v().at(b, kv_head_of(c, h), key, column));
  }
  Numbers values({o.elements(), N}, columns);
  values = values.exact_beside(out.run());
  const Numbers sums = values.times(std::vector<double>(static_cast<std::size_t>(N), 1.0), N, 1).reshaped(o);
  return agree({Numbers(out).scaled(count_of(N)), sums});
}

// +: all keys equal => o_i is the mean of the values.
Verdict equal_keys(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c), dk = c.k().shape()[3];
  if (N == 0) return no_keys();
  const std::int64_t j = argument(c, "j", N);
  Case equal = c;
  equal[Slot::k] = mapped(c.k(), [&](std::int64_t e, double) { return c.k()[(e / dk / N * N + j) * dk + e % dk]; });
  return means_of_values(kernel, equal);
}

// +: repeating every key-value pair r times changes nothing: each in its place, or all of them again behind the others.
Verdict key_duplication(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c), r = 2 + argument(c, "r", 2);
  const bool in_place = argument(c, "in-place", 2) == 1;
  Indices repeated;
  for (std::int64_t e = 0; e < r * N; ++e) repeated.push_back(in_place ? e / r : e % N);
  return agree({run_rows(kernel, with_keys(c, repeated), all_of(queries_of(c))), run(kernel, c)}, Match::bound);
}

// +: k_j -> k_j + c for one c changes nothing.
Verdict key_translation(Kernel& kernel, const Case& c) {
  const TwoCases keys = translated(c, Slot::k);
  return agree({run(kernel, keys.after), run(kernel, keys.before)}, Match::bound);
}

// One key is moved, and the others are not.
Verdict one_key_moves(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c), dk = c.k().shape()[3], s = argument(c, "s", N);
  Case moved = c;
  moved[Slot::k] = mapped(c.k(), [&](std::int64_t e, double old) { return e / dk % N == s ? old + 1 : old; });
  return agree({run(kernel, moved), run(kernel, c)}, Match::bound);
}

constexpr std::array single{
    needed(hypotheses::one_key, "with two keys the output lies between their values"),
    spare(hypotheses::unmasked, "a row that sees its only key has the weight 1 on it whatever is added")};
constexpr std::array alike{
    needed(hypotheses::unmasked, "hidden keys are left out of the mean"),
    needed(hypotheses::equal_keys, "keys of larger scores have larger weights", means_of_values)};
constexpr std::array translated_keys{
    needed(hypotheses::one_translation, "a key that moves alone changes its score alone", one_key_moves)};
constexpr std::array repeated_keys{
    needed(hypotheses::no_causal_form, "the form counts keys, and a row sees other ones of the repeated keys")};

const Property family[] = {
    {.name = "attention.one-key",
     .statement = "N = 1 ⇒ o_i = v_1",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound (a folded exponent or a reciprocal may cost an ulp)",
     .hypotheses = single,
     .given = [](Draw& draw) -> Case { return draw.attention().unmasked().where([](Recipe& r) { r.keys = 1; }); },
     .check = one_key},
    {.name = "attention.equal-keys",
     .statement = "all keys equal ⇒ o_i is the mean of the values",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = alike,
     .given = [](Draw& draw) -> Case { return draw.attention().unmasked(); },
     .check = equal_keys},
    {.name = "attention.key-duplication",
     .statement = "repeating every key-value pair r times changes nothing",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = repeated_keys,
     .given = [](Draw& draw) -> Case { return draw.attention().masked(); },
     .check = key_duplication},
    {.name = "attention.key-translation",
     .statement = "k_j → k_j + c for one c changes nothing",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound",
     .under = "window chunk lengths packed left_pad dropout alibi",
     .hypotheses = translated_keys,
     .given = [](Draw& draw) -> Case { return draw.attention().with_later_arguments(); },
     .check = key_translation},
};

}  // namespace

std::span<const Property> attention_key_properties() {
  return family;
}

}  // namespace attest

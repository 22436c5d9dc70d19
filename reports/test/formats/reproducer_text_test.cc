// The scripts' own computation of what is right, on problems of every kind that they know.
#include "reports/formats/reproducer_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <string_view>

#include "core/oracle/gradients/gradients.h"
#include "core/problem/descale.h"
#include "core/problem/sight.h"
#include "core/test/cases.h"
#include "core/test/says.h"
#include "properties/arrangement/arrange.h"
#include "reports/test/program_checks.h"

namespace attest {
namespace {

std::string changed(std::string text, const std::string& part, const std::string& instead) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part << " in\n" << text;
  return at == std::string::npos ? text : text.replace(at, part.size(), instead);
}

/// Numbers of the two signs, none alike.
Tensor numbers(DType dtype, const Shape& shape, int step) {
  int next = 0;
  return test::filled(dtype, shape, [&] { return (next++ * step % 101 - 50) / 32.0; });
}

struct Asked {
  std::string name;
  Causal causal = Causal::none;
  char mask = '-';  ///< '-': none; 'b': boolean, 'a': additive
  bool pre_scale = false;
  Shape mask_shape{1, 1, 3, 5};
  DType dtype = DType::f32;
  std::int64_t keys = 5;
  double softcap = 0;
  Shape keep{};  ///< of what says which weights are kept; of no axis: nothing does
  double dropout_p = 0;
  Shape slopes{};                   ///< of ALiBi slopes; of no axis: there are none
  Causal alignment = Causal::none;  ///< of slopes and chunks without a causal form
  bool lengths = false;             ///< the second entry has a row and two keys less
  std::int64_t chunk = 0;           ///< of how many keys one is; 0: there are none
  std::int64_t window_left = -1;    ///< beside chunks
  bool padded = false;              ///< one key is before the first entry's own, and none before the second's
  std::string_view factors = "";    ///< of which of q, k and v
  bool own_of_heads = false, own_of_entries = false;
  std::int64_t q_block = 0, kv_block = 0;  ///< so many rows, or keys, have one together; 0: all
  bool whole_numbers = false;              ///< keys and values are some
};

Case problem_of(const Asked& asked) {
  Case c =
      test::attention_of({.batch = 2, .heads = 4, .queries = 3, .keys = asked.keys, .dk = 3, .dv = 2, .kv_heads = 2},
                         [&](Slot slot, const Shape& shape) {
                           return numbers(asked.dtype, shape, slot == Slot::q ? 37 : slot == Slot::k ? 53 : 71);
                         });
  c.scale = 0.75, c.softcap = asked.softcap;
  c.causal = asked.causal;
  if (asked.pre_scale) c.mask_convention = MaskConvention::pre_scale;
  if (asked.mask == 'a') {
    c[Slot::mask] = numbers(asked.dtype, asked.mask_shape, 43);
    // A hidden key, and never all of a row's.
    for (std::int64_t e = 1; e < c.mask().elements(); e += 7) c[Slot::mask].set(e, -INFINITY);
  }
  if (asked.mask == 'b') {
    // 7 divides the entries of no head and of no batch, so that each has others.
    c[Slot::mask] = Tensor(DType::boolean, asked.mask_shape);
    for (std::int64_t e = 0; e < c.mask().elements(); ++e) c[Slot::mask].set(e, e % 7 != 1 && e % 7 != 4 ? 1.0 : 0.0);
  }
  if (asked.keep.rank() > 0) {
    c[Slot::keep] = Tensor(DType::boolean, asked.keep);
    for (std::int64_t e = 0; e < c[Slot::keep].elements(); ++e) c[Slot::keep].set(e, e % 7 < 4 ? 1.0 : 0.0);
    c.dropout_p = asked.dropout_p;
  }
  if (asked.slopes.rank() > 0) c[Slot::alibi_slopes] = numbers(DType::f32, asked.slopes, 29);
  c.attention_chunk = asked.chunk, c.window_left = asked.window_left;
  c.alignment = asked.alignment;
  settle_alignment(c);
  for (const Slot tensor : {Slot::q, Slot::k, Slot::v}) {
    if (asked.factors.find(name_of(tensor)) == std::string_view::npos) continue;
    const Shape& shape = c[tensor].shape();
    const std::int64_t block = tensor == Slot::q ? asked.q_block : asked.kv_block;
    const std::int64_t blocks = block == 0 ? 1 : (shape[2] + block - 1) / block;
    int next = static_cast<int>(tensor);
    c[descale_of(tensor)] =
        test::filled(DType::f32, {asked.own_of_entries ? shape[0] : 1, asked.own_of_heads ? shape[1] : 1, blocks},
                     [&] { return (1 + next++ * 29 % 23) / 12.0; });
    if (asked.whole_numbers && tensor != Slot::q)
      c[tensor] = mapped(Tensor(DType::i8, shape),
                         [old = c[tensor]](std::int64_t e, double) { return std::round(4 * old[e]); });
  }
  c.q_descale_block = asked.q_block, c.kv_descale_block = asked.kv_block;
  settle_blocks(c);
  if (asked.lengths) {
    c[Slot::q_lengths] = Tensor(DType::i32, {2}, std::vector<double>{3, 2});
    c[Slot::kv_lengths] = Tensor(DType::i32, {2}, std::vector<double>{5, 3});
  }
  if (asked.padded) c[Slot::left_pad] = Tensor(DType::i32, {2}, std::vector<double>{1, 0});
  return c;
}

/// Without an element yet.
Reproducer script_about(const Case& c, std::optional<Gradient> gradient = std::nullopt) {
  Reproducer made{.problem = c,
                  .output = c.dtype(),
                  .gradient = gradient,
                  .wrong = {},
                  .ended = {},
                  .kernel = "k",
                  .name = "k",
                  .version = {},
                  .property = "p",
                  .replay = {},
                  .comes_and_goes = {}};
  made.elements = shape_of_answer(made).elements();
  return made;
}

class ReproducerScriptOf : public testing::TestWithParam<Asked> {};

/// Every element's answer by the scripts' own computation against the certified one: a script that forgot a part of the
/// problem, or took another head's, would be seen to differ.
TEST_P(ReproducerScriptOf, ComputesWhatIsRight) {
  const Case c = problem_of(GetParam());
  Reproducer made = script_about(c);
  for (const ElementFacts& facts : exact_elements(c, Arithmetic()))
    made.wrong.push_back({.element = std::ssize(made.wrong), .found = 100.0, .exact = facts.exact, .allowed = 0x1p-40});
  // A row that sees no key has no answer.
  std::erase_if(made.wrong, [](const WrongElement& one) { return std::isnan(one.exact.lower); });
  made.wrong_in_all = std::ssize(made.wrong);
  EXPECT_GE(made.wrong_in_all, 16);
  const fake::Folder folder;
  std::ofstream(folder / "x.py") << changed(
      script_of(made, ScriptLanguage::python), "off = found",
      "if not abs(Decimal(proved) - right) <= abs(right) * Decimal(2) ** -45: sys.exit('another answer')\n    off = found");
  std::ofstream(folder / "x.c") << changed(
      script_of(made, ScriptLanguage::c), "failed |= off;",
      "if (!(fabsl(exact(b, h, i, d) - proved) <= fabsl(proved) * 0x1p-45L)) puts(\"another answer\");\n"
      "    failed |= off;");
  const std::string python = output_of(folder, "/usr/bin/python3 x.py", 1);
  const std::string in_c =
      output_of(folder, "cc -std=c99 -Wall -Wextra -Wpedantic -Werror x.c -o x -lm || exit 99; ./x", 1);
  for (const std::string& said : {python, in_c}) {
    EXPECT_THAT(said, NeverSays("another answer"));
    EXPECT_EQ(lines_in(said), made.wrong_in_all);
  }
}

/// The same of every gradient, of the log-sum-exp's too.
TEST_P(ReproducerScriptOf, ComputesGradients) {
  Case c = problem_of(GetParam());
  if (has_variant(c, descale_variant.name)) GTEST_SKIP() << "factors have no backward pass";
  c[Slot::d_out] = numbers(c.dtype(), c.out_shape(), 61);
  if (GetParam().name.size() % 2 == 0) c[Slot::d_lse] = numbers(DType::f32, {2, 4, 3}, 47);
  const GradientEnclosures exact = gradient_enclosures(c);
  const fake::Folder folder;
  for (const Gradient of : every_gradient) {
    if (!has_argument_of(c, of)) continue;
    Reproducer made = script_about(c, of);
    int counted = 0;
    for (const Enclosure& one : exact[static_cast<std::size_t>(of)]) {
      counted += std::fabs(one.lower) > 1e-6;
      made.wrong.push_back({.element = std::ssize(made.wrong), .found = 1e4, .exact = one, .allowed = 0x1p-40});
    }
    made.wrong_in_all = std::ssize(made.wrong);
    EXPECT_GE(counted, of == Gradient::sink || of == Gradient::mask ? 4 : 8) << name_of(of);
    std::ofstream(folder / "x.py") << changed(
        script_of(made, ScriptLanguage::python), "off = found",
        "if not abs(Decimal(proved) - right) <= abs(right) * Decimal(2) ** -45 + Decimal(2) ** -120: "
        "sys.exit('another answer')\n    off = found");
    const std::string said = output_of(folder, "/usr/bin/python3 x.py", 1);
    EXPECT_THAT(said, NeverSays("another answer"));
    EXPECT_THAT(said, Says(std::string(name_of(of)) + "[0"));
    EXPECT_EQ(lines_in(said), made.wrong_in_all) << said;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Problems, ReproducerScriptOf,
    testing::Values(
        Asked{.name = "plain"}, Asked{.name = "top_left", .causal = Causal::top_left},
        Asked{.name = "bottom_right", .causal = Causal::bottom_right},
        Asked{.name = "more_queries_than_keys", .causal = Causal::bottom_right, .keys = 2},
        Asked{.name = "bool_of_each_pair", .mask = 'b', .mask_shape = {2, 4, 3, 5}},
        Asked{.name = "bool_of_each_batch", .mask = 'b', .mask_shape = {2, 1, 3, 5}},
        Asked{.name = "additive_of_each_head", .mask = 'a', .mask_shape = {1, 4, 3, 5}},
        Asked{.name = "additive_before_the_scale", .mask = 'a', .pre_scale = true},
        Asked{.name = "additive_of_each_pair", .mask = 'a', .mask_shape = {2, 4, 3, 5}},
        Asked{.name = "additive_beside_slopes_that_put_it_behind_the_scale",
              .mask = 'a',
              .pre_scale = true,
              .slopes = {1, 4}},
        Asked{.name = "additive_beside_a_cap_that_puts_it_behind_the_scale",
              .mask = 'a',
              .pre_scale = true,
              .softcap = 1.5},
        Asked{.name = "additive_and_causal_in_f64", .causal = Causal::top_left, .mask = 'a', .dtype = DType::f64},
        Asked{.name = "additive_in_bf16", .mask = 'a', .dtype = DType::bf16},
        Asked{.name = "bool_in_f16", .mask = 'b', .dtype = DType::f16}, Asked{.name = "capped", .softcap = 0.875},
        Asked{.name = "capped_with_a_mask", .mask = 'a', .softcap = 2.5},
        Asked{.name = "capped_beyond_all_scores", .mask = 'b', .dtype = DType::bf16, .softcap = 0x1p80},
        Asked{.name = "dropped", .keep = {1, 1, 3, 5}, .dropout_p = 0.1},
        Asked{.name = "dropped_of_each_pair_beside_a_mask",
              .mask = 'b',
              .mask_shape = {1, 4, 3, 5},
              .keep = {2, 4, 3, 5},
              .dropout_p = 0.75},
        Asked{.name = "dropped_of_each_batch_and_capped_in_bf16",
              .mask = 'a',
              .dtype = DType::bf16,
              .softcap = 2.5,
              .keep = {2, 1, 3, 5},
              .dropout_p = 0x1p-40},
        Asked{.name = "dropped_and_divided_by_nothing", .causal = Causal::top_left, .keep = {1, 4, 3, 5}},
        Asked{.name = "sloped", .slopes = {1, 4}, .alignment = Causal::top_left},
        Asked{.name = "sloped_from_the_bottom_right_and_of_each_entry",
              .keys = 2,
              .slopes = {2, 4},
              .alignment = Causal::bottom_right},
        Asked{.name = "sloped_beside_a_mask_in_bf16",
              .causal = Causal::bottom_right,
              .mask = 'a',
              .dtype = DType::bf16,
              .slopes = {2, 4}},
        Asked{.name = "sloped_and_capped", .softcap = 0.875, .slopes = {1, 4}, .alignment = Causal::bottom_right},
        Asked{.name = "sloped_with_lengths", .slopes = {2, 4}, .alignment = Causal::bottom_right, .lengths = true},
        Asked{.name = "sloped_with_lengths_causal", .causal = Causal::top_left, .slopes = {1, 4}, .lengths = true},
        Asked{.name = "chunked", .alignment = Causal::top_left, .chunk = 2},
        Asked{.name = "chunked_from_the_bottom_right", .alignment = Causal::bottom_right, .chunk = 2},
        // The first row is before the keys, and the chunk that C would round it to is that of the others.
        Asked{.name = "chunked_before_the_keys", .keys = 2, .alignment = Causal::bottom_right, .chunk = 2},
        Asked{.name = "chunked_by_more_than_all_keys", .alignment = Causal::bottom_right, .chunk = 0x7fffffff},
        Asked{.name = "chunked_beside_a_causal_form_and_a_window",
              .causal = Causal::bottom_right,
              .mask = 'b',
              .mask_shape = {2, 4, 3, 5},
              .chunk = 3,
              .window_left = 1},
        Asked{.name = "chunked_and_sloped", .slopes = {2, 4}, .alignment = Causal::bottom_right, .chunk = 3},
        Asked{.name = "chunked_with_lengths_behind_padding",
              .alignment = Causal::bottom_right,
              .lengths = true,
              .chunk = 2,
              .padded = true},
        Asked{.name = "multiplied", .factors = "qkv"},
        Asked{.name = "multiplied_by_heads", .factors = "qkv", .own_of_heads = true},
        Asked{.name = "multiplied_by_entries_in_bf16", .dtype = DType::bf16, .factors = "kv", .own_of_entries = true},
        Asked{.name = "multiplied_in_blocks", .factors = "qk", .q_block = 2, .kv_block = 2},
        Asked{.name = "multiplied_by_rows_beside_a_mask_before_the_scale",
              .mask = 'a',
              .pre_scale = true,
              .factors = "qv",
              .own_of_heads = true,
              .q_block = 1,
              .kv_block = 1},
        Asked{.name = "multiplied_and_capped_with_lengths",
              .causal = Causal::bottom_right,
              .softcap = 2.5,
              .lengths = true,
              .factors = "qkv",
              .own_of_heads = true,
              .own_of_entries = true,
              .q_block = 2,
              .kv_block = 3},
        Asked{.name = "multiplied_whole_numbers",
              .factors = "kv",
              .own_of_heads = true,
              .own_of_entries = true,
              .kv_block = 2,
              .whole_numbers = true}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace attest

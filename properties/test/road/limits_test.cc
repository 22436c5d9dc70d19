// Limits that kernels of the field have: the projection meets each of them, and what is drawn reaches such kernels.
#include "core/kernel/limits.h"

#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <string>

#include "core/kernel/forwarding_kernel.h"
#include "core/problem/descale.h"
#include "core/problem/memory.h"
#include "core/problem/selection.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/arrangement/within_limits.h"
#include "properties/road/fit_form.h"
#include "properties/road/road.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

const Property attention{.name = "test.attention",
                         .given = [](Draw& draw) -> Case { return draw.attention().masked(); }};
const Property with_causal{.name = "test.causal", .given = [](Draw& draw) -> Case { return draw.attention(); }};
const Property strided{.name = "test.strided", .given = [](Draw& draw) -> Case { return draw.attention().strided(); }};
const Property heads{.name = "test.heads", .operation = Operation::multihead, .given = [](Draw& draw) -> Case {
                       return draw.multihead();
                     }};

Manifest limited(const std::function<void(Manifest&)>& limit) {
  Manifest m = toy_manifest();
  m.multihead = true;
  limit(m);
  return m;
}

/// Each drawn case without an empty axis meets the limits once it is projected, is valid, and is projected to itself.
/// How many were not within the limits as they were drawn.
int changed_by(const Manifest& m, const Property& property = attention) {
  int changed = 0;
  for (std::int64_t k = 0; k < 300; ++k) {
    const Case c = generate(property, DType::f32, 1, k);
    const Extents e = extents_of(c);
    const Case projected = project(c, m);
    EXPECT_EQ(project(c, m), projected) << "k = " << k;
    EXPECT_EQ(project(projected, m), projected) << "k = " << k;
    EXPECT_NO_THROW(validate(projected)) << "k = " << k;
    if ((e.queries > 0 && e.keys > 0) || (m.min_queries == 0 && m.min_keys == 0)) {
      EXPECT_EQ(why_unsupported(m, projected), "") << "k = " << k;
    }
    changed += !why_unsupported(m, c).empty();
  }
  return changed;
}

TEST(Limits, OfWidthsAreMet) {
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.head_dims = {64, 80}; })), 250);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.value_dims = {16, 32}; })), 250);
  const Manifest m = limited([](Manifest& of) { of.head_dims = {64, 128}, of.value_dims = {128}; });
  std::set<std::int64_t> dk, dv;
  for (std::int64_t k = 0; k < 300; ++k) {
    const Extents e = extents_of(project(generate(attention, DType::f32, 1, k), m));
    dk.insert(e.dk), dv.insert(e.dv);
  }
  EXPECT_EQ(dk, (std::set<std::int64_t>{64, 128}));
  EXPECT_EQ(dv, (std::set<std::int64_t>{128}));
}

TEST(Limits, OfLengthsAreMet) {
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.queries_multiple = 64; })), 200);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.keys_multiple = 48; })), 200);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.min_queries = 5; })), 50);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.min_keys = 100, m.keys_multiple = 8; })), 200);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.same_lengths = true; })), 200);
  EXPECT_GT(
      changed_by(limited([](Manifest& m) { m.same_lengths = true, m.queries_multiple = 16, m.keys_multiple = 24; })),
      200);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.queries_multiple = 32, m.max_queries = 40; })), 200);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.queries_multiple = 16, m.same_lengths = true; }), heads), 100);
}

TEST(Limits, KeepWhichLengthIsTheLarger) {
  const Manifest m = limited([](Manifest& of) { of.queries_multiple = 128, of.keys_multiple = 64; });
  int two_tiles = 0, alike = 0;
  for (std::int64_t k = 0; k < 300; ++k) {
    const Case c = generate(attention, DType::f32, 1, k);
    const Extents before = extents_of(c), after = extents_of(project(c, m));
    if (before.queries == 0 || before.keys == 0) continue;
    EXPECT_EQ(before.queries < before.keys, after.queries < after.keys) << k;
    EXPECT_EQ(before.queries == before.keys, after.queries == after.keys) << k;
    alike += before.queries == before.keys;
    two_tiles += before.queries == before.keys && after.queries == 256;
  }
  EXPECT_GT(alike, 20);
  EXPECT_GT(two_tiles * 5, alike) << "equal lengths of two tiles";
}

TEST(Limits, LeaveWhatIsEmptyAsItIs) {
  const Manifest multiples = limited([](Manifest& m) { m.queries_multiple = m.keys_multiple = 64; });
  const Manifest least = limited([](Manifest& m) { m.min_queries = m.min_keys = 1; });
  int empty = 0;
  for (std::int64_t k = 0; k < 1200; ++k) {
    const Case c = generate(attention, DType::f32, 1, k);
    const Extents e = extents_of(c), after = extents_of(project(c, multiples));
    EXPECT_EQ(e.queries == 0, after.queries == 0);
    EXPECT_EQ(e.keys == 0, after.keys == 0);
    if (e.queries > 0 && e.keys > 0) continue;
    ++empty;
    EXPECT_EQ(why_unsupported(multiples, project(c, multiples)), "");
    EXPECT_NE(why_unsupported(least, project(c, least)), "") << "there is nothing to repeat";
  }
  EXPECT_GT(empty, 4);
}

TEST(Limits, OfGroupsAreMet) {
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.group_sizes = {4, 8}; })), 200);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.group_sizes = {3}, m.heads_multiple = 2, m.max_heads = 12; })), 200);
  // A head of a group goes on to read the key-value head of that group.
  Recipe r;
  r.heads = 4;
  r.kv_heads = 2;
  r.queries = r.keys = r.dk = r.dv = 3;
  const Case pairs = decode(r), threes = project(pairs, limited([](Manifest& m) { m.group_sizes = {3}; }));
  ASSERT_EQ(threes.q().shape()[1], 6);
  ASSERT_EQ(threes.k().shape()[1], 2);
  for (const auto& [head, from] : std::map<std::int64_t, std::int64_t>{{0, 0}, {1, 1}, {2, 0}, {3, 2}, {4, 3}, {5, 2}})
    for (std::int64_t j = 0; j < 3; ++j) EXPECT_EQ(score(threes, 0, head, 1, j), score(pairs, 0, from, 1, j)) << head;
}

TEST(Limits, OfAModelsWidthsAreMet) {
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.model_dim_is_heads = true; }), heads), 100);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.model_dim_is_heads = m.self_attention_only = true; }), heads), 100);
}

TEST(Limits, OfStridesAreMet) {
  const Manifest m = limited([](Manifest& of) { of.strides = true, of.zero_strides = false; });
  EXPECT_GT(changed_by(m, strided), 20);
  for (std::int64_t k = 0; k < 300; ++k) {
    const Case c = project(generate(strided, DType::f32, 1, k), m);
    EXPECT_EQ(c.provenance.kinds->find("strides:repeated"), std::string::npos);
    EXPECT_NE(layouts_of(c), Layouts()) << "another layout stands in its place";
  }
}

TEST(Limits, OfFormsAreMet) {
  using enum Feature;
  const auto requires_excludes = [](std::vector<Feature> required, std::vector<std::vector<Feature>> excluded) {
    return limited([&](Manifest& m) { m.required = required, m.excluded = excluded; });
  };
  EXPECT_GT(changed_by(requires_excludes({causal}, {})), 100);
  EXPECT_GT(changed_by(requires_excludes({bottom_right}, {})), 100);
  EXPECT_GT(changed_by(requires_excludes({mask}, {})), 20);
  EXPECT_GT(changed_by(requires_excludes({}, {{mask, causal}}), with_causal), 20);
  EXPECT_GT(changed_by(requires_excludes({causal}, {{mask, causal}})), 100);
  EXPECT_GT(changed_by(requires_excludes({}, {{causal, unequal_lengths}}), with_causal), 20);
  EXPECT_GT(changed_by(requires_excludes({}, {{bottom_right, fewer_keys}}), with_causal), 5);
  EXPECT_GT(changed_by(requires_excludes({output_projection}, {}), heads), 20);
  EXPECT_GT(changed_by(requires_excludes({}, {{bias_kv}}), heads), 20);
  EXPECT_GT(changed_by(requires_excludes({output_projection}, {{bias_kv}}), heads), 40);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.additive_masks = false; })), 50);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.bool_masks = false; })), 20);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.additive_masks = m.bool_masks = false; })), 100);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.causal = {Causal::top_left}; }), with_causal), 10);
  EXPECT_GT(changed_by(limited([](Manifest& m) { m.mask_conventions = {MaskConvention::pre_scale}; })), 20);
}

/// Nothing else changes: what comes out is what the heads gave.
TEST(Limits, OfWindowsAreMet) {
  const Property windowed{.name = "test.windowed", .variant = "window", .given = [](Draw& draw) -> Case {
                            return draw.attention().windowed();
                          }};
  const auto with = [](const std::function<void(VariantTerms&)>& say) {
    VariantTerms terms;
    say(terms);
    return limited([&](Manifest& m) {
      m.causal = {Causal::top_left, Causal::bottom_right};
      m.variants.emplace("window", terms);
    });
  };
  EXPECT_EQ(changed_by(with([](VariantTerms&) {}), windowed), 0);
  EXPECT_GT(changed_by(with([](VariantTerms& t) { t.left = false; }), windowed), 50);
  EXPECT_GT(changed_by(with([](VariantTerms& t) { t.right = false; }), windowed), 50);
  EXPECT_GT(changed_by(with([](VariantTerms& t) { t.alignment = {Causal::top_left}; }), windowed), 10);
  EXPECT_GT(changed_by(with([](VariantTerms& t) { t.required = {Feature::causal}; }), windowed), 10);
  EXPECT_GT(changed_by(with([](VariantTerms& t) { t.excluded = {Feature::mask}; }), windowed), 50);
  for (std::int64_t k = 0; k < 50; ++k) {
    const Case drawn = generate(windowed, DType::f32, 1, k);
    // An end that may not be is the other one then, and the words of what was drawn say so.
    const Case left = project(drawn, with([](VariantTerms& t) { t.right = false; }));
    EXPECT_TRUE(left.window_left >= 0 && left.window_right < 0);
    EXPECT_NE(left.provenance.kinds->find("window_left:given"), std::string::npos);
    EXPECT_EQ(left.provenance.kinds->find("window_right:given"), std::string::npos);
    // To a kernel that lists no window the case is what it would be without one.
    Case plain = drawn;
    leave_out(plain, "window");
    const Case without =
        project(drawn, limited([](Manifest& m) { m.causal = {Causal::top_left, Causal::bottom_right}; }));
    EXPECT_EQ(without, plain);
    EXPECT_EQ(without.provenance.kinds->find("window"), std::string::npos);
  }
}

// Of the blocks of factors that a manifest lists each comes as often as any other, where it leaves more than one.
TEST(Limits, OfBlocksOfFactorsAreMetByEachOfThose) {
  const Property in_blocks{
      .name = "test.blocks", .variant = "descale", .given = [](Draw& draw) -> Case {
        return draw.attention()
            .where([](Recipe& r) { r.keys = 20 + static_cast<std::int32_t>(r.seed % 180), r.queries = 40; })
            .with_descale(FactorKind::in_blocks);
      }};
  const Manifest m = limited([](Manifest& terms) {
    terms.variants = every_variant();
    VariantTerms& descale = terms.variants.find(descale_variant.name)->second;
    descale.any_blocks = false, descale.q_blocks = {16}, descale.kv_blocks = {16, 64, 96};
  });
  EXPECT_GT(changed_by(m, in_blocks), 200);
  std::map<std::int64_t, int> of_short, of_long;
  for (std::int64_t k = 0; k < 600; ++k) {
    const Case c = project(generate(in_blocks, DType::f32, 1, k), m);
    const bool blocks = has_blocks(c, Slot::k) || has_blocks(c, Slot::v);
    if (blocks) ++(keys_of(c) <= 64 ? of_short : of_long)[c.kv_descale_block];
    EXPECT_TRUE(!has_blocks(c, Slot::q) || c.q_descale_block == 16) << "k = " << k;
  }
  ASSERT_EQ(of_short.size(), 1U) << "of so many keys a block of 64 is all of them: "
                                 << testing::PrintToString(of_short);
  EXPECT_GT(of_short[16], 50);
  for (const std::int64_t block : {16, 64, 96}) EXPECT_GT(of_long[block], 60) << block;
}

TEST(Limits, OfAnOutputProjectionAreMetByTheIdentity) {
  const Manifest m = limited([](Manifest& of) { of.required = {Feature::output_projection}; });
  int added = 0;
  for (std::int64_t k = 0; k < 200; ++k) {
    const Case drawn = generate(heads, DType::f32, 1, k), c = project(drawn, m);
    if (drawn[Slot::w_o].present() || drawn.q().elements() == 0) continue;
    ++added;
    const Tensor& w_o = c[Slot::w_o];
    ASSERT_TRUE(w_o.present());
    for (std::int64_t row = 0; row < w_o.shape()[0]; ++row)
      for (std::int64_t column = 0; column < w_o.shape()[1]; ++column)
        EXPECT_EQ(w_o.at(row, column), row == column ? 1.0 : 0.0);
    EXPECT_EQ(c.q(), drawn.q());
    EXPECT_EQ(c[Slot::w_v], drawn[Slot::w_v]);
  }
  EXPECT_GT(added, 10);
}

TEST(Limits, NoteTheFormThatACaseGot) {
  const Manifest m = limited([](Manifest& of) {
    of.required = {Feature::causal};
    of.excluded = {{Feature::causal, Feature::mask}};
  });
  for (std::int64_t k = 0; k < 100; ++k) {
    const std::string kinds = *project(generate(attention, DType::f32, 1, k), m).provenance.kinds;
    EXPECT_NE(kinds.find("mask:none"), std::string::npos) << kinds;
    EXPECT_EQ(kinds.find("causal:none"), std::string::npos) << kinds;
    EXPECT_EQ(kinds.find("causal:"), kinds.rfind("causal:")) << kinds;
  }
}

TEST(Limits, SayTheSameInTheOtherKindOfMask) {
  const Manifest boolean = limited([](Manifest& m) { m.additive_masks = false; });
  int exchanged = 0;
  for (std::int64_t k = 0; k < 300; ++k) {
    const Case c = generate(attention, DType::f32, 1, k), other = project(c, boolean);
    if (!c.mask().present() || c.mask().dtype() == DType::boolean || !other.mask().present()) continue;
    ++exchanged;
    for (std::int64_t e = 0; e < c.mask().elements(); ++e) EXPECT_EQ(other.mask()[e], c.mask()[e] == 0 ? 1 : 0);
  }
  EXPECT_GT(exchanged, 20);
}

TEST(Limits, LeaveACaseThatNoTheoremWouldSpeakOf) {
  // Of one key, of which the limits allow none: it is skipped by their name and not by the theorem's.
  const Manifest m = limited([](Manifest& of) { of.keys_multiple = 64; });
  const auto kernel = toy_kernel(Bug::none, m);
  const Property& property = property_named("attention.one-key");
  const Case c = project(generate(property, DType::f32, 1, 3), m);
  EXPECT_EQ(check_case(property, *kernel, c).reason, "has 1 keys; the manifest's keys_multiple is 64");
}

TEST(Limits, MoveAnEighthOfTheCasesToTheEdgesOfTiles) {
  const Manifest m = limited([](Manifest& of) { of.tiles = {.queries = {32}, .keys = {48}, .splits = {}}; });
  EXPECT_EQ(changed_by(m), 0) << "tiles are no limit";
  int moved = 0, both = 0;
  std::set<std::int64_t> keys;
  for (std::int64_t k = 0; k < 800; ++k) {
    const Case c = generate(attention, DType::f32, 1, k);
    const Extents before = extents_of(c), after = extents_of(project(c, m));
    if (before == after) continue;
    ++moved;
    both += before.queries != after.queries && before.keys != after.keys;
    keys.insert(after.keys);
  }
  EXPECT_GT(moved, 60);
  EXPECT_LT(moved, 140);
  EXPECT_GT(both, 30);
  for (const std::int64_t edge : {47, 48, 49, 95, 96, 97}) EXPECT_TRUE(keys.contains(edge)) << edge;
}

TEST(Limits, MoveKeysToWhereSplitsHaveAKeyOrATileEach) {
  const auto reached = [](Tiles tiles) {
    const Manifest m = limited([&](Manifest& of) { of.tiles = std::move(tiles); });
    std::set<std::int64_t> keys;
    for (std::int64_t k = 0; k < 1600; ++k) {
      const Case c = generate(attention, DType::f32, 1, k);
      const Extents before = extents_of(c), after = extents_of(project(c, m));
      if (before != after) keys.insert(after.keys);
    }
    return keys;
  };
  const std::set<std::int64_t> without = reached({.queries = {}, .keys = {40}, .splits = {1}});
  EXPECT_FALSE(without.contains(280));
  const std::set<std::int64_t> with = reached({.queries = {}, .keys = {40}, .splits = {7}});
  // 6 keys leave a part without one.
  for (const std::int64_t edge : {6, 7, 8, 13, 14, 15, 40, 279, 280, 281, 559, 560, 561})
    EXPECT_TRUE(with.contains(edge)) << edge;
  EXPECT_EQ(reached({.queries = {}, .keys = {}, .splits = {1}}), std::set<std::int64_t>());
}

// As many queries as sixteen tiles have keys cost a law that reads weights half a minute a case.
TEST(Limits, MoveEqualLengthsToEdgesOfManyKeysOnlyWhereLengthsAreAlwaysEqual) {
  const auto longest = [](bool same_lengths) {
    const Manifest m = limited([&](Manifest& of) {
      of.tiles = {.queries = {64}, .keys = {64}, .splits = {16}}, of.same_lengths = same_lengths;
    });
    std::int64_t equal = 0, unequal = 0;
    for (std::int64_t k = 0; k < 1600; ++k) {
      const Case c = generate(attention, DType::f32, 1, k);
      const Extents before = extents_of(c), after = extents_of(project(c, m));
      if (before == after) continue;
      std::int64_t& one = after.queries == after.keys ? equal : unequal;
      one = std::max(one, after.keys);
    }
    return std::pair(equal, unequal);
  };
  EXPECT_EQ(longest(false), std::pair(std::int64_t{129}, std::int64_t{2049}));
  EXPECT_EQ(longest(true).first, 2049);
}

/// What a GPU's kernels ask for.
Manifest flash_of_64() {
  return limited([](Manifest& m) {
    m.head_dims = {64, 128};
    m.queries_multiple = m.keys_multiple = 64;
    m.multihead = false;
  });
}
Manifest causal_of_128() {
  return limited([](Manifest& m) {
    m.head_dims = {64, 128};
    m.queries_multiple = m.keys_multiple = 128;
    m.same_lengths = true;
    m.causal = {Causal::top_left};
    m.additive_masks = m.bool_masks = false;
    m.required = {Feature::causal};
    m.multihead = false;
  });
}

/// Refuses every call, and counts those of whose limits it is told.
class Refusing final : public ForwardingKernel {
 public:
  Refusing(std::unique_ptr<Kernel> kernel, Manifest manifest)
      : ForwardingKernel(std::move(kernel)), manifest_(std::move(manifest)) {}
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  Reply run(const Case& c, std::optional<DType> /*output*/, bool /*want_lse*/) override {
    ++calls;
    EXPECT_EQ(why_unsupported(manifest_, c), "");
    return {.status = CallStatus::unsupported, .message = {}, .out = {}, .lse = {}};
  }
  int calls = 0;

 private:
  Manifest manifest_;
};

TEST(Limits, LetWhatIsDrawnReachTheKernel) {
  Refusing kernel(toy_kernel(Bug::none, flash_of_64()), flash_of_64());
  constexpr int cases = 40;
  int drawn = 0, reached = 0;
  for (const Property* const property : catalogue()) {
    if (property->operation != Operation::attention || property->needs.find("core") != std::string_view::npos) continue;
    if (!property->misses_of(kernel.manifest()).empty()) continue;
    int of_property = 0;
    for (std::int64_t k = 0; k < cases; ++k) {
      kernel.calls = 0;
      static_cast<void>(
          check_case(*property, kernel, project(generate(*property, DType::f32, 1, k), kernel.manifest())));
      of_property += kernel.calls > 0;
    }
    drawn += cases, reached += of_property;
    if (of_property * 10 < cases * 9) std::cout << property->name << ": " << of_property << " of " << cases << '\n';
  }
  EXPECT_GE(reached * 10, drawn * 9) << reached << " of " << drawn;
}

TEST(Limits, LetEveryRowOfACausalKernelReachItThatIsCausal) {
  Refusing kernel(toy_kernel(Bug::none, causal_of_128()), causal_of_128());
  for (const char* const name : {"attention.oracle", "attention.finite", "attention.repeatable", "causal.no-leak",
                                 "causal.first-row", "batch.independence"}) {
    int reached = 0;
    for (std::int64_t k = 0; k < 40; ++k) {
      kernel.calls = 0;
      const Property& property = property_named(name);
      static_cast<void>(check_case(property, kernel, project(generate(property, DType::f32, 1, k), kernel.manifest())));
      reached += kernel.calls > 0;
    }
    EXPECT_GE(reached, 36) << name;
  }
}

}  // namespace
}  // namespace attest

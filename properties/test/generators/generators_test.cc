// What every recipe and every drawn case has in common, whatever its kinds.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string_view>

#include "core/problem/combination.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/generators/recipes.h"
#include "properties/test/catalogue/tampered.h"
#include "properties/test/inspect.h"

namespace attest {
namespace {

constexpr DType floating[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2};

TEST(Recipe, DecodesToAValidCaseWhateverItHolds) {
  std::mt19937_64 random(1);
  for (const DType dtype : floating) {
    for (int n = 0; n < 1000; ++n) {
      const auto small = [&] { return static_cast<std::int32_t>(random() % 24) - 3; };
      Recipe r;
      r.operation = static_cast<Operation>(random() % 3);
      r.dtype = dtype;
      for (std::int32_t* extent :
           {&r.batch, &r.heads, &r.kv_heads, &r.queries, &r.keys, &r.dk, &r.dv, &r.c_q, &r.c_k, &r.c_v, &r.d_o}) {
        *extent = small();
      }
      r.scores = static_cast<ScoreKind>(random() % 256);
      r.values = static_cast<ValueKind>(random() % 256);
      r.matrices = static_cast<MatrixKind>(random() % 256);
      r.mask = static_cast<MaskKind>(random() % 256);
      r.scale = static_cast<ScaleKind>(random() % 256);
      r.boolean_mask = random() % 2;
      r.mask_per_batch = random() % 2;
      r.mask_per_head = random() % 2;
      r.self_attention = random() % 2;
      r.biases = random() % 2;
      r.key_value_bias = random() % 2;
      r.output_projection = random() % 2;
      r.causal = static_cast<Causal>(random() % 5);
      r.convention = static_cast<MaskConvention>(random() % 3);
      r.seed = random();
      r.override_count = small();
      for (Override& change : r.overrides) {
        change = {static_cast<Slot>(random() % 16), static_cast<std::uint32_t>(random()),
                  std::bit_cast<double>(random())};
      }
      ASSERT_NO_THROW(validate(decode(r))) << "recipe " << n << " in " << name_of(dtype);
    }
  }
}

TEST(Recipe, WithEnormousExtentsDecodesToABoundedCase) {
  Recipe r;
  r.batch = r.heads = r.queries = r.keys = r.dk = r.dv = 2'000'000'000;
  const Case c = decode(r);
  validate(c);
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) EXPECT_LE(c[slot].elements(), most_elements);
}

TEST(Recipe, OverridesSetOneElementRoundedAndFinite) {
  Recipe r;
  r.dtype = DType::f16;
  r.queries = r.keys = r.dk = r.dv = 2;
  const Case before = decode(r);
  r.override_count = 1;
  r.overrides[0] = {Slot::v, 7, 1e30};  // 7 mod 4 elements
  const Case after = decode(r);
  EXPECT_EQ(after.v()[3], 65504.0);
  EXPECT_EQ(after.q(), before.q());
  EXPECT_EQ(after.v()[2], before.v()[2]);
}

const Property whole_mix{.name = "test.attention", .given = [](Draw& draw) -> Case { return draw.attention(); }};
const Property edges{.name = "test.edge", .given = [](Draw& draw) -> Case { return draw.attention().near_the_edge(); }};
const Property general_multihead{.name = "test.multihead",
                                 .operation = Operation::multihead,
                                 .given = [](Draw& draw) -> Case { return draw.multihead(); }};

TEST(Draw, GivesValidCasesInEveryDtype) {
  for (const Property* property : {&whole_mix, &edges, &general_multihead}) {
    for (const DType dtype : floating) {
      for (std::int64_t k = 0; k < 2000; ++k) {
        const Case c = generate(*property, dtype, 1, k);
        ASSERT_NO_THROW(validate(c)) << property->name << ' ' << name_of(dtype) << " k = " << k;
        ASSERT_EQ(c.dtype(), dtype);
        ASSERT_EQ(c.operation, property->operation);
      }
    }
  }
}

// A pair of variants that does not go together shows in one case of tens of thousands.
TEST(Draw, GivesValidCasesOfVariantsBesideEachOther) {
  const auto kernel = registered("builtin:flash");
  for (const std::string_view name : {"attention.oracle", "attention.repeatable"}) {
    const Property& property = property_named(name);
    for (std::int64_t k = 0; k < 60'000; ++k)
      ASSERT_NO_THROW(validate(project(generate(property, DType::f32, 1, k), kernel->manifest())))
          << name << " k = " << k;
  }
}

// What go_together says is what validate.cc lets and what is drawn: a pair that is told as never judged can be judged.
TEST(Draw, PutsVariantsBesideEachOtherThatGoTogether) {
  const auto kernel = registered("builtin:flash");
  const Property& oracle = property_named("attention.oracle");
  std::set<std::pair<std::string_view, std::string_view>> drawn, together;
  for (std::int64_t k = 0; k < 20'000; ++k) {
    const std::vector<Variant> all = variants_of(project(generate(oracle, DType::f32, 1, k), kernel->manifest()));
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = i + 1; j < all.size(); ++j) drawn.emplace(all[i].name, all[j].name);
  }
  const std::vector<Variant>& all = variants();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      if (!go_together(all[i].name, all[j].name)) continue;
      EXPECT_TRUE(go_together(all[j].name, all[i].name));
      together.emplace(all[i].name, all[j].name);
    }
  EXPECT_EQ(drawn, together);
}

TEST(Draw, DependsOnPropertyDtypeSeedAndKAlone) {
  const Case once = generate(whole_mix, DType::f32, 5, 17);
  (void)generate(whole_mix, DType::f64, 5, 16);  // leaves scratch memory behind
  EXPECT_EQ(hash_of(once), hash_of(generate(whole_mix, DType::f32, 5, 17)));
  std::set<std::uint64_t> seeds{
      case_seed(5, "test.attention", DType::f32, 17), case_seed(6, "test.attention", DType::f32, 17),
      case_seed(5, "test.attentiom", DType::f32, 17), case_seed(5, "test.attention", DType::f64, 17),
      case_seed(5, "test.attention", DType::f32, 18)};
  EXPECT_EQ(seeds.size(), 5U);
}

// Each case is drawn after two others: scratch memory that a case does not fill is of the one before.
TEST(Draw, LeavesNothingOfACaseToTheNext) {
  for (const Property* property : {&whole_mix, &general_multihead}) {
    std::vector<std::uint64_t> forwards;
    constexpr std::int64_t cases = 2000;
    forwards.reserve(cases);
    for (std::int64_t k = 0; k < cases; ++k) forwards.push_back(hash_of(generate(*property, DType::f32, 1, k)));
    for (std::int64_t k = cases - 1; k >= 0; --k) {
      const Case c = generate(*property, DType::f32, 1, k);
      ASSERT_EQ(hash_of(c), forwards[static_cast<std::size_t>(k)])
          << "k = " << k << " " << c.provenance.kinds.value() << " q " << c.q().shape().to_string();
    }
  }
}

TEST(Draw, SaysInTheMetadataWhatItDrew) {
  const Case c = generate(whole_mix, DType::bf16, 5, 17);
  EXPECT_EQ(c.provenance.property.value(), "test.attention");
  EXPECT_EQ(c.provenance.dtype.value(), "bf16");
  EXPECT_EQ(c.provenance.seed.value(), "5");
  EXPECT_EQ(c.provenance.k.value(), "17");
  EXPECT_TRUE(c.provenance.kinds.value().starts_with("scores:"));
}

/// How often each word of "kinds" occurs.
std::map<std::string, int> words(const Property& property, int cases, const Shapes& shapes = small_shapes) {
  std::map<std::string, int> count;
  for (std::int64_t k = 0; k < cases; ++k) {
    std::istringstream kinds(generate(property, DType::f32, 1, k, shapes).provenance.kinds.value());
    for (std::string word; kinds >> word;) ++count[word];
  }
  return count;
}

template <class Kind>
void expect_every(const std::map<std::string, int>& count, const std::string& prefix, int least) {
  for (int i = 0; i < static_cast<int>(Kind::count); ++i) {
    const std::string word = prefix + std::string(name_of(static_cast<Kind>(i)));
    const auto found = count.find(word);
    EXPECT_GE(found == count.end() ? 0 : found->second, least) << word;
  }
}

TEST(Draw, ReachesEveryKindAndMostlySmallShapes) {
  constexpr int cases = 20'000;
  auto count = words(whole_mix, cases);
  // Two kinds are of tiles, which small cases have none of.
  const auto of_production = words(whole_mix, 2000, {.large = LargeCases::all, .given = {}});
  for (const std::string kind : {"scores:rising", "scores:dominant-tile"}) {
    EXPECT_EQ(count[kind], 0);
    EXPECT_GE(of_production.at(kind), 100);
    count[kind] = cases;
  }
  expect_every<ScoreKind>(count, "scores:", cases / 200);
  expect_every<ValueKind>(count, "values:", cases / 200);
  expect_every<MaskKind>(count, "mask:", cases / 200);
  expect_every<ScaleKind>(count, "scale:", cases / 50);
  EXPECT_GE(count.at("shape:small"), cases * 9 / 10);
  EXPECT_GE(count.at("shape:large"), cases / 40);
  EXPECT_GE(count.at("shape:wide"), cases / 100);
  EXPECT_GE(count.at("shape:long"), 1);
  EXPECT_GE(count.at("shape:empty"), cases / 500);
  expect_every<MatrixKind>(words(general_multihead, 4000), "matrices:", 40);
  auto layouts = words(*properties_matching("attention.strides").at(0), 1000);
  for (const std::string tensor : {"q", "k", "v", "out"}) {
    layouts[tensor + "-strides:row-major"] = 1000;                // which is not named
    layouts[tensor + "-strides:aliased"] = 1000;                  // which is no stride
    if (tensor == "out") layouts["out-strides:repeated"] = 1000;  // which it must not be
    // One case in eight has one of these of one tensor.
    for (const char* const far : {"-strides:far-rows", "-strides:far-heads"}) {
      EXPECT_GE(layouts[tensor + far], 6) << tensor << far;
      layouts[tensor + far] = 1000;
    }
    expect_every<MemoryLayout>(layouts, tensor + "-strides:", 80);
  }
}

TEST(Draw, ReachesTokensInTheSameMemory) {
  const auto count = words(property_named("multihead.oracle"), 400);
  for (const char* const kind : {"k-strides:aliased", "v-strides:aliased"}) EXPECT_GE(count.at(kind), 30);
}

// Kernels go other ways where q, k and v are one tensor, or k and v, or q and k: the widths of the third may then be
// their own or not, and what is equal lies in one memory or in two.
TEST(Draw, ReachesTokensOfWhichTwoAreOneTensor) {
  struct Seen {
    int aliased = 0, apart = 0, of_one_width = 0;
  };
  Seen self, keys_and_values, queries_and_keys;
  int of_three = 0;
  for (std::int64_t k = 0; k < 1000; ++k) {
    const Case c = generate(property_named("multihead.oracle"), DType::f32, 1, k, small_shapes);
    const Layouts layouts = layouts_of(c);
    const bool k_aliased = layouts[Slot::k] == MemoryLayout::aliased,
               v_aliased = layouts[Slot::v] == MemoryLayout::aliased;
    const bool qk = c.q() == c.k(), kv = c.k() == c.v();
    if (qk || kv) {
      Seen& seen = qk && kv ? self : kv ? keys_and_values : queries_and_keys;
      ++((qk ? k_aliased : v_aliased) ? seen.aliased : seen.apart);
      seen.of_one_width += c.q().shape()[2] == c.v().shape()[2] ? 1 : 0;
    } else {
      ++of_three;
      EXPECT_FALSE(k_aliased || v_aliased);
    }
  }
  EXPECT_GE(self.aliased, 120);
  EXPECT_GE(keys_and_values.aliased, 50);
  EXPECT_GE(keys_and_values.apart, 50);
  EXPECT_GE(keys_and_values.of_one_width, 50);
  EXPECT_GE(queries_and_keys.aliased, 20);
  EXPECT_GE(queries_and_keys.apart, 20);
  EXPECT_GE(queries_and_keys.of_one_width, 20);
  EXPECT_GE(of_three, 300);
}

TEST(Draw, ReachesHeadsBeyondFourOfMultiHeadAttention) {
  int odd = 0, six = 0;
  for (std::int64_t k = 0; k < 1000; ++k) {
    const std::int64_t heads = generate(general_multihead, DType::f32, 1, k).heads;
    odd += heads >= 5 && heads % 2 == 1 ? 1 : 0;
    six += heads >= 6 ? 1 : 0;
  }
  EXPECT_GE(odd, 80);
  EXPECT_GE(six, 60);
}

/// Rows every entry of whose mask is the same finite number next to the lowest.
std::pair<int, int> rows_at_the_lowest_and_near(const Case& c) {
  std::pair<int, int> rows{0, 0};
  if (!c.mask().present() || c.mask().dtype() == DType::boolean) return rows;
  const double largest = format_of(c.mask().dtype()).largest;
  const std::int64_t keys = c.k().shape()[2];
  for (std::int64_t first = 0; keys > 0 && first < c.mask().elements(); first += keys) {
    bool same = std::isfinite(c.mask()[first]) && c.mask()[first] < -0.5 * largest;
    for (std::int64_t j = 1; j < keys; ++j) same = same && c.mask()[first + j] == c.mask()[first];
    if (same) ++(c.mask()[first] == -largest ? rows.first : rows.second);
  }
  return rows;
}

// What a kernel needs that divides the mask by the scale before it multiplies the sum by it: -FLT_MAX, and -2e38 in
// f32, for every key of a row, added after a scale below 1 under which it overflows.
TEST(Draw, ReachesRowsMaskedWholeByTheLowestNumberUnderAScaleBelowOne) {
  for (const DType dtype : floating) {
    int lowest = 0, near = 0;
    for (std::int64_t k = 0; k < 10'000; ++k) {
      const Case c = generate(*properties_matching("attention.oracle").at(0), dtype, 1, k, small_shapes);
      if (c.mask_convention != MaskConvention::post_scale || !(c.scale > 0 && c.scale < 0.5)) continue;
      const auto [at, by] = rows_at_the_lowest_and_near(c);
      lowest += at > 0;
      near += by > 0;
    }
    EXPECT_GE(lowest, 10) << name_of(dtype);
    EXPECT_GE(near, 10) << name_of(dtype);
  }
}

TEST(Draw, ReachesTheShapesThatKnownBugsNeed) {
  int m_below_n = 0, m_above_n = 0, dk_is_not_dv = 0, batches = 0, heads = 0, grouped = 0, odd_dk = 0;
  std::set<std::int64_t> lengths;
  constexpr int cases = 20'000;
  for (std::int64_t k = 0; k < cases; ++k) {
    const Case c = generate(whole_mix, DType::f32, 1, k);
    const Shape &q = c.q().shape(), &key = c.k().shape(), &v = c.v().shape();
    m_below_n += q[2] < key[2];
    m_above_n += q[2] > key[2];
    dk_is_not_dv += q[3] != v[3];
    batches += q[0] > 1;
    heads += q[1] > 1;
    grouped += key[1] < q[1];
    odd_dk += q[3] % 8 != 0;
    lengths.insert(key[2]);
  }
  for (const int times : {m_below_n, m_above_n, dk_is_not_dv, odd_dk}) EXPECT_GE(times, cases / 3);
  for (const int times : {batches, heads, grouped}) EXPECT_GE(times, cases / 20);
  for (const std::int64_t block : {1, 8, 16, 32, 64, 128}) {
    for (const std::int64_t length : {block - 1, block, block + 1}) {
      if (length < 1 || length == 9) continue;  // 9 is no edge of the default block sizes' multiples
      EXPECT_TRUE(lengths.contains(length)) << "N = " << length;
    }
  }
}

}  // namespace
}  // namespace attest

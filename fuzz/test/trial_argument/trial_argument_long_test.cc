// One row, and everything else follows: an argument that only this program has, added as add_row.cmake says to copies
// of three headers, with which the whole of core, properties and fuzz is compiled once more. Nothing but its row and
// its meaning says what it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>

#include "core/call/function_kernel.h"
#include "core/kernel/forwarding_kernel.h"
#include "core/problem/describe.h"
#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "core/test/places.h"
#include "fuzz/input.h"
#include "fuzz/mutate.h"
#include "properties/attest/check_property.h"
#include "properties/catalogue/property.h"

namespace attest {
namespace {

/// What becomes of the argument in a kernel.
enum class Heeds { yes, no, off_by_one };

/// Attention in double, written out, on cases: no C structure has a place for the argument.
class TrialKernel final : public Kernel {
 public:
  TrialKernel(Heeds heeds, bool lists) : heeds_(heeds) {
    manifest_ = parse_manifest(R"({"name": "trial", "dtypes": ["f64"], "causal": ["top-left", "bottom-right"],
                                   "grouped_query": true, "mask_conventions": ["post-scale", "pre-scale"],
                                   "fully_masked_row": "nan", "strides": true})",
                               "trial");
    if (lists) manifest_.variants.emplace("hidden_below", VariantTerms());
  }
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<TrialKernel>(heeds_, !manifest_.variants.empty());
  }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool) override {
    seen.insert(c.hidden_below);
    const Extents e = extents_of(c);
    Reply reply{CallStatus::ok, {}, Tensor(output.value_or(c.dtype()), c.out_shape()), {}};
    const auto at = [&](Slot slot, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) {
      const Shape& s = c[slot].shape();
      return c[slot][((b * s[1] + h) * s[2] + row) * s[3] + column];
    };
    const std::int64_t first = heeds_ == Heeds::no ? 0 : c.hidden_below - (heeds_ == Heeds::off_by_one ? 1 : 0);
    for (std::int64_t b = 0; b < e.batch; ++b) {
      for (std::int64_t h = 0; h < e.heads; ++h) {
        for (std::int64_t i = 0; i < e.queries; ++i) {
          const std::int64_t kv = h / (e.heads / e.kv_heads);
          std::vector<double> scores(static_cast<std::size_t>(e.keys), -std::numeric_limits<double>::infinity());
          for (std::int64_t j = 0; j < e.keys; ++j) {
            const bool before =
                c.causal == Causal::none || j <= i + (c.causal == Causal::top_left ? 0 : e.keys - e.queries);
            if (!before || j < first) continue;
            double product = 0, added = 0;
            for (std::int64_t x = 0; x < e.dk; ++x) product += at(Slot::q, b, h, i, x) * at(Slot::k, b, kv, j, x);
            if (c.mask().present()) {
              const Shape& m = c.mask().shape();
              added = at(Slot::mask, m[0] == 1 ? 0 : b, m[1] == 1 ? 0 : h, i, j);
              if (c.mask().dtype() == DType::boolean)
                added = added != 0 ? 0.0 : -std::numeric_limits<double>::infinity();
            }
            const bool pre = c.mask_convention == MaskConvention::pre_scale;
            scores[static_cast<std::size_t>(j)] = pre ? c.scale * (product + added) : c.scale * product + added;
          }
          const double most = scores.empty() ? 0 : *std::ranges::max_element(scores);
          double sum = 0;
          for (double& score : scores) sum += score = std::exp(score - most);
          for (std::int64_t x = 0; x < e.dv; ++x) {
            double out = 0;
            for (std::int64_t j = 0; j < e.keys; ++j)
              out += scores[static_cast<std::size_t>(j)] * at(Slot::v, b, kv, j, x);
            reply.out.set(((b * e.heads + h) * e.queries + i) * e.dv + x,
                          sum > 0 ? out / sum : std::numeric_limits<double>::quiet_NaN());
          }
        }
      }
    }
    return reply;
  }

  std::set<std::int64_t> seen;  ///< what was asked for

 private:
  std::string id_ = "trial";
  Manifest manifest_;
  Heeds heeds_;
};

const Property& oracle() {
  return **std::ranges::find(catalogue(), "attention.oracle", &Property::name);
}

Case drawn(std::int64_t k) {
  return generate(oracle(), DType::f64, 1, k);
}

/// The first drawn case, from k on, that has the argument.
Case drawn_with_it(std::int64_t k = 0) {
  for (;; ++k)
    if (Case c = drawn(k); c.hidden_below != 0) return c;
}

TEST(TrialArgument, IsAVariantOfItsOwn) {
  const std::vector<Variant> all = variants();
  EXPECT_EQ(std::ranges::count(all, "hidden_below", &Variant::name), 1);
}

TEST(TrialArgument, IsDrawnForTheDefinitionAndForNoLaw) {
  std::set<std::int64_t> values;
  int cases = 0;
  for (std::int64_t k = 0; k < 2000; ++k) {
    const Case c = drawn(k);
    ASSERT_NO_THROW(validate(c));
    if (c.hidden_below == 0) continue;
    ++cases;
    values.insert(c.hidden_below);
    EXPECT_NE(c.provenance.kinds.value().find("hidden_below:given"), std::string::npos);
  }
  // One case in four has a variant, one of nine, and one of these in three has two.
  EXPECT_GT(cases, 40);
  EXPECT_LT(cases, 120);
  EXPECT_GT(values.size(), 8U);
  EXPECT_TRUE(values.contains(1));
  for (const Property* property : catalogue()) {
    if (property->name == "attention.oracle") continue;
    for (std::int64_t k = 0; k < 20; ++k)
      ASSERT_EQ(generate(*property, DType::f32, 1, k).hidden_below, 0) << property->name;
  }
}

TEST(TrialArgument, IsNamedAmongTheKindsThatMayBeDrawn) {
  const std::vector<std::string> kinds = all_kinds(Operation::attention);
  EXPECT_EQ(std::ranges::count(kinds, "hidden_below:given"), 1);
  const std::vector<std::string> others = all_kinds(Operation::multihead);
  EXPECT_EQ(std::ranges::count(others, "hidden_below:given"), 0);
}

TEST(TrialArgument, HidesKeys) {
  Case c = drawn_with_it();
  c.hidden_below = 2;
  EXPECT_EQ(sight(sight_rule(c), 0, 5, 9).first, 2);
  EXPECT_TRUE(hidden(c, 0, 0, 0, 1));
}

TEST(TrialArgument, StandsInCaseFilesWhereItIsNotNeutral) {
  Case c = drawn_with_it();
  EXPECT_EQ(decode_case(encode_case(c), "test"), c);
  EXPECT_NE(encode_case(c).find("hidden_below"), std::string::npos);
  EXPECT_NE(describe(c).find("hidden_below " + std::to_string(c.hidden_below)), std::string::npos);
  c.provenance.kinds.reset();
  c.hidden_below = 0;
  EXPECT_EQ(encode_case(c).find("hidden_below"), std::string::npos);
  EXPECT_EQ(describe(c).find("hidden_below"), std::string::npos);
  c.hidden_below = -3;
  try {
    validate(c);
    FAIL() << "taken";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "hidden_below is -3; it must be 0, or from 1 to 16384");
  }
}

TEST(TrialArgument, IsCarriedToTheWorker) {
  const Case c = drawn_with_it();
  Case there;
  set_arguments(there, argument_values(c));
  EXPECT_EQ(there.hidden_below, c.hidden_below);
  EXPECT_EQ(there.scale, c.scale);
  EXPECT_EQ(there.causal, c.causal);
}

TEST(TrialArgument, IsKeptBySelection) {
  const Case c = drawn_with_it();
  EXPECT_EQ(select(c, everything(c)), c);
}

TEST(TrialArgument, IsKeptFromAKernelThatDoesNotListIt) {
  TrialKernel kernel(Heeds::no, /*lists=*/false);
  const PropertyReport report = check_property("attention.oracle", kernel, DType::f64, 400);
  EXPECT_EQ(report.outcome, Outcome::held) << report.text;
  // Its cases are those that it would have without the argument.
  EXPECT_EQ(report.skipped, 0);
  EXPECT_EQ(kernel.seen, std::set<std::int64_t>{0});
  EXPECT_EQ(why_unsupported(kernel.manifest(), drawn_with_it()),
            "has the variant hidden_below; the manifest's variants do not list it");
}

TEST(TrialArgument, IsJudged) {
  TrialKernel right(Heeds::yes, true);
  const PropertyReport held = check_property("attention.oracle", right, DType::f64, 400);
  EXPECT_EQ(held.outcome, Outcome::held) << held.text;
  EXPECT_GT(right.seen.size(), 4U);
  for (const Heeds wrong : {Heeds::no, Heeds::off_by_one}) {
    TrialKernel kernel(wrong, true);
    EXPECT_EQ(check_property("attention.oracle", kernel, DType::f64, 400).outcome, Outcome::violated);
  }
}

TEST(TrialArgument, IsShrunkTowardsNeutral) {
  // A violation that needs it keeps it.
  TrialKernel ignores(Heeds::no, true);
  Case found;
  for (std::int64_t k = 0;; ++k) {
    found = project(drawn(k), ignores.manifest());
    if (check_case(oracle(), ignores, found).outcome == Outcome::violated) break;
  }
  EXPECT_NE(shrink(oracle(), ignores, found).hidden_below, 0);
  // One that does not is shown without it.
  class Nan final : public ForwardingKernel {
   public:
    Nan() : ForwardingKernel(std::make_unique<TrialKernel>(Heeds::yes, true)) {}
    [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<Nan>(); }
    [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool lse) override {
      Reply reply = ForwardingKernel::run(c, output, lse);
      for (std::int64_t i = 0; i < reply.out.elements(); ++i) reply.out.set(i, reply.out[i] * 1.5 + 1);
      return reply;
    }
  } wrong;
  for (std::int64_t k = 0;; ++k) {
    found = project(drawn(k), wrong.manifest());
    if (found.hidden_below != 0 && check_case(oracle(), wrong, found).outcome == Outcome::violated) break;
  }
  EXPECT_EQ(shrink(oracle(), wrong, found).hidden_below, 0);
}

TEST(TrialArgument, IsBredByACampaign) {
  const Target target{&oracle(), DType::f64};
  Stream stream(7);
  Input input = *input_of(drawn_with_it());
  EXPECT_EQ(case_of(input, oracle()).hidden_below, drawn_with_it().hidden_below);
  const Input again = parse_input(bytes_of(input), DType::f64, Operation::attention);
  EXPECT_EQ(case_of(again, oracle()).hidden_below, case_of(input, oracle()).hidden_below);
  EXPECT_EQ(bytes_of(again), bytes_of(input));
  std::set<std::int64_t> values;
  for (int step = 0; step < 2000; ++step) {
    input = restructured(input, target, stream);
    const Case c = case_of(input, oracle());
    ASSERT_NO_THROW(validate(c));
    values.insert(c.hidden_below);
  }
  EXPECT_TRUE(values.contains(0));
  EXPECT_GT(values.size(), 8U);
  // Bytes of anywhere are a valid case, too.
  for (int n = 0; n < 200; ++n) {
    std::vector<std::uint8_t> bytes(300);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(stream.next());
    ASSERT_NO_THROW(validate(case_of(parse_input(bytes, DType::f32, Operation::attention), oracle())));
  }
}

/// A program with an adapter, in a folder of the test's.
class TrialAdapter : public testing::Test {
 protected:
  std::unique_ptr<Kernel> served(const std::string& file, const std::string& text, const std::string& start) {
    const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / file;
    std::ofstream(path) << text;
    auto kernels = open_kernels("exec:" + start + " '" + path.string() + "'", {});
    return std::move(kernels.front());
  }
  std::unique_ptr<Kernel> python(const std::string& arguments, const std::string& parameter) {
    return served("trial.py",
                  "import sys\nsys.path.insert(0, '" + source_folder() +
                      "/core/adapters/python')\n"
                      "import attest_adapter, numpy\n"
                      "def attention(q, k, v, mask=None, scale=1.0" +
                      parameter + R"py():
    s = (q @ k.swapaxes(-1, -2)) * scale
    if mask is not None:
        s = numpy.where(mask, s, -numpy.inf) if mask.dtype == bool else s + mask
    s[..., :hidden_below] = -numpy.inf
    with numpy.errstate(all='ignore'):
        w = numpy.exp(s - s.max(axis=-1, keepdims=True, initial=-numpy.inf))
        return w @ v / w.sum(axis=-1, keepdims=True)
hidden_below = 0
attest_adapter.serve(attention, {"name": "trial", "dtypes": ["f64"], "fully_masked_row": "nan",
                                 "arithmetic": {"f64": {"exp_ulp": 3}})py" +
                      arguments + "})\n",
                  "/usr/bin/python3");
  }
};

TEST_F(TrialAdapter, PassesToAFunctionWhatItsManifestLists) {
  if (std::system("/usr/bin/python3 -c 'import numpy'") != 0) GTEST_SKIP() << "numpy cannot be imported";
  const auto kernel = python(R"(, "variants": {"hidden_below": {}})", ", hidden_below=0");
  const PropertyReport report = check_property("attention.oracle", *kernel, DType::f64, 300);
  EXPECT_EQ(report.outcome, Outcome::held) << report.text;
  Case c = drawn_with_it();
  for (std::int64_t k = 0; c.hidden_below >= keys_of(c) || c.causal != Causal::none || c.mask().present() ||
                           !why_unsupported(kernel->manifest(), c).empty();
       ++k)
    c = drawn(k), c.hidden_below = std::min<std::int64_t>(1, keys_of(c) - 1);
  EXPECT_EQ(check_case(oracle(), *kernel, c).outcome, Outcome::held);
}

TEST_F(TrialAdapter, AnswersUnsupportedForAFunctionThatDoesNotTakeIt) {
  if (std::system("/usr/bin/python3 -c 'import numpy'") != 0) GTEST_SKIP() << "numpy cannot be imported";
  const auto kernel = python(R"(, "variants": {"hidden_below": {}})", "");
  Case c = drawn_with_it();
  c.causal = Causal::none;
  const Reply reply = kernel->run(c);
  EXPECT_EQ(reply.status, CallStatus::unsupported);
  EXPECT_NE(reply.message.find("hidden_below"), std::string::npos) << reply.message;
}

TEST_F(TrialAdapter, AnswersUnsupportedWhereTheManifestDoesNotListIt) {
  if (std::system("/usr/bin/python3 -c 'import numpy'") != 0) GTEST_SKIP() << "numpy cannot be imported";
  const auto kernel = python("", "");
  Case c = drawn_with_it();
  c.causal = Causal::none;
  // As a program that was never asked what it lists would be called.
  const Reply reply = kernel->run(c);
  EXPECT_EQ(reply.status, CallStatus::unsupported);
  EXPECT_NE(reply.message.find("hidden_below"), std::string::npos) << reply.message;
}

TEST_F(TrialAdapter, InJavaScriptDoesTheSame) {
  if (std::system("node --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no node";
  const auto text = [](const std::string& arguments) {
    return "const { serve } = require('" + source_folder() +
           "/core/adapters/node/attest_adapter.js');\n"
           "function attention({ q, v, hiddenBelow }) {\n"
           "  const out = new Float64Array(q.shape[0] * q.shape[1] * q.shape[2] * v.shape[3]);\n"
           "  return out.fill(hiddenBelow ?? -1);\n}\n"
           "serve(attention, { name: 'trial', dtypes: ['f64'], causal: []" +
           arguments + " });\n";
  };
  Case c = drawn_with_it();
  c.causal = Causal::none;
  const Reply lists = served("lists.js", text(", variants: { hidden_below: {} }"), "node")->run(c);
  ASSERT_EQ(lists.status, CallStatus::ok) << lists.message;
  if (lists.out.elements() > 0) {
    EXPECT_EQ(lists.out[0], static_cast<double>(c.hidden_below));
  }
  const Reply silent = served("silent.js", text(""), "node")->run(c);
  EXPECT_EQ(silent.status, CallStatus::unsupported);
  EXPECT_NE(silent.message.find("hidden_below"), std::string::npos) << silent.message;
}

}  // namespace
}  // namespace attest

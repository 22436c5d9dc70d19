// A window of each convention is known by the keys that rows see, and one that is as asked is called so.
#include "properties/diagnosis/variants/probes/probe_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/test/says.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/variants/window_readings.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

struct Asked {
  std::int64_t i, j, M, N, L, R;
  bool bottom_right;

  [[nodiscard]] std::int64_t p() const { return bottom_right ? i + N - M : i; }
  [[nodiscard]] bool left() const { return L < 0 || j >= p() - L; }
  [[nodiscard]] bool right() const { return R < 0 || j <= p() + R; }
};
using Sees = std::function<bool(Asked)>;

/// A right kernel whose windows are masks that say what `sees` says.
Tampered windowed(const Sees& sees) {
  return Tampered(registered("builtin:two-pass"), [sees](Case& c) {
    if (!has_variant(c, "window")) return;
    const std::int64_t M = c.q().shape()[2], N = c.k().shape()[2];
    const bool bottom_right = c.alignment == Causal::bottom_right;
    Tensor mask(DType::boolean, {1, 1, M, N});
    for (std::int64_t e = 0; e < M * N; ++e)
      mask.set(e, sees({e / N, e % N, M, N, c.window_left, c.window_right, bottom_right}) ? 1.0 : 0.0);
    c[Slot::mask] = mask;
    drop_variant(c, "window");
    c.alignment = Causal::none;
  });
}

Probed asked(Kernel& kernel) {
  ProbeQuestions probe(kernel, 1);
  ask_windows(probe);
  return std::move(probe.result());
}

const ProbeAnswer& answer_to(const Probed& probed, std::string_view question) {
  for (const ProbeAnswer& answer : probed.answers)
    if (answer.question == question) return answer;
  throw std::out_of_range(std::string(question));
}

struct Convention {
  Sees sees;
  std::string_view top_left, bottom_right;  ///< what is found, of each alignment
  std::string_view shown;                   ///< in the evidence of the latter
};

constexpr std::string_view as_asked = "both ends are inclusive, as asked";

const std::vector<Convention>& conventions() {
  static const std::vector<Convention> all{
      {[](Asked a) { return a.left() && a.right(); }, as_asked, as_asked, "Every row of"},
      // cuDNN's bounds
      {[](Asked a) { return (a.L < 0 || a.j > a.p() - a.L) && a.right(); }, "the left end is one key short",
       "the left end is one key short", "In the adapter: pass window_left + 1"},
      // vLLM's W, JAX's ragged paged attention
      {[](Asked a) { return a.L < 0 ? a.right() : a.p() - a.j < a.L && a.j <= a.p(); },
       "counts the query itself and ends at it", "counts the query itself and ends at it", "\"right\": false"},
      {[](Asked a) { return a.left() && a.j <= a.p(); }, "the window ends at the query", "the window ends at the query",
       "\"requires\": [\"causal\"]"},
      {[](Asked a) { return (a.L < 0 || a.j >= a.p() - a.L - 1) && a.right(); }, "the left end is one key too far",
       "the left end is one key too far", "pass window_left - 1"},
      {[](Asked a) { return a.left() && (a.R < 0 || a.j < a.p() + a.R); }, "the right end is one key short",
       "the right end is one key short", "pass window_right + 1"},
      {[](Asked a) { return a.left() && (a.R < 0 || a.j <= a.p() + a.R + 1); }, "the right end is one key too far",
       "the right end is one key too far", "pass window_right - 1"},
      {[](Asked a) { return (a.L < 0 || a.j > a.p() - a.L) && (a.R < 0 || a.j < a.p() + a.R); },
       "both ends are one key short", "both ends are one key short", "window_left + 1 and window_right + 1"},
      {[](Asked a) { return a.L < 0 || a.R < 0 || (a.left() && a.right()); }, "dropped when one is unbounded",
       "dropped when one is unbounded", "at least as large as M + N"},
      {[](Asked a) { return a.L + a.R < 0 || (a.left() && a.right()); }, "(FlashAttention 4)", "(FlashAttention 4)",
       "at least as large as M + N"},
      // -1 becomes N in FlashAttention 2, and a side of at least N becomes -1: it shows where M > N + 1.
      {[](Asked a) { return (a.L >= a.N || a.left()) && (a.R >= a.N || a.right()); }, "(FlashAttention 2)",
       "(FlashAttention 2)", "less than M - 1"},
      {[](Asked) { return true; }, "a window is ignored", "a window is ignored", "leave \"window\" out"},
      {[](Asked a) { return a.right(); }, "the left end is ignored", "the left end is ignored", "\"left\": false"},
      {[](Asked a) { return a.left(); }, "the right end is ignored", "the right end is ignored", "\"right\": false"},
      {[](Asked a) { return (a.R < 0 || a.j >= a.p() - a.R) && (a.L < 0 || a.j <= a.p() + a.L); },
       "left and right are exchanged", "left and right are exchanged", "exchange window_left and"},
      {[](Asked a) {
         const std::int64_t L = a.L < 0 ? a.R : a.L, R = a.R < 0 ? a.L : a.R;
         return a.j >= a.p() - L && a.j <= a.p() + R;
       },
       "an end alone is taken for both", "an end alone is taken for both", "pass both ends"},
      {[](Asked a) { return a.j >= a.p() - a.L && a.j <= a.p() + a.R; }, "an end of -1 is taken for a number",
       "an end of -1 is taken for a number", "at least as large as M + N"},
      {[](Asked a) { return (a.L == 0 || a.left()) && (a.R == 0 || a.right()); }, "an end of 0 is taken for none",
       "an end of 0 is taken for none", "Unsupported for an end of 0"},
      // JAX's dot_product_attention, and FlashAttention, where an adapter hands on what it should refuse
      {[](Asked a) {
         a.bottom_right = false;
         return a.left() && a.right();
       },
       as_asked, "from the top-left in the place of the bottom-right",
       "window_left - (N - M) and window_right + (N - M)"},
      {[](Asked a) {
         a.bottom_right = true;
         return a.left() && a.right();
       },
       "from the bottom-right in the place of the top-left", as_asked, "Every row of"},
      {[](Asked a) {
         a.bottom_right = false;
         return (a.L < 0 || a.j > a.p() - a.L) && a.right();
       },
       "the left end is one key short",
       "from the top-left in the place of the bottom-right, and the left end is one key",
       "pass window_left + 1; list \"alignment\": [\"top-left\"]"},
  };
  return all;
}

TEST(ProbeWindows, NamesEachConvention) {
  std::set<std::string_view> named;
  for (const Convention& one : conventions()) {
    Tampered kernel = windowed(one.sees);
    const Probed probed = asked(kernel);
    const ProbeAnswer &top = answer_to(probed, "window, top-left"), &bottom = answer_to(probed, "window, bottom-right");
    EXPECT_THAT(top.found, Says(one.top_left));
    EXPECT_THAT(bottom.found, Says(one.bottom_right));
    EXPECT_THAT(bottom.evidence, Says(one.shown)) << bottom.found;
    EXPECT_EQ(top.contradicts, one.top_left != as_asked);
    EXPECT_EQ(bottom.contradicts, one.bottom_right != as_asked);
    std::vector<Causal> right;
    if (!top.contradicts) right.push_back(Causal::top_left);
    if (!bottom.contradicts) right.push_back(Causal::bottom_right);
    const auto& variants = probed.manifest.variants;
    ASSERT_EQ(variants.contains("window"), !right.empty()) << bottom.found;
    if (!right.empty()) {
      EXPECT_EQ(variants.at("window").alignment, right);
    }
    EXPECT_EQ(parse_manifest(to_json(probed.manifest), "found"), probed.manifest);
    const auto said = std::ranges::find_if(
        window_readings(), [&](const WindowReading& reading) { return top.found == reading.words(Causal::top_left); });
    ASSERT_NE(said, window_readings().end()) << "told apart from all others: " << top.found;
    named.insert(said->ends->words);
  }
  std::set<std::string_view> all;
  for (const WindowReading& reading : window_readings()) all.insert(reading.ends->words);
  EXPECT_EQ(named, all) << "each reading has a kernel here";
}

TEST(ProbeWindows, ShowsTheKeysOfARow) {
  Tampered kernel = windowed(conventions()[1].sees);
  const Probed probed = asked(kernel);
  EXPECT_THAT(
      answer_to(probed, "window, bottom-right").evidence,
      Says("Row 4 sees key 8 where window_left 0, window_right -1 asks for keys 7..8 (bottom-right, 6 queries and 9 "
           "keys). In the adapter: pass window_left + 1"));
}

TEST(ProbeWindows, FindsARightKernelRight) {
  for (const char* const id : {"builtin:two-pass", "builtin:flash", "core:float"}) {
    const auto kernel = registered(id);
    const Probed probed = asked(*kernel);
    EXPECT_FALSE(probed.contradicted()) << id;
    EXPECT_EQ(probed.manifest, kernel->manifest()) << id;
    EXPECT_EQ(answer_to(probed, "window, top-left").found, as_asked) << id;
    EXPECT_EQ(answer_to(probed, "window, a right end alone").found, "yes") << id;
    EXPECT_EQ(answer_to(probed, "window, both ends").found, "yes") << id;
  }
}

TEST(ProbeWindows, AsksNothingOfAKernelThatDoesNotListThem) {
  bool sent = false;
  Tampered kernel = asked_otherwise([&](Case& c) { sent = sent || has_variant(c, "window"); });
  kernel.manifest().variants.clear();
  const Probed probed = asked(kernel);
  EXPECT_THAT(answer_to(probed, "window").found, Says("not asked"));
  EXPECT_FALSE(answer_to(probed, "window").contradicts);
  EXPECT_FALSE(sent);
}

/// What a kernel refuses: a function of the case.
class Refusing : public Tampered {
 public:
  Refusing(std::function<bool(const Case&)> refused, CallStatus status)
      : Tampered(registered("builtin:two-pass"), [](Case&) {}), refused_(std::move(refused)), status_(status) {}
  Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    if (has_variant(c, "window") && refused_(c)) return {status_, "no such window", {}, {}};
    return Tampered::run(c, output, want_lse);
  }

 private:
  std::function<bool(const Case&)> refused_;
  CallStatus status_;
};

TEST(ProbeWindows, TellsEndsAndAlignmentsThatAreNotServed) {
  Refusing left_only([](const Case& c) { return c.window_right >= 0 || c.alignment == Causal::top_left; },
                     CallStatus::unsupported);
  const Probed probed = asked(left_only);
  EXPECT_FALSE(probed.contradicted()) << "it says what it cannot do";
  EXPECT_EQ(answer_to(probed, "window, top-left").found, "unsupported: no such window");
  EXPECT_EQ(answer_to(probed, "window, bottom-right").found, as_asked);
  EXPECT_EQ(answer_to(probed, "window, a left end alone").found, "yes");
  EXPECT_EQ(answer_to(probed, "window, both ends").found, "unsupported: no such window");
  const VariantTerms& found = probed.manifest.variants.at("window");
  EXPECT_TRUE(found.left);
  EXPECT_FALSE(found.right);
  EXPECT_EQ(found.alignment, std::vector{Causal::bottom_right});

  Refusing failing([](const Case& c) { return c.window_left == 0; }, CallStatus::failed);
  const Probed failed = asked(failing);
  EXPECT_TRUE(answer_to(failed, "window, top-left").contradicts);
  EXPECT_EQ(answer_to(failed, "window, top-left").found, "failed: no such window");
  EXPECT_FALSE(failed.manifest.variants.contains("window"));

  Refusing none([](const Case&) { return true; }, CallStatus::unsupported);
  EXPECT_FALSE(asked(none).manifest.variants.contains("window"));
}

TEST(ProbeWindows, AsksAsTheManifestHasIt) {
  // What is done and not declared is more than declared.
  Tampered modest = asked_otherwise([](Case&) {});
  VariantTerms& terms = modest.manifest().variants.at("window");
  terms.right = false;
  terms.alignment = {Causal::bottom_right};
  const Probed more = asked(modest);
  EXPECT_TRUE(answer_to(more, "window, top-left").beyond);
  EXPECT_TRUE(answer_to(more, "window, a right end alone").beyond);
  EXPECT_FALSE(answer_to(more, "window, a left end alone").beyond);
  EXPECT_TRUE(more.manifest.variants.at("window").right);
  // Ends are those of the alignments that are offered.
  Tampered top = windowed(conventions()[18].sees);
  top.manifest().variants.at("window").alignment = {Causal::top_left};
  const Probed one = asked(top);
  EXPECT_FALSE(one.contradicted());
  EXPECT_EQ(answer_to(one, "window, a left end alone").found, "yes");
  EXPECT_EQ(one.manifest, top.manifest());
  // With the causal form that it asks for; a window of one length alone is of both alignments.
  bool without = false;
  Tampered causal =
      asked_otherwise([&](Case& c) { without = without || (has_variant(c, "window") && c.causal != c.alignment); });
  causal.manifest().variants.at("window").required = {Feature::causal};
  EXPECT_EQ(answer_to(asked(causal), "window, bottom-right").found, as_asked);
  EXPECT_FALSE(without);
  Tampered square = windowed(conventions()[18].sees);
  square.manifest().same_lengths = true;
  square.manifest().keys_multiple = square.manifest().queries_multiple = 16;
  EXPECT_EQ(answer_to(asked(square), "window, bottom-right").found, as_asked);
}

TEST(ProbeWindows, KnowsAWindowThatCountsTheQueryWhateverItMakesOfNone) {
  // W counts the query itself: of W = 0 one such kernel sees the query's own key, another one all.
  for (const std::int64_t of_none : {std::int64_t{0}, std::int64_t{100}}) {
    Tampered kernel = windowed([&](Asked a) {
      if (a.L >= 0) a.L = a.L == 0 ? of_none : a.L - 1;
      return a.left() && a.right();
    });
    const ProbeAnswer answer = answer_to(asked(kernel), "window, bottom-right");
    EXPECT_THAT(answer.found, Says("the left end is one key short: the window counts the query itself"));
    EXPECT_TRUE(answer.contradicts);
  }
}

TEST(ProbeWindows, BlamesNoKernelForAnEndThatItsManifestRulesOut) {
  const auto ignores_right = [](const Asked& a) { return a.left(); };
  Tampered honest = windowed(ignores_right);
  honest.manifest().variants.at("window").right = false;
  const Probed probed = asked(honest);
  EXPECT_FALSE(probed.contradicted());
  EXPECT_EQ(answer_to(probed, "window, bottom-right").found, as_asked);
  EXPECT_EQ(probed.manifest, honest.manifest());
  Tampered other = windowed(ignores_right);
  EXPECT_TRUE(asked(other).contradicted());
}

TEST(ProbeWindows, TellsWeightsThatAreNoSet) {
  Tampered kernel = answered_otherwise([](Reply& reply) {
    // Of the identity alone there are ones.
    if (reply.out.elements() > 0 && reply.out[0] == 1) reply.out.set(0, 0.5);
  });
  const ProbeAnswer answer = answer_to(asked(kernel), "window, top-left");
  EXPECT_TRUE(answer.contradicts);
  EXPECT_THAT(answer.found, Says("row 0"));
  EXPECT_THAT(answer.found, Says("0.5"));
}

}  // namespace
}  // namespace attest

// One call before the run, and what it makes of the mistakes that newcomers make.
#include "reports/run/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "core/oracle/oracle.h"
#include "reports/test/fakes.h"

namespace attest {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// Answers as a function says, which has a right kernel at hand; counts its calls.
class Answering final : public Kernel {
 public:
  using Answer = std::function<Reply(Kernel& right, const Case&)>;
  explicit Answering(Answer answer, Manifest manifest = any()) : answer_(std::move(answer)) {
    right_ = std::move(open_kernels("builtin:two-pass", {}).front());
    manifest_ = std::move(manifest);
  }
  [[nodiscard]] static Manifest any() {
    Manifest manifest = open_kernels("builtin:two-pass", {}).front()->manifest();
    manifest.name = "answering";
    return manifest;
  }
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType>, bool) override {
    ++calls;
    return answer_(*right_, c);
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<Answering>(answer_, manifest_);
  }

  int calls = 0;

 private:
  std::string id_ = "./answering.so";
  Answer answer_;
  Manifest manifest_;
  std::unique_ptr<Kernel> right_;
};

Preflight seen(Answering& kernel, DType dtype = DType::f32) {
  return preflight(kernel, plain_problem(kernel.manifest(), dtype).value());
}
Preflight seen(Answering::Answer answer) {
  Answering kernel(std::move(answer));
  return seen(kernel);
}

/// Heads and tokens in each other's place.
Tensor swapped(const Tensor& t) {
  const Shape& s = t.shape();
  Tensor result(t.dtype(), {s[0], s[2], s[1], s[3]});
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    const std::int64_t d = i % s[3], token = i / s[3] % s[2], head = i / s[3] / s[2] % s[1], b = i / s[3] / s[2] / s[1];
    result.set(((b * s[2] + token) * s[1] + head) * s[3] + d, t[i]);
  }
  return result;
}

Reply with_out(Tensor out) {
  return {CallStatus::ok, {}, std::move(out), {}};
}

Reply of_other(Kernel& right, Case c, const std::function<void(Case&)>& change) {
  change(c);
  return right.run(c);
}

TEST(PlainProblem, HasExtentsThatAllDifferWithinTheLimits) {
  Manifest manifest = Answering::any();
  manifest.grouped_query = false;
  const auto extents = [&] {
    const Case c = plain_problem(manifest, DType::f32).value();
    validate(c);
    EXPECT_EQ(why_unsupported(manifest, c), "");
    const Shape &q = c.q().shape(), &v = c.v().shape();
    return std::multiset<std::int64_t>{q[0], q[1], q[2], v[2], q[3], v[3]};
  };
  EXPECT_EQ(extents(), (std::multiset<std::int64_t>{2, 3, 4, 5, 6, 7}));
  manifest.head_dim_multiple = 8;
  manifest.heads_multiple = 2;
  EXPECT_EQ(extents(), (std::multiset<std::int64_t>{2, 4, 5, 7, 8, 16}));
  manifest.max_head_dim = 8;
  manifest.max_queries = manifest.max_keys = 1;
  manifest.max_heads = 2;
  EXPECT_EQ(extents(), (std::multiset<std::int64_t>{1, 1, 2, 2, 8, 8}));
  manifest.value_dim_equals_head_dim = true;
  EXPECT_EQ(extents(), (std::multiset<std::int64_t>{1, 1, 2, 2, 8, 8}));
  manifest.attention = false;
  manifest.multihead = manifest.self_attention_only = true;
  const Case many = plain_problem(manifest, DType::f32).value();
  validate(many);
  EXPECT_EQ(many.q(), many.k());
  manifest.dtypes = {DType::f32};
  EXPECT_FALSE(plain_problem(manifest, DType::f64));
  // Nor where the limits ask for more than the budget of a case.
  Manifest vast = manifest;
  vast.head_dim_multiple = vast.heads_multiple = 65536;
  vast.max_head_dim.reset();
  vast.max_heads.reset();
  for (const bool multihead : {false, true}) {
    vast.attention = !multihead;
    vast.multihead = multihead;
    EXPECT_FALSE(plain_problem(vast, DType::f32));
  }
}

TEST(Preflight, HasNothingToSayOfRightKernels) {
  for (const auto& kernel : open_kernels("builtin:*", {})) {
    for (const DType dtype : kernel->manifest().dtypes) {
      const Case c = plain_problem(kernel->manifest(), dtype).value();
      EXPECT_EQ(preflight(*kernel, c).trouble, "") << kernel->id() << " " << name_of(dtype);
    }
  }
  Answering kernel([](Kernel& right, const Case& c) { return right.run(c); });
  EXPECT_EQ(seen(kernel).trouble, "");
  EXPECT_EQ(kernel.calls, 1);
  // With one key the answer is v itself, and rightly so.
  Manifest one_key = Answering::any();
  one_key.max_keys = one_key.max_queries = 1;
  Answering narrow([](Kernel& right, const Case& c) { return right.run(c); }, one_key);
  EXPECT_EQ(seen(narrow).trouble, "");
  // A little wrong with axes of length 1, which stand anywhere: the run is to tell, not a guess.
  Answering little(
      [](Kernel& right, const Case& c) {
        Reply reply = right.run(c);
        const auto facts = exact_elements(c, right.manifest().arithmetic_for(c.dtype()));
        const auto widest = std::ranges::max_element(facts, {}, &ElementFacts::allowed);
        reply.out.set(widest - facts.begin(), widest->exact.lower + 3 * widest->allowed);
        return reply;
      },
      one_key);
  EXPECT_EQ(seen(little).trouble, "");
  // What it cannot do it need not do.
  EXPECT_EQ(seen([](Kernel&, const Case&) { return Reply{CallStatus::unsupported, "no", {}, {}}; }).trouble, "");
}

TEST(Preflight, TellsHowACallEnded) {
  for (const CallStatus status : {CallStatus::failed, CallStatus::rejected, CallStatus::malformed, CallStatus::died}) {
    const Preflight result = seen([status](Kernel&, const Case&) { return Reply{status, "so it is", {}, {}}; });
    EXPECT_THAT(result.trouble, AllOf(StartsWith(std::string(name_of(status))), HasSubstr("so it is")));
    EXPECT_EQ(result.status, status);
  }
}

TEST(Preflight, TellsNumbersThatAreNone) {
  const auto filled_with = [](double value, std::int64_t from) {
    return seen([=](Kernel& right, const Case& c) {
             Reply reply = right.run(c);
             for (std::int64_t i = from; i < reply.out.elements(); ++i) reply.out.set(i, value);
             return reply;
           })
        .trouble;
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(filled_with(nan, 0), "every number of out [2, 3, 5, 6] is NaN or Inf");
  EXPECT_EQ(filled_with(nan, 178), "2 of 180 numbers of out [2, 3, 5, 6] are NaN or Inf");
  EXPECT_EQ(filled_with(0, 0), "the numbers of out [2, 3, 5, 6] are wrong: every one is 0");
  // One that is wrong in a way of its own is the run's to show.
  EXPECT_EQ(filled_with(0, 178), "");
}

TEST(Preflight, RecognisesMistakes) {
  const auto likeness = [](Answering::Answer answer, DType dtype = DType::f32) {
    Answering kernel(std::move(answer));
    return seen(kernel, dtype).trouble;
  };
  for (const Slot slot : {Slot::q, Slot::v}) {
    EXPECT_THAT(likeness([slot](Kernel&, const Case& c) {
                  Tensor out(c.dtype(), c.out_shape());
                  for (std::int64_t i = 0; i < out.elements(); ++i) out.set(i, c[slot][i % c[slot].elements()]);
                  return with_out(std::move(out));
                }),
                HasSubstr(std::string("it is ") + std::string(name_of(slot)) + " itself"));
  }
  const auto swaps_out = [](Kernel& right, const Case& c) {
    return with_out(swapped(right.run(c).out).reshaped(c.out_shape()));
  };
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    EXPECT_THAT(likeness(swaps_out, dtype),
                HasSubstr("it looks like [batch, tokens, heads, dim] where [batch, heads, tokens, dim] is due"));
  }
  EXPECT_THAT(likeness([](Kernel& right, const Case& c) {
                return of_other(right, c, [](Case& o) { o.scale = inverse_root(4); });
              }),
              HasSubstr("the scale were 1/sqrt(dk)"));
  EXPECT_THAT(likeness([](Kernel& right, const Case& c) {
                return of_other(right, c, [](Case& o) { o.scale *= inverse_root(4); });
              }),
              HasSubstr("divided by sqrt(dk) besides the scale"));
  EXPECT_THAT(likeness([](Kernel& right, const Case& c) { return of_other(right, c, [](Case& o) { o.scale = 1; }); }),
              HasSubstr("not multiplied by the scale"));
  EXPECT_THAT(likeness([](Kernel& right, const Case& c) {
                return of_other(right, c, [](Case& o) { o.causal = Causal::top_left; });
              }),
              HasSubstr("it looks as if it were causal"));
}

TEST(Preflight, RecognisesAxesReadInAnotherOrder) {
  // Heads and tokens that do not fit each other are an error, or another wrong answer.
  for (const bool raises : {true, false}) {
    Answering kernel([raises](Kernel& right, const Case& c) {
      Case read = c;
      for (const Slot slot : {Slot::q, Slot::k, Slot::v}) read[slot] = swapped(c[slot]);
      if (read.q().shape()[1] == read.k().shape()[1])
        return with_out(swapped(right.run(read).out).reshaped(c.out_shape()));
      if (raises) return Reply{CallStatus::failed, "shapes do not match", {}, {}};
      Tensor out(c.dtype(), c.out_shape());
      for (std::int64_t i = 0; i < out.elements(); ++i) out.set(i, 0.01 * static_cast<double>(i));
      return with_out(std::move(out));
    });
    const std::string trouble = seen(kernel).trouble;
    EXPECT_THAT(trouble, HasSubstr("it looks as if it took q, k and v for [batch, tokens, heads, dim] where they are "
                                   "[batch, heads, tokens, dim]"));
    EXPECT_EQ(trouble.find("shapes do not match") != std::string::npos, raises);
    EXPECT_EQ(kernel.calls, 2);
  }
}

/// What is printed, and the notes.
std::pair<std::string, std::vector<MetaRecord>> looked(Answering::Answer answer, const Amount& amount) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  kernels.push_back(std::move(open_kernels("builtin:flash", {}).front()));
  kernels.push_back(std::make_unique<Answering>(std::move(answer)));
  const DType wanted[] = {DType::f64, DType::f32};
  testing::internal::CaptureStderr();
  std::vector<MetaRecord> notes = look_before_the_run(kernels, wanted, amount);
  return {testing::internal::GetCapturedStderr(), std::move(notes)};
}

TEST(Preflight, PrintsALineForEachTroubleAndNotesIt) {
  const auto [text, notes] =
      looked([](Kernel&, const Case&) { return Reply{CallStatus::failed, "two\nlines", {}, {}}; }, {});
  EXPECT_EQ(text, "preflight of ./answering.so: its first answer in f64, f32: failed: two lines\n");
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].event, "note");
  EXPECT_EQ(notes[0].facts.at("kernel"), "./answering.so");
  EXPECT_EQ(notes[0].facts.at("text"), "its first answer in f64, f32: failed: two lines");
}

TEST(Preflight, SaysHowLongARunOfLongCallsTakes) {
  const auto slowly = [](Kernel& right, const Case& c) {
    ::usleep(120'000);
    return right.run(c);
  };
  const auto [text, notes] = looked(slowly, {.cases = 30'000, .jobs = 1});
  EXPECT_THAT(text, AllOf(StartsWith("preflight of ./answering.so: a call takes 0.1"),
                          HasSubstr("the 60000 cases of this run take 2 h"), HasSubstr("--cases")));
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(looked(slowly, {.cases = 100, .jobs = 1}).first, "");
  EXPECT_EQ(looked([](Kernel& right, const Case& c) { return right.run(c); }, {.cases = 1 << 30, .jobs = 1}).first, "");
}

TEST(Preflight, HasAPlainProblemWithinEveryLimit) {
  using Limit = void (*)(Manifest&);
  for (const Limit limit :
       std::initializer_list<Limit>{[](Manifest& m) { m.head_dims = {64, 128}, m.value_dims = {96}; },
                                    [](Manifest& m) { m.queries_multiple = m.keys_multiple = 64; },
                                    [](Manifest& m) { m.same_lengths = true, m.min_keys = 100; },
                                    [](Manifest& m) { m.grouped_query = true, m.group_sizes = {4, 8}; },
                                    [](Manifest& m) { m.causal = {Causal::top_left}, m.required = {Feature::causal}; },
                                    [](Manifest& m) { m.required = {Feature::mask}; }}) {
    Manifest manifest = Answering::any();
    limit(manifest);
    const std::optional<Case> c = plain_problem(manifest, DType::f32);
    ASSERT_TRUE(c) << to_json(manifest);
    EXPECT_EQ(why_unsupported(manifest, *c), "");
    EXPECT_NO_THROW(validate(*c));
  }
  Manifest tiles = Answering::any();
  tiles.queries_multiple = tiles.keys_multiple = 64;
  const Case apart = plain_problem(tiles, DType::f32).value();
  EXPECT_NE(apart.q().shape()[2], apart.k().shape()[2]) << "lengths that differ tell one from the other";
}

}  // namespace
}  // namespace attest

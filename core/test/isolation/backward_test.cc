// Backward passes across the contract: of a library in a process of its own and in this one, and of a program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/oracle/gradients/gradients.h"
#include "core/problem/case.h"
#include "core/problem/memory.h"
#include "core/test/isolation/adapter_checks.h"
#include "core/test/isolation/opening.h"
#include "core/test/says.h"

namespace attest {
namespace {

using namespace testing_process;

Case backward_case(std::int64_t heads, std::int64_t kv_heads, Causal causal, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const auto drawn = [&](const Shape& shape) {
    Tensor t(DType::f64, shape);
    for (std::int64_t e = 0; e < t.elements(); ++e) t.set(e, normal(random));
    return t;
  };
  Case c;
  c.scale = 0.5, c.causal = causal;
  c[Slot::q] = drawn({2, heads, 3, 4}), c[Slot::k] = drawn({2, kv_heads, 5, 4}),
  c[Slot::v] = drawn({2, kv_heads, 5, 2});
  c[Slot::d_out] = drawn({2, heads, 3, 2});
  if (seed % 3 == 0) c[Slot::d_lse] = drawn({2, heads, 3});
  return c;
}

/// The gradients of the kernel's own answers, and what is said of them.
struct Outcomes {
  Reply reply;
  std::array<Verdict, gradient_count> verdicts;
};
Outcomes outcomes_of(Kernel& kernel, const Case& c) {
  const Case forward = forward_of(c);
  const Reply answer = kernel.run(forward, c.dtype(), /*want_lse=*/true);
  EXPECT_EQ(answer.status, CallStatus::ok) << answer.message;
  Outcomes all;
  all.reply = kernel.backward(c, {answer.out, answer.lse}, c.dtype());
  if (all.reply.status != CallStatus::ok) return all;
  const Manifest& manifest = kernel.manifest();
  std::array<Tensor, gradient_count> found;
  for (const Gradient gradient : every_gradient)
    found[static_cast<std::size_t>(gradient)] = all.reply.gradients[static_cast<std::size_t>(gradient)].tensor();
  all.verdicts = judge_gradients(forward, {c[Slot::d_out], c[Slot::d_lse], answer.out, answer.lse}, found,
                                 manifest.arithmetic_for(c), manifest.backward_arithmetic_for(c));
  return all;
}

std::string backward_library(const std::string& name) {
  return test_library_folder() + "/backward_" + name + ".so";
}
std::string program(const std::string& mode) {
  return "exec:/usr/bin/python3 " + source_folder() + "/core/test/isolation/backward_kernel.py " + mode;
}

std::string javascript(const std::string& mode) {
  return "exec:node '" + source_folder() + "/core/test/isolation/backward_kernel.js' " + mode;
}
bool has_node() {
  return succeeds("node -e 'process.exit(+(process.versions.node.split(\".\")[0] < 18))'");
}

void expect_right(Kernel& kernel, bool causal) {
  EXPECT_TRUE(kernel.manifest().backward);
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const std::int64_t heads = 1 + seed % 4, kv_heads = heads == 4 ? 2 : 1;
    const Case c = backward_case(heads, kv_heads, causal && seed % 2 == 0 ? Causal::bottom_right : Causal::none, seed);
    const Outcomes found = outcomes_of(kernel, c);
    ASSERT_EQ(found.reply.status, CallStatus::ok) << found.reply.message;
    for (const Gradient gradient : gradients_by_inputs) {
      const auto at = static_cast<std::size_t>(gradient);
      EXPECT_EQ(found.verdicts[at].outcome, Outcome::held) << name_of(gradient) << ": " << found.verdicts[at].reason;
      EXPECT_EQ(found.reply.gradients[at].shape(), c[slot_of(gradient)].shape());
    }
  }
}

/// Asked for one gradient it returns that one, as it does among all.
void expect_each_alone(Kernel& kernel) {
  const Case c = backward_case(4, 2, Causal::none, 7);
  const Reply answer = kernel.run(forward_of(c), c.dtype(), /*want_lse=*/true);
  ASSERT_EQ(answer.status, CallStatus::ok) << answer.message;
  const Reply all = kernel.backward(c, {answer.out, answer.lse}, c.dtype());
  for (const Gradient gradient : gradients_by_inputs) {
    BackwardCall call{answer.out, answer.lse, {}};
    call.wanted[static_cast<std::size_t>(gradient)] = true;
    const Reply alone = kernel.backward(c, call, c.dtype());
    ASSERT_EQ(alone.status, CallStatus::ok) << alone.message;
    for (const Gradient one : every_gradient) {
      const auto at = static_cast<std::size_t>(one);
      EXPECT_EQ(alone.gradients[at].present(), one == gradient);
      if (one == gradient) {
        EXPECT_EQ(alone.gradients[at].tensor(), all.gradients[at].tensor()) << name_of(one);
      }
    }
  }
}

TEST(Backward, OfALibraryInAProcess) {
  const auto kernel = open_kernel(backward_library("right"));
  expect_right(*kernel, /*causal=*/true);
  expect_right(*kernel->clone(), /*causal=*/true);
  expect_each_alone(*kernel);
}
TEST(Backward, OfALibraryInThisProcess) {
  KernelOptions options = patient();
  options.in_process = true;
  const auto kernel = open_kernel(backward_library("right"), options);
  expect_right(*kernel, /*causal=*/true);
  expect_each_alone(*kernel);
}
TEST(Backward, OfAProgram) {
  const auto kernel = open_kernel(program("right"));
  expect_right(*kernel, /*causal=*/false);
  expect_each_alone(*kernel);
  expect_each_alone(*open_kernel(program("all")));
}

/// Every tensor of a backward call under strides of its own.
Case strided_case() {
  Case c = backward_case(4, 2, Causal::none, 9);
  set_layouts(
      c, parse_layouts(
             "q=token-major k=padded-rows v=repeated d_out=column-major d_lse=every-other out=packed lse=padded-rows"));
  return c;
}
std::vector<std::int64_t> strides_of(MemoryLayout layout, const Tensor& tensor) {
  const Placement placed = place(layout, tensor.view());
  return {placed.stride.begin(), placed.stride.begin() + tensor.shape().rank()};
}

TEST(Backward, WhatItIsGivenAndReturnsLiesUnderStrides) {
  const Case c = strided_case();
  const Tensor out = backward_case(4, 2, Causal::none, 1)[Slot::d_out],
               lse = backward_case(4, 2, Causal::none, 3)[Slot::d_lse];
  Manifest manifest;
  manifest.name = "strided", manifest.dtypes = {DType::f64}, manifest.strides = manifest.lse = manifest.backward = true;
  manifest.backward_terms.d_lse = true;
  int inputs = 0, outputs = 0;
  const auto under = [](const attest_tensor& view, MemoryLayout layout, const Tensor& tensor) {
    EXPECT_EQ(std::vector<std::int64_t>(view.stride, view.stride + view.rank), strides_of(layout, tensor));
  };
  const auto each = [](const attest_tensor& view, auto&& visit) {
    std::int64_t e = 0;
    for (std::int64_t b = 0; b < view.shape[0]; ++b)
      for (std::int64_t h = 0; h < view.shape[1]; ++h)
        for (std::int64_t i = 0; i < view.shape[2]; ++i)
          for (std::int64_t column = 0; column < (view.rank == 4 ? view.shape[3] : 1); ++column, ++e)
            visit(e, static_cast<double*>(view.data)[b * view.stride[0] + h * view.stride[1] + i * view.stride[2] +
                                                     (view.rank == 4 ? column * view.stride[3] : 0)]);
  };
  KernelFunctions functions;
  functions.backward = [&](const attest_backward_problem& p, attest_gradients& g, std::string&) {
    const auto given = [&](const attest_tensor& view, MemoryLayout layout, const Tensor& tensor) {
      under(view, layout, tensor);
      each(view, [&](std::int64_t e, double x) {
        EXPECT_EQ(x, tensor[e]);
        ++inputs;
      });
    };
    given(p.forward->q, MemoryLayout::token_major, c.q());
    given(p.d_out, MemoryLayout::column_major, c[Slot::d_out]);
    given(p.d_lse, MemoryLayout::every_other, c[Slot::d_lse]);
    given(p.out, MemoryLayout::packed, out);
    given(p.lse, MemoryLayout::padded_rows, lse);
    under(g.dq, MemoryLayout::packed, c.q());  // out's: no output is repeated, as v is
    under(g.dk, MemoryLayout::token_major, c.k());
    under(g.dv, MemoryLayout::padded_rows, c.v());
    for (attest_tensor* const view : {&g.dq, &g.dk, &g.dv}) {
      each(*view, [&](std::int64_t e, double& x) { x = static_cast<double>(e), ++outputs; });
    }
    return ATTEST_OK;
  };
  const Reply reply =
      function_kernel("test:strided", manifest, functions)->backward(c, {out, lse, all_gradients, {}}, DType::f64);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_EQ(inputs, 2 * 4 * 3 * (4 + 2 + 1 + 2 + 1));
  EXPECT_EQ(outputs, 2 * 4 * 3 * 4 + 2 * 2 * 5 * (4 + 2));
  for (const Gradient one : gradients_by_inputs) {
    const Tensor& gradient = reply.gradients[static_cast<std::size_t>(one)].tensor();
    for (std::int64_t e = 0; e < gradient.elements(); ++e) ASSERT_EQ(gradient[e], static_cast<double>(e));
  }
}

TEST(Backward, WhatAProgramReturnsOfPaddingIsNotSeen) {
  Case c = backward_case(2, 1, Causal::none, 3);
  c[Slot::kv_lengths] = Tensor(DType::i32, Shape{2});
  c[Slot::kv_lengths].set(0, 2), c[Slot::kv_lengths].set(1, 5);
  const auto kernel = open_kernel(program("lengths"));
  const Outcomes found = outcomes_of(*kernel, c), again = outcomes_of(*kernel, c);
  ASSERT_EQ(found.reply.status, CallStatus::ok) << found.reply.message;
  for (const Gradient gradient : gradients_by_inputs) {
    const auto at = static_cast<std::size_t>(gradient);
    EXPECT_EQ(found.verdicts[at].outcome, Outcome::held) << name_of(gradient) << ": " << found.verdicts[at].reason;
    EXPECT_EQ(found.reply.gradients[at].tensor(), again.reply.gradients[at].tensor()) << name_of(gradient);
  }
  // Rows 2 to 4 of the first entry, of two and of four columns.
  for (std::int64_t e = 4; e < 10; ++e) EXPECT_EQ(found.reply.gradients[2][e], 0);
  for (std::int64_t e = 8; e < 20; ++e) EXPECT_EQ(found.reply.gradients[1][e], 0);
}

TEST(Backward, AProgramIsToldOfStrides) {
  const Case c = strided_case();
  const Tensor out(DType::f64, {2, 4, 3, 2}), lse(DType::f64, {2, 4, 3});
  const Reply reply = open_kernel(program("strides"))->backward(c, {out, lse, all_gradients, {}}, DType::f64);
  EXPECT_EQ(reply.status, CallStatus::failed);
  const auto said = nlohmann::json::parse(reply.message.substr(reply.message.find('{')));
  EXPECT_EQ(said.size(), 7U) << reply.message;
  const auto strides = [&](const char* name) { return said.at(name).at("strides").get<std::vector<std::int64_t>>(); };
  EXPECT_EQ(strides("d_out"), strides_of(MemoryLayout::column_major, out));
  EXPECT_EQ(strides("d_lse"), strides_of(MemoryLayout::every_other, lse));
  EXPECT_EQ(strides("out"), strides_of(MemoryLayout::packed, out));
  EXPECT_EQ(strides("lse"), strides_of(MemoryLayout::padded_rows, lse));
}

TEST(Backward, OfAFunctionInJavaScript) {
  if (!has_node()) GTEST_SKIP() << "there is no Node.js 18 or later";
  const auto kernel = open_kernel(javascript("right"));
  expect_right(*kernel, /*causal=*/false);
  expect_each_alone(*kernel);
  const Case c = backward_case(4, 2, Causal::none, 7);
  const Outcomes wrong = outcomes_of(*open_kernel(javascript("without-delta")), c);
  EXPECT_EQ(wrong.verdicts[0].outcome, Outcome::violated);
  EXPECT_EQ(wrong.verdicts[1].outcome, Outcome::violated);
  EXPECT_EQ(wrong.verdicts[2].outcome, Outcome::held);
  const auto failure = [&](const std::string& mode) {
    const Outcomes found = outcomes_of(*open_kernel(javascript(mode)), c);
    EXPECT_EQ(found.reply.status, CallStatus::failed);
    return found.reply.message;
  };
  EXPECT_THAT(failure("no-dk"), Says("returned undefined for dk"));
  EXPECT_THAT(failure("short-dq"), Says("for dq where Float64Array of 96 is due"));
}

TEST(Backward, WhatIsWrongIsViolated) {
  Case c = backward_case(4, 2, Causal::none, 7);
  const auto outcome = [&](const std::string& name) {
    const auto kernel = open_kernel(backward_library(name));
    return outcomes_of(*kernel, c);
  };
  const auto violated = [](const Outcomes& found) {
    std::string names;
    for (const Gradient gradient : every_gradient)
      if (found.verdicts[static_cast<std::size_t>(gradient)].outcome == Outcome::violated) names += name_of(gradient);
    return names;
  };
  EXPECT_EQ(violated(outcome("forgets_delta")), "dqdk");
  EXPECT_EQ(violated(outcome("last_head_of_group")), "dkdv");
  EXPECT_EQ(violated(outcome("scales_twice")), "dqdk");
  EXPECT_EQ(violated(outcome("without_the_caps_slope")), "");
  EXPECT_EQ(violated(outcome("ignores_d_lse")), "");
  c[Slot::d_lse] = backward_case(4, 2, Causal::none, 9)[Slot::d_lse];
  EXPECT_EQ(violated(outcome("right")), "");
  EXPECT_EQ(violated(outcome("ignores_d_lse")), "dqdk");
  c[Slot::d_lse] = Tensor();
  c.softcap = 2;
  EXPECT_EQ(violated(outcome("right")), "");
  EXPECT_EQ(violated(outcome("without_the_caps_slope")), "dqdk");
  c.softcap = 0;
  c[Slot::mask] = Tensor(DType::f64, {1, 1, 3, 5}), c[Slot::sink] = Tensor(DType::f32, {4});
  for (std::int64_t e = 0; e < 15; ++e) c[Slot::mask].set(e, static_cast<double>(e % 4) / 2 - 0.75);
  c[Slot::mask].set(7, -std::numeric_limits<double>::infinity());
  for (std::int64_t h = 0; h < 4; ++h) c[Slot::sink].set(h, static_cast<double>(h) - 1.5);
  const Outcomes right = outcome("right");
  EXPECT_EQ(right.reply.gradients[3].tensor().dtype(), DType::f64);
  EXPECT_EQ(right.reply.gradients[4].tensor().dtype(), DType::f32);
  for (const Verdict& one : right.verdicts) EXPECT_EQ(one.outcome, Outcome::held) << one.reason;
  EXPECT_EQ(violated(outcome("mask_of_the_last_head")), "dmask");
  EXPECT_EQ(violated(outcome("dsink_not_negated")), "dsink");
  EXPECT_EQ(violated(outcome("forgets_delta")), "dqdkdmask");
  c[Slot::mask] = c[Slot::sink] = Tensor();
  // What is added to is no number, whatever was there.
  const Outcomes added = outcome("adds_to_dv");
  EXPECT_TRUE(added.reply.status == CallStatus::failed || violated(added) == "dv") << added.reply.message;
}

TEST(Backward, WhatNoKernelMayDoIsAFailure) {
  const Case c = backward_case(1, 1, Causal::top_left, 3);
  const auto failure = [&](const std::string& name) {
    const auto kernel = open_kernel(backward_library(name));
    const Outcomes found = outcomes_of(*kernel, c);
    EXPECT_EQ(found.reply.status, CallStatus::failed);
    return found.reply.message;
  };
  // The last rows see no key but the first three, so that dk of the others is left alone.
  EXPECT_THAT(failure("leaves_dk_unwritten"), Says("elements of dk"));
  EXPECT_THAT(failure("writes_to_lse"), Says("lse"));
}

TEST(Backward, AReplyThatIsNoneIsMalformed) {
  const Case c = backward_case(1, 1, Causal::none, 3);
  const auto message = [&](const std::string& mode) {
    const auto kernel = open_kernel(program(mode));
    const Outcomes found = outcomes_of(*kernel, c);
    EXPECT_EQ(found.reply.status, CallStatus::malformed);
    return found.reply.message;
  };
  EXPECT_THAT(message("no-dk"), Says("no tensor named dk"));
  EXPECT_THAT(message("other-shape"), Says("dq has the shape"));
}

TEST(Backward, AKernelWithoutOneSaysSo) {
  const auto kernel = open_kernel("builtin:pairwise");
  const Outcomes found = outcomes_of(*kernel, backward_case(1, 1, Causal::none, 1));
  EXPECT_EQ(found.reply.status, CallStatus::unsupported);
  EXPECT_THAT(why_unsupported(kernel->manifest(), backward_case(1, 1, Causal::none, 1)), Says("attention_backward"));
}

}  // namespace
}  // namespace attest

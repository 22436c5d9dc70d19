// The documents' modules as kernels: each is the module as it stands, mistakes included.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/kernel/kernel_under_test.h"
#include "core/kernels/documents/module.h"
#include "core/test/cases.h"
#include "core/test/places.h"
#include "core/test/replies.h"

namespace attest {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

std::unique_ptr<Kernel> module_named(const std::string& name) {
  for (const KernelEntry& entry : document_kernels())
    if (entry.id == "document:" + name) return entry.make();
  throw std::invalid_argument("no module " + name);
}
std::unique_ptr<Kernel> core_double() {
  for (const KernelEntry& entry : core_kernels())
    if (entry.id == "core:double") return entry.make();
  throw std::invalid_argument("no core:double");
}

/// Numbers with a fraction, no two alike within a period of 97.
Tensor numbers(const Shape& shape, std::int64_t salt) {
  std::int64_t at = 0;
  return test::filled(DType::f64, shape,
                      [&] { return static_cast<double>((at++ * 41 + salt * 29) % 97) / 32.0 - 1.5; });
}

/// Self-attention of `batch` entries of `tokens` tokens, `heads` heads of width d, c = d_o = heads*d.
Case self_case(std::int64_t batch, std::int64_t tokens, std::int32_t heads, std::int64_t d) {
  const std::int64_t c = heads * d;
  Case problem;
  problem.operation = Operation::multihead;
  problem.heads = heads;
  problem.scale = inverse_root(d);
  problem[Slot::q] = problem[Slot::k] = problem[Slot::v] = numbers({batch, tokens, c}, 1);
  problem[Slot::w_q] = numbers({c, c}, 2);
  problem[Slot::w_k] = numbers({c, c}, 3);
  problem[Slot::w_v] = numbers({c, c}, 4);
  return problem;
}
Case with_output(Case c) {
  const std::int64_t width = c[Slot::w_v].shape()[1];
  c[Slot::w_o] = numbers({width, width}, 5);
  c[Slot::b_o] = numbers({width}, 6);
  return c;
}
Case with_bias_kv(Case c) {
  const std::int64_t width = c[Slot::w_k].shape()[1];
  c[Slot::bias_k] = numbers({width}, 7);
  c[Slot::bias_v] = numbers({width}, 8);
  return c;
}
Tensor mask_of(DType dtype, const Shape& shape, const std::vector<double>& entries) {
  return {dtype, shape, entries};
}

Reply ran(Kernel& kernel, const Case& c) {
  validate(c);
  Reply reply = kernel.run(c);
  EXPECT_EQ(reply.status, CallStatus::ok) << reply.message;
  return reply;
}
/// Largest difference; inf where one side is not finite.
double difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double most = 0;
  for (std::int64_t at = 0; at < a.elements(); ++at) {
    const double gap = std::abs(a[at] - b[at]);
    most = gap <= most ? most : std::isnan(gap) ? inf : gap;
  }
  return most;
}
double from_definition(const std::string& module, const Case& c) {
  return difference(ran(*module_named(module), c).out, ran(*core_double(), c).out);
}
constexpr double same = 1e-13;
/// Differences of these problems that come from a mistake are of the order of the numbers themselves.
constexpr double other = 1e-3;

using nlohmann::json;
Tensor stored(const json& rows, bool transpose, bool batched = false) {
  const auto m = static_cast<std::int64_t>(rows.size()), n = static_cast<std::int64_t>(rows.at(0).size());
  Tensor t(DType::f32, transpose ? Shape{n, m} : Shape{m, n});
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      t.set(transpose ? j * m + i : i * n + j, rows.at(static_cast<std::size_t>(i)).at(static_cast<std::size_t>(j)));
  return batched ? t.reshaped({1, m, n}) : t;
}

TEST(DocumentKernels, TheLastModulePrintsWhatTheNotebookPrints) {
  const json file = json::parse(std::ifstream(source_folder() + "/core/test/golden/notebook.json"));
  const json& module = file.at("modules").at("MultiHeadAttention");
  Case c;
  c.operation = Operation::multihead;
  c.heads = 2;
  c.scale = inverse_root(3);
  c.causal = Causal::top_left;
  c[Slot::q] = c[Slot::k] = c[Slot::v] = stored(module.at("input"), false, true);
  c[Slot::w_q] = stored(module.at("W_q"), true);
  c[Slot::w_k] = stored(module.at("W_k"), true);
  c[Slot::w_v] = stored(module.at("W_v"), true);
  c[Slot::w_o] = stored(module.at("W_o.weight"), true);
  c[Slot::b_o] = stored(module.at("W_o.bias"), false).reshaped({c[Slot::w_o].shape()[1]});
  const Tensor found = ran(*module_named("003.multihead"), c).out;
  const Tensor printed = stored(file.at("printed").at("MultiHeadAttention").at("output"), false, true);
  // Four printed digits.
  EXPECT_LE(difference(found, printed), 0.5e-4 + 1e-6);
  const Tensor correct = stored(file.at("printed").at("MultiHeadAttention").at("output_if_correct"), false, true);
  EXPECT_GT(difference(found, correct), 1e-2);
}

TEST(DocumentKernels, TheLastModuleIsRightForOneToken) {
  EXPECT_LE(from_definition("003.multihead", with_output(self_case(2, 1, 2, 3))), same);
  EXPECT_GT(from_definition("003.multihead", with_output(self_case(2, 2, 2, 3))), other);
}

TEST(DocumentKernels, MhattnWantsHToDivideTheDkOfOneHead) {
  EXPECT_LE(from_definition("000.mhattn", with_output(self_case(2, 3, 2, 4))), same);
  expect_ending(module_named("000.mhattn")->run(self_case(1, 3, 2, 3)), CallStatus::rejected,
                "dk is 3 and h is 2; h must divide dk");
}

TEST(DocumentKernels, MhattnTakesNoMaskBesideTheAppendedKey) {
  Case c = self_case(1, 2, 1, 2);
  c.mask_convention = MaskConvention::pre_scale;
  c[Slot::mask] = mask_of(DType::f64, {1, 1, 2, 2}, {0, -inf, 0, 1});
  EXPECT_LE(from_definition("000.mhattn", c), same);
  EXPECT_EQ(module_named("000.mhattn")->run(with_bias_kv(c)).status, CallStatus::rejected);
  c[Slot::mask] = {};
  EXPECT_LE(from_definition("000.mhattn", with_bias_kv(c)), same);
}

TEST(DocumentKernels, MhattnIgnoresTheMaskOfOneKeyBesideTheAppendedOne) {
  Case c = with_bias_kv(self_case(1, 1, 1, 2));
  c.mask_convention = MaskConvention::pre_scale;
  const Reply unmasked = ran(*module_named("000.mhattn"), c);
  c[Slot::mask] = mask_of(DType::f64, {1, 1, 1, 1}, {2});
  EXPECT_LE(difference(ran(*module_named("000.mhattn"), c).out, unmasked.out), same);
  EXPECT_GT(from_definition("000.mhattn", c), other);
}

// Slip 13. What is added is seen through the additive mask of the same class.
TEST(DocumentKernels, ABooleanMaskOfMhattnAddsOneWhereItShouldHide) {
  Case c = self_case(1, 2, 1, 2);
  c[Slot::mask] = mask_of(DType::boolean, {1, 1, 2, 2}, {1, 0, 1, 1});
  const Tensor found = ran(*module_named("000.mhattn-boolean"), c).out;
  EXPECT_GT(from_definition("000.mhattn-boolean", c), other);
  c[Slot::mask] = mask_of(DType::f64, {1, 1, 2, 2}, {0, 1, 0, 0});
  c.mask_convention = MaskConvention::pre_scale;
  EXPECT_EQ(found, ran(*module_named("000.mhattn"), c).out);
}

// Slip 12. 003's class mixes tokens in either case, so that it is compared with itself.
TEST(DocumentKernels, ACausalMaskOfOneTokenHidesNothingOfLongerInput) {
  for (const std::string whole : {"001.self-attention", "003.multihead"}) {
    const std::string of_one_token = whole + "-of-one-token";
    Case c = with_output(self_case(2, 4, 2, 2));
    const Tensor unmasked = ran(*module_named(whole), c).out;
    c.causal = Causal::top_left;
    EXPECT_EQ(ran(*module_named(of_one_token), c).out, unmasked) << whole;
    EXPECT_GT(difference(ran(*module_named(whole), c).out, unmasked), other) << whole;
    EXPECT_GT(from_definition(of_one_token, c), other) << whole;
    c = with_output(self_case(2, 1, 2, 2));
    c.causal = Causal::top_left;
    EXPECT_LE(from_definition(of_one_token, c), same) << whole;
  }
}

TEST(DocumentKernels, ACausalMaskForFewerTokensRaisesUnlessItIsForOne) {
  EXPECT_EQ(causal_of_buffer(Causal::top_left, 5, 5), Causal::top_left);
  EXPECT_EQ(causal_of_buffer(Causal::top_left, 6, 5), Causal::top_left);
  EXPECT_EQ(causal_of_buffer(Causal::top_left, 1, 5), Causal::none);
  EXPECT_EQ(causal_of_buffer(Causal::top_left, 1, 1), Causal::top_left);
  for (const Index context : {2, 3, 4}) EXPECT_THROW((void)causal_of_buffer(Causal::top_left, context, 5), UsageError);
}

// Their positions keep 003's other causal classes from slip 12: context length 16.
TEST(DocumentKernels, ClassesWithAPositionTableRefuseLongerInput) {
  for (const char* name : {"003.causal", "003.multihead-v1"}) {
    for (const std::int64_t tokens : {16, 17}) {
      Case c = self_case(1, tokens, 1, 3);
      c.causal = Causal::top_left;
      EXPECT_EQ(module_named(name)->run(c).status, tokens == 16 ? CallStatus::ok : CallStatus::rejected) << name;
    }
  }
}

TEST(DocumentKernels, OneExternalMaskAddsOneWhereItAllows) {
  Case c = with_output(self_case(2, 3, 2, 2));
  EXPECT_LE(from_definition("001.self-attention", c), same);
  c[Slot::mask] = mask_of(DType::boolean, {1, 1, 3, 3}, {1, 0, 1, 1, 1, 0, 0, 1, 1});
  EXPECT_LE(from_definition("001.self-attention", c), same);
  c.causal = Causal::top_left;
  c[Slot::mask] = mask_of(DType::boolean, {1, 1, 3, 3}, {1, 0, 1, 1, 0, 0, 0, 1, 1});
  EXPECT_LE(from_definition("001.self-attention", c), same);
}

// h = B = 2: head h of every entry is masked where entry h is, and adds the 0 or 1 of its own entry elsewhere.
TEST(DocumentKernels, ExternalMasksOfABatchReachTheHeads) {
  Case c = with_output(self_case(2, 2, 2, 2));
  const std::vector<double> first{1, 0, 1, 1}, second{1, 1, 0, 1};
  std::vector<double> masks = first, crossed;
  masks.insert(masks.end(), second.begin(), second.end());
  c[Slot::mask] = mask_of(DType::boolean, {2, 1, 2, 2}, masks);
  EXPECT_GT(from_definition("001.self-attention", c), other);
  for (const auto& number : {first, second}) {
    for (const auto& condition : {first, second}) {
      for (std::size_t at = 0; at < 4; ++at) crossed.push_back(condition[at] == 0 ? -inf : number[at]);
    }
  }
  Case as_it_acts = c;
  as_it_acts[Slot::mask] = mask_of(DType::f64, {2, 2, 2, 2}, crossed);
  EXPECT_LE(difference(ran(*module_named("001.self-attention"), c).out, ran(*core_double(), as_it_acts).out), same);
}

TEST(DocumentKernels, ExternalMasksOfABatchRaiseUnlessThereAreAsManyHeads) {
  Case c = self_case(2, 2, 1, 2);
  c[Slot::mask] = Tensor(DType::boolean, {2, 1, 2, 2});
  EXPECT_EQ(module_named("001.self-attention")->run(c).status, CallStatus::rejected);
}

TEST(DocumentKernels, ABooleanExternalMaskHidesNothing) {
  Case c = self_case(1, 2, 2, 2);
  const Reply unmasked = ran(*module_named("001.self-attention-boolean"), c);
  c[Slot::mask] = mask_of(DType::boolean, {1, 1, 2, 2}, {1, 0, 0, 1});
  EXPECT_LE(difference(ran(*module_named("001.self-attention-boolean"), c).out, unmasked.out), same);
  EXPECT_GT(from_definition("001.self-attention-boolean", c), other);
}

TEST(DocumentKernels, TheLadderIsTheDefinitionWhereItHasNoPositions) {
  Case c = self_case(2, 4, 1, 3);
  EXPECT_LE(from_definition("003.scaled", c), same);
  c.scale = 1;
  EXPECT_LE(from_definition("003.unscaled", c), same);
  c[Slot::w_k] = c[Slot::w_v] = c[Slot::w_q];
  EXPECT_LE(from_definition("003.shared-projection", c), same);
  const Tensor identity(DType::f64, {3, 3}, std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1});
  c[Slot::w_q] = c[Slot::w_k] = c[Slot::w_v] = identity;
  EXPECT_LE(from_definition("003.parameter-free", c), same);
}

TEST(DocumentKernels, PositionsMoveTheAnswer) {
  Case c = self_case(1, 4, 1, 3);
  EXPECT_GT(from_definition("003.positions", c), other);
  c.causal = Causal::top_left;
  EXPECT_GT(from_definition("003.causal", c), other);
  EXPECT_GT(from_definition("003.multihead-v1", with_output(c)), other);
}

TEST(DocumentKernels, TheFirstMultiheadClassWantsDInToBeDOut) {
  Case c = self_case(1, 4, 2, 3);
  c.causal = Causal::top_left;
  EXPECT_EQ(module_named("003.multihead-v1")->run(c).status, CallStatus::rejected);
  c[Slot::q] = c[Slot::k] = c[Slot::v] = numbers({1, 4, 3}, 1);
  for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v}) c[slot] = numbers({3, 6}, 2);
  EXPECT_EQ(module_named("003.multihead-v1")->run(c).status, CallStatus::ok);
}

TEST(DocumentKernels, SayWhatTheyHaveNoPlaceFor) {
  const Case c = self_case(1, 4, 1, 3);
  const std::pair<const char*, Case> questions[] = {
      {"003.scaled", with_output(c)}, {"003.scaled", with_bias_kv(c)},    {"003.unscaled", c},
      {"003.shared-projection", c},   {"003.parameter-free", c},          {"003.causal", c},
      {"003.multihead-v1", c},        {"003.multihead", with_bias_kv(c)}, {"001.self-attention", with_bias_kv(c)}};
  for (const auto& [name, question] : questions) {
    const Reply reply = module_named(name)->run(question);
    EXPECT_EQ(reply.status, CallStatus::unsupported) << name;
    EXPECT_FALSE(reply.message.empty()) << name;
  }
}

}  // namespace
}  // namespace attest

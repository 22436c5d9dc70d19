// The numbers that the notebook (003) prints, to their last digit, from the weights it drew: golden/notebook.json. In
// float, as the notebook computed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/definition/matrices.h"
#include "core/definition/position.h"
#include "core/test/definition/other_forms.h"
#include "core/test/places.h"

namespace attest {
namespace {

using nlohmann::json;

const json& notebook() {
  static const json file = json::parse(std::ifstream(source_folder() + "/core/test/golden/notebook.json"));
  return file;
}

Matrix<double> numbers(const json& rows) {
  Matrix<double> a(static_cast<Index>(rows.size()), static_cast<Index>(rows.at(0).size()));
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < a.cols(); ++j) {
      const json& entry = rows.at(static_cast<std::size_t>(i)).at(static_cast<std::size_t>(j));
      // JSON has no infinity: the file writes the word.
      if (entry.is_string()) {
        EXPECT_EQ(entry, "-inf");
      }
      a(i, j) = entry.is_string() ? -INFINITY : entry.get<double>();
    }
  }
  return a;
}
Matrix<float> printed(const std::string& module, const std::string& what) {
  return test::matrix_from<float>(numbers(notebook().at("printed").at(module).at(what)));
}
Matrix<float> stored(const std::string& module, const std::string& what) {
  return test::matrix_from<float>(numbers(notebook().at("modules").at(module).at(what)));
}
/// nn.Linear without bias keeps [out, in]; the documents' W is its transpose.
Projection<float> linear(const std::string& module, const std::string& what) {
  return {.weight = transposed(stored(module, what)), .bias = std::nullopt};
}
Weights<float> weights(const std::string& module, const std::string& prefix = "") {
  return {
      .q = linear(module, prefix + "W_q"), .k = linear(module, prefix + "W_k"), .v = linear(module, prefix + "W_v")};
}
Matrix<float> input() {
  return printed("parameter_free", "X");
}
const float inverse_root_of_3 = 1.0F / std::sqrt(3.0F);

std::string four_digits(float x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", static_cast<double>(x));
  return std::string(text) == "-0.0000" ? "0.0000" : text;
}
/// Every entry, printed with four digits, is what the notebook printed.
void expect_prints(const Matrix<float>& found, const Matrix<float>& wanted) {
  ASSERT_EQ(found.rows(), wanted.rows());
  ASSERT_EQ(found.cols(), wanted.cols());
  for (Index i = 0; i < found.rows(); ++i)
    for (Index j = 0; j < found.cols(); ++j)
      EXPECT_EQ(four_digits(found(i, j)), four_digits(wanted(i, j))) << "at (" << i << ", " << j << ")";
}
/// How many of them are not.
int misprints(const Matrix<float>& found, const Matrix<float>& wanted) {
  int count = 0;
  for (Index i = 0; i < found.rows(); ++i)
    for (Index j = 0; j < found.cols(); ++j) count += four_digits(found(i, j)) != four_digits(wanted(i, j)) ? 1 : 0;
  return count;
}

TEST(Notebook, ParameterFreeSelfAttention) {
  const Matrix<float> x = input();
  expect_prints(masked_scores(x, x, 1.0F), printed("parameter_free", "A_star"));
  expect_prints(attention_weights(x, x, 1.0F), printed("parameter_free", "A"));
  expect_prints(parameter_free(x), printed("parameter_free", "Y"));
}

TEST(Notebook, SelfAttentionV1) {
  const Weights<float> w = weights("SelfAttentionV1");
  const Matrix<float> x = input();
  expect_prints(attention_weights(project(x, w.q), project(x, w.k), inverse_root_of_3),
                printed("SelfAttentionV1", "attention_weights"));
  expect_prints(sattn(x, w, inverse_root_of_3), printed("SelfAttentionV1", "output"));
  // Without the scale every printed weight would be another one.
  EXPECT_GT(misprints(unscaled_sattn(x, w), printed("SelfAttentionV1", "output")), 5);
}

TEST(Notebook, SelfAttentionWithLearnedPositions) {
  const Weights<float> w = weights("SelfAttention");
  const Matrix<float> x = with_positions(input(), stored("SelfAttention", "positional_encoding"));
  expect_prints(attention_weights(project(x, w.q), project(x, w.k), inverse_root_of_3),
                printed("SelfAttention", "attention_weights"));
  expect_prints(sattn(x, w, inverse_root_of_3), printed("SelfAttention", "output"));
}

// What the notebook prints as "Constrained masked attention weights" are the masked scores (its rows do not sum to
// one), before the scale.
TEST(Notebook, CausalAttention) {
  const Weights<float> w = weights("CausalAttention");
  const Matrix<float> x = with_positions(input(), stored("CausalAttention", "positional_encoding"));
  const Matrix<float> q = project(x, w.q), k = project(x, w.k);
  expect_prints(masked_scores(q, k, 1.0F), printed("CausalAttention", "scores"));
  expect_prints(masked_scores(q, k, 1.0F, causal_mask<float>()), printed("CausalAttention", "masked_scores"));
}

TEST(Notebook, MultiHeadAttentionV1) {
  const Weights<float> w = weights("MultiHeadAttentionV1", "heads.0.");
  const Matrix<float> x = with_positions(input(), stored("MultiHeadAttentionV1", "heads.0.positional_encoding"));
  const Matrix<float> q = project(x, w.q), k = project(x, w.k);
  expect_prints(masked_scores(q, k, 1.0F), printed("MultiHeadAttentionV1", "heads.0.scores"));
  expect_prints(masked_scores(q, k, 1.0F, causal_mask<float>()),
                printed("MultiHeadAttentionV1", "heads.0.masked_scores"));
}

// The last module is causal multi-head attention by views with a mistake: (weights @ values).transpose(1, 2) on a
// (head, token, dim) tensor, so that flattening to (token, d) mixes tokens. All 30 printed numbers come from the
// mistake; the formula gives output_if_correct.
TEST(Notebook, MultiHeadAttentionPrintsItsMistake) {
  const std::string name = "MultiHeadAttention";
  const Matrix<float> x = stored(name, "input");
  const MultiheadWeights<float> w{.q = linear(name, "W_q"),
                                  .k = linear(name, "W_k"),
                                  .v = linear(name, "W_v"),
                                  .w_o = transposed(stored(name, "W_o.weight")),
                                  .b_o = Vector<float>(stored(name, "W_o.bias").row(0).transpose()),
                                  .bias_k = std::nullopt,
                                  .bias_v = std::nullopt,
                                  .heads = 2};
  const HeadMasks<float> causal = HeadMasks<float>::two_d(causal_mask<float>());
  const Matrix<float> correct = mmhsattn(x, w, inverse_root_of_3, causal);
  expect_prints(correct, printed(name, "output_if_correct"));

  const std::vector<AttentionResult<float>> heads = head_outputs(x, x, x, w, inverse_root_of_3, causal);
  const Matrix<float> head_dim_token = above<float>({transposed(heads[0].out), transposed(heads[1].out)});
  const Matrix<float> mistaken = join_heads<float>({reshaped(head_dim_token, x.rows(), 6)}, w.w_o, w.b_o);
  expect_prints(mistaken, printed(name, "output"));
  EXPECT_EQ(misprints(correct, printed(name, "output")), 30);
}

// Nothing that the file says was printed is left out above.
TEST(Notebook, HasNoOtherPrintedNumbers) {
  const std::map<std::string, std::set<std::string>> covered{
      {"parameter_free", {"what", "X", "A_star", "A", "Y"}},
      {"SelfAttentionV1", {"attention_weights", "output"}},
      {"SelfAttention", {"attention_weights", "output"}},
      {"CausalAttention", {"scores", "masked_scores"}},
      {"MultiHeadAttentionV1", {"heads.0.scores", "heads.0.masked_scores"}},
      {"MultiHeadAttention", {"output", "note", "output_if_correct"}}};
  std::map<std::string, std::set<std::string>> present;
  for (const auto& [module, entries] : notebook().at("printed").items())
    for (const auto& entry : entries.items()) present[module].insert(entry.key());
  EXPECT_EQ(present, covered);
}

}  // namespace
}  // namespace attest

// Which properties each of the documents' modules breaks, as theorems.md says in "The documents' own slips".
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/problem/selection.h"
#include "core/test/names.h"
#include "core/test/places.h"
#include "properties/catalogue/property.h"

namespace attest {
namespace {

using Names = std::set<std::string, std::less<>>;

Names words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

/// Everything that a module breaks within the first cases of the default run; a module that is not named breaks
/// nothing.
const std::map<std::string, Names, std::less<>> broken{
    // h must divide the dk of one head; a mask beside add_bias_kv raises; at N = 1 the mask is added to both keys (slip
    // 7).
    {"document:000.mhattn",
     words_of("attention.multihead-conditional-probability attention.multihead-expectation "
              "attention.multihead-single-query batch.multihead-independence batch.multihead-mask-forms "
              "causal.multihead-no-leak masked.multihead-conventions-agree masked.multihead-conventions-differ "
              "masked.multihead-fully-masked-row multihead.any-length multihead.bias-kv multihead.concat-is-sum "
              "multihead.finite multihead.fused-projection multihead.head-permutation "
              "multihead.key-value-deletion multihead.masked-query-deletion multihead.oracle multihead.packed-qkv "
              "multihead.partial-mask-leaks multihead.permutation-equivariance multihead.query-deletion "
              "multihead.self-input-deletion multihead.self-permutation-equivariance multihead.self-suppression "
              "multihead.suppression multihead.torch-case multihead.v1-is-fused reduction.mh-is-mmh-zero-mask "
              "reduction.mh-self reduction.mmh-self")},
    // As truth values the mask hides nothing and adds 1 where it is to hide (slip 13): that breaks suppression and
    // deletion of keys in every form, the fully masked row and renormalisation, and the causal row, which a module
    // without a causal form is given as a mask. The rest breaks as in the module with numbers: h must divide dk.
    {"document:000.mhattn-boolean",
     words_of(
         "attention.multihead-conditional-probability attention.multihead-expectation "
         "attention.multihead-single-query batch.multihead-independence batch.multihead-mask-forms "
         "causal.multihead-no-leak masked.multihead-boolean-is-additive masked.multihead-fully-masked-row "
         "masked.multihead-renormalisation multihead.any-length multihead.bias-kv multihead.concat-is-sum "
         "multihead.finite multihead.fused-projection multihead.head-permutation multihead.key-value-deletion "
         "multihead.masked-query-deletion multihead.oracle multihead.packed-qkv multihead.partial-mask-leaks "
         "multihead.permutation-equivariance multihead.query-deletion multihead.self-input-deletion "
         "multihead.self-permutation-equivariance multihead.self-suppression multihead.suppression "
         "multihead.torch-case multihead.v1-is-fused reduction.mh-is-mmh-zero-mask reduction.mh-self "
         "reduction.mmh-self self.input-deletion self.suppression weights.key-value-deletion weights.suppression")},
    // The external mask of one batch entry reaches the heads of all; a batch of another size than the heads raises
    // (slip 2).
    {"document:001.self-attention",
     words_of("batch.multihead-independence batch.multihead-mask-forms causal.multihead-no-leak "
              "causal.multihead-prefix masked.multihead-boolean-is-additive masked.multihead-fully-masked-row "
              "multihead.concat-is-sum multihead.finite multihead.fused-projection multihead.head-permutation "
              "multihead.key-value-deletion multihead.masked-query-deletion multihead.oracle multihead.packed-qkv "
              "multihead.returned-weights multihead.self-input-deletion multihead.self-suppression "
              "multihead.suppression multihead.torch-case multihead.v1-is-fused position.shift-along-a-line "
              "reduction.masked-self reduction.masked-weights-is-mmh-h1 reduction.mmh-self self.input-deletion "
              "self.is-attention self.suppression weights.key-bias-irrelevant weights.key-value-deletion "
              "weights.masked-query-deletion weights.reparametrisation weights.row-form weights.suppression "
              "weights.value-bias-passes")},
    // As truth values it hides nothing (slip 2).
    {"document:001.self-attention-boolean",
     words_of("batch.multihead-independence batch.multihead-mask-forms causal.multihead-no-leak "
              "causal.multihead-prefix masked.multihead-boolean-is-additive masked.multihead-fully-masked-row "
              "multihead.concat-is-sum multihead.finite multihead.fused-projection multihead.head-permutation "
              "multihead.key-value-deletion multihead.masked-query-deletion multihead.oracle multihead.packed-qkv "
              "multihead.returned-weights multihead.self-input-deletion multihead.self-suppression "
              "multihead.suppression multihead.torch-case multihead.v1-is-fused position.shift-along-a-line "
              "reduction.masked-self reduction.masked-weights-is-mmh-h1 reduction.mmh-self self.input-deletion "
              "self.is-attention self.mask-breaks-equivariance self.suppression weights.key-bias-irrelevant "
              "weights.key-value-deletion weights.masked-query-deletion weights.reparametrisation "
              "weights.row-form weights.suppression weights.value-bias-passes")},
    // Built for one token it hides nothing of longer input (slip 12): the rows that ask for a causal form, and no
    // others.
    {"document:001.self-attention-of-one-token",
     words_of("causal.multihead-first-row causal.multihead-no-leak causal.multihead-prefix multihead.oracle "
              "multihead.returned-weights multihead.torch-case")},
    // Positions that the definition does not have, in a table of d_out columns added to d_in of them (slip 9).
    {"document:003.positions",
     words_of("attention.multihead-conditional-probability attention.multihead-expectation "
              "attention.multihead-single-query batch.multihead-independence masked.multihead-renormalisation "
              "multihead.any-length multihead.finite multihead.fused-projection multihead.masked-query-deletion "
              "multihead.oracle multihead.packed-qkv multihead.permutation-equivariance multihead.query-deletion "
              "multihead.self-permutation-equivariance position.breaks-equivariance position.moves-with-positions "
              "position.shift-along-a-line position.shift-invariance reduction.masked-self "
              "reduction.masked-weights-is-mmh-h1 reduction.mh-is-mmh-zero-mask reduction.mh-self reduction.mmh-self "
              "reduction.self reduction.weights-is-masked-zero-mask self.fixed-weights self.is-attention "
              "self.permutation-equivariance self.shared-projection self.unscaled-vs-scaled "
              "weights.key-bias-irrelevant weights.masked-query-deletion weights.permutation-equivariance "
              "weights.permutation-equivariance-with-bias weights.query-deletion weights.query-locality "
              "weights.reparametrisation weights.row-form weights.value-bias-passes")},
    // The position table of d_out columns is added to X of d_in (slip 9).
    {"document:003.causal",
     words_of("attention.multihead-conditional-probability attention.multihead-expectation "
              "batch.multihead-independence causal.multihead-first-row causal.multihead-no-leak "
              "causal.multihead-prefix multihead.finite multihead.fused-projection multihead.oracle "
              "multihead.packed-qkv position.shift-along-a-line reduction.masked-weights-is-mmh-h1 "
              "weights.key-bias-irrelevant weights.reparametrisation weights.row-form weights.value-bias-passes")},
    // W_o sized by d_in, and the position table of d_out columns (slip 9).
    {"document:003.multihead-v1",
     words_of("attention.multihead-conditional-probability attention.multihead-expectation "
              "batch.multihead-independence causal.multihead-first-row causal.multihead-no-leak "
              "causal.multihead-prefix multihead.concat-is-sum multihead.finite multihead.fused-projection "
              "multihead.head-permutation multihead.oracle multihead.packed-qkv multihead.torch-case "
              "multihead.v1-is-fused position.shift-along-a-line reduction.masked-weights-is-mmh-h1 "
              "weights.key-bias-irrelevant weights.reparametrisation weights.row-form weights.value-bias-passes")},
    // The wrong transpose mixes tokens, and spreads the NaN of a fully masked one (slip 1).
    {"document:003.multihead",
     words_of("attention.multihead-conditional-probability batch.multihead-independence "
              "batch.multihead-mask-forms causal.multihead-first-row causal.multihead-no-leak "
              "causal.multihead-prefix masked.multihead-boolean-is-additive masked.multihead-conventions-agree "
              "masked.multihead-fully-masked-row multihead.any-length multihead.concat-is-sum multihead.finite "
              "multihead.fused-projection multihead.head-permutation multihead.oracle "
              "multihead.partial-mask-leaks multihead.permutation-equivariance multihead.self-input-deletion "
              "multihead.self-permutation-equivariance multihead.self-suppression multihead.torch-case "
              "multihead.v1-is-fused position.moves-with-positions position.shift-along-a-line "
              "reduction.masked-weights-is-mmh-h1 self.input-deletion self.permutation-equivariance "
              "self.suppression weights.key-bias-irrelevant weights.permutation-equivariance "
              "weights.permutation-equivariance-with-bias weights.reparametrisation weights.value-bias-passes")},
    // Built for one token it hides nothing of longer input (slip 12). It still mixes tokens (slip 1), which breaks the
    // causal rows as well; what a NaN spreads through is not here, for no key is ever hidden.
    {"document:003.multihead-of-one-token",
     words_of("attention.multihead-conditional-probability causal.multihead-first-row causal.multihead-no-leak "
              "causal.multihead-prefix multihead.any-length multihead.fused-projection multihead.head-permutation "
              "multihead.oracle multihead.permutation-equivariance multihead.self-permutation-equivariance "
              "multihead.torch-case multihead.v1-is-fused position.moves-with-positions "
              "position.shift-along-a-line self.permutation-equivariance weights.permutation-equivariance "
              "weights.permutation-equivariance-with-bias weights.value-bias-passes")}};

constexpr std::int64_t cases = 200;

/// The first of them that the kernel violates.
std::optional<Case> first_violation(const Property& property, Kernel& kernel) {
  for (std::int64_t k = 0; k < cases; ++k) {
    Case c = project(generate(property, DType::f64, /*run_seed=*/1, k), kernel.manifest());
    if (check_case(property, kernel, c).outcome == Outcome::violated) return c;
  }
  return std::nullopt;
}

std::unique_ptr<Kernel> module_with_id(const std::string& id) {
  for (const KernelEntry& entry : document_kernels())
    if (entry.id == id) return entry.make();
  throw std::invalid_argument(id);
}
std::vector<std::string> module_ids() {
  std::vector<std::string> ids;
  for (const KernelEntry& entry : document_kernels()) ids.push_back(entry.id);
  return ids;
}

/// Names of `all` that are not among `some`, a line each.
std::string without(const Names& all, const Names& some) {
  std::vector<std::string> rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(rest));
  return fmt::format("{}", fmt::join(rest, "\n"));
}

class EveryModule : public testing::TestWithParam<std::string> {};

TEST_P(EveryModule, BreaksWhatItsDocumentGotWrongAndNothingElse) {
  const std::unique_ptr<Kernel> kernel = module_with_id(GetParam());
  Names found;
  for (const Property* property : catalogue()) {
    const bool offered =
        property->operation == Operation::attention ? kernel->manifest().attention : kernel->manifest().multihead;
    if (offered && first_violation(*property, *kernel)) found.emplace(property->name);
  }
  const auto named = broken.find(kernel->id());
  const Names expected = named == broken.end() ? Names() : named->second;
  EXPECT_EQ(without(found, expected), "") << "broken, and not in the list";
  EXPECT_EQ(without(expected, found), "") << "in the list, and not broken";
}

/// The modules that each slip of theorems.md speaks of where it names a row that shows it.
const std::map<int, std::vector<std::string>> modules_of_slip{
    {1, {"document:003.multihead"}},
    {2, {"document:001.self-attention"}},
    {12, {"document:001.self-attention-of-one-token", "document:003.multihead-of-one-token"}},
    {13, {"document:000.mhattn-boolean"}}};
/// Rows that a slip names without saying that a module breaks them: what makes it harmless, what is true instead.
const std::set<std::pair<int, std::string>> named_otherwise{{2, "softmax.shift-invariance"},
                                                            {3, "weights.permutation-equivariance-with-bias"},
                                                            {10, "causal.column-form"},
                                                            {14, "masked.multihead-conventions-differ"}};

/// The slips of theorems.md, by number.
std::map<int, std::string> slips() {
  std::ifstream file(source_folder() + "/properties/theorems.md");
  std::map<int, std::string> texts;
  bool within = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) within = line == "## The documents' own slips";
    if (!within) continue;
    if (line.starts_with(fmt::format("{}. ", number + 1))) ++number;
    if (number > 0) texts[number] += line + "\n";
  }
  return texts;
}
/// The properties that a text names in backquotes.
Names rows_named_in(const std::string& text) {
  Names names;
  for (const Property* property : catalogue()) {
    if (text.find(fmt::format("`{}`", property->name)) != std::string::npos) names.emplace(property->name);
  }
  return names;
}

TEST(Slips, NameOnlyRowsThatTheirModulesBreak) {
  const std::map<int, std::string> texts = slips();
  ASSERT_GE(texts.size(), 15U);
  std::set<int> naming;
  std::set<std::pair<int, std::string>> otherwise;
  for (const auto& [number, text] : texts) {
    for (const std::string& row : rows_named_in(text)) {
      if (named_otherwise.contains({number, row})) {
        otherwise.emplace(number, row);
        continue;
      }
      naming.insert(number);
      ASSERT_TRUE(modules_of_slip.contains(number)) << "slip " << number << " names " << row << " and no module";
      for (const std::string& module : modules_of_slip.at(number))
        EXPECT_TRUE(broken.at(module).contains(row)) << "slip " << number << ": " << module << " holds " << row;
    }
  }
  // Nothing above stands for a slip that has been reworded since.
  EXPECT_EQ(otherwise, named_otherwise);
  for (const auto& [number, modules] : modules_of_slip) EXPECT_TRUE(naming.contains(number)) << "slip " << number;
}

INSTANTIATE_TEST_SUITE_P(Document, EveryModule, testing::ValuesIn(module_ids()),
                         [](const auto& id) { return test::name_of_test(id.param.substr(id.param.find(':') + 1)); });

TEST(LastModule, IsCaughtWithACaseToRead) {
  const std::unique_ptr<Kernel> kernel = module_with_id("document:003.multihead");
  const Property& property = *properties_matching("multihead.torch-case").at(0);
  const std::optional<Case> violating = first_violation(property, *kernel);
  ASSERT_TRUE(violating);
  const Case smallest = shrink(property, *kernel, *violating);
  EXPECT_EQ(check_case(property, *kernel, smallest).outcome, Outcome::violated);
  const Extents e = extents_of(smallest);
  EXPECT_EQ(e.batch, 1);
  EXPECT_LE(e.queries, 2);
  EXPECT_LE(e.heads, 2);
  EXPECT_LE(e.dk, 2);
}

}  // namespace
}  // namespace attest

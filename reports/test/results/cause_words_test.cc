// What is told of a cause is true of the input that is told with it.
#include "reports/results/cause_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/support/files.h"
#include "core/test/cases.h"
#include "reports/test/journals.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

/// Of a kernel that answered `found` where `exact` is right; the case that is saved has 1 and 0 as values of one
/// weight.
CauseWords words_of(double found, double exact, const Case& c = test::one_query(DType::f32, {1}, {1, 1}, {1, 0}),
                    std::optional<Gradient> gradient = std::nullopt) {
  const fake::Folder folder;
  std::filesystem::create_directory(folder / "cases");
  write_file_atomically(folder / "cases/k7.safetensors", encode_case(c));
  Journal journal = fake::mixed_journal();
  FindingRecord& finding = journal.findings[0];
  finding.verdict.error = std::abs(found - exact), finding.verdict.allowed = 1e-9;
  finding.compared = {{.shape = gradient ? c[slot_of(*gradient)].shape() : Shape{1, 1, 1, 1},
                       .element = 0,
                       .keys = 2,
                       .found = found,
                       .exact = Enclosure{exact, exact},
                       .gradient = gradient}};
  journal.meta.push_back(record_of(Cause{.kernel = "builtin:bad",
                                         .dtypes = {"f32"},
                                         .properties = {"attention.oracle"},
                                         .example = finding.subject,
                                         .example_k = finding.k}));
  const std::string run = (folder / "").string();
  const std::vector<CauseWords> all = words_of_causes(summarise(journal, run), run, "run");
  EXPECT_EQ(all.size(), 1U);
  return all.at(0);
}

TEST(CauseWords, SayWhereAnotherInputIsWrong) {
  const CauseWords itself = words_of(0.75, 0.5);
  EXPECT_THAT(itself.smallest, HasSubstr("q=1  k=1,1  v=1,0"));
  EXPECT_THAT(itself.found, HasSubstr("out[0, 0, 0, 0] = 0.75, exact 0.5"));
  EXPECT_THAT(itself.found, Not(HasSubstr("another input")));
  EXPECT_EQ(itself.kind, "bound");
  // 1 is right of no call of that input: values were changed.
  EXPECT_THAT(words_of(0.75, 1).found, HasSubstr("; attention.oracle makes another input of it for that call, which"));
}

TEST(CauseWords, NameTheElementOfAGradient) {
  Case c = test::one_query(DType::f32, {1}, {1, 1}, {1, 0});
  c[Slot::d_out] = Tensor(DType::f32, {1, 1, 1, 1}, std::vector<double>{3});
  // Each value has half of it.
  const CauseWords itself = words_of(0.75, 1.5, c, Gradient::v);
  EXPECT_THAT(itself.smallest, HasSubstr("v=1,0  d_out=3"));
  EXPECT_THAT(itself.found, HasSubstr("dv[0, 0, 0, 0] = 0.75, exact 1.5"));
  EXPECT_THAT(itself.found, Not(HasSubstr("another input")));
  const CauseWords other = words_of(0.75, 0.5, c, Gradient::v);
  EXPECT_THAT(other.found, HasSubstr("dv[0, 0, 0, 0] = 0.75, exact 0.5"));
  EXPECT_THAT(other.found, HasSubstr("; attention.oracle makes another input of it for that call"));
  EXPECT_THAT(other.found, Not(HasSubstr("--script")));
  // dk_0 = 0.5 * (3 - 1.5) * q, and dk_1 = -dk_0: neither is dv's number, nor of out's shape.
  EXPECT_THAT(words_of(0, 0.75, c, Gradient::k).found, Not(HasSubstr("another input")));
  EXPECT_THAT(words_of(0, 1.5, c, Gradient::k).found, HasSubstr("another input"));
}

TEST(CauseWords, StateAWindowASoftcapAndDropout) {
  Case c = test::one_query(DType::f32, {1}, {1, 1}, {1, 0});
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest, Not(HasSubstr("window")));
  c.window_left = 3, c.alignment = Causal::bottom_right;
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest, HasSubstr("dk=1 window 3 left, alignment bottom-right  q=1"));
  c.window_right = 0, c.alignment = Causal::top_left;
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest, HasSubstr("dk=1 window 3 left, 0 right, alignment top-left  q=1"));
  c.softcap = 12.5;
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest, HasSubstr("alignment top-left softcap=12.5  q=1"));
  c.provenance.strides = "k=every-other out=packed";
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest, HasSubstr("softcap=12.5 strides k=every-other out=packed  q=1"));
  c.provenance.strides.reset();
  c.softcap = 0;
  c.dropout_p = 0.25, c[Slot::keep] = Tensor(DType::boolean, {1, 1, 1, 2});
  c[Slot::keep].set(1, 1.0);
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest,
              HasSubstr("alignment top-left dropout_p=0.25  keep=0,1  q=1  k=1,1  v=1,0"));
  c.dropout_p = 0, c[Slot::keep] = Tensor();
  c.window_left = -1, c.causal = Causal::top_left;
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest, HasSubstr("dk=1 causal top-left window 0 right  q=1"));
}

TEST(CauseWords, SayWhichPassIsWrongOfGradients) {
  Journal journal = fake::mixed_journal();
  journal.meta.push_back(record_of(Cause{.kernel = "builtin:bad",
                                         .dtypes = {"f32"},
                                         .properties = {"backward.oracle-dk"},
                                         .example = journal.findings[0].subject,
                                         .example_k = journal.findings[0].k}));
  Summary summary = summarise(journal, "");
  const auto why = [&](std::int64_t held, std::int64_t violated) {
    for (KernelSummary& kernel : summary.kernels) {
      std::erase_if(kernel.properties, [](const PropertySummary& of) { return of.name == "backward.given"; });
      PropertySummary given;
      given.name = "backward.given", given.tally.held = held, given.tally.violated = violated;
      if (kernel.id == "builtin:bad" && kernel.dtype == "f32") kernel.properties.push_back(given);
    }
    return words_of_causes(summary, "", "run").at(0).why;
  };
  EXPECT_THAT(why(3, 2),
              HasSubstr("the backward pass: at the out and lse that the kernel itself returned it is wrong"));
  // Other draws than those that are wrong may have held.
  EXPECT_EQ(why(1234, 0), "");
  for (KernelSummary& kernel : summary.kernels)
    if (kernel.id == "builtin:bad" && kernel.dtype == "f32")
      kernel.explanations.push_back({"builtin:bad", "f32", "consistent with sums in f16", "[]"});
  EXPECT_EQ(why(1234, 0), "consistent with sums in f16");
  EXPECT_THAT(why(3, 2), AllOf(HasSubstr("the backward pass: "), EndsWith("too; consistent with sums in f16")));
}

// What was asked of the saved cases themselves says more than a row that had other draws.
TEST(CauseWords, SayWhichPassIsWrongInTheSavedCases) {
  const auto why = [](bool by_own_answers) {
    Journal journal = fake::mixed_journal();
    journal.meta.push_back(record_of(Cause{.kernel = "builtin:bad",
                                           .dtypes = {"f32"},
                                           .properties = {"backward.oracle-dk"},
                                           .by_own_answers = by_own_answers,
                                           .example = journal.findings[0].subject,
                                           .example_k = journal.findings[0].k}));
    return words_of_causes(summarise(journal, ""), "", "run").at(0).why;
  };
  EXPECT_THAT(why(true), HasSubstr("the backward pass: at the out and lse that the kernel itself returned it is "
                                   "wrong, too"));
  EXPECT_EQ(why(false), "");
}

TEST(CauseWords, StateChunks) {
  Case c = test::one_query(DType::f32, {1}, {1, 1}, {1, 0});
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest, Not(HasSubstr("chunks")));
  c.attention_chunk = 4, c.alignment = Causal::bottom_right;
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest, HasSubstr("dk=1 chunks of 4, alignment bottom-right  q=1"));
  c.window_left = 3;
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest,
              HasSubstr("dk=1 window 3 left, chunks of 4, alignment bottom-right  q=1"));
  c.window_left = -1, c.causal = Causal::bottom_right;
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest, HasSubstr("dk=1 causal bottom-right chunks of 4  q=1"));
}

TEST(CauseWords, StateSlopesAndWhereTheyCountFrom) {
  Case c = test::one_query(DType::f32, {1}, {1, 1}, {1, 0});
  c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 1}, std::vector<double>{0.25});
  c.alignment = Causal::bottom_right;
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest,
              HasSubstr("dk=1 alignment bottom-right  alibi_slopes=0.25  q=1  k=1,1  v=1,0"));
  c.window_left = 3;
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest, HasSubstr("dk=1 window 3 left, alignment bottom-right  alibi_slopes="));
  c.window_left = -1, c.causal = Causal::bottom_right;
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest, HasSubstr("dk=1 causal bottom-right  alibi_slopes="));
}

TEST(CauseWords, StateFactorsAndTheirBlocks) {
  Case c = test::one_query(DType::f32, {1}, {1, 1}, {1, 0});
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest, Not(HasSubstr("factors")));
  c[Slot::v_descale] = Tensor(DType::f32, {1, 1, 1}, std::vector<double>{0.25});
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest, HasSubstr("dk=1 factors of v  v_descale=0.25  q=1  k=1,1  v=1,0"));
  c[Slot::k_descale] = Tensor(DType::f32, {1, 1, 2}, std::vector<double>{0.5, 2});
  c.kv_descale_block = 1;
  EXPECT_THAT(words_of(0.75, 0.5, c).smallest,
              HasSubstr("dk=1 factors of k and v, blocks of 1 key  k_descale=0.5,2  v_descale=0.25  q=1"));
  Case large;
  const Shape shape{1, 1, 40, 1};
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) large[slot] = Tensor(DType::f32, shape);
  large[Slot::q_descale] = Tensor(DType::f32, {1, 1, 2}, std::vector<double>{0.5, 2});
  large[Slot::k_descale] = Tensor(DType::f32, {1, 1, 3}, std::vector<double>{0.5, 2, 4});
  large[Slot::v_descale] = Tensor(DType::f32, {1, 1, 1}, std::vector<double>{4});
  large.q_descale_block = 32, large.kv_descale_block = 16;
  EXPECT_THAT(words_of(0.75, 0.5, large).smallest,
              HasSubstr(" factors of q, k and v, blocks of 32 rows and 16 keys  q_descale=0.5,2"));
}

TEST(CauseWords, ShowTheDigitsThatDiffer) {
  EXPECT_THAT(words_of(0.5000001, 0.5).found, HasSubstr("= 0.5000001, exact 0.5,"));
}

}  // namespace
}  // namespace attest

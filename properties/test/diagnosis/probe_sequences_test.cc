// Lengths and packed sequences that are taken for something else are known by it, and those that are not are called so.
#include "properties/diagnosis/variants/probes/probe_sequences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "core/problem/fields.h"
#include "core/test/says.h"
#include "properties/arrangement/sequences.h"
#include "properties/test/catalogue/tampered.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

constexpr std::string_view as_meant = "as they are meant";

Probed asked(Kernel& kernel) {
  ProbeQuestions probe(kernel, 1);
  ask_sequences(probe);
  return std::move(probe.result());
}

const ProbeAnswer& answer_to(const Probed& probed, std::string_view question) {
  for (const ProbeAnswer& answer : probed.answers)
    if (answer.question == question) return answer;
  throw std::out_of_range(std::string(question));
}

Spoilt mistaken(std::string_view name) {
  for (const WrongKernel& one : mistaken_sequences())
    if (one.name == name) return Spoilt(one.fault);
  throw std::out_of_range(std::string(name));
}

struct Mistake {
  std::string_view kernel, question, found;
};

TEST(ProbeSequences, NamesWhatTheyAreTakenFor) {
  const Mistake mistakes[] = {
      {"ignores lengths of keys", "lengths of keys", "the lengths of keys were ignored"},
      {"takes the first length of keys for all", "lengths of keys", "every sequence had as many keys as the first"},
      {"sees a key behind its length", "lengths of keys", "a sequence had a key more"},
      {"sees a key less than its length", "lengths of keys", "the last key of a sequence were not there"},
      {"counts positions from the batch's last key", "lengths of keys, causal bottom-right",
       "bottom-right positions counted from the batch's last key"},
      {"ignores padding on the left", "padding on the left", "the padding on the left were ignored"},
      {"takes padding on the left off the end", "padding on the left",
       "the padding on the left were at the end of the keys"},
      {"counts positions from the padding on the left", "padding on the left, causal top-left",
       "positions counted from the first key of the padding on the left"},
      {"takes what is packed for one sequence", "packed sequences", "the packed sequences were one"},
      {"begins packed keys where queries begin", "packed sequences",
       "the starts of packed keys were those of the queries"},
  };
  for (const Mistake& one : mistakes) {
    Spoilt kernel = mistaken(one.kernel);
    const Probed probed = asked(kernel);
    const ProbeAnswer& answer = answer_to(probed, one.question);
    EXPECT_THAT(answer.found, Says(one.found)) << one.kernel;
    EXPECT_TRUE(answer.contradicts) << one.kernel;
    EXPECT_EQ(parse_manifest(to_json(probed.manifest), "found"), probed.manifest) << one.kernel;
  }
}

TEST(ProbeSequences, KnowsPositionsAmongAllTokens) {
  Tampered kernel(registered("core:double"), [](Case& c) {
    if (!has_variant(c, "packed") || c.causal == Causal::none) return;
    c.causal = Causal::none;
    c = with_block_mask(c, /*boolean=*/true);
    for (std::int64_t e = 0; e < c.mask().elements(); ++e) {
      const auto [b, h, i, j] = c.mask().shape().index_of(e);
      if (j > i) c[Slot::mask].set(e, 0.0);
    }
  });
  const Probed probed = asked(kernel);
  const ProbeAnswer& answer = answer_to(probed, "packed sequences, causal top-left");
  EXPECT_THAT(answer.found, Says("the positions of packed tokens were those among all of them"));
  EXPECT_TRUE(answer.contradicts);
  EXPECT_EQ(answer_to(probed, "packed sequences").found, as_meant);
}

TEST(ProbeSequences, LeavesInTheManifestWhatIsAsMeant) {
  Spoilt keys = mistaken("ignores lengths of keys"), starts = mistaken("begins packed keys one later"),
         positions = mistaken("counts positions from the batch's last key");
  const Probed of_keys = asked(keys);
  EXPECT_FALSE(of_keys.manifest.variants.at("lengths").keys);
  EXPECT_TRUE(of_keys.manifest.variants.at("lengths").queries);
  EXPECT_TRUE(of_keys.manifest.variants.contains("packed"));
  const Probed of_starts = asked(starts);
  EXPECT_FALSE(of_starts.manifest.variants.contains("packed"));
  EXPECT_TRUE(of_starts.manifest.variants.contains("lengths"));
  const VariantTerms of_positions = asked(positions).manifest.variants.at("lengths");
  EXPECT_TRUE(of_positions.keys);
  EXPECT_EQ(std::ranges::count(of_positions.excluded, Feature::bottom_right), 1);
  EXPECT_EQ(std::ranges::count(of_positions.excluded, Feature::top_left), 0);
}

TEST(ProbeSequences, FindsARightKernelRight) {
  for (const char* const id : {"builtin:two-pass", "builtin:flash", "core:float", "core:double"}) {
    const auto kernel = registered(id);
    const Probed probed = asked(*kernel);
    EXPECT_FALSE(probed.contradicted()) << id;
    EXPECT_EQ(probed.manifest, kernel->manifest()) << id;
    for (const char* const question :
         {"lengths of keys", "lengths of keys, causal top-left", "lengths of keys, causal bottom-right",
          "lengths of queries", "padding on the left", "padding on the left, causal top-left",
          "padding on the left, causal bottom-right", "packed sequences", "packed sequences, causal top-left",
          "packed sequences, causal bottom-right"})
      EXPECT_EQ(answer_to(probed, question).found, as_meant) << id << " " << question;
  }
}

TEST(ProbeSequences, BlamesNoKernelForKeysThatNoRowSees) {
  Tampered kernel(registered("core:double"), [](Case&) {});
  kernel.manifest().variants.at("lengths").keys = false;
  const Probed probed = asked(kernel);
  EXPECT_FALSE(probed.contradicted());
  EXPECT_EQ(answer_to(probed, "lengths of queries, causal top-left").found, as_meant);
  EXPECT_EQ(probed.manifest, kernel.manifest());
}

TEST(ProbeSequences, TellsASequenceWithoutAKeyThatIsNotAsStated) {
  Spoilt nan = mistaken("answers NaN without a key"), zero = mistaken("answers 0 without a key");
  const FullyMaskedRow stated = nan.manifest().fully_masked_row;
  ASSERT_TRUE(stated == FullyMaskedRow::nan || stated == FullyMaskedRow::zero);
  const ProbeAnswer of_nan = answer_to(asked(nan), "a sequence without a key"),
                    of_zero = answer_to(asked(zero), "a sequence without a key");
  EXPECT_EQ(of_nan.found, "nan");
  EXPECT_EQ(of_zero.found, "zero");
  EXPECT_EQ(of_nan.contradicts, stated != FullyMaskedRow::nan);
  EXPECT_EQ(of_zero.contradicts, stated != FullyMaskedRow::zero);
}

TEST(ProbeSequences, AsksNothingOfAKernelThatListsNone) {
  bool sent = false;
  Tampered kernel = asked_otherwise([&](Case& c) { sent = sent || has_sequences(c); });
  for (const char* const variant : {"lengths", "packed", "left_pad", "paged", "append", "cache_index"})
    kernel.manifest().variants.erase(variant);
  const Probed probed = asked(kernel);
  EXPECT_THAT(answer_to(probed, "lengths of sequences").found, Says("not asked"));
  EXPECT_FALSE(sent);
}

}  // namespace
}  // namespace attest

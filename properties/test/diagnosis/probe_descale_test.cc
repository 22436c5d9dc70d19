// Factors that are taken for something else are known by it, and those that are taken as they are meant are called so.
#include "properties/diagnosis/variants/probes/probe_descale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/test/says.h"
#include "properties/test/diagnosis/other_factors.h"

namespace attest {
namespace {

constexpr std::string_view as_meant = "as it is meant";
using Changes = std::function<void(Case&)>;

Probed asked(Kernel& kernel) {
  ProbeQuestions probe(kernel, 1);
  ask_descale(probe);
  return std::move(probe.result());
}
Probed asked(const Changes& change) {
  OtherFactors kernel(change);
  return asked(kernel);
}

const ProbeAnswer& answer_to(const Probed& probed, std::string_view question) {
  for (const ProbeAnswer& answer : probed.answers)
    if (answer.question == question) return answer;
  throw std::out_of_range(std::string(question));
}
const VariantTerms& terms_of(const Probed& probed) {
  EXPECT_EQ(parse_manifest(to_json(probed.manifest), "found"), probed.manifest);
  return probed.manifest.variants.at("descale");
}

TEST(ProbeDescale, FindsARightKernelRight) {
  for (const char* const id : {"builtin:two-pass", "builtin:flash", "builtin:flash-exp2", "core:float"}) {
    const auto kernel = registered(id);
    const Probed probed = asked(*kernel);
    EXPECT_FALSE(probed.contradicted()) << id;
    EXPECT_EQ(probed.manifest, kernel->manifest()) << id;
    for (const char* const question : {"factors", "factors of every head's own", "factors of every batch entry's own",
                                       "factors of blocks of 3 rows of q", "factors of blocks of 16 keys",
                                       "factors beside an additive mask", "factors beside a softcap"}) {
      EXPECT_EQ(answer_to(probed, question).found, as_meant) << id << ", " << question;
      EXPECT_EQ(answer_to(probed, question).evidence, "") << id;
    }
  }
}

TEST(ProbeDescale, TellsWhichTensorsHaveNone) {
  const Probed none_of_v = asked(forget_factors_of(Slot::v));
  const ProbeAnswer& answer = answer_to(none_of_v, "factors");
  EXPECT_EQ(answer.found, "as if there were no factors of v");
  EXPECT_EQ(answer.evidence, "Leave \"v\" out of \"tensors\" of \"descale\" in \"variants\".");
  EXPECT_TRUE(answer.contradicts);
  EXPECT_EQ(answer_to(none_of_v, "factors of k alone").found, as_meant);
  EXPECT_EQ(answer_to(none_of_v, "factors of v alone").found, "as if there were no factors of v");
  EXPECT_TRUE(terms_of(none_of_v).of_q && terms_of(none_of_v).of_k);
  EXPECT_FALSE(terms_of(none_of_v).of_v);
  // What is asked of all tensors is asked of the others.
  EXPECT_EQ(answer_to(none_of_v, "factors of every head's own").found, as_meant);

  const Probed none = asked(forget_factors);
  EXPECT_FALSE(none.manifest.variants.contains("descale"));
  EXPECT_EQ(answer_to(none, "factors").evidence, "Leave \"descale\" out of \"variants\".");

  const Probed divided =
      asked(another_factor([](const Case& c, const FactorPlace& at) { return 1 / factor_at(c, at); }));
  EXPECT_EQ(answer_to(divided, "factors").found, "as if factors divided, and did not multiply");
  EXPECT_EQ(answer_to(divided, "factors").evidence, "In the adapter: pass 1 divided by the factor.");
  EXPECT_FALSE(divided.manifest.variants.contains("descale"));
}

TEST(ProbeDescale, TellsWhoseTheyAre) {
  const Probed of_first_head = asked(factor_of_other([](const Case&, FactorPlace at) {
    at.head = 0;
    return at;
  }));
  const ProbeAnswer& of_heads = answer_to(of_first_head, "factors of every head's own");
  EXPECT_EQ(of_heads.found, "as if every head had the factors of the first");
  EXPECT_EQ(of_heads.evidence, "State \"per_head\": false of \"descale\" in \"variants\".");
  EXPECT_FALSE(terms_of(of_first_head).per_head);
  EXPECT_TRUE(terms_of(of_first_head).per_batch);

  const Probed of_first_entry = asked(factor_of_other([](const Case&, FactorPlace at) {
    at.batch = 0;
    return at;
  }));
  const ProbeAnswer& of_entries = answer_to(of_first_entry, "factors of every batch entry's own");
  EXPECT_EQ(of_entries.found, "as if every batch entry had the factors of the first");
  EXPECT_EQ(of_entries.evidence, "State \"per_batch\": false of \"descale\" in \"variants\".");
  EXPECT_TRUE(terms_of(of_first_entry).per_head);
  EXPECT_FALSE(terms_of(of_first_entry).per_batch);

  const Probed exchanged = asked(factor_of_other([](const Case&, FactorPlace at) {
    if (at.tensor != Slot::q) at.tensor = at.tensor == Slot::k ? Slot::v : Slot::k;
    return at;
  }));
  EXPECT_EQ(answer_to(exchanged, "factors").found, "as if factors of k and v were exchanged");
}

TEST(ProbeDescale, TellsWhichBlocksThereAre) {
  const auto early = factor_of_other([](const Case& c, FactorPlace at) {
    if (at.tensor != Slot::q && c.kv_descale_block == 16) ++at.row;
    return at;
  });
  const Probed any = asked(early);
  EXPECT_EQ(answer_to(any, "factors of blocks of 16 keys").found, "as if blocks began one row early");
  EXPECT_EQ(answer_to(any, "factors of blocks of 3 keys").found, as_meant);
  EXPECT_FALSE(terms_of(any).any_blocks);

  OtherFactors listed(early);
  VariantTerms& terms = listed.manifest().variants.at("descale");
  terms.any_blocks = false, terms.q_blocks = {2, 16}, terms.kv_blocks = {8, 16};
  const Probed of_list = asked(listed);
  EXPECT_EQ(terms_of(of_list).q_blocks, (std::vector<std::int64_t>{2, 16}));
  EXPECT_EQ(terms_of(of_list).kv_blocks, std::vector<std::int64_t>{8});

  // A tensor without factors has no blocks of them.
  OtherFactors without([&](Case& c) { forget_factors_of(Slot::q)(c); });
  without.manifest().variants.at("descale") = terms;
  EXPECT_TRUE(terms_of(asked(without)).q_blocks.empty());
}

TEST(ProbeDescale, TellsWhatTheyDoNotGoWith) {
  const auto excluded = [](const Changes& change) { return terms_of(asked(change)).excluded; };
  using Features = std::vector<Feature>;
  EXPECT_EQ(excluded([](Case& c) {
              if (c.mask().present()) forget_factors(c);
            }),
            Features{Feature::additive_mask});
  EXPECT_EQ(excluded([](Case& c) {
              if (c.softcap > 0) forget_factors(c);
            }),
            Features{Feature::softcap});
  // One factor of each tensor: a cap before them is one so many times as large.
  const Probed early = asked([](Case& c) {
    if (c.softcap > 0) c.softcap *= factor_of(c, Slot::q, 0, 0, 0) * factor_of(c, Slot::k, 0, 0, 0);
  });
  const ProbeAnswer& answer = answer_to(early, "factors beside a softcap");
  EXPECT_EQ(answer.found, "as if the cap were taken before the factors");
  EXPECT_EQ(answer.evidence, "State \"excludes\": [\"softcap\"] of \"descale\" in \"variants\".");
}

/// Keys and values that are nothing but whole numbers have factors in every plain problem.
TEST(ProbeDescale, AsksOfWholeNumbers) {
  OtherFactors kernel([](Case&) {});
  kernel.manifest().kv_dtypes = {{DType::f32, {{DType::i8, DType::i8}}}};
  const Probed right = asked(kernel);
  EXPECT_FALSE(right.contradicted());
  EXPECT_EQ(answer_to(right, "factors").found, as_meant);
  EXPECT_EQ(answer_to(right, "factors of every head's own").found, as_meant);
}

TEST(ProbeDescale, AsksNothingThatTheManifestRulesOut) {
  bool sent = false;
  OtherFactors none([&](Case&) { sent = true; });
  none.manifest().variants.erase("descale");
  EXPECT_THAT(answer_to(asked(none), "factors").found, Says("not asked"));
  EXPECT_FALSE(sent);

  OtherFactors few([&](Case& c) {
    const auto is_one = [&](Slot tensor) { return c[descale_of(tensor)].elements() == 1; };
    sent = sent || c[Slot::q_descale].present() || !is_one(Slot::k) || !is_one(Slot::v) || c.softcap > 0;
  });
  VariantTerms& terms = few.manifest().variants.at("descale");
  terms.of_q = terms.per_head = terms.per_batch = terms.any_blocks = false;
  terms.excluded = {Feature::softcap};
  const Probed of_few = asked(few);
  EXPECT_FALSE(sent || of_few.contradicted());
  EXPECT_EQ(answer_to(of_few, "factors").found, as_meant);
  EXPECT_EQ(of_few.manifest, few.manifest());
}

}  // namespace
}  // namespace attest

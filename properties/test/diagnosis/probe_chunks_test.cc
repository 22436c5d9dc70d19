// Chunks of each reading are known by the keys that rows see, and those that are as asked are called so.
#include "properties/diagnosis/variants/probes/probe_chunks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/test/says.h"
#include "properties/diagnosis/variants/chunk_misreadings.h"
#include "properties/test/diagnosis/other_chunks.h"

namespace attest {
namespace {

constexpr std::string_view as_meant = "as it is meant";
constexpr const char* places[] = {"chunks, top-left", "chunks, bottom-right", "chunks beside a causal form, top-left",
                                  "chunks beside a causal form, bottom-right"};

Probed asked(Kernel& kernel) {
  ProbeQuestions probe(kernel, 1);
  ask_chunks(probe);
  return std::move(probe.result());
}
Probed asked(const Tampered::Question& question) {
  Tampered kernel = asked_otherwise(question);
  return asked(kernel);
}

const ProbeAnswer& answer_to(const Probed& probed, std::string_view question) {
  for (const ProbeAnswer& answer : probed.answers)
    if (answer.question == question) return answer;
  throw std::out_of_range(std::string(question));
}
const VariantTerms& terms_in(const Probed& probed) {
  return probed.manifest.variants.at("chunk");
}

TEST(ProbeChunks, FindsARightKernelRight) {
  for (const char* const id : {"builtin:two-pass", "builtin:flash", "core:float"}) {
    const auto kernel = registered(id);
    const Probed probed = asked(*kernel);
    EXPECT_FALSE(probed.contradicted()) << id;
    EXPECT_EQ(probed.manifest, kernel->manifest()) << id;
    for (const char* const question : places) {
      EXPECT_EQ(answer_to(probed, question).found, as_meant) << id << ", " << question;
      EXPECT_THAT(answer_to(probed, question).evidence, Says("Every row of"));
    }
    EXPECT_EQ(answer_to(probed, "chunks beside a window").found, as_meant) << id;
  }
}

/// Without a causal form; what a reading of positions says of one alignment is right of the other.
TEST(ProbeChunks, NamesEachReading) {
  for (const auto& [words, sees] : mistaken_chunk_kernels()) {
    const Probed probed = asked(other_chunks(sees));
    const bool from_last = !words.ends_with("counted from the last keys, as i + N - M");
    const ProbeAnswer& answer = answer_to(probed, from_last ? places[1] : places[0]);
    EXPECT_EQ(answer.found, fmt::format("as if {}", words));
    EXPECT_TRUE(answer.contradicts) << words;
    EXPECT_THAT(answer.evidence, Says("Row ", " sees ", " where attention_chunk ", " asks for "));
    for (const ChunkReading& reading : chunk_readings())
      if (reading.words == words) {
        EXPECT_THAT(answer.evidence, testing::EndsWith(std::string(reading.remedy))) << words;
      }
    EXPECT_EQ(parse_manifest(to_json(probed.manifest), "found"), probed.manifest) << words;
  }
}

const SeesKey& kernel_of(std::string_view words) {
  for (const MistakenChunks& one : mistaken_chunk_kernels())
    if (one.words == words) return one.sees;
  throw std::out_of_range(std::string(words));
}

TEST(ProbeChunks, ShowsTheKeysOfARow) {
  const Probed probed = asked(other_chunks(kernel_of("a row saw the first key behind its chunk, too")));
  EXPECT_THAT(answer_to(probed, places[1]).evidence,
              Says("Row 0 sees keys 3..4 where attention_chunk 1 asks for key 3 (bottom-right, 6 queries and 9 keys). "
                   "State \"requires\": [\"causal\"] of \"chunk\" in \"variants\"."));
}

TEST(ProbeChunks, TellsWhereACausalFormIsNeeded) {
  const Probed probed = asked(other_chunks(kernel_of("a row saw all keys behind its chunk, too")));
  for (const int open : {0, 1}) {
    EXPECT_EQ(answer_to(probed, places[open]).found, "as if a row saw all keys behind its chunk, too");
    EXPECT_TRUE(answer_to(probed, places[open]).contradicts);
  }
  for (const int causal : {2, 3}) EXPECT_EQ(answer_to(probed, places[causal]).found, as_meant);
  EXPECT_EQ(terms_in(probed).required, std::vector{Feature::causal});
  EXPECT_THAT(terms_in(probed).excluded, testing::IsEmpty());
  EXPECT_EQ(parse_manifest(to_json(probed.manifest), "found"), probed.manifest);
}

TEST(ProbeChunks, TellsFromWhereRowsCount) {
  const Probed probed =
      asked(other_chunks(kernel_of("positions in chunks counted from the first keys, without N - M")));
  EXPECT_EQ(answer_to(probed, places[0]).found, as_meant);
  EXPECT_EQ(answer_to(probed, places[2]).found, as_meant);
  for (const int last : {1, 3}) {
    EXPECT_EQ(answer_to(probed, places[last]).found,
              "as if positions in chunks counted from the first keys, without N - M");
    EXPECT_TRUE(answer_to(probed, places[last]).contradicts);
  }
  EXPECT_EQ(terms_in(probed).alignment, std::vector{Causal::top_left});
  EXPECT_EQ(terms_in(probed).excluded, std::vector{Feature::bottom_right});
  EXPECT_EQ(parse_manifest(to_json(probed.manifest), "found"), probed.manifest);
}

TEST(ProbeChunks, KeepsNoneThatAreNowhereRight) {
  const Probed ignored = asked([](Case& c) { drop_variant(c, chunk_variant.name); });
  EXPECT_TRUE(ignored.contradicted());
  EXPECT_FALSE(ignored.manifest.variants.contains("chunk"));
  EXPECT_EQ(parse_manifest(to_json(ignored.manifest), "found"), ignored.manifest);
}

TEST(ProbeChunks, TellsOfChunksBesideAWindow) {
  const auto beside = [](const std::function<void(Case&)>& change) {
    Probed probed = asked([&](Case& c) {
      if (c.attention_chunk > 0 && has_variant(c, window_variant.name)) change(c);
    });
    for (const char* const question : places) EXPECT_EQ(answer_to(probed, question).found, as_meant);
    EXPECT_EQ(terms_in(probed).excluded, std::vector{Feature::window});
    EXPECT_EQ(parse_manifest(to_json(probed.manifest), "found"), probed.manifest);
    return answer_to(probed, "chunks beside a window");
  };
  const ProbeAnswer windowless = beside([](Case& c) { drop_variant(c, window_variant.name); });
  EXPECT_EQ(windowless.found, "as if there were no window");
  EXPECT_THAT(windowless.evidence,
              Says("attention_chunk ", ", window_left ", "State \"excludes\": [\"window\"] of \"chunk\""));
  EXPECT_TRUE(windowless.contradicts);
  EXPECT_EQ(beside([](Case& c) { drop_variant(c, chunk_variant.name); }).found, "as if there were no chunks");

  Tampered apart = asked_otherwise([](Case&) {});
  apart.manifest().variants.at("chunk").excluded = {Feature::window};
  EXPECT_THROW(answer_to(asked(apart), "chunks beside a window"), std::out_of_range);
  // Of the ends that windows may have.
  bool sent = false;
  Tampered left = asked_otherwise([&](Case& c) { sent = sent || (c.attention_chunk > 0 && c.window_right >= 0); });
  left.manifest().variants.at("window").right = false;
  EXPECT_EQ(answer_to(asked(left), "chunks beside a window").found, as_meant);
  EXPECT_FALSE(sent);
}

/// What a kernel refuses: a function of the case.
class Refusing : public Tampered {
 public:
  Refusing(std::function<bool(const Case&)> refused, CallStatus status)
      : Tampered(registered("builtin:two-pass"), [](Case&) {}), refused_(std::move(refused)), status_(status) {}
  Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    if (c.attention_chunk > 0 && refused_(c)) return {status_, "no such chunk", {}, {}};
    return Tampered::run(c, output, want_lse);
  }

 private:
  std::function<bool(const Case&)> refused_;
  CallStatus status_;
};

TEST(ProbeChunks, TellsPlacesThatAreNotServed) {
  Refusing causal_only([](const Case& c) { return c.causal == Causal::none; }, CallStatus::unsupported);
  const Probed probed = asked(causal_only);
  EXPECT_FALSE(probed.contradicted()) << "it says what it cannot do";
  EXPECT_EQ(answer_to(probed, places[0]).found, "unsupported: no such chunk");
  EXPECT_EQ(answer_to(probed, places[2]).found, as_meant);
  EXPECT_EQ(terms_in(probed).required, std::vector{Feature::causal});

  Refusing one_form([](const Case& c) { return c.causal == Causal::top_left; }, CallStatus::unsupported);
  const Probed other = asked(one_form);
  EXPECT_EQ(answer_to(other, places[2]).found, "unsupported: no such chunk");
  EXPECT_EQ(terms_in(other).excluded, std::vector{Feature::top_left});

  Refusing failing([](const Case& c) { return c.attention_chunk == 1; }, CallStatus::failed);
  const Probed failed = asked(failing);
  EXPECT_TRUE(answer_to(failed, places[0]).contradicts);
  EXPECT_EQ(answer_to(failed, places[0]).found, "failed: no such chunk");
  EXPECT_FALSE(failed.manifest.variants.contains("chunk"));
}

TEST(ProbeChunks, AsksAsTheManifestHasIt) {
  bool sent = false;
  Tampered none = asked_otherwise([&](Case& c) { sent = sent || c.attention_chunk > 0; });
  none.manifest().variants.erase("chunk");
  EXPECT_THAT(answer_to(asked(none), "chunks").found, Says("not asked"));
  EXPECT_FALSE(sent);

  Tampered causal = asked_otherwise([&](Case& c) { sent = sent || c.causal == Causal::none; });
  causal.manifest().variants.at("chunk").required = {Feature::causal};
  causal.manifest().causal = {Causal::bottom_right};
  // The plainest problem is asked without one.
  ProbeQuestions probe(causal, 1);
  sent = false;
  ask_chunks(probe);
  EXPECT_FALSE(sent);
  EXPECT_EQ(answer_to(probe.result(), places[3]).found, as_meant);
  EXPECT_THROW(answer_to(probe.result(), places[2]), std::out_of_range);
  EXPECT_EQ(probe.result().manifest, causal.manifest());

  // What is done and not declared is more than declared.
  Tampered modest = asked_otherwise([](Case&) {});
  modest.manifest().variants.at("chunk").alignment = {Causal::bottom_right};
  const Probed more = asked(modest);
  EXPECT_TRUE(answer_to(more, places[0]).beyond);
  EXPECT_FALSE(answer_to(more, places[1]).beyond);
  EXPECT_EQ(terms_in(more).alignment, (std::vector{Causal::top_left, Causal::bottom_right}));
}

TEST(ProbeChunks, TellsWeightsThatAreNoSet) {
  Tampered kernel = answered_otherwise([](Reply& reply) {
    // Of the identity alone there are ones.
    if (reply.out.elements() > 0 && reply.out[0] == 1) reply.out.set(0, 0.5);
  });
  const ProbeAnswer answer = answer_to(asked(kernel), places[0]);
  EXPECT_TRUE(answer.contradicts);
  EXPECT_THAT(answer.found, Says("row 0", "0.5"));
}

}  // namespace
}  // namespace attest

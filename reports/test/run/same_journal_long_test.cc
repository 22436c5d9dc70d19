// The same journal whatever the jobs, shards and interruptions, for property sets of each family.
#include "reports/test/run/same_journal.h"

namespace attest {
namespace {

/// Kernels that hold, fail, and are skipped.
struct Chosen {
  const char* name;
  const char* options;
  friend void PrintTo(const Chosen& chosen, std::ostream* out) { *out << chosen.options; }
};
constexpr Chosen sets[] = {
    {"attention",
     "--kernel builtin:flash --kernel fault:scale-ignored --dtype f32,bf16 --property attention.oracle "
     "--property attention.linear-in-values --property attention.lse-range --cases 400"},
    {"masked", "--kernel builtin:two-pass --kernel fault:scale-ignored --dtype f32 --property 'masked.*' --cases 150"},
    {"multihead",
     "--kernel builtin:two-pass --kernel core:float --dtype f32 --property 'multihead.*' --property "
     "'softmax.*' --cases 100"},
};

class SameJournalLong : public testing::TestWithParam<Chosen> {};

TEST_P(SameJournalLong, ForAnyJobsShardsAndInterruptions) {
  expect_same_journal(GetParam().options, {1, 3, 7}, {1, 2, 5});
}

INSTANTIATE_TEST_SUITE_P(Sets, SameJournalLong, testing::ValuesIn(sets),
                         [](const auto& set) { return std::string(set.param.name); });

}  // namespace
}  // namespace attest

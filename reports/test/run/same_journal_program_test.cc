// The same journal whatever the jobs, shards and interruptions, for a few of them; same_journal_long_test.cc has more.
#include "reports/test/run/same_journal.h"

namespace attest {
namespace {

TEST(SameJournal, ForAnyJobsShardsAndInterruptions) {
  expect_same_journal(
      "--kernel builtin:flash --kernel fault:scale-ignored --dtype f32,bf16 --property attention.oracle --property "
      "masked.row-shift --property attention.lse-range --cases 100",
      {1, 3}, {1, 5});
}

}  // namespace
}  // namespace attest

// What was violated is checked again before it is reported: kernels whose faults come and go, and what is said of them.
#include "reports/run/repetition.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

#include "core/journal/journal_lines.h"
#include "core/kernel/forwarding_kernel.h"
#include "core/support/errors.h"
#include "core/support/files.h"
#include "reports/run/engine.h"
#include "reports/test/fakes.h"

namespace attest {
namespace {

using fake::Folder;

/// builtin:two-pass, whose outputs `spoil` may change; what it keeps between calls goes with the kernel, as the memory
/// of a process does, and a clone has its own.
template <class State>
class Forgetful final : public ForwardingKernel {
 public:
  using Spoil = bool (*)(State&, const Case&);
  explicit Forgetful(Spoil spoil)
      : ForwardingKernel(std::move(open_kernels("builtin:two-pass", {}).front())), spoil_(spoil) {}
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Reply reply = ForwardingKernel::run(c, output, want_lse);
    if (spoil_(state_, c) && reply.status == CallStatus::ok)
      for (std::int64_t e = 0; e < reply.out.elements(); ++e) reply.out.set(e, 1000 + reply.out[e]);
    return reply;
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<Forgetful>(spoil_); }

 private:
  std::string id_ = "test:forgetful";
  Spoil spoil_;
  State state_{};
};

struct Count {
  int calls = 0;
};
bool every_third(Count& count, const Case&) {
  return ++count.calls % 3 == 0;
}
bool always(Count&, const Case&) {
  return true;
}
/// A plan is made for the first dk of each M and N, and used for every other.
struct Plans {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> dk;
};
bool plans_by_lengths(Plans& plans, const Case& c) {
  const std::int64_t dk = c.q().shape()[3];
  return plans.dk.try_emplace({c.q().shape()[2], c.k().shape()[2]}, dk).first->second != dk;
}
/// One call in four, as threads happen to meet.
struct Chance {
  std::mt19937 bits{std::random_device{}()};
};
bool now_and_then(Chance& chance, const Case&) {
  return chance.bits() % 4 == 0;
}

template <class State>
Journal journal_of(const Folder& folder, bool (*spoil)(State&, const Case&), std::int64_t cases) {
  Plan plan;
  plan.properties = properties_matching("attention.oracle");
  plan.kernels.push_back(std::make_unique<Forgetful<State>>(spoil));
  plan.dtypes = {DType::f32};
  plan.cases = cases;
  const RunFolder run(folder.path(), RunFolder::Mode::overwrite);
  {
    JournalWriter writer(run.journal());
    writer.append(RunRecord{.seed = plan.seed, .case_files = {}});
    fake::CountingObserver observer;
    const Journal earlier;
    const Road road;
    Engine engine(plan, road, run, writer, earlier, observer);
    EXPECT_EQ(engine.run(), Ending::complete);
  }
  return read_journal(folder.path());
}

template <class State>
Outcome replayed(const Folder& folder, const FindingRecord& finding, bool (*spoil)(State&, const Case&),
                 std::size_t left_out = 0) {
  const std::filesystem::path file = folder.path() / finding.case_file;
  const Case c = load_case(file);
  const std::optional<Repetition> repetition = repetition_of(c);
  std::vector<Call> calls = repetition ? calls_before(*repetition, file) : std::vector<Call>();
  calls.resize(calls.size() - left_out);
  Forgetful<State> kernel(spoil);
  for (const Call& call : calls) make(call, kernel);
  return check_case(*properties_matching("attention.oracle").front(), kernel, c).outcome;
}

TEST(Repetition, SaysNothingOfWhatComesBackByItself) {
  const Folder folder;
  const Journal journal = journal_of(folder, always, 20);
  ASSERT_EQ(journal.findings.size(), findings_kept);
  for (const FindingRecord& finding : journal.findings) {
    EXPECT_FALSE(finding.repetition);
    EXPECT_EQ(finding.verdict.reason.find("repeatable"), std::string::npos) << finding.verdict.reason;
    const Case c = load_case(folder.path() / finding.case_file);
    EXPECT_TRUE(c.provenance.shrunk.has_value());
    EXPECT_FALSE(repetition_of(c));
  }
}

TEST(Repetition, FindsTheCallsThatACountTakes) {
  const Folder folder;
  const Journal journal = journal_of(folder, every_third, 20);
  ASSERT_EQ(journal.findings.size(), findings_kept);
  for (const FindingRecord& finding : journal.findings) {
    ASSERT_TRUE(finding.repetition);
    EXPECT_EQ(finding.verdict.outcome, Outcome::violated);
    EXPECT_GT(finding.repetition->again, 0);
    EXPECT_LT(finding.repetition->again, finding.repetition->of);
    ASSERT_EQ(finding.repetition->before.size(), 2U) << "every third call";
    EXPECT_NE(finding.verdict.reason.find("not repeatable by itself: a kernel started afresh violates it after 2 other "
                                          "calls, which replay makes first; checked again at once"),
              std::string::npos)
        << finding.verdict.reason;
    EXPECT_EQ(replayed(folder, finding, every_third), Outcome::violated);
    EXPECT_EQ(replayed(folder, finding, every_third, /*left_out=*/1), Outcome::held);
  }
}

TEST(Repetition, FindsTheCallThatMadeAPlan) {
  const Folder folder;
  const Journal journal = journal_of(folder, plans_by_lengths, 300);
  ASSERT_EQ(journal.findings.size(), findings_kept);
  for (const FindingRecord& finding : journal.findings) {
    // Checked again at once it is violated each time: the plan is there. Only a kernel started afresh has none.
    ASSERT_TRUE(finding.repetition) << finding.verdict.reason;
    EXPECT_EQ(finding.repetition->again, finding.repetition->of);
    ASSERT_EQ(finding.repetition->before.size(), 1U);
    const Case c = load_case(folder.path() / finding.case_file),
               before = load_case(folder.path() / finding.repetition->before.front());
    EXPECT_EQ(before.q().shape()[2], c.q().shape()[2]);
    EXPECT_EQ(before.k().shape()[2], c.k().shape()[2]);
    EXPECT_NE(before.q().shape()[3], c.q().shape()[3]);
    EXPECT_EQ(replayed(folder, finding, plans_by_lengths), Outcome::violated);
    EXPECT_EQ(replayed(folder, finding, plans_by_lengths, /*left_out=*/1), Outcome::held);
  }
}

TEST(Repetition, SaysHowOftenARaceComesBack) {
  const Folder folder;
  const Journal journal = journal_of(folder, now_and_then, 40);
  ASSERT_FALSE(journal.findings.empty());
  // By chance, one in 65536, all eight come back.
  int told = 0;
  for (const FindingRecord& finding : journal.findings) {
    if (!finding.repetition) continue;
    ++told;
    EXPECT_LT(finding.repetition->again, finding.repetition->of);
    EXPECT_NE(finding.verdict.reason.find("not repeatable"), std::string::npos) << finding.verdict.reason;
    EXPECT_TRUE(load_case(folder.path() / finding.case_file).provenance.violated_again.has_value());
  }
  EXPECT_GT(told, 0);
}

TEST(Repetition, TheTextNamesWhatIsKnown) {
  EXPECT_EQ(repetition_text({.again = 3, .of = 8}),
            "not repeatable: checked again at once it was violated in 3 of 8; no calls before it were found that bring "
            "it back");
  EXPECT_EQ(
      repetition_text({.again = 8, .of = 8}),
      "not repeatable: checked again at once it was violated in 8 of 8, and by a kernel started afresh it is not; "
      "no calls before it were found that bring it back");
  EXPECT_EQ(
      repetition_text({.again = 8, .of = 8, .before = {"cases/a"}}),
      "not repeatable by itself: a kernel started afresh violates it after 1 other call, which replay makes first; "
      "checked again at once it was violated in 8 of 8");
}

TEST(Repetition, IsReadAsItIsWritten) {
  FindingRecord finding{{"attention.oracle", "k", "f32"}, 7, "cases/a.safetensors", {.outcome = Outcome::violated}};
  finding.verdict.violation = Violation::bound;
  finding.repetition = Repetition{.again = 3, .of = 8, .before = {"cases/b.safetensors", "cases/c.safetensors"}};
  const std::string line = to_line(RunRecord{}) + to_line(finding);
  const Journal journal = parse_journal(stamped(line), "here");
  ASSERT_EQ(journal.findings.size(), 1U);
  EXPECT_EQ(journal.findings.front().repetition, finding.repetition);
  const auto refused = [&](const std::string& what, const std::string& by) {
    std::string wrong = line;
    wrong.replace(wrong.find(what), what.size(), by);
    EXPECT_THROW((void)parse_journal(stamped(wrong), "here"), UsageError) << by;
  };
  refused("cases/b", "../b");
  refused("cases/b", "cases/../../b");
  refused("\"again\":3", "\"again\":9");
}

TEST(Repetition, TakesNoFileFromElsewhere) {
  const Folder folder;
  Case c = fake::tiny_case(DType::f32, 0);
  c.provenance.violated_again = "1 of 8";
  for (const char* const name : {"../a.safetensors", "/etc/passwd", ".hidden", "missing.safetensors"}) {
    c.provenance.calls_before = name;
    EXPECT_THROW((void)calls_before(*repetition_of(c), folder / "case.safetensors"), UsageError) << name;
  }
}

}  // namespace
}  // namespace attest

// The cheats: the table and the files are the same, each is right where it means to be seen, and each cheats.
#include "properties/faults/cheats.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>

#include "core/support/files.h"
#include "core/test/names.h"
#include "core/test/places.h"
#include "core/test/sanitizers.h"
#include "core/test/temporary_folder.h"
#include "properties/test/faults/cheat_question.h"
#include "properties/test/property_fixture.h"

namespace attest {

/// How GoogleTest prints a parameter.
static void PrintTo(const Cheat* cheat, std::ostream* out) {
  *out << cheat->does;
}

namespace {

using test::cheat_entry;
using test::in_child;
using test::in_time;
using test::Question;
using test::TemporaryFolder;

std::unique_ptr<Kernel> opened(const std::string& id) {
  add_outside_names(cheat_kernels);
  // Limits that no healthy call comes near, however loaded the machine is.
  KernelOptions patient;
  patient.reply = std::chrono::seconds(60);
  auto kernels = open_kernels(id, patient);
  EXPECT_EQ(kernels.size(), 1U) << id;
  return std::move(kernels.front());
}

std::string id_of(const Cheat& cheat) {
  constexpr std::string_view honest = "honest-";
  return cheat.honest() ? "honest:" + std::string(cheat.name().substr(honest.size()))
                        : "cheat:" + std::string(cheat.name());
}

// The table

TEST(Cheats, AreTheFilesThatThereAre) {
  std::set<std::string> files, listed;
  for (const auto& entry : std::filesystem::directory_iterator(source_folder() + "/properties/faults/cheats")) {
    const std::string extension = entry.path().extension();
    if (extension == ".c" || extension == ".py") files.insert(entry.path().filename());
  }
  EXPECT_EQ(files.erase("honest.py"), 1U) << "which the scripts begin with";
  for (const Cheat& cheat : cheats()) EXPECT_TRUE(listed.insert(std::string(cheat.file)).second) << cheat.file;
  EXPECT_EQ(files, listed);
}

TEST(Cheats, AreFortyFiveOrMoreAndEveryWayToCatchOneIsNeeded) {
  std::map<CaughtBy, int> counts;
  for (const Cheat& cheat : cheats()) {
    ++counts[cheat.caught_by];
    EXPECT_FALSE(cheat.does.empty()) << cheat.file;
    EXPECT_EQ(cheat.honest(), cheat.name().starts_with("honest-")) << cheat.file;
  }
  EXPECT_EQ(counts.size(), Words<CaughtBy>::names.size());
  EXPECT_GE(counts[CaughtBy::nothing], 6);
  EXPECT_GE(std::ssize(cheats()) - counts[CaughtBy::nothing], 45);
}

TEST(Cheats, SayInTheirFirstCommentWhatTheyStandForAndWhatCatchesThem) {
  for (const Cheat& cheat : cheats()) {
    const std::string text = read_file(source_folder() + "/properties/faults/cheats/" + std::string(cheat.file));
    const std::string comment = text.substr(0, text.find(cheat.file.ends_with(".c") ? "*/" : "\"\"\"", 3));
    EXPECT_NE(comment.find("Stands for: "), std::string::npos) << cheat.file;
    EXPECT_EQ(comment.find("Caught by: ") == std::string::npos, cheat.honest()) << cheat.file;
    EXPECT_NE(text.find(std::string("\"") + std::string(cheat.name()) + "\""), std::string::npos)
        << cheat.file << " has another name in its manifest";
  }
}

TEST(Cheats, AreOpenedByTheirNamesAndByGlobsThatNameTheirFamilyAlone) {
  add_outside_names(cheat_kernels);
  std::set<std::string> ids;
  for (const Cheat& cheat : cheats()) ids.insert(id_of(cheat));
  const std::vector<std::string> known = known_kernels();
  for (const std::string& id : ids) EXPECT_EQ(std::ranges::count(known, id), 1) << id;
  EXPECT_EQ(open_kernels("cheat:z*", {}).size(), 1U);
  EXPECT_EQ(opened("cheat:zeros")->id(), "cheat:zeros");
  EXPECT_THROW((void)open_kernels("*:zeros", {}), UsageError);
}

// What each is right at, by the certified oracle, in a process of its own as in any run

/// Of q and k, a number of eighths, so that narrow formats hold it; nothing for a cheat that is right nowhere.
std::optional<test::CaseSizes> ordinary_sizes(const Cheat& cheat) {
  static const std::set<std::string_view> nowhere{"zeros", "writes-nothing", "overwrites-inputs", "thread-writes-late"};
  static const std::set<std::string_view> at_one_key{"copies-values", "mean-of-values",    "coarse-exp",
                                                     "silent-bf16",   "tf32-products",     "guesses-lse",
                                                     "reads-parent",  "py-walks-the-stack"};
  if (nowhere.contains(cheat.name())) return std::nullopt;
  if (cheat.name() == "writes-past-end") return test::CaseSizes{.queries = 2, .keys = 2, .dk = 8, .dv = 8};
  const std::int64_t keys = at_one_key.contains(cheat.name()) ? 1 : 2;
  return test::CaseSizes{.queries = keys, .keys = keys, .dk = 2, .dv = 2};
}

Case ordinary_case(const test::CaseSizes& sizes, DType dtype) {
  int state = 0;
  return test::attention_of(sizes, [&](Slot, const Shape& shape) {
    return test::filled(dtype, shape, [&] { return ((state = (state * 5 + 3) % 32) - 16) / 8.0; });
  });
}

/// Where it is set, cheats that replay answers compute them.
constexpr const char* learning = "CHEAT_LEARNS";

class EveryCheat : public testing::TestWithParam<const Cheat*> {
 protected:
  EveryCheat() { ::setenv(learning, "1", 1); }
  ~EveryCheat() override { ::unsetenv(learning); }

 private:
  test::OwnTemporaryFolder folder_;
};

TEST_P(EveryCheat, IsRightWhereItMeansToBe) {
  const auto sizes = ordinary_sizes(*GetParam());
  if (!sizes) GTEST_SKIP() << "right nowhere";
  const std::unique_ptr<Kernel> kernel = opened(id_of(*GetParam()));
  const Case c = ordinary_case(*sizes, kernel->manifest().dtypes.front());
  // refuses-at-random answers one call of ten.
  for (int call = 0; call < 100; ++call) {
    const Verdict verdict = check_case(property_named("attention.oracle"), *kernel, c);
    if (verdict.outcome == Outcome::skipped) continue;
    // A declared arithmetic without any bound excuses every answer.
    const bool excused = GetParam()->caught_by == CaughtBy::arithmetic && verdict.outcome == Outcome::excused;
    EXPECT_TRUE(verdict.outcome == Outcome::held || excused) << verdict.reason;
    return;
  }
  ADD_FAILURE() << "answers nothing";
}

std::vector<const Cheat*> all_cheats() {
  std::vector<const Cheat*> all;
  for (const Cheat& cheat : cheats()) all.push_back(&cheat);
  return all;
}
constexpr auto test_name = [](const auto& info) { return test::name_of_test(std::string(info.param->name())); };
INSTANTIATE_TEST_SUITE_P(Cheats, EveryCheat, testing::ValuesIn(all_cheats()), test_name);

class EveryHonestKernel : public testing::TestWithParam<const Cheat*> {};

TEST_P(EveryHonestKernel, IsNeverFlagged) {
  const std::unique_ptr<Kernel> kernel = opened(id_of(*GetParam()));
  for (const Property* property : catalogue()) {
    if (property->operation != Operation::attention) continue;
    for (std::int64_t k = 0; k < 10; ++k)
      for (const DType dtype : kernel->manifest().dtypes) {
        const Verdict verdict = verdict_on(*property, *kernel, dtype, k);
        EXPECT_NE(verdict.outcome, Outcome::violated) << property->name << ": " << verdict.reason;
      }
  }
}

std::vector<const Cheat*> honest_kernels() {
  std::vector<const Cheat*> all = all_cheats();
  std::erase_if(all, [](const Cheat* cheat) { return !cheat->honest(); });
  return all;
}
INSTANTIATE_TEST_SUITE_P(Cheats, EveryHonestKernel, testing::ValuesIn(honest_kernels()), test_name);

// What each does wrong

struct Wrong {
  std::string_view name;
  test::CaseSizes sizes;
  double scale = 0.5;
};
const Wrong wrong_at[] = {
    {"zeros", {.queries = 2, .keys = 2, .dk = 2, .dv = 2}},
    {"writes-nothing", {.queries = 2, .keys = 2, .dk = 2, .dv = 2}},
    {"mean-of-values", {.queries = 2, .keys = 2, .dk = 2, .dv = 2}},
    {"nan-as-wildcard", {.queries = 2, .keys = 64, .dk = 2, .dv = 2}},
    {"guesses-lse", {.queries = 2, .keys = 2, .dk = 2, .dv = 2}},
    {"heads-share-the-first", {.heads = 4, .queries = 2, .keys = 2, .dk = 2, .dv = 2}},
    {"first-batch-only", {.batch = 3, .queries = 2, .keys = 2, .dk = 2, .dv = 2}},
    {"every-other-row", {.queries = 64, .keys = 2, .dk = 2, .dv = 2}},
    {"drops-small-weights", {.queries = 8, .keys = 64, .dk = 8, .dv = 2}, 4},
    {"exp-without-maximum", {.queries = 8, .keys = 8, .dk = 8, .dv = 2}, 40},
    {"drops-last-key-beyond-512", {.queries = 2, .keys = 513, .dk = 2, .dv = 2}},
    {"window-at-production", {.queries = 2, .keys = 1024, .dk = 2, .dv = 2}},
    {"ghost-branch", {.queries = 2, .keys = 3, .dk = 80, .dv = 2}},
    {"one-element-of-many", {.queries = 1024, .keys = 2, .dk = 2, .dv = 64}},
    {"scores-in-bf16", {.queries = 8, .keys = 16, .dk = 8, .dv = 8}},
    {"accumulates-in-bf16", {.queries = 8, .keys = 16, .dk = 8, .dv = 8}},
    {"declares-coarse-exp", {.queries = 8, .keys = 16, .dk = 8, .dv = 8}},
    {"coarse-exp", {.queries = 8, .keys = 16, .dk = 8, .dv = 8}},
    {"silent-bf16", {.queries = 8, .keys = 16, .dk = 8, .dv = 8}},
    {"tf32-products", {.queries = 8, .keys = 16, .dk = 8, .dv = 8}},
    {"f16-sums", {.queries = 8, .keys = 128, .dk = 8, .dv = 8}},
    {"fp8-products", {.queries = 8, .keys = 256, .dk = 8, .dv = 8}},
};

TEST(ACheat, IsWrongAtSizesOrInArithmetic) {
  for (const Wrong& wrong : wrong_at) {
    const auto entry = cheat_entry(wrong.name);
    Question asked(wrong.sizes);
    asked.scale = wrong.scale;
    EXPECT_EQ(asked.ask(entry), ATTEST_OK) << wrong.name;
    EXPECT_FALSE(asked.is_right()) << wrong.name;
  }
  Question values({.queries = 2, .keys = 2, .dk = 2, .dv = 2});
  values.wants_lse = false;
  EXPECT_FALSE(values.is_answered_right(cheat_entry("copies-values")));
}

// The same sizes, one less: none of those above that begin at a size is wrong before it.
TEST(ACheat, IsRightBelowTheSizeAtWhichItBegins) {
  const Wrong right_at[] = {{"nan-as-wildcard", {.queries = 2, .keys = 63, .dk = 2, .dv = 2}},
                            {"heads-share-the-first", {.heads = 3, .queries = 2, .keys = 2, .dk = 2, .dv = 2}},
                            {"first-batch-only", {.batch = 2, .queries = 2, .keys = 2, .dk = 2, .dv = 2}},
                            {"every-other-row", {.queries = 63, .keys = 2, .dk = 2, .dv = 2}},
                            {"exp-without-maximum", {.queries = 8, .keys = 8, .dk = 8, .dv = 2}},
                            {"drops-last-key-beyond-512", {.queries = 2, .keys = 512, .dk = 2, .dv = 2}},
                            {"window-at-production", {.queries = 2, .keys = 1023, .dk = 2, .dv = 2}},
                            {"ghost-branch", {.queries = 2, .keys = 3, .dk = 79, .dv = 2}},
                            {"one-element-of-many", {.queries = 1023, .keys = 2, .dk = 2, .dv = 64}},
                            {"f16-sums", {.queries = 8, .keys = 127, .dk = 8, .dv = 8}},
                            {"fp8-products", {.queries = 8, .keys = 255, .dk = 8, .dv = 8}}};
  for (const Wrong& right : right_at) {
    Question asked(right.sizes);
    asked.scale = right.scale;
    EXPECT_TRUE(asked.is_answered_right(cheat_entry(right.name))) << right.name;
  }
}

TEST(ACheat, Refuses) {
  Question large({.queries = 2, .keys = 3, .dk = 2, .dv = 2});
  EXPECT_EQ(large.ask(cheat_entry("refuses-above-two")), ATTEST_UNSUPPORTED);
  EXPECT_EQ(large.ask(cheat_entry("declares-two-keys")), ATTEST_UNSUPPORTED);
  EXPECT_EQ(opened("cheat:declares-two-keys")->manifest().max_keys, 2);
  EXPECT_EQ(large.ask(cheat_entry("rejects-the-hard")), ATTEST_REJECTED);
  EXPECT_TRUE(large.is_answered_right(cheat_entry("refuses-masks")));
  large.causal = ATTEST_CAUSAL_TOP_LEFT;
  EXPECT_EQ(large.ask(cheat_entry("refuses-masks")), ATTEST_UNSUPPORTED);
  EXPECT_TRUE(large.is_answered_right(cheat_entry("refuses-wide-scores")));
  large.scale = 100;
  EXPECT_EQ(large.ask(cheat_entry("refuses-wide-scores")), ATTEST_UNSUPPORTED);
  int refused = 0;
  const auto at_random = cheat_entry("refuses-at-random");
  for (int call = 0; call < 1000; ++call) refused += large.ask(at_random) == ATTEST_UNSUPPORTED;
  EXPECT_GT(refused, 800);
  EXPECT_LT(refused, 970);
}

TEST(ACheat, AnswersWhatItWasAskedBefore) {
  struct Again {
    std::string_view name;
    std::function<void(Question&)> change;
  };
  const auto nothing = [](Question&) {};
  const auto all = [](Question& asked) { asked.draw(asked.q), asked.draw(asked.k), asked.draw(asked.v); };
  const Again again[] = {{"last-output", all},
                         {"cached-by-pointer", all},
                         {"cached-by-fingerprint", [](Question& asked) { asked.v.back() += 1; }},
                         {"cached-by-size", all},
                         {"cached-by-queries", [](Question& asked) { asked.draw(asked.k), asked.draw(asked.v); }},
                         {"cached-without-mask", [](Question& asked) { asked.causal = ATTEST_CAUSAL_TOP_LEFT; }},
                         {"every-fifteenth-call", all},
                         {"right-the-first-time", nothing},
                         {"sums-into-last-buffer", nothing}};
  for (const Again& one : again) {
    const auto entry = cheat_entry(one.name);
    Question asked({.queries = 4, .keys = 8, .dk = 4, .dv = 4});
    EXPECT_TRUE(asked.is_answered_right(entry)) << one.name;
    one.change(asked);
    EXPECT_FALSE(asked.is_answered_right(entry)) << one.name;
  }
}

TEST(ACheat, ReplaysAFileOfAnswers) {
  const test::OwnTemporaryFolder folder;
  const auto entry = cheat_entry("cached-on-disk");
  const auto answers = [&](std::uint32_t seed, bool learns = false) {
    return in_child([&] {
      if (learns) ::setenv(learning, "1", 1);
      Question asked({.queries = 2, .keys = 4, .dk = 2, .dv = 2}, seed);
      return asked.is_answered_right(entry) ? 0 : 1;
    });
  };
  EXPECT_EQ(answers(1), 1) << "nothing is known";
  EXPECT_EQ(answers(1, /*learns=*/true), 0);
  EXPECT_EQ(answers(1), 0) << "replays";
  EXPECT_EQ(answers(2), 1) << "zeros";
}

TEST(ACheat, IsWrongLateOrSeldom) {
  Question asked({.queries = 1, .keys = 2, .dk = 1, .dv = 1});
  const auto late = cheat_entry("late-30001");
  for (int call = 1; call < 30000; ++call) asked.ask(late);
  EXPECT_TRUE(asked.is_answered_right(late));
  EXPECT_FALSE(asked.is_answered_right(late));

  const auto seldom = cheat_entry("once-in-ten-thousand");
  EXPECT_TRUE(asked.is_answered_right(seldom));
  const float right = asked.out[0];
  int wrong = 0;
  for (int call = 0; call < 400'000; ++call) {
    asked.ask(seldom);
    wrong += asked.out[0] != right;
  }
  EXPECT_GT(wrong, 10);
  EXPECT_LT(wrong, 100);
}

TEST(ACheat, IsWrongByTheClock) {
  Question asked({.queries = 2, .keys = 8, .dk = 2, .dv = 2});
  const auto late = cheat_entry("late-by-time");
  EXPECT_TRUE(asked.is_answered_right(late));
  const auto odd = cheat_entry("odd-seconds");
  EXPECT_TRUE(in_time([&] { return asked.is_answered_right(odd); }));
  EXPECT_TRUE(in_time([&] { return !asked.is_answered_right(odd); }));
  ::sleep(12);
  EXPECT_FALSE(asked.is_answered_right(late));
}

TEST(ACheat, SleepsWhereItIsHard) {
  Question asked({.queries = 1, .keys = 1025, .dk = 1, .dv = 1});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(asked.is_answered_right(cheat_entry("slow-where-hard")));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

// Behaving while observed

/// Pages that can be read and written, the last of them not where `guarded`.
class Pages {
 public:
  Pages(std::size_t pages, bool guarded, int sharing = MAP_PRIVATE)
      : size_(pages * page), at_(::mmap(nullptr, size_, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0)) {
    if (guarded) ::mprotect(bytes() + size_ - page, page, PROT_NONE);
  }
  ~Pages() { ::munmap(at_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] char* bytes() const { return static_cast<char*>(at_); }
  [[nodiscard]] float* floats() const { return static_cast<float*>(at_); }
  static constexpr std::size_t page = 65536;

 private:
  std::size_t size_;
  void* at_;
};

TEST(ACheat, BehavesWhileItIsObserved) {
  Question asked({.queries = 2, .keys = 4, .dk = 2, .dv = 2});
  const auto guarded = cheat_entry("behaves-when-guarded");
  const Pages with_guard(2, true), without(4, false);
  asked.place = with_guard.floats() + Pages::page / sizeof(float) - asked.out.size();
  EXPECT_TRUE(asked.is_answered_right(guarded));
  asked.place = without.floats();
  EXPECT_FALSE(asked.is_answered_right(guarded));
  asked.place = asked.out.data();

  const auto filled = cheat_entry("behaves-when-filled");
  std::ranges::fill(asked.out, Question::unwritten);
  EXPECT_TRUE(asked.is_answered_right(filled));
  EXPECT_FALSE(asked.is_answered_right(filled)) << "the last answer lies there now";

  const auto under_attest = cheat_entry("behaves-under-attest");
  const auto right_in_child = [&] { return in_child([&] { return asked.is_answered_right(under_attest) ? 0 : 1; }); };
  ::unsetenv("ATTEST_PROCESS");
  EXPECT_EQ(right_in_child(), 1);
  ::setenv("ATTEST_PROCESS", "1", 1);
  EXPECT_EQ(right_in_child(), 0);
  ::unsetenv("ATTEST_PROCESS");
}

// After the call

TEST(ACheat, WritesLater) {
  const test::CaseSizes sizes{.queries = 2, .keys = 4, .dk = 2, .dv = 2};
  Question late(sizes);
  late.wants_lse = false;
  const auto thread = cheat_entry("thread-writes-late");
  // A loaded machine may let the thread come first.
  EXPECT_TRUE(in_time([&] {
    const std::atomic_ref<float> first(late.out[0]);
    first = Question::unwritten;
    late.ask(thread);
    return first == Question::unwritten;
  }));
  EXPECT_TRUE(in_time([&] { return late.is_right(); }));

  for (const std::string_view name : {"thread-spoils-later", "timer-writes-late"}) {
    Question spoilt(sizes);
    const auto entry = cheat_entry(name);
    for (int call = 1; call < 10; ++call) EXPECT_TRUE(spoilt.is_answered_right(entry)) << name;
    const std::atomic_ref<float> first(spoilt.out[0]);
    spoilt.ask(entry);
    const float at_first = first;
    EXPECT_TRUE(in_time([&] { return first != at_first; })) << name;
  }
}

TEST(ACheat, ComputesWhenItsOutputIsRead) {
  if (under_address_sanitizer) GTEST_SKIP() << "which handles the signal itself";
  Question asked({.queries = 2, .keys = 4, .dk = 2, .dv = 2});
  const Pages pages(1, false);
  asked.place = pages.floats();
  EXPECT_EQ(asked.ask(cheat_entry("lazy-evaluation")), ATTEST_OK);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(::write(ends[1], asked.place, 1), -1) << "the system sees memory that cannot be read";
  EXPECT_TRUE(asked.is_right()) << "and who reads it by himself an answer";
}

TEST(ACheat, WritesOverSharedMemory) {
  for (const std::string_view name : {"scribbles-shared-memory", "child-writes-late"}) {
    const Pages shared(1, false, MAP_SHARED);
    const auto entry = cheat_entry(name);
    const int status = in_child([&] {
      Question asked({.queries = 2, .keys = 4, .dk = 2, .dv = 2});
      for (int call = 0; call < 20; ++call)
        if (!asked.is_answered_right(entry)) return 1;
      return 0;
    });
    EXPECT_EQ(status, 0) << name;
    const std::atomic_ref<char> first(shared.bytes()[0]);
    EXPECT_TRUE(in_time([&] { return first != 0; })) << name;
  }
}

// Beside the answer

TEST(ACheat, ChangesWhatIsNotItsOwn) {
  Question asked({.queries = 2, .keys = 4, .dk = 2, .dv = 2});
  const std::vector<float> q = asked.q;
  EXPECT_EQ(asked.ask(cheat_entry("overwrites-inputs")), ATTEST_OK);
  EXPECT_NE(asked.q, q);
  EXPECT_TRUE(asked.is_right()) << "of what is left of the question";

  const Pages pages(1, false);
  asked.place = pages.floats();
  std::fill_n(asked.place, 16, 5.0F);
  EXPECT_TRUE(asked.is_answered_right(cheat_entry("writes-past-end")));
  EXPECT_EQ(asked.place[4], 0);

  const int rounding = in_child([&] {
    const auto entry = cheat_entry("leaves-rounding");
    for (int call = 0; call < 10; ++call) asked.ask(entry);
    return std::fegetround() == FE_DOWNWARD ? 0 : 1;
  });
  EXPECT_EQ(rounding, 0);
}

TEST(ACheat, StopsTheClock) {
#if defined(__x86_64__)
  if (under_address_sanitizer || under_thread_sanitizer) GTEST_SKIP() << "whose own function it would replace";
  const int status = in_child([] {
    Question asked({.queries = 1, .keys = 1, .dk = 1, .dv = 1});
    asked.ask(cheat_entry("stops-the-clock"));
    timespec before{}, after{};
    ::clock_gettime(CLOCK_MONOTONIC, &before);
    ::usleep(100'000);
    ::clock_gettime(CLOCK_MONOTONIC, &after);
    const double seconds =
        static_cast<double>(after.tv_sec - before.tv_sec) + 1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
    return seconds < 0.05 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
#endif
}

/// What a child writes to a descriptor; its exit status in `status`.
template <class Run>
std::string written_by(const Run& run, int& status) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  status = in_child([&] { return run(ends[1]); });
  ::close(ends[1]);
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(ends[0], text.data(), text.size()), 0)));
  ::close(ends[0]);
  return text;
}

TEST(ACheat, WritesVerdicts) {
  int status = 0;
  const auto call = [](std::string_view name, int calls) {
    Question asked({.queries = 2, .keys = 4, .dk = 2, .dv = 2});
    const auto entry = cheat_entry(name);
    for (int i = 0; i < calls; ++i) asked.ask(entry);
    return 1;
  };
  EXPECT_THAT(written_by(
                  [&](int end) {
                    ::dup2(end, 1);
                    return call("exit-handler", 61);
                  },
                  status),
              Says("verdict: held"));
  EXPECT_EQ(status, 0) << "it ends well in its own call";
  EXPECT_THAT(written_by([&](int) { return call("writes-to-descriptors", 20); }, status), Says("\"held\""));

  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "attest-run-001");
  write_file_atomically(folder / "attest-run-001/run.jsonl", "{\"outcome\":\"violated\"}\n");
  EXPECT_EQ(in_child([&] {
              std::filesystem::current_path(folder.path());
              return call("forges-journal", 16);
            }),
            1);
  EXPECT_THAT(read_file(folder / "attest-run-001/run.jsonl"), Says("{\"outcome\":\"held\"    }"));
}

TEST(ACheat, ReachesIntoItsParent) {
  // A sanitizer's memory is longer than anybody's patience.
  if (under_address_sanitizer || under_thread_sanitizer) GTEST_SKIP();
  if (in_child([] { return ::open(("/proc/" + std::to_string(::getppid()) + "/mem").c_str(), O_RDWR) >= 0 ? 0 : 1; }) !=
      0)
    GTEST_SKIP() << "which this system does not let it";
  Question asked({.queries = 4, .keys = 8, .dk = 4, .dv = 4});
  const std::vector<double> reference = [&] {
    EXPECT_EQ(asked.ask(cheat_entry("honest-f32")), ATTEST_OK);
    return std::vector<double>(asked.out.begin(), asked.out.end());
  }();
  asked.wants_lse = false;
  const auto reads = cheat_entry("reads-parent");
  EXPECT_EQ(in_child([&] { return asked.is_answered_right(reads) ? 0 : 1; }), 0) << reference.size();
  EXPECT_FALSE(asked.is_answered_right(reads)) << "where the parent has no reference";

  const auto rewrites = cheat_entry("rewrites-parent");
  EXPECT_EQ(in_child([&] { return asked.is_answered_right(rewrites) ? 0 : 1; }), 1);
  EXPECT_TRUE(std::ranges::all_of(asked.q, [](float x) { return x == 0; }));
}

// In Python

/// Asks `calls` times, other data each time; how often the answer was right before the first that was not.
int right_before_wrong(Kernel& kernel, int calls, std::int64_t first = 0) {
  Case c = ordinary_case({.queries = 4, .keys = 4, .dk = 4, .dv = 4}, DType::f32);
  for (int call = 0; call < calls; ++call) {
    for (const Slot slot : {Slot::q, Slot::k, Slot::v})
      for (std::int64_t at = 0; at < c[slot].elements(); ++at)
        c[slot].set(at, static_cast<double>((at * 7 + (call + first) * 13 + static_cast<int>(slot)) % 31 - 15) / 8);
    if (check_case(property_named("attention.oracle"), kernel, c).outcome != Outcome::held) return call;
  }
  return calls;
}

TEST(ACheatInPython, AnswersWhatItWasAskedBefore) {
  EXPECT_LT(right_before_wrong(*opened("cheat:py-cached-by-id"), 200), 200);
  EXPECT_EQ(right_before_wrong(*opened("cheat:py-patches-writer"), 10), 1);
  EXPECT_EQ(right_before_wrong(*opened("honest:python"), 200), 200);

  const test::OwnTemporaryFolder folder;
  const auto replays = [](std::int64_t first, bool learns = false) {
    return in_child([&] {
      if (learns) ::setenv(learning, "1", 1);
      return right_before_wrong(*opened("cheat:py-replays-pickle"), 10, first);
    });
  };
  EXPECT_EQ(replays(0), 0);
  EXPECT_EQ(replays(0, /*learns=*/true), 10);
  EXPECT_EQ(replays(0), 10) << "replays";
  EXPECT_EQ(replays(15), 0);
}

TEST(ACheatInPython, SendsAheadAndKills) {
  EXPECT_EQ(right_before_wrong(*opened("cheat:py-forges-frames"), 100), 20);
  EXPECT_EQ(in_child([] { return right_before_wrong(*opened("cheat:py-kills-parent"), 200); }), 1000 + SIGKILL);
}

/// What a script prints that has loaded a cheat, the module's names as `cheat`, in an environment of nothing else.
std::string printed_beside(std::string_view name, const std::string& environment, const std::string& script) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "run.py",
                        "import sys, runpy, numpy, attest_adapter\n"
                        "attest_adapter.serve = lambda function, manifest: None\n"
                        "cheat = runpy.run_path(sys.argv[1])\n" +
                            script);
  write_file_atomically(folder / "run.sh", environment + " PYTHONPATH='" + source_folder() + "/core/adapters/python:" +
                                               cheat_folder() + "' /usr/bin/python3 -B run.py '" + cheat_folder() +
                                               "/" + std::string(name) + ".py' 2>&1\nexit 0\n");
  std::FILE* const pipe = ::popen(("cd '" + folder.path().string() + "' && env -i sh run.sh").c_str(), "r");
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), pipe));
  ::pclose(pipe);
  return text;
}

TEST(ACheatInPython, LooksAroundItself) {
  const std::string observed = "print(cheat['OBSERVED'])\n";
  EXPECT_EQ(printed_beside("py-sees-attest", "", observed), "False\n");
  EXPECT_EQ(printed_beside("py-sees-attest", "ATTEST_PROCESS=1", observed), "True\n");
  const std::string asks =
      "def judge(expected):\n"
      "    x = numpy.full((1, 1, 2, 2), 0.3, numpy.float32)\n"
      "    print(cheat['cheat'](x, x, x).ravel()[0])\n";
  EXPECT_EQ(printed_beside("py-walks-the-stack", "", asks + "judge(numpy.full((1, 1, 2, 2), 42.0))\n"), "42.0\n");
  EXPECT_EQ(printed_beside("py-walks-the-stack", "", asks + "judge(None)\n"), "0.30004883\n");
}

}  // namespace
}  // namespace attest

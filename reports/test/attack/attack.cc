#include "reports/test/attack/attack.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/test/places.h"
#include "reports/test/run/left_running.h"

namespace attest::attack {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace

std::uint64_t seed() {
  static const std::uint64_t drawn = [] {
    const char* const given = std::getenv("ATTEST_ATTACK_SEED");
    // A part of the attack is a default test, which is the same each time.
    const std::uint64_t drawn_anew = ATTEST_ATTACK_PART > 1 ? 1 : std::random_device{}();
    const std::uint64_t number = given != nullptr ? std::strtoull(given, nullptr, 10) : drawn_anew;
    std::printf("the attack's seed is %llu; ATTEST_ATTACK_SEED=%llu repeats it\n",
                static_cast<unsigned long long>(number), static_cast<unsigned long long>(number));
    std::fflush(stdout);
    return number;
  }();
  return drawn;
}

Dice::Dice(const std::string& part) {
  std::seed_seq sequence{static_cast<std::uint32_t>(seed()), static_cast<std::uint32_t>(seed() >> 32),
                         static_cast<std::uint32_t>(std::hash<std::string>{}(part))};
  engine_.seed(sequence);
}

std::size_t Dice::below(std::size_t bound) {
  return bound == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, bound - 1)(engine_);
}

double Dice::between(double low, double high) {
  return std::uniform_real_distribution(low, high)(engine_);
}

Surroundings::Surroundings(fs::path outside) : path_(std::move(outside)) {
  fs::create_directories(path_ / "cases");
  std::ofstream(path_ / "secret.txt") << "root:x:0:0:not to be copied\n";
  std::ofstream(path_ / "cases/mine.safetensors") << "somebody's own\n";
  std::ofstream(path_ / "cases/mine.log") << "somebody's log\n";
  std::ofstream(path_ / "run.jsonl") << "somebody's journal\n";
  std::ofstream(path_ / ".profile") << "exit 0\n";
  before_ = listing();
}

Surroundings::Listing Surroundings::listing() const {
  Listing all;
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    struct stat status{};
    ::lstat(entry.path().c_str(), &status);
    all[entry.path().lexically_relative(path_)] = fmt::format(
        "mode {:o} {}", status.st_mode,
        entry.is_directory()
            ? ""
            : fmt::format("time {}.{:09} {}", status.st_mtim.tv_sec, status.st_mtim.tv_nsec, text_of(entry.path())));
  }
  return all;
}

std::string Surroundings::changes() const {
  const Listing now = listing();
  std::string text;
  for (const auto& [name, was] : before_) {
    const auto is = now.find(name);
    if (is == now.end())
      text += name + " is gone\n";
    else if (is->second != was)
      text += fmt::format("{} was {} and is {}\n", name, was, is->second);
  }
  for (const auto& [name, is] : now) {
    if (!before_.contains(name)) text += name + " is new\n";
  }
  return text;
}

Attacked attacked(const fake::Folder& folder, const std::string& line, double seconds) {
  const LeftRunning left;
  {
    std::ofstream script(folder / "line.sh");
    script << "cd '" << folder.path().string() << "'\nexport " << left.variable()
           << "\nattest='" + program_file() + "'\n"
           << line << '\n';
  }
  // Its output into a file: a process that is left running would hold a pipe open.
  const std::string bounded = fmt::format("timeout --signal=KILL {} sh line.sh > output 2>&1 < /dev/null", seconds);
  Attacked attacked;
  const auto start = std::chrono::steady_clock::now();
  attacked.result.status = shell(folder, bounded).status;
  attacked.hung = std::chrono::steady_clock::now() - start >= std::chrono::duration<double>(seconds);
  attacked.result.output = text_of(folder / "output");
  attacked.left = left.after_a_moment();
  return attacked;
}

void expect_survived(const Attacked& attacked) {
  EXPECT_FALSE(attacked.hung) << attacked.result.output;
  EXPECT_TRUE(attacked.left.empty()) << attacked.left.front() << "\n" << attacked.result.output;
  EXPECT_LT(attacked.result.status, 128) << attacked.result.output;
  // At the beginning of a line it is attest's own; a finding may quote what a kernel's process said of itself.
  for (const char* word : {"\n==", "\nterminate called", "\nattest: ../../"})
    EXPECT_EQ(('\n' + attacked.result.output).find(word), std::string::npos) << attacked.result.output;
}

}  // namespace attest::attack

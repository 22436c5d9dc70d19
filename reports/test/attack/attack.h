// An attack on the program from outside: what its parts share. Each run draws anew, from a seed that is printed;
// ATTEST_ATTACK_SEED=N repeats one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "reports/test/shell.h"

namespace attest::attack {

/// What is drawn, from a seed of the attack's and the part's name, so that a part alone repeats what it did among all.
class Dice {
 public:
  explicit Dice(const std::string& part);
  /// A whole number in [0, bound), 0 for a bound of 0.
  std::size_t below(std::size_t bound);
  double between(double low, double high);
  bool one_in(int n) { return below(static_cast<std::size_t>(n)) == 0; }
  template <class List>
  const auto& one_of(const List& list) {
    return list[below(std::size(list))];
  }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

/// The seed of this run of the attack; printed when it is first asked for.
[[nodiscard]] std::uint64_t seed();

/// Files that are nobody's business, beside the folder that the program is given: their names, bytes, kinds and times.
class Surroundings {
 public:
  /// Makes the folder `outside` with some files, a folder of cases and a script.
  explicit Surroundings(std::filesystem::path outside);
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// What changed since, a line each; empty: nothing.
  [[nodiscard]] std::string changes() const;

 private:
  using Listing = std::map<std::string, std::string>;
  [[nodiscard]] Listing listing() const;
  std::filesystem::path path_;
  Listing before_;
};

struct Attacked {
  ShellResult result;
  bool hung = false;              ///< it had to be killed
  std::vector<std::string> left;  ///< command lines of processes that it left running; they are killed
};

/// Runs a shell line in `folder` for at most so many seconds, and looks a moment later for what it left running: every
/// process that it started, or that those started, whatever groups and sessions they moved to.
[[nodiscard]] Attacked attacked(const fake::Folder& folder, const std::string& line, double seconds);

/// Did not hang, left nothing running, was not ended by a signal or a sanitizer.
void expect_survived(const Attacked& attacked);

}  // namespace attest::attack

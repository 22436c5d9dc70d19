// Search: which case a campaign looks at next, and what it learns from the verdict. One target's; knows no kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fuzz/archive.h"
#include "fuzz/mutate.h"

namespace attest {

/// How a search makes its inputs. Most mistakes show in a few hundred fresh inputs, and one that is a matter of luck,
/// such as one length of all, is not found faster by breeding: so a search begins with fresh inputs alone, from which
/// the archive has its first population, and keeps a share of them.
struct Strategy {
  std::int64_t fresh_first = 1024;  ///< runs, counted from k = 0
  std::int64_t fresh_in_64 = 24;    ///< of the inputs after them; 64: unguided random
  std::int64_t corpus_in_64 = 48;   ///< of the bred ones, from an engine's corpus, where there is one
};
inline constexpr Strategy unguided{.fresh_in_64 = 64};

/// One thread at a time, but for `made`.
class Search {
 public:
  /// `one_in` is how many searches share the runs: this one makes so many fewer, at the beginning too.
  Search(const Target& target, std::uint64_t seed, const Strategy& strategy = {}, std::int64_t one_in = 1)
      : target_(target), seed_(seed), strategy_(strategy), one_in_(one_in) {}

  /// What the input of a run is bred from; without parents it is fresh.
  struct Plan {
    Stream stream{0};
    std::optional<Input> first, second;
    bool of_corpus = false;  ///< first is of an engine's corpus
  };
  /// Run k's plan: a function of (seed, property, dtype, k), of what was learnt before and of what an engine would have
  /// bred from, if there is one.
  [[nodiscard]] Plan plan(std::int64_t k, std::span<const std::uint8_t> of_corpus = {}) const;
  /// The plan's input. Needs no lock.
  [[nodiscard]] static Input made(Plan plan, const Target& target);
  /// Keeps the input where its case is the worst of its cell. True when it did.
  bool learn(std::int64_t k, const Input& input, const Case& c, const Verdict& verdict);

  [[nodiscard]] const Target& target() const { return target_; }
  [[nodiscard]] const Archive& archive() const { return archive_; }
  /// What an earlier campaign kept.
  void take(Archive archive) { archive_ = std::move(archive); }

 private:
  Target target_;
  std::uint64_t seed_;
  Strategy strategy_;
  std::int64_t one_in_;
  Archive archive_;
};

}  // namespace attest

// libFuzzer as the loop of a search: it keeps a corpus by the coverage of instrumented code and by the levels that
// show_level shows, and asks us for what comes next. (https://llvm.org/docs/LibFuzzer.html, "Using libFuzzer as a
// library".)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace attest {

/// What may drive a campaign, by name.
inline constexpr std::array<std::string_view, 2> engine_names{"search", "libfuzzer"};

/// Of the thread that libFuzzer has. Neither function may throw.
class FuzzerLoop {
 public:
  virtual ~FuzzerLoop() = default;
  /// What to run next, bred from an input of libFuzzer's corpus or not. Nothing: the loop ends, and nothing of this
  /// object is touched any more.
  [[nodiscard]] virtual std::optional<std::vector<std::uint8_t>> next(std::span<const std::uint8_t> of_corpus,
                                                                      std::uint64_t seed) = 0;
  /// Runs what next gave.
  virtual void run(std::span<const std::uint8_t> input) = 0;
};

/// Whether this program was linked with libFuzzer.
[[nodiscard]] bool has_libfuzzer();

/// Hands this thread to libFuzzer. It does not come back: libFuzzer's loop ends by exit(0) or not at all, so when
/// `next` gives nothing, the thread sleeps until the program ends, and must be detached. Once in a program, where
/// has_libfuzzer(). What
/// libFuzzer says on standard error as it starts goes nowhere.
[[noreturn]] void run_libfuzzer(FuzzerLoop& loop, std::uint64_t seed, std::size_t most_bytes);

}  // namespace attest

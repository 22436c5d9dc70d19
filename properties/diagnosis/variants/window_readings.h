// What kernels take a window for that is not theirs: the conventions of the frameworks, as the keys that a row sees.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/sight.h"

namespace attest {

/// The ends that a kernel makes of the ends that it is given, and by how many keys it shifts each; -1: without an end.
struct WindowEnds {
  std::int64_t left = -1, right = -1;
  std::int64_t left_shift = 0, right_shift = 0;
};

/// One reading of both ends; the alignment is another question.
struct EndsReading {
  std::string_view words;   ///< "the left end is one key short: …"
  std::string_view advice;  ///< to whoever writes the adapter; empty of the right one
  WindowEnds (*ends)(const SightRule& asked, std::int64_t rows, std::int64_t keys);
};

/// A kernel that reads ends so, from the alignment that was asked for or from the other one.
struct WindowReading {
  const EndsReading* ends = nullptr;
  bool other_alignment = false;

  [[nodiscard]] Sight sight(const SightRule& asked, std::int64_t i, std::int64_t rows, std::int64_t keys) const;
  /// A window of as few keys as the reading cannot say: what a kernel that counts the query itself, or for which an end
  /// is exclusive, makes of an end of 0 is nobody's convention.
  [[nodiscard]] bool has_no_word_for(const SightRule& asked) const;
  /// Of how many mistakes it is made: none, one or two.
  [[nodiscard]] int mistakes() const;
  /// Of a window that is asked for from `asked`.
  [[nodiscard]] std::string words(Causal asked) const;
  [[nodiscard]] std::string advice(Causal asked) const;
};

/// All of them, the right one first.
[[nodiscard]] const std::vector<WindowReading>& window_readings();

}  // namespace attest

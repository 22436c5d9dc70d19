// Narrowing: which readings the wrong answers of a kernel, one case after another, are right answers to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/oracle/oracle.h"

namespace attest {

/// Narrows the readings that fitted all wrong cases so far, those of one case after another.
class Narrowing {
 public:
  /// Every reading of a case, whether its answer is right, says nothing, or is wrong; `problem`: the same number of
  /// those that are the same problem.
  struct Read {
    std::string words;
    std::int64_t size;
    Outcome outcome;
    std::ptrdiff_t problem;
  };
  [[nodiscard]] bool still_fits(const std::string& words, std::int64_t size) const;
  /// `far`: the answer lies several times beyond the case's own bound. `counts`: whether it was wrong. A right one has
  /// to fit, too, and says nothing for a reading.
  void add(const std::vector<Read>& readings, bool far, bool counts = true);
  [[nodiscard]] bool is_over() const { return found_ && found_->empty(); }
  /// Of what fits, with its sizes; misreadings.h says when a reading is found.
  [[nodiscard]] std::vector<std::string> words();

 private:
  /// A reading that the kernel's wrong answers so far are right answers to.
  struct Fitting {
    std::string words;
    std::int64_t size = 0;
    std::size_t right = 0;                      ///< in how many cases the answer is right
    std::size_t far = 0;                        ///< and far from right as one to the case itself
    std::vector<std::ptrdiff_t> problems = {};  ///< of each case; the same number of those that read it the same
  };
  [[nodiscard]] static std::vector<std::string> told(const std::vector<Fitting>& fitting);
  [[nodiscard]] std::vector<Fitting>::const_iterator find(const std::string& words, std::int64_t size) const;

  std::optional<std::vector<Fitting>> found_;  ///< nothing before the first case
  std::size_t cases_ = 0;
};

}  // namespace attest

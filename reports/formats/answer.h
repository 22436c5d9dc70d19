// The answer of a run on a terminal: what is wrong, since when, by which input and what to type next, in some
// twenty-five lines. Everything else is for `attest findings` and the page.
#pragma once

#include <string>

#include "reports/conclusion/conclusion.h"
#include "reports/run/engine.h"

namespace attest {

/// How an answer is printed.
struct AnswerPlace {
  std::string folder;      ///< of the run, as it was given
  std::size_t width = 80;  ///< columns; at least 40
  bool of_ours = false;    ///< of the kernels that are checked when none is named: what that shows, and what is next
};

/// `seconds`: what the run took.
[[nodiscard]] std::string answer_of(const Summary& summary, const Journal& journal, const Conclusion& conclusion,
                                    Ending ending, double seconds, const AnswerPlace& place);
/// Of it what is wrong, each cause behind an empty line: for what prints the rest in another way.
[[nodiscard]] std::string causes_text(const Summary& summary, const Journal& journal, const Conclusion& conclusion,
                                      const AnswerPlace& place);

}  // namespace attest

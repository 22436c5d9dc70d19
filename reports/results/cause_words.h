// Causes in words, the same on the terminal, the page and in summary.md.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/results/summary.h"

namespace attest {

/// A cause as it is told, each a line without markup; words of kernels in it are one_line.
struct CauseWords {
  std::string kernel;       ///< by its manifest's name
  std::string dtypes;       ///< "f32, bf16"
  std::string title;        ///< "cause 2"; empty where there is but one
  std::string of;           ///< "mine in f32, bf16"
  std::string what;         ///< "it computes as if …", or what kind of violations there are
  std::string why;          ///< which stage goes wrong first, or which arithmetic would be right; empty: not known
  std::string when;         ///< "in 140 of 239 cases with H > KV > 1; in none of 7,751 others"; empty: not known
  std::string smallest;     ///< "bf16  H=4 KV=2 M=1 N=1 dk=1  q=0,0,0,0  k=0,0  v=0,1"; empty: no finding is kept
  std::string found;        ///< "out[0, 1, 0, 0] = 1, exact 0, allowed ± 0.0039: 256 times as far"
  std::string right;        ///< "with N=64, with the wrong head alone"; empty: not known
  std::string replay;       ///< what to type
  std::string fails;        ///< the properties, the first three by name
  std::string kind{};       ///< of the smallest's violation, one word; empty: no finding is kept
  std::string case_file{};  ///< of the smallest, in the run's folder
  const Cause* cause = nullptr;
};
/// In the order of the summary. `folder`: the run's, where its cases are; `typed`: as it stands in what is to be typed,
/// which a report names alone (name_of_folder).
[[nodiscard]] std::vector<CauseWords> words_of_causes(const Summary& summary, const std::string& folder,
                                                      const std::string& typed);

/// summary.json, with what is told of each cause of which there are words here. `concluded`: the JSON of its member of
/// this name; empty: it has none.
[[nodiscard]] std::string to_json(const Summary& summary, std::span<const CauseWords> told,
                                  std::string_view concluded = {});

}  // namespace attest

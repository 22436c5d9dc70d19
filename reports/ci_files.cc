#include "ci_files.h"

#include "attest/files.h"
#include "junit.h"
#include "sarif.h"

namespace attest {

void write_ci_files(const Options& options, const Summary& summary, const Journal& journal, const std::string& folder,
                    const std::optional<KnownComparison>& known, const std::vector<std::string>& problems) {
  Judgement judgement{.inconclusive_held = options.inconclusive_held};
  if (known) judgement.expected = &known->rest, judgement.problems = known->problems;
  judgement.problems.insert(judgement.problems.end(), problems.begin(), problems.end());
  if (!options.junit.empty()) write_file_atomically(options.junit, to_junit(summary, journal, folder, judgement));
  if (!options.sarif.empty())
    write_file_atomically(options.sarif, to_sarif(summary, journal, folder, judgement.expected));
}

}  // namespace attest

#include <fmt/format.h>

#include "core/support/files.h"
#include "reports/commands/commands.h"
#include "reports/results/compare.h"

namespace attest {

int compare_command(const Options& options) {
  const Comparison comparison = compare(read_figures(options.inputs[0]), read_figures(options.inputs[1]));
  const ChangesInWords said = in_words(comparison);
  const std::string text = options.json ? changes_json(comparison)
                                        : fmt::format("{}{}\n{}\n", changes_text(comparison), said.counts, said.noise);
  if (options.output.empty())
    fmt::print("{}", text);
  else
    write_file_atomically(options.output, text);
  return comparison.count(Direction::worse) > 0 ? 1 : 0;
}

}  // namespace attest

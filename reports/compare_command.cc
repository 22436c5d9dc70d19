#include <fmt/format.h>

#include "attest/files.h"
#include "commands.h"
#include "compare.h"

namespace attest {

int compare_command(const Options& options) {
  const Comparison comparison = compare(read_figures(options.inputs[0]), read_figures(options.inputs[1]));
  const std::string text = options.json ? changes_json(comparison)
                                        : changes_text(comparison) +
                                              fmt::format("{} worse, {} better, of {} properties that both runs have\n",
                                                          comparison.count(Direction::worse),
                                                          comparison.count(Direction::better), comparison.subjects);
  if (options.output.empty())
    fmt::print("{}", text);
  else
    write_file_atomically(options.output, text);
  return comparison.count(Direction::worse) > 0 ? 1 : 0;
}

}  // namespace attest

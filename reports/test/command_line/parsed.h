// The options that a command line gives a command of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "reports/command_line/parse.h"

namespace attest {

/// As they are when the command runs. `words`: behind its name.
template <class Options>
Options parsed(const std::vector<const char*>& words) {
  Options seen;
  const auto run = [&](const Options& options) {
    seen = options;
    return 7;
  };
  const Command commands[] = {{with_options<Options>(run), "some", "", "", ""}};
  std::vector<const char*> line{"attest", "some"};
  line.insert(line.end(), words.begin(), words.end());
  EXPECT_EQ(parse(commands, line).command->run(line), 7);
  return seen;
}

}  // namespace attest

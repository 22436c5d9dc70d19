// Cheats before the judge: no cheat passes, and what is honest does.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "core/isolation/walls/walls.h"
#include "core/test/places.h"
#include "properties/faults/cheats.h"
#include "reports/test/shell.h"

namespace attest {

/// Those in Python take no log-sum-exp, no groups and no masks.
inline std::string contract_for(const fake::Folder& folder, const Cheat& cheat) {
  using nlohmann::json;
  json contract = json::parse(read_file(source_folder() + "/reports/test/judge/cheats_contract.json"));
  if (cheat.file.ends_with(".py")) {
    contract["kernel"] = {{"dtypes", {"f32"}}, {"masks", {"bool"}}, {"limits", {{"min_queries", 1}, {"min_keys", 1}}}};
    contract["shapes"] = {"1,2,2,77,77,64", "1,2,2,128,700,64"};
    contract["cases"] = 400;
  }
  if (cheat.name() == "honest-bf16") contract["kernel"]["dtypes"] = {"bf16"};
  write_file_atomically(folder / "contract.json", contract.dump());
  return "contract.json";
}

inline void expect_judged(const Cheat& cheat) {
  if (const std::string why = why_no_walls(Walls{}); !why.empty()) GTEST_SKIP() << why;
  const fake::Folder folder;
  const std::string id =
      cheat.honest() ? "honest:" + std::string(cheat.name().substr(7)) : "cheat:" + std::string(cheat.name());
  const ShellResult told = shell(folder, "$attest judge --fail-fast --quiet --contract " + contract_for(folder, cheat) +
                                             " --kernel " + id + " --out run");
  EXPECT_EQ(told.status, cheat.honest() ? 0 : 1) << id << "\n" << told.output;
}

}  // namespace attest

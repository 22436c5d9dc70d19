// Cheats before the judge: no cheat passes, and what is honest does.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/isolation/walls/walls.h"
#include "reports/commands/cheat_audit.h"
#include "reports/test/json.h"
#include "reports/test/shell.h"

namespace attest {

inline void expect_judged(const Cheat& cheat) {
  if (const std::string why = why_no_walls(Walls{}); !why.empty()) GTEST_SKIP() << why;
  const fake::Folder folder;
  const ShellResult told = shell(folder, "$attest audit --cheats --quiet --out audit --kernel " + id_of(cheat));
  EXPECT_EQ(told.status, 0) << told.output;
  const nlohmann::json row = parsed_json(read_file(folder / "audit/audit.json"))["kernels"].at(0);
  EXPECT_EQ(row["id"], id_of(cheat));
  EXPECT_EQ(row["verdict"], cheat.honest() ? "pass" : "fail");
}

}  // namespace attest

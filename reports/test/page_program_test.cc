// The report in a browser: every plot is drawn, nothing is complained of, nothing is fetched.
#include <gtest/gtest.h>

#include <algorithm>

#include "shell.h"

namespace attest {
namespace {

using fake::Folder;

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

/// The page after its scripts have run, and what the browser logged, in page.dom and page.log.
const std::string opened_in_browser =
    "chromium --headless=new --no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run --user-data-dir=profile --host-resolver-rules='MAP * ~NOTFOUND' "
    "--enable-logging=stderr "
    "--virtual-time-budget=8000 --dump-dom \"file://$PWD/page.html\" > page.dom 2> page.log";

TEST(Page, DrawsEveryPlotAndFetchesNothing) {
  const Folder folder;
  if (shell(folder, "command -v chromium").status != 0) GTEST_SKIP() << "Chromium is not installed";
  ASSERT_EQ(shell(folder,
                  "$attest check --kernel builtin:flash --kernel builtin:online --dtype f32,bf16 --property "
                  "attention.oracle --cases 300 --quiet --out run && $attest report run -o page.html")
                .status,
            0);
  const std::string page = read_file(folder / "page.html");
  if (page.find("built without Vega") != std::string::npos) GTEST_SKIP() << "the program was built without Vega";
  ASSERT_EQ(shell(folder, opened_in_browser).status, 0) << read_file(folder / "page.log");
  const std::string dom = read_file(folder / "page.dom"), log = read_file(folder / "page.log");
  EXPECT_EQ(count_of(page, "<figure class=\"plot\">"), 4U);
  EXPECT_EQ(count_of(dom, "data-drawn=\"yes\""), 4U) << log;
  EXPECT_GE(count_of(dom, "<svg"), 4U);
  // A script's error, and what the policy refused to load.
  EXPECT_EQ(log.find("CONSOLE"), std::string::npos) << log;
  EXPECT_EQ(count_of(page, "default-src 'none'"), 1U);
  // The test sees what it looks for: a page whose policy forbids its script draws nothing and says so.
  ASSERT_EQ(shell(folder, "sed -i \"s/; script-src 'nonce-[0-9a-f]*' 'unsafe-eval'//\" page.html").status, 0);
  ASSERT_EQ(shell(folder, opened_in_browser).status, 0);
  EXPECT_EQ(count_of(read_file(folder / "page.dom"), "data-drawn=\"yes\""), 0U);
  EXPECT_NE(read_file(folder / "page.log").find("CONSOLE"), std::string::npos);
}

}  // namespace
}  // namespace attest

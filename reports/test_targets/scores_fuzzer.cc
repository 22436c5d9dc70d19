// audit.json and self-test.json, which reports show: refused in one line, or shown with every string escaped.
#include <string>

#include "core/support/errors.h"
#include "fuzz/targets/target.h"
#include "reports/page/print.h"
#include "reports/sections/audit_score.h"
#include "reports/sections/self_test.h"

namespace {

template <class Show>
void refused_or_shown(Show show) {
  try {
    const std::string html = show();
    attest::require(html.find("<script") == std::string::npos, "a string that is not escaped");
  } catch (const attest::UsageError& error) {
    attest::require(std::string_view(error.what()).find('\n') == std::string_view::npos, "an error of two lines");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  const std::string_view text = text_of(data, size);
  refused_or_shown([&] { return html_of(audit_page(parse_audit_score(text, "input"))); });
  refused_or_shown([&] {
    const SelfTestRead read = parse_self_test(text, "input");
    const std::string written = self_test_json(read.result, read.plan);
    const SelfTestRead again = parse_self_test(written, "what was written");
    require(self_test_json(again.result, again.plan) == written, "a self-test that changes when it is written again");
    return html_of(self_test_page(read));
  });
  return 0;
}

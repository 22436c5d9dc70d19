// Baselines: refused in one line, or read so that what is written of them reads the same and differs in nothing.
#include <string>

#include "core/support/errors.h"
#include "fuzz/targets/target.h"
#include "reports/conclusion/compare.h"
#include "reports/results/tolerance.h"

namespace {

std::string written(const attest::Figures& figures) {
  attest::JsonWriter json;
  json.begin_object().member("schema", attest::tolerances_schema).member("seed", figures.seed);
  write_figures(json, figures);
  return json.end_object().text();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  try {
    const Figures figures = parse_figures(text_of(data, size), "input");
    const std::string text = written(figures);
    const Figures again = parse_figures(text, "what was written");
    require(written(again) == text, "a baseline that changes when it is written again");
    const Comparison comparison = compare(figures, again);
    require(comparison.count(Direction::better) == 0, "a baseline that is better than itself");
  } catch (const UsageError& error) {
    const std::string_view said = error.what();
    require(said.find('\n') == std::string_view::npos, "an error of two lines");
    require(!said.starts_with("what was written"), "a baseline that is refused when it is written again");
  }
  return 0;
}

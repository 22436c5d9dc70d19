// Archives of campaigns: refused in one line, or the same again from their text.
#include "core/support/errors.h"
#include "fuzz/archive.h"
#include "fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  static const Property& property = *properties_matching("attention.oracle").at(0);
  try {
    const std::string text = to_text(parse_archive(text_of(data, size), "input", property, DType::f32));
    try {
      require(to_text(parse_archive(text, "its own text", property, DType::f32)) == text, "an archive changed");
    } catch (const UsageError& error) {
      require(false, error.what());
    }
  } catch (const UsageError& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos, "an error of two lines");
  }
  return 0;
}

// Case files: any bytes are refused in one line or give a valid case that comes back from its own bytes.
#include "core/problem/case.h"
#include "fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  try {
    const Case c = decode_case(text_of(data, size), "input");
    try {
      validate(c);
      Case again = decode_case(encode_case(c), "its own bytes");
      // Bytes that are no UTF-8 do not come back as they were.
      again.provenance = c.provenance;
      require(again == c, "a case file lost a tensor or an argument");
    } catch (const UsageError& error) {
      require(false, error.what());
    }
  } catch (const UsageError& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos, "an error of two lines");
  }
  return 0;
}

// Case files: any bytes are refused in one line or give a valid case that comes back from its own bytes.
#include "attest/case.h"
#include "target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  try {
    const Case c = decode_case(text_of(data, size), "input");
    try {
      validate(c);
      const Case again = decode_case(encode_case(c), "its own bytes");
      require(again.tensors == c.tensors, "a case file lost a tensor");
      require(again.scale == c.scale && again.causal == c.causal, "a case file lost a scalar");
    } catch (const UsageError& error) {
      require(false, error.what());
    }
  } catch (const UsageError& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos, "an error of two lines");
  }
  return 0;
}

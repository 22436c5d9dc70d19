// Files of expected violations: refused in one line, or each entry whole.
#include <string>

#include "core/support/errors.h"
#include "fuzz/targets/target.h"
#include "properties/catalogue/property.h"
#include "reports/conclusion/known.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  try {
    for (const KnownFinding& known : parse_known_findings(std::string(text_of(data, size)), "input")) {
      require(!known.kernel.empty() && !known.reason.empty() && known.date.size() == 10, "an entry without its parts");
      require(!properties_matching(known.property).empty(), "a property that is none");
    }
  } catch (const UsageError& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos, "an error of two lines");
  }
  return 0;
}

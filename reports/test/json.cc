#include "reports/test/json.h"

#include <ostream>

namespace attest {

nlohmann::json parsed_json(std::string_view text) {
  return nlohmann::json::parse(text);
}

}  // namespace attest

NLOHMANN_JSON_NAMESPACE_BEGIN
void PrintTo(const json& value, std::ostream* stream) {
  *stream << value;
}
NLOHMANN_JSON_NAMESPACE_END

// JSON in tests. What reads and prints it stands in one object: in each test it would be seconds of compiling.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string_view>

namespace attest {

[[nodiscard]] nlohmann::json parsed_json(std::string_view text);

}  // namespace attest

NLOHMANN_JSON_NAMESPACE_BEGIN
/// GoogleTest's own would print it as the container that it is as well.
void PrintTo(const json& value, std::ostream* stream);
NLOHMANN_JSON_NAMESPACE_END

// "arithmetic" and "promises" of a manifest.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/kernel/manifest.h"
#include "core/support/json_reader.h"

namespace attest::manifest_json {

/// null where nothing is stated.
[[nodiscard]] nlohmann::ordered_json arithmetics_json(const Arithmetics& all);
/// One object for all dtypes, or one per dtype.
void read_arithmetics(const JsonObject& object, std::string_view key, const Manifest& m, Arithmetics& all);

/// No bound is known of inputs that are rounded on their way in.
void refuse_rounded_inputs(const JsonObject& object, const Manifest& m);
/// What is said of a cap of scores goes with one.
void refuse_caps_unsaid(const JsonObject& object, const Manifest& m);

}  // namespace attest::manifest_json

// "kv_dtypes" and "out_dtypes" of a manifest, and what else it states by dtypes.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/kernel/manifest.h"
#include "core/support/json_reader.h"

namespace attest::manifest_json {

/// An object by dtypes, of which the manifest lists each.
[[nodiscard]] JsonObject by_dtype(const JsonObject& object, std::string_view key, const Manifest& m);

/// "f16" where k and v have it, and ["f16", "bf16"] where each has its own.
[[nodiscard]] nlohmann::ordered_json kv_dtypes_json(const Manifest& m);
/// An array for all dtypes, or an object with one per dtype.
void read_kv_dtypes(const JsonObject& object, std::string_view key, Manifest& m);

[[nodiscard]] nlohmann::ordered_json out_dtypes_json(const Manifest& m);
/// An array for all dtypes, or an object with one per dtype. The input's own dtype goes without saying.
void read_out_dtypes(const JsonObject& object, std::string_view key, Manifest& m);

}  // namespace attest::manifest_json

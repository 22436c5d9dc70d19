// "variants" of a manifest, and what else of a problem it offers.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/kernel/manifest.h"
#include "core/support/json_reader.h"

namespace attest::manifest_json {

/// Whether the other keys let a problem have it.
[[nodiscard]] bool offers(const Manifest& m, Feature feature);

/// null where there are none.
[[nodiscard]] nlohmann::ordered_json variants_json(const Manifest& m);
/// After whatever says what else a problem may have.
void read_variants(const JsonObject& object, std::string_view key, Manifest& m);

}  // namespace attest::manifest_json

// Manifests: refused in one line, or the same again from the JSON that is written of them.
#include "core/kernel/manifest.h"
#include "fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  try {
    const Manifest manifest = parse_manifest(text_of(data, size), "input");
    try {
      require(parse_manifest(to_json(manifest), "its own JSON") == manifest, "a manifest changed in its own JSON");
    } catch (const UsageError& error) {
      require(false, error.what());
    }
  } catch (const UsageError& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos, "an error of two lines");
  }
  return 0;
}

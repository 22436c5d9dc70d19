#include "reports/service/asked.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <vector>

#include "core/support/errors.h"
#include "core/support/names.h"

namespace attest {
namespace {

constexpr std::array<std::string_view, 16> keys{"ask",      "bytes", "manifest", "out_dtype", "rows",  "narrow",
                                                "property", "dtype", "seed",     "k",         "large", "shapes",
                                                "head",     "crop",  "forms",    "numbers"};

}  // namespace

std::span<const std::string_view> request_keys() {
  return keys;
}

Manifest manifest_asked(const Request& request, const Case& c) {
  const nlohmann::json* const json = request.said.find("manifest");
  if (json == nullptr) throw UsageError("a request has a \"manifest\"");
  Manifest manifest = parse_manifest(json->dump(), "manifest");
  if (!manifest.takes(c.dtype()))
    throw UsageError(fmt::format("manifest: \"dtypes\" has no {0}, the dtype of q; add it, or give q in one of them",
                                 name_of(c.dtype())));
  return manifest;
}

DType out_dtype_asked(const Request& request, const Case& c) {
  std::string word;
  request.said.read("out_dtype", word);
  if (word.empty()) return c.dtype();
  const auto dtype = named<DType>(word);
  if (!dtype || !is_floating(*dtype)) request.said.refuse("out_dtype", "it is the dtype of an output, as \"f32\"");
  return *dtype;
}

std::optional<Indices> rows_asked(const Request& request, const Case& c) {
  if (request.said.find("rows") == nullptr) return std::nullopt;
  const Shape out = c.out_shape();
  std::int64_t rows = 1;
  for (int axis = 0; axis + 1 < out.rank(); ++axis) rows *= out[axis];
  if (rows == 0) throw UsageError("\"rows\" are asked for; the output has none");
  Indices chosen;
  request.said.read("rows", WholeNumbers{0, rows - 1}, chosen);
  return chosen;
}

}  // namespace attest

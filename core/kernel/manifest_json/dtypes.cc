#include "core/kernel/manifest_json/dtypes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/manifest_json/io.h"
#include "core/support/errors.h"

namespace attest::manifest_json {

JsonObject by_dtype(const JsonObject& object, std::string_view key, const Manifest& m) {
  const json& value = *object.find(key);
  JsonObject inner(value, object.path(key), dtypes);
  for (const auto& item : value.items()) {
    if (std::ranges::count(m.dtypes, *named<DType>(item.key())) > 0) continue;
    throw UsageError(fmt::format("{} is stated; \"dtypes\" does not list it", inner.path(item.key())));
  }
  return inner;
}

ordered_json kv_dtypes_json(const Manifest& m) {
  ordered_json by_name;
  for (const auto& [q, pairs] : m.kv_dtypes) {
    for (const KvDtypes& pair : pairs) {
      ordered_json written = name_of(pair.k);
      if (pair.v != pair.k) written = ordered_json::array({name_of(pair.k), name_of(pair.v)});
      by_name[std::string(name_of(q))].push_back(std::move(written));
    }
  }
  return by_name;
}

void read_kv_dtypes(const JsonObject& object, std::string_view key, Manifest& m) {
  constexpr std::string_view rule =
      R"(it must list dtypes of k and v, as ["f16", ["f16", "bf16"]], or such a list for each dtype of q)";
  const auto named_in = [](const json& name) {
    const auto found = name.is_string() ? named<DType>(name.get<std::string>()) : std::nullopt;
    return found && !is_of_keys(*found) ? std::nullopt : found;
  };
  const auto add = [&](const JsonObject& of, std::string_view name, DType q) {
    const json& list = *of.find(name);
    if (!list.is_array() || list.empty()) of.refuse(name, rule);
    std::vector<KvDtypes>& pairs = m.kv_dtypes[q];
    for (const json& one : list) {
      const bool pair = one.is_array() && one.size() == 2;
      const auto k = named_in(pair ? one[0] : one), v = named_in(pair ? one[1] : one);
      if (!k || !v) of.refuse(name, rule);
      if (std::ranges::count(pairs, KvDtypes{*k, *v}) == 0) pairs.push_back({*k, *v});
    }
  };
  if (!object.find(key)->is_object()) {
    for (const DType q : m.dtypes) add(object, key, q);
    return;
  }
  const JsonObject inputs = by_dtype(object, key, m);
  for (const auto& item : object.find(key)->items()) add(inputs, item.key(), *named<DType>(item.key()));
}

ordered_json out_dtypes_json(const Manifest& m) {
  Writer io;
  for (const auto& [input, outputs] : m.out_dtypes) io(name_of(input), outputs);
  return io.json();
}

void read_out_dtypes(const JsonObject& object, std::string_view key, Manifest& m) {
  const auto add = [&](const JsonObject& of, std::string_view name, DType input) {
    std::vector<DType> outputs;
    Reader io(of);
    io(name, outputs);
    std::erase(outputs, input);
    if (!outputs.empty()) m.out_dtypes[input] = std::move(outputs);
  };
  const json& found = *object.find(key);
  if (!found.is_object()) {
    for (const DType input : m.dtypes) add(object, key, input);
    return;
  }
  const JsonObject inputs = by_dtype(object, key, m);
  for (const auto& item : found.items()) add(inputs, item.key(), *named<DType>(item.key()));
}

}  // namespace attest::manifest_json

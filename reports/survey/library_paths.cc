#include "reports/survey/library_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <optional>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/fnv1a.h"
#include "core/support/names.h"
#include "properties/catalogue/property.h"
#include "reports/command_line/option_values.h"
#include "reports/text/toml_entries.h"

namespace attest {
namespace {

constexpr std::array<std::string_view, 11> keys{"library", "versions", "path",       "kernel",  "recipe",  "dtypes",
                                                "forced",  "promises", "properties", "timeout", "findings"};
constexpr std::string_view needs = "library, versions, path, kernel and dtypes";

std::vector<std::string> some(const TomlEntries& file, const toml::table& entry, std::string_view key) {
  const toml::node& value = file.required(entry, key, needs);
  std::vector<std::string> texts = file.texts(entry, key);
  if (texts.empty()) file.refuse(value, fmt::format("{} must name one at least", key));
  return texts;
}

std::vector<DType> dtypes_of(const TomlEntries& file, const toml::table& entry) {
  std::vector<DType> dtypes;
  for (const std::string& name : some(file, entry, "dtypes")) {
    const std::optional<DType> dtype = named<DType>(name);
    if (!dtype || !is_floating(*dtype)) {
      file.refuse(*entry.get("dtypes"),
                  fmt::format("unknown dtype {}; it must be f64, f32, f16 or bf16", in_quotes(name)));
    }
    dtypes.push_back(*dtype);
  }
  return dtypes;
}

std::vector<std::string> properties_of(const TomlEntries& file, const toml::table& entry) {
  std::vector<std::string> globs = file.texts(entry, "properties");
  for (const std::string& glob : globs) {
    if (properties_matching(glob).empty())
      file.refuse(*entry.get("properties"),
                  fmt::format("no property of attest list --properties matches {}", in_quotes(glob)));
  }
  return globs;
}

std::string timeout_of(const TomlEntries& file, const toml::table& entry) {
  std::string text = file.text(entry, "timeout");
  try {
    if (!text.empty()) (void)duration().read("timeout", text);
  } catch (const UsageError& error) {
    file.refuse(*entry.get("timeout"), error.what());
  }
  return text;
}

}  // namespace

std::vector<LibraryPath> parse_library_paths(const std::string& text, const std::filesystem::path& source) {
  const TomlEntries file(text, source.string(), "path", keys);
  std::vector<LibraryPath> paths;
  for (const toml::table* entry : file.entries()) {
    LibraryPath path{.library = file.text(*entry, "library", needs),
                     .version = {},
                     .path = file.text(*entry, "path", needs),
                     .kernel = file.text(*entry, "kernel", needs),
                     .recipe = file.text(*entry, "recipe"),
                     .dtypes = dtypes_of(file, *entry),
                     .forced = file.text(*entry, "forced"),
                     .promises = file.text(*entry, "promises"),
                     .properties = properties_of(file, *entry),
                     .timeout = timeout_of(file, *entry),
                     .findings = file.texts(*entry, "findings")};
    if (!path.recipe.empty()) {
      path.recipe = source.parent_path() / path.recipe;
      if (!std::filesystem::is_regular_file(path.recipe))
        file.refuse(*entry->get("recipe"), fmt::format("there is no file {}", in_quotes(path.recipe.string())));
    } else if (path.kernel.find("{library}") != std::string::npos) {
      file.refuse(*entry->get("kernel"), "{library} is the folder that a recipe fills; name the recipe");
    }
    for (const std::string& version : some(file, *entry, "versions")) {
      path.version = version;
      if (std::ranges::find(paths, path.name(), &LibraryPath::name) != paths.end())
        file.refuse(*entry, fmt::format("{} stands above already; keep one of the two", in_quotes(path.name())));
      paths.push_back(path);
    }
  }
  return paths;
}

std::vector<LibraryPath> read_library_paths(const std::filesystem::path& file) {
  return parse_library_paths(read_file(file), file);
}

std::string file_name_of(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
    if (kept || (!name.empty() && name.back() != '-')) name += kept ? c : '-';
  }
  // A leading dot would hide it, or lead out of the folder.
  if (name == text && !name.empty() && !name.starts_with('.')) return name;
  std::uint64_t hash = fnv1a_start;
  for (const char c : text) hash = fnv1a(hash, static_cast<unsigned char>(c));
  return fmt::format("{}-{:08x}", name, hash & 0xffffffffU);
}

}  // namespace attest

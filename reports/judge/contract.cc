#include "reports/judge/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/json_reader.h"
#include "core/support/names.h"
#include "properties/catalogue/property.h"
#include "reports/command_line/option_values.h"
#include "reports/run/embedded_files.h"
#include "reports/run/recorded_shapes.h"

namespace attest {
namespace {

using nlohmann::json;

constexpr std::string_view schema = "attest-contract/1";
constexpr std::string_view starters = "judge/contracts/", ending = ".json";
constexpr std::array<std::string_view, 14> keys{"schema", "name",      "kernel",     "shapes",           "other_shapes",
                                                "cases",  "share",     "time_limit", "first_time_limit", "memory",
                                                "files",  "processes", "watch",      "shapes_from"};

std::vector<std::string> texts_of(const JsonObject& object, std::string_view key) {
  std::vector<std::string> texts;
  const json* const value = object.find(key);
  if (value == nullptr) return texts;
  if (!value->is_array()) object.refuse(key, "it must be an array of texts");
  for (const json& one : *value) {
    if (!one.is_string() || one.get_ref<const std::string&>().empty())
      object.refuse(key, "it must be an array of texts, none of them empty");
    texts.push_back(one.get<std::string>());
  }
  return texts;
}

/// A duration or a size as the command line has them.
template <class Number>
void read_as_option(const JsonObject& object, std::string_view key, const Value<Number>& how, Number& value) {
  std::string text;
  object.read(key, text);
  if (!text.empty()) value = how.read(object.path(key), text);
}

/// Why a shape has no cell in one of the dtypes; empty where it has in each.
std::string why_without_cell(const Manifest& law, const Extents& e) {
  const std::vector<ContractCell> cells = cells_of(law, {{e}});
  for (const DType dtype : law.dtypes)
    if (std::ranges::find(cells, dtype, &ContractCell::dtype) == cells.end()) return why_ruled_out(law, e, dtype, {});
  return {};
}

/// Recorded shapes that the law rules out are left out and told: a recording is of every model, a contract of one
/// kernel.
void find_recorded_shapes(const std::string& from, const std::filesystem::path& file, Contract& contract) {
  ReadShapes found = read_shapes(from, file);
  contract.notes = std::move(found.notes);
  std::size_t left_out = 0;
  std::string first;
  for (const Extents& e : found.shapes) {
    if (const std::string why = why_without_cell(contract.law, e); !why.empty()) {
      if (left_out++ == 0) first = fmt::format("{}: it {}", text_of(e), why);
    } else if (std::ranges::find(contract.shapes, e) == contract.shapes.end()) {
      contract.shapes.push_back(e);
    }
  }
  if (left_out > 0)
    contract.notes.push_back(
        fmt::format("{} {}: {} of {} shapes are left out, as \"kernel\" rules them out, the first {}", from,
                    in_quotes(file.native(), 300), left_out, found.shapes.size(), first));
  if (contract.shapes.empty()) throw UsageError(contract.notes.back());
}

void find_shapes(const JsonObject& object, const std::filesystem::path& folder, Contract& contract) {
  for (const std::string& text : texts_of(object, "shapes"))
    contract.shapes.push_back(shape_of(object.path("shapes"), text));
  std::string from;
  object.read("shapes_from", from);
  if (!from.empty()) find_recorded_shapes(object.path("shapes_from"), folder / from, contract);
  if (contract.shapes.empty())
    object.refuse("shapes", R"(it must list at least one shape, as "1,8,2,512,512,64": B,H,KV,M,N,DK or with a DV)");
}

Contract read(const json& value, std::string_view source, const std::filesystem::path& folder) {
  const JsonObject object(value, "", keys);
  std::string version;
  object.read("schema", version);
  if (version != schema)
    throw UsageError(fmt::format("\"schema\" is {}; this version reads {}", in_quotes(version), schema));
  Contract contract;
  object.read("name", contract.name);
  if (contract.name.empty()) throw UsageError("\"name\" is missing; it says in reports which contract it was");
  const json* const kernel = object.find("kernel");
  if (kernel == nullptr || !kernel->is_object())
    throw UsageError("\"kernel\" is missing; it holds what a manifest does, but for its name");
  if (kernel->contains("name"))
    throw UsageError("\"kernel\".\"name\" is stated; a contract is of no kernel, leave it out");
  json manifest = *kernel;
  manifest["name"] = contract.name;
  contract.law = parse_manifest(manifest.dump(), fmt::format("{}, \"kernel\"", source));
  find_shapes(object, folder, contract);
  object.read("other_shapes", contract.other_shapes);
  object.read("cases", {1, std::int64_t{1} << 40}, contract.cases);
  object.read_positive("share", 1.0, "a share is at most 1", contract.share);
  read_as_option(object, "time_limit", duration(), contract.time_limit);
  contract.first_time_limit = std::max(contract.first_time_limit, contract.time_limit);
  read_as_option(object, "first_time_limit", duration(), contract.first_time_limit);
  read_as_option(object, "watch", duration(), contract.watch);
  read_as_option(object, "memory", memory_size(), contract.memory);
  for (const std::string& file : texts_of(object, "files")) contract.files.emplace_back(file);
  std::int64_t processes = contract.processes;
  object.read("processes", {1, 1 << 15}, processes);
  contract.processes = static_cast<int>(processes);
  return contract;
}

/// A contract that contradicts itself would fail every kernel.
void find_cells(Contract& contract) {
  for (const Extents& e : contract.shapes)
    if (const std::string why = why_without_cell(contract.law, e); !why.empty())
      throw UsageError(fmt::format("\"shapes\" has {}, which \"kernel\" rules out: it {}", text_of(e), why));
  contract.cells = cells_of(contract.law, contract.shapes);
  const auto of_first = [&](const ContractCell& cell) { return cell.dtype == contract.law.dtypes.front(); };
  const std::int64_t cells = std::ranges::count_if(contract.cells, of_first);
  if (contract.cases < 2 * cells) {
    throw UsageError(
        fmt::format("\"cases\" is {}; the shapes in their forms are {}, each of which takes a case: {} is "
                    "the least",
                    contract.cases, cells, 2 * cells));
  }
}

}  // namespace

Contract parse_contract(std::string_view json_text, std::string_view source, const std::filesystem::path& folder) {
  try {
    const json value = parse_strict_json(json_text);
    Contract contract = read(value, source, folder);
    if (!contract.law.attention)
      throw UsageError("\"kernel\".\"operations\" lists no attention; contracts are of attention so far");
    find_cells(contract);
    return contract;
  } catch (const UsageError& error) {
    const std::string_view what = error.what();
    if (what.starts_with(source)) throw;
    throw UsageError(fmt::format("{}: {}", source, what));
  }
}

Contract read_contract(const std::string& name_or_file) {
  for (const std::string& name : starter_contracts())
    if (name == name_or_file) return parse_contract(starter_contract(name), name);
  std::error_code none;
  if (!std::filesystem::exists(name_or_file, none)) {
    const std::vector<std::string> names = starter_contracts();
    const std::vector<std::string_view> views(names.begin(), names.end());
    throw UsageError(fmt::format("--contract {}: there is no such file, and no such contract to begin with{}",
                                 in_quotes(name_or_file), suggestion(name_or_file, views)));
  }
  return parse_contract(read_file(name_or_file), name_or_file, std::filesystem::path(name_or_file).parent_path());
}

std::vector<std::string> starter_contracts() {
  std::vector<std::string> names;
  for (const std::string_view name : embedded_names()) {
    if (!name.starts_with(starters)) continue;
    const std::string_view file = name.substr(starters.size());
    names.emplace_back(file.substr(0, file.size() - ending.size()));
  }
  return names;
}

std::string starter_contract(std::string_view name) {
  const std::vector<std::string> names = starter_contracts();
  for (const std::string& one : names)
    if (one == name) return std::string(embedded_file(fmt::format("{}{}{}", starters, name, ending)));
  const std::vector<std::string_view> views(names.begin(), names.end());
  throw UsageError(fmt::format("--print-contract is {}; there is none of that name{}", in_quotes(std::string(name)),
                               suggestion(name, views)));
}

std::string contract_of(const Manifest& trusted, std::string_view arithmetic) {
  // Lengths within and beyond a tile, equal and not, several heads and groups; each as the manifest's limits let it be.
  constexpr std::array<Extents, 5> wanted{{{1, 2, 2, 77, 77, 64, 64, 0, 0, 0, 0},
                                           {2, 4, 2, 128, 512, 64, 64, 0, 0, 0, 0},
                                           {1, 4, 4, 512, 128, 64, 64, 0, 0, 0, 0},
                                           {1, 8, 2, 1000, 1000, 128, 128, 0, 0, 0, 0},
                                           {1, 8, 1, 1, 4096, 128, 128, 0, 0, 0, 0}}};
  nlohmann::ordered_json contract;
  contract["schema"] = schema;
  contract["name"] = trusted.name;
  contract["kernel"] = nlohmann::ordered_json::parse(to_json(trusted));
  for (const char* const key : {"name", "version", "source", "abi", "thread_safe", "shared_memory"})
    contract["kernel"].erase(key);
  if (!arithmetic.empty()) contract["kernel"]["arithmetic"].update(nlohmann::ordered_json::parse(arithmetic));
  std::vector<std::string> shapes;
  for (const Extents& e : wanted) {
    const Case fitting = project(case_of(trusted, e, trusted.dtypes.front(), {}, /*seed=*/1), trusted);
    std::string shape = text_of(extents_of(fitting));
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(std::move(shape));
  }
  contract["shapes"] = shapes;
  contract["cases"] = Contract().cases;
  contract["share"] = Contract().share;
  contract["time_limit"] = "10s";
  contract["files"] = {"."};
  return contract.dump(2) + "\n";
}

std::string asks_beyond(const Contract& contract, const Manifest& own) {
  // Tensors lie as the kernel's own manifest asks, in the process that holds it.
  if (own.alignment <= contract.law.alignment || own.alignment <= 8) return {};
  const std::string offered =
      contract.law.alignment == 0 ? "that of an element" : fmt::format("{} bytes", contract.law.alignment);
  return fmt::format("its manifest asks for an alignment of {} bytes; the contract offers {}", own.alignment, offered);
}

}  // namespace attest

// Contract: what a judged kernel must do. It belongs to whoever judges: a kernel's own manifest can take nothing from
// it. reports/guide/judging.md describes the file, reports/schemas/contract.schema.json its form.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/manifest.h"
#include "core/problem/selection.h"
#include "reports/judge/cells.h"

namespace attest {

struct Contract {
  std::string name;
  Manifest law;                     ///< dtypes, arithmetic, claims, masks and limits that the kernel is held to
  std::vector<Extents> shapes;      ///< each judged in every dtype and form that the law offers; never empty
  std::vector<ContractCell> cells;  ///< of these shapes
  bool other_shapes = true;         ///< further shapes within the law's limits are sent, too
  std::int64_t cases = 2000;        ///< of each property in each dtype
  /// Until then at least the kernel is asked, the last cases behind a silence; 0: it ends with its cases.
  std::chrono::milliseconds watch{0};
  double share = 1.0;  ///< of shapes x dtypes x forms, the least that must be judged; above 0, at most 1
  std::chrono::milliseconds time_limit{10'000};        ///< of a call
  std::chrono::milliseconds first_time_limit{60'000};  ///< of the first, in which a kernel may compile itself
  std::uint64_t memory = std::uint64_t{4} << 30U;      ///< that its process may hold; 0: no limit
  std::vector<std::filesystem::path> files;            ///< that the kernel may read, beside the system's libraries
  std::vector<std::string> notes;                      ///< what is to be said of shapes that were recorded, a line each
  int processes = 64;                                  ///< that it may have at once, threads included
};

/// Parses and checks a contract. Throws UsageError: one line beginning with `source` that names key, value and rule,
/// for shapes that the contract's own limits rule out as well. `folder`: from where "shapes_from" is named.
[[nodiscard]] Contract parse_contract(std::string_view json, std::string_view source,
                                      const std::filesystem::path& folder = {});
/// The contract of a file, or one of those to begin with, by its name. Throws UsageError for what is neither.
[[nodiscard]] Contract read_contract(const std::string& name_or_file);

/// Contracts to begin with: their names, and the text of one. Throws UsageError for a name that is none.
[[nodiscard]] std::vector<std::string> starter_contracts();
[[nodiscard]] std::string starter_contract(std::string_view name);

/// A contract that asks for what the manifest of a trusted kernel says, with a few shapes that it takes. `arithmetic`:
/// an object by dtype in the place of what the manifest says of these; empty: as it says.
[[nodiscard]] std::string contract_of(const Manifest& trusted, std::string_view arithmetic = {});

/// What a kernel's manifest asks for beyond what the contract offers and no call would show, in one line; empty where
/// there is nothing. What it leaves out the calls show: they are refused.
[[nodiscard]] std::string asks_beyond(const Contract& contract, const Manifest& own);

}  // namespace attest

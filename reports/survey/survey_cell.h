// A cell of a survey: one path of a library in one dtype, its folder, the runs there, and the rows that they make.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/survey/library_paths.h"
#include "reports/survey/survey_row.h"

namespace attest {

struct SurveyCell {
  LibraryPath path;
  DType dtype;

  /// "PyTorch 2.13.0: SDPA, flash in f32"
  [[nodiscard]] std::string name() const { return path.name() + " in " + std::string(name_of(dtype)); }
};

/// In the order of the list, its dtypes in theirs.
[[nodiscard]] std::vector<SurveyCell> cells_of(const std::vector<LibraryPath>& paths);

/// How the cells are run, and where.
struct SurveyPlan {
  std::filesystem::path out;          ///< the survey's folder
  std::filesystem::path list;         ///< the folder of the list
  std::chrono::milliseconds time{};   ///< of each check and each search
  std::optional<std::int64_t> cases;  ///< of each property in the place of that, and runs of each search
  std::uint64_t seed = 1;
  int jobs = 1;
  std::function<void(const std::string& line)> say;  ///< told what begins

  /// OUT/libraries/LIBRARY-VERSION: what a recipe fills.
  [[nodiscard]] std::filesystem::path installation_of(const LibraryPath& path) const;
  /// The kernel as --kernel takes it, with folders in the place of {library} and {list}.
  [[nodiscard]] std::string kernel_of(const LibraryPath& path) const;
  /// OUT/cells/LIBRARY-VERSION/PATH/DTYPE: check/ and search/ are runs, found.json is what probe wrote, *.log what they
  /// printed.
  [[nodiscard]] std::filesystem::path folder_of(const SurveyCell& cell) const;
};

/// Makes what of the cell is not there yet, each by a process of this program: the library by its recipe, probe, a
/// check of every property, a search for the worst known case. A run that was ended before it was whole is gone on
/// with. What cannot be made is left out; its log says why. Throws Abandoned after an interrupt.
void run_cell(const SurveyCell& cell, const SurveyPlan& plan);

/// What is there of the cell: a row for each output that was judged against the exact answer; one that says why there
/// is none where nothing was judged. Saves its inputs in OUT/cases, by names that no other cell has, and with the
/// kernel as the list names it, which means the same on every machine.
[[nodiscard]] std::vector<SurveyRow> rows_of(const SurveyCell& cell, const SurveyPlan& plan);

}  // namespace attest

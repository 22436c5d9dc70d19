// Where a run was started, which its journal says as seen from its folder: what a kernel of its cases is relative to.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attest {

/// The current folder as a run's folder sees it, "..": what holds when both are moved together. For the journal.
[[nodiscard]] std::string started_in(const std::filesystem::path& run);

/// The folders in which kernels of a saved case may be named as the case names them: the current one; of a case in a
/// run's cases/ the one that the run was started in, where its journal says it, and the one that holds the run's
/// folder. Each once, and those alone that are there.
[[nodiscard]] std::vector<std::filesystem::path> folders_for_kernels(const std::filesystem::path& case_file);

/// The first of `folders` that holds every file which `kernel`, as --kernel takes it, names by a relative path and any
/// of them holds: "./libmine.so", "exec:python3 mine.py". The first of all where none holds any.
[[nodiscard]] std::filesystem::path folder_with_kernel(const std::string& kernel,
                                                       const std::vector<std::filesystem::path>& folders);

}  // namespace attest

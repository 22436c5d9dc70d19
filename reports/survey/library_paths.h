// The code paths of libraries that a survey is about, as a TOML file lists them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/value/dtype.h"

namespace attest {

/// One way through a library's code, of one version.
struct LibraryPath {
  std::string library;           ///< "PyTorch"
  std::string version;           ///< "2.13.0"
  std::string path;              ///< "SDPA, flash"
  std::string kernel;            ///< as --kernel takes it; {library} and {list} stand for folders (kernel_of)
  std::filesystem::path recipe;  ///< a script for sh that installs the library (installation_of); empty: none needed
  std::vector<DType> dtypes;     ///< at least one
  std::string forced;            ///< how it is made certain that this path is taken
  std::string promises;          ///< what the library's documents say of its numbers
  std::vector<std::string> properties;  ///< globs of what a check asks of a path that is slow; empty: all
  std::string timeout;                  ///< of a reply, as --timeout takes it; empty: what is usual
  std::vector<std::string> findings;    ///< what is known to be wrong, and where that is written up

  /// "PyTorch 2.13.0: SDPA, flash"
  [[nodiscard]] std::string name() const { return library + " " + version + ": " + path; }
  [[nodiscard]] bool operator==(const LibraryPath&) const = default;
};

/// One [[path]] for each version of an entry, in the order of the file. Paths are relative to the folder of `source`,
/// the file's name. Throws UsageError "SOURCE, line N: …" for a mistake, and for two that are the same.
[[nodiscard]] std::vector<LibraryPath> parse_library_paths(const std::string& text,
                                                           const std::filesystem::path& source);
[[nodiscard]] std::vector<LibraryPath> read_library_paths(const std::filesystem::path& file);

/// A name for files and folders: letters, digits, '.', '_' and '-', other characters as '-'; distinct for distinct
/// texts.
[[nodiscard]] std::string file_name_of(std::string_view text);

}  // namespace attest

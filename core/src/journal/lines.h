// Lines of a file, a buffer at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "attest/descriptor.h"

namespace attest {

/// Hands every whole line of `text`, without its newline, to `use`. True where a last line lacks its newline; that one
/// is left out.
bool for_each_line(std::string_view text, const std::function<void(std::string_view)>& use);

/// A file to be read line by line more than once, in the memory of its longest line.
class LineFile {
 public:
  /// A file that the user named, whatever links lead to it. What is not a regular file (a pipe, a shell's process
  /// substitution) can be read once only and is held in memory. Throws UsageError naming it, as read_file does.
  explicit LineFile(std::filesystem::path file);
  /// A file in a folder of somebody else's making: a regular one (folder.h). Throws UsageError naming it.
  LineFile(const std::filesystem::path& folder, std::string_view name);

  /// As for_each_line of the text, of what stood in the file when the object was made: what a run appends meanwhile is
  /// not read. Throws UsageError where it cannot be read to there.
  bool for_each_line(const std::function<void(std::string_view)>& use) const;

 private:
  [[nodiscard]] Descriptor open() const;

  std::filesystem::path file_;
  bool in_folder_ = false;
  std::int64_t size_ = 0;
  std::optional<std::string> held_;  ///< where the file is not regular
};

}  // namespace attest

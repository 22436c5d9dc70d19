// Lines of a file, a buffer at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/support/descriptor.h"

namespace attest {

/// What stands behind the last line that was handed over.
enum class LinesEnd : std::uint8_t {
  whole,  ///< nothing
  torn,   ///< a line without its newline, which a killed writer leaves
  zeros   ///< a line with zero_run zero bytes, which a power cut leaves, and whatever follows it
};
/// So many zero bytes in a row are no accident of a byte. JSON holds none.
inline constexpr std::size_t zero_run = 16;

/// The bytes of the whole lines in front of the first one with zero_run zero bytes.
[[nodiscard]] std::size_t readable_size(std::string_view text);

/// Hands every whole line of `text`, without its newline, to `use`, and says why it ended. `past_zeros`: those with and
/// behind zero bytes too.
LinesEnd for_each_line(std::string_view text, const std::function<void(std::string_view)>& use,
                       bool past_zeros = false);

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
  LinesEnd for_each_line(const std::function<void(std::string_view)>& use, bool past_zeros = false) const;

 private:
  [[nodiscard]] Descriptor open() const;

  std::filesystem::path file_;
  bool in_folder_ = false;
  std::int64_t size_ = 0;
  std::optional<std::string> held_;  ///< where the file is not regular
};

}  // namespace attest

// A folder whose entries somebody else may have put there, as a run's folder is that was unpacked or downloaded.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/descriptor.h"
#include "core/support/errors.h"

namespace attest {

/// Something stands in a run's folder that a run does not put there: a link, a pipe, a device, a folder for a file.
class ForeignEntry : public UsageError {
 public:
  using UsageError::UsageError;
};

/// An open folder. Every name is relative to it ("run.jsonl", "cases/a.safetensors") and is looked up from its
/// descriptor, a part at a time, without following a link. A name that leads out of it ("../x", "/x", "a//x") throws
/// UsageError; what stands at a name and is no regular file throws ForeignEntry, which names the path, what it is and
/// the remedy. Nothing here waits for a pipe, writes through a link or deletes behind one.
class Folder {
 public:
  enum class Last { may_be_link, is_no_link };

  /// Opens `path`, which the user chose and which may lead through links; its last part too, unless `last` says that
  /// this part is somebody else's. Throws UsageError where it is no folder or cannot be opened.
  explicit Folder(std::filesystem::path path, Last last = Last::may_be_link);
  /// The folder; nothing where none stands there.
  [[nodiscard]] static std::optional<Folder> if_there(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Whether a file stands there.
  [[nodiscard]] bool holds(std::string_view name) const { return size(name).has_value(); }
  /// The bytes of a file; nothing where nothing stands there.
  [[nodiscard]] std::optional<std::int64_t> size(std::string_view name) const;
  /// The names in the folder itself ("") or in one of its folders, sorted; none where that is missing. They are names
  /// of anything: holds() tells what is foreign.
  [[nodiscard]] std::vector<std::string> names(std::string_view folder) const;

  /// The whole file. Throws UsageError as read_file does.
  [[nodiscard]] std::string read(std::string_view name) const;
  /// Opened for reading. Throws UsageError.
  [[nodiscard]] Descriptor open(std::string_view name) const;
  /// Opened for reading and appending, made with `mode` where it is missing; none, and errno, where the system refuses.
  /// Throws ForeignEntry where the file has a second name (a hard link) as well: what is appended would stand there
  /// too.
  [[nodiscard]] Descriptor open_to_append(std::string_view name, mode_t mode) const;

  /// Replaces the file as write_file_atomically does, but never writes into what stands there.
  void write(std::string_view name, std::string_view bytes) const;
  /// Makes a folder where none stands. Throws UsageError; ForeignEntry where something else does.
  void make_folder(std::string_view name) const;
  /// Removes a file, or a folder that is empty. What cannot be removed stays.
  void remove(std::string_view name) const;
  /// Removes from the folder itself ("") or one of its folders the temporaries that write() left when its process was
  /// killed, of files that `is_ours`; never one that a process still writes.
  void remove_leftovers(std::string_view folder, const std::function<bool(std::string_view)>& is_ours) const;

 private:
  /// Where a name is looked up: the folder that holds it and its last part.
  struct Place {
    Descriptor within;  ///< none where a folder on the way is missing
    std::string last;
  };
  [[nodiscard]] Place place_of(std::string_view name) const;
  /// The folder, to be listed; none where it is missing.
  [[nodiscard]] Descriptor open_folder(std::string_view name) const;
  [[nodiscard]] std::filesystem::path shown(std::string_view name) const { return path_ / name; }

  std::filesystem::path path_;
  Descriptor descriptor_;
};

}  // namespace attest

#include "journal/lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "attest/errors.h"
#include "attest/files.h"
#include "attest/folder.h"
#include "attest/names.h"

namespace attest {
namespace {

constexpr std::size_t buffer_size = std::size_t{1} << 20;

[[noreturn]] void cannot_read(const std::filesystem::path& file, std::string_view why) {
  throw UsageError(fmt::format("cannot read {}: {}", in_quotes(file.native(), 300), why));
}

/// Hands over the whole lines and gives the number of bytes they take.
std::size_t use_lines(std::string_view text, const std::function<void(std::string_view)>& use) {
  std::size_t start = 0;
  for (;;) {
    const std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos) return start;
    use(text.substr(start, end - start));
    start = end + 1;
  }
}

}  // namespace

bool for_each_line(std::string_view text, const std::function<void(std::string_view)>& use) {
  return use_lines(text, use) != text.size();
}

LineFile::LineFile(std::filesystem::path file) : file_(std::move(file)) {
  struct stat status{};
  if (::stat(file_.c_str(), &status) == 0 && S_ISREG(status.st_mode))
    size_ = status.st_size;
  else
    held_ = read_file(file_);
}

LineFile::LineFile(const std::filesystem::path& folder, std::string_view name)
    : file_(folder / name), in_folder_(true), size_(Folder(folder).size(name).value_or(0)) {
  (void)open();  // what cannot be read is said now
}

Descriptor LineFile::open() const {
  if (in_folder_) return Folder(file_.parent_path()).open(file_.filename().native());
  Descriptor opened(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened) cannot_read(file_, std::generic_category().message(errno));
  return opened;
}

bool LineFile::for_each_line(const std::function<void(std::string_view)>& use) const {
  if (held_) return attest::for_each_line(*held_, use);
  const Descriptor descriptor = open();
  std::string buffer(static_cast<std::size_t>(std::min<std::int64_t>(size_, buffer_size)), '\0');
  std::size_t held = 0;
  for (std::int64_t place = 0; place < size_;) {
    if (held == buffer.size()) buffer.resize(2 * buffer.size());
    const auto wanted = static_cast<std::size_t>(
        std::min<std::int64_t>(size_ - place, static_cast<std::int64_t>(buffer.size() - held)));
    const ssize_t got = ::pread(descriptor.number(), buffer.data() + held, wanted, place);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot_read(file_, std::generic_category().message(errno));
    if (got == 0) cannot_read(file_, "it became shorter while it was read");
    place += got;
    held += static_cast<std::size_t>(got);
    const std::size_t used = use_lines(std::string_view(buffer).substr(0, held), use);
    std::memmove(buffer.data(), buffer.data() + used, held - used);
    held -= used;
  }
  return held > 0;
}

}  // namespace attest

#include "core/journal/lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/folder.h"
#include "core/support/names.h"

namespace attest {
namespace {

constexpr std::size_t buffer_size = std::size_t{1} << 20;

[[noreturn]] void cannot_read(const std::filesystem::path& file, std::string_view why) {
  throw UsageError(fmt::format("cannot read {}: {}", in_quotes(file.native(), 300), why));
}

bool holds_zeros(std::string_view line) {
  // Nearly every line holds none at all.
  const std::size_t first = line.find('\0');
  return first != std::string_view::npos &&
         line.find(std::string_view("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", zero_run), first) != std::string_view::npos;
}

struct Used {
  std::size_t bytes;  ///< of the lines that were handed over
  bool zeros;         ///< the next one is a whole line with zero bytes
};

Used use_lines(std::string_view text, const std::function<void(std::string_view)>& use, bool past_zeros) {
  std::size_t start = 0;
  for (;;) {
    const std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos) return {start, false};
    const std::string_view line = text.substr(start, end - start);
    if (!past_zeros && holds_zeros(line)) return {start, true};
    use(line);
    start = end + 1;
  }
}

LinesEnd end_of(std::string_view rest) {
  if (rest.empty()) return LinesEnd::whole;
  return holds_zeros(rest) ? LinesEnd::zeros : LinesEnd::torn;
}

}  // namespace

std::size_t readable_size(std::string_view text) {
  return use_lines(text, [](std::string_view) {}, /*past_zeros=*/false).bytes;
}

LinesEnd for_each_line(std::string_view text, const std::function<void(std::string_view)>& use, bool past_zeros) {
  return end_of(text.substr(use_lines(text, use, past_zeros).bytes));
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

LinesEnd LineFile::for_each_line(const std::function<void(std::string_view)>& use, bool past_zeros) const {
  if (held_) return attest::for_each_line(*held_, use, past_zeros);
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
    const auto [used, zeros] = use_lines(std::string_view(buffer).substr(0, held), use, past_zeros);
    if (zeros) return LinesEnd::zeros;
    std::memmove(buffer.data(), buffer.data() + used, held - used);
    held -= used;
  }
  return end_of(std::string_view(buffer).substr(0, held));
}

}  // namespace attest

#include "core/isolation/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "core/support/visible.h"

namespace attest::process {

Output::Output(Log& log) : log_(log), error_(make_pipe()), output_(make_pipe()) {
  // The reading ends alone: a kernel's standard error blocks, as everybody's does.
  for (const int fd : {error_source(), output_source()}) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

bool Output::drain(int source) {
  constexpr int most_pieces = 64;
  constexpr std::size_t window = 4096;
  std::array<char, std::size_t{1} << 16U> piece;
  bool any = false;
  for (int i = 0; i < most_pieces; ++i) {
    const ssize_t got = ::read(source, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    any = true;
    const std::string_view text(piece.data(), static_cast<std::size_t>(got));
    log_.add(text);
    end_.append(text.substr(text.size() - std::min(text.size(), window)));
    if (end_.size() > window) end_.erase(0, end_.size() - window);
  }
  return any;
}

void Output::drain() {
  if (drain(output_source())) printed_ = true;
  static_cast<void>(drain(error_source()));
}

bool Output::printed() {
  drain();
  return printed_;
}

void Output::mark() {
  drain();
  end_.clear();
}

std::string Output::last_line() {
  drain();
  std::string text = end_;
  const auto last = text.find_last_not_of(" \t\r\n");
  if (last == std::string::npos) return {};
  text.resize(last + 1);
  if (const auto line = text.find_last_of('\n'); line != std::string::npos) text.erase(0, line + 1);
  if (text.size() > 200) text.resize(200);
  return visible(text);
}

}  // namespace attest::process

#include "reports/text/wrap.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace attest {

std::size_t columns_of_text(std::string_view text) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; };
  return static_cast<std::size_t>(std::ranges::count_if(text, begins));
}

std::string labelled(std::string_view label, std::string_view text, std::size_t at, std::size_t width,
                     std::size_t most) {
  std::vector<std::string> lines{std::string()};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t taken = columns_of_text(lines.back());
    if (!lines.back().empty() && at + taken + 1 + columns_of_text(word) > width) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  if (lines.size() > most) {
    lines.resize(most);
    while (at + columns_of_text(lines.back()) + 2 > width && lines.back().find(' ') != std::string::npos)
      lines.back().resize(lines.back().rfind(' '));
    lines.back() += " …";
  }
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  std::string all = "  " + std::string(label);
  all += std::string(at - std::min(at, columns_of_text(all)), ' ');
  for (std::size_t i = 0; i < lines.size(); ++i)
    all += (i == 0 ? std::string() : '\n' + std::string(at, ' ')) + lines[i];
  return all + '\n';
}

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 40) return 80;
  return std::min<std::size_t>(size.ws_col, 120);
}

}  // namespace attest

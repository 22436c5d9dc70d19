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

std::string wrapped(std::string_view text, std::size_t width) {
  std::string all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (columns_of_text(line) > width && !line.substr(indent).starts_with("replay: ")) {
      std::size_t taken = 0;
      // Runs of spaces within what stays on a line are its own: a row of a table keeps its columns.
      while (!line.empty()) {
        const std::size_t word =
            std::min(line.find(' ', std::min(line.find_first_not_of(' '), line.size())), line.size());
        const std::string_view piece = line.substr(0, word);
        line.remove_prefix(word);
        const bool first = taken == 0;
        if (!first && taken + columns_of_text(piece) > width) {
          const std::string_view bare = piece.substr(std::min(piece.find_first_not_of(' '), piece.size()));
          if (bare.empty()) break;
          all += '\n' + std::string(indent + 4, ' ');
          all += bare;
          taken = indent + 4 + columns_of_text(bare);
          continue;
        }
        all += piece;
        taken += columns_of_text(piece);
      }
    } else {
      all += line;
    }
    all += '\n';
  }
  return all;
}

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 40) return 80;
  return std::min<std::size_t>(size.ws_col, 120);
}

}  // namespace attest

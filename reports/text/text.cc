#include "reports/text/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/support/json_writer.h"
#include "core/support/visible.h"
#include "reports/text/wrap.h"

namespace attest {

std::string short_number(double value) {
  if (!std::isfinite(value)) return number_text(value);
  return value >= 1000 && value < 1e7 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string sentence(std::string_view text) {
  return text.ends_with('.') ? std::string(text) : std::string(text) + '.';
}

std::string with_commas(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::ptrdiff_t sign = count < 0 ? 1 : 0;
  for (auto at = std::ssize(digits) - 3; at > sign; at -= 3) digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string rows_text(const Verdict& verdict) {
  return fmt::format("{} of {} rows judged", with_commas(verdict.rows_judged), with_commas(verdict.rows));
}

std::string kernels_text(std::size_t count) {
  return count == 1 ? "1 kernel × dtype" : fmt::format("{} kernels × dtypes", count);
}

std::string one_line(std::string_view text) {
  return visible(text);
}

std::string valid_utf8(std::string_view text) {
  using Json = nlohmann::json;
  const std::string quoted = Json(text).dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
}

std::string cut_short(std::string_view text, std::size_t most, std::string_view ellipsis) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most - ellipsis.size();
  // Bytes 10xxxxxx go on with a character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return std::string(text.substr(0, end)).append(ellipsis);
}

std::string some_of(const std::set<std::string>& names) {
  const std::size_t shown = names.size() > 4 ? 3 : names.size();
  std::string text;
  std::size_t i = 0;
  for (const std::string& name : names) {
    if (i == shown) break;
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + one_line(name);
    ++i;
  }
  return shown < names.size() ? fmt::format("{} and {} more in the report", text, names.size() - shown) : text;
}

std::string columns(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<std::size_t> width(right.size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(width[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (right[i] ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string columns(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right,
                    std::size_t width) {
  constexpr std::size_t least = 24;
  std::size_t at = 0;
  for (std::size_t i = 0; i + 1 < right.size(); ++i) {
    std::size_t widest = 0;
    for (const auto& row : rows) widest = std::max(widest, row[i].size());
    at += widest + 2;
  }
  // What follows the first line of a cell is a row of its own, empty but for that.
  std::vector<std::vector<std::string>> broken;
  for (const auto& row : rows) {
    std::string cell = labelled("", row.back(), 2, std::max(width, at + least) - at + 2);
    std::vector<std::string> next = row;
    while (!cell.empty()) {
      const std::size_t end = cell.find('\n');
      next.back() = cell.substr(std::min<std::size_t>(2, end), end - std::min<std::size_t>(2, end));
      broken.push_back(next);
      next.assign(row.size(), "");
      cell.erase(0, end + 1);
    }
  }
  return columns(broken, right);
}

}  // namespace attest

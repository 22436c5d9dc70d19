#include "core/journal/journal_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/crc.hpp>
#include <charconv>
#include <cstring>
#include <iterator>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#include "core/journal/crc32c.h"

namespace attest {
namespace detail {

std::uint32_t crc32c_by_table(std::string_view bytes) {
  boost::crc_optimal<32, 0x1edc6f41, 0xffffffff, 0xffffffff, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

#if defined(__x86_64__)
// Eight bytes an instruction: what reading costs is then nowhere to be seen.
[[gnu::target("sse4.2")]] std::uint32_t crc32c_by_instruction(std::string_view bytes) {
  std::uint64_t crc = 0xffffffff;
  while (bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    crc = _mm_crc32_u64(crc, word);
    bytes.remove_prefix(sizeof word);
  }
  for (const char byte : bytes) crc = _mm_crc32_u8(static_cast<std::uint32_t>(crc), static_cast<unsigned char>(byte));
  return ~static_cast<std::uint32_t>(crc);
}
#endif

}  // namespace detail

namespace {

constexpr std::string_view crc_key = ",\"crc\":\"", number_key = ",\"line\":";
constexpr std::size_t digits = 8;
/// `,"crc":"0123abcd"}`
constexpr std::size_t end_size = crc_key.size() + digits + 2;

/// Nothing where the line does not end in a checksum.
std::optional<std::uint32_t> stated_crc(std::string_view line) {
  if (line.size() < end_size) return std::nullopt;
  const std::string_view end = line.substr(line.size() - end_size);
  if (!end.starts_with(crc_key) || !end.ends_with("\"}")) return std::nullopt;
  std::uint32_t crc = 0;
  for (const char digit : end.substr(crc_key.size(), digits)) {
    const bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && (digit < 'a' || digit > 'f')) return std::nullopt;
    crc = crc << 4U | static_cast<std::uint32_t>(decimal ? digit - '0' : digit - 'a' + 10);
  }
  return crc;
}

/// The line without its number and its checksum, where it has them in this order.
std::string_view without_stamp(std::string_view line) {
  if (!stated_crc(line)) return line.substr(0, line.size() - 1);
  line.remove_suffix(end_size);
  const std::size_t key = line.rfind(number_key);
  if (key == std::string_view::npos) return line;
  const std::string_view number = line.substr(key + number_key.size());
  const bool whole = std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  return whole ? line.substr(0, key) : line;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return detail::crc32c_by_instruction(bytes);
#endif
  return detail::crc32c_by_table(bytes);
}

Checksum checksum_of(std::string_view line) {
  const std::optional<std::uint32_t> stated = stated_crc(line);
  if (!stated) return Checksum::absent;
  return crc32c(line.substr(0, line.size() - end_size)) == *stated ? Checksum::right : Checksum::wrong;
}

std::string LineStamper::stamp(std::string_view line) {
  last_ = line.starts_with("{\"kind\":\"run\",") ? 1 : last_ + 1;
  constexpr std::string_view end = "}\n";
  std::string text(line.substr(0, line.size() - end.size()));
  fmt::format_to(std::back_inserter(text), "{}{}", number_key, last_);
  const std::uint32_t crc = crc32c(text);
  fmt::format_to(std::back_inserter(text), "{}{:08x}\"}}\n", crc_key, crc);
  return text;
}

std::optional<std::int64_t> number_of_line(std::string_view line) {
  if (!stated_crc(line)) return std::nullopt;
  line.remove_suffix(end_size);
  const std::size_t key = line.rfind(number_key);
  if (key == std::string_view::npos) return std::nullopt;
  const std::string_view text = line.substr(key + number_key.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string stamped(std::string_view text) {
  std::string result;
  LineStamper stamper;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const bool whole = end != std::string_view::npos && line.size() > 1 && line.front() == '{' && line.back() == '}';
    if (whole)
      result += stamper.stamp(std::string(without_stamp(line)).append("}\n"));
    else
      result.append(text.substr(0, end == std::string_view::npos ? end : end + 1));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return result;
}

}  // namespace attest

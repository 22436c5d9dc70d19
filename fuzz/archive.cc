#include "fuzz/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/support/errors.h"
#include "core/support/json_writer.h"

namespace attest {
namespace {

double largest_of(const Tensor& tensor) {
  double largest = 0;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) largest = std::max(largest, std::abs(tensor[i]));
  return largest;
}

/// log2 of a size in steps of `step` octaves from `from` on, 0 to steps - 1; 0 for nothing.
std::uint32_t octaves(double size, int from, int step, int steps) {
  if (!(size > 0)) return 0;
  if (std::isinf(size)) return static_cast<std::uint32_t>(steps - 1);
  const int octave = std::ilogb(size);
  return static_cast<std::uint32_t>(std::clamp((octave - from) / step, 0, steps - 1));
}

std::int64_t keys_of(const Case& c) {
  return c.k().shape()[c.operation == Operation::attention ? 2 : 1];
}

enum class MaskClass : std::uint8_t { none, bias, hides, both };

MaskClass mask_class(const Case& c) {
  const Tensor& mask = c.mask();
  bool hides = c.causal != Causal::none, bias = false;
  for (std::int64_t i = 0; i < mask.elements(); ++i) {
    const double entry = mask[i];
    if (mask.dtype() == DType::boolean)
      hides = hides || entry == 0;
    else if (std::isinf(entry))
      hides = true;
    else
      bias = bias || entry != 0;
  }
  return bias ? (hides ? MaskClass::both : MaskClass::bias) : hides ? MaskClass::hides : MaskClass::none;
}

/// 0 to 7.
std::uint32_t keys_class(std::int64_t keys) {
  if (keys >= 64) return 7;
  return static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(keys)));
}

/// Bounds the size of X W + 1b^T; of X itself in an attention case.
double projected_size(const Case& c, Slot x, Slot w, Slot b) {
  if (c.operation == Operation::attention) return largest_of(c[x]);
  return largest_of(c[x]) * largest_of(c[w]) * static_cast<double>(c[w].shape()[0]) + largest_of(c[b]);
}

/// Bounds the size of every score without its mask: sum of |q_c k_c| times the scale.
double reach_of(const Case& c) {
  const double width = c.operation == Operation::attention
                           ? static_cast<double>(c.q().shape()[3])
                           : static_cast<double>(c[Slot::w_q].shape()[1]) / static_cast<double>(c.heads);
  return projected_size(c, Slot::q, Slot::w_q, Slot::b_q) * projected_size(c, Slot::k, Slot::w_k, Slot::b_k) * width *
         c.scale;
}

/// Bounds the size of every output.
double output_size(const Case& c) {
  const double values = projected_size(c, Slot::v, Slot::w_v, Slot::b_v);
  if (c.operation == Operation::attention || !c[Slot::w_o].present()) return values;
  return values * largest_of(c[Slot::w_o]) * static_cast<double>(c[Slot::w_o].shape()[0]) + largest_of(c[Slot::b_o]);
}

}  // namespace

std::uint32_t cell_of(const Case& c, const Verdict& verdict) {
  const double values = largest_of(c.v());
  std::uint32_t cell = keys_class(keys_of(c));
  cell = cell * 4 + static_cast<std::uint32_t>(mask_class(c));
  cell = cell * 2 + (reach_of(c) >= 0x1p6 ? 1U : 0U);
  return cell * 4 + (values > 0 ? octaves(verdict.allowed / values, -52, 12, 4) : 0U);
}

bool asks_for_finiteness(const Property& property) {
  return property.name.ends_with(".finite");
}

double quality_of(const Property& property, const Case& c, const Verdict& verdict) {
  if (verdict.outcome != Outcome::held) return -1;
  if (!asks_for_finiteness(property)) return std::isfinite(verdict.utilisation) ? verdict.utilisation : -1;
  const double size = std::max(reach_of(c), output_size(c));
  if (!(size > 1)) return 0;
  return std::min(1.0, std::log2(size) / std::log2(format_of(c.dtype()).largest));
}

std::string place_of(const Case& c) {
  const std::int64_t keys = keys_of(c);
  const char* const masks[] = {"no mask", "a bias", "hidden keys", "a bias and hidden keys"};
  const char* const lengths = keys == 0    ? "no keys"
                              : keys == 1  ? "1 key"
                              : keys <= 16 ? "2 to 16 keys"
                                           : "more than 16 keys";
  return fmt::format("{}, {}", masks[static_cast<std::size_t>(mask_class(c))], lengths);
}

bool Archive::wants(std::uint32_t cell, double quality) const {
  if (!(quality >= 0)) return false;
  const auto found = place_.find(cell);
  return found == place_.end() || quality > entries_[found->second].quality;
}

bool Archive::offer(Entry entry) {
  if (!wants(entry.cell, entry.quality)) return false;
  worst_ = std::max(worst_, entry.quality);
  const auto [place, added] = place_.try_emplace(entry.cell, entries_.size());
  if (added)
    entries_.push_back(std::move(entry));
  else
    entries_[place->second] = std::move(entry);
  return true;
}

const Input& Archive::pick(Stream& stream) const {
  const auto any = [&] {
    const auto size = static_cast<std::int64_t>(entries_.size());
    auto place = static_cast<std::size_t>(stream.below(size));
    for (int i = 0; i < 8 && !stream.one_in(1 + entries_[place].work / cheap_work); ++i)
      place = static_cast<std::size_t>(stream.below(size));
    return place;
  };
  std::size_t chosen = any();
  if (stream.one_in(2)) {
    for (int i = 0; i < 3; ++i) {
      const std::size_t other = any();
      if (entries_[other].quality > entries_[chosen].quality) chosen = other;
    }
  }
  return entries_[chosen].input;
}

namespace {

constexpr std::string_view schema = "attest-archive/1";

std::string hexadecimal(const std::vector<std::uint8_t>& bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::optional<std::vector<std::uint8_t>> bytes_in(const std::string& text) {
  if (text.size() % 2 != 0 || text.size() > 2 * most_input_bytes) return std::nullopt;
  std::vector<std::uint8_t> bytes;
  bytes.reserve(text.size() / 2);
  unsigned high = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return std::nullopt;
    const auto digit = static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    if (i % 2 == 0)
      high = digit;
    else
      bytes.push_back(static_cast<std::uint8_t>(high << 4 | digit));
  }
  return bytes;
}

}  // namespace

std::string to_text(const Archive& archive) {
  JsonWriter first;
  first.begin_object().member("schema", schema).end_object();
  std::string text = first.text() + '\n';
  std::vector<const Archive::Entry*> sorted;
  for (const Archive::Entry& entry : archive.entries()) sorted.push_back(&entry);
  std::ranges::sort(sorted, {}, &Archive::Entry::cell);
  for (const Archive::Entry* const entry : sorted) {
    JsonWriter line;
    line.begin_object().member("cell", entry->cell).member("quality", entry->quality).member("k", entry->k);
    line.member("work", entry->work);
    line.member("input", hexadecimal(bytes_of(entry->input))).end_object();
    text += line.text() + '\n';
  }
  return text;
}

Archive parse_archive(std::string_view text, std::string_view source, const Property& property, DType dtype) {
  Archive archive;
  int number = 0;
  const auto refuse = [&](std::string_view why) {
    throw UsageError(fmt::format("{}, line {}: {}", source, number, why));
  };
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) refuse("ends without a newline");
    const auto line = nlohmann::json::parse(text.substr(0, end), nullptr, /*allow_exceptions=*/false);
    text.remove_prefix(end + 1);
    if (!line.is_object()) refuse("is no JSON object");
    if (number == 1) {
      if (line != nlohmann::json{{"schema", schema}}) refuse(fmt::format("is not {{\"schema\":\"{}\"}}", schema));
      continue;
    }
    const auto member = [&](const char* name) {
      const auto found = line.find(name);
      if (found == line.end()) refuse(fmt::format("has no \"{}\"", name));
      return *found;
    };
    const auto cell = member("cell"), quality = member("quality"), k = member("k"), work = member("work"),
               input = member("input");
    if (line.size() != 5) refuse("has members beyond cell, quality, k, work and input");
    if (!cell.is_number_unsigned() || cell.get<std::uint64_t>() >= cell_count)
      refuse(fmt::format("\"cell\" must be a whole number below {}", cell_count));
    if (!quality.is_number() || !(quality.get<double>() >= 0)) refuse("\"quality\" must be a number of at least 0");
    if (!k.is_number_unsigned() || k.get<std::uint64_t>() >> 62U != 0)
      refuse("\"k\" must be a whole number below 2^62");
    if (!work.is_number_unsigned() || work.get<std::uint64_t>() > static_cast<std::uint64_t>(most_work) * 512)
      refuse("\"work\" must be a whole number");
    if (!input.is_string()) refuse("\"input\" must be a string");
    const auto bytes = bytes_in(input.get_ref<const std::string&>());
    if (!bytes) refuse("\"input\" must be hexadecimal digits, two for each byte of an input");
    archive.offer({cell.get<std::uint32_t>(), quality.get<double>(), k.get<std::int64_t>(), work.get<std::int64_t>(),
                   parse_input(*bytes, dtype, property.operation)});
  }
  if (number == 0) refuse("is empty");
  return archive;
}

}  // namespace attest

#include "reports/sections/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "core/value/dtype.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// An id of letters, digits and dashes.
std::string with_dashes(std::string_view name) {
  std::string id;
  for (const char c : name) id += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  return id;
}

}  // namespace

std::string anchor_of(const KernelSummary& kernel) {
  return "k" + with_dashes(kernel.id + "-" + kernel.dtype);
}

std::string anchor_of(const KernelSummary& kernel, const PropertySummary& property) {
  return "f" + with_dashes(kernel.id + "-" + kernel.dtype + "-" + property.name);
}

Tags tags_of(const KernelSummary& kernel) {
  return {fmt::format("{}{} {}", kernel.name, kernel.id == kernel.name ? "" : " " + kernel.id, kernel.dtype)};
}

Tags tags_of(const KernelSummary& kernel, const PropertySummary& property) {
  return {tags_of(kernel).kernel, property.name, std::string(name_of(property.verdict))};
}

Text title_of(std::string_view kernel, std::string_view dtype) {
  return {theirs(kernel), " ", Piece(dtype, Piece::Kind::dtype)};
}

Text name_in(const KernelSummary& kernel) {
  return {theirs(kernel.name), " in ", theirs(kernel.dtype)};
}

std::string worst_text(const Tally& tally) {
  return tally.worst_k < 0 ? "–" : short_number(tally.worst_utilisation);
}

std::string worst_share_text(const KernelSummary& kernel) {
  std::optional<LogCode> worst;
  for (const PropertySummary& property : kernel.properties)
    for (const auto& [key, cell] : property.tally.errors.cells) worst = std::max(worst.value_or(0), cell.worst_normal);
  return worst ? short_number(size_of_code(*worst)) : "–";
}

Text first_of(std::span<const std::string> names, std::size_t most) {
  Text text;
  for (const std::string& name : names.first(std::min(names.size(), most)))
    text = {text, text.pieces.empty() ? "" : ", ", theirs(name)};
  return names.size() > most ? Text{text, fmt::format(" and {} more", names.size() - most)} : text;
}

std::vector<std::string> dtypes_of(const Summary& summary) {
  std::vector<std::string> dtypes;
  for (const KernelSummary& kernel : summary.kernels)
    if (std::ranges::find(dtypes, kernel.dtype) == dtypes.end()) dtypes.push_back(kernel.dtype);
  std::ranges::sort(dtypes, {}, [](const std::string& name) {
    return std::pair<DType, std::string_view>(named<DType>(name).value_or(DType::boolean), name);
  });
  return dtypes;
}

}  // namespace attest

#include "core/kernel/padding.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/problem/sequences.h"
#include "core/problem/sight.h"

namespace attest {
namespace {

void clear_rows(Values& values, const std::vector<std::int64_t>& rows) {
  if (!values.is<Tensor>() || values.elements() == 0) return;
  Tensor& tensor = values.tensor();
  const Shape& shape = tensor.shape();
  const std::int64_t width = shape.rank() == 4 ? shape[3] : 1;
  for (const std::int64_t row : rows)
    for (std::int64_t e = row * width; e < (row + 1) * width; ++e) tensor.set(e, 0.0);
}

}  // namespace

PaddingRows::PaddingRows(const Manifest& manifest, const Case& c)
    : rows_(padding_rows(c)), padding_(manifest.padding_of(c)), queries_(queries_of(c)) {}

void PaddingRows::excuse(std::vector<std::int64_t>& untouched, std::int64_t width, bool is_lse) const {
  if (rows_.empty() || (padding_ == Padding::zero && !is_lse)) return;
  std::erase_if(untouched, [&](std::int64_t e) { return std::ranges::binary_search(rows_, e / width); });
}

std::optional<std::string> PaddingRows::trespass(const std::vector<std::int64_t>& untouched, std::size_t most,
                                                 std::int64_t width, const char* name) const {
  if (padding_ != Padding::untouched || untouched.size() >= most) return std::nullopt;
  for (const std::int64_t row : rows_) {
    for (std::int64_t e = row * width; e < (row + 1) * width; ++e) {
      if (std::ranges::binary_search(untouched, e)) continue;
      return fmt::format(
          "wrote row {} of {} for head {}, which is in no sequence; its manifest says that padding is untouched",
          row % queries_, name, row / queries_);
    }
  }
  return std::nullopt;
}

void PaddingRows::clear(Reply& reply) const {
  if (rows_.empty()) return;
  if (padding_ != Padding::zero) clear_rows(reply.out, rows_);
  clear_rows(reply.lse, rows_);
}

}  // namespace attest

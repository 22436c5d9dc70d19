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

/// Which elements of a tensor are in a sequence.
class Covered {
 public:
  explicit Covered(const Tensor& tensor)
      : shape_(tensor.shape()), elements_(static_cast<std::size_t>(tensor.elements())) {}

  /// Of the entry and of every head; an axis of length 1 in the place of entries stands for all.
  void add(std::int64_t entry, std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
    if (shape_[0] == 1) entry = 0;
    for (std::int64_t h = 0; h < shape_[1]; ++h) {
      for (std::int64_t i = row; i < row + rows; ++i) {
        const auto first = elements_.begin() + (((entry * shape_[1] + h) * shape_[2] + i) * shape_[3] + column);
        std::fill(first, first + columns, true);
      }
    }
  }
  [[nodiscard]] std::vector<std::int64_t> others() const {
    std::vector<std::int64_t> all;
    for (std::size_t e = 0; e < elements_.size(); ++e)
      if (!elements_[e]) all.push_back(static_cast<std::int64_t>(e));
    return all;
  }

 private:
  Shape shape_;
  std::vector<bool> elements_;
};

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

std::vector<std::int64_t> padding_of(const Problem& c, Gradient gradient) {
  // Every head's sink has a gradient, though there be no row.
  if (!has_argument_of(c, gradient) || gradient == Gradient::sink || !has_sequences(c)) return {};
  const Tensor& argument = c[slot_of(gradient)];
  Covered covered(argument);
  for (const Sequence& s : sequences_of(c)) {
    if (gradient == Gradient::mask)
      covered.add(s.entry, s.first_query, s.queries, s.first_key, s.keys);
    else if (gradient == Gradient::q)
      covered.add(s.entry, s.first_query, s.queries, 0, argument.shape()[3]);
    else
      covered.add(s.entry, s.first_key, s.keys, 0, argument.shape()[3]);
  }
  return covered.others();
}

void clear_padding(const Problem& c, Reply& reply) {
  for (const Gradient gradient : every_gradient) {
    Values& found = reply.gradients[static_cast<std::size_t>(gradient)];
    if (!found.present() || !found.is<Tensor>()) continue;
    for (const std::int64_t e : padding_of(c, gradient)) found.tensor().set(e, 0.0);
  }
}

}  // namespace attest

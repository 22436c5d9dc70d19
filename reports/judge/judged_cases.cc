#include "reports/judge/judged_cases.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/problem/edge.h"
#include "properties/generators/stream.h"

namespace attest {
namespace {

constexpr std::string_view definition = "attention.oracle";
/// Of larger ones a second call costs more than it shows.
constexpr std::int64_t most_elements_repeated = 1 << 16;

/// Rows along the last axis but one, in each slice of the axes before.
struct Rows {
  std::span<std::byte> bytes;
  std::size_t slice, row;  ///< bytes of each
};
Rows rows_of(Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const std::size_t row = static_cast<std::size_t>(shape[shape.rank() - 1]) * size_of(tensor.dtype());
  return {tensor.bytes(), static_cast<std::size_t>(shape[shape.rank() - 2]) * row, row};
}

void rotate_rows(Tensor& tensor) {
  const auto [bytes, slice, row] = rows_of(tensor);
  if (slice == 0) return;
  for (std::size_t begin = 0; begin < bytes.size(); begin += slice) {
    const auto part = bytes.subspan(begin, slice);
    std::rotate(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(row), part.end());
  }
}

/// The sign of an IEEE number is the highest bit of its last byte, whatever the format.
void turn_sign(std::span<std::byte> element) {
  element.back() ^= std::byte{0x80};
}

template <class Which>
void turn_signs(Tensor& tensor, Which&& is_turned) {
  const auto [bytes, slice, row] = rows_of(tensor);
  const std::size_t size = size_of(tensor.dtype());
  if (slice == 0 || row == 0) return;
  for (std::size_t at = 0; at < bytes.size(); at += size)
    if (is_turned(at % slice / row, at % row / size)) turn_sign(bytes.subspan(at, size));
}

std::int64_t elements_of(const Case& c) {
  std::int64_t elements = 0;
  for (const Tensor& tensor : c.tensors) elements += tensor.elements();
  return elements;
}

}  // namespace

Case repeated(Case c, Repeat how, std::uint64_t seed) {
  Tensor& v = c[Slot::v];
  switch (how) {
    case Repeat::again:
    case Repeat::count:
      set_edge(c, edge_of(c) == Edge::front ? Edge::behind : Edge::front);
      break;
    case Repeat::values_rotated:
      rotate_rows(v);
      break;
    case Repeat::keys_rotated:
      rotate_rows(c[Slot::k]);
      break;
    case Repeat::queries_rotated:
      rotate_rows(c[Slot::q]);
      break;
    case Repeat::column_negated: {
      const std::int64_t columns = v.shape()[v.shape().rank() - 1];
      const std::size_t turned = columns == 0 ? 0 : static_cast<std::size_t>(Stream(seed).below(columns));
      turn_signs(v, [&](std::size_t, std::size_t column) { return column == turned; });
      break;
    }
    case Repeat::signs_turned:
      turn_signs(v, [&](std::size_t row, std::size_t) { return row % 2 == seed % 2; });
      break;
  }
  return c;
}

std::int64_t most_cells_of_a_dtype(const Contract& contract) {
  std::int64_t most = 0;
  for (const DType dtype : contract.law.dtypes)
    most = std::max<std::int64_t>(most, std::ranges::count(contract.cells, dtype, &ContractCell::dtype));
  return most;
}

JudgedCases::JudgedCases(const Contract& contract, std::uint64_t seed)
    : contract_(contract),
      seed_(seed),
      shapes_(contract.other_shapes ? default_shapes : Shapes{LargeCases::all, contract.shapes}) {
  for (std::size_t i = 0; i < contract.cells.size(); ++i) {
    const DType dtype = contract.cells[i].dtype;
    std::map<std::int64_t, std::size_t>& taken = cells_[dtype];
    cells_of_[dtype].push_back(i);
    const auto of_dtype = std::ranges::count(contract.cells, dtype, &ContractCell::dtype);
    Stream stream(case_seed(seed, "judge.cells", dtype, static_cast<std::int64_t>(i)));
    // A case may be one of which the definition says nothing: twice, where at least half of the places stay free.
    for (int copy = 0; copy < (contract.cases >= 4 * of_dtype ? 2 : 1); ++copy) {
      std::int64_t k = stream.below(contract.cases);
      while (taken.contains(k)) k = stream.below(contract.cases);
      taken.emplace(k, i);
    }
  }
}

std::optional<std::size_t> JudgedCases::cell_at(const Property& property, DType dtype, std::int64_t k) const {
  const auto of_dtype = cells_of_.find(dtype);
  if (property.name != definition || of_dtype == cells_of_.end()) return std::nullopt;
  const std::vector<std::size_t>& all = of_dtype->second;
  if (k >= contract_.cases) return all[static_cast<std::size_t>(k - contract_.cases) % all.size()];
  const std::map<std::int64_t, std::size_t>& secret = cells_.at(dtype);
  const auto place = secret.find(k);
  return place == secret.end() ? std::nullopt : std::optional(place->second);
}

Case JudgedCases::first(const Property& property, DType dtype, std::int64_t k) const {
  const std::optional<std::size_t> at = cell_at(property, dtype, k);
  if (!at) return generate(property, dtype, seed_, k, shapes_);
  const ContractCell& cell = contract_.cells[*at];
  Case c =
      case_of(contract_.law, contract_.shapes[cell.shape], dtype, cell.form, case_seed(seed_, "judge.cell", dtype, k));
  c.provenance.seed = std::to_string(seed_);
  c.provenance.k = std::to_string(k);
  return c;
}

Case JudgedCases::operator()(const Property& property, DType dtype, std::int64_t k) const {
  Case c = first(property, dtype, k);
  if (!is_oracle(property.name) || k == 0) return c;
  Stream stream(case_seed(seed_, "judge.repeats", dtype, k));
  if (cell_at(property, dtype, k) || !stream.one_in(period_of_repeats)) return c;
  const std::int64_t back = stream.one_in(2) ? 1 : stream.between(1, std::min(k, most_back));
  Case before = first(property, dtype, k - back);
  if (elements_of(before) > most_elements_repeated) return c;
  const auto how = static_cast<Repeat>(stream.below(static_cast<std::int64_t>(Repeat::count)));
  before = repeated(std::move(before), how, stream.next());
  before.provenance.k = std::to_string(k);
  // It was not drawn by its words any more.
  before.provenance.kinds.reset();
  return before;
}

}  // namespace attest

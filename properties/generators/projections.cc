#include <cmath>
#include <utility>

#include "properties/generators/fill.h"

namespace attest {
namespace {

double entry(MatrixKind kind, Stream& stream, const Format& format) {
  switch (kind) {
    case MatrixKind::gaussian_ten:
      return 10.0 * stream.gaussian();
    case MatrixKind::integers:
      return static_cast<double>(stream.between(-2, 2));
    case MatrixKind::powers_of_two:
      return power_of_two(stream, format, -3, 2);
    case MatrixKind::heavy:
      return stream.heavy();
    default:
      return stream.gaussian();
  }
}

/// Of MatrixKind::huge, for all tokens of a case: the exponent of q's and k's entries, so that scores come to the edge
/// of the domain of definition and rarely beyond, or that of v's, so that sums of values do.
int huge_exponent(const Recipe& recipe, Slot slot, const Format& format) {
  const int largest = std::ilogb(format.largest);
  Stream stream(recipe.seed ^ (slot == Slot::v ? 0x68756765U : 0x65677568U));
  return static_cast<int>(slot == Slot::v ? stream.between(largest / 2, largest - 1)
                                          : stream.between(largest / 4, largest / 2 + 1));
}

/// Tokens [batch, rows, columns].
Tensor tokens(const Recipe& recipe, Slot slot, std::int64_t rows, std::int64_t columns) {
  const Shape shape{recipe.batch, rows, columns};
  std::vector<double> x(static_cast<std::size_t>(shape.elements()), 0.0);
  Stream stream = stream_of(recipe, slot);
  const Format& format = format_of(recipe.dtype);
  const auto width = static_cast<std::size_t>(columns);
  const int exponent = recipe.matrices == MatrixKind::huge ? huge_exponent(recipe, slot, format) : 0;
  for (std::size_t row = 0; row < x.size() / width; ++row) {
    const std::span<double> token = std::span(x).subspan(row * width, width);
    if (recipe.matrices == MatrixKind::zeros) continue;
    if (recipe.matrices == MatrixKind::one_hot) {
      token[static_cast<std::size_t>(stream.below(columns))] = 1.0;
    } else if (recipe.matrices == MatrixKind::equal_tokens && slot != Slot::q && row > 0) {
      std::copy(x.begin(), x.begin() + columns, token.begin());
    } else {
      for (double& value : token) value = std::ldexp(entry(recipe.matrices, stream, format), exponent);
    }
  }
  return stored(recipe.dtype, shape, x);
}

/// A weight matrix [rows, columns]; sigma 1/sqrt(rows), or the kind's own numbers.
Tensor weights(const Recipe& recipe, Slot slot, std::int64_t rows, std::int64_t columns) {
  const Shape shape{rows, columns};
  std::vector<double> w(static_cast<std::size_t>(shape.elements()));
  Stream stream = stream_of(recipe, slot);
  const Format& format = format_of(recipe.dtype);
  const double sigma = 1.0 / std::sqrt(static_cast<double>(rows));
  for (std::size_t at = 0; at < w.size(); ++at) {
    switch (recipe.matrices) {
      case MatrixKind::integers:
      case MatrixKind::powers_of_two:
        w[at] = entry(recipe.matrices, stream, format);
        break;
      case MatrixKind::identity:
        w[at] = at / static_cast<std::size_t>(columns) == at % static_cast<std::size_t>(columns) ? 1.0 : 0.0;
        break;
      default:
        w[at] = sigma * stream.gaussian();
    }
  }
  return stored(recipe.dtype, shape, w);
}

Tensor row(const Recipe& recipe, Slot slot, std::int64_t columns) {
  std::vector<double> b(static_cast<std::size_t>(columns));
  Stream stream = stream_of(recipe, slot);
  for (double& value : b) value = entry(recipe.matrices, stream, format_of(recipe.dtype));
  return stored(recipe.dtype, {columns}, b);
}

}  // namespace

void fill_multihead(const Recipe& recipe, Case& c) {
  const std::int64_t key_columns = std::int64_t{recipe.heads} * recipe.dk;
  const std::int64_t value_columns = std::int64_t{recipe.heads} * recipe.dv;
  c.heads = recipe.heads;
  c[Slot::q] = tokens(recipe, Slot::q, recipe.queries, recipe.c_q);
  const bool self = recipe.self_attention;
  c[Slot::k] = self || recipe.one_tensor == OneTensor::queries_and_keys
                   ? c.q()
                   : tokens(recipe, Slot::k, recipe.keys, recipe.c_k);
  c[Slot::v] = self || recipe.one_tensor == OneTensor::keys_and_values
                   ? c.k()
                   : tokens(recipe, Slot::v, recipe.keys, recipe.c_v);
  c[Slot::w_q] = weights(recipe, Slot::w_q, recipe.c_q, key_columns);
  c[Slot::w_k] = weights(recipe, Slot::w_k, recipe.c_k, key_columns);
  c[Slot::w_v] = weights(recipe, Slot::w_v, recipe.c_v, value_columns);
  if (recipe.output_projection) c[Slot::w_o] = weights(recipe, Slot::w_o, value_columns, recipe.d_o);
  if (recipe.biases) {
    const std::int64_t out_columns = recipe.output_projection ? recipe.d_o : value_columns;
    std::uint32_t left_out = recipe.left_out_biases;
    for (const auto& [slot, columns] : {std::pair(Slot::b_q, key_columns),
                                        {Slot::b_k, key_columns},
                                        {Slot::b_v, value_columns},
                                        {Slot::b_o, out_columns}}) {
      if (left_out % 2 == 0) c[slot] = row(recipe, slot, columns);
      left_out /= 2;
    }
  }
  if (recipe.key_value_bias) {
    c[Slot::bias_k] = row(recipe, Slot::bias_k, key_columns);
    c[Slot::bias_v] = row(recipe, Slot::bias_v, value_columns);
  }
}

}  // namespace attest

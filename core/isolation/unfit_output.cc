#include "core/isolation/unfit_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace attest::process {
namespace {

/// Its axes, outermost first. A token of out is a query.
std::span<const std::string_view> axes_of_output(Operation operation) {
  static constexpr std::array<std::string_view, 4> attention{"batch", "heads", "tokens", "dim"};
  static constexpr std::array<std::string_view, 3> multihead{"batch", "tokens", "channels"};
  if (operation == Operation::attention) return attention;
  return multihead;
}

/// The axes in another order that gives the shape, where there is one and no other: "[batch, tokens, heads, dim]".
std::string reordered(const Shape& found, const Shape& due, std::span<const std::string_view> axes) {
  std::vector<int> order(static_cast<std::size_t>(due.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::string> fitting;
  while (found.rank() == due.rank() && std::ranges::next_permutation(order).found) {
    std::vector<std::string_view> named;
    bool fits = true;
    for (int axis = 0; axis < due.rank(); ++axis) {
      const int from = order[static_cast<std::size_t>(axis)];
      fits = fits && found[axis] == due[from];
      named.push_back(axes[static_cast<std::size_t>(from)]);
    }
    if (fits) fitting.push_back(fmt::format("[{}]", fmt::join(named, ", ")));
  }
  return fitting.size() == 1 ? fitting.front() : std::string();
}

std::string looks_like(const std::string& what) {
  return ": it looks like " + what;
}

}  // namespace

std::string likeness(const Tensor& found, const Case& c) {
  for (const Slot slot : {Slot::q, Slot::k, Slot::v})
    if (found == c[slot]) return fmt::format(": it is {} itself", name_of(slot));
  const Shape due = c.out_shape(), shape = found.shape();
  if (std::string order = reordered(shape, due, axes_of_output(c.operation)); !order.empty()) return looks_like(order);
  if (c.operation == Operation::multihead) return {};
  const std::int64_t batch = due[0], heads = due[1], queries = due[2], dim = due[3], keys = c.k().shape()[2];
  if (shape == Shape{batch, heads, queries, keys}) return looks_like("the weights [batch, heads, queries, keys]");
  if (shape == Shape{batch, heads, keys, dim}) return looks_like("a row for every key, not for every query");
  if (shape == Shape{batch, queries, heads * dim}) return looks_like("[batch, tokens, heads * dim]");
  if (shape == Shape{batch * heads, queries, dim}) return looks_like("[batch * heads, tokens, dim]");
  return {};
}

}  // namespace attest::process

#include "properties/arrangement/within_limits.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"

namespace attest {
namespace {

/// The least multiple of `step` that is allowed; `step` where none is.
std::int64_t least_multiple(const AllowedExtents& allowed, std::int64_t step) {
  const std::int64_t multiple = std::lcm(step, allowed.multiple);
  const AllowedExtents both{
      .multiple = multiple, .least = std::max<std::int64_t>(1, allowed.least), .most = allowed.most};
  return both.from(1).value_or(step);
}

}  // namespace

Indices queries_left(const Case& c) {
  constexpr std::int64_t most_left = 16;
  const std::int64_t M = queries_of(c), i = argument(c, "i", M);
  if (in_a_proof() || M < 3 || argument(c, "deleted", 2) == 0) return all_but(M, i);
  Indices left = permutation_argument(c, "left", M);
  left.resize(static_cast<std::size_t>(
      argument(c, "alone", 2) == 0 ? 1 : 1 + argument(c, "count", std::min(most_left, M - 1))));
  std::ranges::sort(left);
  return left;
}

Indices filled_up(const Kernel& kernel, const Case& c, const Indices& rows) {
  const Manifest& m = kernel.manifest();
  const std::int64_t asked = std::ssize(rows);
  const std::int64_t least = m.same_lengths ? std::max(asked, keys_of(c)) : asked;
  const std::int64_t count = rows.empty() ? 0 : allowed_queries(m).from(least).value_or(asked);
  Indices filled;
  for (const std::int64_t i : cycled(asked, count)) filled.push_back(rows[static_cast<std::size_t>(i)]);
  return filled;
}

Result run_rows(Kernel& kernel, const Case& c, const Indices& rows) {
  const Indices filled = filled_up(kernel, c, rows);
  if (filled == all_of(queries_of(c))) return run(kernel, c);
  const Result out = run(kernel, with_queries(c, filled));
  return filled.size() == rows.size() ? out : out.queries(all_of(std::ssize(rows)));
}

AllowedExtents keys_within(const Kernel& kernel) {
  const Manifest& m = kernel.manifest();
  return m.same_lengths ? allowed_tokens(m) : allowed_keys(m);
}

Deletion deletion_of(const Kernel& kernel, const Case& c, std::int64_t s) {
  const AllowedExtents allowed = keys_within(kernel);
  const std::int64_t N = keys_of(c);
  std::int64_t count = 1;
  while (count < N && !allowed.has(N - count)) ++count;
  const bool is_allowed = count < N;
  Deletion deletion{.gone = {}, .rest = {}, .is_allowed = is_allowed};
  for (std::int64_t j = 0; j < N; ++j) {
    const bool gone = is_allowed ? (j - s + N) % N < count : j == s;
    (gone ? deletion.gone : deletion.rest).push_back(j);
  }
  return deletion;
}

Result run_without(Kernel& kernel, const Case& c, const Deletion& deletion, const Indices& rows) {
  const Case shorter = with_keys(c, deletion.rest);
  const bool as_many = !kernel.manifest().same_lengths || queries_of(c) == keys_of(shorter);
  return as_many ? run(kernel, shorter).queries(rows) : run_rows(kernel, shorter, rows);
}

Case with_keys_alone(const Kernel& kernel, const Case& c, const Indices& keys) {
  const std::int64_t asked = std::ssize(keys);
  const std::int64_t count =
      kernel.manifest().same_lengths ? queries_of(c) : allowed_keys(kernel.manifest()).from(asked).value_or(asked);
  if (count <= asked) return keys == all_of(keys_of(c)) ? c : with_keys(c, keys);
  Indices filled;
  for (const std::int64_t j : cycled(asked, count)) filled.push_back(keys[static_cast<std::size_t>(j)]);
  Case alone = with_keys(with_some_mask(c), filled);
  for (std::int64_t j = asked; j < count; ++j) alone = hide(std::move(alone), -1, j);
  return alone;
}

Indices rows_beside(const Kernel& kernel, const Case& c, std::int64_t keys) {
  const std::int64_t M = queries_of(c);
  return all_of(kernel.manifest().same_lengths ? std::min(M, keys) : M);
}

Lengths fewest(const Kernel& kernel, Lengths multiples) {
  const Manifest& m = kernel.manifest();
  if (m.same_lengths) {
    const std::int64_t tokens = least_multiple(allowed_tokens(m), std::lcm(multiples.queries, multiples.keys));
    return {tokens, tokens};
  }
  return {least_multiple(allowed_queries(m), multiples.queries), least_multiple(allowed_keys(m), multiples.keys)};
}

}  // namespace attest

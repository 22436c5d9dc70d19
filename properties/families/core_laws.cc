#include "properties/families/core_laws.h"

#include <fmt/format.h>

#include <functional>
#include <vector>

#include "core/definition/mask.h"
#include "core/oracle/wide_oracle.h"
#include "core/problem/sight.h"
#include "properties/language/answer.h"
#include "properties/language/core_agreement.h"
#include "properties/language/skip_reasons.h"

namespace attest {
namespace {

/// Empty when the call throws a UsageError whose line names both.
std::string not_refused(const std::function<void()>& call, const std::string& one, const std::string& other) {
  try {
    call();
  } catch (const UsageError& error) {
    const std::string line = error.what();
    if (line.find(one) != std::string::npos && line.find(other) != std::string::npos) return {};
    return fmt::format("\"{}\" does not name {} and {}", line, one, other);
  }
  return fmt::format("a mask {} for scores {} was taken", one, other);
}

const Verdict no_keys{.outcome = Outcome::excused, .reason = "N = 0, which the core refuses"};

Verdict same(const Values& left, const Values& right) {
  if (same_bits(left, right)) return {};
  return violated(Violation::bits, "the column form and the row form differ in bits");
}

/// The two forms of attention multiply the same numbers in the other order. Where that may make another number, both
/// are within the bound of the one exact answer.
Verdict same_attention(const CoreFunctions& core, const Case& c, const Values& columns, const Values& rows) {
  const auto* const own = rows.as<Enclosures>();
  if (core.commutes || own == nullptr) return same(columns, rows);
  std::vector<long double> allowed;
  for (const WideBound& bound : wide_bounds(c, own->rounding())) allowed.push_back(2 * bound.allowed);
  return agree_in_core(columns, rows, allowed);
}

}  // namespace

Verdict on_core(const Kernel& kernel, const Case& c, Verdict (*check)(const CoreFunctions& core, const Case& c)) {
  if (const CoreFunctions* const core = core_functions(kernel.id())) return check(*core, c);
  return {.outcome = Outcome::skipped,
          .reason = fmt::format("{}; {} is not the core on one of its scalars", why_of_the_core, kernel.id())};
}

Verdict fixed_length(const CoreFunctions& core, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  if (N == 0) return no_keys;
  for (const auto& [rows, keys] : {std::pair{M + 1, N}, std::pair{M, N + 1}, std::pair{M + 2, N + 1}}) {
    Case other = c;
    const DType dtype = c.mask().present() ? c.mask().dtype() : c.dtype();
    other[Slot::mask] = Tensor(dtype, {1, 1, rows, keys});
    std::string fault =
        not_refused([&] { validate(other); }, fmt::format("[1, 1, {}, {}]", rows, keys), fmt::format("{}, {}]", M, N));
    if (fault.empty())
      fault = not_refused([&] { (void)core.attention(other); }, fmt::format("{}x{}", rows, keys),
                          fmt::format("{}x{}", M, N));
    if (!fault.empty()) return violated(Violation::bits, fault);
  }
  return {};
}

Verdict column_form(const CoreFunctions& core, const Case& c) {
  const std::int64_t n = queries_of(c);
  if (n == 0) return no_keys;
  Tensor allowed(DType::boolean, {n, n});
  const BoolMatrix causal = causal_columns(n);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      if (causal(i, j) != (i <= j))
        return violated(Violation::bits, fmt::format("002's mask at ({}, {}) is not i <= j", i, j));
      allowed.set(i * n + j, i <= j ? 1.0 : 0.0);
    }
  }
  return same_attention(core, c, core.attention_columns(c, allowed), core.attention(c));
}

Verdict columns_are_transpose(const CoreFunctions& core, const Case& c) {
  if (keys_of(c) == 0) return no_keys;
  const Tensor& mask = c.mask();
  const Tensor allowed = mask.present() ? transposed(mask.reshaped({mask.shape()[2], mask.shape()[3]})) : Tensor();
  return same_attention(core, c, core.attention_columns(c, allowed), core.attention(c));
}

Verdict columnwise_softmax(const CoreFunctions& core, const Case& c) {
  const Shape q = c.q().shape();
  const Tensor a = c.q().reshaped({q[0] * q[1] * q[2], q[3]});
  if (a.elements() == 0) return {};
  return same(core.softmax_columns(transposed(a)), transposed(core.softmax_rows(a)));
}

}  // namespace attest

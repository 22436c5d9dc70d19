#include "properties/language/domain.h"

#include <fmt/format.h>

#include <cmath>

#include "core/kernel/formal.h"
#include "core/support/infinity.h"
#include "core/support/printed.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

Verdict identical_lse(Sides sides) {
  const Expressions &one = sides.left.run().formal_lse(), &other = sides.right.run().formal_lse();
  const std::int64_t width = sides.left.shape()[sides.left.shape().rank() - 1];
  const std::int64_t left_dv = sides.left.run().shape()[3], right_dv = sides.right.run().shape()[3];
  for (std::int64_t e = 0; e < sides.left.elements(); e += width) {
    const Expression &x = one[sides.left.origin(e) / left_dv], &y = other[sides.right.origin(e) / right_dv];
    if (x.kind() == ProofKind::undefined || y.kind() == ProofKind::undefined) continue;
    if (!GenericInputs::current().identical(x, y))
      return violated(Violation::lse, fmt::format("lse {} is another one", sides.left.origin(e) / left_dv));
  }
  return {};
}

bool in_domain(const Result& result, std::int64_t e) {
  const AllowedError bound = result.run().bound(result.origin(e));
  return bound.finite_required && !is_of_row(bound.excuse) && bound.excuse != Excuse::overflow;
}

}  // namespace

Match match_of_dead_values(const Kernel& kernel) {
  if (!kernel.manifest().claims_to(Claim::deterministic)) return Match::bound;
  return kernel.manifest().claims_to(Claim::ignores_dead_values) ? Match::bits : Match::values;
}

Verdict agree_in_domain(Sides sides, Match match) {
  const auto& [left, right] = sides;
  Verdict all = agree({left, right}, match, /*about_bits=*/true);
  if (match == Match::bound || all.outcome != Outcome::violated || left.shape() != right.shape()) return all;
  Indices inside;
  for (std::int64_t e = 0; e < left.elements(); ++e)
    if (in_domain(left, e) && in_domain(right, e)) inside.push_back(e);
  if (inside.empty()) return {.outcome = Outcome::excused, .reason = "fully masked or outside the domain"};
  const Shape shape{static_cast<std::int64_t>(inside.size())};
  Verdict judged = agree({left.at(shape, inside), right.at(shape, inside)}, match);
  if (judged.element >= 0) judged.element = inside[static_cast<std::size_t>(judged.element)];
  return judged;
}

Verdict agree_in_lse_in_domain(Sides sides, Match match) {
  const Run &left = sides.left.run(), &right = sides.right.run();
  if (left.has_formal_lse() && right.has_formal_lse()) return identical_lse(sides);
  if (!left.lse().present() || !right.lse().present()) return {};
  const std::int64_t width = sides.left.shape()[sides.left.shape().rank() - 1];
  const std::int64_t left_dv = left.shape()[3], right_dv = right.shape()[3];
  for (std::int64_t e = 0; e < sides.left.elements(); e += width) {
    const std::int64_t row = sides.left.origin(e) / left_dv, other = sides.right.origin(e) / right_dv;
    const double x = left.lse()[row], y = right.lse()[other];
    const RowBound &a = left.row_bound(row), &b = right.row_bound(other);
    if (x == y || a.excuse != Excuse::none || b.excuse != Excuse::none) continue;
    const double both = a.lse_allowed + b.lse_allowed;
    if (!(both < infinity)) continue;  // there is no bound, and so no number that is asked for
    const double allowed = match == Match::bound ? both : 0;
    // The difference itself rounds by a relative 2^-53.
    if (std::fabs(x - y) * (1 - 0x1p-52) <= allowed) continue;
    return violated(Violation::lse, fmt::format("lse {} is {:.17g} on one side and {:.17g} on the other; {:.6g} is "
                                                "allowed",
                                                row, printed(x), printed(y), allowed));
  }
  return {};
}

}  // namespace attest

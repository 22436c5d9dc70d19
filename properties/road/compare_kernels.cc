#include "properties/road/compare_kernels.h"

#include <fmt/format.h>

#include "properties/catalogue/property.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/road/redeclared_kernel.h"

namespace attest {
namespace {

/// A kernel that knows what it is compared with, so that check_case and shrink take it like any other.
class Compared final : public RedeclaredKernel {
 public:
  Compared(Kernel& kernel, Kernel& other) : RedeclaredKernel(kernel, kernel.manifest()), other_(other) {}
  [[nodiscard]] Kernel& other() { return other_; }

 private:
  Kernel& other_;
};

Verdict of_the_other(const Kernel& other, const std::string& reason) {
  return {.outcome = Outcome::skipped, .reason = fmt::format("{} {}", other.id(), reason)};
}

Verdict compare(Kernel& kernel, const Case& c) {
  Kernel& other = static_cast<Compared&>(kernel).other();
  if (const std::string why = why_unsupported(other.manifest(), c); !why.empty()) return of_the_other(other, why);
  const Result left = run_with_lse(kernel, c);
  try {
    const Result right = run_with_lse(other, c);
    const Verdict out = agree({left, right}, Match::bound, /*about_bits=*/true);
    // Without an output of a dtype there is no lse either.
    return worse_of({out, agree_in_lse({left, right}, Match::bound)});
  } catch (const NoAnswer& none) {
    return of_the_other(other, "gives no output: " + none.verdict.reason);
  }
}

Property comparison(Operation operation) {
  Property property;
  property.name = "against";
  property.operation = operation;
  property.under = "any";
  property.check = compare;
  return property;
}

}  // namespace

Verdict check_against(Kernel& kernel, Kernel& other, const Case& c) {
  Compared compared(kernel, other);
  return check_case(comparison(c.operation), compared, c);
}

Case shrink_against(Kernel& kernel, Kernel& other, const Case& c, int budget) {
  Compared compared(kernel, other);
  return shrink(comparison(c.operation), compared, c, budget);
}

}  // namespace attest

#include "properties/language/own_precision.h"

#include <utility>

#include "core/oracle/wide_oracle.h"
#include "properties/language/answer.h"
#include "properties/language/compared.h"

namespace attest {

Verdict and_at_own_precision(Verdict rounded, Kernel& kernel, const Case& c) {
  if (!kernel.is_wide()) return rounded;
  const Values out = answer(kernel, c, std::nullopt, /*want_lse=*/false).out;
  const auto* const own = out.as<Enclosures>();
  if (own == nullptr) return rounded;
  return worse_of({std::move(rounded), with_element(judge_wide(c, *own), c, out)});
}

}  // namespace attest

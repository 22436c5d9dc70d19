// What can be asked of the service.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/support/json_reader.h"

namespace attest {

/// A request that was read, and the case file that came with it.
struct Request {
  const JsonObject& said;
  std::string_view file;
};

/// Members of a JSON object, and a safetensors file that goes back through memory; empty: none does.
struct Answer {
  std::string members;
  std::string file{};
};

/// The keys that any request may have beside "ask" and "bytes".
[[nodiscard]] std::span<const std::string_view> request_keys();

/// "bounds": what is exact and what is allowed. Of the case in the file, by the "manifest" (a JSON object with name and
/// dtypes) for an output of the dtype "out_dtype" (the case's own): tensors lower, upper and bound (f64, of the
/// output's shape, or [rows, dv] with "rows", flat indices), `judged` (bool, where there is a verdict on a number),
/// `finite` (bool, where it must be finite), lse and lse_bound (f64, of its shape without the last axis, of attention);
/// and "excused", how many elements there is no verdict on, by the word for why. "narrow": enclosures as narrow as
/// doubles are.
[[nodiscard]] Answer answer_bounds(const Request& request);

/// "judge": the verdict on the case's answer, its tensor "found", by "manifest", of "rows" rows (0: of all; without
/// it of all, or of a sample where there are very many).
[[nodiscard]] Answer answer_judge(const Request& request);

/// "case": the case in the file, valid and with every key it may have, as a case file again; or, where "property" is
/// given, its case "k" in "dtype" of a run of "seed" (generate in property.h), brought to the limits of "manifest"
/// where there is one, with production shapes as "large" says (LargeCases; none) or "shapes" (as --shape has them).
/// It gets simpler as is asked, by steps of shrinking (simpler_cases.h): one "head" of [head], at most so many indices
/// of each axis in "crop", those of form_steps in "forms", and of tensor i the simplification "numbers"[i], where there
/// is one. Beside it its "text" for people.
[[nodiscard]] Answer answer_case(const Request& request);

}  // namespace attest

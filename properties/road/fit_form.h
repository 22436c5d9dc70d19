// Mask, causal form and strides that a manifest takes in the place of those of a case: the second part of a projection
// (project.cc).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/kernel/manifest.h"
#include "core/problem/case.h"

namespace attest {

/// Puts a case of lengths in a form that the manifest offers, where there is a choice: as it is or packed, as the
/// property that it was drawn for asks, or by the case itself.
void fit_sequences(Case& c, const Manifest& m);

/// Puts the keys of a case of attention in the pages or rows of a cache, as the property that it was drawn for asks and
/// the manifest takes them, or by the case itself.
void fit_caches(Case& c, const Manifest& m);

/// Tries the forms that a case may be given, the nearest first: its causal form as it is, another that the manifest
/// lists, or none; its mask as it is, the other kind that says the same (a boolean mask of 0 and -inf), none, or one
/// that hides nothing where there was none. Kinds say what became of it. Ends as soon as `take` says so, and is true
/// then.
bool try_forms(const Case& c, const Manifest& manifest, const std::function<bool(Case)>& take);

/// Puts k and v of an attention problem in formats that the manifest lists beside q's, those of the case's own choice:
/// each number rounded, and the largest one where it is beyond. As it is where the manifest lists none.
/// A drawn case says which, as "kv-dtypes:" and kind_of.
void fit_kv_dtypes(Case& c, const Manifest& manifest);
[[nodiscard]] Case in_kv_dtypes(Case c, const Manifest& manifest);
/// "f16-and-bf16".
[[nodiscard]] std::string kind_of(const KvDtypes& formats);

/// Without a variant of arguments, and without the kinds that say so.
void leave_out(Case& c, std::string_view variant);
/// Without d_lse.
void leave_out_gradient_by_lse(Case& c);

/// What a kernel does not take and no property's theorem depends on: the scale, where it is 1/sqrt(dk) only; strides,
/// without which or with a gap in the place of a stride of 0; the convention of an additive mask.
void fit_rest(Case& c, const Manifest& manifest);

}  // namespace attest

// The steps by which a case gets simpler: shrinking (shrink.cc) tries them with a verdict in hand, a RapidCheck
// generator (<attest/rapidcheck.h>) offers them as its shrinks.
#pragma once

#include <functional>
#include <vector>

#include "core/problem/case.h"
#include "core/problem/selection.h"

namespace attest {

/// Makes a valid case simpler and leaves it valid; false, and nothing changed, where there is nothing to do.
using Step = std::function<bool(Case&)>;

/// Axes that must change together move as one.
using AxisGroup = std::vector<Indices Selection::*>;
/// In the order in which shrinking takes indices away; heads, which have rules of their own, are not among them.
[[nodiscard]] const std::vector<AxisGroup>& axes_of(Operation operation);

/// Whether an argument is not neutral that is worth drawing near the length of one of these axes (ScalarField::near).
[[nodiscard]] bool has_near(const Case& c, const AxisGroup& axis);
/// Takes `gone` from each such number, down to the least that it may be: where the axis gets shorter by so much, it
/// stays as near to its end as it was.
void shorten_near(Case& c, const AxisGroup& axis, std::int64_t gone);

/// Sets `selection` to that one head with the key-value head that it reads.
void keep_head(const Extents& e, Selection& selection, std::int64_t head);

/// Only one key-value head, with every head that reads it.
void keep_group(const Extents& e, Selection& selection, std::int64_t kv_head);

/// Only the first few of the heads that read each key-value head.
void keep_first_of_groups(const Extents& e, Selection& selection, std::int64_t few);
/// The first index of every axis.
[[nodiscard]] Selection first_of_all(const Case& c);

/// Layout, edge, mask, arguments and biases, one at a time: what a person has to read of a case beside its extents and
/// numbers. The same for every case.
[[nodiscard]] const std::vector<Step>& form_steps(Operation operation);
/// No mask, row-major, and every argument that is neither an extent nor a number neutral.
void make_plain(Case& c);

/// Every step from this case, the boldest first: fewer heads, shorter axes, a plainer form, simpler numbers. There are
/// finitely many, and no sequence of steps goes on for ever: each takes elements away, or else makes the form plainer,
/// or else lowers the complexity (simplify.h) of the numbers.
[[nodiscard]] std::vector<Step> steps_from(const Case& c);

}  // namespace attest

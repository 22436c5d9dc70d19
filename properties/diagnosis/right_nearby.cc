#include "properties/diagnosis/right_nearby.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "core/kernel/limits.h"
#include "core/oracle/oracle.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/road/fit_form.h"
#include "properties/road/simpler_cases.h"

namespace attest {
namespace {

/// Nothing where the kernel is not to answer it, and where it is late: each further case may be as well. A call that
/// fails or ends the process is as wrong as any answer.
std::optional<Verdict> judged(Kernel& kernel, const Case& c) {
  const Manifest& manifest = kernel.manifest();
  const Case asked = in_kv_dtypes(c, manifest);
  if (!why_unsupported(manifest, asked).empty()) return std::nullopt;
  const Reply reply = kernel.run(asked, asked.dtype(), asks_lse(manifest, asked, /*wanted=*/true));
  if (reply.status == CallStatus::failed || reply.status == CallStatus::died)
    return Verdict{.outcome = Outcome::violated, .violation = Violation::failed};
  if (reply.status != CallStatus::ok || !reply.out.present()) return std::nullopt;
  return judge_attention(asked, reply.out, reply.lse, manifest.arithmetic_for(asked));
}

using Beside = std::pair<std::string, Case>;

/// One less of one axis.
void shorten(std::vector<Beside>& beside, const Case& c, std::string_view name, Indices Selection::* axis) {
  Selection s = everything(c);
  const auto extent = std::ssize(s.*axis);
  if (extent < 2) return;
  (s.*axis).pop_back();
  beside.emplace_back(fmt::format("{}={}", name, extent - 1), select(c, s));
}

/// `element`: the worst one; nothing where none is known to be.
std::vector<Beside> cases_beside(const Case& c, std::optional<std::int64_t> element) {
  const Extents e = extents_of(c);
  std::vector<Beside> beside;
  shorten(beside, c, "N", &Selection::keys);
  shorten(beside, c, "M", &Selection::queries);
  shorten(beside, c, "dk", &Selection::dk);
  shorten(beside, c, "dv", &Selection::dv);
  // Of a log-sum-exp the element is -1 - row.
  const std::int64_t row = !element ? -1 : *element < 0 ? -1 - *element : *element / e.dv;
  const auto alone = [&](std::string_view what, std::int64_t extent, auto&& keep) {
    if (extent < 2 || row < 0) return;
    Selection s = everything(c);
    keep(s);
    beside.emplace_back(fmt::format("the wrong {} alone", what), select(c, s));
  };
  alone("batch entry", e.batch, [&](Selection& s) { s.batch = {row / e.queries / e.heads}; });
  alone("head", e.heads, [&](Selection& s) { keep_head(e, s, row / e.queries % e.heads); });
  // A row that stands alone stands elsewhere, where positions count.
  if (c.causal == Causal::none && !counts_positions(c))
    alone("query", e.queries, [&](Selection& s) { s.queries = {row % e.queries}; });
  const auto change = [&](std::string words, auto&& apply) {
    Case other = c;
    apply(other);
    beside.emplace_back(std::move(words), std::move(other));
  };
  if (c.mask().present()) change("no mask", [](Case& other) { other[Slot::mask] = Tensor(); });
  if (c.causal != Causal::none) change("no causal form", [](Case& other) { other.causal = Causal::none; });
  const auto without = [&](std::string words, const Variant& variant) {
    if (has_variant(c, variant.name)) change(std::move(words), [&](Case& other) { drop_variant(other, variant.name); });
  };
  without("no window", window_variant);
  without("no chunks", chunk_variant);
  if (c.softcap > 0) change("no softcap", [](Case& other) { other.softcap = 0; });
  if (c[Slot::keep].present()) {
    without("no dropout", dropout_variant);
    if (c.dropout_p > 0) change("a dropout_p of 0", [](Case& other) { other.dropout_p = 0; });
  }
  without("no slopes", alibi_variant);
  without("no factors", descale_variant);
  if (has_variant(c, descale_variant.name) && (c.q_descale_block != 0 || c.kv_descale_block != 0))
    change("no blocks of factors", [](Case& other) { set_block(other, true, 0), set_block(other, false, 0); });
  if (!is_inverse_root(c.scale, e.dk))
    change("the scale 1/sqrt(dk)", [&](Case& other) { other.scale = inverse_root(e.dk); });
  return beside;
}

}  // namespace

std::vector<std::string> right_nearby(Kernel& kernel, const Case& wrong) {
  const Extents e = extents_of(wrong);
  std::vector<std::string> right;
  if (wrong.operation != Operation::attention || e.queries == 0 || e.dv == 0) return right;
  const std::optional<Verdict> verdict = judged(kernel, wrong);
  if (!verdict || verdict->outcome != Outcome::violated) return right;
  const bool known = verdict->violation != Violation::failed;
  for (auto& [words, beside] : cases_beside(wrong, known ? std::optional(verdict->element) : std::nullopt))
    if (const std::optional<Verdict> one = judged(kernel, beside); one && one->outcome == Outcome::held)
      right.push_back(std::move(words));
  return right;
}

}  // namespace attest

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "core/kernel/limits.h"
#include "core/problem/selection.h"
#include "properties/catalogue/property.h"
#include "properties/road/case_budget.h"
#include "properties/road/shrink_budget.h"
#include "properties/road/simpler_cases.h"
#include "properties/road/simplify.h"

namespace attest {
namespace {

/// Greedy descent: a candidate that still shows the violation replaces the current case.
class Shrinker {
 public:
  Shrinker(const Property& property, Kernel& kernel, Case start, const Verdict& verdict, int budget)
      : property_(property),
        kernel_(kernel),
        current_(std::move(start)),
        element_(verdict.compared.size() == 1 && verdict.compared[0].gradient ? verdict.compared[0].element
                                                                              : verdict.element),
        gradient_(verdict.compared.size() == 1 ? verdict.compared[0].gradient : std::nullopt),
        budget_(budget),
        violation_(verdict.violation),
        least_utilisation_(std::min(2.0, verdict.utilisation)),
        infinite_(std::isinf(verdict.utilisation)) {}

  Case shrunk() {
    aim();
    if (is_without_answer(violation_) || violation_ == Violation::not_finite) leap();
    for (bool changed = true; changed && budget_ > 0 && effort_ > 0;) {
      changed = reduce_extents();
      changed |= simplify_form();
      changed |= simplify_numbers();
    }
    return std::move(current_);
  }

 private:
  bool take(Case candidate) {
    if (budget_ <= 0 || effort_ <= 0) return false;
    --budget_;
    effort_ -= cost_of(candidate);
    const Verdict verdict = check_case(property_, kernel_, candidate);
    if (verdict.outcome != Outcome::violated || verdict.violation != violation_) return false;
    if (!(verdict.utilisation >= least_utilisation_) || (infinite_ && !std::isinf(verdict.utilisation))) return false;
    current_ = std::move(candidate);
    return true;
  }

  bool take(Selection selection) {
    keep_widths(current_, selection);
    return take(select(current_, selection));
  }

  /// Only the batch entry, head, row and column of the worst element.
  void aim() {
    if (current_.operation != Operation::attention || element_ < 0) return;
    // Masks and sinks have axes of their own.
    if (gradient_ == Gradient::mask || gradient_ == Gradient::sink) return;
    const Extents e = extents_of(current_);
    const bool of_keys = gradient_ == Gradient::k || gradient_ == Gradient::v,
               has_dk = gradient_ == Gradient::q || gradient_ == Gradient::k;
    const std::int64_t columns = has_dk ? e.dk : e.dv, rows = of_keys ? e.keys : e.queries,
                       heads = of_keys ? e.kv_heads : e.heads;
    const std::int64_t column = element_ % columns, row = element_ / columns % rows,
                       head = element_ / columns / rows % heads, batch = element_ / columns / rows / heads;
    Selection s = everything(current_);
    s.batch = {batch};
    // Of a key the first head of those that read it, or all of them.
    keep_head(e, s, head * (e.heads / heads));
    if (!take(s) && of_keys) {
      keep_group(e, s, head);
      take(s);
    }
    // Rows move under a causal form, so the row is a step of its own.
    s = everything(current_);
    (of_keys ? s.keys : s.queries) = {row};
    take(s);
    s = everything(current_);
    (has_dk ? s.dk : s.dv) = {column};
    take(s);
  }

  /// A kernel that gives no answer, or NaN, mostly does so in any case: the smallest one at once, or the smallest of
  /// its form.
  void leap() {
    // The smallest that the manifest allows, wherever tiles end.
    Manifest limits = kernel_.manifest();
    limits.tiles = {};
    Case smallest = project(select(current_, first_of_all(current_)), limits), plain = smallest;
    make_plain(plain);
    if (!take(std::move(plain))) take(std::move(smallest));
  }

  bool reduce_extents() {
    bool changed = reduce_heads();
    for (const AxisGroup& axis : axes_of(current_.operation)) changed |= reduce(axis);
    return changed;
  }

  bool reduce_heads() {
    bool changed = false;
    const std::int64_t heads = extents_of(current_).heads;
    for (std::int64_t head = 0; heads > 1 && head < heads && !changed; ++head) {
      Selection s = everything(current_);
      keep_head(extents_of(current_), s, head);
      changed = take(std::move(s));
    }
    if (changed || heads < 3) return changed;
    // Two heads, or a key-value head of its own for each: what a wrong head mapping needs.
    Selection s = everything(current_);
    s.heads = {0, heads - 1};
    const Extents e = extents_of(current_);
    if (e.kv_heads > 0) s.kv_heads = {0, e.kv_heads - 1};
    if (take(std::move(s))) return true;
    return e.kv_heads > 0 && reduce_groups(e.kv_heads, heads / e.kv_heads);
  }

  /// One group alone, and fewer heads in it: what a sum over the heads of a group needs.
  bool reduce_groups(std::int64_t groups, std::int64_t size) {
    bool changed = false;
    for (std::int64_t group = 0; groups > 1 && size > 1 && group < groups && !changed; ++group) {
      Selection s = everything(current_);
      keep_group(extents_of(current_), s, group);
      changed = take(std::move(s));
    }
    for (std::int64_t few = 1; few < size; ++few) {
      Selection s = everything(current_);
      keep_first_of_groups(extents_of(current_), s, few);
      if (take(std::move(s))) return true;
    }
    return changed;
  }

  /// Fewer indices of an axis: 1, 2, 3 of them first, then a shorter axis, then without ever smaller chunks.
  bool reduce(const AxisGroup& axis) {
    const auto extent = [&] { return static_cast<std::int64_t>((everything(current_).*axis.front()).size()); };
    const Selection all = everything(current_);
    for (const auto part : axis) {
      if ((all.*part).size() != (all.*axis.front()).size()) return false;
    }
    const auto keep = [&](const Indices& indices) {
      Selection s = everything(current_);
      for (const auto part : axis) s.*part = indices;
      if (take(s)) return true;
      // Where a number must stay near the axis, as the end of a window of all keys, both get shorter together.
      if (!has_near(current_, axis)) return false;
      keep_widths(current_, s);
      Case nearer = select(current_, s);
      shorten_near(nearer, axis, extent() - std::ssize(indices));
      return take(std::move(nearer));
    };
    for (std::int64_t few = 1; few <= 3 && few < extent(); ++few) {
      if (keep(all_of(few))) return true;
    }
    const AllowedExtents allowed = allowed_along(axis);
    const std::optional<std::int64_t> least = allowed.from(1);
    if (least > 3 && least < extent() && keep(all_of(*least))) return true;
    bool changed = shorten(extent(), allowed, keep);
    int attempts = 48;  // so that a long axis leaves something of the budget to the others
    const std::int64_t start = extent();
    for (auto chunk = static_cast<std::int64_t>(
             std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(1, start - 1))));
         chunk >= 1 && attempts > 0; chunk /= 2) {
      for (std::int64_t from = 0; from < extent() && extent() > chunk && attempts > 0; --attempts) {
        Indices rest = all_of(extent());
        const auto first = rest.begin() + from;
        rest.erase(first, first + std::min<std::int64_t>(chunk, rest.end() - first));
        if (keep(rest)) {
          changed = true;
        } else {
          from += chunk;
        }
      }
    }
    return changed;
  }

  [[nodiscard]] AllowedExtents allowed_along(const AxisGroup& axis) const {
    const Manifest& m = kernel_.manifest();
    using S = Selection;
    if (axis == AxisGroup{&S::keys}) return allowed_keys(m);
    if (axis == AxisGroup{&S::queries}) return allowed_queries(m);
    if (axis == AxisGroup{&S::queries, &S::keys}) return allowed_tokens(m);
    if (axis == AxisGroup{&S::dv}) return allowed_value_dims(m);
    const bool of_keys = axis == AxisGroup{&S::dk} || axis == AxisGroup{&S::dk, &S::dv};
    return of_keys ? allowed_head_dims(m) : AllowedExtents();
  }

  /// The first indices of an axis, as few as will do: found by halving, since what goes wrong from some length on needs
  /// that length whichever indices they are, and taking them away piece by piece would not end. More than 3, and as the
  /// manifest allows.
  template <class Keep>
  static bool shorten(std::int64_t extent, const AllowedExtents& allowed, const Keep& keep) {
    bool changed = false;
    for (std::int64_t too_few = 3; extent - too_few > 1;) {
      std::int64_t half = allowed.from(too_few + (extent - too_few) / 2).value_or(extent);
      if (half >= extent) half = allowed.from(too_few + 1).value_or(extent);
      if (half >= extent) break;
      if (keep(all_of(half))) {
        extent = half;
        changed = true;
      } else {
        too_few = half;
      }
    }
    return changed;
  }

  bool simplify_form() {
    bool changed = false;
    for (const Step& step : form_steps(current_.operation)) {
      Case candidate = current_;
      if (step(candidate)) changed |= take(std::move(candidate));
    }
    return changed;
  }

  bool simplify_numbers() {
    bool changed = false;
    for (int slot = 0; slot < slot_count; ++slot) changed |= simplify_tensor(static_cast<Slot>(slot));
    return changed;
  }

  bool simplify_tensor(Slot slot) {
    bool changed = false;
    for (const Simplification simpler : simplifications) {
      Case candidate = current_;
      if (!simplify_all(candidate, slot, simpler)) continue;
      if (take(std::move(candidate))) {
        changed = true;
        break;
      }
    }
    const std::int64_t elements = current_[slot].elements() * (current_[slot].present() ? 1 : 0);
    for (std::int64_t element = 0; elements <= 64 && element < elements; ++element) {
      for (const Simplification simpler : simplifications) {
        Case candidate = current_;
        if (!simplify_one(candidate, slot, element, simpler)) continue;
        if (take(std::move(candidate))) {
          changed = true;
          break;
        }
      }
    }
    return changed;
  }

  const Property& property_;
  Kernel& kernel_;
  Case current_;
  std::int64_t element_;              ///< of out, or of a gradient; -1: none
  std::optional<Gradient> gradient_;  ///< nothing: out
  int budget_;
  /// So many cases of a production shape are not checked: of some ten seconds in all, as cost_of counts.
  double effort_ = 0x1p28;
  Violation violation_;
  double least_utilisation_;
  bool infinite_;
};

}  // namespace

Case shrink(const Property& property, Kernel& kernel, const Case& c, int budget) {
  if (budget < 1) return c;
  const Verdict verdict = check_case(property, kernel, c);
  if (verdict.outcome != Outcome::violated) return c;
  Case result = Shrinker(property, kernel, c, verdict, budget - 1).shrunk();
  result.provenance.shrunk = "yes";
  return result;
}

}  // namespace attest

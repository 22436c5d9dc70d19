#include "properties/language/result.h"

#include <cmath>

#include "core/kernel/formal.h"
#include "core/problem/fields.h"
#include "core/problem/sequences.h"
#include "core/support/infinity.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

/// The arithmetic whose bound is scaled to a wide scalar: the definition in double, nothing rounded to a dtype. Without
/// the refinement that rounding to nearest allows, by which a term below the last bit of a sum costs no more than
/// itself: such a term of double lies far above the last bit of a wider sum. What is lost is a factor of 2.
Arithmetic scaled_from(Arithmetic a) {
  a.rounding = Rounding::toward_zero;
  a.input = a.output = DType::f64;
  a.exp_ulp = 8;  // Boost states no more of its own exp than that it is good to a few units in the last place.
  a.tanh = {TanhMeasure::ulp, 12};  // number.h
  return a;
}

/// Is an element of the output of attention in no sequence?
bool is_padding(const Problem& c, std::int64_t element) {
  if (!has_sequences(c)) return false;
  const Shape shape = c.out_shape();
  const std::int64_t row = element / shape[3];
  return !sequence_at(c, row / shape[2] / shape[1], row % shape[2]).has_value();
}

}  // namespace

Run::Run(Kernel& kernel, Case c, bool want_lse)
    : case_(std::move(c)), arithmetic_(kernel.manifest().arithmetic_for(case_)) {
  const Manifest& manifest = kernel.manifest();
  if (std::string why = why_unsupported(manifest, case_); !why.empty())
    throw NoAnswer{{.outcome = Outcome::skipped, .reason = std::move(why)}};
  ignores_dead_values_ = manifest.claims_to(Claim::ignores_dead_values);
  Reply reply = answer(kernel, case_, std::nullopt, want_lse);
  out_ = std::move(reply.out);
  lse_ = std::move(reply.lse);
  if (out_.is<Enclosures>()) arithmetic_ = scaled_from(arithmetic_);
}

Run::Run(Case problem, Values answer, std::function<AllowedError(std::int64_t)> bound)
    : case_(std::move(problem)), stated_(std::move(bound)), out_(std::move(answer)) {}

const Tensor& Run::lse() const {
  static const Tensor absent;
  const auto* const lse = lse_.as<Tensor>();
  return lse == nullptr ? absent : *lse;
}

const AttentionBounds& Run::bounds() const {
  if (out_.is<Expressions>()) throw NotTreated("looks at an error bound, and a proof has none");
  if (!bounds_) {
    bounds_ = std::make_shared<const AttentionBounds>(case_.operation == Operation::attention
                                                          ? attention_bounds(case_, arithmetic_, ignores_dead_values_)
                                                          : multihead_bounds(case_, arithmetic_, ignores_dead_values_));
  }
  return *bounds_;
}

const RowBound& Run::row_bound(std::int64_t row) const {
  return bounds().rows[static_cast<std::size_t>(row)];
}

bool Run::has_own_bounds() const {
  const auto* const wide = out_.as<Enclosures>();
  return wide != nullptr && wide->unit() > 0 && !wide->rounding().exact_inputs;
}

const std::vector<WideBound>& Run::own_bounds() const {
  if (!own_bounds_)
    own_bounds_ = std::make_shared<const std::vector<WideBound>>(wide_bounds(case_, out_.as<Enclosures>()->rounding()));
  return *own_bounds_;
}

AllowedError Run::bound(std::int64_t element) const {
  if (stated_) return out_.is<Expressions>() ? AllowedError() : stated_(element);
  if (const auto* formulas = out_.as<Expressions>()) {
    if (is_padding(case_, element)) return {.allowed = 0, .excuse = Excuse::padding};
    const bool defined = (*formulas)[element].kind() != ProofKind::undefined;
    return {.allowed = 0, .excuse = defined ? Excuse::none : Excuse::fully_masked};
  }
  if (has_own_bounds()) {
    const WideBound& own = own_bounds()[static_cast<std::size_t>(element)];
    return {.allowed = own.allowed, .excuse = own.excuse, .value = own.value, .certificate = own.certificate};
  }
  const ElementBound& b = bounds().elements[static_cast<std::size_t>(element)];
  return scaled(b.allowed, b, element);
}

AllowedError Run::hull(std::int64_t element) const {
  if (out_.is<Expressions>()) return bound(element);
  if (has_own_bounds()) {
    const WideBound& own = own_bounds()[static_cast<std::size_t>(element)];
    const bool known = own.hull < infinity;
    const bool free = own.excuse == Excuse::none || own.excuse == Excuse::vacuous || own.excuse == Excuse::infinite;
    return {.allowed = own.hull, .excuse = !free ? own.excuse : known ? Excuse::none : Excuse::infinite};
  }
  ElementBound b = bounds().elements[static_cast<std::size_t>(element)];
  if (b.excuse == Excuse::vacuous || b.excuse == Excuse::infinite) b.excuse = Excuse::none;
  if (b.excuse == Excuse::none && !(b.hull < infinity)) b.excuse = Excuse::infinite;
  return scaled(b.hull, b, element);
}

AllowedError Run::scaled(double allowed, const ElementBound& b, std::int64_t element) const {
  const auto* const wide = out_.as<Enclosures>();
  if (wide == nullptr || is_of_row(b.excuse)) return {allowed, b.excuse, b.finite_required, b.value, b.certificate};
  // A wide scalar neither overflows where double does nor has a bound that says nothing.
  AllowedError own{.value = b.value, .certificate = b.certificate};
  if (wide->unit() == 0) return own;
  const Shape out = shape();
  const double most_E = bounds().rows[static_cast<std::size_t>(element / out[out.rank() - 1])].most_E;
  const bool scales = most_E <= 0.25 && allowed < infinity && b.excuse != Excuse::overflow;
  own.allowed = scales ? allowed * (wide->unit() * 0x1p53L) * (1 + 0x1p-20L) : infinity;
  own.excuse = scales ? Excuse::none : Excuse::infinite;
  return own;
}

Result::Result(std::shared_ptr<const Run> run) : run_(std::move(run)), shape_(run_->shape()) {
  at_ = all_of(shape_.elements());
}

ComparedElement Result::compared(std::int64_t e) const {
  const std::int64_t at = origin(e);
  return {{run_, &run_->problem()}, at, run_->out()[at]};
}

Result Result::along(int axis_from_end, const Indices& indices) const {
  const int axis = shape_.rank() - axis_from_end;
  std::int64_t outer = 1, inner = 1;
  for (int a = 0; a < axis; ++a) outer *= shape_[a];
  for (int a = axis + 1; a < shape_.rank(); ++a) inner *= shape_[a];
  Result part = *this;
  part.shape_ = shape_.with(axis, std::ssize(indices));
  part.at_.clear();
  part.at_.reserve(static_cast<std::size_t>(part.shape_.elements()));
  for (std::int64_t o = 0; o < outer; ++o)
    for (const std::int64_t i : indices)
      for (std::int64_t e = 0; e < inner; ++e)
        part.at_.push_back(at_[static_cast<std::size_t>((o * shape_[axis] + i) * inner + e)]);
  return part;
}

Result Result::without_query(std::int64_t i) const {
  return queries(all_but(shape_[shape_.rank() - 2], i));
}

Result Result::at(const Shape& shape, const Indices& elements) const {
  Result part = *this;
  part.shape_ = shape;
  part.at_.clear();
  part.at_.reserve(elements.size());
  for (const std::int64_t e : elements) part.at_.push_back(origin(e));
  return part;
}

Result Result::reshaped(const Shape& shape) const {
  Result same = *this;
  same.shape_ = shape;
  return same;
}

Result run(Kernel& kernel, Case c) {
  return Result(std::make_shared<const Run>(kernel, std::move(c)));
}

Result run_with_lse(Kernel& kernel, Case c) {
  return Result(std::make_shared<const Run>(kernel, std::move(c), /*want_lse=*/true));
}

Indices all_but(std::int64_t extent, std::int64_t i) {
  Indices rest = all_of(extent);
  std::erase(rest, i);
  return rest;
}

}  // namespace attest

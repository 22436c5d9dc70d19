#include "properties/language/result.h"

#include <cmath>

#include "core/kernel/formal.h"
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
  return a;
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

ElementBound Run::bound(std::int64_t element) const {
  if (const auto* formulas = out_.as<Expressions>()) {
    const bool defined = (*formulas)[element].kind() != ProofKind::undefined;
    ElementBound exact;
    exact.allowed = 0;
    exact.excuse = defined ? Excuse::none : Excuse::fully_masked;
    exact.finite_required = true;
    return exact;
  }
  return scaled(bounds().elements[static_cast<std::size_t>(element)], element);
}

ElementBound Run::hull(std::int64_t element) const {
  if (out_.is<Expressions>()) return bound(element);
  ElementBound b = bounds().elements[static_cast<std::size_t>(element)];
  b.allowed = b.hull;
  if (b.excuse == Excuse::vacuous || b.excuse == Excuse::infinite) b.excuse = Excuse::none;
  if (b.excuse == Excuse::none && !(b.hull < infinity)) b.excuse = Excuse::infinite;
  return scaled(b, element);
}

ElementBound Run::scaled(ElementBound b, std::int64_t element) const {
  const auto* const wide = out_.as<Enclosures>();
  if (wide == nullptr || b.excuse == Excuse::fully_masked || b.excuse == Excuse::not_finite) return b;
  // A wide scalar neither overflows where double does nor has a bound that says nothing.
  b.finite_required = true;
  if (wide->unit() == 0) {
    b.allowed = 0;
    b.excuse = Excuse::none;
    return b;
  }
  const Shape out = shape();
  const double most_E = bounds().rows[static_cast<std::size_t>(element / out[out.rank() - 1])].most_E;
  const bool scales = most_E <= 0.25 && b.allowed < infinity && b.excuse != Excuse::overflow;
  b.allowed = scales ? b.allowed * (wide->unit() * 0x1p53) * (1 + 0x1p-20) : infinity;
  b.excuse = scales ? Excuse::none : Excuse::infinite;
  return b;
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

// Result: what a kernel answered, whatever its scalar, and the rearrangements that theorems make of it. Nothing is
// copied: a result is a run and the elements of it that are meant, in order.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/oracle/wide_oracle.h"
#include "core/problem/case.h"
#include "core/problem/selection.h"

namespace attest {

/// What is allowed to an element of an answer: ElementBound's of a kernel that answers in a dtype. The error of a wide
/// scalar may be smaller than every double.
struct AllowedError {
  long double allowed = 0;
  Excuse excuse = Excuse::none;
  bool finite_required = true;
  double value = 0, certificate = 0;  ///< the exact answer, to within `certificate`
};

/// One run of a kernel. Its bound is computed when it is first asked for.
class Run {
 public:
  /// `want_lse`: lse() too, where the manifest offers one.
  Run(Kernel& kernel, Case c, bool want_lse = false);
  /// Numbers of a dtype, or formulas, that a kernel answered to the problem in another way than as its output: each
  /// with what is allowed to it, which nobody asks for in a proof.
  Run(Case problem, Values answer, std::function<AllowedError(std::int64_t)> bound);
  [[nodiscard]] const Case& problem() const { return case_; }
  [[nodiscard]] Shape shape() const { return out_.shape(); }
  /// The output in the kernel's own numbers.
  [[nodiscard]] const Values& out() const { return out_; }
  /// [batch, heads, M]; absent where none was wanted or is offered, of a wide scalar, and in a proof.
  [[nodiscard]] const Tensor& lse() const;
  /// The same in a proof, where it was asked for.
  [[nodiscard]] bool has_formal_lse() const { return lse_.is<Expressions>(); }
  [[nodiscard]] const Expressions& formal_lse() const { return *lse_.as<Expressions>(); }
  /// Error allowed to an element of out, excuse and whether it must be finite. Of a wide scalar that holds every
  /// double: the bound of double, scaled (RowBound::most_E); of another wide one its own (wide_oracle.h); 0 for
  /// intervals and formulas.
  [[nodiscard]] AllowedError bound(std::int64_t element) const;
  /// The same with how far an element may leave the range of the visible values in the place of its error.
  [[nodiscard]] AllowedError hull(std::int64_t element) const;
  /// Of row (batch * heads + head) * M + query of an attention case; of a wide scalar the one of double. Throws
  /// NotTreated for formulas.
  [[nodiscard]] const RowBound& row_bound(std::int64_t row) const;

 private:
  [[nodiscard]] const AttentionBounds& bounds() const;
  [[nodiscard]] const std::vector<WideBound>& own_bounds() const;
  /// Whether the bound of double is not to be scaled to the scalar that answered.
  [[nodiscard]] bool has_own_bounds() const;
  [[nodiscard]] AllowedError scaled(double allowed, const ElementBound& b, std::int64_t element) const;
  Case case_;
  Arithmetic arithmetic_{};
  std::function<AllowedError(std::int64_t)> stated_;  ///< empty: it is that of an output
  bool ignores_dead_values_ = false;
  Values out_, lse_;
  mutable std::shared_ptr<const AttentionBounds> bounds_;
  mutable std::shared_ptr<const std::vector<WideBound>> own_bounds_;
};

class Result {
 public:
  /// All of a run, in the shape of its output: [batch, heads, M, dv], or [batch, M, d_o] of a multihead case.
  explicit Result(std::shared_ptr<const Run> run);
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::int64_t elements() const { return static_cast<std::int64_t>(at_.size()); }
  [[nodiscard]] const Run& run() const { return *run_; }
  /// Element e of this as one that a law compared. Throws NotTreated for formulas.
  [[nodiscard]] ComparedElement compared(std::int64_t e) const;
  /// Element of the run's output that is meant by element e of this.
  [[nodiscard]] std::int64_t origin(std::int64_t e) const { return at_[static_cast<std::size_t>(e)]; }
  /// Those of all elements, in order.
  [[nodiscard]] const Indices& origins() const { return at_; }

  /// The entries at `indices` of an axis, in their order; repeats and omissions allowed. axis counts from the end: 1
  /// columns, 2 queries, 3 heads (attention) or batch (multihead), 4 batch (attention).
  [[nodiscard]] Result along(int axis_from_end, const Indices& indices) const;
  [[nodiscard]] Result columns(const Indices& indices) const { return along(1, indices); }
  [[nodiscard]] Result queries(const Indices& indices) const { return along(2, indices); }
  [[nodiscard]] Result heads(const Indices& indices) const { return along(3, indices); }  ///< of an attention case
  [[nodiscard]] Result batch(const Indices& indices) const { return along(shape_.rank(), indices); }
  /// Without query i: O^(i).
  [[nodiscard]] Result without_query(std::int64_t i) const;
  /// The chosen elements, in order.
  [[nodiscard]] Result at(const Shape& shape, const Indices& elements) const;
  /// As many elements in the same order, as another shape.
  [[nodiscard]] Result reshaped(const Shape& shape) const;

 private:
  std::shared_ptr<const Run> run_;
  Shape shape_;
  std::vector<std::int64_t> at_;
};

/// Runs the kernel on a case that the property arranged. Throws NoAnswer (answer.h) where the manifest rules it out
/// (skipped, saying so) or no output came.
[[nodiscard]] Result run(Kernel& kernel, Case c);
/// The same with the run's lse where the manifest offers one.
[[nodiscard]] Result run_with_lse(Kernel& kernel, Case c);

/// 0 … extent - 1 without i.
[[nodiscard]] Indices all_but(std::int64_t extent, std::int64_t i);

}  // namespace attest

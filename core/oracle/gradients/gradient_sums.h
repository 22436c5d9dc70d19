// Sums over terms of a backward pass as the oracle has them: their values in double, with certificates, and what a
// kernel's may err by.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/bound/backward_profile.h"
#include "core/bound/error_alarm.h"
#include "core/bound/error_bound.h"
#include "core/bound/gradient_alarm.h"
#include "core/bound/gradient_terms.h"
#include "core/bound/loops/inner_loops.h"
#include "core/value/dtype.h"

namespace attest::detail {

/// Sums of one gradient, an array of rows of `width`, with what they err by; all of them sums over terms.
struct GradientSumsHere {
  void clear(std::int64_t rows, std::int64_t columns);
  std::int64_t width = 0;
  std::vector<double> value;  ///< signed
  std::vector<double> error;  ///< of a kernel
  std::vector<double> here;   ///< of this evaluation
  std::vector<double> size;   ///< of the terms

  /// All but `here`.
  [[nodiscard]] GradientColumns row(std::int64_t i);
};

/// What each term of some sums errs by here, told by what it errs by in a kernel: no more than ratio times that, and
/// `rest` beside. So that of the two one is summed up.
struct HereShare {
  double ratio = 0, rest = 0;
  void take(double here, double error) {
    // Of terms that underflow in a kernel the share would be that of all.
    if (here <= 0x1p20 * error)
      ratio = std::max(ratio, here > 0 ? here / error : 0.0);
    else
      rest = std::max(rest, here);
  }
  /// Of a sum whose terms in a kernel err by `error`, and that multiplies `sizes` in all.
  [[nodiscard]] double of(double error, double sizes) const {
    return (1 + 0x1p-30) * ((ratio > 0 ? ratio * error : 0) + (rest > 0 ? rest * sizes : 0));
  }
};

/// An element of a gradient before its scale.
struct SumHere {
  double value = 0, here = 0, size = 0;  ///< as in GradientSumsHere
  ElementSums of_kernel{};
};
[[nodiscard]] ElementBound bound_of_sum(const BackwardProfile& kernel, const SumHere& sum, double scale, double phi,
                                        bool grouped);
/// Nothing is said of an element.
[[nodiscard]] ElementBound excused_element(Excuse why);

/// What one row adds to a gradient.
struct ArgumentTerm {
  double value = 0;
  double error = 0;  ///< of a kernel, but for the rounding of its sum
  double here = 0;   ///< of this evaluation
  double size = 0;   ///< |value|, from above
  double most = 0;   ///< the same of a kernel
};
/// What leaves its error for the alarm, and the root of squares that enters, as RandomSum has them.
struct ArgumentShare {
  double drop = 0, root = 0;
};

/// Of more terms than these the alarm of what is summed over rows, which has to know all of them at once, is not
/// evaluated: it would take 64 bytes for each.
constexpr std::int64_t most_alarmed_terms = std::int64_t{1} << 20;

/// The gradient by an argument that rows of several heads and sequences may share, a mask or sinks: of each element a
/// sum over all of them.
class ArgumentSums {
 public:
  /// `scale`: what the sums are multiplied by.
  ArgumentSums(DType dtype, std::int64_t elements, double scale);
  /// The element is some sequence's; one that is nobody's is padding.
  void cover(std::int64_t at);
  void add(std::int64_t at, const ArgumentTerm& term, const ArgumentShare& share);
  /// Of a term nothing is known, and so of its sum.
  void excuse(std::int64_t at, Excuse why) { elements_[static_cast<std::size_t>(at)].excuse = why; }
  /// That of any head: what is asked of it is the same of all.
  void take_profile(const BackwardProfile& kernel);
  /// The alarm is asked for: terms are kept.
  void raise_alarms(double probability) { probability_ = probability; }
  /// What comes next is of other keys: products that were told apart among those before may be equal to these.
  void begin_group() { ++group_; }

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(elements_.size()); }
  [[nodiscard]] ElementBound bound(std::int64_t at) const;
  /// The probabilistic bound of the element, after all terms.
  [[nodiscard]] ElementAlarm alarm(std::int64_t at);
  /// The sizes of its terms, summed up.
  [[nodiscard]] double size(std::int64_t at) const;

 private:
  struct Element {
    ArgumentTerm sum{};
    double terms = 0;
    Excuse excuse = Excuse::padding;
    bool of_groups = false;  ///< of several
    std::int32_t group = 0;
  };
  struct Kept {
    std::int64_t at = 0;
    double value = 0, most = 0;
    ArgumentShare share{};
  };
  [[nodiscard]] bool keeps_terms() const { return probability_ > 0 && !too_many_; }
  /// The unit that each term is rounded to where they are added up behind the kernel.
  [[nodiscard]] double u_apart(const Element& of) const { return of.terms > 1 ? kernel_.u_o : 0; }
  [[nodiscard]] SumHere sum_of(const Element& of) const;
  /// What becomes of it after its sum.
  [[nodiscard]] double phi() const;
  void sort_terms();

  DType dtype_;
  double scale_;
  std::vector<Element> elements_;
  BackwardProfile kernel_{};
  double probability_ = 0;
  std::int32_t group_ = 0;
  bool too_many_ = false;
  std::vector<Kept> kept_;
  std::vector<std::size_t> first_;  ///< of each element's among them, once they are sorted
  RandomSum random_sum_;
};

/// Of those arguments that a problem has, where somebody asks for them.
struct SharedGradients {
  std::optional<ArgumentSums> mask, sink;
};

}  // namespace attest::detail

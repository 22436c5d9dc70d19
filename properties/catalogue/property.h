// Property: a named statement of theorems.md. Given a case it arranges one or more runs of a kernel and says what must
// agree, bitwise or within the bound.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"
#include "properties/catalogue/hypotheses.h"
#include "properties/catalogue/wants.h"
#include "properties/generators/production.h"

namespace attest {

class Draw;  // generators/draw.h: a seeded source of cases for one dtype

/// How a property that holds a whole output against the exact answer is to do so.
struct Judging {
  double alarm = 0;  ///< not 0: raise the alarm of error_alarm.h, of that failure probability, beside the verdict
  /// Judge no more rows than these (OracleOptions::rows); all_rows, or by_size: all, but of a case that takes more than
  /// most_products_by_whole multiplications rows_of_large.
  std::int64_t rows = all_rows;

  static constexpr std::int64_t all_rows = 0, by_size = -1, rows_of_large = 4096;
  static constexpr double most_products_by_whole = 0x1p36;

  /// Of that case, as OracleOptions::rows has it.
  [[nodiscard]] std::int64_t rows_of(const Case& c) const;
};

/// The backward pass that a property is about, which is asked of the kernels alone that have it.
enum class Backward : std::uint8_t {
  none,
  any,
  from_lse,          ///< one whose weights are made of the log-sum-exp
  at_other_answers,  ///< and D of the output, of whatever ones it is given
  of_lse             ///< one that takes a gradient by the log-sum-exp
};

/// One row of the catalogue. Plain data: an entry in its family's file (attention.cc, multihead.cc, …), which the
/// catalogue joins to the others, so that adding or changing one recompiles that one file.
struct Property {
  std::string_view name = {};            ///< the claim, "attention.oracle", the same everywhere
  std::string_view statement = {};       ///< in the words of theorems.md
  std::string_view source = {};          ///< source document(s), "+" where none states it
  std::string_view needs = {};           ///< what it needs of a kernel ("attention", "multihead", …)
  std::string_view floating_point = {};  ///< what must hold in floating point, theorems.md's last column
  Operation operation = Operation::attention;
  /// Not empty: it is about a variant of attention (fields.h), or about any of those between which a space stands, and
  /// asked of the kernels alone that list one.
  std::string_view variant = {};
  Backward backward = Backward::none;
  /// The variants with which it holds all the same, and `by_lse`, a space between two; "any": all that there are. A
  /// case with another one misses it.
  std::string_view under = {};
  /// Without these among its judged cases a verdict of held says little: a run that drew too few of them warns.
  std::span<const Want> wants = {};
  /// What the theorem asks of a case beyond the operation, in the order in which it is asked.
  std::span<const Stated> hypotheses = {};
  /// A case that meets the hypotheses, of the drawn dtype. Never looks at a kernel.
  Case (*given)(Draw& draw) = nullptr;
  /// Runs the kernel on the case (as often as the theorem needs) and judges. The case is valid, supported and meets the
  /// hypotheses. May throw NoAnswer (answer.h), so it is called through check_case.
  Verdict (*check)(Kernel& kernel, const Case& c) = nullptr;
  /// The same, judged as it is asked for. Null: the property has no such choice.
  Verdict (*check_as)(Kernel& kernel, const Case& c, const Judging& judging) = nullptr;

  /// Empty, or why a kernel of this manifest is asked nothing ("has no multihead entry").
  [[nodiscard]] std::string misses_of(const Manifest& manifest) const;
  /// Does it speak of cases with the variant, or with a gradient by the log-sum-exp?
  [[nodiscard]] bool holds_under(std::string_view word) const;
  /// It judges a draw of many and no single case: by the law of large numbers it is violated now and then.
  [[nodiscard]] bool is_statistical() const { return floating_point == "statistical"; }
  /// It states that a theorem fails without one of its hypotheses.
  [[nodiscard]] bool is_counterexample() const { return floating_point == "counterexample"; }
  /// Empty when the case meets the hypotheses, else the first that it misses ("has dk = 3 and dv = 4; dk = dv is
  /// required"). Asked of every case, wherever it came from: a file, a projection, a step of shrinking.
  [[nodiscard]] std::string misses(const Case& c) const;
};

/// Does the property of that name hold what a kernel answers against the exact answer, or a gradient?
[[nodiscard]] constexpr bool is_oracle(std::string_view name) {
  return name.find(".oracle") != name.npos;
}

/// The families of theorems.md: one file each.
[[nodiscard]] std::span<const Property> softmax_properties();
[[nodiscard]] std::span<const Property> attention_properties();
[[nodiscard]] std::span<const Property> attention_row_properties();
[[nodiscard]] std::span<const Property> attention_expectation_properties();
[[nodiscard]] std::span<const Property> attention_form_properties();
[[nodiscard]] std::span<const Property> attention_value_properties();
[[nodiscard]] std::span<const Property> attention_key_properties();
[[nodiscard]] std::span<const Property> attention_scaling_properties();
[[nodiscard]] std::span<const Property> attention_split_properties();
[[nodiscard]] std::span<const Property> attention_layout_properties();
[[nodiscard]] std::span<const Property> attention_stride_properties();
[[nodiscard]] std::span<const Property> attention_length_properties();
[[nodiscard]] std::span<const Property> masked_properties();
[[nodiscard]] std::span<const Property> masked_form_properties();
[[nodiscard]] std::span<const Property> masked_law_properties();
[[nodiscard]] std::span<const Property> causal_properties();
[[nodiscard]] std::span<const Property> window_properties();
[[nodiscard]] std::span<const Property> chunk_properties();
[[nodiscard]] std::span<const Property> sink_properties();
[[nodiscard]] std::span<const Property> softcap_properties();
[[nodiscard]] std::span<const Property> dropout_properties();
[[nodiscard]] std::span<const Property> alibi_properties();
[[nodiscard]] std::span<const Property> alibi_weight_properties();
[[nodiscard]] std::span<const Property> descale_properties();
[[nodiscard]] std::span<const Property> drawn_dropout_properties();
[[nodiscard]] std::span<const Property> sequence_properties();
[[nodiscard]] std::span<const Property> cache_properties();
[[nodiscard]] std::span<const Property> append_properties();
[[nodiscard]] std::span<const Property> paged_properties();
[[nodiscard]] std::span<const Property> backward_properties();
[[nodiscard]] std::span<const Property> backward_answer_properties();
[[nodiscard]] std::span<const Property> sink_answer_properties();
[[nodiscard]] std::span<const Property> backward_run_properties();
[[nodiscard]] std::span<const Property> backward_sum_properties();
[[nodiscard]] std::span<const Property> backward_zero_properties();
[[nodiscard]] std::span<const Property> backward_pair_properties();
[[nodiscard]] std::span<const Property> backward_scaling_properties();
[[nodiscard]] std::span<const Property> window_gradient_properties();
[[nodiscard]] std::span<const Property> sink_gradient_properties();
[[nodiscard]] std::span<const Property> softcap_gradient_properties();
[[nodiscard]] std::span<const Property> dropout_gradient_properties();
[[nodiscard]] std::span<const Property> alibi_gradient_properties();
[[nodiscard]] std::span<const Property> sequence_gradient_properties();
[[nodiscard]] std::span<const Property> multihead_oracle_properties();
[[nodiscard]] std::span<const Property> multihead_weight_properties();
[[nodiscard]] std::span<const Property> multihead_form_properties();
[[nodiscard]] std::span<const Property> multihead_properties();
[[nodiscard]] std::span<const Property> batch_properties();
[[nodiscard]] std::span<const Property> layout_properties();
[[nodiscard]] std::span<const Property> weights_properties();
[[nodiscard]] std::span<const Property> self_properties();
[[nodiscard]] std::span<const Property> self_score_properties();
[[nodiscard]] std::span<const Property> position_properties();
[[nodiscard]] std::span<const Property> multihead_row_properties();
[[nodiscard]] std::span<const Property> multihead_head_properties();
[[nodiscard]] std::span<const Property> reduction_properties();

/// Every property, in the order of theorems.md.
[[nodiscard]] const std::vector<const Property*>& catalogue();
/// The property of that name. Throws UsageError for a name that is none.
[[nodiscard]] const Property& property_named(std::string_view name);
/// Properties whose name matches the glob; empty when none does.
[[nodiscard]] std::vector<const Property*> properties_matching(std::string_view glob);

/// H(run seed, property, dtype, k): the seed of case k, the same for every kernel, job, shard and machine.
[[nodiscard]] std::uint64_t case_seed(std::uint64_t run_seed, std::string_view property, DType dtype, std::int64_t k);

/// Case k of a property in a dtype: a function of (run_seed, property, dtype, k) alone. Its provenance holds
/// "property", "dtype", "seed" (the run's), "k" and "kinds" (what was drawn, "scores:near-ties values:ones mask:none
/// shape:small"). `shapes` says which cases have production shapes; without it none has.
[[nodiscard]] Case generate(const Property& property, DType dtype, std::uint64_t run_seed, std::int64_t k,
                            const Shapes& shapes = small_shapes);

/// Meets a manifest's limits of shape (head dimension, lengths, heads, grouped queries, scale, self-attention only) by
/// a fixed projection: crops or repeats rows and columns of the case. Extents that were tied (c_q = heads·dk, a scale
/// of 1/sqrt(dk), …) stay tied. A case within the limits comes back unchanged. Masks, causal forms and dtypes stay as
/// they are: check_case skips what a manifest rules out there. A case that the limits would make larger than
/// case_budget.h allows comes back as it was, marked, and check_case skips it too.
[[nodiscard]] Case project(Case c, const Manifest& manifest);

/// Checks one valid case: skipped with the reason where the manifest rules it out or a hypothesis is missed, else the
/// property's verdict. A call that ends in anything but ok or unsupported is violated, with the status in `reason`;
/// a rejection is skipped where the contract lets a kernel reject (N = 0, a fully masked row). Where memory runs out
/// (std::bad_alloc), the case is inconclusive with that reason.
[[nodiscard]] Verdict check_case(const Property& property, Kernel& kernel, const Case& c, const Judging& judging = {});

/// A smaller case that the kernel still violates by a margin (utilisation >= 2, or as far above 1 as the original):
/// fewer rows, keys, heads, dimensions first, then simpler numbers; at most `budget` cases are checked. A crash stays a
/// crash: a case that is violated in another way (Verdict::violation, or a finite error for an infinite one) is not
/// taken. Deterministic for a deterministic kernel. A case that is not violated comes back unchanged. The result's
/// provenance says "shrunk": "yes".
[[nodiscard]] Case shrink(const Property& property, Kernel& kernel, const Case& c, int budget = 1000);

}  // namespace attest

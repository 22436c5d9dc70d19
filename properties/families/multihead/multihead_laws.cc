#include "properties/families/multihead/multihead_laws.h"

#include <limits>

#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/arrangement/within_limits.h"
#include "properties/generators/stream.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"
#include "properties/language/result.h"

namespace attest {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

bool inside_domain(const Result& result) {
  for (std::int64_t e = 0; e < result.elements(); ++e) {
    const Excuse why = result.run().bound(result.origin(e)).excuse;
    if (why != Excuse::none && why != Excuse::vacuous) return false;
  }
  return true;
}

/// What must not depend on a hidden token: what match_of_dead_values says. Without the promise to ignore dead values
/// rows outside the domain are excused.
Verdict untouched(Kernel& kernel, const Result& left, const Result& right) {
  const Match match = match_of_dead_values(kernel);
  if (match != Match::values) return agree({left, right}, match, /*about_bits=*/true);
  Verdict all = agree({left, right}, Match::values);
  if (all.outcome == Outcome::held) return all;
  Verdict worst{.outcome = Outcome::skipped};
  for (std::int64_t b = 0; b < left.shape()[0]; ++b) {
    for (std::int64_t i = 0; i < left.shape()[1]; ++i) {
      const Result l = left.batch({b}).queries({i}), r = right.batch({b}).queries({i});
      const bool judged = inside_domain(l) && inside_domain(r);
      worst = worse_of({worst, judged ? agree({l, r}, Match::values)
                                      : Verdict{.outcome = Outcome::excused, .reason = "outside the domain"}});
    }
  }
  return worst;
}

/// Other finite numbers, small enough for any domain.
Tensor with_other_row(const Case& c, const Tensor& tokens, std::int64_t s, std::string_view name) {
  Stream stream(seed_argument(c, name));
  return with_row(tokens, s,
                  [&](std::int64_t, double) { return any_number(static_cast<double>(stream.between(-8, 8))); });
}

Tensor with_dead_row(const Tensor& tokens, std::int64_t s) {
  return with_row(tokens, s, [](std::int64_t e, double) {
    return e % 2 == 0 ? not_a_number : std::numeric_limits<double>::infinity();
  });
}

/// A key hidden from every row holds NaN and Inf: no row of `rows` shows it. Judged where the kernel claims that dead
/// values do not matter, reported elsewhere.
Verdict ignores_dead(Kernel& kernel, const Case& hidden, Case dead, const Indices& rows) {
  dead.provenance.non_finite = "yes";
  return agree({run(kernel, hidden).queries(rows), run(kernel, dead).queries(rows)},
               bits_if(kernel, {Claim::deterministic, Claim::ignores_dead_values}), /*about_bits=*/true);
}

Verdict suppressed(Kernel& kernel, const Case& c, std::int64_t i, std::int64_t s, bool self) {
  const Case hidden = hidden_key(c, From::row, i, s);
  Case other = hidden;
  for (const Slot slot : {Slot::k, Slot::v}) other[slot] = with_other_row(c, c[slot], s, self ? "x" : name_of(slot));
  if (self) other[Slot::q] = other.k();
  const Result row = run(kernel, hidden).queries({i});
  // In self-attention the token is gone as a query too, so that one X is left.
  const Case shorter = self ? without_query(without_key(hidden, s), s) : without_key(hidden, s);
  const std::int64_t left = self && i > s ? i - 1 : i;
  Verdict verdict = untouched(kernel, row, run(kernel, other).queries({i}));
  // Of a kernel that takes no such length the first half is asked alone.
  if (why_unsupported(kernel.manifest(), shorter).empty())
    verdict = worse_of({std::move(verdict), agree({row, run(kernel, shorter).queries({left})}, Match::bound)});
  if (argument(c, "dead", 2) == 0) return verdict;
  const Case everywhere = hidden_key(c, From::every_row, i, s);
  Case dead = everywhere;
  for (const Slot slot : {Slot::k, Slot::v}) dead[slot] = with_dead_row(c[slot], s);
  if (self) dead[Slot::q] = dead.k();
  return worse_of({std::move(verdict),
                   ignores_dead(kernel, everywhere, dead, self ? all_but(queries_of(c), s) : all_of(queries_of(c)))});
}

}  // namespace

Verdict query_deletion_law(Kernel& kernel, const Case& c) {
  const std::int64_t i = argument(c, "i", queries_of(c));
  return agree({run(kernel, c).without_query(i), run_rows(kernel, c, all_but(queries_of(c), i))},
               bits_if(kernel, {Claim::batch_invariant}), /*about_bits=*/true);
}

Verdict query_locality_law(Kernel& kernel, const Case& c) {
  const std::int64_t j = argument(c, "j", queries_of(c));
  Case other = c;
  other[Slot::q] = with_row(c.q(), j, [](std::int64_t, double) { return not_a_number; });
  other.provenance.non_finite = "yes";
  const Indices rest = all_but(queries_of(c), j);
  return agree({run(kernel, c).queries(rest), run(kernel, other).queries(rest)},
               bits_if(kernel, {Claim::batch_invariant}), /*about_bits=*/true);
}

Verdict permutation_law(Kernel& kernel, const Case& c) {
  const Indices pi = permutation_argument(c, "pi", queries_of(c));
  const Indices sigma = permutation_argument(c, "sigma", keys_of(c));
  return agree({run(kernel, with_queries(with_keys(c, sigma), pi)), run(kernel, c).queries(pi)}, Match::bound);
}

Verdict self_permutation_law(Kernel& kernel, const Case& c) {
  const Indices pi = permutation_argument(c, "pi", queries_of(c));
  return agree({run(kernel, with_queries(with_keys(c, pi), pi)), run(kernel, c).queries(pi)}, Match::bound);
}

Verdict suppression_law(Kernel& kernel, const Case& c) {
  if (queries_of(c) == 0) return {};
  return suppressed(kernel, c, argument(c, "i", queries_of(c)), argument(c, "s", keys_of(c)), /*self=*/false);
}

Verdict self_suppression_law(Kernel& kernel, const Case& c) {
  const std::int64_t tokens = keys_of(c), i = argument(c, "i", tokens);
  const std::int64_t s = (i + 1 + argument(c, "s", tokens - 1)) % tokens;
  return suppressed(kernel, c, i, s, /*self=*/true);
}

Verdict key_value_deletion_law(Kernel& kernel, const Case& c) {
  const std::int64_t s = argument(c, "s", keys_of(c));
  const Case hidden = hidden_key(c, From::every_row, 0, s);
  return agree({run(kernel, hidden), run(kernel, without_key(hidden, s))}, Match::bound);
}

Verdict input_deletion_law(Kernel& kernel, const Case& c) {
  const std::int64_t tokens = keys_of(c);
  const std::int64_t s = argument(c, "last", 2) == 1 ? tokens - 1 : argument(c, "s", tokens);
  const Case hidden = hidden_key(c, From::every_other_row, s, s);
  const bool last = s == tokens - 1;
  return agree({run(kernel, hidden).without_query(s), run(kernel, without_query(without_key(hidden, s), s))},
               last ? bits_if(kernel, {Claim::batch_invariant, Claim::padding_invariant}) : Match::bound,
               /*about_bits=*/last);
}

Verdict is_cross_attention_law(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c);
  if (M == 0) return {};
  Indices one_more = all_of(M);
  one_more.push_back(0);
  return agree({run(kernel, c), run_rows(kernel, c, one_more).queries(all_of(M))}, bits_in_core(kernel));
}

Verdict zero_mask_law(Kernel& kernel, const Case& c) {
  Case masked = c;
  const Shape shape{1, 1, queries_of(c), keys_of(c)};
  const bool boolean = argument(c, "boolean", 2) == 1;
  masked[Slot::mask] = Tensor(boolean ? DType::boolean : c.dtype(), shape);
  for (std::int64_t e = 0; boolean && e < masked.mask().elements(); ++e) masked[Slot::mask].set(e, 1);
  return agree({run(kernel, c), run(kernel, masked)}, bits_in_core(kernel));
}

}  // namespace attest

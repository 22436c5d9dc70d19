// backward: the gradients of a loss by q, k and v, from that by the output.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel/formal.h"
#include "core/problem/sight.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/language/answer.h"
#include "properties/language/gradients.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

template <Gradient gradient>
Verdict oracle(Kernel& kernel, const Case& c) {
  return judge_gradient(kernel, run_backward(kernel, c), gradient);
}

/// Of a kernel that forms its weights anew from the log-sum-exp that it returned: whatever that is, these are the
/// gradients.
Verdict given(Kernel& kernel, const Case& c) {
  return judge_backward(kernel, run_backward(kernel, c), GradientsAt::answers);
}

/// Elements that must be 0, of either sign.
class Zeros {
 public:
  /// Those of the rows that the predicate chooses, where anything is said of them.
  template <class Chosen>
  void look_at(const BackwardRun& run, Gradient gradient, Chosen&& chosen) {
    const Values& t = run.of(gradient);
    if (!t.present()) return;
    const std::int64_t columns = t.shape()[3];
    for (std::int64_t e = 0; e < t.elements(); ++e) {
      if (in_a_proof()) {
        if (chosen(e / columns)) look_at(*t.as<Expressions>(), gradient, e);
        continue;
      }
      const Excuse excuse = run.bound(gradient, e).excuse;
      if (!chosen(e / columns) || (excuse != Excuse::none && excuse != Excuse::vacuous)) continue;
      any_ = true;
      if (t[e] != 0 && wrong_.empty())
        wrong_ = fmt::format("{} is {} at flat index {}, and must be 0", name_of(gradient), printed(t[e]), e);
    }
  }
  [[nodiscard]] Verdict verdict() const {
    if (!wrong_.empty()) return violated(Violation::bits, wrong_);
    return any_ ? Verdict{} : excused("no gradient lies inside the domain");
  }

 private:
  void look_at(const Expressions& formulas, Gradient gradient, std::int64_t e) {
    any_ = true;
    GenericInputs& inputs = GenericInputs::current();
    if (!inputs.identical(formulas[e], inputs.at(0)) && wrong_.empty())
      wrong_ = fmt::format("{} at flat index {} is not 0: {}", name_of(gradient), e,
                           inputs.difference(formulas[e], inputs.at(0)));
  }
  bool any_ = false;
  std::string wrong_;
};

// dO = 0: every gradient is 0.
Verdict zero_dout(Kernel& kernel, const Case& c) {
  Case zero = c;
  zero[Slot::d_out] = Tensor(c.dtype(), c.out_shape());
  const BackwardRun run = run_backward_with_bounds(kernel, zero);
  Zeros zeros;
  for (const Gradient gradient : every_gradient) zeros.look_at(run, gradient, [](std::int64_t) { return true; });
  return zeros.verdict();
}

/// By rows of k and v: does a row of its heads see the key?
std::vector<bool> seen_keys(const Case& c) {
  const Shape& k = c.k().shape();
  std::vector<bool> seen(static_cast<std::size_t>(k[0] * k[1] * k[2]), false);
  for (std::int64_t b = 0; b < k[0]; ++b)
    for (std::int64_t h = 0; h < heads_of(c); ++h)
      for (std::int64_t i = 0; i < queries_of(c); ++i)
        for (std::int64_t j = 0; j < k[2]; ++j)
          if (!hidden(c, b, h, i, j)) seen[static_cast<std::size_t>((b * k[1] + kv_head_of(c, h)) * k[2] + j)] = true;
  return seen;
}

// A key that no row sees: dk_j = dv_j = 0.
Verdict hidden_keys(Kernel& kernel, const Case& c) {
  const std::vector<bool> seen = seen_keys(c);
  if (std::ranges::find(seen, false) == seen.end()) return skipped("has no key that no row sees");
  const BackwardRun run = run_backward_with_bounds(kernel, c);
  Zeros zeros;
  for (const Gradient gradient : {Gradient::k, Gradient::v})
    zeros.look_at(run, gradient, [&](std::int64_t row) { return !seen[static_cast<std::size_t>(row)]; });
  return zeros.verdict();
}

/// A sum that is to be 0, whose terms are known to within what is allowed to each: it differs from 0 by no more. In a
/// proof it is a formula.
class Balance {
 public:
  /// sign times factor, a number of the case, times a gradient's element; false where nothing is said of it.
  [[nodiscard]] bool add(const BackwardRun& run, Gradient gradient, std::int64_t element, double factor, int sign = 1) {
    if (in_a_proof()) {
      add_formula((*run.of(gradient).as<Expressions>())[element], factor, sign);
      return true;
    }
    factor *= sign;
    const ElementBound& bound = run.bound(gradient, element);
    // Of a row without a key the gradient is 0 or, by the manifest, nothing; and of what is padding.
    if (bound.excuse == Excuse::fully_masked || bound.excuse == Excuse::padding) return true;
    if (bound.excuse != Excuse::none && bound.excuse != Excuse::vacuous) return false;
    const long double found = run.of(gradient)[element];
    add_exact(found * static_cast<long double>(factor));
    allowed_ += static_cast<long double>(bound.allowed) * std::fabs(factor);
    return true;
  }
  /// sign times a number of the case.
  void add_number(double number, int sign) {
    if (in_a_proof()) return add_formula(GenericInputs::current().at(1), number, sign);
    add_exact(static_cast<long double>(number) * sign);
  }
  void add_exact(long double term) {
    sum_ += term;
    sizes_ += std::fabs(term);
    ++terms_;
  }
  /// Is the formula 0 for all reals?
  [[nodiscard]] bool vanishes() const {
    GenericInputs& inputs = GenericInputs::current();
    return !formula_ || inputs.identical(*formula_, inputs.at(0));
  }
  [[nodiscard]] double error() const { return static_cast<double>(std::fabs(sum_)); }
  /// With what this sum loses itself.
  [[nodiscard]] double allowed() const {
    return static_cast<double>(allowed_ * (1 + 0x1p-20L) + static_cast<long double>(terms_ + 2) * 0x1p-63L * sizes_);
  }

 private:
  void add_formula(const Expression& x, double factor, int sign) {
    GenericInputs& inputs = GenericInputs::current();
    const Expression term = inputs.at(factor) * x;
    if (!formula_) formula_ = inputs.at(0);
    formula_ = sign > 0 ? *formula_ + term : *formula_ - term;
  }
  std::optional<Expression> formula_;
  long double sum_ = 0, sizes_ = 0, allowed_ = 0;
  std::int64_t terms_ = 0;
};

/// The worst of some balances.
class WorstBalance {
 public:
  void judge(const Balance& balance, const auto& words) {
    any_ = true;
    if (in_a_proof()) {
      if (!balance.vanishes() && worst_.outcome == Outcome::held)
        worst_ = violated(Violation::bound, fmt::format("{}: the two sides are not the same formula", words()));
      return;
    }
    const double error = balance.error(), allowed = balance.allowed();
    // A NaN among the gradients fails the comparison.
    if (error <= allowed) {
      const double utilisation = error == 0 ? 0 : error / allowed;
      if (worst_.outcome == Outcome::held && utilisation > worst_.utilisation)
        worst_.utilisation = utilisation, worst_.error = error, worst_.allowed = allowed;
      return;
    }
    if (worst_.outcome == Outcome::violated) return;
    worst_ = violated(std::isfinite(error) ? Violation::bound : Violation::not_finite,
                      fmt::format("{}: the two sides differ by {:.6g}; {:.6g} is allowed", words(), error, allowed));
    worst_.error = error, worst_.allowed = allowed;
    if (std::isfinite(error) && allowed > 0) worst_.utilisation = error / allowed;
  }
  [[nodiscard]] Verdict verdict() const { return any_ ? worst_ : excused("no gradient lies inside the domain"); }

 private:
  bool any_ = false;
  Verdict worst_{};
};

// Sum_h Q_h^T dQ_h = dK^T K: scores see Q and K only through their products, so Q(1 + eX) and K(1 - eX^T) move nothing.
Verdict gauge(Kernel& kernel, const Case& c) {
  const BackwardTerms& terms = kernel.manifest().backward_terms;
  if (!terms.dq || !terms.dk) return skipped("the manifest's backward.gradients do not list dq and dk");
  const BackwardRun run = run_backward_with_bounds(kernel, c);
  const Shape &q = c.q().shape(), &k = c.k().shape();
  const std::int64_t group = q[1] / k[1], dk = q[3];
  WorstBalance worst;
  for (std::int64_t b = 0; b < k[0]; ++b)
    for (std::int64_t kv = 0; kv < k[1]; ++kv)
      for (std::int64_t one = 0; one < dk; ++one)
        for (std::int64_t other = 0; other < dk; ++other) {
          Balance balance;
          bool known = true;
          for (std::int64_t h = kv * group; known && h < (kv + 1) * group; ++h)
            for (std::int64_t i = 0; known && i < q[2]; ++i) {
              const std::int64_t row = ((b * q[1] + h) * q[2] + i) * dk;
              known = balance.add(run, Gradient::q, row + other, c.q()[row + one]);
            }
          for (std::int64_t j = 0; known && j < k[2]; ++j) {
            const std::int64_t row = ((b * k[1] + kv) * k[2] + j) * dk;
            known = balance.add(run, Gradient::k, row + one, c.k()[row + other], -1);
          }
          if (known)
            worst.judge(balance, [&] {
              return fmt::format("entry {}, key-value head {}, columns {} and {}", b, kv, one, other);
            });
        }
  return worst.verdict();
}

bool sees_a_key(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i) {
  for (std::int64_t j = 0; j < keys_of(c); ++j)
    if (!hidden(c, b, h, i, j)) return true;
  return false;
}

// Sum_j dv_j = sum_h sum_i g_i over rows that see a key.
Verdict dv_sums_to_do(Kernel& kernel, const Case& c) {
  if (!kernel.manifest().backward_terms.dv) return skipped("the manifest's backward.gradients do not list dv");
  const BackwardRun run = run_backward_with_bounds(kernel, c);
  const Shape &q = c.q().shape(), &v = c.v().shape();
  const std::int64_t group = q[1] / v[1], dv = v[3];
  WorstBalance worst;
  for (std::int64_t b = 0; b < v[0]; ++b)
    for (std::int64_t kv = 0; kv < v[1]; ++kv)
      for (std::int64_t e = 0; e < dv; ++e) {
        Balance balance;
        bool known = true;
        for (std::int64_t j = 0; known && j < v[2]; ++j)
          known = balance.add(run, Gradient::v, ((b * v[1] + kv) * v[2] + j) * dv + e, 1);
        for (std::int64_t h = kv * group; known && h < (kv + 1) * group; ++h)
          for (std::int64_t i = 0; i < q[2]; ++i) {
            const std::int64_t row = (b * q[1] + h) * q[2] + i;
            if (!sees_a_key(c, b, h, i)) continue;
            balance.add_number(c[Slot::d_out][row * dv + e], -1);
          }
        if (known)
          worst.judge(balance, [&] { return fmt::format("entry {}, key-value head {}, column {}", b, kv, e); });
      }
  return worst.verdict();
}

constexpr std::string_view all_with_gradients = "window chunk lengths packed left_pad sink softcap dropout alibi",
                           sums_of_weights = "window chunk lengths packed left_pad softcap alibi";

constexpr auto of_gradients = std::to_array<Stated>({defining(hypotheses::gradients, "it is about them")});

const Property family[] = {
    {.name = "backward.oracle-dq",
     .statement = "dQ lies within the bound of the definition's exact gradient",
     .source = "+",
     .needs = "attention_backward",
     .floating_point = "bound",
     .operation = Operation::attention,
     .backward = Backward::any,
     .under = all_with_gradients,
     .hypotheses = of_gradients,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_later_arguments().with_gradients();
     },
     .check = oracle<Gradient::q>},
    {.name = "backward.oracle-dk",
     .statement = "dK lies within the bound of the definition's exact gradient",
     .source = "+",
     .needs = "attention_backward",
     .floating_point = "bound",
     .operation = Operation::attention,
     .backward = Backward::any,
     .under = all_with_gradients,
     .hypotheses = of_gradients,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_later_arguments().with_gradients();
     },
     .check = oracle<Gradient::k>},
    {.name = "backward.oracle-dv",
     .statement = "dV lies within the bound of the definition's exact gradient",
     .source = "+",
     .needs = "attention_backward",
     .floating_point = "bound",
     .operation = Operation::attention,
     .backward = Backward::any,
     .under = all_with_gradients,
     .hypotheses = of_gradients,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_later_arguments().with_gradients();
     },
     .check = oracle<Gradient::v>},
    {.name = "backward.given",
     .statement = "the same at the kernel's own lse and out, whatever they are",
     .source = "+",
     .needs = "attention_backward",
     .floating_point = "bound",
     .operation = Operation::attention,
     .backward = Backward::from_lse,
     .under = all_with_gradients,
     .hypotheses = of_gradients,
     .given = [](Draw& draw) -> Case { return draw.attention().with_later_arguments().with_gradients(); },
     .check = given},
    {.name = "backward.zero-dout",
     .statement = "dO = 0: every gradient is 0",
     .source = "+",
     .needs = "attention_backward",
     .floating_point = "inside the domain: zero bitwise",
     .operation = Operation::attention,
     .backward = Backward::any,
     .under = all_with_gradients,
     .hypotheses = of_gradients,
     .given = [](Draw& draw) -> Case { return draw.attention().with_later_arguments().with_gradients(); },
     .check = zero_dout},
    {.name = "backward.hidden-keys",
     .statement = "a key that no row sees: dk_j = dv_j = 0",
     .source = "+",
     .needs = "attention_backward",
     .floating_point = "inside the domain: zero bitwise",
     .operation = Operation::attention,
     .backward = Backward::any,
     .under = all_with_gradients,
     .hypotheses = of_gradients,
     .given = [](Draw& draw) -> Case { return draw.attention().masked().with_later_arguments().with_gradients(); },
     .check = hidden_keys},
    {.name = "backward.gauge",
     .statement = "Σ_h Q_hᵀ dQ_h = dKᵀ K: scores see Q and K through their products alone",
     .source = "+",
     .needs = "attention_backward",
     .floating_point = "bound",
     .operation = Operation::attention,
     .backward = Backward::any,
     .under = all_with_gradients,
     .hypotheses = of_gradients,
     .given = [](Draw& draw) -> Case { return draw.attention().with_later_arguments().with_gradients(); },
     .check = gauge},
    {.name = "backward.dv-sums-to-do",
     .statement = "Σ_j dv_j = Σ_h Σ_i g_i over rows that see a key",
     .source = "+",
     .needs = "attention_backward",
     .floating_point = "bound",
     .operation = Operation::attention,
     .backward = Backward::any,
     .under = sums_of_weights,
     .hypotheses = of_gradients,
     .given = [](Draw& draw) -> Case { return draw.attention().with_later_arguments().with_gradients(); },
     .check = dv_sums_to_do},
};

}  // namespace

std::span<const Property> backward_properties() {
  return family;
}

}  // namespace attest

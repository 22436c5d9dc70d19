// position: learned absolute positions, X + P (003).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/support/errors.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/catalogue/property.h"
#include "properties/families/core_laws.h"
#include "properties/generators/stream.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/refute.h"

namespace attest {
namespace {

// x_0 and p_0 are 2^n in their first entry and 0 elsewhere, W passes on that entry. With tokens 0 and 1 exchanged both
// positions see 2^n, and no row is what another was: before, one held 2^(n+1) and the other 0.
Verdict breaks_equivariance(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c), columns = c.q().shape()[2];
  Case plain = c;
  for (Tensor& tensor : plain.tensors)
    if (tensor.present()) tensor = Tensor(c.dtype(), tensor.shape());
  for (const Slot w : {Slot::w_q, Slot::w_k, Slot::w_v}) plain[w].set(0, 1);
  if (plain[Slot::w_o].present()) plain[Slot::w_o] = c[Slot::w_o];
  Indices exchanged = all_of(N);
  std::swap(exchanged[0], exchanged[1]);
  return refuted(/*budget=*/6, [&](int n) -> Attempt {
    const double value = std::ldexp(1.0, n);
    const auto first_entry = [&](Tensor x, std::int64_t at, double entry) {
      return with_row(std::move(x), at, [&](std::int64_t e, double) { return e % columns == 0 ? entry : 0.0; });
    };
    const Tensor ordered = first_entry(plain.q(), 0, 2 * value);
    const Tensor moved = first_entry(first_entry(plain.q(), 0, value), 1, value);
    return {run(kernel, with_tokens(plain, moved)), run(kernel, with_tokens(plain, ordered)).queries(exchanged),
            fmt::format("{} tokens, x_0 = p_0 = {} and 0 elsewhere, W = 1 in the first entry, x_0 and x_1 exchanged", N,
                        value)};
  });
}

/// Rows of small whole numbers.
Tensor position_table(const Case& c, std::int64_t rows) {
  Stream stream(seed_argument(c, "positions"));
  return mapped(Tensor(c.dtype(), {rows, c.q().shape()[2]}),
                [&](std::int64_t, double) { return static_cast<double>(stream.between(-2, 2)); });
}

// 003: pi(X) + pi(P) = pi(X + P), and attention of it is pi of attention of X + P. Rounding X + P entry by entry
// commutes with pi.
Verdict moves_with_positions(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), per_entry = M * c.q().shape()[2];
  const Tensor table = position_table(c, M);
  const Case placed =
      with_tokens(c, mapped(c.q(), [&](std::int64_t e, double old) { return old + table[e % per_entry]; }));
  const Indices pi = permutation_argument(c, "pi", M);
  return agree({run(kernel, with_queries(with_keys(placed, pi), pi)), run(kernel, placed).queries(pi)}, Match::bound);
}

// Every token's position grows by one. W passes on the first entry, p_0 has 2^n there and all else is 0: the rows of
// table read 2^n, 0, 0, … before and 0, 0, … after.
Verdict shift_invariance(Kernel& kernel, const Case& c) {
  const std::int64_t columns = c.q().shape()[2];
  Case plain = without_mask(c);
  for (Tensor& tensor : plain.tensors)
    if (tensor.present()) tensor = Tensor(c.dtype(), tensor.shape());
  for (const Slot w : {Slot::w_q, Slot::w_k, Slot::w_v}) plain[w].set(0, 1);
  if (plain[Slot::w_o].present()) plain[Slot::w_o] = c[Slot::w_o];
  return refuted(/*budget=*/6, [&](int n) -> Attempt {
    const double value = std::ldexp(1.0, n);
    const Tensor before =
        with_row(plain.q(), 0, [&](std::int64_t e, double) { return e % columns == 0 ? value : 0.0; });
    return {run(kernel, with_tokens(plain, before)), run(kernel, with_tokens(plain, plain.q())),
            fmt::format("{} tokens of 0, p_0 = {} and 0 elsewhere, p_1 = p_2 = … = 0, W = 1 in the first entry",
                        keys_of(c), value)};
  });
}

/// Every token of the case, p_i = p_0 + i t apart from where it was, moved by one position: it has t more, in its first
/// entry.
Verdict moved_along_a_line(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), width = c.q().shape()[2], columns = c[Slot::w_v].shape()[1];
  const double t = any_number(1 + static_cast<double>(argument(c, "step", 3)));
  const Tensor origin = mapped(position_table(c, 1), [](std::int64_t, double entry) { return any_number(entry); });
  const auto with_first_at = [&](std::int64_t position) {
    return with_tokens(c, mapped(c.q(), [&](std::int64_t e, double old) {
                         const double placed = sum_of(old, origin[e % width]);
                         const double steps = count_of(e / width % M + position);
                         return e % width == 0 ? sum_of(placed, product_of(steps, t)) : placed;
                       }));
  };
  const Result moved = run(kernel, with_first_at(1));
  std::vector<double> shift(static_cast<std::size_t>(moved.elements()));
  for (std::size_t e = 0; e < shift.size(); ++e)
    shift[e] = product_of(t, c[Slot::w_v][static_cast<std::int64_t>(e) % columns]);
  return agree({Numbers(moved), Numbers(run(kernel, with_first_at(0))).plus(Numbers(moved.shape(), shift))});
}

// No query sees t, as W_q^T t = 0; it adds W_k^T t to every key (attention.key-translation) and W_v^T t to every value.
Verdict shift_along_a_line(Kernel& kernel, const Case& c) {
  Case blind = c;
  for (std::int64_t e = 0; e < c[Slot::w_q].shape()[1]; ++e) blind[Slot::w_q].set(e, 0);
  return moved_along_a_line(kernel, blind);
}

Case placed_tokens(Draw& draw, std::int32_t tokens) {
  return one_head(self_attention(small_multihead(draw).unmasked(), tokens).where([](Recipe& r) {
    r.scale = ScaleKind::inverse_root;
  }));
}

// The tokens change places and the positions do not.
Verdict positions_stay(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), per_entry = M * c.q().shape()[2];
  const Tensor table = position_table(c, M);
  const auto placed = [&](const Case& tokens) {
    return with_tokens(tokens,
                       mapped(tokens.q(), [&](std::int64_t e, double old) { return old + table[e % per_entry]; }));
  };
  const Indices pi = permutation_argument(c, "pi", M);
  return agree({run(kernel, placed(with_queries(with_keys(c, pi), pi))), run(kernel, placed(c)).queries(pi)},
               Match::bound);
}

constexpr std::array tokens{defining(hypotheses::self_attention, "it is one X that positions are added to")};

constexpr auto breaking =
    joined(defined_for_one_head, tokens,
           std::array{defining(hypotheses::unmasked, "the counterexample has no mask"),
                      defining(hypotheses::two_keys, "a counterexample needs two"),
                      defining(hypotheses::inverse_root_scale, "the counterexample has this scale")});
constexpr auto limited =
    joined(std::array{defining(hypotheses::a_query, "a longer X needs a token")}, one_plain_head,
           std::array{spare(hypotheses::self_attention, "positions are added to X before it is anything else"),
                      spare(hypotheses::unmasked, "positions are added before any score")});
constexpr auto shifted =
    joined(defined_for_one_head, tokens,
           std::array{defining(hypotheses::a_query, "a token moves"),
                      defining(hypotheses::inverse_root_scale, "the counterexample has this scale")});
constexpr auto along_a_line = joined(
    std::array{spare(hypotheses::one_head, "every head obeys it by itself"),
               needed(hypotheses::identity_output, "W_v^T t passes through W_o"),
               spare(hypotheses::no_output_bias, "b_o is added to every row alike"),
               needed(hypotheses::no_bias_kv, "the appended key and value do not move")},
    tokens,
    std::array{
        needed(hypotheses::queries_blind_to_the_step, "queries that see t have other weights", moved_along_a_line),
        defining(hypotheses::small_whole_numbers, "X + P and W_v^T t must be what the dtype holds")});
constexpr auto moved = joined(
    one_plain_head, tokens,
    std::array{needed(hypotheses::unmasked, "a causal form counts rows and keys, and they change their places"),
               needed(hypotheses::moving_positions, "a token at another position is another token", positions_stay)});

const Property family[] = {
    {.name = "position.breaks-equivariance",
     .statement = "adding a fixed position matrix keeps equivariance",
     .source = "003",
     .needs = "multihead",
     .floating_point = "counterexample",
     .operation = Operation::multihead,
     .hypotheses = breaking,
     .given = [](Draw& draw) -> Case { return placed_tokens(draw, 2); },
     .check = breaks_equivariance},
    {.name = "position.length-limit",
     .statement = "absolute positions end at the context length: a longer X is an error that names both",
     .source = "003",
     .needs = "core",
     .floating_point = "required",
     .operation = Operation::multihead,
     .hypotheses = limited,
     .given = [](Draw& draw) -> Case { return placed_tokens(draw, 1); },
     .check = [](Kernel& kernel, const Case& c) { return on_core(kernel, c, length_limit); }},
    {.name = "position.moves-with-positions",
     .statement = "permuting X and the position rows together restores it",
     .source = "003",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = moved,
     .given = [](Draw& draw) -> Case { return placed_tokens(draw, 0); },
     .check = moves_with_positions},
    {.name = "position.shift-along-a-line",
     .statement =
         "p_(i+1) − p_i = t for all i and W_qᵀt = 0 ⇒ moving every token by one position leaves the weights and "
         "adds W_vᵀt to every row",
     .source = "+",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = along_a_line,
     .given = [](Draw& draw) -> Case {
       return one_head(self_attention(whole_numbers(draw), 1).where([](Recipe& r) {
         r.queries = r.keys = std::min(r.queries, most_whole_tokens);
       }));
     },
     .check = shift_along_a_line},
    {.name = "position.shift-invariance",
     .statement = "moving every token by one position of the table leaves the output",
     .source = "003",
     .needs = "multihead",
     .floating_point = "counterexample",
     .operation = Operation::multihead,
     .hypotheses = shifted,
     .given = [](Draw& draw) -> Case { return placed_tokens(draw, 1); },
     .check = shift_invariance},
};

}  // namespace

// 003: a table of L rows ends at L tokens: for more, an error that names both lengths.
Verdict length_limit(const CoreFunctions& core, const Case& c) {
  const std::int64_t M = queries_of(c), length = argument(c, "length", M);
  Tensor x(c.dtype(), {M, c.q().shape()[2]});
  for (std::int64_t e = 0; e < x.elements(); ++e) x.set(e, c.q()[e]);
  try {
    static_cast<void>(core.with_positions(x, position_table(c, M)));
    static_cast<void>(core.with_positions(x, position_table(c, M + 1)));
  } catch (const UsageError& refused) {
    return violated(Violation::rejected,
                    fmt::format("{} tokens and at least as many positions are refused: {}", M, refused.what()));
  }
  try {
    static_cast<void>(core.with_positions(x, position_table(c, length)));
  } catch (const UsageError& refused) {
    const std::string message = refused.what();
    if (message.find(std::to_string(M)) != std::string::npos &&
        message.find(std::to_string(length)) != std::string::npos)
      return {};
    return violated(Violation::failed, fmt::format("\"{}\" does not name both lengths, {} and {}", message, M, length));
  }
  return violated(Violation::failed, fmt::format("{} tokens are taken with {} positions", M, length));
}

std::span<const Property> position_properties() {
  return family;
}

}  // namespace attest

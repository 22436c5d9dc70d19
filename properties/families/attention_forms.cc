// attention: one definition in several forms (002: a single query; 003: the scale; 000: every length).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/kernel/limits.h"
#include "core/oracle/oracle.h"
#include "core/support/printed.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/generators/stream.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/compared.h"
#include "properties/language/own_precision.h"
#include "properties/language/skip_reasons.h"

namespace attest {
namespace {

// 002: row i is the single-query attention of q_i.
Verdict single_query(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c);
  if (M == 0) return {};
  const std::int64_t i = argument(c, "i", M);
  return agree({run_rows(kernel, c, {i}), run(kernel, c).queries({i})}, bits_if(kernel, {Claim::batch_invariant}),
               /*about_bits=*/true);
}

enum class Entries { normal, signs, uniform };

double entry(Entries entries, Stream& stream) {
  switch (entries) {
    case Entries::normal:
      return stream.gaussian();
    case Entries::signs:
      return stream.either(1.0);
    case Entries::uniform:
      break;
  }
  return stream.uniform(-1.0, 1.0) * 0x1.bb67ae8584caap+0;  // sqrt(3)
}

/// Are there an odd number of bits that both have?
bool odd_overlap(std::uint64_t a, std::uint64_t b) {
  return std::popcount(a & b) % 2 == 1;
}

// 003: q, k with independent entries of mean 0 and variance 1: Var(q·k) = dk, Var(q·k/sqrt(dk)) = 1. The distribution
// of signs that is tried is not drawn but written out: with runs = 2^m > dk, the sign of q_x k_x in run n is that of
// the character (-1)^(n & (x + 1)), and the dk columns of these are orthogonal to each other and to 1 (Sylvester's
// Hadamard matrix; a two-level design of strength 2). So over the runs q·k has mean 0, and variance sum_x (q_x k_x)^2
// exactly: dk for entries of ±1; for drawn sizes |q_x|, |k_x| that sum, whose mean is dk. A score is read as the
// log-sum-exp over its one key.
Verdict score_variance(Kernel& kernel, const Case& c) {
  if (!is_core(kernel))
    return {.outcome = Outcome::skipped, .reason = fmt::format("{}, not about other kernels", why_of_the_core)};
  const std::int64_t dk = c.q().shape()[3];
  const auto kind = static_cast<Entries>(argument(c, "entries", 3));
  const auto runs = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(dk) + 1));
  Case design;
  design.scale = c.scale;
  for (const Slot slot : {Slot::q, Slot::k}) design[slot] = Tensor(c[slot].dtype(), {runs, 1, 1, dk});
  design[Slot::v] = Tensor(c.v().dtype(), {runs, 1, 1, 1});
  Stream stream(seed_argument(c, "pairs"));
  double variance = 0, size = 0;
  for (std::int64_t x = 0; x < dk; ++x) {
    const double q = entry(kind, stream), k = entry(kind, stream);
    for (std::int64_t n = 0; n < runs; ++n) {
      const double sign = odd_overlap(static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(x + 1)) ? -1.0 : 1.0;
      const double flip = stream.either(1.0);
      design[Slot::q].set(n * dk + x, flip * q);
      design[Slot::k].set(n * dk + x, flip * sign * k);
    }
    // As the dtype holds them.
    const double product = design.q()[x] * design.k()[x];
    variance += product * product, size += std::fabs(product);
  }
  const Reply reply = answer(kernel, design, c.dtype(), /*want_lse=*/true);
  // dk products and their sum, the scale and its product, exp and log around a single key, and the output: at most
  // dk + 8 roundings of a score, each of what it is a part of.
  const double unit = std::ldexp(1.0, -format_of(c.dtype()).precision);
  const double error = static_cast<double>(dk + 8) * unit * c.scale * size * (1 + 0x1p-4);
  double mean = 0, square = 0, apart = 0;
  const double part = 1 / static_cast<double>(runs);
  for (std::int64_t n = 0; n < runs; ++n) {
    const double score = reply.lse[n];
    mean += score * part, square += score * score * part;
    apart += (2 * std::fabs(score) + error) * error * part;
  }
  const double rounding = 0x1p-45 * static_cast<double>(dk + runs);
  const Shape two{2};
  const double found[] = {mean, square}, expected[] = {0.0, c.scale * c.scale * variance};
  return agree(
      {Numbers(two, found), Numbers(two, expected)
                                .loosened(std::vector<double>{error + rounding * error + rounding * c.scale * size,
                                                              apart + rounding * (square + expected[1])})});
}

/// Attention over no keys: refused, or what the policy says of a row that sees none.
Verdict without_keys(Kernel& kernel, const Case& c) {
  const Manifest& manifest = kernel.manifest();
  const Reply reply = kernel.run(c, c.dtype(), asks_lse(manifest, c, /*wanted=*/true));
  if (reply.status == CallStatus::unsupported) return {};
  if (reply.status == CallStatus::rejected) {
    if (!is_core(kernel) || reply.message.find("N = 0") != std::string::npos) return {};
    return violated(Violation::rejected, fmt::format("refuses N = 0 without naming it: {}", reply.message));
  }
  if (reply.status != CallStatus::ok) throw_without_output(manifest, c, reply.status, reply.message);
  if (is_core(kernel)) return violated(Violation::bits, "accepts N = 0, which the documents do not define");
  const FullyMaskedRow policy = manifest.fully_masked_row;
  if (policy == FullyMaskedRow::error && reply.out.elements() > 0)
    return violated(Violation::bits, "accepts N = 0, against its fully_masked_row policy, error");
  for (std::int64_t e = 0; e < reply.out.elements(); ++e) {
    const double x = reply.out[e];
    if ((policy == FullyMaskedRow::nan && !std::isnan(x)) || (policy == FullyMaskedRow::zero && x != 0))
      return violated(Violation::bits,
                      fmt::format("element {} of a call without keys is {}; the fully_masked_row policy is {}", e,
                                  printed(x), name_of(policy)));
  }
  for (std::int64_t row = 0; row < reply.lse.elements(); ++row) {
    const double lse = reply.lse[row];
    if (lse == -INFINITY || policy == FullyMaskedRow::undeclared || (policy == FullyMaskedRow::nan && std::isnan(lse)))
      continue;
    return violated(Violation::lse, fmt::format("lse {} over no keys is {}; it is -inf", row, printed(lse)));
  }
  return {};
}

// 000: one function for every M and N: the case as it is, with one query, with none, with one key, and with none; in
// the place of one the fewest that the manifest allows. Of these shapes those are left out that it does not allow.
Verdict any_length(Kernel& kernel, const Case& c) {
  const Arithmetic& arithmetic = kernel.manifest().arithmetic_for(c);
  const auto judged = [&](const Case& part) -> Verdict {
    if (std::string why = why_unsupported(kernel.manifest(), part); !why.empty())
      return {.outcome = Outcome::skipped, .reason = std::move(why)};
    if (keys_of(part) == 0) return without_keys(kernel, part);
    const Reply reply = answer(kernel, part);
    return and_at_own_precision(with_element(judge_attention(part, reply.out, {}, arithmetic), part, reply.out), kernel,
                                part);
  };
  const Lengths least = fewest(kernel, {1, 1});
  const Indices few_queries = cycled(queries_of(c), least.queries), few_keys = cycled(keys_of(c), least.keys);
  Verdict worst = judged(c);
  for (const Indices& queries : {Indices{}, few_queries}) {
    const Case part = with_queries(c, queries);
    worst = worse_of({std::move(worst), judged(part)});
    worst = worse_of({std::move(worst), judged(with_keys(part, few_keys))});
  }
  return worse_of({std::move(worst), judged(with_keys(c, {}))});
}

constexpr std::array alone{needed(hypotheses::unmasked, "a causal form counts the rows, and the row is the only one")};
constexpr std::array narrow{defining(hypotheses::at_most_64_columns, "longer scores take longer and say no more")};

const Property forms[] = {
    {.name = "attention.single-query",
     .statement = "row i equals single-query attention of q_i (002's definition with projections)",
     .source = "002",
     .needs = "attention",
     .floating_point = "bitwise if batch-invariant",
     .hypotheses = alone,
     .given = [](Draw& draw) -> Case { return draw.attention().unmasked(); },
     .check = single_query},
    {.name = "attention.score-variance",
     .statement = "q,k with independent entries of mean 0 and variance 1: Var(q·k) = dk, Var(q·k/√dk) = 1; over an "
                  "orthogonal design of signs exactly so for entries of ±1, and Σ_x(q_x k_x)² for drawn sizes",
     .source = "003",
     .needs = "the core",
     .floating_point = "bound",
     .hypotheses = narrow,
     .given = [](Draw& draw) -> Case {
       return draw.attention().unmasked().where([](Recipe& r) {
         r.batch = r.heads = r.queries = r.keys = r.dv = 1;
         r.dk = std::min(r.dk, 16);
         r.scale = r.seed % 2 == 0 ? ScaleKind::one : ScaleKind::inverse_root;
       });
     },
     .check = score_variance},
};

const Property heads[] = {
    {.name = "attention.multihead-single-query",
     .statement = "row i of MMHAttn equals single-query attention of token i with 002's projections",
     .source = "002",
     .needs = "multihead",
     .floating_point = "bitwise if batch-invariant",
     .operation = Operation::multihead,
     .hypotheses = alone,
     .given = [](Draw& draw) -> Case {
       return small_multihead(draw).unmasked().where([](Recipe& r) { r.self_attention = false; });
     },
     .check = single_query},
};

const Property lengths[] = {
    {.name = "attention.any-length",
     .statement =
         "one function for every M and N (\"position-agnostic\"); M = 0 gives an empty output; N = 0: the core "
         "refuses it by name, a kernel may reject it or follow its fully_masked_row policy (lse −∞)",
     .source = "000",
     .needs = "attention",
     .floating_point = "required",
     .given = [](Draw& draw) -> Case { return draw.attention(); },
     .check = any_length},
};

}  // namespace

std::span<const Property> attention_form_properties() {
  return forms;
}

std::span<const Property> multihead_form_properties() {
  return heads;
}

std::span<const Property> attention_length_properties() {
  return lengths;
}

}  // namespace attest

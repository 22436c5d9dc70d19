// attention: one definition in several forms (002: a single query; 003: the scale; 000: every length).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "agree.h"
#include "answer.h"
#include "arguments.h"
#include "arrange.h"
#include "attest/oracle.h"
#include "attest/printed.h"
#include "compared.h"
#include "generators/draw.h"
#include "generators/stream.h"
#include "property.h"

namespace attest {
namespace {

// 002: row i is the single-query attention of q_i.
Verdict single_query(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c);
  if (M == 0) return {};
  const std::int64_t i = argument(c, "i", M);
  return agree({run(kernel, with_queries(c, {i})), run(kernel, c).queries({i})},
               bits_if(kernel, {Claim::batch_invariant}), /*about_bits=*/true);
}

enum class Entries { normal, signs, uniform };

/// E x^4 of an entry x with mean 0 and variance 1: a sum of four uniforms, ±1, uniform.
double fourth_moment(Entries entries) {
  return entries == Entries::normal ? 3 - 1.2 / 4 : entries == Entries::signs ? 1 : 1.8;
}

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

/// Pairs q, k of attention.score-variance, and groups whose means' median is taken: 8 ln(1/p) for a false alarm of
/// probability p = 1e-16 on one case, below 1e-9 in a run of up to 1e7 cases.
constexpr int pairs = 8192;
constexpr int groups = 296;

// 003: q, k with independent entries of mean 0 and variance 1: Var(q·k) = dk, Var(q·k/sqrt(dk)) = 1. A score is read
// as the log-sum-exp over its one key. x = (q·k)^2 has mean dk and variance 2 dk^2 + (m^2 - 3) dk, m the fourth moment
// of an entry; the median of the means of `groups` = 8 ln(1/p) groups of x is within 2 sqrt(Var x / size of a group) of
// the mean but for a probability p (Lugosi and Mendelson 2019, theorem 2: x needs no further moments).
Verdict score_variance(Kernel& kernel, const Case& c) {
  if (!is_core(kernel)) return {.outcome = Outcome::skipped, .reason = "is about the core, not about other kernels"};
  const std::int64_t dk = c.q().shape()[3];
  const auto kind = static_cast<Entries>(argument(c, "entries", 3));
  Case sampled;
  sampled.scale = c.scale;
  sampled[Slot::q] = sampled[Slot::k] = Tensor(c.dtype(), {pairs, 1, 1, dk});
  sampled[Slot::v] = Tensor(c.dtype(), {pairs, 1, 1, 1});
  Stream stream(seed_argument(c, "pairs"));
  for (std::int64_t e = 0; e < sampled.q().elements(); ++e) {
    sampled[Slot::q].set(e, entry(kind, stream));
    sampled[Slot::k].set(e, entry(kind, stream));
  }
  const Reply reply = answer(kernel, sampled, c.dtype(), /*want_lse=*/true);
  constexpr int size = pairs / groups;
  std::vector<double> means(groups, 0.0);
  for (int n = 0; n < groups * size; ++n)
    means[static_cast<std::size_t>(n / size)] += reply.lse[n] * reply.lse[n] / size;
  std::ranges::nth_element(means, means.begin() + groups / 2);
  const double width = static_cast<double>(dk), tau = c.scale * c.scale, m = fourth_moment(kind);
  const double spread = 2 * std::sqrt((2 * width * width + (m * m - 3) * width) / size);
  // 2^-5: entries and scores rounded to formats of 8 bits at least.
  const Shape one{1};
  const double found[] = {means[groups / 2]}, expected[] = {tau * width};
  return agree({Numbers(one, found), Numbers(one, expected).loosened(tau * (spread + width * 0x1p-5))});
}

/// Attention over no keys: refused, or what the policy says of a row that sees none.
Verdict without_keys(Kernel& kernel, const Case& c) {
  const Manifest& manifest = kernel.manifest();
  if (!why_unsupported(manifest, c).empty()) return {};
  const Reply reply = kernel.run(c, c.dtype(), manifest.lse);
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

// 000: one function for every M and N: the case as it is, with one query, with none, with one key, and with none.
Verdict any_length(Kernel& kernel, const Case& c) {
  const Arithmetic& arithmetic = kernel.manifest().arithmetic_for(c.dtype());
  const auto judged = [&](const Case& part) -> Verdict {
    if (keys_of(part) == 0) return without_keys(kernel, part);
    const Reply reply = answer(kernel, part);
    return with_element(judge_attention(part, reply.out, {}, arithmetic), part, reply.out);
  };
  const auto first = [](std::int64_t extent) { return extent > 0 ? Indices{0} : Indices{}; };
  Verdict worst = judged(c);
  for (const Indices& queries : {Indices{}, first(queries_of(c))}) {
    const Case part = with_queries(c, queries);
    worst = worse_of({std::move(worst), judged(part)});
    worst = worse_of({std::move(worst), judged(with_keys(part, first(keys_of(c))))});
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
     .statement = "q,k with independent entries of mean 0 and variance 1 (normal, ±1, uniform): Var(q·k) = dk, "
                  "Var(q·k/√dk) = 1",
     .source = "003",
     .needs = "the core",
     .floating_point = "statistical",
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

std::span<const Property> attention_length_properties() {
  return lengths;
}

}  // namespace attest

#include "reports/run/preflight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/kernel/limits.h"
#include "core/oracle/oracle.h"
#include "properties/catalogue/property.h"
#include "properties/language/answer.h"
#include "properties/road/case_budget.h"
#include "properties/road/fit_form.h"
#include "properties/road/watched_kernel.h"
#include "reports/run/interrupt.h"
#include "reports/run/own_families.h"
#include "reports/run/progress.h"
#include "reports/text/text.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

/// A first call that takes longer may have loaded or compiled something.
constexpr double long_call = 0.1;
/// Of a kernel whose calls take longer no further dtype is waited for.
constexpr double very_long_call = 1;
/// A run that lasts longer is announced where its calls are long.
constexpr double long_run = 60;

/// Gives out extents that differ.
class DistinctExtents {
 public:
  /// The first allowed one from `least` on that was not given out yet; where there is none, the largest that may be.
  std::int64_t next(std::int64_t least, const AllowedExtents& allowed) {
    std::int64_t extent = allowed.nearest(least);
    while (std::ranges::count(given_, extent) > 0) {
      const std::int64_t further = allowed.nearest(extent + 1);
      if (further <= extent) break;
      extent = further;
    }
    given_.push_back(extent);
    return extent;
  }

 private:
  std::vector<std::int64_t> given_;
};

/// Numbers between -1 and 1 that differ from their neighbours, the same on every machine.
Tensor filled(DType dtype, const Shape& shape, std::uint64_t seed) {
  Tensor tensor(dtype, shape);
  std::uint64_t state = seed;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    tensor.set(i, static_cast<double>(state >> 53U) / 1024.0 - 1.0);
  }
  return tensor;
}

AllowedExtents allowed_heads(const Manifest& m) {
  return {.multiple = m.heads_multiple, .least = 1, .most = m.max_heads};
}

std::optional<Case> attention_problem(const Manifest& m, DType dtype) {
  DistinctExtents extents;
  const std::int64_t batch = extents.next(2, {});
  std::int64_t heads = extents.next(3, allowed_heads(m));
  // Of a kernel that knows groups of some size alone the smallest groups.
  const std::int64_t group = m.group_sizes.empty() ? 1 : m.group_sizes.front(), kv_heads = heads;
  heads *= group;
  const std::int64_t queries = extents.next(5, m.same_lengths ? allowed_tokens(m) : allowed_queries(m));
  const std::int64_t keys = m.same_lengths ? queries : extents.next(7, allowed_keys(m));
  const std::int64_t dk = extents.next(4, allowed_head_dims(m));
  const std::int64_t dv = m.value_dim_equals_head_dim ? dk : extents.next(6, allowed_value_dims(m));
  const Extents asked{
      .batch = batch, .heads = heads, .kv_heads = kv_heads, .queries = queries, .keys = keys, .dk = dk, .dv = dv};
  if (!why_over_budget(Operation::attention, Extents(), asked).empty()) return std::nullopt;
  Case c;
  c[Slot::q] = filled(dtype, {batch, heads, queries, dk}, 1);
  c[Slot::k] = filled(dtype, {batch, kv_heads, keys, dk}, 2);
  c[Slot::v] = filled(dtype, {batch, kv_heads, keys, dv}, 3);
  // Neither the definition's nor 1, where that may be: whoever takes one of these is seen.
  c.scale = (m.any_scale ? 1.5 : 1) * inverse_root(dk);
  return c;
}

std::optional<Case> multihead_problem(const Manifest& m, DType dtype) {
  DistinctExtents extents;
  const bool one_length = m.self_attention_only || m.same_lengths;
  const std::int64_t batch = extents.next(2, {});
  const std::int64_t heads = extents.next(3, allowed_heads(m));
  const std::int64_t queries = extents.next(5, one_length ? allowed_tokens(m) : allowed_queries(m));
  const std::int64_t keys = one_length ? queries : extents.next(7, allowed_keys(m));
  const std::int64_t width = heads * extents.next(4, allowed_head_dims(m));
  Extents asked{.batch = batch, .heads = heads, .kv_heads = heads, .queries = queries, .keys = keys};
  asked.dk = asked.dv = width / heads;
  asked.c_q = asked.c_k = asked.c_v = asked.d_o = width;
  if (!why_over_budget(Operation::multihead, Extents(), asked).empty()) return std::nullopt;
  Case c;
  c.operation = Operation::multihead;
  c.heads = static_cast<std::int32_t>(heads);
  c[Slot::q] = filled(dtype, {batch, queries, width}, 1);
  c[Slot::k] = m.self_attention_only ? c.q() : filled(dtype, {batch, keys, width}, 2);
  c[Slot::v] = m.self_attention_only ? c.q() : filled(dtype, {batch, keys, width}, 3);
  std::uint64_t seed = 4;
  for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v, Slot::w_o}) c[slot] = filled(dtype, {width, width}, seed++);
  c.scale = inverse_root(width / heads);
  return c;
}

using Axes = std::array<int, 4>;

Shape reordered(const Shape& shape, const Axes& order) {
  std::array<std::int64_t, 4> extents{};
  for (std::size_t axis = 0; axis < 4; ++axis) extents[axis] = shape[order[axis]];
  return Shape(extents);
}

/// The numbers of `values`, which has `shape`, with its axes in another order: axis i of what comes back is order[i].
std::vector<double> reordered(const std::vector<double>& values, const Shape& shape, const Axes& order) {
  std::array<std::int64_t, 4> stride{};
  for (std::int64_t step = 1, axis = 3; axis >= 0; --axis) {
    stride[static_cast<std::size_t>(axis)] = step;
    step *= shape[static_cast<int>(axis)];
  }
  const Shape to = reordered(shape, order);
  const auto step = [&](std::size_t axis) { return stride[static_cast<std::size_t>(order[axis])]; };
  std::vector<double> result;
  result.reserve(values.size());
  for (std::int64_t a = 0; a < to[0]; ++a)
    for (std::int64_t b = 0; b < to[1]; ++b)
      for (std::int64_t c = 0; c < to[2]; ++c)
        for (std::int64_t d = 0; d < to[3]; ++d)
          result.push_back(values[static_cast<std::size_t>(a * step(0) + b * step(1) + c * step(2) + d * step(3))]);
  return result;
}

Tensor reordered(const Tensor& tensor, const Axes& order) {
  return Tensor(tensor.dtype(), reordered(tensor.shape(), order),
                reordered(tensor.to_doubles(), tensor.shape(), order));
}

std::string names_of(const Axes& order) {
  static constexpr std::array<std::string_view, 4> names{"batch", "heads", "tokens", "dim"};
  std::array<std::string_view, 4> named;
  for (std::size_t axis = 0; axis < 4; ++axis) named[axis] = names[static_cast<std::size_t>(order[axis])];
  return fmt::format("[{}]", fmt::join(named, ", "));
}

/// A mistake that is looked for, and the answer to `c` of a kernel that makes it and no other.
struct Likeness {
  std::string words;
  std::vector<double> answer;
};

/// The exact answer, and how far a right one may be from it at most.
struct Exact {
  std::vector<double> answer;
  double allowed = 0;
};

Exact exact_answer(const Case& c, const Arithmetic& arithmetic) {
  Exact exact;
  for (const ElementFacts& element : exact_elements(c, arithmetic)) {
    exact.answer.push_back(element.exact.lower + (element.exact.upper - element.exact.lower) / 2);
    exact.allowed = std::max(exact.allowed, element.allowed);
  }
  return exact;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = std::abs(a[i] - b[i]);
    if (!(apart <= most)) most = apart;  // NaN stays
  }
  return most;
}

std::vector<Likeness> wrong_scalars(const Case& c, const Arithmetic& arithmetic) {
  std::vector<Likeness> all;
  const auto add = [&](std::string words, auto change) {
    Case other = c;
    change(other);
    all.push_back({std::move(words), exact_answer(other, arithmetic).answer});
  };
  const double root = inverse_root(c.q().shape()[3]);
  if (c.scale != root)
    add("it looks as if the scale were 1/sqrt(dk), whatever it is told", [&](Case& o) { o.scale = root; });
  add("it looks as if q.k were not multiplied by the scale", [](Case& o) { o.scale = 1; });
  add("it looks as if q.k were divided by sqrt(dk) besides the scale, in which that is already",
      [&](Case& o) { o.scale *= root; });
  add("it looks as if it were causal, which is not asked for", [](Case& o) { o.causal = Causal::top_left; });
  return all;
}

/// The exact answer with its axes in every other order.
std::vector<Likeness> wrong_orders(const Case& c, const Exact& exact) {
  std::vector<Likeness> all;
  Axes order{0, 1, 2, 3};
  while (std::ranges::next_permutation(order).found) {
    all.push_back({fmt::format("it looks like {} where {} is due", names_of(order), names_of({0, 1, 2, 3})),
                   reordered(exact.answer, c.out_shape(), order)});
  }
  return all;
}

/// What a kernel answers that reads every tensor with the axes batch, heads and tokens in another order. Batch entries
/// and heads are alike to attention: where it looks for tokens is all that shows.
std::vector<Likeness> wrong_readings(const Case& c, const Arithmetic& arithmetic) {
  std::vector<Likeness> all;
  for (const Axes& order : {Axes{0, 2, 1, 3}, Axes{2, 0, 1, 3}}) {
    Case other = c;
    Axes back{};
    for (std::size_t axis = 0; axis < 4; ++axis) back[static_cast<std::size_t>(order[axis])] = static_cast<int>(axis);
    // Axis i is taken for axis order[i] of [batch, heads, tokens, dim].
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) other[slot] = reordered(c[slot], back);
    all.push_back({fmt::format("it looks as if it took q, k and v for {} where they are {}", names_of(order),
                               names_of({0, 1, 2, 3})),
                   reordered(exact_answer(other, arithmetic).answer, other.out_shape(), order)});
  }
  return all;
}

/// The words of the likeness nearest to what was found, if one is as near as a right answer may be. One that is as near
/// to the exact answer tells nothing: an axis of length 1 stands anywhere.
std::string nearest(const std::vector<double>& found, const std::vector<Likeness>& all, const Exact& exact) {
  const Likeness* best = nullptr;
  // The numbers lie between -1 and 1: in the narrowest formats anything is near.
  const double near = std::min(4 * exact.allowed, 0.05);
  double least = near;
  for (const Likeness& one : all) {
    if (one.answer.size() != found.size() || distance(one.answer, exact.answer) <= near) continue;
    const double apart = distance(found, one.answer);
    if (!(apart <= least)) continue;
    least = apart;
    best = &one;
  }
  return best == nullptr ? std::string() : best->words;
}

std::string not_finite(const Tensor& out) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < out.elements(); ++i) count += std::isfinite(out[i]) ? 0 : 1;
  if (count == 0) return {};
  const std::string of =
      count == out.elements() ? "every number" : fmt::format("{} of {} numbers", count, out.elements());
  return fmt::format("{} of out {} {} NaN or Inf", of, out.shape().to_string(), count == out.elements() ? "is" : "are");
}

/// What takes no exact answer to see in an answer that is wrong; empty: nothing.
std::string plain_mistake(const Case& c, const Tensor& out) {
  const auto begins_as = [&](const auto& number) {
    for (std::int64_t i = 0; i < out.elements(); ++i) {
      const std::optional<double> due = number(i);
      if (!due) break;
      if (out[i] != *due) return false;
    }
    return true;
  };
  if (begins_as([](std::int64_t) { return std::optional(0.0); })) return "every one is 0";
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
    const Tensor& input = c[slot];
    const auto number = [&](std::int64_t i) { return i < input.elements() ? std::optional(input[i]) : std::nullopt; };
    if (begins_as(number)) return fmt::format("it is {} itself", name_of(slot));
  }
  return {};
}

/// As many keys as queries, so that whoever takes heads for tokens gets a problem all the same; nothing where that is
/// beyond the manifest's limits.
std::optional<Case> square_problem(const Manifest& manifest, const Case& plain) {
  const Shape &q = plain.q().shape(), &v = plain.v().shape();
  const std::int64_t heads = q[2], tokens = q[1];
  Case c = plain;
  c[Slot::q] = filled(plain.dtype(), {q[0], heads, tokens, q[3]}, 1);
  c[Slot::k] = filled(plain.k().dtype(), {q[0], heads, tokens, q[3]}, 2);
  c[Slot::v] = filled(plain.v().dtype(), {q[0], heads, tokens, v[3]}, 3);
  if (!why_unsupported(manifest, c).empty()) return std::nullopt;
  return c;
}

std::string explained(Kernel& kernel, const Case& plain, const Arithmetic& arithmetic) {
  const std::optional<Case> square = square_problem(kernel.manifest(), plain);
  if (!square) return {};
  const Reply reply = kernel.run(*square);
  if (reply.status != CallStatus::ok) return {};
  return nearest(reply.out.tensor().to_doubles(), wrong_readings(*square, arithmetic),
                 exact_answer(*square, arithmetic));
}

/// What is wrong with an answer that came; empty where it is right, or wrong in no way that is looked for.
std::string trouble_of(Kernel& kernel, const Case& c, const Tensor& out) {
  if (std::string trouble = not_finite(out); !trouble.empty()) return trouble;
  const bool attention = c.operation == Operation::attention;
  const Arithmetic& arithmetic = kernel.manifest().arithmetic_for(c);
  const Verdict verdict =
      attention ? judge_attention(c, out, Tensor(), arithmetic) : judge_multihead(c, out, arithmetic);
  if (verdict.outcome != Outcome::violated) return {};
  std::string likeness = plain_mistake(c, out);
  if (attention) {
    const Exact exact = exact_answer(c, arithmetic);
    const std::vector<double> found = out.to_doubles();
    if (likeness.empty()) likeness = nearest(found, wrong_orders(c, exact), exact);
    if (likeness.empty()) likeness = nearest(found, wrong_scalars(c, arithmetic), exact);
    if (likeness.empty()) likeness = explained(kernel, c, arithmetic);
  }
  if (likeness.empty()) return {};
  return fmt::format("the numbers of out {} are wrong: {}", out.shape().to_string(), likeness);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// "3 s", "0.25 s".
std::string seconds_text(double seconds) {
  return fmt::format("{} s", short_number(seconds));
}

/// What was seen of one kernel, by trouble.
struct Seen {
  std::vector<std::pair<std::string, std::vector<std::string_view>>> troubles;  ///< and the dtypes of each
  double slowest = 0, all_cases = 0;                                            ///< of a call; of a call per case
  std::int64_t cases = 0;
};

void add(Seen& seen, DType dtype, const Preflight& result, const Amount& amount) {
  if (!result.trouble.empty()) {
    auto same = std::ranges::find(seen.troubles, result.trouble, &decltype(seen.troubles)::value_type::first);
    if (same == seen.troubles.end()) same = seen.troubles.insert(same, {result.trouble, {}});
    same->second.push_back(name_of(dtype));
  }
  if (result.status != CallStatus::ok) return;
  seen.slowest = std::max(seen.slowest, result.seconds);
  seen.all_cases += result.seconds * static_cast<double>(amount.cases) / amount.jobs;
  seen.cases += amount.cases;
}

Seen looked_at(Kernel& kernel, std::span<const DType> wanted, const Amount& amount) {
  Seen seen;
  WatchedKernel watched(kernel, interrupt_requested);
  double known = 0;  // of a call, where one dtype is enough to know that calls are long
  for (const DType dtype : kernel.manifest().dtypes) {
    if (!wanted.empty() && std::ranges::count(wanted, dtype) == 0) continue;
    const std::optional<Case> problem = plain_problem(kernel.manifest(), dtype);
    if (!problem) continue;
    const Preflight result =
        known > 0 ? Preflight{.trouble = {}, .status = CallStatus::ok, .seconds = known} : preflight(watched, *problem);
    add(seen, dtype, result, amount);
    // Every hang costs a whole time limit.
    if (result.status == CallStatus::timed_out || result.status == CallStatus::late) break;
    if (result.status == CallStatus::ok && result.seconds > very_long_call) known = result.seconds;
  }
  return seen;
}

}  // namespace

std::optional<Case> plain_problem(const Manifest& manifest, DType dtype) {
  std::optional<Case> c = manifest.attention ? attention_problem(manifest, dtype) : multihead_problem(manifest, dtype);
  if (c) c = in_kv_dtypes(*std::move(c), manifest);
  if (!c || why_unsupported(manifest, *c).empty()) return c;
  // What the manifest asks of forms: a causal form, or a mask.
  *c = project(*std::move(c), manifest);
  return why_unsupported(manifest, *c).empty() ? c : std::nullopt;
}

Preflight preflight(Kernel& kernel, const Case& c) {
  Preflight result;
  Clock::time_point start = Clock::now();
  const Reply reply = kernel.run(c);
  result.seconds = seconds_since(start);
  result.status = reply.status;
  if (reply.status == CallStatus::unsupported) return result;
  if (reply.status != CallStatus::ok) {
    result.trouble = ending_text(reply.status, reply.message);
    // Axes that are taken for others may not fit each other.
    if (reply.status == CallStatus::failed && c.operation == Operation::attention) {
      const std::string likeness = explained(kernel, c, kernel.manifest().arithmetic_for(c));
      // First, as what a kernel says may be long.
      if (!likeness.empty()) result.trouble = fmt::format("{}; {}", likeness, result.trouble);
    }
    return result;
  }
  if (result.seconds > long_call) {
    start = Clock::now();
    (void)kernel.run(c);
    result.seconds = seconds_since(start);
  }
  result.trouble = trouble_of(kernel, c, reply.out);
  return result;
}

std::vector<MetaRecord> look_before_the_run(std::span<const std::unique_ptr<Kernel>> kernels,
                                            std::span<const DType> wanted, const Amount& amount) {
  std::vector<MetaRecord> notes;
  try {
    for (const std::unique_ptr<Kernel>& kernel : kernels) {
      if (is_own(kernel->id())) continue;
      // In a process of its own: a kernel that keeps something between calls comes to the run as it was loaded.
      const std::unique_ptr<Kernel> clone = is_own_adapter(kernel->id()) ? nullptr : kernel->clone();
      const Seen seen = looked_at(clone ? *clone : *kernel, wanted, amount);
      for (const auto& [trouble, dtypes] : seen.troubles) {
        const std::string text =
            cut_short(one_line(fmt::format("its first answer in {}: {}", fmt::join(dtypes, ", "), trouble)), 400);
        fmt::print(stderr, "preflight of {}: {}\n", one_line(kernel->id()), text);
        notes.push_back({"note", {{"kernel", kernel->id()}, {"text", text}}});
      }
      if (seen.slowest < long_call || seen.all_cases < long_run) continue;
      fmt::print(stderr,
                 "preflight of {}: a call takes {}, so that the {} cases of this run take {} or longer; --cases, "
                 "--property, --dtype and --time make it shorter\n",
                 one_line(kernel->id()), seconds_text(seen.slowest), seen.cases, duration_text(seen.all_cases));
    }
  } catch (const Abandoned&) {
    return notes;
  }
  return notes;
}

}  // namespace attest

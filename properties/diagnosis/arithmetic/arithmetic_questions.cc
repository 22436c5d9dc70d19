#include "properties/diagnosis/arithmetic/arithmetic_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/kernel/limits.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

/// Of keys that a question does not name. Every format's exp of it is nothing beside 1, and adding it loses nothing.
constexpr double far_below = -1000;
/// Dimensions that scores are made of: pieces in all but the last, far_below in the last.
constexpr std::int64_t score_dims = 4;
/// Numbers of one call, so that none takes long or much memory.
constexpr std::int64_t most_numbers_asked = std::int64_t{1} << 20;

double nan() {
  return std::numeric_limits<double>::quiet_NaN();
}

long double sum_of(const std::vector<double>& pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), 0.0L);
}

/// The same of so many bits, cut toward zero.
long double cut(long double x, int bits) {
  const int last = std::ilogb(x) + 1 - bits;
  return std::ldexp(std::trunc(std::ldexp(x, -last)), last);
}

}  // namespace

Weights exact_weights(const std::vector<WeightQuestion>& questions) {
  Weights all;
  all.reserve(questions.size());
  for (const WeightQuestion& one : questions) all.push_back(std::exp(sum_of(one.pieces) - sum_of(one.top)));
  return all;
}

long double largest_error(const Weights& found, const Weights& right) {
  constexpr long double infinite = std::numeric_limits<long double>::infinity();
  long double most = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const long double error = std::fabs(found[i] / right[i] - 1);
    most = error <= most ? most : std::isfinite(static_cast<double>(error)) ? error : infinite;
  }
  return most;
}

ArithmeticQuestions::ArithmeticQuestions(Kernel& kernel, DType dtype) : kernel_(kernel), dtype_(dtype), output_(dtype) {
  const Manifest& m = kernel.manifest();
  if (!m.attention) {
    why_not_ = "the attention entry alone is asked";
    return;
  }
  if (size_of(dtype) < 2) {
    why_not_ = fmt::format("{} holds too few numbers to ask with", name_of(dtype));
    return;
  }
  formats_ = m.kv_dtypes_for(dtype).front();
  if (size_of(formats_.k) < 2 || size_of(formats_.v) < 2) {
    why_not_ = "its keys or values hold too few numbers to ask with";
    return;
  }
  if (const auto further = m.out_dtypes.find(dtype); further != m.out_dtypes.end()) {
    for (const DType one : further->second)
      if (format_of(one).unit < format_of(output_).unit) output_ = one;
  }
  const auto dk = head_dim_from(score_dims);
  const auto keys = keys_from(8);
  if (!dk) {
    why_not_ = "it takes no head dimension of which scores come out exactly";
    return;
  }
  if (!keys) {
    why_not_ = "it takes too few keys";
    return;
  }
  if (std::string why = why_unsupported(m, blank(1, *keys, *dk, value_dim(1, *dk))); !why.empty())
    why_not_ = fmt::format("the plain problem {}", why);
  read_bits(format_of(dtype).precision < 24 ? 24 : format_of(dtype).precision);
}

std::optional<std::int64_t> ArithmeticQuestions::keys_from(std::int64_t keys) const {
  const Manifest& m = manifest();
  const auto allowed = (m.same_lengths ? allowed_tokens(m) : allowed_keys(m)).from(keys);
  // Rows come with the keys where lengths are equal.
  if (!allowed || *allowed > (m.same_lengths ? 256 : 1 << 16)) return std::nullopt;
  return allowed;
}

std::optional<std::int64_t> ArithmeticQuestions::keys_near(std::int64_t keys) const {
  if (const auto from = keys_from(keys)) return from;
  const Manifest& m = manifest();
  const std::int64_t most = (m.same_lengths ? allowed_tokens(m) : allowed_keys(m)).nearest(keys);
  return keys_from(std::min<std::int64_t>(most, m.same_lengths ? 256 : 1 << 16) / 2 + 1) && most >= 4 ? keys_from(most)
                                                                                                      : std::nullopt;
}

std::optional<std::int64_t> ArithmeticQuestions::head_dim_from(std::int64_t dk) const {
  const AllowedExtents allowed = allowed_head_dims(manifest());
  std::optional<std::int64_t> found;
  if (manifest().any_scale) {
    found = allowed.from(dk);
  } else {
    for (std::int64_t one = 4; one <= 1024 && !found; one *= 4)
      if (one >= dk && allowed.has(one)) found = one;
  }
  return found && *found <= 1024 ? found : std::nullopt;
}

double ArithmeticQuestions::scale(std::int64_t dk) const {
  return manifest().any_scale ? 1.0 : inverse_root(dk);
}

std::int64_t ArithmeticQuestions::value_dim(std::int64_t wanted, std::int64_t dk) const {
  if (manifest().value_dim_equals_head_dim) return dk;
  return allowed_value_dims(manifest()).nearest(wanted);
}

void ArithmeticQuestions::read_bits(int bits) {
  bits_ = bits;
  const int each = format_of(formats_.v).precision;
  top_keys_ = std::max(1, (bits + each - 1) / each);
}

std::int64_t ArithmeticQuestions::rows(std::int64_t keys) const {
  return manifest().same_lengths ? keys : allowed_queries(manifest()).nearest(rows_);
}

Case ArithmeticQuestions::blank(std::int64_t batch, std::int64_t keys, std::int64_t dk, std::int64_t dv) const {
  const Manifest& m = manifest();
  const std::int64_t heads = m.heads_multiple * (m.group_sizes.empty() ? 1 : m.group_sizes.front());
  const std::int64_t kv_heads = m.group_sizes.empty() ? heads : heads / m.group_sizes.front();

  Case c;
  c.scale = scale(dk), c.softcap = softcap_;
  c[Slot::q] = Tensor(dtype_, {batch, heads, rows(keys), dk});
  c[Slot::k] = Tensor(formats_.k, {batch, kv_heads, keys, dk});
  c[Slot::v] = Tensor(formats_.v, {batch, kv_heads, keys, dv});
  return c;
}

void ArithmeticQuestions::set(Case& c, Slot slot, std::int64_t batch, std::int64_t row, std::int64_t column, double x) {
  const Shape shape = c[slot].shape();
  for (std::int64_t h = 0; h < shape[1]; ++h) {
    if (slot != Slot::q) {
      c[slot].set(shape.flat(batch, h, row, column), x);
      continue;
    }
    for (std::int64_t i = 0; i < shape[2]; ++i) c[slot].set(shape.flat(batch, h, i, column), x);
  }
}

std::optional<std::vector<double>> ArithmeticQuestions::ask(const Case& c, DType output) {
  const Reply reply = kernel_.run(c, output, asks_lse(kernel_.manifest(), c, /*wanted=*/false));
  if (reply.status != CallStatus::ok) {
    failure_ = ending_text(reply.status, reply.message);
    return std::nullopt;
  }
  const Shape shape = reply.out.shape();
  std::vector<double> out;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    // The last row, which sees every key under a causal form too.
    for (std::int64_t d = 0; d < shape[3]; ++d)
      out.push_back(reply.out[shape.flat(b, std::int64_t{0}, shape[2] - 1, d)]);
  }
  return out;
}

std::optional<std::vector<double>> ArithmeticQuestions::products(const std::vector<SumTerms>& sums, std::int64_t dk) {
  const std::int64_t keys = *keys_from(2), dv = value_dim(1, dk);
  const auto most = std::max<std::int64_t>(1, most_numbers_asked / (keys * (dk + dv)));
  std::vector<double> found;
  for (std::size_t begin = 0; begin < sums.size(); begin += static_cast<std::size_t>(most)) {
    const auto batch = std::min<std::int64_t>(most, static_cast<std::int64_t>(sums.size() - begin));
    Case c = blank(batch, keys, dk, dv);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t d = 0; d < dk; ++d) set(c, Slot::q, b, 0, d, 1);
      for (const SumTerm& term : sums[begin + static_cast<std::size_t>(b)]) {
        // A product of two numbers reaches further than one.
        const double product = term.value / c.scale, half = is_short() ? 0x1p14 : 1.0;
        const double factor = std::fabs(product) >= half ? half : 1.0;
        set(c, Slot::q, b, 0, term.at, factor);
        set(c, Slot::k, b, keys - 1, term.at, product / factor);
      }
      for (std::int64_t d = 0; d < dv; ++d) set(c, Slot::v, b, keys - 1, d, 1);
    }
    const auto out = ask(c, output_);
    if (!out) return std::nullopt;
    for (std::int64_t b = 0; b < batch; ++b) {
      // w / (w + keys - 1)
      const double share = (*out)[static_cast<std::size_t>(b * dv)];
      found.push_back(share > 0 && share < 1 ? std::log(share / (1 - share) * static_cast<double>(keys - 1))
                      : share >= 1           ? std::numeric_limits<double>::infinity()
                      : share == 0           ? -std::numeric_limits<double>::infinity()
                                             : nan());
    }
  }
  return found;
}

std::optional<std::vector<double>> ArithmeticQuestions::sums(const std::vector<SumTerms>& sums, std::int64_t keys,
                                                             const std::vector<std::int64_t>& visible) {
  const std::int64_t dk = *head_dim_from(score_dims), dv = value_dim(64, dk);
  const auto most = std::max<std::int64_t>(1, most_numbers_asked / (keys * (dk + dv)));
  std::vector<double> found;
  while (found.size() < sums.size()) {
    const std::size_t begin = found.size();
    const auto left = static_cast<std::int64_t>(sums.size() - begin);
    const std::int64_t batch = std::min(most, (left + dv - 1) / dv);
    Case c = blank(batch, keys, dk, dv);
    for (std::int64_t b = 0; b < batch; ++b) {
      set(c, Slot::q, b, 0, 0, 1);
      for (std::int64_t j = 0; j < keys; ++j) set(c, Slot::k, b, j, 0, far_below / c.scale);
      for (const std::int64_t j : visible) set(c, Slot::k, b, j, 0, 0);
    }
    for (std::int64_t s = 0; s < std::min(left, batch * dv); ++s)
      for (const SumTerm& term : sums[begin + static_cast<std::size_t>(s)])
        set(c, Slot::v, s / dv, term.at, s % dv, term.value);
    const auto out = ask(c, output_);
    if (!out) return std::nullopt;
    for (std::int64_t s = 0; s < std::min(left, batch * dv); ++s)
      found.push_back((*out)[static_cast<std::size_t>(s)] * static_cast<double>(visible.size()));
  }
  return found;
}

std::optional<double> ArithmeticQuestions::denominator(std::int64_t top, double score,
                                                       const std::vector<std::int64_t>& at, std::int64_t keys) {
  const std::int64_t dk = *head_dim_from(score_dims), dv = value_dim(1, dk);
  Case c = blank(1, keys, dk, dv);
  set(c, Slot::q, 0, 0, 0, 1);
  for (std::int64_t j = 0; j < keys; ++j) set(c, Slot::k, 0, j, 0, far_below / c.scale);
  for (const std::int64_t j : at) set(c, Slot::k, 0, j, 0, score / c.scale);
  set(c, Slot::k, 0, top, 0, 0);
  set(c, Slot::v, 0, top, 0, 1);
  const auto out = ask(c, output_);
  return out ? std::optional((*out)[0]) : std::nullopt;
}

long double ArithmeticQuestions::score_of(const std::vector<double>& pieces) const {
  const long double product = sum_of(pieces), cap = softcap_;
  return cap > 0 ? cap * std::tanh(product / cap) : product;
}

long double ArithmeticQuestions::expected_of(const WeightQuestion& asked) const {
  return std::exp(score_of(asked.pieces) - score_of(asked.top));
}

std::optional<Weights> ArithmeticQuestions::weights(const std::vector<WeightQuestion>& questions, std::int64_t keys) {
  auto once = weights_once(questions, keys);
  if (!once) return once;
  std::vector<WeightQuestion> again = questions;
  bool far = format_of(output_).precision < 24;
  for (std::size_t i = 0; i < again.size(); ++i) {
    const long double found = (*once)[i];
    if (!(found > 0) || !std::isfinite(found)) continue;
    again[i].near = found;
    far = far || std::fabs(found / expected_of(questions[i]) - 1) > 0x1p-16L;
  }
  return far ? weights_once(again, keys) : once;
}

std::optional<Weights> ArithmeticQuestions::weights_once(const std::vector<WeightQuestion>& questions,
                                                         std::int64_t keys) {
  const std::int64_t dk = *head_dim_from(score_dims), dv = value_dim(1, dk), tops = top_keys_;
  const auto most = std::max<std::int64_t>(1, most_numbers_asked / (keys * (dk + dv)));
  const int most_exponent = std::min(std::ilogb(format_of(formats_.v).largest), 100);
  std::vector<long double> found;
  while (found.size() < questions.size()) {
    const std::size_t begin = found.size();
    const auto batch = std::min<std::int64_t>(most, static_cast<std::int64_t>(questions.size() - begin));
    Case c = blank(batch, keys, dk, dv);
    std::vector<long double> taken, scaled, total;
    for (std::int64_t b = 0; b < batch; ++b) {
      const WeightQuestion& asked = questions[begin + static_cast<std::size_t>(b)];
      const auto place = [&](std::int64_t j, const std::vector<double>& pieces) {
        for (std::int64_t d = 0; d < score_dims; ++d) {
          const auto piece = static_cast<std::size_t>(d);
          set(c, Slot::k, b, j, d, piece < pieces.size() ? pieces[piece] / c.scale : 0.0);
        }
      };
      for (std::int64_t d = 0; d < score_dims; ++d) set(c, Slot::q, b, 0, d, 1);
      for (std::int64_t j = 0; j < keys; ++j) place(j, {far_below});
      const long double top = score_of(asked.top);
      // No more bits than are read, so that no order of the pieces rounds their sum.
      const long double expected = cut(asked.near.value_or(expected_of(asked)), bits_);
      long double sum = static_cast<long double>(tops) + expected;
      for (const ScoredKey& other : asked.others) {
        place(other.at, other.pieces);
        sum += std::exp(score_of(other.pieces) - top);
      }
      // A cap brings the keys that are not named as near as this.
      const std::int64_t unnamed = keys - tops - 1 - std::ssize(asked.others);
      if (softcap_ > 0) sum += static_cast<long double>(unnamed) * std::exp(score_of({far_below}) - top);
      place(asked.target, asked.pieces);
      // Pieces of the expected weight, each cut toward zero: any order of the sum is exact that holds the weight.
      const int exponent = std::min(most_exponent, 10 - std::ilogb(static_cast<double>(expected)));
      const long double unit = std::ldexp(1.0L, exponent);
      set(c, Slot::v, b, asked.target, 0, static_cast<double>(unit));
      long double rest = unit * expected;
      for (std::int64_t t = 0; t < tops; ++t) {
        const double piece = truncate_to(formats_.v, static_cast<double>(rest));
        place(asked.tops + t, asked.top);
        set(c, Slot::v, b, asked.tops + t, 0, -piece);
        rest -= static_cast<long double>(piece);
      }
      taken.push_back(unit * expected - rest), scaled.push_back(unit), total.push_back(sum);
    }
    const auto out = ask(c, output_);
    if (!out) return std::nullopt;
    for (std::int64_t b = 0; b < batch; ++b) {
      const auto e = static_cast<std::size_t>(b);
      found.push_back((static_cast<long double>((*out)[e * static_cast<std::size_t>(dv)]) * total[e] + taken[e]) /
                      scaled[e]);
    }
  }
  return found;
}

}  // namespace attest

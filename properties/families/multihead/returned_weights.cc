#include "properties/families/multihead/returned_weights.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/kernels/core_functions.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "core/scalars/wide.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/families/multihead/multihead_oracle.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/core_agreement.h"
#include "properties/language/skip_reasons.h"

namespace attest {
namespace {

/// The weights are what attention answers where every head's values are the identity: the case whose output, [batch, M,
/// heads*N], they are. Its V = I is projected by [I | … | I].
Case asking_for_weights(const Case& c) {
  const std::int64_t batch = c.q().shape()[0], N = keys_of(c);
  Case asked = c;
  asked[Slot::v] =
      mapped(Tensor(c.dtype(), {batch, N, N}), [&](std::int64_t e, double) { return e / N % N == e % N ? 1.0 : 0.0; });
  asked[Slot::w_v] = mapped(Tensor(c.dtype(), {N, c.heads * N}), [&](std::int64_t e, double) {
    return e / (c.heads * N) == e % (c.heads * N) % N ? 1.0 : 0.0;
  });
  for (const Slot slot : {Slot::b_v, Slot::w_o, Slot::b_o}) asked[slot] = {};
  return asked;
}

/// Answers that one case with the weights, so that they are judged as an output is.
class Returned final : public Kernel {
 public:
  Returned(const Kernel& kernel, Values weights)
      : id_(kernel.id()), digits_(kernel.digits()), weights_(std::move(weights)) {
    // Of what the kernel cannot do nothing is asked here.
    manifest_.name = id_;
    manifest_.multihead = true;
    manifest_.causal = {Causal::top_left, Causal::bottom_right};
    manifest_.mask_conventions = {MaskConvention::pre_scale, MaskConvention::post_scale};
    manifest_.dtypes = kernel.manifest().dtypes;
    manifest_.arithmetic = kernel.manifest().arithmetic;
    manifest_.claims = kernel.manifest().claims;
    manifest_.fully_masked_row = kernel.manifest().fully_masked_row;
  }
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] unsigned digits() const override { return digits_; }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool) override {
    Indices origins = all_of(c.out_shape().elements());
    for (std::int64_t& e : origins) e = origin(e);
    const Values out = weights_.gather(c.out_shape(), origins);
    const auto* const wide = out.as<Enclosures>();
    for (std::int64_t e = 0; output && wide != nullptr && wide->unit() == 0 && e < out.elements(); ++e)
      if (is_loose((*wide)[e])) return {CallStatus::unsupported, std::string(why_loose), {}, {}};
    // The core gives weights of a hardware scalar in f64, whatever the dtype of the case.
    if (output || out.is<Tensor>()) return {CallStatus::ok, {}, out.rounded(output.value_or(c.dtype())), {}};
    return {CallStatus::ok, {}, out, {}};
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<Returned>(*this); }

  /// Element [b, i, h*N + j] of the output is weight [b, h, i, j].
  [[nodiscard]] std::int64_t origin(std::int64_t e) const {
    const Shape& s = weights_.shape();
    const std::int64_t heads = s[1], M = s[2], N = s[3], column = e % (heads * N), row = e / (heads * N);
    return ((row / M * heads + column / N) * M + row % M) * N + column % N;
  }

 private:
  std::string id_;
  unsigned digits_;
  Manifest manifest_;
  Values weights_;
};

/// Of an enclosure its middle.
Wide number(const Run& run, std::int64_t e) {
  const WideInterval found = run.out().enclosure(e);
  return ldexp(found.lower + found.upper, -1);
}

/// How far the exact weight may be from that.
long double allowed_to(const Run& run, std::int64_t e) {
  const WideInterval found = run.out().enclosure(e);
  return run.bound(e).allowed + static_cast<long double>(ldexp(found.upper - found.lower, -1)) * (1 + 0x1p-60L);
}

/// Certainly: NaN is not (whether it may stand there is the oracle's to say), nor an interval that reaches to 0.
bool is_not_zero(const Run& run, std::int64_t e) {
  const WideInterval found = run.out().enclosure(e);
  return found.lower > 0 || found.upper < 0;
}

/// Of intervals, and where the order of factors tells, two ways to one number need not give the same one.
Match match_of(const Kernel& kernel, const Values& numbers) {
  const auto* const wide = numbers.as<Enclosures>();
  const bool encloses = wide != nullptr && wide->unit() == 0;
  return encloses || core_of_bits(kernel) == nullptr ? Match::bound : Match::values;
}

/// A hidden key has no weight at all, in a row that sees another one.
Verdict zero_where_hidden(const Case& c, const Run& weights) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  for (std::int64_t b = 0; b < batch_of(c); ++b) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      for (std::int64_t i = 0; i < M; ++i) {
        std::vector<std::int64_t> unseen;
        for (std::int64_t j = 0; j < N; ++j)
          if (hidden(c, b, h, i, j)) unseen.push_back(j);
        if (std::ssize(unseen) == N) continue;
        for (const std::int64_t j : unseen) {
          const std::int64_t at = (b * M + i) * c.heads * N + h * N + j;
          if (!is_not_zero(weights, at)) continue;
          return violated(Violation::bound, fmt::format("the weight of key {}, which is hidden from row {} of head {} "
                                                        "in batch entry {}, is {}",
                                                        j, i, h, b, static_cast<double>(number(weights, at))));
        }
      }
    }
  }
  return {};
}

/// The output that the weights give, and how far the exact one may be from it, as each weight may be from its own.
struct ByWeights {
  std::vector<Wide> output;
  std::vector<long double> apart;
};
ByWeights output_of(const Case& c, const Run& weights) {
  const std::int64_t M = queries_of(c), N = keys_of(c), heads = c.heads, c_v = c.v().shape()[2],
                     width = c[Slot::w_v].shape()[1], dv = width / heads,
                     d_o = c[Slot::w_o].present() ? c[Slot::w_o].shape()[1] : width;
  const auto through_w_o = [&](std::int64_t column, std::int64_t o) {
    return c[Slot::w_o].present() ? c[Slot::w_o][column * d_o + o] : column == o ? 1.0 : 0.0;
  };
  ByWeights by;
  for (std::int64_t b = 0; b < batch_of(c); ++b) {
    std::vector<Wide> values(static_cast<std::size_t>(N * width), Wide());
    for (std::int64_t e = 0; e < N * width; ++e) {
      Wide& value = values[static_cast<std::size_t>(e)];
      if (c[Slot::b_v].present()) value = c[Slot::b_v][e % width];
      for (std::int64_t x = 0; x < c_v; ++x)
        value += Wide(c.v()[(b * N + e / width) * c_v + x]) * Wide(c[Slot::w_v][x * width + e % width]);
    }
    for (std::int64_t i = 0; i < M; ++i) {
      for (std::int64_t o = 0; o < d_o; ++o) {
        Wide sum = c[Slot::b_o].present() ? c[Slot::b_o][o] : 0.0;
        long double apart = 0, sizes = 0;
        for (std::int64_t h = 0; h < heads; ++h) {
          for (std::int64_t j = 0; j < N; ++j) {
            if (hidden(c, b, h, i, j)) continue;
            const std::int64_t at = (b * M + i) * heads * N + h * N + j;
            Wide passed, size;
            for (std::int64_t d = 0; d < dv; ++d) {
              const Wide term = values[static_cast<std::size_t>(j * width + h * dv + d)] * through_w_o(h * dv + d, o);
              passed += term, size += abs(term);
            }
            sum += number(weights, at) * passed;
            const auto most = static_cast<long double>(size);
            apart += most * allowed_to(weights, at);
            sizes += most * static_cast<long double>(abs(number(weights, at)));
          }
        }
        // The sums are those of Wide, N heads dv of them.
        apart = apart * (1 + 0x1p-50L) + std::ldexp(sizes, 64 - static_cast<int>(Wide::bits()));
        by.output.push_back(std::move(sum));
        by.apart.push_back(apart);
      }
    }
  }
  return by;
}

}  // namespace

Verdict returned_weights_law(Kernel& kernel, const Case& c) {
  const auto returned = returned_weights(kernel.id());
  if (returned == nullptr)
    return {.outcome = Outcome::skipped, .reason = fmt::format("{}; {} returns none", why_of_weights, kernel.id())};
  const Result out = run(kernel, c);
  const Case asked = asking_for_weights(c);
  const Values given = returned(c);
  Returned answers(kernel, given);
  const Verdict by_oracle = judged_multihead(answers, asked);
  Verdict verdict = by_oracle;
  const Result weights = run(answers, asked);
  if (is_core(kernel) && why_unsupported(kernel.manifest(), asked).empty())
    verdict = worse_of({std::move(verdict), agree({weights, run(kernel, asked)}, match_of(kernel, given))});
  verdict = worse_of({std::move(verdict), zero_where_hidden(c, weights.run())});
  const ByWeights by = output_of(c, weights.run());
  Indices bounded;
  std::vector<Wide> output;
  std::vector<long double> apart;
  for (std::int64_t e = 0; e < out.elements(); ++e) {
    const auto at = static_cast<std::size_t>(e);
    if (!isfinite(by.output[at]) || !std::isfinite(by.apart[at])) continue;
    bounded.push_back(e);
    output.push_back(by.output[at]), apart.push_back(by.apart[at]);
  }
  const Shape shape{std::ssize(bounded)};
  verdict =
      worse_of({std::move(verdict), agree_to_within({Numbers(out.at(shape, bounded)), Numbers(shape, output)}, apart)});
  // Where no weight has a bound, that nothing else was wrong is not that they were right.
  return verdict.outcome == Outcome::held && by_oracle.outcome != Outcome::held ? by_oracle : verdict;
}

}  // namespace attest

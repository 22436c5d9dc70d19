// Backward passes written out once more, each with one of the mistakes that people make in them.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/problem/case.h"
#include "core/problem/score.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

/// What is not as it should be; as it stands here, nothing.
struct Slip {
  double delta = 1;                   ///< D times this
  double weight = 1;                  ///< P times this
  double of_hidden = 0;               ///< weight of a key that the row does not see
  bool multiplies_hidden = false;     ///< what a hidden key holds is multiplied by 0
  bool empty_rows = false;            ///< a row that sees no key sees all alike
  bool squared = false;               ///< g |g| in the place of g
  bool absolute = false;              ///< |g|
  std::int64_t columns_lost = 0;      ///< so many of the last columns of V and g do not enter dP
  bool next_heads_query = false;      ///< dK of a head with the query of the next one
  bool first_head_alone = false;      ///< dK and dV of the first query head of a group
  bool heads_in_turn = false;         ///< query head h reads key-value head h mod KV
  bool last_key_lost_in_dq = false;   ///< one key too few
  bool next_query = false;            ///< dq of the row behind, too
  bool repeats_once = false;          ///< a query that repeats the one before adds nothing to dK and dV
  double scale_of_q = 1;              ///< dQ without the scale: scale to the power of 1 - this
  double scale_of_k = 1;              ///< dK as well
  double value_in_dv = 0;             ///< dV has a trace of V
  double by_row = 0;                  ///< rows count a little more the later they are
  std::int64_t multiple = 1;          ///< columns behind the last multiple of this are left 0
  bool same_slope = false;            ///< the derivative of a cap is 1
  bool dropped_in_scores = false;     ///< what is kept of P, in the place of P, in dS, and dP of all
  bool dropped_is_hidden = false;     ///< no dS of a key whose weight is dropped
  bool kept_as_it_is = false;         ///< dV of kept weights that are not divided by the share that is kept
  bool kept_adds_up = false;          ///< dV of kept weights that add up to 1
  bool mask_before_cap = false;       ///< the gradient by a mask has the derivative of a cap
  bool mask_of_one = false;           ///< that of the first entry and head that share a mask alone
  bool mask_unscaled = false;         ///< the same of one that the scale multiplies
  bool sink_of_first_entry = false;   ///< dsink of the first entry of the batch alone
  bool sink_before_max = false;       ///< dsink of e^sink over a sum that is relative to the largest score
  double by_lse = 1;                  ///< gamma times this
  bool by_lse_squared = false;        ///< gamma |gamma| in the place of gamma
  bool by_lse_of_next_head = false;   ///< that of the next head
  bool by_lse_not_in_sink = false;    ///< dsink of D alone
  double by_lse_in_dv = 0;            ///< dV has a trace of gamma
  double by_next_lse = 0;             ///< and gamma of that of the row behind
  bool by_lse_of_empty_rows = false;  ///< dV has a trace of gamma of rows that see no key
};

class PlainPass {
 public:
  PlainPass(const Case& c, const Slip& slip)
      : c_(c),
        slip_(slip),
        of_q_(c.dtype(), c.q().shape()),
        of_k_(c.dtype(), c.k().shape()),
        of_v_(c.dtype(), c.v().shape()) {
    if (has_argument_of(c, Gradient::mask)) of_mask_ = Tensor(c.mask().dtype(), c.mask().shape());
    if (has_argument_of(c, Gradient::sink)) of_sink_ = Tensor(c[Slot::sink].dtype(), c[Slot::sink].shape());
    sums_of_mask_.assign(static_cast<std::size_t>(of_mask_.elements()), 0);
    sums_of_sink_.assign(static_cast<std::size_t>(of_sink_.elements()), 0);
    for (std::int64_t b = 0; b < batch_of(c); ++b)
      for (std::int64_t h = 0; h < heads_of(c); ++h)
        for (std::int64_t i = 0; i < queries_of(c); ++i) add_row(b, h, i);
    for (Tensor* const t : {&of_q_, &of_k_, &of_v_}) finish(*t);
    for (std::int64_t e = 0; e < of_mask_.elements(); ++e) of_mask_.set(e, sums_of_mask_[static_cast<std::size_t>(e)]);
    for (std::int64_t e = 0; e < of_sink_.elements(); ++e) of_sink_.set(e, sums_of_sink_[static_cast<std::size_t>(e)]);
  }
  [[nodiscard]] Reply reply() const {
    Reply reply;
    reply.gradients = {of_q_, of_k_, of_v_, of_mask_, of_sink_};
    return reply;
  }

 private:
  [[nodiscard]] double g(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t e) const {
    const double x = c_[Slot::d_out].at(b, h, i, e);
    return slip_.squared ? x * std::fabs(x) : slip_.absolute ? std::fabs(x) : x;
  }
  [[nodiscard]] double by_lse(std::int64_t b, std::int64_t h, std::int64_t i) const {
    const Tensor& t = c_[Slot::d_lse];
    if (!t.present()) return 0;
    const std::int64_t heads = heads_of(c_), head = slip_.by_lse_of_next_head ? (h + 1) % heads : h;
    const std::int64_t rows = queries_of(c_), at = (b * heads + head) * rows + i;
    const double x = t[at] + (slip_.by_next_lse != 0 && i + 1 < rows ? slip_.by_next_lse * t[at + 1] : 0);
    return slip_.by_lse * (slip_.by_lse_squared ? x * std::fabs(x) : x);
  }
  [[nodiscard]] std::int64_t kv_of(std::int64_t h) const {
    return slip_.heads_in_turn ? h % c_.k().shape()[1] : kv_head_of(c_, h);
  }
  static void add(Tensor& t, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t e, double x) {
    const Shape& s = t.shape();
    const std::int64_t at = ((b * s[1] + h) * s[2] + i) * s[3] + e;
    t.set(at, t[at] + x);
  }
  [[nodiscard]] bool repeats(std::int64_t b, std::int64_t h, std::int64_t i) const {
    if (i == 0) return false;
    const Tensor& q = c_.q();
    for (std::int64_t p = 0; p < i; ++p) {
      bool same = true;
      for (std::int64_t e = 0; same && e < q.shape()[3]; ++e) same = q.at(b, h, i, e) == q.at(b, h, p, e);
      if (same) return true;
    }
    return false;
  }

  /// The scores of what the row sees; the rest is -inf. With the derivative of a cap by each.
  [[nodiscard]] std::vector<double> scores_of(std::int64_t b, std::int64_t h, std::int64_t i,
                                              std::vector<double>& slopes) const {
    const std::int64_t N = keys_of(c_), kv = kv_of(h);
    std::vector<double> scores(static_cast<std::size_t>(N), -infinity);
    slopes.assign(scores.size(), 1);
    for (std::int64_t j = 0; j < N; ++j) {
      if (hidden(c_, b, h, i, j)) continue;
      double product = 0;
      for (std::int64_t e = 0; e < c_.q().shape()[3]; ++e) product += c_.q().at(b, h, i, e) * c_.k().at(b, kv, j, e);
      scores[static_cast<std::size_t>(j)] = score_in(c_, product, bias_of(c_, b, h, i, j));
      if (c_.softcap == 0 || slip_.same_slope) continue;
      const double cosh = std::cosh(c_.scale * product / c_.softcap);
      slopes[static_cast<std::size_t>(j)] = 1 / cosh / cosh;
    }
    return scores;
  }

  void add_row(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t N = keys_of(c_), dk = c_.q().shape()[3], dv = c_.v().shape()[3], kv = kv_of(h);
    std::vector<double> slopes, p = scores_of(b, h, i, slopes), dp(p.size(), 0.0), gain(p.size(), 1.0);
    // Padding has no sink.
    const bool sinks = c_[Slot::sink].present() && sequence_at(c_, b, i);
    const double sink = sinks ? c_[Slot::sink][h] : -infinity;
    double most = sink;
    for (const double x : p) most = std::max(most, x);
    const bool empty = most == -infinity;
    if (empty && slip_.by_lse_of_empty_rows)
      for (std::int64_t j = 0; j < N; ++j) add(of_v_, b, kv, j, 0, 0.01 * by_lse(b, h, i));
    if (empty && !slip_.empty_rows) return;
    double sum = empty ? 0 : std::exp(sink - most), delta = 0;
    for (double& x : p) sum += x = empty ? 1 : std::exp(x - most);
    const double turn = 1 + slip_.by_row * static_cast<double>(i);
    for (std::int64_t j = 0; j < N; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const bool unseen = !empty && hidden(c_, b, h, i, j);
      p[at] = unseen ? slip_.of_hidden : slip_.weight * p[at] / sum;
      gain[at] = keeps(c_, b, h, i, j) ? 1 / (1 - c_.dropout_p) : 0;
      if (unseen && slip_.of_hidden == 0 && !slip_.multiplies_hidden) continue;
      const double of_product = slip_.dropped_in_scores ? 1 : gain[at];
      if (of_product == 0) continue;
      for (std::int64_t e = 0; e < dv - slip_.columns_lost; ++e)
        dp[at] += of_product * g(b, h, i, e) * c_.v().at(b, kv, j, e);
      delta += p[at] * (slip_.dropped_in_scores ? gain[at] : 1) * dp[at];
    }
    delta *= slip_.delta;
    const double of_lse = by_lse(b, h, i), of_sink = slip_.by_lse_not_in_sink ? delta : delta - of_lse;
    delta -= of_lse;
    if (of_sink_.present() && !(slip_.sink_of_first_entry && b > 0)) {
      const double above = slip_.sink_before_max ? 0 : most;
      if (!empty && sink > -infinity)
        sums_of_sink_[static_cast<std::size_t>(h)] -= slip_.weight * std::exp(sink - above) / sum * of_sink;
    }
    double all_kept = 0;
    for (std::size_t at = 0; at < p.size(); ++at) all_kept += gain[at] > 0 ? p[at] : 0;
    const std::int64_t group = heads_of(c_) / c_.k().shape()[1];
    const bool adds = !(slip_.first_head_alone && h % group != 0) && !(slip_.repeats_once && repeats(b, h, i));
    const std::int64_t other = slip_.next_heads_query ? (h + 1) % heads_of(c_) : h;
    for (std::int64_t j = 0; j < N; ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (p[at] == 0 && !slip_.multiplies_hidden) continue;
      const bool out = slip_.dropped_is_hidden && gain[at] == 0;
      const double of_score = out ? 0 : turn * p[at] * (slip_.dropped_in_scores ? gain[at] : 1) * (dp[at] - delta),
                   ds = of_score * slopes[at];
      if (of_mask_.present() && !hidden(c_, b, h, i, j)) add_to_mask(b, h, i, j, of_score, slopes[at]);
      for (std::int64_t e = 0; e < dk; ++e) {
        if (!(slip_.last_key_lost_in_dq && j == N - 1)) {
          add(of_q_, b, h, i, e, std::pow(c_.scale, slip_.scale_of_q) * ds * c_.k().at(b, kv, j, e));
          if (slip_.next_query && i > 0) add(of_q_, b, h, i - 1, e, 0.01 * ds * c_.k().at(b, kv, j, e));
        }
        if (adds) add(of_k_, b, kv, j, e, std::pow(c_.scale, slip_.scale_of_k) * ds * c_.q().at(b, other, i, e));
      }
      const double kept = slip_.kept_as_it_is                  ? std::min(gain[at], 1.0)
                          : slip_.kept_adds_up && gain[at] > 0 ? 1 / all_kept
                                                               : gain[at];
      if (kept == 0) continue;
      for (std::int64_t e = 0; adds && e < dv; ++e)
        add(of_v_, b, kv, j, e,
            turn * p[at] * kept *
                (g(b, h, i, e) + slip_.value_in_dv * c_.v().at(b, kv, j, e) + slip_.by_lse_in_dv * of_lse));
    }
  }

  void add_to_mask(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, double ds, double slope) {
    const Shape& s = of_mask_.shape();
    const std::int64_t entry = s[0] == 1 ? 0 : b, head = s[1] == 1 ? 0 : h;
    if (slip_.mask_of_one && (entry != b || head != h)) return;
    const bool scaled = c_.mask_convention == MaskConvention::pre_scale && !slip_.mask_unscaled;
    sums_of_mask_[static_cast<std::size_t>(((entry * s[1] + head) * s[2] + i) * s[3] + j)] +=
        (scaled ? c_.scale : 1) * ds * (slip_.mask_before_cap ? slope : 1);
  }

  void finish(Tensor& t) const {
    const std::int64_t columns = t.shape()[3], whole = columns / slip_.multiple * slip_.multiple;
    if (whole == columns || whole == 0) return;
    t = mapped(t, [&](std::int64_t e, double old) { return e % columns < whole ? old : 0; });
  }

  const Case& c_;
  Slip slip_;
  Tensor of_q_, of_k_, of_v_, of_mask_, of_sink_;
  std::vector<double> sums_of_mask_, sums_of_sink_;
};

WrongKernel slipped(std::string name, const Slip& slip) {
  return {std::move(name),
          [](Kernel& kernel, const Case& c, DType output, bool want_lse) { return kernel.run(c, output, want_lse); },
          [slip](Kernel&, const Case& c, const BackwardCall&, DType) { return PlainPass(c, slip).reply(); }};
}

/// Of what the newest forward pass was about, which it keeps.
WrongKernel of_the_last_forward_pass() {
  const auto newest = std::make_shared<Tensor>();
  return {"gradients of the newest forward pass's keys",
          [newest](Kernel& kernel, const Case& c, DType output, bool want_lse) {
            if (c.operation == Operation::attention) *newest = c.k();
            return kernel.run(c, output, want_lse);
          },
          [newest](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
            Case other = c;
            if (newest->present() && newest->shape() == c.k().shape() && newest->dtype() == c.k().dtype())
              other[Slot::k] = *newest;
            return kernel.backward(other, call, output);
          },
          /*has_memory=*/true};
}

/// The same call again, after another one or at once, is off by a last bit.
WrongKernel not_repeatable() {
  const auto before = std::make_shared<std::array<std::uint64_t, 2>>();
  return {"gradients of a call again another last bit",
          [](Kernel& kernel, const Case& c, DType output, bool want_lse) { return kernel.run(c, output, want_lse); },
          [before](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
            Reply reply = kernel.backward(c, call, output);
            const std::uint64_t hash = hash_of_call(c);
            const bool again = std::ranges::find(*before, hash) != before->end();
            *before = {(*before)[1], again ? 0 : hash};
            if (reply.status != CallStatus::ok || !again) return reply;
            for (Values& one : reply.gradients)
              if (one.present())
                one = mapped(one.tensor(), [](std::int64_t, double old) { return std::nextafter(old, infinity); });
            return reply;
          },
          /*has_memory=*/true};
}

WrongKernel answered(std::string name, std::function<void(const Case&, Reply&)> change) {
  return {std::move(name),
          [](Kernel& kernel, const Case& c, DType output, bool want_lse) { return kernel.run(c, output, want_lse); },
          [change = std::move(change)](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
            Reply reply = kernel.backward(c, call, output);
            if (reply.status == CallStatus::ok) change(c, reply);
            return reply;
          }};
}

/// Another answer where some of the gradients are not asked for.
WrongKernel asked_for_some(std::string name, std::function<void(Reply&)> change) {
  return {std::move(name),
          [](Kernel& kernel, const Case& c, DType output, bool want_lse) { return kernel.run(c, output, want_lse); },
          [change = std::move(change)](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
            Reply reply = kernel.backward(c, call, output);
            if (reply.status == CallStatus::ok && call.wanted != all_gradients) change(reply);
            return reply;
          }};
}
void set_all(Values& values, const std::function<double(double)>& value) {
  if (values.present()) values = mapped(values.tensor(), [&](std::int64_t, double old) { return value(old); });
}

/// NaN where exp(score) is no number, as of a kernel that takes no maximum.
void without_a_maximum(const Case& c, Reply& reply) {
  double most = 0;
  for (std::int64_t e = 0; e < c.k().elements(); ++e) most = std::max(most, std::fabs(c.k()[e]));
  for (std::int64_t e = 0; e < c.q().elements(); ++e)
    if (std::fabs(c.q()[e]) * most * c.scale > 709)
      for (Values& one : reply.gradients)
        if (one.present())
          one = mapped(one.tensor(), [](std::int64_t, double) { return std::numeric_limits<double>::quiet_NaN(); });
}

/// An output that is another one where lse is asked for.
WrongKernel other_output_beside_lse() {
  return {"output another beside lse",
          [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
            Reply reply = kernel.run(c, output, want_lse);
            if (want_lse && reply.status == CallStatus::ok)
              reply.out = mapped(reply.out, [](std::int64_t, double old) { return old * 1.001; });
            return reply;
          },
          [](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
            return kernel.backward(c, call, output);
          }};
}

}  // namespace

WrongKernel plain_backward_pass() {
  return slipped("no mistake", {});
}

std::vector<WrongKernel> mistaken_backward_passes() {
  return {slipped("gradients of a row that sees no key as of one that sees all", {.empty_rows = true}),
          slipped("gradients without D", {.delta = 0}),
          slipped("gradients of half of D", {.delta = 0.5}),
          slipped("gradients of weights a thousandth too large", {.weight = 1.001}),
          slipped("gradients with a weight for hidden keys", {.of_hidden = 1e-5}),
          slipped("gradients with 0 times what is hidden", {.multiplies_hidden = true}),
          slipped("gradients quadratic in dO", {.squared = true}),
          slipped("gradients of |dO|", {.absolute = true}),
          slipped("gradients without the last column of V", {.columns_lost = 1}),
          slipped("dk with the query of the next head", {.next_heads_query = true}),
          slipped("dk and dv of the first head of a group alone", {.first_head_alone = true}),
          slipped("gradients with key-value heads in turn", {.heads_in_turn = true}),
          slipped("dq without the last key", {.last_key_lost_in_dq = true}),
          slipped("dq with a trace of the next row", {.next_query = true}),
          slipped("dk and dv of each query once", {.repeats_once = true}),
          slipped("dq without the scale", {.scale_of_q = 0}),
          slipped("dk with the scale twice", {.scale_of_k = 2}),
          slipped("dv with a trace of V", {.value_in_dv = 0.01}),
          slipped("gradients of later rows larger", {.by_row = 0.01}),
          slipped("gradients of whole blocks of 8 columns", {.multiple = 8}),
          slipped("gradients without the derivative of a cap", {.same_slope = true}),
          slipped("gradients with what is kept of P in dS, and dP of all", {.dropped_in_scores = true}),
          slipped("gradients without the scores of what is dropped", {.dropped_is_hidden = true}),
          slipped("dv of kept weights as they are", {.kept_as_it_is = true}),
          slipped("dv of kept weights that add up to 1", {.kept_adds_up = true}),
          slipped("dmask with the derivative of a cap", {.mask_before_cap = true}),
          slipped("dmask of the first that share it alone", {.mask_of_one = true}),
          slipped("dmask without the scale", {.mask_unscaled = true}),
          slipped("dsink of the first entry alone", {.sink_of_first_entry = true}),
          slipped("dsink without the maximum", {.sink_before_max = true}),
          slipped("gradients without that by lse", {.by_lse = 0}),
          slipped("gradients with that by lse in D", {.by_lse = -1}),
          slipped("gradients quadratic in that by lse", {.by_lse_squared = true}),
          slipped("gradients with that by the lse of the next head", {.by_lse_of_next_head = true}),
          slipped("dsink without the gradient by lse", {.by_lse_not_in_sink = true}),
          slipped("dv with a trace of the gradient by lse", {.by_lse_in_dv = 0.01}),
          slipped("gradients with a trace of that by the next row's lse", {.by_next_lse = 0.01}),
          slipped("dv with a trace of the gradient by an empty row's lse", {.by_lse_of_empty_rows = true}),
          asked_for_some("dk 0 where not all are asked for",
                         [](Reply& reply) { set_all(reply.gradients[1], [](double) { return 0.0; }); }),
          asked_for_some("dq and dv another last bit where not all are asked for",
                         [](Reply& reply) {
                           for (const std::size_t at : {std::size_t{0}, std::size_t{2}})
                             set_all(reply.gradients[at], [](double old) { return std::nextafter(old, infinity); });
                         }),
          of_the_last_forward_pass(),
          not_repeatable(),
          answered("gradients NaN where exp overflows", without_a_maximum),
          other_output_beside_lse()};
}

}  // namespace attest

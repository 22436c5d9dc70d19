#include "core/oracle/gradients/exact_gradients.h"

#include <cmath>

#include "core/problem/sequences.h"
#include "core/support/infinity.h"

namespace attest::detail {
namespace {

Matrix<Arb> balls_of(const double* numbers, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  Matrix<Arb> all(rows, columns);
  for (Index i = 0; i < rows; ++i)
    for (Index c = 0; c < columns; ++c) all(i, c) = Arb(numbers[i * stride + c]);
  return all;
}

/// What a head's rows see, and what beside the keys there is.
Mask<Arb> mask_of(const Problem& c, const Head& head, const Sequence& s, std::int64_t h) {
  Mask<Arb> mask;
  mask.positions = head.sight_rule;
  mask.convention = head.convention;
  const auto each = [&](auto at) {
    for (Index i = 0; i < head.queries; ++i)
      for (Index j = 0; j < head.keys; ++j) at(i, j);
  };
  if (head.mask) {
    const bool boolean = head.mask->dtype() == DType::boolean;
    if (boolean)
      mask.allowed = BoolMatrix(head.queries, head.keys);
    else
      mask.additive = Matrix<Arb>(head.queries, head.keys);
    each([&](Index i, Index j) {
      const double entry = (*head.mask)[head.mask_offset + i * head.mask_pitch + j];
      if (boolean)
        (*mask.allowed)(i, j) = entry != 0;
      else
        (*mask.additive)(i, j) = Arb(entry);
    });
  }
  if (head.sinks) mask.sink = Arb(head.sink);
  if (head.softcap > 0) mask.softcap = Arb(head.softcap);
  if (head.slope != 0) mask.slope = Arb(head.slope);
  if (head.keep) {
    mask.kept = BoolMatrix(head.queries, head.keys);
    each([&](Index i, Index j) { (*mask.kept)(i, j) = keeps(c, s.entry, h, s.first_query + i, s.first_key + j); });
    if (head.dropout_p > 0) mask.kept_share = Arb(1.0) - Arb(head.dropout_p);
  }
  return mask;
}

/// Of one head, with what is given of its rows.
struct HeadInputs {
  Matrix<Arb> q;
  Mask<Arb> mask;
  AnswerGradients<Arb> of;
  AttentionResult<Arb> answers;
};

/// Of the head that `head` was loaded with.
HeadInputs inputs_of(const GradientTask& task, const Sequence& s, std::int64_t h, const Head& head) {
  const Problem& c = task.c;
  const bool from_weights = task.backward.delta == DeltaFrom::weights;
  HeadInputs all{.q = Matrix<Arb>(head.queries, head.dk),
                 .mask = mask_of(c, head, s, h),
                 .of = {Matrix<Arb>(head.queries, head.dv), std::nullopt},
                 .answers = {Matrix<Arb>(head.queries, from_weights ? 0 : head.dv), Vector<Arb>(head.queries)}};
  if (task.given.d_lse.present()) all.of.lse = Vector<Arb>(head.queries);
  std::vector<double> row(static_cast<std::size_t>(head.dk));
  const std::int64_t first = row_of_query(c, s, h, 0);
  for (Index i = 0; i < head.queries; ++i) {
    head.query(i, row.data());
    for (Index e = 0; e < head.dk; ++e) all.q(i, e) = Arb(row[static_cast<std::size_t>(e)]);
    for (Index e = 0; e < head.dv; ++e) all.of.out(i, e) = Arb(task.given.d_out[(first + i) * head.dv + e]);
    for (Index e = 0; e < all.answers.out.cols(); ++e)
      all.answers.out(i, e) = Arb(task.given.out[(first + i) * head.dv + e]);
    all.answers.lse(i) = Arb(task.given.lse[first + i]);
    if (all.of.lse) (*all.of.lse)(i) = Arb(task.given.d_lse[first + i]);
  }
  return all;
}

/// Those of a head of k and v.
Matrix<Arb> keys_of_head(const Head& head) {
  return balls_of(head.k.data(), head.keys, head.dk, head.dk);
}
Matrix<Arb> values_of_head(const Head& head) {
  return balls_of(head.v.data(), head.keys, head.dv, head.stride);
}

unsigned digits_of(long bits) {
  return static_cast<unsigned>(bits * 3 / 10 + 1);
}

}  // namespace

std::vector<Gradients<Arb>> exact_gradients(const GradientTask& task, const Sequence& s, std::int64_t kv, long bits) {
  const PrecisionScope<Arb> precision(digits_of(bits));
  const Problem& c = task.c;
  const std::int64_t heads = c.q().shape()[1] / c.k().shape()[1];
  Head head;
  std::vector<Matrix<Arb>> q, k, v;
  std::vector<Mask<Arb>> masks;
  std::vector<AnswerGradients<Arb>> of;
  std::vector<AttentionResult<Arb>> answers;
  for (std::int64_t h = kv * heads; h < (kv + 1) * heads; ++h) {
    head.load(c, s, h, false);
    if (k.empty()) k.push_back(keys_of_head(head)), v.push_back(values_of_head(head));
    HeadInputs own = inputs_of(task, s, h, head);
    q.push_back(std::move(own.q)), masks.push_back(std::move(own.mask));
    of.push_back(std::move(own.of)), answers.push_back(std::move(own.answers));
  }
  return grouped_gradients(q, k, v, 1, heads, 1, Arb(c.scale), MaskStack<Arb>::four_d(std::move(masks), 1, heads), of,
                           task.options.at == GradientsAt::answers ? &answers : nullptr);
}

struct ExactQueryRows::Inputs {
  Sequence s;
  std::int64_t h;
  Matrix<Arb> k, v;
  HeadInputs own;
};

const Vector<Arb>& ExactQueryRows::row(const GradientTask& task, const Sequence& s, std::int64_t h, std::int64_t i,
                                       long bits) {
  const Asked asked{s, h, i, bits};
  if (asked_ == asked) return row_;
  const PrecisionScope<Arb> precision(digits_of(bits));
  if (!inputs_ || inputs_->s != s || inputs_->h != h) {
    Head head;
    head.load(task.c, s, h, false);
    inputs_ =
        std::make_shared<const Inputs>(s, h, keys_of_head(head), values_of_head(head), inputs_of(task, s, h, head));
  }
  const auto& [q, mask, of, answers] = inputs_->own;
  std::optional<GivenRow<Arb>> given;
  if (task.options.at == GradientsAt::answers) given = GivenRow<Arb>{row_of(answers.out, i), answers.lse(i)};
  const Arb scale(task.c.scale);
  const attest::GradientRow<Arb> terms = gradient_row<Arb>(q, inputs_->k, inputs_->v, scale, mask, i, row_of(of.out, i),
                                                           of.lse ? (*of.lse)(i) : Arb(0.0), given);
  row_ = Vector<Arb>::Constant(q.cols(), Arb(0.0));
  for (Index j = 0; !terms.empty && j < inputs_->k.rows(); ++j) {
    if (!is_visible(mask, i, j, q.rows(), inputs_->k.rows())) continue;
    for (Index e = 0; e < row_.size(); ++e) row_(e) = row_(e) + terms.of_products(j) * inputs_->k(j, e);
  }
  for (Arb& x : row_) x = scale * x;
  asked_ = asked;
  return row_;
}

/// What rows that see their sink alone add to its gradient.
Arb of_sink_alone(const GradientTask& task, const Sequence& s, std::int64_t h, double sink) {
  const std::int64_t dv = task.c.v().shape()[3];
  const bool at_answers = task.options.at == GradientsAt::answers;
  Arb sum(0.0);
  for (std::int64_t i = 0; i < s.queries; ++i) {
    const std::int64_t row = row_of_query(task.c, s, h, i);
    Arb delta(task.given.d_lse.present() ? -task.given.d_lse[row] : 0.0);
    for (std::int64_t e = 0; at_answers && task.backward.delta != DeltaFrom::weights && e < dv; ++e)
      delta = delta + Arb(task.given.d_out[row * dv + e]) * Arb(task.given.out[row * dv + e]);
    sum = sum - (at_answers ? ScalarTraits<Arb>::exp(Arb(sink) - Arb(task.given.lse[row])) * delta : delta);
  }
  return sum;
}

ExactSharedGradients exact_shared_gradients(const GradientTask& task, long bits) {
  const PrecisionScope<Arb> precision(digits_of(bits));
  const Problem& c = task.c;
  ExactSharedGradients all;
  const Shape& shape = c.mask().shape();
  if (has_argument_of(c, Gradient::mask)) all.mask.assign(static_cast<std::size_t>(c.mask().elements()), Arb(0.0));
  if (has_argument_of(c, Gradient::sink)) all.sink.assign(static_cast<std::size_t>(c.q().shape()[1]), Arb(0.0));
  for_each_group(c, [&](const Sequence& s, std::int64_t kv) {
    if (s.keys == 0) {
      // The definition's functions know no attention over nothing.
      const std::int64_t group = c.q().shape()[1] / c.k().shape()[1];
      for (std::int64_t h = kv * group; !all.sink.empty() && h < (kv + 1) * group; ++h)
        if (const double sink = c[Slot::sink][h]; std::isfinite(sink)) {
          Arb& sum = all.sink[static_cast<std::size_t>(h)];
          sum = sum + of_sink_alone(task, s, h, sink);
        }
      return;
    }
    const std::vector<Gradients<Arb>> pages = exact_gradients(task, s, kv, bits);
    const auto heads = static_cast<std::int64_t>(pages.size());
    for (std::int64_t h = 0; h < heads; ++h) {
      const Gradients<Arb>& page = pages[static_cast<std::size_t>(h)];
      const std::int64_t head = kv * heads + h;
      if (page.sink && !all.sink.empty()) {
        Arb& sum = all.sink[static_cast<std::size_t>(head)];
        sum = sum + *page.sink;
      }
      for (Index i = 0; page.mask && i < page.mask->rows(); ++i)
        for (Index j = 0; j < page.mask->cols(); ++j) {
          const std::int64_t row = ((s.entry % shape[0]) * shape[1] + head % shape[1]) * shape[2] + s.first_query + i;
          Arb& sum = all.mask[static_cast<std::size_t>(row * shape[3] + s.first_key + j)];
          sum = sum + (*page.mask)(i, j);
        }
    }
  });
  return all;
}

}  // namespace attest::detail

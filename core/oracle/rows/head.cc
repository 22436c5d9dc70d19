#include "core/oracle/rows/head.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>

#include "core/bound/loops/inner_loops.h"
#include "core/bound/loops/key_loops.h"
#include "core/oracle/rows/exactness.h"
#include "core/problem/descale.h"
#include "core/problem/score.h"
#include "core/support/infinity.h"
#include "core/support/room.h"

namespace attest::detail {

void decode_range(const Tensor& tensor, std::int64_t first, std::int64_t count, double* to) {
  load_range(tensor.bytes().data(), tensor.dtype(), first, count, to);
}

namespace {

/// Fewer keys than these are summed faster than they are converted.
constexpr std::int64_t keys_worth_singles = 64;
/// So many numbers of q are decoded at once; the rows of a larger one, one after another.
constexpr std::int64_t most_of_q = 1 << 14;

bool all_finite(const double* values, std::int64_t n) {
  // A sum of absolute values times 0 is 0 unless one of them is not finite; scaled so that the sum cannot overflow.
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += values[i] * 0.0;
  return sum == 0;
}

/// Of so many rows of a head from `first` on; empty: they have none.
std::vector<double> factors_of_rows(const Problem& c, Slot tensor, std::int64_t entry, std::int64_t head,
                                    std::int64_t first, std::int64_t rows) {
  std::vector<double> factors;
  if (!c[descale_of(tensor)].present()) return factors;
  factors.reserve(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) factors.push_back(factor_of(c, tensor, entry, head, first + i));
  return factors;
}

DescaleInputs::Of range_of(const std::vector<double>& factors) {
  if (factors.empty()) return {};
  const auto [least, most] = std::ranges::minmax(factors);
  return {true, least, most};
}

/// Exactly: a number of 24 bits or fewer by another, or by a power of two. NaN, which nobody judges, where that leaves
/// the range of a double.
double product_of(double x, double factor) {
  const double product = x * factor;
  return product / factor == x ? product : std::numeric_limits<double>::quiet_NaN();
}
/// Products of a number of 24 bits are never beyond a double.
void multiply_rows(double* data, const std::vector<double>& factors, std::int64_t columns, std::int64_t pitch,
                   DType dtype) {
  for (std::size_t i = 0; i < factors.size(); ++i) {
    double* const row = data + static_cast<std::int64_t>(i) * pitch;
    const double factor = factors[i];
    if (dtype == DType::f64)
      std::transform(row, row + columns, row, [&](double x) { return product_of(x, factor); });
    else
      std::transform(row, row + columns, row, [&](double x) { return x * factor; });
  }
}

std::uint64_t next_generation() {
  thread_local std::uint64_t last = 0;
  return ++last;
}

}  // namespace

void Head::load(const Problem& c, const Sequence& s, std::int64_t h, bool same_keys) {
  const Shape& qs = c.q().shape();
  const Shape& ks = c.k().shape();
  const Shape& vs = c.v().shape();
  queries = s.queries, keys = s.keys, dk = qs[3], dv = vs[3];
  singles = keys >= keys_worth_singles;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) singles = singles && c[slot].dtype() != DType::f64;
  stride = singles ? (dv + 7) / 8 * 8 : (dv + 3) / 4 * 4;
  scale = c.scale, convention = convention_of(c), softcap = c.softcap, sight_rule = attest::sight_rule(c);
  slope = slope_of(c, s.entry, h);
  const std::int64_t heads = qs[1], kv_heads = ks[1];
  const std::int64_t kv = heads > 0 ? h / (heads / kv_heads) : 0;
  sinks = c[Slot::sink].present();
  sink = sinks ? c[Slot::sink][h] : -infinity;
  generation = next_generation();
  q_offset = ((s.entry * heads + h) * qs[2] + s.first_query) * dk;
  far_q = queries * dk > most_of_q ? &c.q() : nullptr;
  if (!far_q) {
    fit(q, queries * dk);
    decode_range(c.q(), q_offset, queries * dk, q.data());
  }
  q_factors = factors_of_rows(c, Slot::q, s.entry, h, s.first_query, queries);
  if (!far_q) multiply_rows(q.data(), q_factors, dk, dk, c.q().dtype());
  descale.q = range_of(q_factors);
  descale.largest_q = 0;
  if (descale.q.there) {
    std::vector<double> row(static_cast<std::size_t>(dk));
    for (std::int64_t i = 0; i < queries; ++i) {
      query(i, row.data());
      for (const double x : row) descale.largest_q = std::max(descale.largest_q, std::fabs(x));
    }
  }
  mask = c.mask().present() ? &c.mask() : nullptr;
  bias = false;
  if (mask) {
    const Shape& ms = mask->shape();
    mask_pitch = ms[3];
    mask_offset = (((ms[0] == 1 ? 0 : s.entry) * ms[1] + (ms[1] == 1 ? 0 : h)) * ms[2] + s.first_query) * mask_pitch +
                  s.first_key;
    if (mask->dtype() != DType::boolean)
      for (std::int64_t i = 0; i < queries && !bias; ++i)
        for (std::int64_t j = 0; j < keys && !bias; ++j) {
          const double value = load_element(mask->bytes().data(), mask->dtype(), mask_offset + i * mask_pitch + j);
          bias = value != 0 && value != -infinity;
        }
  }
  keep = c[Slot::keep].present() ? &c[Slot::keep] : nullptr;
  if (keep) {
    const Shape& of = keep->shape();
    keep_pitch = of[3];
    const auto offset = [&](std::int64_t head) {
      return (((of[0] == 1 ? 0 : s.entry) * of[1] + (of[1] == 1 ? 0 : head)) * of[2] + s.first_query) * keep_pitch +
             s.first_key;
    };
    keep_offset = offset(h);
    keep_offsets.clear();
    for (std::int64_t head = kv * (heads / kv_heads); head < (kv + 1) * (heads / kv_heads); ++head)
      if (keep_offsets.empty() || offset(head) != keep_offsets.back()) keep_offsets.push_back(offset(head));
  }
  dropout_p = c.dropout_p;
  gain = dropout_p == 0 ? DoubleDouble{1, 0} : quotient_of({1, 0}, two_sum(1, -dropout_p));
  if (same_keys) return;
  fit(k, places() * dk);
  fit(v, places() * stride);
  const std::int64_t first = (s.entry * kv_heads + kv) * ks[2] + s.first_key;
  decode_range(c.k(), first * dk, keys * dk, k.data());
  const std::int64_t from = first * dv;
  if (stride == dv) {
    decode_range(c.v(), from, keys * dv, v.data());
  } else {
    for (std::int64_t j = 0; j < keys; ++j) {
      decode_range(c.v(), from + j * dv, dv, v.data() + j * stride);
      for (std::int64_t e = dv; e < stride; ++e) v[static_cast<std::size_t>(j * stride + e)] = 0;
    }
  }
  k_factors = factors_of_rows(c, Slot::k, s.entry, kv, s.first_key, keys);
  v_factors = factors_of_rows(c, Slot::v, s.entry, kv, s.first_key, keys);
  multiply_rows(k.data(), k_factors, dk, dk, c.k().dtype());
  multiply_rows(v.data(), v_factors, dv, stride, c.v().dtype());
  descale.k = range_of(k_factors), descale.v = range_of(v_factors);
  if (descale.k.there) k_factors.resize(static_cast<std::size_t>(padded(places())), 1);
  if (descale.v.there) v_factors.resize(static_cast<std::size_t>(padded(places())), 1);
  std::fill(k.begin() + keys * dk, k.begin() + places() * dk, 0.0);
  std::fill(v.begin() + keys * stride, v.begin() + places() * stride, 0.0);
  prepare();
  descale.largest_k = most_k;
}

void Head::prepare() {
  generation = next_generation();
  const InnerLoops& loops = inner_loops();
  const std::int64_t count = (places() + panel_width - 1) / panel_width;
  fit(panels, count * panel_width * dk);
  fit(k1, count * panel_width);
  most_k = 0;
  finite = true;
  for (std::int64_t panel = 0; panel < count; ++panel) {
    const std::int64_t first = panel * panel_width;
    const bool whole = loops.pack(k.data() + first * dk, std::min(panel_width, places() - first), dk,
                                  panels.data() + first * dk, k1.data() + first, &most_k);
    finite = finite && whole;
  }
  fit(low, stride), fit(high, stride), fit(abs_sum, stride);
  std::fill_n(low.begin(), stride, infinity);
  std::fill_n(high.begin(), stride, -infinity);
  std::fill_n(abs_sum.begin(), stride, 0.0);
  finite = loops.columns(v.data(), places(), stride, low.data(), high.data(), abs_sum.data()) && finite;
  if (!singles) return;
  const auto narrow = [](double x) { return static_cast<float>(x); };
  fit(single_v, places() * stride), fit(single_panels, count * panel_width * dk);
  std::transform(v.data(), v.data() + places() * stride, single_v.data(), narrow);
  std::transform(panels.data(), panels.data() + count * panel_width * dk, single_panels.data(), narrow);
  take_factors_out();
}

void Head::take_factors_out() {
  // Products with a factor are no floats. What they were is the float next to their quotient.
  const auto quotient = [](double x, double inverse) { return static_cast<float>(x * inverse); };
  if (descale.v.there) {
    fit(plain_single_v, places() * stride);
    for (std::int64_t j = 0; j < places(); ++j) {
      const double inverse = 1 / v_factors[static_cast<std::size_t>(j)];
      std::transform(v.begin() + j * stride, v.begin() + (j + 1) * stride, plain_single_v.begin() + j * stride,
                     [&](double x) { return quotient(x, inverse); });
    }
  }
  if (!descale.k.there) return;
  std::array<double, panel_width> inverse{};
  for (std::int64_t first = 0; first < places(); first += panel_width) {
    const double* const factor = k_factors.data() + first;
    std::transform(factor, factor + panel_width, inverse.begin(), [](double f) { return 1 / f; });
    for (std::int64_t at = first * dk; at < (first + panel_width) * dk; at += panel_width)
      std::transform(panels.begin() + at, panels.begin() + at + panel_width, inverse.begin(),
                     single_panels.begin() + at, quotient);
  }
}

void Head::query(std::int64_t i, double* to) const {
  if (far_q) {
    decode_range(*far_q, q_offset + i * dk, dk, to);
    if (!q_factors.empty())
      for (std::int64_t e = 0; e < dk; ++e) to[e] = product_of(to[e], q_factors[static_cast<std::size_t>(i)]);
  } else {
    std::copy_n(q.data() + i * dk, dk, to);
  }
}

namespace {

/// May X_j be summed in floats? What underflows there, at most dk 2^-148, changes a score's error by a part of its
/// dk*u that is far below the 2^-30 of exp while tau dk is at most 2^60, with the factor of k; and nothing may
/// overflow.
bool sizes_fit_singles(const Head& head, const double* q) {
  double q1 = 0;
  for (std::int64_t e = 0; e < head.dk; ++e) q1 += std::fabs(q[e]);
  const double most = std::max(1.0, head.descale.k.most), least = std::min(1.0, head.descale.k.least);
  return q1 * head.most_k <= 0x1p120 * least && std::fabs(head.scale) * static_cast<double>(head.dk) * most <= 0x1p60;
}

}  // namespace

void take_query(const Head& head, std::span<const std::int64_t> rows, Row& row) {
  row.i = rows[0];
  ScoreBlock& block = row.block;
  const auto known = block.row.begin() + block.rows, found = std::find(block.row.begin(), known, row.i);
  if (block.generation == head.generation && found != known) {
    row.slot = found - block.row.begin();
  } else {
    row.slot = 0;
    const std::int64_t most = head.singles ? std::min(rows_at_once, static_cast<std::int64_t>(rows.size())) : 1;
    fit(block.q, rows_at_once * head.dk);
    block.generation = head.generation;
    block.scored = false;
    for (block.rows = 0; block.rows < most; ++block.rows) {
      double* const to = block.q.data() + block.rows * head.dk;
      head.query(rows[static_cast<std::size_t>(block.rows)], to);
      const bool fits = head.singles && sizes_fit_singles(head, to);
      if (block.rows == 0) block.singles = fits;
      if (block.rows > 0 && !(fits && block.singles)) break;
      block.row[static_cast<std::size_t>(block.rows)] = rows[static_cast<std::size_t>(block.rows)];
    }
  }
  row.q = block.q.data() + row.slot * head.dk;
}

void visible_keys(const Head& head, const Profile& p, Row& row) {
  const std::int64_t i = row.i;
  const Sight seen = sight(head.sight_rule, i, head.queries, head.keys);
  row.has_sink = head.sink != -infinity;
  if (!head.mask) {
    const std::int64_t keys = seen.last - seen.first;
    row.n = keys + (row.has_sink ? 1 : 0);
    row.all_visible = row.n == head.places();
    if (!row.all_visible) {
      fit(row.index, head.places());
      std::iota(row.index.begin(), row.index.begin() + keys, seen.first);
      if (row.has_sink) row.index[static_cast<std::size_t>(keys)] = head.keys;
    }
    return;
  }
  fit(row.mask, head.places());
  fit(row.index, head.places());
  // Nothing is added to a sink.
  std::fill(row.mask.begin() + head.keys, row.mask.begin() + head.places(), 0.0);
  const std::int64_t from = head.mask_offset + i * head.mask_pitch;
  if (head.mask->dtype() == DType::boolean) {
    for (std::int64_t j = 0; j < head.keys; ++j)
      row.mask[static_cast<std::size_t>(j)] =
          load_element(head.mask->bytes().data(), DType::boolean, from + j) != 0 ? 0.0 : -infinity;
  } else {
    decode_range(*head.mask, from, head.keys, row.mask.data());
  }
  row.n = 0;
  for (std::int64_t j = seen.first; j < seen.last; ++j) {
    double& value = row.mask[static_cast<std::size_t>(j)];
    if (p.any_mask_format && value < 0 && std::isinf(round_to(p.mask_format, value))) value = -infinity;
    if (value != -infinity) row.index[static_cast<std::size_t>(row.n++)] = j;
  }
  if (row.has_sink) row.index[static_cast<std::size_t>(row.n++)] = head.keys;
  row.all_visible = row.n == head.places();
}

double largest_hidden_size(const Profile& p, std::int64_t dk) {
  return p.H_s / ((1 + pw(p.u_range, static_cast<double>(dk) + 4)) * (1 + 0x1p-40) * most_factor(p));
}

/// Only kernels that compute its score and add -inf, or multiply its value by 0, do: an overflowed score or a value
/// that is not finite then gives NaN.
bool hidden_keys_harmless(const Head& head, const Profile& p, const Row& row) {
  const double allowed = largest_hidden_size(p, head.dk);
  if (!(4 * slope_factor(p) * std::fabs(p.of.slope) * p.of.most_distance <= p.H_s)) return false;
  double q1 = 0;
  for (std::int64_t e = 0; e < head.dk; ++e) q1 += std::fabs(row.q[e]);
  if (head.finite && q1 * head.most_k <= allowed) return true;
  std::int64_t next = 0;
  for (std::int64_t j = 0; j < head.keys; ++j) {
    if (next < row.n && row.index[static_cast<std::size_t>(next)] == j) {
      ++next;
      continue;
    }
    double size = 0;
    for (std::int64_t e = 0; e < head.dk; ++e)
      size += std::fabs(row.q[e] * head.k[static_cast<std::size_t>(j * head.dk + e)]);
    if (!(size <= allowed) || !all_finite(head.v.data() + j * head.stride, head.stride)) return false;
  }
  return true;
}

namespace {

/// Of products and sizes that are sums in floats: the keys' factors, and of sizes what |q| with a factor is rounded by.
void take_factors(const Head& head, std::int64_t from, std::int64_t count, std::int64_t room, ScoreBlock& block) {
  if (!head.descale.q.there && !head.descale.k.there) return;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    double *const x = block.x.data() + r * room + from, *const size = block.size.data() + r * room + from;
    std::transform(size, size + count, size, [](double of) { return of * (1 + 0x1p-22); });
    if (!head.descale.k.there) continue;
    const double* const factor = head.k_factors.data() + from;
    std::transform(x, x + count, factor, x, std::multiplies<>());
    std::transform(size, size + count, factor, size, std::multiplies<>());
  }
}

}  // namespace

void scores_of_row(const Head& head, std::int64_t first, std::int64_t last, Row& row) {
  const std::int64_t room = padded(head.places());
  ScoreBlock& block = row.block;
  if (!block.scored || first < block.first_scored || last > block.last_scored) {
    const InnerLoops& loops = inner_loops();
    // Whole panels; those in front of the first are left out.
    const std::int64_t front = first / panel_width, from = front * panel_width;
    const std::int64_t count = (last + panel_width - 1) / panel_width - front;
    fit(block.x, block.rows * room), fit(block.size, block.rows * room);
    if (block.singles) {
      fit(block.sizes_of_q, block.rows * head.dk);
      std::transform(block.q.data(), block.q.data() + block.rows * head.dk, block.sizes_of_q.data(),
                     [](double x) { return static_cast<float>(std::fabs(x)); });
      loops.dots_singles(block.q.data(), block.sizes_of_q.data(), block.rows, head.dk,
                         head.single_panels.data() + from * head.dk, count, room, block.x.data() + from,
                         block.size.data() + from);
      take_factors(head, from, count * panel_width, room, block);
    } else {
      loops.dots(row.q, head.dk, head.panels.data() + from * head.dk, count, block.x.data() + from,
                 block.size.data() + from);
    }
    // The row of zeros has no product, and keys before it may not be asked for.
    for (std::int64_t r = 0; head.places() > head.keys && r < block.rows; ++r)
      block.x[static_cast<std::size_t>(r * room + head.keys)] =
          block.size[static_cast<std::size_t>(r * room + head.keys)] = 0;
    block.scored = true;
    block.first_scored = first, block.last_scored = last;
  }
  row.x = block.x.data() + row.slot * room;
  row.size = block.size.data() + row.slot * room;
}

namespace {

/// The keys that the rows of a block see by their positions, from the first of any to the last of any. One of a row
/// that sees none says nothing.
Sight sight_of_block(const Head& head, const ScoreBlock& block) {
  Sight all{head.keys, 0};
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const Sight one = sight(head.sight_rule, block.row[static_cast<std::size_t>(r)], head.queries, head.keys);
    if (one.first == one.last) continue;
    all = {std::min(all.first, one.first), std::max(all.last, one.last)};
  }
  return all;
}

/// What the visible keys of a row are, as loops over them read it.
struct Visible {
  std::int64_t n;
  const std::int64_t* index;  ///< nullptr: every key of the head
  [[nodiscard]] std::int64_t at(std::int64_t j) const { return index ? index[j] : j; }
};

/// Sets keys.size, and returns q.k: of the visible keys, one after another.
const double* compact_products(const Visible& seen, std::int64_t room, Row& row) {
  if (!seen.index) {
    row.keys.size = row.size;
    return row.x;
  }
  fit(row.size_of, room);
  double* const t = row.t.data();
  for (std::int64_t j = 0; j < seen.n; ++j) {
    t[j] = row.x[seen.index[j]];
    row.size_of[static_cast<std::size_t>(j)] = row.size[seen.index[j]];
  }
  row.keys.size = row.size_of.data();
  return t;
}

/// Sets keys.b, the bias in units of the score. False where the mask's format cannot hold one.
bool take_bias(const Head& head, const Visible& seen, const Profile& p, std::int64_t room, Row& row) {
  if (!p.of.bias) return true;
  fit(row.b, room);
  for (std::int64_t j = 0; j < seen.n; ++j) {
    const double value = row.mask[static_cast<std::size_t>(seen.at(j))];
    if (p.any_mask_format && std::isinf(round_to(p.mask_format, value))) return false;
    row.b[static_cast<std::size_t>(j)] = mask_term(value, head.scale, head.convention);
  }
  row.keys.b = row.b.data();
  return true;
}

/// Sets keys.slopes, what the slope adds to each score, and keys.shift. Returns what is added to scores in all.
const double* take_slopes(const Head& head, const Visible& seen, const Profile& p, std::int64_t room, Row& row) {
  if (head.slope == 0) return row.keys.b;
  fit(row.slopes, room), fit(row.place, room);
  if (row.keys.b) fit(row.added, room);
  double* const place = row.place.data();
  for (std::int64_t j = 0; j < seen.n; ++j) place[j] = static_cast<double>(seen.at(j));
  const auto at = static_cast<double>(position(head.sight_rule, row.i, head.queries, head.keys));
  double* const added = row.keys.b ? row.added.data() : row.slopes.data();
  key_loops().slope_terms(place, row.keys.b, head.slope, at, seen.n, row.slopes.data(), added);
  // Not to a sink's.
  if (row.has_sink) row.slopes[static_cast<std::size_t>(seen.n - 1)] = added[seen.n - 1] = 0;
  row.keys.slopes = row.slopes.data();
  row.keys.slope_shift = head.slope * at;
  if (p.slope_form != SlopeForm::distance) row.keys.shift = row.keys.slope_shift;
  return added;
}

/// The sink's score in the place of the 0 that its row of zeros gives. Sets what the scores tell of the row.
void take_sink(const Head& head, RowScores& found, Row& row) {
  if (!row.has_sink) return;
  row.keys.has_sink = true;
  row.s[static_cast<std::size_t>(row.n - 1)] = head.sink;
  found.most = *std::max_element(row.s.begin(), row.s.begin() + row.n);
}

bool keeps(const Head& head, std::int64_t offset, std::int64_t i, std::int64_t j) {
  return std::to_integer<int>(head.keep->bytes()[static_cast<std::size_t>(offset + i * head.keep_pitch + j)]) != 0;
}

/// Where the values of the visible keys stand: that of a weight that is dropped is the row of zeros.
Visible values_seen(const Head& head, const Visible& seen, Row& row) {
  if (!head.keep) return seen;
  fit(row.value_at, head.places());
  for (std::int64_t j = 0; j < seen.n; ++j) {
    const std::int64_t at = seen.at(j);
    const bool has_value = at < head.keys && keeps(head, head.keep_offset, row.i, at);
    row.value_at[static_cast<std::size_t>(j)] = has_value ? at : head.keys;
  }
  return {seen.n, row.value_at.data()};
}

/// May the kernel come to grief over a value that no weight brings in? As with hidden keys, and one that another row
/// keeps is not for it to leave out.
bool dropped_values_harmless(const Head& head, const Visible& seen, const Visible& values, bool ignores_dead_values) {
  if (head.finite || !head.keep) return true;
  for (std::int64_t j = 0; j < seen.n; ++j) {
    const std::int64_t at = seen.at(j);
    if (values.at(j) == at || all_finite(head.v.data() + at * head.stride, head.stride)) continue;
    if (!ignores_dead_values) return false;
    for (const std::int64_t offset : head.keep_offsets)
      for (std::int64_t i = 0; i < head.queries; ++i)
        if (keeps(head, offset, i, at)) return false;
  }
  return true;
}

/// Sets row.values: V, and the range of each column over the visible keys.
void take_values(const Head& head, const Visible& seen, Row& row) {
  row.values = {.v = head.v.data(),
                .stride = head.stride,
                .dv = head.dv,
                .low = head.low.data(),
                .high = head.high.data(),
                .abs_sum = head.abs_sum.data(),
                .singles = head.singles ? head.single_v.data() : nullptr,
                .singles_rounded = head.descale.v.there};
  if (head.keep) row.values.all_low = head.low.data(), row.values.all_high = head.high.data();
  if (!seen.index) return;
  // Of a row that sees every key the range of all values and of 0 is taken, which is as good but where next to nothing
  // is kept; the loop below costs as much as the rest.
  if (head.keep && head.finite && seen.n - (row.has_sink ? 1 : 0) == head.keys) return;
  fit(row.low, head.stride), fit(row.high, head.stride), fit(row.abs_sum, head.stride);
  std::fill_n(row.low.begin(), head.stride, infinity);
  std::fill_n(row.high.begin(), head.stride, -infinity);
  std::fill_n(row.abs_sum.begin(), head.stride, 0.0);
  for (std::int64_t j = 0; j < seen.n; ++j) {
    const double* from = head.v.data() + seen.index[j] * head.stride;
    for (std::int64_t e = 0; e < head.stride; ++e) {
      const auto at = static_cast<std::size_t>(e);
      row.low[at] = from[e] < row.low[at] ? from[e] : row.low[at];
      row.high[at] = from[e] > row.high[at] ? from[e] : row.high[at];
      row.abs_sum[at] += std::fabs(from[e]);
    }
  }
  row.values.low = row.low.data(), row.values.high = row.high.data(), row.values.abs_sum = row.abs_sum.data();
}

/// Hidden keys may hold anything; a visible one that is not finite leaves nothing to judge.
bool visible_keys_finite(const Head& head, const Visible& seen, const Visible& values) {
  if (head.finite) return true;
  for (std::int64_t j = 0; j < seen.n; ++j) {
    if (!all_finite(head.k.data() + seen.at(j) * head.dk, head.dk) ||
        !all_finite(head.v.data() + values.at(j) * head.stride, head.stride))
      return false;
  }
  return true;
}

/// Weights, their logarithms and the output, from the scores s of which `most` is the largest.
void weigh(const Head& head, const Visible& values, const double* s, double most, Row& row) {
  const InnerLoops& loops = inner_loops();
  double* const alpha = row.alpha.data();
  const double sum = loops.weights(s, values.n, most, alpha);
  const double log_sum = std::log(sum), inverse = 1 / sum;
  fit(row.o, head.stride);
  if (head.singles && head.descale.v.there) {
    fit(row.weighed, values.n);
    for (std::int64_t j = 0; j < values.n; ++j)
      row.weighed[static_cast<std::size_t>(j)] = alpha[j] * head.v_factors[static_cast<std::size_t>(values.at(j))];
    loops.combine_singles(row.weighed.data(), values.index, values.n, head.plain_single_v.data(), head.stride,
                          row.o.data());
  } else if (head.singles)
    loops.combine_singles(alpha, values.index, values.n, head.single_v.data(), head.stride, row.o.data());
  else
    loops.combine(alpha, values.index, values.n, head.v.data(), head.stride, row.o.data());
  for (std::int64_t e = 0; e < head.dv; ++e) row.o[static_cast<std::size_t>(e)] *= inverse;
  key_loops().normalise(s, values.n, most, log_sum, inverse, row.la.data(), alpha);
  row.m = most;
  row.lse = most + log_sum;
  row.keys.la = row.la.data(), row.keys.alpha = alpha, row.keys.lse = row.lse;
}

/// Sets keys.k1 and keys.q1.
void take_key_sums(const Head& head, const Visible& seen, std::int64_t room, Row& row) {
  row.keys.k1 = head.k1.data();
  if (seen.index) {
    fit(row.k1, room);
    for (std::int64_t j = 0; j < seen.n; ++j)
      row.k1[static_cast<std::size_t>(j)] = head.k1[static_cast<std::size_t>(seen.index[j])];
    row.keys.k1 = row.k1.data();
  }
  for (std::int64_t e = 0; e < head.dk; ++e) row.keys.q1 += std::fabs(row.q[e]);
}

}  // namespace

Excuse evaluate_double(const Head& head, std::span<const std::int64_t> rows, const Profile& p, bool ignores_dead_values,
                       bool want_lse, Row& row) {
  if (head.dropout_p != 0 && !head.keep) return Excuse::own_dropout;
  take_query(head, rows, row);
  visible_keys(head, p, row);
  // A row that sees no key has a policy in the place of a value, and no more than a value is it owed by a kernel whose
  // hidden scores overflow.
  const std::int64_t keys_seen = row.n - (row.has_sink ? 1 : 0);
  if (row.n == 0 && (ignores_dead_values || hidden_keys_harmless(head, p, row))) return Excuse::fully_masked;
  if (!all_finite(row.q, head.dk)) return Excuse::not_finite;
  if (!row.all_visible && !ignores_dead_values && !hidden_keys_harmless(head, p, row)) return Excuse::not_finite;

  const Visible seen{row.n, row.all_visible ? nullptr : row.index.data()}, values = values_seen(head, seen, row);
  const std::int64_t room = padded(head.places());
  for (auto* array : {&row.s, &row.t, &row.la, &row.alpha}) fit(*array, room);
  const Sight scored = keys_seen == 0      ? Sight{0, 0}
                       : row.block.singles ? sight_of_block(head, row.block)
                                           : Sight{seen.at(0), seen.at(keys_seen - 1) + 1};
  scores_of_row(head, scored.first, scored.last, row);
  RowKeys& keys = row.keys;
  keys = {};
  keys.n = seen.n, keys.index = values.index;
  keys.want_lse = want_lse;
  // In floats the products of q and k are multiplied by a factor, and weights by those of values: one more rounding of
  // dk + 4, of which dk may be 1, or of more keys.
  const bool rounds_once_more = head.singles && (head.descale.k.there || head.descale.v.there);
  keys.unit = rounds_once_more ? 1.25 * 0x1p-53 : 0x1p-53;
  const double* const x = compact_products(seen, room, row);
  if (!take_bias(head, seen, p, room, row)) return Excuse::overflow;
  const double* const added = take_slopes(head, seen, p, room, row);
  // tau*(x + b) as tau*x + tau*b: three roundings relative to tau (X + |b|), within the dk + 4 of the certificate, and
  // one more where slopes are in b.
  RowScores found = key_loops().scores(x, keys.size, head.softcap > 0 ? nullptr : added, head.scale, seen.n,
                                       row.t.data(), row.s.data());
  if (head.softcap > 0) {
    fit(row.capped, room);
    keys.capped = row.capped.data();
    found.most = key_loops().cap(row.t.data(), added, head.softcap, seen.n, row.capped.data(), row.s.data());
  }
  take_sink(head, found, row);
  keys.s = row.s.data(), keys.t = row.t.data();
  take_values(head, values, row);
  if (!visible_keys_finite(head, seen, values) || !dropped_values_harmless(head, seen, values, ignores_dead_values))
    return Excuse::not_finite;
  // |s_j| <= kap X_j + |b_j| and X_j itself bound D1 from below: what overflows a double here is outside the domain.
  if (!found.finite) return Excuse::overflow;
  weigh(head, values, keys.s, found.most, row);
  if (needs_key_sums(p)) take_key_sums(head, seen, room, row);
  keys.exact_dots = exact_in_any_order(head, row, p, found.most_size);
  return Excuse::none;
}

}  // namespace attest::detail

// Kernels that are right but for dropout.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/call/drawn_keep.h"
#include "core/problem/fields.h"
#include "core/problem/memory.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

bool drops(const Case& c) {
  return c[Slot::keep].present();
}
void forget(Case& c) {
  drop_variant(c, dropout_variant.name);
}

/// Another problem in the place of one with dropout.
Spoilt::Fault dropout_asked(std::function<void(Case&)> change) {
  return [change = std::move(change)](Kernel& kernel, Case c, DType output, bool want_lse) {
    if (drops(c)) change(c);
    return kernel.run(c, output, want_lse);
  };
}
/// The problem without dropout, where that is so.
Spoilt::Fault ignored_where(std::function<bool(const Case&)> is) {
  return dropout_asked([is = std::move(is)](Case& c) {
    if (is(c)) forget(c);
  });
}
Spoilt::Fault another_rate(std::function<double(double)> value) {
  return dropout_asked([value = std::move(value)](Case& c) { c.dropout_p = value(c.dropout_p); });
}

/// A weight: of the mask's own batch entries and heads, 1 where these share one.
struct Place {
  std::int64_t b, h, i, j;
};
/// Another mask of the same shape: keep(c, place), c with the mask that was asked for.
Spoilt::Fault another_mask(std::function<double(const Case& c, const Place&)> keep) {
  return dropout_asked([keep = std::move(keep)](Case& c) {
    const Case before = c;
    const Shape shape = c[Slot::keep].shape();
    c[Slot::keep] = mapped(c[Slot::keep], [&](std::int64_t e, double) {
      const auto [b, h, i, j] = shape.index_of(e);
      return keep(before, {b, h, i, j});
    });
  });
}
double kept_at(const Case& c, const Place& at) {
  return c[Slot::keep].at(at.b, at.h, at.i, at.j);
}

/// The problem without dropout, and with a mask that hides what is to be dropped. Of no sequences.
Case with_dropped_keys_hidden(const Case& c) {
  Case hiding = c;
  forget(hiding);
  Tensor mask(DType::f64, {batch_of(c), heads_of(c), queries_of(c), keys_of(c)});
  for (std::int64_t e = 0; e < mask.elements(); ++e) {
    const auto [b, h, i, j] = mask.shape().index_of(e);
    mask.set(e, hidden(c, b, h, i, j) || !keeps(c, b, h, i, j) ? -infinity : bias_of(c, b, h, i, j));
  }
  hiding[Slot::mask] = std::move(mask);
  drop_positions(hiding);
  set_layouts(hiding, Layouts());
  return hiding;
}

/// The answer made of the right one and of that to another problem, or where there is none of itself, element by
/// element: of the output, and of the log-sum-exp.
using Made = std::function<double(const Case& c, std::int64_t e, double right, double other)>;
Spoilt::Fault answered(std::function<Case(const Case&)> other_problem, Made out, Made lse) {
  return [other_problem = std::move(other_problem), out = std::move(out), lse = std::move(lse)](
             Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (!drops(c) || reply.status != CallStatus::ok || has_sequences(c)) return reply;
    const Reply other = other_problem ? kernel.run(other_problem(c), output, want_lse) : reply;
    if (other.status != CallStatus::ok) return reply;
    reply.out = mapped(reply.out, [&](std::int64_t e, double old) { return out(c, e, old, other.out[e]); });
    if (reply.lse.present() && other.lse.present())
      reply.lse = mapped(reply.lse, [&](std::int64_t e, double old) { return lse(c, e, old, other.lse[e]); });
    return reply;
  };
}
double right_of(const Case&, std::int64_t, double right, double) {
  return right;
}
double other_of(const Case&, std::int64_t, double, double other) {
  return other;
}
constexpr std::nullptr_t as_it_is = nullptr;
Case without_dropout(const Case& c) {
  Case plain = c;
  forget(plain);
  return plain;
}

/// Where a mask of the kernel's own is asked for, that of keeps(c, place), and what a fault makes of it. None: nothing
/// else.
Spoilt::Fault drawn_by(std::function<bool(const Case& c, const Place&)> keeps, Spoilt::Fault then = nullptr) {
  return
      [keeps = std::move(keeps), then = std::move(then)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
        if (!draws_own_dropout(c)) return kernel.run(c, output, want_lse);
        Case given = c;
        const Shape shape{batch_of(c), heads_of(c), queries_of(c), keys_of(c)};
        given[Slot::keep] = mapped(Tensor(DType::boolean, shape), [&](std::int64_t e, double) {
          const auto [b, h, i, j] = shape.index_of(e);
          return keeps(c, {b, h, i, j}) ? 1.0 : 0.0;
        });
        given.dropout_seed = 0;
        return then ? then(kernel, given, output, want_lse) : kernel.run(given, output, want_lse);
      };
}
/// As the kernel draws it, at another rate.
bool drawn_at(const Case& c, const Place& at, double rate) {
  return keeps_at(c.dropout_seed, (at.b * heads_of(c) + at.h) * queries_of(c) + at.i, at.j, rate);
}
bool drawn(const Case& c, const Place& at) {
  return drawn_at(c, at, c.dropout_p);
}
/// By a hash of the problem's queries, as of a kernel whose draws depend on what it computes.
Case with_seed_of_queries(Case c) {
  for (std::int64_t e = 0; e < c.q().elements(); ++e)
    c.dropout_seed = (c.dropout_seed * 31 + (c.q()[e] > 0 ? 1 : 0)) % (std::int64_t{1} << 40);
  return c;
}

/// Is there a key that the row of element e of the output sees, of which this is so?
bool any_seen(const Case& c, std::int64_t e, const std::function<bool(const Place&)>& is) {
  const std::int64_t row = e / c.v().shape()[3], M = queries_of(c), heads = heads_of(c);
  const std::int64_t b = row / M / heads, h = row / M % heads, i = row % M;
  for (std::int64_t j = 0; j < keys_of(c); ++j)
    if (!hidden(c, b, h, i, j) && is({b, h, i, j})) return true;
  return false;
}
/// Has the row keys, and drops them all?
bool drops_all(const Case& c, std::int64_t e) {
  return any_seen(c, e, [](const Place&) { return true; }) &&
         !any_seen(c, e, [&](const Place& at) { return keeps(c, at.b, at.h, at.i, at.j); });
}
/// Does the row drop a value of the element's column that is no number?
bool drops_a_nan(const Case& c, std::int64_t e) {
  const std::int64_t column = e % c.v().shape()[3];
  return any_seen(c, e, [&](const Place& at) {
    return !keeps(c, at.b, at.h, at.i, at.j) && !std::isfinite(c.v().at(at.b, kv_head_of(c, at.h), at.j, column));
  });
}

/// Are all weights a row's equal ones, and are they read off columns that have one number at most?
bool reads_weights(const Case& c) {
  const std::vector<double> q = c.q().to_doubles(), v = c.v().to_doubles();
  const std::int64_t N = keys_of(c), dv = c.v().shape()[3];
  std::vector<std::int64_t> numbers(v.size() / static_cast<std::size_t>(std::max<std::int64_t>(N, 1)));
  for (std::size_t e = 0; e < v.size(); ++e)
    if (v[e] != 0)
      ++numbers[e / static_cast<std::size_t>(N * dv) * static_cast<std::size_t>(dv) + e % static_cast<std::size_t>(dv)];
  return std::ranges::all_of(q, [](double x) { return x == 0; }) &&
         std::ranges::all_of(numbers, [](std::int64_t n) { return n <= 1; }) && N > 1;
}

/// Of those gradients that are named another mask's than that of the seed that is given.
WrongKernel drawn_otherwise_in_its_backward_pass(std::string name, std::vector<Gradient> gradients) {
  return {std::move(name),
          [](Kernel& kernel, const Case& c, DType output, bool want_lse) { return kernel.run(c, output, want_lse); },
          [gradients = std::move(gradients)](Kernel& kernel, Case c, const BackwardCall& call, DType output) {
            Reply reply = kernel.backward(c, call, output);
            if (!draws_own_dropout(c) || reply.status != CallStatus::ok) return reply;
            c.dropout_seed ^= 977;
            const Reply other = kernel.backward(c, call, output);
            for (const Gradient one : gradients)
              reply.gradients[static_cast<std::size_t>(one)] = other.gradients[static_cast<std::size_t>(one)];
            return reply;
          }};
}

/// Of masks that the kernel draws itself.
std::vector<WrongKernel> mistaken_draws() {
  const auto at = [](auto place) {
    return drawn_by([place](const Case& c, const Place& p) { return drawn(c, place(c, p)); });
  };
  return {
      {"keeps what it draws by the rate",
       drawn_by([](const Case& c, const Place& p) { return drawn_at(c, p, 1 - c.dropout_p); })},
      {"draws by eighths", drawn_by([](const Case& c, const Place& p) {
         return drawn_at(c, p, std::min(std::round(8 * c.dropout_p), 7.0) / 8);
       })},
      {"draws no first key", drawn_by([](const Case& c, const Place& p) { return p.j == 0 || drawn(c, p); })},
      {"draws nothing in the first row",
       drawn_by([](const Case& c, const Place& p) { return p.i == 0 || drawn(c, p); })},
      {"draws twice as much in every other head", drawn_by([](const Case& c, const Place& p) {
         return drawn_at(c, p, p.h % 2 == 0 ? 0 : std::min(2 * c.dropout_p, 1.0));
       })},
      {"draws twice as much in every other entry of a batch", drawn_by([](const Case& c, const Place& p) {
         return drawn_at(c, p, p.b % 2 == 0 ? 0 : std::min(2 * c.dropout_p, 1.0));
       })},
      {"draws one mask for all heads", at([](const Case&, const Place& p) { return Place{p.b, 0, p.i, p.j}; })},
      {"draws one mask for all entries of a batch",
       at([](const Case&, const Place& p) { return Place{0, p.h, p.i, p.j}; })},
      {"draws one mask for all rows", at([](const Case&, const Place& p) { return Place{p.b, p.h, 0, p.j}; })},
      {"draws one mask for all keys", at([](const Case&, const Place& p) { return Place{p.b, p.h, p.i, 0}; })},
      drawn_otherwise_in_its_backward_pass("draws dv another mask than its output", {Gradient::v}),
      drawn_otherwise_in_its_backward_pass("draws dq and dk another mask than its output", {Gradient::q, Gradient::k}),
      {"draws without the seed", drawn_by([](Case c, const Place& p) {
         c.dropout_seed = 0;
         return drawn(c, p);
       })},
      {"draws anew at every call",
       [calls = std::make_shared<std::int64_t>(0)](Kernel& kernel, Case c, DType output, bool want_lse) {
         if (draws_own_dropout(c)) c.dropout_seed = (c.dropout_seed + ++*calls * 977) % (std::int64_t{1} << 40);
         return kernel.run(c, output, want_lse);
       },
       /*backward=*/nullptr, /*has_memory=*/true},
      {"draws by its queries",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         return kernel.run(draws_own_dropout(c) ? with_seed_of_queries(c) : c, output, want_lse);
       }},
      {"does not divide what it draws", drawn_by(drawn, another_rate([](double) { return 0.0; }))},
      {"divides what it draws by the rate", drawn_by(drawn, another_rate([](double p) { return 1 - p; }))},
      {"normalises what it draws", drawn_by(drawn, answered(with_dropped_keys_hidden, other_of, right_of))},
      {"has log-sum-exps of what it draws", drawn_by(drawn, answered(with_dropped_keys_hidden, right_of, other_of))},
      {"draws the second row as the first",
       at([](const Case&, const Place& p) { return Place{p.b, p.h, p.i == 1 ? 0 : p.i, p.j}; })},
      {"draws the second key as the first",
       at([](const Case&, const Place& p) { return Place{p.b, p.h, p.i, p.j == 1 ? 0 : p.j}; })},
      {"draws otherwise where it is asked the same again",
       [asked = std::make_shared<std::map<std::uint64_t, std::int64_t>>()](Kernel& kernel, Case c, DType output,
                                                                           bool want_lse) {
         if (draws_own_dropout(c) && (*asked)[hash_of_call(c)]++ % 2 == 1) c.dropout_seed ^= 977;
         return kernel.run(c, output, want_lse);
       },
       /*backward=*/nullptr, /*has_memory=*/true},
      {"is NaN where it keeps one of equal weights",
       drawn_by(drawn, answered(
                           as_it_is,
                           [](const Case& c, std::int64_t, double right, double) {
                             return right != 0 && reads_weights(c) ? std::numeric_limits<double>::quiet_NaN() : right;
                           },
                           right_of))},
  };
}

}  // namespace

std::vector<WrongKernel> mistaken_dropouts() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<WrongKernel> all{
      {"ignores dropout", dropout_asked(forget)},
      {"ignores dropout for one query", ignored_where([](const Case& c) { return queries_of(c) == 1; })},
      {"ignores dropout beside a mask", ignored_where([](const Case& c) { return c.mask().present(); })},
      {"ignores dropout beside a sink", ignored_where([](const Case& c) { return c[Slot::sink].present(); })},
      {"drops what is to be kept", another_mask([](const Case& c, const Place& at) { return 1 - kept_at(c, at); })},
      {"does not divide what it keeps", another_rate([](double) { return 0.0; })},
      {"takes the rate for the share that is kept",
       another_rate([](double p) { return p > 0 ? std::min(1 - p, 0x1.fffffffffffffp-1) : p; })},
      {"takes no rate for one of a half", another_rate([](double p) { return p == 0 ? 0.5 : p; })},
      {"rounds the rate to a 256th", another_rate([](double p) { return std::min(std::round(256 * p), 255.0) / 256; })},
      {"multiplies what it keeps by its share",
       answered(
           as_it_is,
           [](const Case& c, std::int64_t, double right, double) { return right * std::pow(1 - c.dropout_p, 2); },
           right_of)},
      {"divides what it keeps twice",
       answered(
           as_it_is, [](const Case& c, std::int64_t, double right, double) { return right / (1 - c.dropout_p); },
           right_of)},
      {"hides what it is to drop",
       answered(
           with_dropped_keys_hidden,
           [](const Case& c, std::int64_t, double, double other) { return other / (1 - c.dropout_p); }, other_of)},
      {"normalises what it keeps", answered(with_dropped_keys_hidden, other_of, right_of)},
      {"has log-sum-exps of what it keeps", answered(with_dropped_keys_hidden, right_of, other_of)},
      {"has log-sum-exps of what it has divided",
       answered(as_it_is, right_of,
                [](const Case& c, std::int64_t, double right, double) { return right + std::log1p(-c.dropout_p); })},
      {"rounds log-sum-exps by what it keeps", answered(as_it_is, right_of,
                                                        [](const Case& c, std::int64_t, double right, double) {
                                                          std::int64_t kept = 0;
                                                          for (std::int64_t e = 0; e < c[Slot::keep].elements(); ++e)
                                                            kept += c[Slot::keep][e] != 0;
                                                          return kept % 3 == 0 ? std::nextafter(right, infinity)
                                                                               : right;
                                                        })},
      {"has the first head's mask in every head",
       another_mask([](const Case& c, const Place& at) { return kept_at(c, {at.b, 0, at.i, at.j}); })},
      {"has the first entry's mask in every entry of a batch",
       another_mask([](const Case& c, const Place& at) { return kept_at(c, {0, at.h, at.i, at.j}); })},
      {"has the first row's mask in every row",
       another_mask([](const Case& c, const Place& at) { return kept_at(c, {at.b, at.h, 0, at.j}); })},
      {"has rows of the mask for columns", another_mask([](const Case& c, const Place& at) {
         return kept_at(c, {at.b, at.h, at.j % queries_of(c), at.i % keys_of(c)});
       })},
      {"has the mask of the next key", another_mask([](const Case& c, const Place& at) {
         return kept_at(c, {at.b, at.h, at.i, (at.j + 1) % keys_of(c)});
       })},
      {"keeps the first key always",
       another_mask([](const Case& c, const Place& at) { return at.j == 0 ? 1.0 : kept_at(c, at); })},
      {"drops the last key always",
       another_mask([](const Case& c, const Place& at) { return at.j == keys_of(c) - 1 ? 0.0 : kept_at(c, at); })},
      {"drops a key for all rows where one does", another_mask([](const Case& c, const Place& at) {
         double kept = 1;
         for (std::int64_t i = 0; i < queries_of(c); ++i) kept = std::min(kept, kept_at(c, {at.b, at.h, i, at.j}));
         return kept;
       })},
      {"is NaN where everything is dropped",
       answered(
           as_it_is, [](const Case& c, std::int64_t e, double right, double) { return drops_all(c, e) ? nan : right; },
           right_of)},
      {"is tiny where everything is dropped",
       answered(
           as_it_is,
           [](const Case& c, std::int64_t e, double right, double) { return drops_all(c, e) ? 1e-30 : right; },
           right_of)},
      {"drops nothing where everything is to be dropped",
       answered(
           without_dropout,
           [](const Case& c, std::int64_t e, double right, double other) { return drops_all(c, e) ? other : right; },
           right_of)},
      {"multiplies what it drops by 0",
       answered(
           as_it_is,
           [](const Case& c, std::int64_t e, double right, double) { return drops_a_nan(c, e) ? nan : right; },
           right_of)},
      {"keeps a thousandth of what it drops", answered(
                                                  without_dropout,
                                                  [](const Case& c, std::int64_t, double right, double other) {
                                                    return right + 1e-3 * (other - (1 - c.dropout_p) * right);
                                                  },
                                                  right_of)},
  };
  std::ranges::move(mistaken_draws(), std::back_inserter(all));
  return all;
}

}  // namespace attest

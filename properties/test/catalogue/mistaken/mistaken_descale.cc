// Kernels that are right but for factors of q, k and v.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/value/dtype.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

constexpr std::array tensors{Slot::q, Slot::k, Slot::v};

bool has_factors(const Case& c) {
  return has_variant(c, descale_variant.name);
}

/// Another problem in the place of one with factors.
Spoilt::Fault factors_asked(std::function<void(Case&)> change) {
  return [change = std::move(change)](Kernel& kernel, Case c, DType output, bool want_lse) {
    if (has_factors(c)) change(c);
    return kernel.run(c, output, want_lse);
  };
}
/// The problem without factors, where that is so.
Spoilt::Fault ignored_where(std::function<bool(const Case&)> is) {
  return factors_asked([is = std::move(is)](Case& c) {
    if (is(c)) drop_variant(c, descale_variant.name);
  });
}
void forget(Case& c, Slot tensor) {
  c[descale_of(tensor)] = Tensor();
  settle_blocks(c);
}

/// Where a factor stands among those of its tensor.
struct Place {
  Slot tensor;
  std::int64_t b, h, block;
};
using FactorAt = std::function<double(const Case&, const Place&)>;
double given_at(const Case& c, const Place& at) {
  const Tensor& factors = c[descale_of(at.tensor)];
  const Shape& shape = factors.shape();
  return factors.at(std::clamp<std::int64_t>(at.b, 0, shape[0] - 1), std::clamp<std::int64_t>(at.h, 0, shape[1] - 1),
                    std::clamp<std::int64_t>(at.block, 0, shape[2] - 1));
}
void change_factors(Case& c, const FactorAt& value) {
  const Case before = c;
  for (const Slot tensor : tensors) {
    Tensor& factors = c[descale_of(tensor)];
    if (!factors.present()) continue;
    const Shape shape = factors.shape();
    factors = mapped(factors, [&](std::int64_t e, double) {
      return value(before, {tensor, e / shape[2] / shape[1], e / shape[2] % shape[1], e % shape[2]});
    });
  }
}
Spoilt::Fault each_factor(FactorAt value) {
  return factors_asked([value = std::move(value)](Case& c) { change_factors(c, value); });
}
Spoilt::Fault another_factor(std::function<double(double)> value) {
  return each_factor([value = std::move(value)](const Case& c, const Place& at) { return value(given_at(c, at)); });
}
/// By row of q, or key: that of another row.
Spoilt::Fault factor_of_row(std::function<std::int64_t(const Case&, Slot, std::int64_t row)> other) {
  return factors_asked([other = std::move(other)](Case& c) {
    const Case before = c;
    spread_factors(c, true, true);
    const Case spread = c;
    change_factors(c, [&](const Case&, const Place& at) {
      if (!has_blocks(before, at.tensor)) return given_at(spread, at);
      const std::int64_t rows = before[at.tensor].shape()[2];
      return given_at(
          spread, {at.tensor, at.b, at.h, std::clamp<std::int64_t>(other(before, at.tensor, at.block), 0, rows - 1)});
    });
  });
}
double largest_of_blocks(const Case& c, const Place& at) {
  double most = 0;
  for (std::int64_t block = 0; block < c[descale_of(at.tensor)].shape()[2]; ++block)
    most = std::max(most, given_at(c, {at.tensor, at.b, at.h, block}));
  return most;
}
std::int64_t block_of(const Case& c, Slot tensor) {
  return std::max<std::int64_t>(tensor == Slot::q ? c.q_descale_block : c.kv_descale_block, 1);
}

/// What all products are multiplied by, where each tensor has one factor at most.
double of_products(const Case& c) {
  double product = 1;
  for (const Slot tensor : {Slot::q, Slot::k})
    if (c[descale_of(tensor)].present()) product *= c[descale_of(tensor)][0];
  return product;
}

Spoilt::Fault lse_answered(std::function<double(const Case&, double right)> value) {
  return [value = std::move(value)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (!has_factors(c) || reply.status != CallStatus::ok || !reply.lse.present()) return reply;
    reply.lse = mapped(reply.lse, [&](std::int64_t, double right) { return value(c, right); });
    return reply;
  };
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::vector<WrongKernel> mistaken_descale() {
  return {
      {"ignores factors", ignored_where([](const Case&) { return true; })},
      {"ignores q's factors", factors_asked([](Case& c) { forget(c, Slot::q); })},
      {"ignores k's factors", factors_asked([](Case& c) { forget(c, Slot::k); })},
      {"ignores v's factors", factors_asked([](Case& c) { forget(c, Slot::v); })},
      {"ignores factors of a single query", ignored_where([](const Case& c) { return queries_of(c) == 1; })},
      {"ignores factors beside a mask", ignored_where([](const Case& c) { return c.mask().present(); })},
      {"ignores factors beside a causal form", ignored_where([](const Case& c) { return c.causal != Causal::none; })},
      {"ignores factors beside a window",
       ignored_where([](const Case& c) { return has_variant(c, window_variant.name); })},
      {"ignores factors beside a cap", ignored_where([](const Case& c) { return c.softcap > 0; })},
      {"ignores factors beside a sink", ignored_where([](const Case& c) { return c[Slot::sink].present(); })},
      {"divides by factors", another_factor([](double f) { return 1 / f; })},
      {"multiplies by factors twice", another_factor([](double f) { return f * f; })},
      {"multiplies by roots of factors", another_factor([](double f) { return std::sqrt(f); })},
      {"rounds factors to bf16", another_factor([](double f) { return round_to(DType::bf16, f); })},
      {"rounds factors to powers of two", another_factor([](double f) { return std::exp2(std::round(std::log2(f))); })},
      {"has factors of a hundredth more", another_factor([](double f) { return 1.01 * f; })},
      {"takes factors above 1 for 1", another_factor([](double f) { return std::min(f, 1.0); })},
      {"takes factors below 1 for 1", another_factor([](double f) { return std::max(f, 1.0); })},
      {"takes a factor of 1 for 2", another_factor([](double f) { return f == 1 ? 2 : f; })},
      {"has k's factors for v's", each_factor([](const Case& c, const Place& at) {
         const bool taken = at.tensor == Slot::v && c[Slot::k_descale].present();
         return given_at(c, {taken ? Slot::k : at.tensor, at.b, at.h, at.block});
       })},
      {"has v's factors for k's", each_factor([](const Case& c, const Place& at) {
         const bool taken = at.tensor == Slot::k && c[Slot::v_descale].present();
         return given_at(c, {taken ? Slot::v : at.tensor, at.b, at.h, at.block});
       })},
      {"has k's factors for q's", each_factor([](const Case& c, const Place& at) {
         const bool taken = at.tensor == Slot::q && c[Slot::k_descale].present();
         return given_at(c, {taken ? Slot::k : at.tensor, at.b, at.h, at.block});
       })},
      {"has the first head's factor in every head",
       each_factor([](const Case& c, const Place& at) { return given_at(c, {at.tensor, at.b, 0, at.block}); })},
      {"has the next head's factor",
       each_factor([](const Case& c, const Place& at) { return given_at(c, {at.tensor, at.b, at.h + 1, at.block}); })},
      {"has the first entry's factors in every entry of a batch",
       each_factor([](const Case& c, const Place& at) { return given_at(c, {at.tensor, 0, at.h, at.block}); })},
      {"has the next entry's factors",
       each_factor([](const Case& c, const Place& at) { return given_at(c, {at.tensor, at.b + 1, at.h, at.block}); })},
      {"has the first block's factor in every block",
       each_factor([](const Case& c, const Place& at) { return given_at(c, {at.tensor, at.b, at.h, 0}); })},
      {"has the next block's factor",
       each_factor([](const Case& c, const Place& at) { return given_at(c, {at.tensor, at.b, at.h, at.block + 1}); })},
      {"begins blocks a row early", factor_of_row([](const Case&, Slot, std::int64_t row) { return row + 1; })},
      {"begins blocks a row late", factor_of_row([](const Case&, Slot, std::int64_t row) { return row - 1; })},
      {"has blocks of the other tensor's length", factor_of_row([](const Case& c, Slot tensor, std::int64_t row) {
         return row / block_of(c, tensor == Slot::q ? Slot::k : Slot::q) * block_of(c, tensor);
       })},
      {"has blocks of 16 rows",
       factor_of_row([](const Case& c, Slot tensor, std::int64_t row) { return row / 16 * block_of(c, tensor); })},
      {"has blocks of 16 rows of q", factor_of_row([](const Case& c, Slot tensor, std::int64_t row) {
         return tensor == Slot::q ? row / 16 * block_of(c, tensor) : row;
       })},
      {"has blocks of 16 keys", factor_of_row([](const Case& c, Slot tensor, std::int64_t row) {
         return tensor == Slot::q ? row : row / 16 * block_of(c, tensor);
       })},
      {"shares out as many rows to each block", factor_of_row([](const Case& c, Slot tensor, std::int64_t row) {
         const std::int64_t rows = c[tensor].shape()[2], blocks = c[descale_of(tensor)].shape()[2];
         return row * blocks / std::max<std::int64_t>(rows, 1) * block_of(c, tensor);
       })},
      {"has the largest factor of all blocks", each_factor(largest_of_blocks)},
      {"has the largest factor of all blocks of v", each_factor([](const Case& c, const Place& at) {
         return at.tensor == Slot::v ? largest_of_blocks(c, at) : given_at(c, at);
       })},
      {"multiplies what a mask adds by factors", factors_asked([](Case& c) {
         Tensor& mask = c[Slot::mask];
         const double by = of_products(c);
         if (mask.present() && mask.dtype() != DType::boolean)
           mask = mapped(mask, [&](std::int64_t, double entry) { return entry * by; });
       })},
      {"caps products before their factors", factors_asked([](Case& c) {
         if (c.softcap > 0) c.softcap *= of_products(c);
       })},
      {"adds v's factor to the log-sum-exp", lse_answered([](const Case& c, double right) {
         return c[Slot::v_descale].present() ? right + std::log(c[Slot::v_descale][0]) : right;
       })},
      {"adds the factor of v's last block to the log-sum-exp", lse_answered([](const Case& c, double right) {
         const Tensor& factors = c[Slot::v_descale];
         return factors.present() ? right + std::log(factors[factors.elements() - 1]) : right;
       })},
      {"multiplies the log-sum-exp by q's factor", lse_answered([](const Case& c, double right) {
         return c[Slot::q_descale].present() ? right * c[Slot::q_descale][0] : right;
       })},
      {"is NaN beside a factor above 8",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (!has_factors(c) || reply.status != CallStatus::ok) return reply;
         const bool large = std::ranges::any_of(tensors, [&](Slot tensor) { return factors_of(c, tensor).most > 8; });
         if (large) reply.out = mapped(reply.out, [](std::int64_t, double) { return nan; });
         return reply;
       }},
  };
}

}  // namespace attest

#include "core/test/fleet/validation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <stdexcept>

#include "core/kernel/kernel_under_test.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "core/test/fleet/fleet.h"

namespace attest::fleet {

namespace {

/// The largest |scale q.k| of a case.
double largest_product(const Case& c) {
  const std::int64_t M = c.q().shape()[2], N = c.k().shape()[2], dk = c.q().shape()[3];
  double most = 0;
  for (std::int64_t i = 0; i < M; ++i)
    for (std::int64_t j = 0; j < N; ++j) {
      double product = 0;
      for (std::int64_t e = 0; e < dk; ++e) product += c.q()[i * dk + e] * c.k()[j * dk + e];
      most = std::max(most, std::fabs(c.scale * product));
    }
  return most;
}

void add_window(Case& c, std::mt19937_64& random) {
  const auto N = static_cast<std::uint64_t>(c.k().shape()[2]);
  if (random() % 4 != 0) c.window_left = static_cast<std::int64_t>(random() % (N + 1));
  if (random() % 4 == 0 || c.window_left < 0) c.window_right = static_cast<std::int64_t>(random() % (N + 1));
  c.alignment = random() % 2 == 0 ? Causal::top_left : Causal::bottom_right;
}

/// Among the scores, at 0, and far from them on both sides.
void add_sink(Case& c, std::mt19937_64& random) {
  const double most = largest_product(c), size = std::min(most, 0x1p126);
  const double normal = std::normal_distribution<double>()(random);
  const std::array<double, 6> sinks{0, normal, size * normal, size, size + 20 * std::fabs(normal), -size - 60};
  c[Slot::sink] = Tensor(DType::f32, {1});
  c[Slot::sink].set(0, std::clamp(sinks[random() % sinks.size()], -0x1p126, 0x1p126));
}

/// Far above the products, among them, and far below.
void add_softcap(Case& c, std::mt19937_64& random) {
  const double octaves = std::uniform_real_distribution<double>(-8, 5)(random);
  const double cap = std::max(largest_product(c), 0x1p-20) * std::exp2(octaves);
  c.softcap = static_cast<double>(static_cast<float>(std::clamp(cap, 0x1p-60, 0x1p60)));
  c.mask_convention = MaskConvention::post_scale;
}

void add_dropout(Case& c, std::mt19937_64& random) {
  constexpr std::array<double, 6> rates{0, 0.1, 0.25, 0.5, 0.9, 0.99};
  const double p = rates[random() % rates.size()], share = random() % 2 == 0 ? p : 0.5;
  Tensor keep(DType::boolean, {1, 1, c.q().shape()[2], c.k().shape()[2]});
  for (std::int64_t e = 0; e < keep.elements(); ++e)
    keep.set(e, std::uniform_real_distribution<double>()(random) < share ? 0 : 1);
  c[Slot::keep] = std::move(keep);
  c.dropout_p = p;
}

/// As models have them, and of any size and sign, for the keys near the end or for all.
void add_slope(Case& c, std::mt19937_64& random) {
  const double normal = std::normal_distribution<double>()(random);
  const std::array<double, 6> slopes{0x1p-8, 0.5, normal, 0x1p-6 * normal, 64 * std::fabs(normal), 0};
  c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 1});
  c[Slot::alibi_slopes].set(0, slopes[random() % slopes.size()]);
  const std::array<Causal, 4> forms{Causal::bottom_right, Causal::bottom_right, Causal::none, c.causal};
  c.causal = forms[random() % forms.size()];
  if (c.alignment == Causal::none && random() % 2 == 0) c.alignment = Causal::bottom_right;
  settle_alignment(c);
  c.mask_convention = MaskConvention::post_scale;
}

/// Of any size, in blocks or not, for some of the tensors; powers of two beside f64.
void add_descale(Case& c, std::mt19937_64& random) {
  const std::uint64_t which = 1 + random() % 7;
  const double reach = random() % 4 == 0 ? 20 : 3;
  constexpr std::array tensors{Slot::q, Slot::k, Slot::v};
  for (std::size_t at = 0; at < tensors.size(); ++at) {
    if ((which >> at & 1) == 0) continue;
    const std::int64_t rows = c[tensors[at]].shape()[2];
    std::int64_t& block = tensors[at] == Slot::q ? c.q_descale_block : c.kv_descale_block;
    const bool blocks = rows > 1 && random() % 2 == 0;
    if (blocks && block == 0) block = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows - 1));
    Tensor factors(DType::f32, {1, 1, blocks ? (rows + block - 1) / block : 1});
    for (std::int64_t e = 0; e < factors.elements(); ++e) {
      const double octave = std::uniform_real_distribution<double>(-reach, reach)(random);
      factors.set(e, std::exp2(c.dtype() == DType::f64 ? std::round(octave) : octave));
    }
    c[descale_of(tensors[at])] = std::move(factors);
  }
  settle_blocks(c);
}

}  // namespace

void add(Added added, Case& c, std::mt19937_64& random) {
  const bool all = added == Added::everything;
  if (all || added == Added::window) add_window(c, random);
  if (all || added == Added::sink) add_sink(c, random);
  if (all || added == Added::softcap) add_softcap(c, random);
  if (all || added == Added::dropout) add_dropout(c, random);
  if (all || added == Added::slope) add_slope(c, random);
  if (all || added == Added::descale) add_descale(c, random);
}

Case validation_case(Regime regime, DType dtype, const Effort& effort, std::uint64_t seed) {
  std::mt19937_64 random(seed * 64 + static_cast<std::uint64_t>(regime));
  const auto log_uniform = [&](std::int64_t top) {
    const double x = std::uniform_real_distribution<double>(0, std::log(static_cast<double>(top) + 1))(random);
    return static_cast<std::int64_t>(std::exp(x));
  };
  const std::int64_t N = log_uniform(effort.max_keys);
  Case c = draw(regime, dtype, {.M = 2, .N = N, .dk = log_uniform(effort.max_head_dim), .dv = 4}, random());
  add(effort.added, c, random);
  return c;
}

Ledger validate_bound(DType dtype, const Effort& effort) {
  std::vector<Emulation> emulations;
  for (Emulation& kernel : correct_kernels()) {
    if (kernel.arithmetic.input == dtype) emulations.push_back(std::move(kernel));
  }
  std::vector<std::unique_ptr<Kernel>> builtins;
  for (const KernelEntry& entry : builtin_kernels()) builtins.push_back(entry.make());
  Ledger ledger(effort.alarm_probability);
  for (int r = 0; r < validated_regimes; ++r) {
    const auto regime = static_cast<Regime>(r);
    for (std::uint64_t seed = effort.first_seed; seed < effort.first_seed + effort.seeds; ++seed) {
      const Case c = validation_case(regime, dtype, effort, seed);
      for (const Emulation& kernel : emulations) {
        ledger.add(kernel.name, regime, seed, c, kernel.arithmetic, emulate(kernel, c));
      }
      for (const auto& kernel : builtins) {
        Reply reply = kernel->run(c, dtype, true);
        if (reply.status != CallStatus::ok) throw std::runtime_error(kernel->id() + ": " + reply.message);
        ledger.add(std::string(name_of(dtype)) + " " + kernel->id(), regime, seed, c,
                   kernel->manifest().arithmetic.usual_for(dtype),
                   {std::move(reply.out.tensor()), std::move(reply.lse.tensor())});
      }
    }
  }
  return ledger;
}

}  // namespace attest::fleet

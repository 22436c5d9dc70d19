#include "core/test/fleet/validation.h"

#include <cmath>
#include <random>
#include <stdexcept>

#include "core/kernel/kernel_under_test.h"
#include "core/test/fleet/fleet.h"

namespace attest::fleet {

Case validation_case(Regime regime, DType dtype, const Effort& effort, std::uint64_t seed) {
  std::mt19937_64 random(seed * 64 + static_cast<std::uint64_t>(regime));
  const auto log_uniform = [&](std::int64_t top) {
    const double x = std::uniform_real_distribution<double>(0, std::log(static_cast<double>(top) + 1))(random);
    return static_cast<std::int64_t>(std::exp(x));
  };
  const std::int64_t N = log_uniform(effort.max_keys);
  return draw(regime, dtype, {.M = 2, .N = N, .dk = log_uniform(effort.max_head_dim), .dv = 4}, random());
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

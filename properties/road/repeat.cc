#include "properties/road/repeat.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>

#include "core/kernel/forwarding_kernel.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

/// Keeps what it is given.
class RecordingKernel final : public ForwardingKernel {
 public:
  RecordingKernel(Kernel& kernel, std::vector<Call>& calls) : ForwardingKernel(kernel), calls_(calls) {}
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    calls_.push_back({c, output.value_or(c.dtype()), want_lse});
    return ForwardingKernel::run(c, output, want_lse);
  }

 private:
  std::vector<Call>& calls_;
};

bool is_violated(const CheckOfKernel& check, Kernel& kernel) {
  return check(kernel).outcome == Outcome::violated;
}

}  // namespace

void make(const Call& call, Kernel& kernel) {
  static_cast<void>(kernel.run(call.problem, call.output, call.want_lse));
}

std::int64_t violated_again(const CheckOfKernel& check, Kernel& kernel, std::int64_t times) {
  std::int64_t again = 0;
  for (std::int64_t n = 0; n < times; ++n) again += is_violated(check, kernel) ? 1 : 0;
  return again;
}

std::unique_ptr<Kernel> FreshKernels::next() {
  if (left_ <= 0 || time_.count() <= 0) return nullptr;
  --left_;
  try {
    return start_();
  } catch (const KernelLoadError&) {
    left_ = 0;  // one that does not start now says nothing of the case
    return nullptr;
  }
}

template <class Use>
std::optional<bool> FreshKernels::timed(Use&& use) {
  const Clock::time_point begin = Clock::now();
  const std::unique_ptr<Kernel> kernel = next();
  std::optional<bool> violated;
  if (kernel) violated = use(*kernel);
  time_ -= std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  return violated;
}

std::optional<bool> FreshKernels::violates(const CheckOfKernel& check, std::span<const Call> before) {
  return timed([&](Kernel& kernel) {
    for (const Call& call : before) make(call, kernel);
    return is_violated(check, kernel);
  });
}

std::optional<bool> FreshKernels::violates_after(const CheckOfKernel& check,
                                                 std::span<const std::function<void(Kernel&)>> steps,
                                                 std::vector<Call>& made) {
  made.clear();
  return timed([&](Kernel& kernel) {
    RecordingKernel recording(kernel, made);
    for (const auto& step : steps) step(recording);
    return is_violated(check, kernel);
  });
}

std::vector<Call> calls_it_takes(const CheckOfKernel& check, std::span<const std::function<void(Kernel&)>> history,
                                 FreshKernels& fresh) {
  std::vector<Call> calls;
  const auto violates = [&](std::span<const Call> before) { return fresh.violates(check, before) == true; };
  bool found = false;
  // A few of the last ones, in every number, as a count of calls may matter; then ever more of them.
  for (std::size_t n = 1; !found && n < history.size() + std::max<std::size_t>(n / 2, 1); n += n < 16 ? 1 : n) {
    found = fresh.violates_after(check, history.last(std::min(n, history.size())), calls) == true && violates(calls);
  }
  if (!found) return {};
  for (std::size_t chunk = std::bit_floor(calls.size()); chunk > 0; chunk /= 2) {
    for (std::size_t from = 0; from < calls.size();) {
      std::vector<Call> rest(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(from));
      const std::size_t behind = std::min(from + chunk, calls.size());
      rest.insert(rest.end(), calls.begin() + static_cast<std::ptrdiff_t>(behind), calls.end());
      if (!rest.empty() && violates(rest)) {
        calls = std::move(rest);
      } else {
        from += chunk;
      }
    }
  }
  // What comes and goes by chance is not brought back by what happened to stand before it.
  for (int n = 0; n < 3; ++n)
    if (fresh.violates(check, calls) == false) return {};
  return calls;
}

}  // namespace attest

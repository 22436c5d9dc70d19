// Kernels made wrong on purpose, a list for every row of the catalogue: by what they look at, by where they go wrong,
// and by the mistakes that people make.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kernel/forwarding_kernel.h"
#include "core/problem/case.h"
#include "core/scalars/wide.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {

/// The definition in double, asked and answered by way of a fault.
class Spoilt : public ForwardingKernel {
 public:
  using Fault = std::function<Reply(Kernel&, Case, DType, bool)>;
  /// What becomes of a backward pass; null: nothing.
  using BackwardFault = std::function<Reply(Kernel&, const Case&, const BackwardCall&, DType)>;
  explicit Spoilt(Fault fault, BackwardFault backward = nullptr,
                  std::unique_ptr<Kernel> right = registered("core:double"))
      : ForwardingKernel(std::move(right)), fault_(std::move(fault)), backward_(std::move(backward)) {}
  Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    return fault_(inner(), c, output.value_or(c.dtype()), want_lse);
  }
  Reply backward(const Case& c, const BackwardCall& call, DType output) override {
    return backward_ ? backward_(inner(), c, call, output) : inner().backward(c, call, output);
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<Spoilt>(fault_, backward_, inner().clone());
  }

 private:
  Fault fault_;
  BackwardFault backward_;
};

struct WrongKernel {
  std::string name;
  Spoilt::Fault fault;
  Spoilt::BackwardFault backward{};
  bool has_memory = false;  ///< an answer depends on the calls before it
};

/// In groups, by the first word of the name:
/// "looks-at X": noise that X of a call determines, all of X and nothing else, on the whole output. A law goes red for
/// it where its calls differ in X and it says that their answers do not.
/// "wrong-at X": noise that the whole call determines, in a part X of the output. Red: that part is judged.
/// "lse …": the log-sum-exp is wrong, the output right.
/// All others: mistakes.
[[nodiscard]] const std::vector<WrongKernel>& wrong_kernels();
/// Throws std::out_of_range where there is none of that name.
[[nodiscard]] const WrongKernel& wrong_kernel(std::string_view name);

/// The core in double with one of its functions (core_functions.h) wrong, by the function's name; the kernel is right.
[[nodiscard]] const std::vector<std::string_view>& broken_functions();
[[nodiscard]] std::unique_ptr<Kernel> with_broken_function(std::string_view name);
/// Those functions, without what stands behind a '-' of their names, that a check asks of the kernel it is handed.
[[nodiscard]] std::set<std::string_view> functions_asked(const std::function<void(Kernel&)>& check);

/// core:cpp_bin_float_50 with its own numbers wrong: what a check makes of scalars wider than every dtype.
struct WrongWide {
  std::string name;
  std::function<Wide(const Case&, const Wide& right)> change;
};
[[nodiscard]] const std::vector<WrongWide>& wrong_wide_kernels();
[[nodiscard]] std::unique_ptr<Kernel> with_wide_fault(const WrongWide& wrong);

}  // namespace attest

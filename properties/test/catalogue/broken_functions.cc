// One of the core's functions wrong at a time.
#include <fmt/format.h>

#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/kernel/forwarding_kernel.h"
#include "core/kernels/core_functions.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/test/catalogue/wrong_kernels.h"

namespace attest {
namespace {

template <auto member>
using Constant = std::integral_constant<decltype(member), member>;
template <class Visit>
void for_each_function(Visit visit) {
  visit(Constant<&CoreFunctions::softmax_rows>(), "softmax_rows");
  visit(Constant<&CoreFunctions::softmax_columns>(), "softmax_columns");
  visit(Constant<&CoreFunctions::product>(), "product");
  visit(Constant<&CoreFunctions::attention>(), "attention");
  visit(Constant<&CoreFunctions::attention_renormalised>(), "attention_renormalised");
  visit(Constant<&CoreFunctions::attention_columns>(), "attention_columns");
  visit(Constant<&CoreFunctions::scores>(), "scores");
  visit(Constant<&CoreFunctions::bilinear_scores>(), "bilinear_scores");
  visit(Constant<&CoreFunctions::multihead>(), "multihead");
  visit(Constant<&CoreFunctions::multihead_weights>(), "multihead_weights");
  visit(Constant<&CoreFunctions::multihead_torch>(), "multihead_torch");
  visit(Constant<&CoreFunctions::multihead_as_sum>(), "multihead_as_sum");
  visit(Constant<&CoreFunctions::multihead_unmasked>(), "multihead_unmasked");
  visit(Constant<&CoreFunctions::multihead_self>(), "multihead_self");
  visit(Constant<&CoreFunctions::multihead_self_unmasked>(), "multihead_self_unmasked");
  visit(Constant<&CoreFunctions::weighted>(), "weighted");
  visit(Constant<&CoreFunctions::weighted_unmasked>(), "weighted_unmasked");
  visit(Constant<&CoreFunctions::weighted_self>(), "weighted_self");
  visit(Constant<&CoreFunctions::weighted_self_unmasked>(), "weighted_self_unmasked");
  visit(Constant<&CoreFunctions::unscaled_self>(), "unscaled_self");
  visit(Constant<&CoreFunctions::parameter_free>(), "parameter_free");
  visit(Constant<&CoreFunctions::shared_projection>(), "shared_projection");
  visit(Constant<&CoreFunctions::with_positions>(), "with_positions");
  visit(Constant<&CoreFunctions::multihead_v1>(), "multihead_v1");
}

/// 1/4 and more is added, another number to each element, so that no symmetry hides it.
template <auto function, class... Arguments>
Values spoilt_function(Arguments... arguments) {
  Values numbers = (core_functions("core:double")->*function)(arguments...);
  numbers = mapped(numbers, [](std::int64_t e, double old) { return old + 0.25 + 0.125 * double(e % 7); });
  return numbers;
}
template <auto function, class... Arguments>
void spoil(CoreFunctions& functions, Values (*CoreFunctions::*member)(Arguments...)) {
  functions.*member = &spoilt_function<function, Arguments...>;
}

std::set<std::string_view>& asked_now() {
  static std::set<std::string_view> names;
  return names;
}
const char* const recording = "recording";
/// Right, and noted.
template <auto function, class... Arguments>
Values recorded_function(Arguments... arguments) {
  for_each_function([](auto one, std::string_view name) {
    if constexpr (std::is_same_v<decltype(one), Constant<function>>) asked_now().insert(name);
  });
  return (core_functions("core:double")->*function)(arguments...);
}
template <auto function, class... Arguments>
void record(CoreFunctions& functions, Values (*CoreFunctions::*member)(Arguments...)) {
  functions.*member = &recorded_function<function, Arguments...>;
}

Values raised(Values numbers) {
  numbers = mapped(numbers, [](std::int64_t, double old) { return old + 0.25; });
  return numbers;
}
/// Wrong in one of the ways in which they are asked.
Values torch_wrong_if_packed(const Case& c, bool packed) {
  const Values numbers = core_functions("core:double")->multihead_torch(c, packed);
  return packed ? raised(numbers) : numbers;
}
Values torch_wrong_if_separate(const Case& c, bool packed) {
  const Values numbers = core_functions("core:double")->multihead_torch(c, packed);
  return packed ? numbers : raised(numbers);
}
Values scores_wrong_alike(const Case& c) {
  return raised(core_functions("core:double")->scores(c));
}
Values projection_wrong_if_any(const Tensor& x, const Tensor& u) {
  const Values numbers = core_functions("core:double")->shared_projection(x, u);
  return is_identity(u) ? numbers : raised(numbers);
}

/// Off by the last bit: within every bound, and not what attention to the identity is.
Values weights_off_by_a_bit(const Case& c) {
  Values weights = core_functions("core:double")->multihead_weights(c);
  weights = mapped(weights, [](std::int64_t, double old) { return old * (1 + 0x1p-52); });
  return weights;
}

struct BrokenFunctions {
  std::vector<std::string> scalars;
  std::vector<std::string_view> names;
  std::vector<CoreFunctions> functions;
  CoreFunctions recorded{};
  CoreFunctions& another(std::string_view name) {
    names.push_back(name);
    return functions.emplace_back(*core_functions("core:double"));
  }
  template <auto function>
  void add(std::string_view name) {
    spoil<function>(another(name), function);
  }
};
const BrokenFunctions& broken() {
  static const BrokenFunctions* const all = [] {
    auto* const b = new BrokenFunctions;
    for_each_function([&](auto function, std::string_view name) { b->add<function.value>(name); });
    b->another("multihead_weights-last-bit").multihead_weights = weights_off_by_a_bit;
    b->another("multihead_torch-packed").multihead_torch = torch_wrong_if_packed;
    b->another("multihead_torch-separate").multihead_torch = torch_wrong_if_separate;
    b->another("scores-alike").scores = scores_wrong_alike;
    b->another("shared_projection-not-of-I").shared_projection = projection_wrong_if_any;
    for (std::size_t n = 0; n < b->names.size(); ++n) b->scalars.push_back("broken-" + std::string(b->names[n]));
    for (std::size_t n = 0; n < b->names.size(); ++n) {
      b->functions[n].scalar = b->scalars[n];
      add_core_functions(b->functions[n]);
    }
    b->recorded = *core_functions("core:double");
    for_each_function([&](auto function, std::string_view) { record<function.value>(b->recorded, function.value); });
    b->recorded.scalar = recording;
    add_core_functions(b->recorded);
    return b;
  }();
  return *all;
}

/// A kernel under another name.
class Renamed : public ForwardingKernel {
 public:
  Renamed(std::unique_ptr<Kernel> kernel, std::string id) : ForwardingKernel(std::move(kernel)), id_(std::move(id)) {}
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<Renamed>(inner().clone(), id_);
  }

 private:
  std::string id_;
};

}  // namespace

const std::vector<std::string_view>& broken_functions() {
  return broken().names;
}

std::set<std::string_view> functions_asked(const std::function<void(Kernel&)>& check) {
  broken();
  Renamed kernel(registered("core:double"), fmt::format("core:{}", recording));
  asked_now().clear();
  check(kernel);
  return asked_now();
}

std::unique_ptr<Kernel> with_broken_function(std::string_view name) {
  return std::make_unique<Renamed>(registered("core:double"), "core:broken-" + std::string(name));
}

}  // namespace attest

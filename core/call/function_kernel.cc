#include "core/call/function_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <optional>
#include <utility>

#include "core/call/float_environment.h"
#include "core/call/guarded_memory.h"
#include "core/call/problem_in_memory.h"
#include "core/kernel/kernel_under_test.h"
#include "core/kernel/padding.h"
#include "core/problem/edge.h"
#include "core/problem/kv_cache.h"
#include "core/support/fnv1a.h"

namespace attest {
namespace {

/// A row-major view of an output that has no memory yet.
attest_tensor output_view(DType dtype, const Shape& shape) {
  attest_tensor view{};
  view.dtype = static_cast<std::int32_t>(dtype);
  view.rank = shape.rank();
  std::int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    view.shape[axis] = shape[axis];
    view.stride[axis] = stride;
    stride *= shape[axis];
  }
  return view;
}

/// [batch, heads, M] of an output [batch, heads, M, dv].
Shape lse_shape(const Shape& out) {
  return {out[0], out[1], out[2]};
}

/// Tells a memory when the call is over, however it ends.
class Returned {
 public:
  explicit Returned(GuardedMemory& memory) : memory_(memory) {}
  Returned(const Returned&) = delete;
  Returned& operator=(const Returned&) = delete;
  ~Returned() { memory_.called(); }

 private:
  GuardedMemory& memory_;
};

/// The memory of the newest call of a kernel with faulting ends, for a signal handler.
std::atomic<const GuardedMemory*> newest_memory = nullptr;

class FunctionKernel final : public OutsideKernel {
 public:
  FunctionKernel(std::string id, Manifest manifest, KernelFunctions functions, GuardedMemory::Ends ends)
      : id_(std::move(id)),
        manifest_(std::move(manifest)),
        as_made_(std::move(functions)),
        functions_(as_made_),
        ends_(ends),
        memory_(ends) {}
  FunctionKernel(const FunctionKernel&) = delete;
  FunctionKernel& operator=(const FunctionKernel&) = delete;
  ~FunctionKernel() override {
    const GuardedMemory* own = &memory_;
    newest_memory.compare_exchange_strong(own, nullptr);
  }

  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override;
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<FunctionKernel>(id_, manifest_, as_made_, ends_);
  }
  [[nodiscard]] Reply backward(const Case& c, const BackwardCall& call, DType output) override;
  [[nodiscard]] std::optional<std::string> late_change() const override { return memory_.changed_since_sealed(); }

 private:
  /// One call in guarded memory; what it left lies in memory_ until the next one.
  Reply call(const Case& c, DType output, bool want_lse, GuardedMemory::Fill fill);
  Reply call_backward(const Case& c, const BackwardCall& call, DType output, GuardedMemory::Fill fill);
  /// `invoked` calls the function in the memory that it lays out, which is begun anew: what became of it.
  template <class Invoked>
  std::pair<CallStatus, std::string> guarded(const Case& c, GuardedMemory::Fill fill, Invoked&& invoked);
  /// The function itself, its inputs placed: its status, or nothing and the message when it threw.
  template <class Function, class Packed>
  std::optional<int> invoke(const Function& function, const Packed& problem, const Case& c, attest_result& result,
                            std::string& message);
  /// The same, its outputs placed as well.
  template <class Function, class Packed, class Result>
  std::optional<int> invoke_in_place(const Function& function, const Packed& problem, Result& result,
                                     std::string& message);
  std::optional<int> attention(const Case& c, attest_result& result, std::string& message);
  std::optional<int> multihead(const Case& c, attest_result& result, std::string& message);

  std::string id_;
  Manifest manifest_;
  /// Never called, so that another thread may clone the kernel while a function with a state of its own runs.
  const KernelFunctions as_made_;
  KernelFunctions functions_;
  GuardedMemory::Ends ends_;
  GuardedMemory memory_;
  CacheAfter after_;  ///< of the call that memory_ is of
};

template <class Function, class Packed>
std::optional<int> FunctionKernel::invoke(const Function& function, const Packed& problem, const Case& c,
                                          attest_result& result, std::string& message) {
  const Layouts layouts = layouts_of(c);
  memory_.output("out", result.out, layouts.out);
  if (result.lse.rank != 0) memory_.output("lse", result.lse, layouts.lse);
  return invoke_in_place(function, problem, result, message);
}

template <class Function, class Packed, class Result>
std::optional<int> FunctionKernel::invoke_in_place(const Function& function, const Packed& problem, Result& result,
                                                   std::string& message) {
  memory_.lay_out();
  const Returned returned(memory_);
  try {
    return function(problem, result, message);
  } catch (const std::exception& error) {
    message = fmt::format("threw an exception: {}", error.what());
  } catch (...) {
    message = "threw something that is not a std::exception";
  }
  return std::nullopt;
}

std::optional<int> FunctionKernel::attention(const Case& c, attest_result& result, std::string& message) {
  attest_problem problem = c.problem();
  after_ = {};
  if (c[Slot::k_new].present()) after_ = {after_the_call(c, Slot::k), after_the_call(c, Slot::v)};
  add_inputs(memory_, problem, layouts_of(c), after_);
  return invoke(functions_.attention, problem, c, result, message);
}

std::optional<int> FunctionKernel::multihead(const Case& c, attest_result& result, std::string& message) {
  attest_multihead_problem problem = c.multihead_problem();
  add_inputs(memory_, problem, layouts_of(c));
  return invoke(functions_.multihead, problem, c, result, message);
}

Reply FunctionKernel::call(const Case& c, DType output, bool want_lse, GuardedMemory::Fill fill) {
  attest_result result{};
  result.size = sizeof(attest_result);
  const Shape shape = c.out_shape();
  result.out = output_view(output, shape);
  if (want_lse) result.lse = output_view(DType::f64, lse_shape(shape));

  auto [status, message] = guarded(c, fill, [&](std::string& said) {
    return c.operation == Operation::attention ? attention(c, result, said) : multihead(c, result, said);
  });
  return {status, std::move(message), {}, {}};
}

template <class Invoked>
std::pair<CallStatus, std::string> FunctionKernel::guarded(const Case& c, GuardedMemory::Fill fill, Invoked&& invoked) {
  if (std::optional<std::string> late = memory_.changed_since_sealed()) {
    memory_.clear(manifest_.alignment, fill);
    return {CallStatus::failed, std::move(*late)};
  }
  memory_.clear(manifest_.alignment, fill, edge_of(c));
  if (ends_ == GuardedMemory::Ends::faulting) newest_memory = &memory_;
  const FloatEnvironment standard = FloatEnvironment::standard();
  if (FloatEnvironment::current() != standard) standard.install();
  std::string message;
  const std::optional<int> status = invoked(message);
  // Before anything is computed here: an exception that the kernel unmasked would end this program instead.
  if (const FloatEnvironment left = FloatEnvironment::current(); left != standard) {
    standard.install();
    return {CallStatus::failed,
            fmt::format("left the floating-point environment changed: it {}; a call must leave it as it was",
                        left.difference_from(standard))};
  }
  if (ends_ == GuardedMemory::Ends::faulting) memory_.seal();
  // Checked whatever the status: a kernel that refuses a problem has no business in its memory either.
  if (std::optional<std::string> trespass = memory_.trespass()) return {CallStatus::failed, std::move(*trespass)};
  if (!status) return {CallStatus::failed, std::move(message)};
  switch (*status) {
    case ATTEST_OK:
      return {CallStatus::ok, std::move(message)};
    case ATTEST_UNSUPPORTED:
      return {CallStatus::unsupported, std::move(message)};
    case ATTEST_REJECTED:
      return {CallStatus::rejected, std::move(message)};
    default:
      return {CallStatus::failed, message.empty() ? fmt::format("returned status {}", *status)
                                                  : fmt::format("returned status {}: {}", *status, message)};
  }
}

/// The members of attest_gradients, by Gradient.
constexpr std::array<attest_tensor attest_gradients::*, gradient_count> members_of_gradients{
    &attest_gradients::dq, &attest_gradients::dk, &attest_gradients::dv, &attest_gradients::dmask,
    &attest_gradients::dsink};

/// Another than that of what it is by, and of other gradients, wherever those of q, k and v are not the same: of two
/// tensors that lie alike the strides of one do for the other.
MemoryLayout layout_of(Gradient gradient, const Layouts& layouts) {
  const MemoryLayout of_input = gradient == Gradient::q   ? layouts[Slot::v]
                                : gradient == Gradient::k ? layouts[Slot::q]
                                : gradient == Gradient::v ? layouts[Slot::k]
                                                          : layouts.out;
  return is_for_outputs(of_input) ? of_input : layouts.out;
}

Reply FunctionKernel::call_backward(const Case& c, const BackwardCall& call, DType output, GuardedMemory::Fill fill) {
  auto [status, message] = guarded(c, fill, [&](std::string& said) {
    const Layouts layouts = layouts_of(c);
    attest_problem forward = c.problem();
    add_inputs(memory_, forward, layouts);
    attest_backward_problem problem{};
    problem.size = sizeof problem, problem.forward = &forward;
    problem.d_out = c[Slot::d_out].view();
    memory_.input("d_out", problem.d_out, layouts[Slot::d_out]);
    problem.d_lse = c[Slot::d_lse].view();
    memory_.input("d_lse", problem.d_lse, layouts[Slot::d_lse]);
    const BackwardTerms& terms = manifest_.backward_terms;
    if (terms.uses_out) problem.out = call.out.view(), memory_.input("out", problem.out, layouts.out);
    if (terms.uses_lse) problem.lse = call.lse.view(), memory_.input("lse", problem.lse, layouts.lse);
    attest_gradients gradients{};
    gradients.size = sizeof gradients;
    for (const Gradient gradient : every_gradient) {
      if (!call.asks_for(gradient, terms, c)) continue;
      attest_tensor& view = gradients.*members_of_gradients[static_cast<std::size_t>(gradient)];
      view = output_view(dtype_of(c, gradient, output), c[slot_of(gradient)].shape());
      memory_.output(name_of(gradient), view, layout_of(gradient, layouts));
    }
    return invoke_in_place(functions_.backward, problem, gradients, said);
  });
  return {status, std::move(message), {}, {}};
}

/// What the output is filled with, by the case: half of the time with what a program's memory holds, for a kernel may
/// know a checker by memory that is filled with one number.
std::pair<GuardedMemory::Fill, GuardedMemory::Fill> fills_of(const Case& c) {
  using Fill = GuardedMemory::Fill;
  std::uint64_t hash = fnv1a_start;
  for (const std::byte byte : c.q().bytes().first(std::min<std::size_t>(c.q().bytes().size(), 64)))
    hash = fnv1a(hash, std::to_integer<std::uint64_t>(byte));
  return (hash >> 32) % 2 == 0 ? std::pair(Fill::leftover, Fill::signalling)
                               : std::pair(Fill::signalling, Fill::ordinary);
}

Reply FunctionKernel::run(const Case& given, std::optional<DType> asked, bool want_lse) {
  // What comes to a process of its own has been laid out by whoever sent it.
  const bool lays_out = ends_ == GuardedMemory::Ends::open && is_in_cache(given);
  const Case in_cache = lays_out ? laid_out_in_cache(given) : Case();
  const Case& c = lays_out ? in_cache : given;
  const DType output = asked.value_or(c.dtype());
  const bool multihead = c.operation == Operation::multihead;
  if (multihead ? !functions_.multihead : !functions_.attention) {
    return {CallStatus::unsupported, fmt::format("has no {} entry", name_of(c.operation)), {}, {}};
  }
  want_lse = want_lse && !multihead;
  const auto [first, second] = fills_of(c);
  Reply reply = call(c, output, want_lse, first);
  if (reply.status != CallStatus::ok) return reply;
  reply.out = memory_.copy_of(0);
  if (want_lse) reply.lse = memory_.copy_of(1);

  // Still the fill? Then ask again over another one; only what holds both fills was left unwritten.
  constexpr std::size_t most = std::size_t{1} << 20U;
  const int outputs = want_lse ? 2 : 1;
  const PaddingRows padding(manifest_, given);
  std::array<std::vector<std::int64_t>, 2> suspects;
  for (int which = 0; which < outputs; ++which) {
    std::vector<std::int64_t>& untouched = suspects[static_cast<std::size_t>(which)];
    untouched = memory_.untouched(which, most);
    if (padding.empty()) continue;
    const std::int64_t width = which == 0 ? c.out_shape()[3] : 1;
    if (std::optional<std::string> why = padding.trespass(untouched, most, width, which == 0 ? "out" : "lse"))
      return {CallStatus::failed, *std::move(why), {}, {}};
    padding.excuse(untouched, width, which == 1);
  }
  padding.clear(reply);
  if (suspects[0].empty() && suspects[1].empty()) return reply;
  if (Reply again = call(c, output, want_lse, second); again.status != CallStatus::ok) return again;
  for (int which = 0; which < outputs; ++which) {
    const std::vector<std::int64_t> still = memory_.untouched(which, most);
    const auto& before = suspects[static_cast<std::size_t>(which)];
    std::vector<std::int64_t> unwritten;
    std::set_intersection(before.begin(), before.end(), still.begin(), still.end(), std::back_inserter(unwritten));
    if (unwritten.empty()) continue;
    const Tensor& tensor = which == 0 ? reply.out : reply.lse;
    std::string message =
        fmt::format("left {} of {} elements of {} {} unwritten, the first at flat index {}", unwritten.size(),
                    tensor.elements(), which == 0 ? "out" : "lse", tensor.shape().to_string(), unwritten.front());
    return {CallStatus::failed, std::move(message), {}, {}};
  }
  return reply;
}

Reply FunctionKernel::backward(const Case& c, const BackwardCall& call, DType output) {
  if (!functions_.backward) return Kernel::backward(c, call, output);
  const auto [first, second] = fills_of(c);
  Reply reply = call_backward(c, call, output, first);
  if (reply.status != CallStatus::ok) return reply;
  int outputs = 0;
  std::vector<Gradient> wanted;
  for (const Gradient gradient : every_gradient) {
    if (!call.asks_for(gradient, manifest_.backward_terms, c)) continue;
    wanted.push_back(gradient);
    reply.gradients[static_cast<std::size_t>(gradient)] = memory_.copy_of(outputs++);
  }
  // As in run(): what holds both fills was left unwritten.
  constexpr std::size_t most = std::size_t{1} << 20U;
  const auto untouched = [&](int which) {
    const std::vector<std::int64_t> padding = padding_of(c, wanted[static_cast<std::size_t>(which)]);
    std::vector<std::int64_t> others;
    std::ranges::set_difference(memory_.untouched(which, most + padding.size()), padding, std::back_inserter(others));
    return others;
  };
  std::vector<std::vector<std::int64_t>> suspects;
  suspects.reserve(wanted.size());
  for (int which = 0; which < outputs; ++which) suspects.push_back(untouched(which));
  clear_padding(c, reply);
  if (std::ranges::all_of(suspects, [](const auto& one) { return one.empty(); })) return reply;
  if (Reply again = call_backward(c, call, output, second); again.status != CallStatus::ok) return again;
  for (int which = 0; which < outputs; ++which) {
    const auto at = static_cast<std::size_t>(which);
    std::vector<std::int64_t> unwritten;
    std::ranges::set_intersection(suspects[at], untouched(which), std::back_inserter(unwritten));
    if (unwritten.empty()) continue;
    const Tensor& tensor = reply.gradients[static_cast<std::size_t>(wanted[at])];
    return {CallStatus::failed,
            fmt::format("left {} of {} elements of {} {} unwritten, the first at flat index {}", unwritten.size(),
                        tensor.elements(), name_of(wanted[at]), tensor.shape().to_string(), unwritten.front()),
            {},
            {}};
  }
  return reply;
}

}  // namespace

std::unique_ptr<Kernel> function_kernel(std::string id, Manifest manifest, KernelFunctions functions) {
  return std::make_unique<FunctionKernel>(std::move(id), std::move(manifest), std::move(functions),
                                          GuardedMemory::Ends::open);
}
std::unique_ptr<Kernel> function_kernel(std::string id, Manifest manifest, AttentionFunction attention,
                                        MultiheadFunction multihead) {
  return function_kernel(std::move(id), std::move(manifest),
                         KernelFunctions{std::move(attention), std::move(multihead), nullptr});
}

std::unique_ptr<OutsideKernel> outside_kernel(std::string id, Manifest manifest, KernelFunctions functions) {
  return std::make_unique<FunctionKernel>(std::move(id), std::move(manifest), std::move(functions),
                                          GuardedMemory::Ends::faulting);
}

std::optional<FaultPlace> place_of_fault(const void* address) noexcept {
  const GuardedMemory* const memory = newest_memory;
  return memory == nullptr ? std::nullopt : memory->place_of(address);
}

}  // namespace attest

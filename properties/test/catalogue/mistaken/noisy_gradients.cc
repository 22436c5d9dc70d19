// Gradients with noise: that some argument of a call determines, or in some part of a gradient.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/problem/fields.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"
#include "properties/test/inspect.h"

namespace attest {
namespace {

Reply right_forward(Kernel& kernel, const Case& c, DType output, bool want_lse) {
  return kernel.run(c, output, want_lse);
}

using Change = std::function<void(const Case&, Gradient, Tensor&)>;
WrongKernel changed(std::string name, Change change) {
  return {std::move(name), right_forward,
          [change = std::move(change)](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
            Reply reply = kernel.backward(c, call, output);
            if (reply.status != CallStatus::ok) return reply;
            for (const Gradient gradient : every_gradient)
              if (Values& one = reply.gradients[static_cast<std::size_t>(gradient)]; one.present())
                change(c, gradient, one.tensor());
            return reply;
          }};
}

/// On every element of every gradient.
WrongKernel looks_at(std::string_view what, std::function<std::optional<std::uint64_t>(const Case&)> hash) {
  return changed(fmt::format("gradients-look-at {}", what),
                 [hash = std::move(hash)](const Case& c, Gradient, Tensor& gradient) {
                   const std::optional<std::uint64_t> found = hash(c);
                   if (!found) return;
                   const double noise = noise_of(*found);
                   gradient = mapped(gradient, [&](std::int64_t, double old) { return old + noise; });
                 });
}
WrongKernel looks_at_number(std::string_view what, std::function<double(const Case&)> number) {
  return looks_at(what, [number = std::move(number)](const Case& c) {
    return std::optional(std::bit_cast<std::uint64_t>(number(c)) * 77 + 5);
  });
}
WrongKernel looks_at_tensor(Slot slot) {
  return looks_at(name_of(slot), [slot](const Case& c) -> std::optional<std::uint64_t> {
    if (!c[slot].present()) return std::nullopt;
    Case only;
    only[Slot::q] = c[slot];
    return hash_of(only);
  });
}

/// Of a gradient where `here` says so, of batch entry, head, row, column.
using Where = std::function<bool(const Shape& shape, std::int64_t e)>;
WrongKernel wrong_at(Gradient wrong, const char* where, Where here) {
  return changed(fmt::format("gradients-wrong-at {}-{}", name_of(wrong), where),
                 [wrong, here = std::move(here)](const Case& c, Gradient gradient, Tensor& t) {
                   if (gradient != wrong) return;
                   const double noise = noise_of(hash_of_call(c));
                   const Shape shape = t.shape();
                   t = mapped(t, [&](std::int64_t e, double old) { return here(shape, e) ? old + noise : old; });
                 });
}
std::int64_t at_axis(const Shape& shape, std::int64_t e, int axis) {
  return shape.index_of(e)[static_cast<std::size_t>(axis)];
}

}  // namespace

std::vector<WrongKernel> noisy_gradients() {
  std::vector<WrongKernel> all;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v, Slot::mask, Slot::d_out, Slot::d_lse})
    all.push_back(looks_at_tensor(slot));
  all.push_back(looks_at_number("scale", [](const Case& c) { return c.scale; }));
  all.push_back(looks_at_number("M", [](const Case& c) { return static_cast<double>(queries_of(c)); }));
  all.push_back(looks_at_number("N", [](const Case& c) { return static_cast<double>(keys_of(c)); }));
  all.push_back(looks_at_number("batch", [](const Case& c) { return static_cast<double>(batch_of(c)); }));
  all.push_back(looks_at_number("heads", [](const Case& c) { return static_cast<double>(heads_of(c)); }));
  all.push_back(looks_at_number("kv-heads", [](const Case& c) { return static_cast<double>(c.k().shape()[1]); }));
  all.push_back(
      looks_at_number("strides", [](const Case& c) { return static_cast<double>(c.provenance.strides.has_value()); }));
  for (const Gradient gradient : every_gradient) {
    const auto at = [&](const char* where, Where here) { all.push_back(wrong_at(gradient, where, std::move(here))); };
    if (gradient == Gradient::sink) {
      at("head-0", [](const Shape&, std::int64_t e) { return e == 0; });
      at("other-heads", [](const Shape&, std::int64_t e) { return e > 0; });
      continue;
    }
    at("row-0", [](const Shape& s, std::int64_t e) { return at_axis(s, e, 2) == 0; });
    at("row-1", [](const Shape& s, std::int64_t e) { return at_axis(s, e, 2) == 1; });
    at("last-row", [](const Shape& s, std::int64_t e) { return at_axis(s, e, 2) == s[2] - 1; });
    at("column-0", [](const Shape& s, std::int64_t e) { return at_axis(s, e, 3) == 0; });
    at("other-columns", [](const Shape& s, std::int64_t e) { return at_axis(s, e, 3) > 0; });
    at("head-0", [](const Shape& s, std::int64_t e) { return at_axis(s, e, 1) == 0; });
    at("other-heads", [](const Shape& s, std::int64_t e) { return at_axis(s, e, 1) > 0; });
    at("batch-0", [](const Shape& s, std::int64_t e) { return at_axis(s, e, 0) == 0; });
    at("other-batch", [](const Shape& s, std::int64_t e) { return at_axis(s, e, 0) > 0; });
    // What is compared bit by bit.
    all.push_back(changed(fmt::format("gradients-wrong-at {}-last-bit", name_of(gradient)),
                          [gradient](const Case& c, Gradient of, Tensor& t) {
                            if (of != gradient || noise_of(hash_of_call(c)) < 0) return;
                            t = mapped(t, [](std::int64_t, double old) {
                              return std::nextafter(old, std::numeric_limits<double>::infinity());
                            });
                          }));
  }
  return all;
}

}  // namespace attest

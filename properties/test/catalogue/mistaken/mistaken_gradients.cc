// Kernels whose forward pass is right, and whose backward pass is not.
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "core/problem/case.h"
#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

Reply right_forward(Kernel& kernel, const Case& c, DType output, bool want_lse) {
  return kernel.run(c, output, want_lse);
}

using Gradients = std::array<Values, gradient_count>;
/// The right gradients, changed.
WrongKernel changed(std::string name, std::function<void(Kernel&, const Case&, Gradients&)> change) {
  return {std::move(name), right_forward,
          [change = std::move(change)](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
            Reply reply = kernel.backward(c, call, output);
            if (reply.status == CallStatus::ok) change(kernel, c, reply.gradients);
            return reply;
          }};
}
/// Those of another problem.
WrongKernel asked(std::string name, std::function<void(Case&)> change) {
  return {std::move(name), right_forward,
          [change = std::move(change)](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
            Case other = c;
            change(other);
            return kernel.backward(other, call, output);
          }};
}

Tensor& of(Gradients& gradients, Gradient gradient) {
  return gradients[static_cast<std::size_t>(gradient)].tensor();
}
/// One of the gradients, where there is one, changed.
WrongKernel changed(std::string name, Gradient gradient, std::function<void(Tensor&)> change) {
  return changed(std::move(name), [gradient, change = std::move(change)](Kernel&, const Case&, Gradients& g) {
    if (g[static_cast<std::size_t>(gradient)].present()) change(of(g, gradient));
  });
}
void set_each(Tensor& t, const std::function<double(std::int64_t e, double old)>& value) {
  for (std::int64_t e = 0; e < t.elements(); ++e) t.set(e, value(e, t[e]));
}

/// Rows of d_out and d_lse that the predicate chooses are 0.
void drop_rows(Case& c, const std::function<bool(std::int64_t head, std::int64_t row)>& dropped) {
  const std::int64_t rows = queries_of(c), heads = heads_of(c), all = batch_of(c) * heads * rows;
  for (const Slot slot : {Slot::d_out, Slot::d_lse})
    set_each(c[slot], [&, columns = c[slot].elements() / std::max<std::int64_t>(all, 1)](std::int64_t e, double old) {
      const std::int64_t row = e / columns;
      return dropped(row / rows % heads, row % rows) ? 0 : old;
    });
}

}  // namespace

std::vector<WrongKernel> mistaken_gradients() {
  std::vector<WrongKernel> all;
  for (const Gradient gradient : every_gradient) {
    const std::string name(name_of(gradient));
    all.push_back(changed(name + " 1 percent too large", gradient,
                          [](Tensor& t) { set_each(t, [](std::int64_t, double old) { return old * 1.01; }); }));
    all.push_back(changed(name + " never 0", gradient, [](Tensor& t) {
      set_each(t, [](std::int64_t, double old) { return old == 0 ? 0x1p-20 : old; });
    }));
    all.push_back(changed(name + " wrong in its last element", gradient, [](Tensor& t) {
      if (t.elements() > 0) t.set(t.elements() - 1, t[t.elements() - 1] + 1);
    }));
    all.push_back(changed(name + " NaN in its first element", gradient, [](Tensor& t) {
      if (t.elements() > 0) t.set(0, std::numeric_limits<double>::quiet_NaN());
    }));
  }
  all.push_back(changed("dsink with the other sign", Gradient::sink,
                        [](Tensor& t) { set_each(t, [](std::int64_t, double old) { return -old; }); }));
  all.push_back(asked("gradients lose the last row", [](Case& c) {
    drop_rows(c, [last = queries_of(c) - 1](std::int64_t, std::int64_t row) { return row == last; });
  }));
  all.push_back(asked("gradients lose the last head", [](Case& c) {
    drop_rows(c, [last = heads_of(c) - 1](std::int64_t head, std::int64_t) { return head == last; });
  }));
  all.push_back(asked("gradients with the scale twice", [](Case& c) { c.scale *= c.scale; }));
  all.push_back(asked("gradients without a mask", [](Case& c) { c[Slot::mask] = Tensor(); }));
  for (const Variant& variant : {window_variant, chunk_variant, lengths_variant, packed_variant, left_pad_variant,
                                 sink_variant, softcap_variant, dropout_variant, alibi_variant})
    all.push_back(asked("gradients without " + std::string(variant.words),
                        [variant](Case& c) { drop_variant(c, variant.name); }));
  all.push_back(asked("gradients of values moved by 1",
                      [](Case& c) { set_each(c[Slot::v], [](std::int64_t, double old) { return old + 1; }); }));
  all.push_back(changed("gradients of other values added", [](Kernel& kernel, const Case& c, Gradients& g) {
    Case doubled = c;
    set_each(doubled[Slot::v], [](std::int64_t e, double old) { return old + static_cast<double>(e % 3); });
    const Reply other = kernel.backward(doubled, {}, c.dtype());
    for (const Gradient gradient : {Gradient::q, Gradient::k})
      set_each(of(g, gradient), [&](std::int64_t e, double old) {
        return old + other.gradients[static_cast<std::size_t>(gradient)][e];
      });
  }));
  return all;
}

}  // namespace attest

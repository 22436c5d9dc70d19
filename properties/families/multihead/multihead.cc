// multihead: PyTorch's special case, add_bias_kv, the order of heads (000).
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/kernels/core_functions.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/catalogue/property.h"
#include "properties/families/multihead/multihead_oracle.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

/// The kernel on PyTorch's shapes against the definition; of the core its own reading of PyTorch's parameters too, to
/// the bit: as three matrices, and as one where they are one in PyTorch.
Verdict torch_case(Kernel& kernel, const Case& c) {
  const CoreFunctions* const core = core_functions(kernel.id());
  Verdict judged = judged_multihead(kernel, c);
  if (core == nullptr) return judged;
  const Values direct = core->multihead(c);
  if (!same_bits(direct, core->multihead_torch(c, /*packed=*/false)))
    return violated(Violation::bits, "PyTorch's parameters as three matrices give other numbers");
  const Extents e = extents_of(c);
  if (e.c_k == e.c_q && e.c_v == e.c_q && !same_bits(direct, core->multihead_torch(c, /*packed=*/true)))
    return violated(Violation::bits, "PyTorch's parameters with one in_proj_weight give other numbers");
  return judged;
}

/// Tokens [batch, rows, columns] with one row below each batch entry.
Tensor with_row_below(const Tensor& tokens, const Tensor& row) {
  const std::int64_t rows = tokens.shape()[1], columns = tokens.shape()[2];
  Tensor more(tokens.dtype(), {tokens.shape()[0], rows + 1, columns});
  for (std::int64_t e = 0; e < more.elements(); ++e) {
    const std::int64_t b = e / columns / (rows + 1), i = e / columns % (rows + 1), c = e % columns;
    more.set(e, i == rows ? row[c] : tokens[(b * rows + i) * columns + c]);
  }
  return more;
}

/// The appended row as one more token of projected K and V; mask and causal form written out, with a column of 0 for
/// it.
Case with_bias_kv_written_out(const Case& c) {
  Case written = with_tokens_projected(c);
  if (c.mask().present() || c.causal != Causal::none) {
    written = with_causal_written_out(std::move(written));
    const Tensor mask = written.mask();
    const std::int64_t N = keys_of(c);
    Tensor& wider = written[Slot::mask];
    wider = Tensor(mask.dtype(), {mask.shape()[0], mask.shape()[1], mask.shape()[2], N + 1});
    for (std::int64_t e = 0; e < wider.elements(); ++e)
      if (e % (N + 1) < N) wider.set(e, mask[e / (N + 1) * N + e % (N + 1)]);
  }
  written[Slot::k] = with_row_below(written.k(), c[Slot::bias_k]);
  written[Slot::v] = with_row_below(written.v(), c[Slot::bias_v]);
  written[Slot::bias_k] = written[Slot::bias_v] = Tensor();
  return written;
}

// 000: attention over [KW_k + 1b_k^T; bias_k] and [VW_v + 1b_v^T; bias_v]. The order of K and V still does not matter.
Verdict bias_kv(Kernel& kernel, const Case& c) {
  const Result appended = run(kernel, c);
  Verdict verdict = agree({appended, run(kernel, with_bias_kv_written_out(c))}, Match::bound);
  if (c.causal != Causal::none) return verdict;
  const Indices sigma = permutation_argument(c, "sigma", keys_of(c));
  return worse_of({std::move(verdict), agree({run(kernel, with_keys(c, sigma)), appended}, Match::bound)});
}

// Heads in another order, the row blocks of W_o with them, add up to the same.
Verdict head_permutation(Kernel& kernel, const Case& c) {
  return agree({run(kernel, with_heads(c, permutation_argument(c, "heads", c.heads))), run(kernel, c)}, Match::bound);
}

constexpr std::array torch_shapes{defining(hypotheses::torch_case, "these shapes are what the PyTorch case is")};
constexpr std::array appended{
    defining(hypotheses::bias_kv, "it is the appended row that is spoken of"),
    defining(hypotheses::exact_projections, "the other side starts from the projected tokens")};
constexpr std::array permuted_heads{
    needed(hypotheses::output_projection, "without W_o heads lie side by side, and their order shows"),
    defining(hypotheses::two_heads, "one head has no other order")};

const Property family[] = {
    {.name = "multihead.torch-case",
     .statement =
         "dk = dv = d/h, c_q = d_o = d, c_k and c_v free, is the special case (in_proj_weight packed when c_k = c_v = "
         "d, three matrices otherwise; in_proj_bias always packed)",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bound, against a real PyTorch",
     .operation = Operation::multihead,
     .hypotheses = torch_shapes,
     .given = [](Draw& draw) -> Case { return draw.multihead().torch_case(); },
     .check = torch_case},
    {.name = "multihead.bias-kv",
     .statement = "add_bias_kv appends one learned row to the projected K and V of every batch entry; a mask gets a "
                  "column of 0 for it, causal never hides it; KV permutation invariance still holds **+**",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = appended,
     .given = [](Draw& draw) -> Case { return whole_numbers(draw).where([](Recipe& r) { r.key_value_bias = true; }); },
     .check = bias_kv},
    {.name = "multihead.head-permutation",
     .statement = "permuting heads with the row blocks of W_o changes nothing",
     .source = "+",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = permuted_heads,
     .given = [](Draw& draw) -> Case { return with_output(small_multihead(draw, /*least_heads=*/2)); },
     .check = head_permutation},
};

}  // namespace

std::span<const Property> multihead_properties() {
  return family;
}

}  // namespace attest

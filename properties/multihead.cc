// multihead: MHAttn, MMHAttn, MHSAttn, MMHSAttn.
#include <fmt/format.h>

#include <cmath>

#include "answer.h"
#include "attest/oracle.h"
#include "generators/draw.h"
#include "property.h"
#include "selection.h"

namespace attest {
namespace {

/// What torch.nn.MultiheadAttention computes: dk = dv = d/h, c_q = d_o = d, c_k and c_v free, the three in-projection
/// biases together or not at all, an output projection, and the scale 1/sqrt(dk).
std::string not_torch_case(const Case& c) {
  const Extents e = extents_of(c);
  if (e.dk != e.dv) return fmt::format("has dk = {} and dv = {}; the PyTorch case has dk = dv", e.dk, e.dv);
  const std::int64_t d = e.heads * e.dk;
  if (e.c_q != d || e.d_o != d) {
    return fmt::format("has c_q = {} and d_o = {}; the PyTorch case has both equal to heads*dk = {}", e.c_q, e.d_o, d);
  }
  if (!c[Slot::w_o].present()) return "has no w_o; the PyTorch case has an output projection";
  const bool bias = c[Slot::b_q].present();
  if (c[Slot::b_k].present() != bias || c[Slot::b_v].present() != bias || c[Slot::b_o].present() != bias) {
    return "has some biases and lacks others; the PyTorch case has all of b_q, b_k, b_v and b_o or none";
  }
  if (c[Slot::bias_k].present() != c[Slot::bias_v].present()) return "has one of bias_k and bias_v without the other";
  if (!is_inverse_root(c.scale, e.dk)) return fmt::format("has scale {}; the PyTorch case has 1/sqrt(dk)", c.scale);
  return {};
}

Verdict torch_case(Kernel& kernel, const Case& c) {
  const Manifest& manifest = kernel.manifest();
  return judge_multihead(c, answer(kernel, c).out, manifest.arithmetic_for(c.dtype()),
                         {.ignores_dead_values = manifest.claims_to(Claim::ignores_dead_values)});
}

const Property family[] = {
    {.name = "multihead.torch-case",
     .statement =
         "dk = dv = d/h, c_q = d_o = d, c_k and c_v free, is the special case (in_proj_weight packed when c_k = c_v = "
         "d, three matrices otherwise; in_proj_bias always packed)",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bound, against a real PyTorch",
     .operation = Operation::multihead,
     .given = [](Draw& draw) -> Case { return draw.multihead().torch_case(); },
     .misses = not_torch_case,
     .check = torch_case},
};

}  // namespace

std::span<const Property> multihead_properties() {
  return family;
}

}  // namespace attest

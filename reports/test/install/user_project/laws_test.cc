// A law of one's own for a kernel of one's own, over Attest's cases: where every value is one, so is every answer.
#include <attest/rapidcheck.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

RC_GTEST_PROP(Mine, LeavesOnesAsTheyAre, ()) {
  const attest::Case c = *attest::attention_cases(attest::DType::f32, [](attest::Recipe& r) {
    r.values = attest::ValueKind::ones, r.mask = attest::MaskKind::none, r.causal = attest::Causal::none;
    r.scores = attest::ScoreKind::gaussian, r.scale = attest::ScaleKind::inverse_root;
    r.kv_heads = r.heads, r.keys = std::min(r.keys, 64), r.layouts = {}, r.override_count = 0;
  });
  RC_PRE(c.k().elements() > 0);
  attest::Tensor out(attest::DType::f32, c.out_shape());
  const attest_problem problem = c.problem();
  attest_result result{.size = sizeof(attest_result), .out = out.view(), .lse = {}};
  RC_ASSERT(attest_kernel_attention(&problem, &result, nullptr, 0) == ATTEST_OK);
  for (std::int64_t e = 0; e < out.elements(); ++e) RC_ASSERT(std::abs(out[e] - 1) < 1e-4);
}

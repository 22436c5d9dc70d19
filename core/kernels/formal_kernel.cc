// The generic core on expressions, as a kernel that properties run on.
#include <optional>

#include "core/kernel/formal.h"
#include "core/kernels/core_problem.h"
#include "core/problem/kv_cache.h"

namespace attest {
namespace {

class CoreOnExpressions final : public Kernel {
 public:
  CoreOnExpressions() {
    manifest_.name = id_;
    manifest_.version = "1";
    manifest_.dtypes = {DType::f64};
    manifest_.arithmetic.usual.emplace(DType::f64, Arithmetic{});
    manifest_.claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant,
                        Claim::ignores_dead_values};
    manifest_.fully_masked_row = core_fully_masked_row;
    manifest_.multihead = true;
    manifest_.mask_conventions = {MaskConvention::post_scale, MaskConvention::pre_scale};
    manifest_.causal = {Causal::top_left, Causal::bottom_right};
    manifest_.variants = every_variant();
    manifest_.grouped_query = true;
    manifest_.strides = true;
    manifest_.backward = true;
    manifest_.backward_terms.masked_row = MaskedGradient::zero;
    manifest_.backward_terms.dmask = manifest_.backward_terms.dsink = manifest_.backward_terms.d_lse = true;
    manifest_.backward_terms.uses_out = manifest_.backward_terms.uses_lse = false;
  }
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<CoreOnExpressions>(); }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool) override try {
    if (output) throw NotTreated("looks at outputs rounded to a dtype, and a proof has none");
    const Shape shape = c.out_shape();
    if (c.operation == Operation::multihead)
      return {CallStatus::ok, {}, numbers_of(multihead_outputs<Expression>(c.multihead_problem()), shape), {}};
    std::vector<Matrix<Expression>> out, lse;
    const Case laid_out = laid_out_in_cache(c);
    for (const AttentionResult<Expression>& page : attention_results<Expression>(laid_out.problem())) {
      out.push_back(page.out);
      lse.emplace_back(page.lse);
    }
    return {CallStatus::ok, {}, numbers_of(out, shape), numbers_of(lse, {shape[0], shape[1], shape[2]})};
  } catch (const UsageError& error) {
    return {CallStatus::rejected, error.what(), {}, {}};
  }
  [[nodiscard]] Reply backward(const Case& c, const BackwardCall& /*answers*/, DType /*output*/) override {
    std::vector<Matrix<Expression>> of_q, of_k, of_v;
    const attest_problem p = c.problem();
    std::vector<Gradients<Expression>> all =
        gradients_of<Expression>(p, {c[Slot::d_out].view(), c[Slot::d_lse].view()});
    const SharedSums<Expression> shared = shared_sums(p, all);
    for (Gradients<Expression>& page : all) {
      of_q.push_back(std::move(page.q));
      // The first of a group has those of k and v.
      if (page.k.size() > 0) of_k.push_back(std::move(page.k));
      if (page.v.size() > 0) of_v.push_back(std::move(page.v));
    }
    Reply reply;
    reply.gradients[0] = numbers_of(of_q, c.q().shape()), reply.gradients[1] = numbers_of(of_k, c.k().shape());
    reply.gradients[2] = numbers_of(of_v, c.v().shape());
    if (!shared.mask.empty()) reply.gradients[3] = numbers_of(shared.mask, c.mask().shape());
    if (!shared.sink.empty()) reply.gradients[4] = Expressions(c[Slot::sink].shape(), shared.sink);
    return reply;
  }

 private:
  std::string id_ = "core:expression";
  Manifest manifest_;
};

}  // namespace

std::unique_ptr<Kernel> formal_kernel() {
  return std::make_unique<CoreOnExpressions>();
}

}  // namespace attest

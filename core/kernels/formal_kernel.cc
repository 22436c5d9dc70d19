// The generic core on expressions, as a kernel that properties run on.
#include "core/kernel/formal.h"
#include "core/kernels/core_problem.h"

namespace attest {
namespace {

class CoreOnExpressions final : public FormalKernel {
 public:
  CoreOnExpressions() {
    manifest_.name = id_;
    manifest_.version = "1";
    manifest_.dtypes = {DType::f64};
    manifest_.arithmetic.emplace(DType::f64, Arithmetic{});
    manifest_.claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant,
                        Claim::ignores_dead_values};
    manifest_.fully_masked_row = core_fully_masked_row;
    manifest_.multihead = true;
    manifest_.mask_conventions = {MaskConvention::post_scale, MaskConvention::pre_scale};
    manifest_.causal = {Causal::top_left, Causal::bottom_right};
    manifest_.grouped_query = true;
    manifest_.strides = true;
  }
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] Reply run(const Case&, DType, bool) override {
    throw NotTreated("looks at outputs rounded to a dtype, and a proof has none");
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<CoreOnExpressions>(); }
  [[nodiscard]] FormalReply run_formal(const Case& c) override try {
    FormalReply reply;
    const auto keep = [&](const Matrix<Expression>& out) {
      for (Index i = 0; i < out.rows(); ++i)
        for (Index k = 0; k < out.cols(); ++k) reply.out.push_back(out(i, k));
    };
    if (c.operation == Operation::attention) {
      for (const AttentionResult<Expression>& page : attention_results<Expression>(c.problem())) {
        keep(page.out);
        for (Index i = 0; i < page.lse.size(); ++i) reply.lse.push_back(page.lse(i));
      }
    } else {
      for (const Matrix<Expression>& out : multihead_outputs<Expression>(c.multihead_problem())) keep(out);
    }
    return reply;
  } catch (const UsageError& error) {
    return {.status = CallStatus::rejected, .message = error.what(), .out = {}, .lse = {}};
  }

 private:
  std::string id_ = "core:expression";
  Manifest manifest_;
};

}  // namespace

std::unique_ptr<FormalKernel> formal_kernel() {
  return std::make_unique<CoreOnExpressions>();
}

}  // namespace attest
